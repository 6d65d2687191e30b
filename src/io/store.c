/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets: see store.h.
 */
#include "io/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/http_answer.h"
#include "io/region.h"
#include "io/xml.h"

#define URL_MAX (1u << 16)
#define AZURE_VERSION "2021-08-06"

struct leat__store {
    leat__store *next;
    uint32_t users; /* guarded by process.lock */
    uint32_t generation;
    leat__scheme scheme;
    char *bucket;        /* http(s): scheme://host:port */
    char *origin;        /* scheme://host:port of requests */
    char *host;          /* host of `origin` */
    char *endpoint;      /* s3: the server's address as given, "" = Amazon's */
    char *base_path;     /* path before the key, encoded: "" or "/bucket" */
    bool secure, moving; /* moving: the host depends on the region */
    leat__http *http;
    leat__creds *creds;        /* NULL: az and http */
    char *account, *key, *sas; /* az */
    leat__mutex lock;          /* guards the region and, when moving, origin and host */
    char region[64];
    char machine[64];         /* region of this machine, "" = unknown */
    const char *machine_from; /* source of the machine's region */
    atomic_bool reached;      /* a request succeeded, so the region is correct */
};

static struct {
    leat__mutex lock;
    leat__store *list;
} process = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : NULL;
}

/* Checks settings early. An invalid one would otherwise show up only when a request is refused, or never. */
static int check_settings(leat_error *err)
{
    static const char *const authorities[] = {"LEAT_CA_FILE", "AWS_CA_BUNDLE"};
    const char *text = env("LEAT_ANONYMOUS");
    bool on;
    if (text != NULL && !leat__str_to_bool(text, &on))
        return leat__fail(err, LEAT_EINVAL, "LEAT_ANONYMOUS: '%.40s' is not yes or no", text);
    for (size_t i = 0; i < LEAT_COUNT(authorities); i++) {
        const char *file = env(authorities[i]);
        if (file != NULL && access(file, R_OK) != 0)
            return leat__fail_errno(err, errno, "%s: %s: cannot read", authorities[i], file);
        if (file != NULL) break; /* LEAT_CA_FILE is used instead of AWS_CA_BUNDLE */
    }
    return 0;
}

static bool anonymous(void)
{
    const char *text = env("LEAT_ANONYMOUS");
    bool on;
    return text != NULL && leat__str_to_bool(text, &on) && on;
}

/* ---- where requests go ------------------------------------------------------------------- */

/* Refuses settings that would break a header or a URL. */
static int check_text(const char *value, const char *name, leat_error *err)
{
    if (value == NULL || !leat__str_has_control(value)) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s: has a line break or another control character", name);
}

/* Splits "https://host:port/path" into origin, host and base path. */
static int set_endpoint(leat__store *s, const char *url, const char *variable, leat_error *err)
{
    if (!leat__str_starts(url, "http://") && !leat__str_starts(url, "https://"))
        return leat__fail(err, LEAT_EINVAL, "%s%s%.80s: must begin with http:// or https://", variable,
                          strchr(url, '@') ? "" : "=", strchr(url, '@') ? "" : url); /* no password */
    LEAT_TRY(check_text(url, variable, err));
    const char *host = strstr(url, "://") + 3;
    size_t len = strcspn(host, "/");
    if (len == 0) return leat__fail(err, LEAT_EINVAL, "%s: has no host", variable);
    const char *path = host + len;
    size_t path_len = strlen(path);
    while (path_len > 0 && path[path_len - 1] == '/') path_len--;
    leat__free(s->origin);
    leat__free(s->host);
    leat__free(s->base_path);
    s->secure = leat__str_starts(url, "https://");
    s->origin = leat__strndup(LEAT__MEM_IO, url, (size_t)(host - url) + len);
    /* the default port is not sent, so it is not signed */
    size_t port = s->secure ? 4 : 3;
    bool standard = len > port && memcmp(host + len - port, s->secure ? ":443" : ":80", port) == 0;
    s->host = leat__strndup(LEAT__MEM_IO, host, standard ? len - port : len);
    s->base_path = leat__strndup(LEAT__MEM_IO, path, path_len);
    if (s->origin == NULL || s->host == NULL || s->base_path == NULL)
        return leat__fail_nomem(err, strlen(url), "an address");
    return 0;
}

/* Puts the bucket in the path. */
static int add_bucket(leat__store *s, leat_error *err)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_IO, URL_MAX);
    (void)leat__buf_printf(&b, "%s/", s->base_path);
    (void)leat__url_encode(&b, s->bucket, strlen(s->bucket), false);
    char *path = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    if (path == NULL) return leat__fail_nomem(err, URL_MAX, "an address");
    leat__free(s->base_path);
    s->base_path = path;
    return 0;
}

/* Sets Amazon's host for the region. The bucket goes into the host name or, when it has dots (no certificate
 * covers those), into the path. */
static int set_amazon(leat__store *s, leat_error *err)
{
    char url[512];
    bool dots = strchr(s->bucket, '.') != NULL;
    snprintf(url, sizeof url, "https://%s%ss3.%s.amazonaws.com%s", dots ? "" : s->bucket, dots ? "" : ".",
             s->region, leat__str_starts(s->region, "cn-") ? ".cn" : "");
    LEAT_TRY(set_endpoint(s, url, "the address", err));
    s->moving = true;
    return dots ? add_bucket(s, err) : 0;
}

static const char *region_of_environment(void)
{
    return env("AWS_REGION") != NULL ? env("AWS_REGION") : env("AWS_DEFAULT_REGION");
}

/* Sets the region in which to look for the bucket first; false when only the default is known. */
static bool find_region(leat__store *s)
{
    const char *given = region_of_environment();
    if (leat__region_learned(s->endpoint, s->bucket, s->region)) return true;
    char *profile = given == NULL ? leat__profile_value("region") : NULL;
    const char *region = given != NULL ? given : profile;
    bool known = region != NULL;
    snprintf(s->region, sizeof s->region, "%s", known ? region : "us-east-1");
    leat__free(profile);
    return known;
}

/* Finds the region of this machine: from the instance metadata if the credentials came from there, else from
 * the environment. A bucket without a known region is looked for there first. */
static int find_machine(leat__store *s, bool known, leat_error *err)
{
    const char *instance = leat__creds_region(s->creds), *given = region_of_environment();
    s->machine_from = instance[0] != '\0' ? "its metadata service" : "AWS_REGION";
    if (instance[0] != '\0') given = instance;
    snprintf(s->machine, sizeof s->machine, "%s", given != NULL ? given : "");
    if (known || instance[0] == '\0') return 0;
    snprintf(s->region, sizeof s->region, "%s", instance);
    return s->moving ? set_amazon(s, err) : 0;
}

static int set_up_s3(leat__store *s, leat_error *err)
{
    const char *given = env("AWS_ENDPOINT_URL_S3");
    if (given == NULL) given = env("AWS_ENDPOINT_URL");
    char *profile = given == NULL ? leat__profile_value("endpoint_url") : NULL;
    const char *endpoint = given != NULL ? given : profile != NULL ? profile : "";
    s->endpoint = leat__strdup(LEAT__MEM_IO, endpoint);
    int rc = s->endpoint == NULL ? leat__fail_nomem(err, strlen(endpoint), "an address") : 0;
    bool known = rc == 0 && find_region(s);
    if (rc == 0) rc = check_text(s->region, "AWS_REGION", err);
    if (rc == 0 && endpoint[0] != '\0') {
        rc = set_endpoint(s, endpoint, "AWS_ENDPOINT_URL", err);
        if (rc == 0) rc = add_bucket(s, err);
    } else if (rc == 0) {
        rc = set_amazon(s, err);
    }
    leat__free(profile);
    if (rc == 0) rc = leat__creds_open(&s->creds, s->scheme, anonymous(), s->http, err);
    return rc == 0 ? find_machine(s, known, err) : rc;
}

static int set_up_gs(leat__store *s, leat_error *err)
{
    const char *given = env("GS_ENDPOINT_URL");
    snprintf(s->region, sizeof s->region, "auto");
    if (given == NULL) given = "https://storage.googleapis.com";
    LEAT_TRY(set_endpoint(s, given, "GS_ENDPOINT_URL", err));
    LEAT_TRY(add_bucket(s, err));
    return leat__creds_open(&s->creds, s->scheme, anonymous(), s->http, err);
}

static int set_up_azure(leat__store *s, leat_error *err)
{
    char url[512];
    const char *account = env("AZURE_STORAGE_ACCOUNT"), *endpoint = env("AZURE_STORAGE_ENDPOINT");
    const char *key = env("AZURE_STORAGE_KEY"), *sas = env("AZURE_STORAGE_SAS_TOKEN");
    if (account == NULL && endpoint == NULL)
        return leat__fail(err, LEAT_EPERM, "az:// needs AZURE_STORAGE_ACCOUNT");
    if (key == NULL && sas == NULL && !anonymous())
        return leat__fail(err, LEAT_EPERM,
                          "no credentials for az:// (set AZURE_STORAGE_KEY or "
                          "AZURE_STORAGE_SAS_TOKEN; for a public container --anonymous or LEAT_ANONYMOUS=1)");
    if (account == NULL && sas == NULL && !anonymous())
        return leat__fail(
            err, LEAT_EPERM,
            "no credentials for az://: AZURE_STORAGE_KEY is set, but AZURE_STORAGE_ACCOUNT is not");
    if (account != NULL && strspn(account, "abcdefghijklmnopqrstuvwxyz0123456789") != strlen(account))
        return leat__fail(err, LEAT_EINVAL, "AZURE_STORAGE_ACCOUNT: not a valid account name");
    LEAT_TRY(check_text(key, "AZURE_STORAGE_KEY", err));
    LEAT_TRY(check_text(sas, "AZURE_STORAGE_SAS_TOKEN", err));
    snprintf(url, sizeof url, "https://%s.blob.core.windows.net", account != NULL ? account : "");
    LEAT_TRY(set_endpoint(s, endpoint != NULL ? endpoint : url, "AZURE_STORAGE_ENDPOINT", err));
    if (sas != NULL && *sas == '?') sas++;
    s->account = leat__strdup(LEAT__MEM_IO, account != NULL ? account : "");
    if (key != NULL && !anonymous() && sas == NULL) s->key = leat__strdup(LEAT__MEM_IO, key);
    if (sas != NULL && !anonymous()) s->sas = leat__strdup(LEAT__MEM_IO, sas);
    return add_bucket(s, err);
}

static int set_up(leat__store *s, leat_error *err)
{
    LEAT_TRY(check_settings(err));
    LEAT_TRY(leat__http_ref(&s->http, err));
    switch (s->scheme) {
    case LEAT__SCHEME_S3: return set_up_s3(s, err);
    case LEAT__SCHEME_GS: return set_up_gs(s, err);
    case LEAT__SCHEME_AZ: return set_up_azure(s, err);
    default: return set_endpoint(s, s->bucket, "the URL", err);
    }
}

static void forget_text(char *text)
{
    if (text != NULL) memset(text, 0, strlen(text));
    leat__free(text);
}

static void close_store(leat__store *s)
{
    leat__creds_close(&s->creds);
    leat__http_unref(&s->http);
    forget_text(s->key);
    forget_text(s->sas);
    leat__free(s->account);
    leat__free(s->bucket);
    leat__free(s->origin);
    leat__free(s->host);
    leat__free(s->base_path);
    leat__free(s->endpoint);
    leat__mutex_destroy(&s->lock);
    leat__free(s);
}

static int make_store(leat__store **out, const leat__url *u, leat_error *err)
{
    leat__store *s = LEAT_NEW(IO, leat__store);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a bucket");
    leat__mutex_init(&s->lock);
    s->scheme = u->scheme;
    s->generation = leat__fork_generation();
    s->bucket = leat__strndup(LEAT__MEM_IO, u->bucket, u->bucket_len);
    int rc = s->bucket == NULL ? leat__fail_nomem(err, u->bucket_len, "a bucket") : set_up(s, err);
    if (rc == 0) *out = s;
    else close_store(s);
    return rc;
}

int leat__store_open(leat__store **out, const char *path, leat_error *err)
{
    leat__url u;
    int rc = 0;
    *out = NULL;
    LEAT_TRY(leat__url_parse(&u, path, err));
    leat__fork_renew(&process.lock);
    /* Holds the lock while credentials are fetched, because other threads would only fetch the same ones. */
    leat__mutex_lock(&process.lock);
    leat__store *s = process.list;
    while (s != NULL && (s->scheme != u.scheme || s->generation != leat__fork_generation() ||
                         strlen(s->bucket) != u.bucket_len || memcmp(s->bucket, u.bucket, u.bucket_len) != 0))
        s = s->next;
    if (s == NULL) {
        rc = make_store(&s, &u, err);
        if (rc == 0) {
            s->next = process.list;
            process.list = s;
        }
    }
    if (rc == 0) s->users++;
    leat__mutex_unlock(&process.lock);
    *out = rc == 0 ? s : NULL;
    return rc;
}

void leat__store_close(leat__store **store)
{
    leat__store *s = *store;
    *store = NULL;
    if (s == NULL || s->generation != leat__fork_generation()) return;
    leat__mutex_lock(&process.lock);
    bool last = --s->users == 0;
    if (last) {
        leat__store **at = &process.list;
        while (*at != s) at = &(*at)->next;
        *at = s->next;
    }
    leat__mutex_unlock(&process.lock);
    if (last) close_store(s);
}

leat__scheme leat__store_scheme(const leat__store *s)
{
    return s->scheme;
}

leat__http *leat__store_http(const leat__store *s)
{
    return s->http;
}

/* ---- requests ---------------------------------------------------------------------------- */

void leat__call_query(leat__call *c, const char *name, const char *value)
{
    if (c->query_count < LEAT__CALL_QUERY) c->query[c->query_count++] = (leat__pair){name, value};
}

void leat__call_header(leat__call *c, const char *name, const char *value)
{
    if (c->header_count < LEAT__CALL_HEADERS) c->headers[c->header_count++] = (leat__header){name, value};
}

void leat__call_hash(leat__call *c)
{
    if (c->http.send == NULL || c->store->secure) return;
    leat__sha256_hex(c->http.send, c->http.send_len, c->payload);
}

static int send_headers(leat__http_req *r, const leat__header *h, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(h[i].name, "host") != 0) LEAT_TRY(leat__http_header(r, h[i].name, h[i].value));
    return 0;
}

static void utc(const char *format, char *out, size_t size)
{
    struct tm tm;
    time_t now = (time_t)(leat__clock_wall_ns() / LEAT_NS_PER_S);
    gmtime_r(&now, &tm);
    strftime(out, size, format, &tm);
}

static bool has_header(const leat__header *h, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(h[i].name, name) == 0) return true;
    return false;
}

static int sign_aws(leat__call *c, const char *host, const char *region, const char *path, const char *query)
{
    leat__http_req *r = &c->http;
    leat__header h[LEAT__CALL_HEADERS + 4];
    size_t n = c->header_count;
    char date[32];
    leat__cred cred = {0};
    leat__buf value;
    LEAT_TRY(leat__creds_get(c->store->creds, &cred, &r->err));
    memcpy(h, c->headers, n * sizeof *h);
    if (cred.anonymous) return send_headers(r, h, n);
    /* Google documents this as the only condition for writes, none for parts, and refuses it together with
     * x-amz headers */
    if (cred.bearer && strcmp(r->method, "PUT") == 0 && has_header(h, n, "if-none-match"))
        h[n++] = (leat__header){"x-goog-if-generation-match", "0"};
    leat__buf_init(&value, LEAT__MEM_IO, URL_MAX);
    int rc;
    if (cred.bearer) {
        (void)leat__buf_printf(&value, "Bearer %s", cred.token);
        rc = leat__buf_status(&value);
    } else {
        const char *empty = LEAT__EMPTY_SHA256;
        const char *hash = c->payload[0] != '\0' ? c->payload : LEAT__UNSIGNED_PAYLOAD;
        if (r->send == NULL) hash = empty;
        utc("%Y%m%dT%H%M%SZ", date, sizeof date);
        h[n++] = (leat__header){"host", host};
        h[n++] = (leat__header){"x-amz-content-sha256", hash};
        h[n++] = (leat__header){"x-amz-date", date};
        if (cred.token != NULL) h[n++] = (leat__header){"x-amz-security-token", cred.token};
        leat__sign_v4 s = {.key_id = cred.key_id,
                           .secret = cred.secret,
                           .region = region,
                           .service = "s3",
                           .method = r->method,
                           .path = path,
                           .query = query,
                           .headers = h,
                           .header_count = n,
                           .payload_hash = hash,
                           .date = date};
        rc = leat__sign_v4_header(&s, &value);
    }
    if (rc == 0) rc = send_headers(r, h, n);
    if (rc == 0) rc = leat__http_header(r, "Authorization", leat__buf_str(&value));
    leat__cred_reset(&cred);
    leat__buf_reset(&value);
    return rc;
}

static int sign_az(leat__call *c, const char *path)
{
    leat__http_req *r = &c->http;
    leat__header h[LEAT__CALL_HEADERS + 4], q[LEAT__CALL_QUERY];
    size_t n = c->header_count;
    char date[64], length[32] = "";
    leat__buf value;
    memcpy(h, c->headers, n * sizeof *h);
    utc("%a, %d %b %Y %H:%M:%S GMT", date, sizeof date);
    h[n++] = (leat__header){"x-ms-version", AZURE_VERSION};
    h[n++] = (leat__header){"x-ms-date", date};
    LEAT_TRY(send_headers(r, h, n));
    if (c->store->key == NULL) return 0;
    for (size_t i = 0; i < c->query_count; i++) q[i] = (leat__header){c->query[i].name, c->query[i].value};
    if (r->send != NULL) snprintf(length, sizeof length, "%zu", r->send_len);
    leat__buf_init(&value, LEAT__MEM_IO, URL_MAX);
    leat__sign_azure s = {.account = c->store->account,
                          .key = c->store->key,
                          .method = r->method,
                          .path = path,
                          .query = q,
                          .query_count = c->query_count,
                          .headers = h,
                          .header_count = n,
                          .content_length = length};
    int rc = leat__sign_azure_header(&s, &value);
    if (rc == LEAT_EINVAL) rc = leat__fail(&r->err, LEAT_EPERM, "AZURE_STORAGE_KEY is not base64");
    if (rc == 0) rc = leat__http_header(r, "Authorization", leat__buf_str(&value));
    leat__buf_reset(&value);
    return rc;
}

static int build(leat__call *c, const char *origin, const char *host, const char *region, leat__buf *path,
                 leat__buf *query)
{
    leat__store *s = c->store;
    leat__http_req *r = &c->http;
    bool web = s->scheme == LEAT__SCHEME_HTTP || s->scheme == LEAT__SCHEME_HTTPS;
    if (web) { /* the path comes from the user, already encoded */
        (void)leat__buf_printf(&r->url, "%s%s", origin, c->key);
        LEAT_TRY(leat__buf_status(&r->url));
        return send_headers(r, c->headers, c->header_count);
    }
    (void)leat__buf_puts(path, s->base_path);
    (void)leat__buf_putc(path, '/');
    if (c->key != NULL) (void)leat__url_encode(path, c->key, strlen(c->key), true);
    else if (path->len > 1) path->len--; /* "/bucket" */
    LEAT_TRY(leat__url_query(query, c->query, c->query_count));
    (void)leat__buf_printf(&r->url, "%s%s", origin, leat__buf_str(path));
    if (query->len > 0) (void)leat__buf_printf(&r->url, "?%s", leat__buf_str(query));
    if (s->sas != NULL) (void)leat__buf_printf(&r->url, "%s%s", query->len > 0 ? "&" : "?", s->sas);
    LEAT_TRY(leat__buf_status(&r->url));
    LEAT_TRY(leat__buf_status(path));
    if (s->scheme == LEAT__SCHEME_AZ) return sign_az(c, leat__buf_str(path));
    return sign_aws(c, host, region, leat__buf_str(path), leat__buf_str(query));
}

int leat__call_prepare(leat__http_req *r, leat_error *err)
{
    leat__call *c = (leat__call *)r;
    leat__store *s = c->store;
    leat__buf path, query;
    char origin[512], host[512], region[64];
    leat__mutex_lock(&s->lock);
    snprintf(origin, sizeof origin, "%s", s->origin);
    snprintf(host, sizeof host, "%s", s->host);
    snprintf(region, sizeof region, "%s", s->region);
    leat__mutex_unlock(&s->lock);
    leat__buf_init(&path, LEAT__MEM_IO, URL_MAX);
    leat__buf_init(&query, LEAT__MEM_IO, URL_MAX);
    int rc = build(c, origin, host, region, &path, &query);
    leat__buf_reset(&path);
    leat__buf_reset(&query);
    if (rc != 0 && rc != LEAT_EAGAIN && r->err.code == 0)
        leat__fail(err, rc, "%s: the request cannot be made: %s", r->what, leat_code_text(rc));
    return rc;
}

/* Finds the region that an error names, in a header or in the body of AuthorizationHeaderMalformed. */
static bool named_region(leat__call *c, char *out, size_t size)
{
    leat__buf text;
    leat__xml xml = {c->http.body.data, c->http.body.len};
    snprintf(out, size, "%s", c->http.region);
    leat__buf_init(&text, LEAT__MEM_IO, URL_MAX);
    if (out[0] == '\0' && xml.len > 0 && leat__xml_text(xml, "Region", &text))
        snprintf(out, size, "%s", leat__buf_str(&text));
    leat__buf_reset(&text);
    return out[0] != '\0' && strspn(out, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(out);
}

/* Switches to another region when the answer says the bucket is there; once per request. */
static bool move(leat__call *c)
{
    leat__store *s = c->store;
    char region[sizeof s->region];
    if (c->moved > 0 || s->scheme != LEAT__SCHEME_S3 || !named_region(c, region, sizeof region)) return false;
    c->moved++;
    leat__mutex_lock(&s->lock);
    bool other = strcmp(s->region, region) != 0;
    if (other) snprintf(s->region, sizeof s->region, "%s", region);
    bool moved = !other || !s->moving || set_amazon(s, NULL) == 0;
    leat__mutex_unlock(&s->lock);
    leat__region_learn(s->endpoint, s->bucket, region);
    return moved;
}

/* Has the credentials fetched again when the answer says that they have expired. The loop limits only
 * consecutive attempts, so a long transfer may use any number of session tokens. An answer to HEAD has no
 * body: Amazon's 400 is then tried once. */
static bool expired(leat__call *c)
{
    leat__http_req *r = &c->http;
    leat__buf code;
    leat__xml xml = {r->body.data, r->body.len};
    if (c->store->creds == NULL) return false;
    leat__buf_init(&code, LEAT__MEM_IO, URL_MAX);
    bool is = leat__xml_text(xml, "Code", &code);
    if (!is && strcmp(r->method, "HEAD") == 0 && r->status == 400 && r->barren == 0)
        return leat__creds_expire(c->store->creds);
    is = is && (strcmp(leat__buf_str(&code), "ExpiredToken") == 0 ||
                strcmp(leat__buf_str(&code), "TokenRefreshRequired") == 0);
    leat__buf_reset(&code);
    return is && leat__creds_expire(c->store->creds);
}

/* Compares the regions of bucket and machine, after the first success: a signature for a wrong region is
 * refused, so s->region is the bucket's. */
static void compare_regions(leat__store *s)
{
    char region[sizeof s->region];
    if (s->scheme != LEAT__SCHEME_S3) return;
    leat__mutex_lock(&s->lock);
    snprintf(region, sizeof region, "%s", s->region);
    leat__mutex_unlock(&s->lock);
    leat__region_note(s->bucket, region, s->machine, s->machine_from);
}

/* True when a concurrent write to the same object interfered: the request must be sent again. */
static bool conflicts(const leat__http_req *r)
{
    return r->status == 409 && (strstr(r->err.message, "ConditionalRequestConflict") != NULL ||
                                strstr(r->err.message, "OperationAborted") != NULL);
}

bool leat__store_gone(const leat_error *err)
{
    static const char *const answers[] = {"answered 404 NoSuchBucket", "answered 404 ContainerNotFound",
                                          "answered 409 ContainerBeingDeleted"};
    for (size_t i = 0; i < LEAT_COUNT(answers); i++)
        if (strstr(err->message, answers[i]) != NULL) return true;
    return false;
}

static bool has_query(const leat__call *c, const char *name)
{
    for (size_t i = 0; i < c->query_count; i++)
        if (strcmp(c->query[i].name, name) == 0) return true;
    return false;
}

/* For a server that answers 501: returns the missing feature, and what to do. */
static const char *lacking(const leat__call *c)
{
    const bool reads = leat__http_reads(&c->http);
    if (has_header(c->headers, c->header_count, "if-none-match"))
        return "it cannot write an object only if none exists (If-None-Match): `force` writes without that "
               "condition";
    if (!reads && has_header(c->headers, c->header_count, "if-match"))
        return "it cannot write an object only if it has not changed (If-Match)";
    if (!reads && (has_query(c, "uploads") || has_query(c, "partNumber") || has_query(c, "uploadId")))
        return "it has no multipart uploads: files of at most 16 MiB need none (`shard_bytes` 16M)";
    if (has_query(c, "uploads") || has_query(c, "uploadId")) return "it cannot list unfinished uploads";
    if (has_query(c, "list-type")) return "it has no ListObjectsV2: name the objects in a manifest";
    if (has_header(c->headers, c->header_count, "range"))
        return "it cannot read ranges: copy the file to a local disk or another server";
    if (strcmp(c->http.method, "DELETE") == 0) return "it cannot remove objects";
    return "it lacks this operation: use another server";
}

/* Adds the missing feature to the message of a 501 answer. */
static void explain_lack(leat__call *c)
{
    char *message = c->http.err.message;
    const size_t len = strlen(message);
    snprintf(message + len, sizeof c->http.err.message - len, " (%s)", lacking(c));
}

leat__http_verdict leat__call_judge(leat__http_req *r)
{
    leat__call *c = (leat__call *)r;
    if (r->status / 100 == 2) {
        if (!atomic_exchange(&c->store->reached, true)) compare_regions(c->store);
        return LEAT__HTTP_DONE;
    }
    leat__http_explain(r);
    if (r->status == 501) explain_lack(c);
    /* others are writing, but the object may not exist yet */
    if (conflicts(r)) r->rc = r->err.code = LEAT_EIO;
    if ((r->status == 301 || r->status == 307 || r->status == 400 || r->status == 403) && move(c))
        return LEAT__HTTP_AGAIN;
    if ((r->status == 400 || r->status == 403) && expired(c)) return LEAT__HTTP_AGAIN;
    return leat__http_transient(r) || conflicts(r) ? LEAT__HTTP_AGAIN : LEAT__HTTP_DONE;
}

int leat__call_run(leat__call *c, leat_error *err)
{
    static const leat__http_ops ops = {.prepare = leat__call_prepare, .judge = leat__call_judge};
    if (c->http.ops == NULL) c->http.ops = &ops;
    c->http.follow = c->store->scheme == LEAT__SCHEME_HTTP || c->store->scheme == LEAT__SCHEME_HTTPS;
    return leat__http_run(c->store->http, &c->http, err);
}
