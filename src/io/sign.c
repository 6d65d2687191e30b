/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures of requests: see sign.h.
 */
#include "io/sign.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"

#define HEADERS_MAX 16

static int compare_headers(const void *a, const void *b)
{
    return strcmp(((const leat__header *)a)->name, ((const leat__header *)b)->name);
}

static size_t sorted(leat__header *out, const leat__header *in, size_t count)
{
    count = LEAT_MIN(count, (size_t)HEADERS_MAX);
    if (count > 0) memcpy(out, in, count * sizeof *in);
    qsort(out, count, sizeof *out, compare_headers);
    return count;
}

/* Appends a value without blanks at the ends, and with repeated blanks joined. */
static void put_trimmed(leat__buf *out, const char *value)
{
    bool blank = false, any = false;
    for (; *value != '\0'; value++) {
        if (*value == ' ' || *value == '\t') {
            blank = true;
            continue;
        }
        if (blank && any) (void)leat__buf_putc(out, ' ');
        (void)leat__buf_putc(out, *value);
        blank = false;
        any = true;
    }
}

/* ---- AWS Signature Version 4 ------------------------------------------------------------- */

static void put_names(leat__buf *out, const leat__header *h, size_t n)
{
    for (size_t i = 0; i < n; i++) (void)leat__buf_printf(out, "%s%s", i > 0 ? ";" : "", h[i].name);
}

static int hash_request(const leat__sign_v4 *s, const leat__header *h, size_t n, char hex[65])
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_IO, 1u << 20);
    (void)leat__buf_printf(&text, "%s\n%s\n%s\n", s->method, s->path, s->query);
    for (size_t i = 0; i < n; i++) {
        (void)leat__buf_printf(&text, "%s:", h[i].name);
        put_trimmed(&text, h[i].value);
        (void)leat__buf_putc(&text, '\n');
    }
    (void)leat__buf_putc(&text, '\n');
    put_names(&text, h, n);
    (void)leat__buf_printf(&text, "\n%s", s->payload_hash);
    int rc = leat__buf_status(&text);
    if (rc == 0) leat__sha256_hex(text.data, text.len, hex);
    leat__buf_reset(&text);
    return rc;
}

static void derive_key(const leat__sign_v4 *s, uint8_t key[LEAT__SHA256_BYTES])
{
    char first[256];
    size_t prefix = strlen("AWS4"), len = LEAT_MIN(strlen(s->secret), sizeof first - prefix);
    memcpy(first, "AWS4", prefix);
    memcpy(first + prefix, s->secret, len);
    leat__hmac_sha256(first, prefix + len, s->date, 8, key);
    leat__hmac_sha256(key, LEAT__SHA256_BYTES, s->region, strlen(s->region), key);
    leat__hmac_sha256(key, LEAT__SHA256_BYTES, s->service, strlen(s->service), key);
    leat__hmac_sha256(key, LEAT__SHA256_BYTES, "aws4_request", 12, key);
}

int leat__sign_v4_header(const leat__sign_v4 *s, leat__buf *out)
{
    leat__header h[HEADERS_MAX];
    size_t n = sorted(h, s->headers, s->header_count);
    char hash[65], signature[65];
    uint8_t key[LEAT__SHA256_BYTES];
    leat__buf text;
    if (s->header_count > HEADERS_MAX) return LEAT_ELIMIT;
    LEAT_TRY(hash_request(s, h, n, hash));
    leat__buf_init(&text, LEAT__MEM_IO, 1u << 20);
    (void)leat__buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", s->date, s->date,
                           s->region, s->service, hash);
    int rc = leat__buf_status(&text);
    if (rc == 0) {
        derive_key(s, key);
        leat__hmac_sha256(key, sizeof key, text.data, text.len, key);
        leat__to_hex(key, sizeof key, signature);
        (void)leat__buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request, SignedHeaders=",
                               s->key_id, s->date, s->region, s->service);
        put_names(out, h, n);
        (void)leat__buf_printf(out, ", Signature=%s", signature);
        rc = leat__buf_status(out);
    }
    leat__buf_reset(&text);
    return rc;
}

/* ---- Azure Shared Key -------------------------------------------------------------------- */

static const char *value_of(const leat__sign_azure *s, const char *name)
{
    for (size_t i = 0; i < s->header_count; i++)
        if (strcmp(s->headers[i].name, name) == 0) return s->headers[i].value;
    return "";
}

int leat__sign_azure_text(const leat__sign_azure *s, leat__buf *out)
{
    static const char *const standard[] = {"content-md5",         "content-type", "date",
                                           "if-modified-since",   "if-match",     "if-none-match",
                                           "if-unmodified-since", "range"};
    leat__header h[HEADERS_MAX];
    if (s->header_count > HEADERS_MAX || s->query_count > HEADERS_MAX) return LEAT_ELIMIT;
    (void)leat__buf_printf(out, "%s\n%s\n%s\n%s\n", s->method, value_of(s, "content-encoding"),
                           value_of(s, "content-language"),
                           strcmp(s->content_length, "0") == 0 ? "" : s->content_length);
    for (size_t i = 0; i < LEAT_COUNT(standard); i++)
        (void)leat__buf_printf(out, "%s\n", value_of(s, standard[i]));
    size_t n = sorted(h, s->headers, s->header_count);
    for (size_t i = 0; i < n; i++) {
        if (!leat__str_starts(h[i].name, "x-ms-")) continue;
        (void)leat__buf_printf(out, "%s:", h[i].name);
        put_trimmed(out, h[i].value);
        (void)leat__buf_putc(out, '\n');
    }
    (void)leat__buf_printf(out, "/%s%s", s->account, s->path);
    n = sorted(h, s->query, s->query_count);
    for (size_t i = 0; i < n; i++) (void)leat__buf_printf(out, "\n%s:%s", h[i].name, h[i].value);
    return leat__buf_status(out);
}

int leat__sign_azure_header(const leat__sign_azure *s, leat__buf *out)
{
    uint8_t key[256], mac[LEAT__SHA256_BYTES];
    char signature[64];
    size_t len;
    leat__buf text;
    if (!leat__base64_decode(s->key, key, sizeof key, &len)) return LEAT_EINVAL;
    leat__buf_init(&text, LEAT__MEM_IO, 1u << 20);
    int rc = leat__sign_azure_text(s, &text);
    if (rc == 0) {
        leat__hmac_sha256(key, len, text.data, text.len, mac);
        leat__base64_encode(mac, sizeof mac, signature);
        rc = leat__buf_printf(out, "SharedKey %s:%s", s->account, signature);
    }
    leat__buf_reset(&text);
    return rc;
}
