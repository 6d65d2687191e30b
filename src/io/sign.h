/* SPDX-License-Identifier: Apache-2.0
 *
 * Signs requests: AWS Signature Version 4 (S3 and compatible stores, GCS with HMAC keys) and
 * Azure Shared Key. Pure functions over text. libcurl's own SigV4 is not used: older versions
 * neither sort the query nor send x-amz-content-sha256, so servers refuse the request.
 */
#ifndef LEAT_IO_SIGN_H
#define LEAT_IO_SIGN_H

#include "base/buf.h"

/* Hash of an empty payload, and the value sent instead of a hash over TLS. */
#define LEAT__EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define LEAT__UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

typedef struct leat__header {
    const char *name; /* in lower case */
    const char *value;
} leat__header;

typedef struct leat__sign_v4 {
    const char *key_id, *secret, *region, *service;
    const char *method;
    const char *path;            /* encoded, begins with '/' */
    const char *query;           /* canonical (leat__url_query), "" for none */
    const leat__header *headers; /* all are signed; at most 16, any order, host among them */
    size_t header_count;
    const char *payload_hash;
    const char *date; /* 20130524T000000Z */
} leat__sign_v4;
/* Appends the value of the Authorization header. */
int leat__sign_v4_header(const leat__sign_v4 *s, leat__buf *out);

typedef struct leat__sign_azure {
    const char *account, *key; /* key in base64 */
    const char *method;
    const char *path;          /* encoded, begins with '/' and the container */
    const leat__header *query; /* names in lower case and values, not encoded */
    size_t query_count;
    const leat__header *headers; /* every header that is sent, at most 16 */
    size_t header_count;
    const char *content_length; /* "" for none */
} leat__sign_azure;
/* Append the text that is signed, and the value of the Authorization header. LEAT_EINVAL: the key is not
 * base64. */
int leat__sign_azure_text(const leat__sign_azure *s, leat__buf *out);
int leat__sign_azure_header(const leat__sign_azure *s, leat__buf *out);

#endif
