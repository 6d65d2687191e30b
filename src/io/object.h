/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of a bucket: listing, and everything that changes them. Reading is io/remote.h. All
 * calls take the whole path (s3://bucket/key) and wait for their answer; an upload keeps several
 * parts on their way. s3://, gs:// and az://; a web server (http) can be neither listed nor written.
 */
#ifndef LEAT_IO_OBJECT_H
#define LEAT_IO_OBJECT_H

#include "io/file.h"
#include "io/store.h"

/* LEAT_ENOENT when there is none. */
int leat__object_stat(leat__store *s, const char *path, uint64_t *size, leat_error *err) LEAT_MUST_CHECK;

/* Calls `each` for every object whose path begins with `path`, in the order of the keys' bytes,
 * page by page: nothing is held but one page. Stops when `each` returns non-zero, and returns it. */
typedef int (*leat__object_fn)(void *cookie, const char *key, uint64_t size, leat_error *err);
int leat__object_list(leat__store *s, const char *path, leat__object_fn each, void *cookie,
                      leat_error *err) LEAT_MUST_CHECK;

/* Writes a whole object. `absent`: only when there is none of that name, LEAT_EEXIST otherwise;
 * decided by the server in the same request. */
int leat__object_put(leat__store *s, const char *path, const void *data, size_t len, bool absent,
                     leat_error *err) LEAT_MUST_CHECK;
/* Of a missing object is no error. */
int leat__object_delete(leat__store *s, const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Uploads a local file in parts of at least `part_bytes` (0 = 16 MiB, more when there would be
 * over 10,000), several at once, parts sent again when they fail. Readers see the object when all
 * of it is there. A failed upload is aborted, so that nothing of it is kept and paid for.
 * `progress` may be NULL; non-zero stops (LEAT_ECANCELED). */
typedef struct leat__upload_opts {
    uint64_t part_bytes;
    bool absent;
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
} leat__upload_opts;
int leat__object_upload(leat__store *s, const char *path, const leat__file *file,
                        const leat__upload_opts *opts, leat_error *err) LEAT_MUST_CHECK;

#endif
