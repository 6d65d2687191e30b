/* SPDX-License-Identifier: Apache-2.0
 *
 * A bucket: where its requests go, how they are signed, and how answers are interpreted. Each process has one
 * store per bucket, shared by all its files. docs/remote.md lists the environment variables.
 */
#ifndef LEAT_IO_STORE_H
#define LEAT_IO_STORE_H

#include "io/cred.h"
#include "io/http.h"
#include "io/sign.h"
#include "io/url.h"

typedef struct leat__store leat__store;

/* Opens the store of a remote path. Fetches credentials, so it may wait for a metadata
 * service. */
int leat__store_open(leat__store **s, const char *path, leat_error *err) LEAT_MUST_CHECK;
void leat__store_close(leat__store **s);
leat__scheme leat__store_scheme(const leat__store *s);
leat__http *leat__store_http(const leat__store *s);

#define LEAT__CALL_QUERY 6
#define LEAT__CALL_HEADERS 8

/* One signed request. Its strings must live until it is done. */
typedef struct leat__call {
    leat__http_req http;
    leat__store *store;
    const char *key; /* NULL: the bucket itself. http(s): the part after the host */
    leat__pair query[LEAT__CALL_QUERY];
    size_t query_count;
    leat__header headers[LEAT__CALL_HEADERS]; /* names in lower case */
    size_t header_count;
    char payload[65]; /* hash of the body; "" = none (leat__call_hash) */
    uint32_t moved;   /* number of retries with another region */
} leat__call;

void leat__call_query(leat__call *c, const char *name, const char *value);
void leat__call_header(leat__call *c, const char *name, const char *value);
/* Hashes the body if the signature needs it. Call it before submitting. */
void leat__call_hash(leat__call *c);

/* For leat__http_ops: signs the attempt; handles redirects to another region, expired
 * credentials, and decides on retries. */
int leat__call_prepare(leat__http_req *r, leat_error *err);
leat__http_verdict leat__call_judge(leat__http_req *r);

/* True when the error says that the bucket does not exist (any more). An answer to HEAD does not contain
 * this. */
bool leat__store_gone(const leat_error *err);

/* Runs the request with leat__call_prepare and leat__call_judge, and collects the body. */
int leat__call_run(leat__call *c, leat_error *err) LEAT_MUST_CHECK;

#endif
