/* SPDX-License-Identifier: Apache-2.0
 *
 * Remote paths: s3://bucket/key, gs://bucket/key, az://container/key, http(s)://host/path. Only
 * parses and builds text; sends no request.
 */
#ifndef LEAT_IO_URL_H
#define LEAT_IO_URL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

typedef enum leat__scheme {
    LEAT__SCHEME_NONE = 0, /* a local path */
    LEAT__SCHEME_S3,
    LEAT__SCHEME_GS,
    LEAT__SCHEME_AZ,
    LEAT__SCHEME_HTTP,
    LEAT__SCHEME_HTTPS
} leat__scheme;

leat__scheme leat__path_scheme(const char *path);
static inline bool leat__path_remote(const char *path)
{
    return leat__path_scheme(path) != LEAT__SCHEME_NONE;
}

/* Sets the error for a file that cannot be opened. LEAT_EINVAL if `path` looks like a URL with an unknown
 * scheme. */
int leat__path_cannot_open(const char *path, int sys_errno, leat_error *err);

/* s3, gs, az: the bucket and the key after it, not encoded. http(s): "scheme://host:port" and the
 * rest, as given. Views into `path`. LEAT_EINVAL without a bucket or with a malformed one; an
 * empty key is allowed. */
typedef struct leat__url {
    leat__scheme scheme;
    const char *bucket;
    size_t bucket_len;
    const char *key;
} leat__url;
int leat__url_parse(leat__url *u, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EINVAL when the path of a pack in a bucket has no name after the bucket. */
int leat__url_named(const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Percent-encodes everything except A-Z a-z 0-9 - . _ ~ (and '/' when asked), as signatures
 * require. */
int leat__url_encode(leat__buf *out, const char *text, size_t len, bool keep_slash);
/* Appends a relative path of a URL: percent-encodes what a URL cannot have, and '#'. Encoded parts and a
 * query are not changed. */
int leat__url_fit(leat__buf *out, const char *text);
/* Decodes keys of a listing in place; returns the new length. Amazon writes a blank as "+", others
 * as "%20". */
size_t leat__url_decode(char *text, size_t len);

/* Appends a query in canonical form: "a=1&b=", names and values encoded, sorted. At most 16 pairs. */
typedef struct leat__pair {
    const char *name, *value;
} leat__pair;
int leat__url_query(leat__buf *out, const leat__pair *pairs, size_t count);

/* Returns the path for messages, without possible secrets: a query (signed URLs) and a password become "…". A
 * new block (leat__free); NULL when out of memory. */
char *leat__path_display(const char *path);

/* Returns the path without what may be secret in a URL: user, password and query. For keys, and to recognise
 * a source. A new block (leat__free); NULL when out of memory. */
char *leat__path_plain(const char *path);

/* Hashes the path without these parts, so that a path with a new signature or password is the same source. */
uint64_t leat__path_hash(const char *path, uint64_t seed);

/* Returns the last part of the path, not NUL-terminated, without the secret query of a signed URL. */
const char *leat__path_name(const char *path, size_t *len);
/* Does the same, and removes ".leat" at the end: "photos.check" of "a/photos.check.leat". */
const char *leat__path_stem(const char *path, size_t *len);

/* Resolves "." and ".." after the bucket or host, in place, as a file system would; never above the bucket.
 * Local paths stay unchanged. */
void leat__url_resolve(char *path);

/* Builds the path of `name` in the folder of `path`; a query is kept. A new block. */
char *leat__path_beside(const char *path, const char *name);

#endif
