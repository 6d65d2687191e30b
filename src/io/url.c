/* SPDX-License-Identifier: Apache-2.0
 *
 * Remote paths as text: see url.h.
 */
#include "io/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define PAIRS_MAX 16

static const struct {
    const char *prefix;
    leat__scheme scheme;
} schemes[] = {
    {"s3://", LEAT__SCHEME_S3},     {"gs://", LEAT__SCHEME_GS},       {"az://", LEAT__SCHEME_AZ},
    {"http://", LEAT__SCHEME_HTTP}, {"https://", LEAT__SCHEME_HTTPS},
};

leat__scheme leat__path_scheme(const char *path)
{
    for (size_t i = 0; i < LEAT_COUNT(schemes); i++)
        if (leat__str_starts(path, schemes[i].prefix)) return schemes[i].scheme;
    return LEAT__SCHEME_NONE;
}

int leat__path_cannot_open(const char *path, int sys_errno, leat_error *err)
{
    size_t n = 0;
    while (isalnum((unsigned char)path[n]) || (path[n] != '\0' && strchr("+.-", path[n]) != NULL)) n++;
    if (sys_errno == ENOENT && n > 0 && strncmp(path + n, "://", 3) == 0)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: unknown scheme \"%.*s\": known are s3, gs, az, http and https, in lower case",
                          path, (int)n, path);
    return leat__fail_errno(err, sys_errno, "%s: cannot open", path);
}

/* False for names that could redirect a request; they are refused, not encoded. */
static bool bucket_valid(const char *name, size_t len)
{
    if (len < 1 || len > 255 || name[0] == '.' || name[0] == '-') return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-._$", name[i]) == NULL) return false;
    return true;
}

/* Refuses a control character. A URL may have secrets in any part, a key has none. */
static int refuse_character(const char *path, bool web, leat_error *err)
{
    char shown[512];
    if (web)
        return leat__fail(err, LEAT_EINVAL,
                          "%.*s…: has control characters or blanks: write them as %%20 and the like",
                          (int)(strstr(path, "://") + 3 - path), path);
    return leat__fail(err, LEAT_EINVAL,
                      "%s: has a control character, such as a tab or a line break, in its key",
                      leat__str_shown(path, shown, sizeof shown));
}

int leat__url_parse(leat__url *u, const char *path, leat_error *err)
{
    u->scheme = leat__path_scheme(path);
    if (u->scheme == LEAT__SCHEME_NONE) return leat__fail(err, LEAT_EINVAL, "%s: not a remote path", path);
    const char *rest = strstr(path, "://") + 3;
    size_t len = strcspn(rest, "/");
    bool web = u->scheme == LEAT__SCHEME_HTTP || u->scheme == LEAT__SCHEME_HTTPS;
    u->bucket = web ? path : rest;
    u->bucket_len = web ? (size_t)(rest - path) + len : len;
    u->key = rest + len + (rest[len] == '/' && !web ? 1 : 0);
    for (const char *p = path; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f || (web && *p == ' '))
            return refuse_character(path, web, err);
    const char *user = rest + len; /* '@' after a user and password, which a bucket does not have */
    while (user > rest && user[-1] != '@') user--;
    if (web ? len == 0 : !bucket_valid(rest, len))
        return leat__fail(err, LEAT_EINVAL, "%.*s%s%.60s: not a valid %s name", (int)(rest - path), path,
                          user > rest ? "…@" : "", user, web ? "host" : "bucket");
    return 0;
}

int leat__url_named(const char *path, leat_error *err)
{
    leat__url u;
    LEAT_TRY(leat__url_parse(&u, path, err));
    if (u.scheme >= LEAT__SCHEME_HTTP || u.key[0] != '\0') return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s: the name of the pack is missing after the bucket: %.*s/NAME.leat", path,
                      (int)(u.bucket + u.bucket_len - path), path);
}

static bool plain(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_' || c == '~';
}

int leat__url_encode(leat__buf *out, const char *text, size_t len, bool keep_slash)
{
    for (size_t i = 0; i < len; i++) {
        if (plain(text[i]) || (keep_slash && text[i] == '/')) (void)leat__buf_putc(out, text[i]);
        else (void)leat__buf_printf(out, "%%%02X", (unsigned char)text[i]);
    }
    return leat__buf_status(out);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

int leat__url_fit(leat__buf *out, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        const unsigned char c = (unsigned char)*p;
        const bool encoded = c == '%' && hex_value(p[1]) >= 0 && hex_value(p[2]) >= 0;
        const bool wrong = c <= ' ' || c >= 0x7f || strchr("\"#%<>\\^`{|}", c) != NULL;
        if (wrong && !encoded) (void)leat__buf_printf(out, "%%%02X", c);
        else (void)leat__buf_putc(out, *p);
    }
    return leat__buf_status(out);
}

size_t leat__url_decode(char *text, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && i + 2 < len ? hex_value(text[i + 1]) : -1;
        int low = high >= 0 ? hex_value(text[i + 2]) : -1;
        if (low >= 0) {
            text[to++] = (char)(high << 4 | low);
            i += 2;
        } else {
            text[to++] = text[i] == '+' ? ' ' : text[i];
        }
    }
    return to;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int leat__url_query(leat__buf *out, const leat__pair *pairs, size_t count)
{
    char *text[PAIRS_MAX] = {NULL};
    int rc = count > PAIRS_MAX ? LEAT_ELIMIT : 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        leat__buf one;
        leat__buf_init(&one, LEAT__MEM_IO, 1u << 20);
        (void)leat__url_encode(&one, pairs[i].name, strlen(pairs[i].name), false);
        (void)leat__buf_putc(&one, '=');
        (void)leat__url_encode(&one, pairs[i].value, strlen(pairs[i].value), false);
        rc = leat__buf_status(&one);
        if (rc == 0) text[i] = leat__buf_take(&one, NULL);
        if (rc == 0 && text[i] == NULL) rc = LEAT_ENOMEM;
        leat__buf_reset(&one);
    }
    if (rc == 0) qsort(text, count, sizeof *text, compare_text);
    for (size_t i = 0; i < count && i < PAIRS_MAX; i++) {
        if (rc == 0 && i > 0) (void)leat__buf_putc(out, '&');
        if (rc == 0) (void)leat__buf_puts(out, text[i]);
        leat__free(text[i]);
    }
    return rc != 0 ? rc : leat__buf_status(out);
}

char *leat__path_display(const char *path)
{
    const size_t len = strlen(path), size = len + 8; /* a "…" may be longer than the secret it replaces */
    const size_t host = leat__str_web_prefix(path);
    char *text = leat__alloc(LEAT__MEM_IO, size);
    if (text == NULL) return NULL;
    memcpy(text, path, len + 1);
    if (host > 0) (void)leat__str_hide_in_url(text, size, host, len);
    return text;
}

/* Returns where the host begins behind user and password; `host`: where they would begin. */
static size_t user_end(const char *path, size_t host)
{
    size_t at = host > 0 ? host + strcspn(path + host, "/?#") : 0;
    while (at > host && path[at - 1] != '@') at--;
    return at;
}

char *leat__path_plain(const char *path)
{
    const size_t host = leat__str_web_prefix(path);
    char *text = leat__strndup(LEAT__MEM_IO, path, host > 0 ? strcspn(path, "?#") : strlen(path));
    if (text == NULL || host == 0) return text;
    const size_t at = user_end(text, host);
    memmove(text + host, text + at, strlen(text + at) + 1);
    return text;
}

uint64_t leat__path_hash(const char *path, uint64_t seed)
{
    const size_t host = leat__str_web_prefix(path), begin = user_end(path, host);
    if (host == 0) return leat__hash64(path, strlen(path), seed);
    return leat__hash64(path + begin, strcspn(path + begin, "?#"), leat__hash64(path, host, seed));
}

const char *leat__path_name(const char *path, size_t *len)
{
    size_t end = leat__str_web_prefix(path) > 0 ? strcspn(path, "?#") : strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/') at--;
    *len = end - at;
    return path + at;
}

const char *leat__path_stem(const char *path, size_t *len)
{
    const char *name = leat__path_name(path, len);
    if (*len > 5 && strncmp(name + *len - 5, ".leat", 5) == 0) *len -= 5;
    return name;
}

void leat__url_resolve(char *path)
{
    char *root = leat__path_remote(path) ? strchr(strstr(path, "://") + 3, '/') : NULL;
    if (root == NULL) return;
    char *to = ++root, *from = root;
    while (*from != '\0' && *from != '?') {
        size_t n = strcspn(from, "/?"), step = n + (from[n] == '/');
        if (n == 2 && strncmp(from, "..", 2) == 0) {
            if (to > root) to--;
            while (to > root && to[-1] != '/') to--;
        } else if (n != 1 || from[0] != '.') {
            memmove(to, from, step);
            to += step;
        }
        from += step;
    }
    memmove(to, from, strlen(from) + 1);
}

char *leat__path_beside(const char *path, const char *name)
{
    leat__scheme scheme = leat__path_scheme(path);
    bool web = scheme == LEAT__SCHEME_HTTP || scheme == LEAT__SCHEME_HTTPS;
    size_t len = web ? strcspn(path, "?#") : strlen(path), base = len;
    leat__buf b;
    while (base > 0 && path[base - 1] != '/') base--;
    leat__buf_init(&b, LEAT__MEM_IO, 1u << 20);
    (void)leat__buf_append(&b, path, base);
    if (web) (void)leat__url_encode(&b, name, strlen(name), false);
    else (void)leat__buf_puts(&b, name);
    (void)leat__buf_puts(&b, path + len);
    char *text = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return text;
}
