/* SPDX-License-Identifier: Apache-2.0
 *
 * Sheets: a pack and the columns beside it, read by the names of their int and float
 * fields. When two have a field of the same name, the pack comes first, then the columns
 * in the order given.
 */
#ifndef LEAT_CURATE_COLUMN_PACKS_H
#define LEAT_CURATE_COLUMN_PACKS_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/error.h"

typedef struct leat__column_packs {
    leat_pack **pack;
    uint64_t *first; /* row of each where those of the pack begin */
    uint32_t count;
    uint64_t rows;
} leat__column_packs;

/* Opens `path` and `columns`, which may be of several packs. LEAT_EINVAL when one does not have the rows of
 * this pack. */
int leat__column_packs_open(leat__column_packs *s, const char *path, const char *const *columns,
                            uint32_t count, leat_error *err) LEAT_MUST_CHECK;
void leat__column_packs_close(leat__column_packs *s);

/* The column as numbers, one per row. */
int leat__column_packs_numbers(leat__column_packs *s, const char *name, double *out,
                               leat_error *err) LEAT_MUST_CHECK;

/* An int column; `folder` (when no column has the name) gives the hash of the folder of
 * each key. */
int leat__column_packs_codes(leat__column_packs *s, const char *name, int64_t *out,
                             leat_error *err) LEAT_MUST_CHECK;
/* The code of a value given as text: a class name, a number, or a folder. */
int leat__column_packs_code_of(leat__column_packs *s, const char *name, const char *text, int64_t *code,
                               leat_error *err) LEAT_MUST_CHECK;

/* Class names of an int column; *count 0 when it has none. Views that live as long as the sheets. */
int leat__column_packs_classes(leat__column_packs *s, const char *name, const char *const **names,
                               uint64_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Sets out[row] to false for each row that does not meet the condition (ingest/where.h).
 */
int leat__column_packs_where(leat__column_packs *s, const char *where, bool *out,
                             leat_error *err) LEAT_MUST_CHECK;

#endif
