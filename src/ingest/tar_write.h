/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes tar shards: FOLDER/00000.tar, 00001.tar … The same members give the same bytes (no times, and the
 * owner is always "leat"). All members of a sample are in one shard. A shard is named NNNNN.tar.partial until
 * it is complete or, with `replace`, until all shards are complete: a failed run leaves the shards of an
 * earlier run unchanged. Only shards of leat are replaced. One thread.
 */
#ifndef LEAT_INGEST_TAR_WRITE_H
#define LEAT_INGEST_TAR_WRITE_H

#include <stdbool.h>

#include "base/buf.h"
#include "io/file.h"

typedef struct leat__tar_out {
    const char *folder; /* owned by the caller */
    uint64_t shard_bytes;
    bool replace;
    leat__file *file;
    uint64_t at;     /* bytes of the shard, written or still in `pending` */
    uint32_t shards; /* number of complete shards */
    uint32_t named;  /* number of shards with final names */
    leat__buf pending, path, partial;
} leat__tar_out;

void leat__tar_out_init(leat__tar_out *t, const char *folder, uint64_t shard_bytes, bool replace);
/* Call it before the first member of a sample: starts a new shard when this one is full. */
int leat__tar_out_sample(leat__tar_out *t, leat_error *err) LEAT_MUST_CHECK;
int leat__tar_out_add(leat__tar_out *t, const char *name, const void *data, size_t len,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__tar_out_finish(leat__tar_out *t, leat_error *err) LEAT_MUST_CHECK; /* completes the last shard */
/* Removes shards without a final name. */
void leat__tar_out_reset(leat__tar_out *t);

#endif
