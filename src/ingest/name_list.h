/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of names (or rows of a manifest) with random access, stored in an unnamed file, so that
 * shuffling a source takes no memory per sample. Filled first, then read; one thread at a time.
 */
#ifndef LEAT_INGEST_NAME_LIST_H
#define LEAT_INGEST_NAME_LIST_H

#include "base/buf.h"
#include "base/error.h"
#include "io/file.h"

typedef struct leat__name_list {
    leat__file *names, *ends;      /* all names; end offset of each (u64) */
    leat__buf new_names, new_ends; /* not written yet */
    uint64_t count, names_bytes;
} leat__name_list;

/* Creates the file in the folder of `path`; its name is removed before this returns. */
int leat__name_list_open(leat__name_list *l, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__name_list_reset(leat__name_list *l); /* accepts a zeroed list */

int leat__name_list_add(leat__name_list *l, const char *name, size_t len, leat_error *err) LEAT_MUST_CHECK;
int leat__name_list_close_adding(leat__name_list *l, leat_error *err) LEAT_MUST_CHECK;
/* Copies name i < count to `name`, replacing its content. */
int leat__name_list_at(const leat__name_list *l, uint64_t i, leat__buf *name,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
