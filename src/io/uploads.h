/* SPDX-License-Identifier: Apache-2.0
 *
 * Unfinished multipart uploads, left in a bucket by a killed process. They are stored, and
 * billed, until they are completed or aborted. For s3:// and gs://; Azure deletes uncommitted
 * blocks by itself after a week.
 */
#ifndef LEAT_IO_UPLOADS_H
#define LEAT_IO_UPLOADS_H

#include "io/store.h"

typedef struct leat__upload_info {
    const char *key; /* the part after the bucket. All strings are valid during the call */
    const char *id;
    const char *begun; /* date and time as sent by the server, "" when missing */
} leat__upload_info;

/* Calls `each` for the uploads of the object `path` and of those below the folder `path`; stops when it
 * returns non-zero. */
typedef int (*leat__uploads_fn)(void *cookie, const leat__upload_info *u, leat_error *err);
int leat__uploads_list(leat__store *s, const char *path, leat__uploads_fn each, void *cookie,
                       leat_error *err) LEAT_MUST_CHECK;
/* Aborts an upload; succeeds if it does not exist. */
int leat__uploads_abort(leat__store *s, const char *path, const char *id, leat_error *err) LEAT_MUST_CHECK;

/* Lists the parts that arrived. LEAT_ENOENT when the upload does not exist. */
typedef int (*leat__upload_part_fn)(void *cookie, uint32_t number, uint64_t size, const char *etag);
int leat__uploads_parts(leat__store *s, const char *path, const char *id, leat__upload_part_fn each,
                        void *cookie, leat_error *err) LEAT_MUST_CHECK;

/* A file beside the source file records the upload, so that a later run resumes it. */
typedef struct leat__upload_note {
    uint64_t size, part_bytes;
    char id[1024];
} leat__upload_note;
bool leat__upload_note_read(const char *path, leat__upload_note *n); /* false: none, or damaged */
int leat__upload_note_write(const char *path, const leat__upload_note *n, leat_error *err) LEAT_MUST_CHECK;
void leat__upload_note_remove(const char *path);

#endif
