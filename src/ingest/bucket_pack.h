/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a pack to a bucket. The pack is first written to a local folder, like any other pack (so that
 * it can be resumed), and then uploaded file by file. The file that readers open, the pack itself or its
 * set, comes last, in one conditional request: readers see all of the pack or nothing. The folder's name
 * is derived from the bucket path, so that `resume` finds it again.
 */
#ifndef LEAT_INGEST_BUCKET_PACK_H
#define LEAT_INGEST_BUCKET_PACK_H

#include <stdbool.h>

#include <leat/ingest.h>
#include <leat/log.h>

#include "io/file.h"
#include "io/store.h"

typedef struct leat__bucket_pack {
    const char *remote; /* destination */
    leat__store *store;
    leat__file *lock;    /* of the folder, while this run uses it */
    char *folder, *path; /* local folder, and the pack in it */
    char *origin;        /* file that records what the pack was made from (pack_origin.h) */
    char *replaced;      /* file with the lists of shards of the sets that this pack replaces */
    char *tagged;        /* file of the set with tagged names of its shards (bucket_tag.h) */
    char tag[17];        /* "": the shards have the names of the local files */
    const leat_log *log; /* set by the caller, for warnings; may be NULL */
    bool replace;
    bool published; /* the pack is in the bucket: only cleanup remains */
} leat__bucket_pack;

/* Finds and locks the folder, and checks that the name in the bucket is free. LEAT_EEXIST unless `replace` is
 * set or, with `resume`, the object is the local pack; LEAT_ESTATE when another run writes this pack. */
int leat__bucket_pack_open(leat__bucket_pack *s, const char *remote, bool replace, bool resume,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__bucket_pack_close(leat__bucket_pack *s);
/* Unlocks the folder, so that other runs can use it. */
void leat__bucket_pack_unlock(leat__bucket_pack *s);

/* Removes all local files of earlier runs, aborts their uploads and removes the shards that they sent, unless
 * the pack in the bucket names them. A warning names those that stay. Called before the pack is written
 * again. Otherwise, if this run is killed, an old finished pack could be taken for its result. */
void leat__bucket_pack_forget(leat__bucket_pack *s);
/* True when a finished pack is waiting for its upload. */
bool leat__bucket_pack_ready(const leat__bucket_pack *s);
/* Fills in the counts of that pack. */
int leat__bucket_pack_count(const leat__bucket_pack *s, leat_ingest_stats *own,
                            leat_error *err) LEAT_MUST_CHECK;
/* Uploads all files of the pack and removes the local ones. If the pack replaced sets, their shards are
 * removed from the bucket; a warning names those that stay. The shards of a set that replaces a pack get a
 * tag (bucket_tag.h). `progress`: see leat__upload_opts. */
int leat__bucket_pack_publish(leat__bucket_pack *s,
                              int (*progress)(void *cookie, uint64_t done, uint64_t total), void *cookie,
                              leat_error *err) LEAT_MUST_CHECK;

#endif
