/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of a bucket: listing, and everything that changes them. For reading see io/remote.h.
 * All calls take the whole path (s3://bucket/key) and wait for the answer; an upload keeps
 * several parts in flight. For s3://, gs:// and az://; a web server (http) can be neither listed
 * nor written.
 */
#ifndef LEAT_IO_OBJECT_H
#define LEAT_IO_OBJECT_H

#include "io/file.h"
#include "io/store.h"

typedef struct leat__object {
    const char *key; /* the part after the bucket; a folder ends with '/'. Valid during the call */
    uint64_t size;
    uint64_t tag; /* hash of the ETag: changes with the bytes. 0 = unknown */
    bool folder;
    char etag[160]; /* leat__object_stat only: as sent, for a condition; "" = none */
} leat__object;

/* Reads size, tag and ETag; the key is not set. LEAT_ENOENT: no such object. */
int leat__object_stat(leat__store *s, const char *path, leat__object *o, leat_error *err) LEAT_MUST_CHECK;

/* Calls `each` for every object whose path begins with `path`; holds one page at a time in
 * memory. With `folders`, keys that continue after a '/' are reported once, as a folder; each
 * page has its objects before its folders. Otherwise the order is that of the keys' bytes. Stops
 * when `each` returns non-zero, and returns that. */
typedef int (*leat__object_fn)(void *cookie, const leat__object *o, leat_error *err);
int leat__object_list(leat__store *s, const char *path, bool folders, leat__object_fn each, void *cookie,
                      leat_error *err) LEAT_MUST_CHECK;

/* Reads one whole object with one request; retried from the start when the connection breaks in between. */
typedef struct leat__object_get {
    const char *path;
    uint64_t max;   /* maximum bytes, else LEAT_ELIMIT */
    leat__buf body; /* the caller resets it */
    int rc;
    leat_error err;
    /* private */
    leat__call call;
    char *shown;
    struct get_batch *batch;
} leat__object_get;
/* Reads all objects in parallel and waits. Each has its own result. */
void leat__object_get_all(leat__object_get *gets, size_t count);

/* LEAT_ENOTSUP for a web server, which cannot be written. */
int leat__object_writable(const leat__store *s, const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Writes a whole object. `absent`: only if no object has that name, else LEAT_EEXIST; the server
 * decides in the same request. err->sys_errno is EIO when the server could not be reached or failed (5xx)
 * until the attempts were used up: other objects would fail, too. */
int leat__object_put(leat__store *s, const char *path, const void *data, size_t len, bool absent,
                     leat_error *err) LEAT_MUST_CHECK;

/* Removes an object; succeeds if it does not exist. */
int leat__object_remove(leat__store *s, const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Uploads a local file in parts of at least `part_bytes` (0 = 16 MiB, more when there would be over 10,000),
 * several in parallel; failed parts are retried. The object becomes visible when it is complete. A failed
 * upload is aborted, so that no parts stay stored and billed. `progress` is called several times a second and
 * before the object appears; non-zero ends the transfers (LEAT_ECANCELED). It may be NULL. */
typedef struct leat__upload_opts {
    uint64_t part_bytes;
    bool absent;
    /* Only if the object still has this ETag, else LEAT_EEXIST, or LEAT_ENOENT when it was removed. NULL or
     * "": any. Not for gs://, and some servers ignore it. */
    const char *match;
    bool *again; /* set when the last request was sent more than once: the first may have succeeded */
    /* A local file that records the upload while it runs (NULL: none). If it exists, the upload
     * is resumed: parts that arrived are not sent again. An upload that was stopped, or whose
     * network failed, is then kept for the next run instead of aborted. */
    const char *note;
    int (*progress)(void *cookie, uint64_t done, uint64_t total);
    void *cookie;
} leat__upload_opts;
int leat__object_upload(leat__store *s, const char *path, const leat__file *file,
                        const leat__upload_opts *opts, leat_error *err) LEAT_MUST_CHECK;

/* Builds a request for the object at `path`; for io/uploads.c. */
leat__call leat__object_call(leat__store *s, const char *path, const char *method);

#endif
