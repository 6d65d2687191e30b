/* SPDX-License-Identifier: Apache-2.0
 *
 * Tar archives as a stream of members: ustar, pax and GNU long names. Member names are data
 * and never touch the file system. Sparse files are refused by name. One thread.
 */
#ifndef LEAT_INGEST_TAR_H
#define LEAT_INGEST_TAR_H

#include "base/buf.h"
#include "ingest/stream.h"

#define LEAT__TAR_NAME_MAX 65536u
#define LEAT__TAR_EXTENDED_MAX (1u << 20) /* bytes of one pax header */

typedef struct leat__tar {
    leat__stream *stream; /* not owned */
    leat__buf name, extended, pending_name;
    uint64_t left;    /* unread bytes of the current member */
    uint64_t padding; /* bytes between its data and the next header */
} leat__tar;

typedef struct leat__tar_member {
    const char *name; /* valid until the next call; without leading "./" */
    size_t name_len;
    uint64_t size;
    uint64_t offset; /* offset of its data in the (decompressed) archive */
    char type;       /* '0': a regular file; data of other types is ignored */
} leat__tar_member;

void leat__tar_init(leat__tar *t, leat__stream *stream);
void leat__tar_reset(leat__tar *t);

/* Reads the next member and skips the unread rest of the previous one. *end is true after the last.
 * LEAT_EDATA: damaged or truncated (err->offset in the archive); LEAT_EFORMAT: sparse. */
int leat__tar_next(leat__tar *t, leat__tar_member *member, bool *end, leat_error *err) LEAT_MUST_CHECK;
/* Reads the next `len` bytes of the member, at most those not yet read. */
int leat__tar_read(leat__tar *t, void *buf, size_t len, leat_error *err) LEAT_MUST_CHECK;

#endif
