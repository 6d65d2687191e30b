/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists, writes and removes objects: see object.h. Azure uses different requests for the same steps: blocks
 * instead of parts, and a final block list.
 */
#include "io/object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/http_answer.h"
#include "io/uploads.h"
#include "io/xml.h"

#define LIST_MAX (8u << 20) /* bytes per page of a list */
#define PART_BYTES (UINT64_C(16) << 20)
#define IN_FLIGHT 4u
#define END_BYTES (64u << 10)         /* bytes compared at the end of an upload in parts */
#define ASK_NS (250 * LEAT_NS_PER_MS) /* time between calls of `progress` while parts are in flight */

static bool azure(const leat__store *s)
{
    return leat__store_scheme(s) == LEAT__SCHEME_AZ;
}

static int refuse_web(const leat__store *s, const char *what, leat_error *err)
{
    if (leat__store_scheme(s) < LEAT__SCHEME_HTTP) return 0;
    return leat__fail(err, LEAT_ENOTSUP, "a web server cannot be %s; use s3://, gs:// or az://", what);
}

leat__call leat__object_call(leat__store *s, const char *path, const char *method)
{
    leat__url u = {0};
    (void)!leat__url_parse(&u, path, NULL); /* already parsed when the store was opened */
    leat__call c = {.store = s, .key = u.key};
    c.http = (leat__http_req){.what = path, .method = method, .urgent = true};
    return c;
}

/* Hashes an ETag without its quotes, because lists and other answers quote it differently. */
static uint64_t tag_of(const char *etag)
{
    size_t len = strlen(etag);
    if (len >= 2 && etag[0] == '"' && etag[len - 1] == '"') etag++, len -= 2;
    return len > 0 ? leat__hash64(etag, len, 1) : 0;
}

int leat__object_stat(leat__store *s, const char *path, leat__object *o, leat_error *err)
{
    leat__call c = leat__object_call(s, path, "HEAD");
    int rc = leat__call_run(&c, err);
    *o = (leat__object){0};
    if (rc == 0) {
        o->size = c.http.length;
        o->tag = tag_of(c.http.etag[0] != '\0' ? c.http.etag : c.http.modified);
        snprintf(o->etag, sizeof o->etag, "%s", c.http.etag);
    }
    leat__http_req_reset(&c.http);
    return rc;
}

/* ---- list -------------------------------------------------------------------------------- */

typedef struct lister {
    leat__object_fn each;
    void *cookie;
    const char *prefix; /* prefix that all keys must have */
    bool blobs, coded;  /* blobs: Azure's element names; coded: keys are percent-encoded */
    leat__buf key, value, marker, next;
} lister;

static int malformed(leat_error *err)
{
    return leat__fail(err, LEAT_EDATA, "the list of the bucket is malformed");
}

static int read_key(lister *l, leat__xml one, const char *tag, leat_error *err)
{
    if (!leat__xml_text(one, tag, &l->key)) return malformed(err);
    if (l->coded && l->key.len > 0) {
        l->key.len = leat__url_decode(l->key.data, l->key.len);
        l->key.data[l->key.len] = '\0';
    }
    if (leat__str_starts(leat__buf_str(&l->key), l->prefix)) return 0;
    return leat__fail(err, LEAT_EDATA, "the server listed \"%.200s\", which does not begin with \"%.200s\"",
                      leat__buf_str(&l->key), l->prefix);
}

static int hand_out(lister *l, leat__xml page, leat_error *err)
{
    leat__xml one, rest = page;
    l->coded = leat__xml_text(page, "EncodingType", &l->key) && strcmp(leat__buf_str(&l->key), "url") == 0;
    while (leat__xml_next(rest, l->blobs ? "Blob" : "Contents", &one, &rest)) {
        leat__object o = {0};
        LEAT_TRY(read_key(l, one, l->blobs ? "Name" : "Key", err));
        if (!leat__xml_text(one, l->blobs ? "Content-Length" : "Size", &l->value) ||
            !leat__str_to_u64(leat__buf_str(&l->value), &o.size))
            return malformed(err);
        if (leat__xml_text(one, l->blobs ? "Etag" : "ETag", &l->value))
            o.tag = tag_of(leat__buf_str(&l->value));
        o.key = leat__buf_str(&l->key);
        LEAT_TRY(l->each(l->cookie, &o, err));
    }
    rest = page;
    while (leat__xml_next(rest, l->blobs ? "BlobPrefix" : "CommonPrefixes", &one, &rest)) {
        LEAT_TRY(read_key(l, one, l->blobs ? "Name" : "Prefix", err));
        leat__object o = {.key = leat__buf_str(&l->key), .folder = true};
        LEAT_TRY(l->each(l->cookie, &o, err));
    }
    return 0;
}

/* Retries a truncated list, which would look like a shorter one. */
static leat__http_verdict judge_list(leat__http_req *r)
{
    static const char *const ends[] = {"</ListBucketResult>", "</EnumerationResults>"};
    if (r->status / 100 != 2) return leat__call_judge(r);
    for (size_t i = 0; i < LEAT_COUNT(ends); i++)
        if (r->body.len > 0 && strstr(leat__buf_str(&r->body), ends[i]) != NULL) return leat__call_judge(r);
    r->rc = leat__fail(&r->err, LEAT_EIO, "%s: the list of the bucket is truncated", r->what);
    return LEAT__HTTP_AGAIN;
}

/* Finds the start of the next page and keeps it in l->marker. A list that would be incomplete, or would not
 * end, is an error. */
static int find_next(lister *l, leat__xml page, bool *more, leat_error *err)
{
    bool again = *more;
    bool cut =
        leat__xml_text(page, "IsTruncated", &l->value) && strcmp(leat__buf_str(&l->value), "true") == 0;
    *more =
        leat__xml_text(page, l->blobs ? "NextMarker" : "NextContinuationToken", &l->next) && l->next.len > 0;
    if (cut && !*more)
        return leat__fail(err, LEAT_EDATA,
                          "the list of the bucket is incomplete: the server does not name the next page");
    if (*more && again && strcmp(leat__buf_str(&l->next), leat__buf_str(&l->marker)) == 0)
        return leat__fail(err, LEAT_EDATA,
                          "the list of the bucket does not end: the server names the same page again");
    leat__buf was = l->marker;
    l->marker = l->next;
    l->next = was;
    return 0;
}

/* Reads one page of a list, from l->marker if *more; sets *more when there is another. */
static int list_page(leat__store *s, lister *l, const char *path, bool folders, bool *more, leat_error *err)
{
    leat__call c = leat__object_call(s, path, "GET");
    static const leat__http_ops ops = {.prepare = leat__call_prepare, .judge = judge_list};
    l->prefix = c.key;
    c.key = NULL;
    c.http.body_max = LIST_MAX;
    c.http.ops = &ops;
    leat__call_query(&c, "prefix", l->prefix);
    if (folders) leat__call_query(&c, "delimiter", "/");
    if (l->blobs) {
        leat__call_query(&c, "restype", "container");
        leat__call_query(&c, "comp", "list");
        if (*more) leat__call_query(&c, "marker", leat__buf_str(&l->marker));
    } else {
        leat__call_query(&c, "list-type", "2");
        leat__call_query(&c, "encoding-type", "url");
        if (*more) leat__call_query(&c, "continuation-token", leat__buf_str(&l->marker));
    }
    int rc = leat__call_run(&c, err);
    leat__xml page = {c.http.body.data, c.http.body.len};
    if (rc == 0) rc = hand_out(l, page, err);
    if (rc == 0) rc = find_next(l, page, more, err);
    leat__http_req_reset(&c.http);
    return rc;
}

int leat__object_list(leat__store *s, const char *path, bool folders, leat__object_fn each, void *cookie,
                      leat_error *err)
{
    lister l = {.each = each, .cookie = cookie, .blobs = azure(s)};
    leat__buf *bufs[] = {&l.key, &l.value, &l.marker, &l.next};
    bool more = false;
    int rc;
    LEAT_TRY(refuse_web(s, "listed", err));
    for (size_t i = 0; i < LEAT_COUNT(bufs); i++) leat__buf_init(bufs[i], LEAT__MEM_IO, LIST_MAX);
    do {
        rc = list_page(s, &l, path, folders, &more, err);
    } while (rc == 0 && more);
    for (size_t i = 0; i < LEAT_COUNT(bufs); i++) leat__buf_reset(bufs[i]);
    return rc;
}

/* ---- get --------------------------------------------------------------------------------- */

typedef struct get_batch {
    leat__mutex lock; /* guards left */
    leat__cond ended;
    size_t left;
} get_batch;

static void got(leat__http_req *r)
{
    leat__object_get *g = r->cookie;
    get_batch *b = g->batch;
    g->rc = r->rc;
    if (r->rc != 0) g->err = r->err;
    leat__buf_reset(&g->body);
    g->body = r->body; /* moved */
    r->body = (leat__buf){0};
    leat__http_req_reset(r);
    leat__mutex_lock(&b->lock);
    if (--b->left == 0) leat__cond_signal(&b->ended);
    leat__mutex_unlock(&b->lock);
}

static const leat__http_ops get_ops = {.prepare = leat__call_prepare, .judge = leat__call_judge, .done = got};

void leat__object_get_all(leat__object_get *gets, size_t count)
{
    get_batch b = {.left = count};
    leat__http *http = NULL;
    leat__mutex_init(&b.lock);
    leat__cond_init(&b.ended);
    for (size_t i = 0; i < count; i++) {
        leat__object_get *g = &gets[i];
        leat__store *store = NULL;
        g->shown = leat__path_display(g->path);
        g->rc =
            g->shown ? leat__store_open(&store, g->path, &g->err) : leat__fail_nomem(&g->err, 0, "a path");
        if (g->rc != 0) {
            leat__mutex_lock(&b.lock);
            b.left--;
            leat__mutex_unlock(&b.lock);
            continue;
        }
        g->batch = &b;
        g->call = leat__object_call(store, g->path, "GET");
        g->call.http.ops = &get_ops;
        g->call.http.what = g->shown;
        g->call.http.cookie = g;
        g->call.http.owner = &b;
        g->call.http.urgent = false;
        g->call.http.body_max = (size_t)LEAT_MIN(g->max, SIZE_MAX / 2);
        g->call.http.follow = leat__store_scheme(store) >= LEAT__SCHEME_HTTP;
        http = leat__store_http(store); /* one loop for all requests */
        leat__http_submit(http, &g->call.http);
    }
    leat__mutex_lock(&b.lock);
    for (bool asked = false; b.left > 0;)
        asked = leat__http_wait(http, http ? &b : NULL, &b.ended, &b.lock, asked);
    leat__mutex_unlock(&b.lock);
    for (size_t i = 0; i < count; i++) {
        leat__store_close(&gets[i].call.store);
        leat__free(gets[i].shown);
        gets[i].shown = NULL;
    }
    leat__cond_destroy(&b.ended);
    leat__mutex_destroy(&b.lock);
}

/* ---- put --------------------------------------------------------------------------------- */

/* True when the object has these bytes from `at` on. */
static bool has_bytes(leat__store *s, const char *path, uint64_t at, const void *data, size_t len)
{
    char range[64];
    leat__call c = leat__object_call(s, path, "GET");
    snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)at,
             (unsigned long long)(at + len - 1));
    leat__call_header(&c, "range", range);
    c.http.body_max = LEAT_MAX(len, (size_t)4096);
    bool same =
        leat__call_run(&c, NULL) == 0 && c.http.body.len == len && memcmp(c.http.body.data, data, len) == 0;
    leat__http_req_reset(&c.http);
    return same;
}

/* True when the existing object is ours: a request that was sent again may have succeeded the first time, and
 * its answer was lost. */
static bool is_ours(leat__store *s, const char *path, const uint8_t *data, size_t len, uint32_t attempts)
{
    leat__object o;
    if (attempts < 2 || leat__object_stat(s, path, &o, NULL) != 0 || o.size != len) return false;
    for (size_t at = 0; at < len; at += (size_t)PART_BYTES)
        if (!has_bytes(s, path, at, data + at, LEAT_MIN(len - at, (size_t)PART_BYTES))) return false;
    return true;
}

static int exists(const char *path, leat_error *err)
{
    return leat__fail(err, LEAT_EEXIST, "%s: already exists", path);
}

/* Refuses an existing object of a bucket of Google, just before a write that must not replace it. Google
 * documents no condition for the end of an upload in parts, and none for writes signed with HMAC keys. */
static int refuse_existing(leat__store *s, const char *path, bool absent, leat_error *err)
{
    leat__object o;
    if (!absent || leat__store_scheme(s) != LEAT__SCHEME_GS) return 0;
    const int rc = leat__object_stat(s, path, &o, err);
    if (rc == 0) return exists(path, err);
    return rc == LEAT_ENOENT || rc == LEAT_EPERM ? 0 : rc; /* EPERM: the access key may write but not read */
}

int leat__object_writable(const leat__store *s, const char *path, leat_error *err)
{
    int rc = refuse_web(s, "written", err);
    if (rc != 0) leat__error_context(err, "%s", path);
    return rc;
}

/* Sets the content type. libcurl declares the body of a POST as a form, and some servers store that as the
 * type of the object. Amazon wants the type in the signature. Azure has its own default. */
static void set_type(leat__call *c, const char *type)
{
    if (!azure(c->store)) leat__call_header(c, "content-type", type);
}

/* Google documents no condition on the ETag for writes. */
static const char *usable(const leat__store *s, const char *match)
{
    return match != NULL && *match != '\0' && leat__store_scheme(s) != LEAT__SCHEME_GS ? match : NULL;
}

static void put_condition(leat__call *c, bool absent, const char *match)
{
    if (absent) leat__call_header(c, "if-none-match", "*");
    else if (match != NULL) leat__call_header(c, "if-match", match);
}

/* Builds the request that writes a whole object. */
static leat__call put_call(leat__store *s, const char *path, const void *data, size_t len, bool absent,
                           const char *match)
{
    leat__call c = leat__object_call(s, path, "PUT");
    c.http.send = len > 0 ? data : "";
    c.http.send_len = len;
    if (azure(s)) leat__call_header(&c, "x-ms-blob-type", "BlockBlob");
    put_condition(&c, absent, match);
    set_type(&c, "application/octet-stream");
    leat__call_hash(&c);
    return c;
}

int leat__object_put(leat__store *s, const char *path, const void *data, size_t len, bool absent,
                     leat_error *err)
{
    LEAT_TRY(refuse_web(s, "written", err));
    LEAT_TRY(refuse_existing(s, path, absent, err));
    leat__call c = put_call(s, path, data, len, absent, NULL);
    int rc = leat__call_run(&c, err);
    if (rc == LEAT_EEXIST && absent)
        rc = is_ours(s, path, data, len, c.http.attempts) ? 0 : exists(path, err);
    if (rc == LEAT_EIO && leat__http_transient(&c.http) && err != NULL) err->sys_errno = EIO;
    leat__http_req_reset(&c.http);
    return rc;
}

int leat__object_remove(leat__store *s, const char *path, leat_error *err)
{
    LEAT_TRY(refuse_web(s, "written", err));
    leat__call c = leat__object_call(s, path, "DELETE");
    int rc = leat__call_run(&c, err);
    leat__http_req_reset(&c.http);
    return rc == LEAT_ENOENT ? 0 : rc;
}

/* ---- upload ------------------------------------------------------------------------------ */

typedef struct part {
    leat__call call; /* first */
    struct upload *upload;
    uint32_t number; /* from 1 */
    uint8_t *data;
    char number_text[16], id_text[32];
    bool busy;
} part;

typedef struct upload {
    leat__store *store;
    const char *path;
    const leat__file *file;
    const leat__upload_opts *opts;
    uint64_t size, part_bytes, done;
    uint32_t count;
    leat__buf id;
    char (*etags)[160];
    leat__mutex lock; /* guards done, rc, err, and busy of the parts */
    leat__cond freed;
    part parts[IN_FLIGHT];
    int rc;
    leat_error err;
} upload;

static void block_id(uint32_t number, char text[32])
{
    char plain[16];
    snprintf(plain, sizeof plain, "leat-%06u", number);
    leat__base64_encode(plain, strlen(plain), text);
}

static void part_done(leat__http_req *r)
{
    part *p = (part *)r;
    upload *u = p->upload;
    leat__mutex_lock(&u->lock);
    if (r->rc == 0) {
        snprintf(u->etags[p->number - 1], sizeof u->etags[0], "%s", r->etag);
        u->done += r->send_len;
    } else if (u->rc == 0) {
        u->rc = r->rc;
        u->err = r->err;
    }
    leat__http_req_reset(r);
    p->busy = false;
    leat__cond_broadcast(&u->freed);
    leat__mutex_unlock(&u->lock);
}

static const leat__http_ops part_ops = {
    .prepare = leat__call_prepare, .judge = leat__call_judge, .done = part_done};

/* Calls `progress`; returns LEAT_ECANCELED when that stops the upload. */
static int ask(const upload *u, uint64_t done, leat_error *err)
{
    if (u->opts->progress == NULL || u->opts->progress(u->opts->cookie, done, u->size) == 0) return 0;
    int rc = leat__fail(err, LEAT_ECANCELED, "%s: the upload was interrupted", u->path);
    /* EINTR: the message names the path, so it is printed even after a signal */
    if (err != NULL) err->sys_errno = EINTR;
    return rc;
}

/* Waits for a part to end and calls `progress` meanwhile, which may cancel all parts. */
static void wait_locked(upload *u)
{
    leat_error why = {0};
    (void)leat__cond_wait_until(&u->freed, &u->lock, leat__clock_ns() + ASK_NS);
    uint64_t done = u->done;
    bool failed = u->rc != 0;
    leat__mutex_unlock(&u->lock);
    int rc = failed ? 0 : ask(u, done, &why);
    if (rc != 0) leat__http_cancel(leat__store_http(u->store), u);
    leat__mutex_lock(&u->lock);
    if (rc == 0) return;
    u->rc = rc;
    u->err = why;
}

static part *free_part_locked(upload *u)
{
    for (;;) {
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            if (!u->parts[i].busy) return &u->parts[i];
        wait_locked(u);
    }
}

static int send_part(upload *u, uint32_t number, leat_error *err)
{
    uint64_t at = (uint64_t)(number - 1) * u->part_bytes;
    size_t len = (size_t)LEAT_MIN(u->part_bytes, u->size - at);
    leat__mutex_lock(&u->lock);
    part *p = free_part_locked(u);
    int rc = u->rc;
    uint64_t done = u->done;
    leat__mutex_unlock(&u->lock);
    if (rc != 0) return rc; /* reported at the end */
    LEAT_TRY(ask(u, done, err));
    if (p->data == NULL) p->data = leat__alloc(LEAT__MEM_IO, (size_t)u->part_bytes);
    if (p->data == NULL) return leat__fail_nomem(err, u->part_bytes, "a part of an upload");
    LEAT_TRY(leat__file_pread(u->file, p->data, len, at, err));
    p->upload = u;
    p->number = number;
    p->call = leat__object_call(u->store, u->path, "PUT");
    p->call.http.ops = &part_ops;
    p->call.http.send = p->data;
    p->call.http.send_len = len;
    p->call.http.owner = u;
    snprintf(p->number_text, sizeof p->number_text, "%u", number);
    block_id(number, p->id_text);
    bool blocks = azure(u->store);
    leat__call_query(&p->call, blocks ? "comp" : "partNumber", blocks ? "block" : p->number_text);
    leat__call_query(&p->call, blocks ? "blockid" : "uploadId", blocks ? p->id_text : leat__buf_str(&u->id));
    leat__call_hash(&p->call);
    p->busy = true;
    leat__http_submit(leat__store_http(u->store), &p->call.http);
    return 0;
}

/* Waits for the parts in flight. */
static int settle(upload *u, int rc, leat_error *err)
{
    if (rc != 0) leat__http_cancel(leat__store_http(u->store), u);
    leat__mutex_lock(&u->lock);
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
        while (u->parts[i].busy) wait_locked(u);
    if (u->rc != 0 && (rc == 0 || rc == u->rc)) {
        if (err != NULL) *err = u->err;
        rc = u->rc;
    }
    leat__mutex_unlock(&u->lock);
    return rc;
}

static int note_part(void *cookie, uint32_t number, uint64_t size, const char *etag)
{
    upload *u = cookie;
    if (number > u->count) return 0;
    uint64_t at = (uint64_t)(number - 1) * u->part_bytes;
    if (size != LEAT_MIN(u->part_bytes, u->size - at)) return 0; /* the part is sent again */
    snprintf(u->etags[number - 1], sizeof u->etags[0], "%s", etag);
    return 0;
}

/* Resumes the upload recorded in the note. False when there is no upload to resume. */
static bool find_again(upload *u)
{
    leat__upload_note n;
    if (u->opts->note == NULL || !leat__upload_note_read(u->opts->note, &n)) return false;
    if (n.size == u->size && n.part_bytes == u->part_bytes && leat__buf_puts(&u->id, n.id) == 0 &&
        leat__uploads_parts(u->store, u->path, n.id, note_part, u, NULL) == 0)
        return true;
    (void)!leat__uploads_abort(u->store, u->path, n.id, NULL);
    leat__upload_note_remove(u->opts->note);
    leat__buf_clear(&u->id);
    memset(u->etags, 0, u->count * sizeof *u->etags);
    return false;
}

static int remember(upload *u, leat_error *err)
{
    leat__upload_note n = {.size = u->size, .part_bytes = u->part_bytes};
    if (u->opts->note == NULL || u->id.len >= sizeof n.id) return 0;
    snprintf(n.id, sizeof n.id, "%s", leat__buf_str(&u->id));
    return leat__upload_note_write(u->opts->note, &n, err);
}

static int begin_upload(upload *u, leat_error *err)
{
    if (azure(u->store) || find_again(u)) return 0;
    leat__call c = leat__object_call(u->store, u->path, "POST");
    c.http.send = "";
    leat__call_query(&c, "uploads", "");
    set_type(&c, "application/octet-stream");
    leat__call_hash(&c);
    int rc = leat__call_run(&c, err);
    leat__xml xml = {c.http.body.data, c.http.body.len};
    if (rc == 0 && !leat__xml_text(xml, "UploadId", &u->id))
        rc = leat__fail(err, LEAT_EIO, "%s: the server started an upload but returned no upload ID", u->path);
    leat__http_req_reset(&c.http);
    return rc == 0 ? remember(u, err) : rc;
}

static int write_list(const upload *u, leat__buf *out)
{
    bool blocks = azure(u->store);
    (void)leat__buf_puts(out, blocks ? "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>"
                                     : "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < u->count; i++) {
        char id[32];
        block_id(i + 1, id);
        if (blocks) {
            (void)leat__buf_printf(out, "<Latest>%s</Latest>", id);
            continue;
        }
        (void)leat__buf_printf(out, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
        (void)leat__xml_escape(out, u->etags[i]);
        (void)leat__buf_puts(out, "</ETag></Part>");
    }
    (void)leat__buf_puts(out, blocks ? "</BlockList>" : "</CompleteMultipartUpload>");
    return leat__buf_status(out);
}

/* True when the answer to the last request says that the object was made. A server may send 200 and then
 * break the connection. Azure answers without a body. */
static bool says_complete(const leat__http_req *r)
{
    leat__xml xml = {r->body.data, r->body.len}, inner;
    return azure(((const leat__call *)r)->store) ||
           leat__xml_next(xml, "CompleteMultipartUploadResult", &inner, NULL);
}

/* Judges the last request, whose answer may begin with 200 and still contain an error, or nothing. */
static leat__http_verdict judge_end(leat__http_req *r)
{
    static const char *const passing[] = {"InternalError", "ServiceUnavailable", "SlowDown",
                                          "RequestTimeout"};
    leat__xml xml = {r->body.data, r->body.len}, inner;
    leat__http_verdict v = LEAT__HTTP_DONE;
    leat__buf code;
    if (r->status / 100 != 2) return leat__call_judge(r);
    if (!leat__xml_next(xml, "Error", &inner, NULL)) {
        if (says_complete(r)) return leat__call_judge(r);
        r->rc = leat__fail(&r->err, LEAT_EIO,
                           "%s: %s: the server answered %ld, but not that the object is complete", r->what,
                           r->method, r->status);
        return LEAT__HTTP_AGAIN;
    }
    leat__http_explain(r);
    leat__buf_init(&code, LEAT__MEM_IO, LIST_MAX);
    if (!leat__xml_text(inner, "Code", &code)) leat__buf_clear(&code);
    for (size_t i = 0; i < LEAT_COUNT(passing); i++)
        if (strcmp(leat__buf_str(&code), passing[i]) == 0) v = LEAT__HTTP_AGAIN;
    if (strcmp(leat__buf_str(&code), "PreconditionFailed") == 0) r->rc = r->err.code = LEAT_EEXIST;
    leat__buf_reset(&code);
    return v;
}

/* Like is_ours, for an upload in parts. Compares size and end, because a pack ends with a hash of its index,
 * which has the hashes of all pages. */
static bool is_complete(const upload *u, uint32_t attempts)
{
    leat__object o;
    size_t len = (size_t)LEAT_MIN(u->size, END_BYTES);
    if (attempts < 2 || leat__object_stat(u->store, u->path, &o, NULL) != 0 || o.size != u->size)
        return false;
    uint8_t *end = leat__alloc(LEAT__MEM_IO, len);
    bool same = end != NULL && leat__file_pread(u->file, end, len, u->size - len, NULL) == 0 &&
                has_bytes(u->store, u->path, u->size - len, end, len);
    leat__free(end);
    return same;
}

static void note_again(const upload *u, uint32_t attempts)
{
    if (u->opts->again != NULL && attempts > 1) *u->opts->again = true;
}

/* Words the refusal of a write whose condition does not hold. */
static int refused(const upload *u, leat_error *err)
{
    if (u->opts->absent) return exists(u->path, err);
    if (usable(u->store, u->opts->match) == NULL) return LEAT_EEXIST; /* the answer's text stays */
    return leat__fail(err, LEAT_EEXIST, "%s: another run has replaced it", u->path);
}

static int end_upload(upload *u, leat_error *err)
{
    static const leat__http_ops ops = {.prepare = leat__call_prepare, .judge = judge_end};
    leat__buf body;
    leat__buf_init(&body, LEAT__MEM_IO, LIST_MAX);
    leat__call c = leat__object_call(u->store, u->path, azure(u->store) ? "PUT" : "POST");
    int rc = write_list(u, &body);
    if (rc == 0) {
        c.http.ops = &ops;
        c.http.send = body.data;
        c.http.send_len = body.len;
        leat__call_query(&c, azure(u->store) ? "comp" : "uploadId",
                         azure(u->store) ? "blocklist" : leat__buf_str(&u->id));
        put_condition(&c, u->opts->absent, usable(u->store, u->opts->match));
        set_type(&c, "application/xml");
        leat__call_hash(&c);
        rc = leat__call_run(&c, err);
        if (rc != 0 && is_complete(u, c.http.attempts)) rc = 0;
        if (rc == LEAT_EEXIST) rc = refused(u, err);
        note_again(u, c.http.attempts);
        leat__http_req_reset(&c.http);
    }
    leat__buf_reset(&body);
    return rc;
}

/* Keeps a failed upload that a later run can resume; aborts any other, so that nothing is billed. */
static void after_upload(upload *u, int rc)
{
    bool resumable = u->opts->note != NULL && (rc == LEAT_ECANCELED || rc == LEAT_EIO);
    /* Azure deletes uncommitted blocks by itself */
    if (resumable || azure(u->store) || u->id.len == 0) return;
    if (rc != 0) (void)!leat__uploads_abort(u->store, u->path, leat__buf_str(&u->id), NULL);
    if (u->opts->note != NULL) leat__upload_note_remove(u->opts->note);
}

static int upload_parts(upload *u, leat_error *err)
{
    LEAT_TRY(begin_upload(u, err));
    int rc = 0;
    for (uint32_t i = 1; i <= u->count && rc == 0; i++)
        if (u->etags[i - 1][0] == '\0') rc = send_part(u, i, err);
    rc = settle(u, rc, err);
    if (rc == 0) rc = ask(u, u->size, err);
    if (rc == 0) rc = refuse_existing(u->store, u->path, u->opts->absent, err);
    if (rc == 0) rc = end_upload(u, err);
    after_upload(u, rc);
    return rc;
}

/* Uploads a file of one part. */
static int upload_whole(upload *u, leat_error *err)
{
    part *p = &u->parts[0];
    LEAT_TRY(ask(u, 0, err));
    LEAT_TRY(refuse_existing(u->store, u->path, u->opts->absent, err));
    p->data = leat__alloc(LEAT__MEM_IO, (size_t)u->size);
    if (p->data == NULL) return leat__fail_nomem(err, u->size, "an upload");
    LEAT_TRY(leat__file_pread(u->file, p->data, (size_t)u->size, 0, err));
    p->upload = u;
    p->number = 1;
    p->call = put_call(u->store, u->path, p->data, (size_t)u->size, u->opts->absent,
                       usable(u->store, u->opts->match));
    p->call.http.ops = &part_ops;
    p->call.http.owner = u;
    p->busy = true;
    leat__http_submit(leat__store_http(u->store), &p->call.http);
    int rc = settle(u, 0, err);
    note_again(u, p->call.http.attempts);
    if (rc == LEAT_EEXIST)
        rc =
            is_ours(u->store, u->path, p->data, (size_t)u->size, p->call.http.attempts) ? 0 : refused(u, err);
    return rc;
}

int leat__object_upload(leat__store *s, const char *path, const leat__file *file,
                        const leat__upload_opts *opts, leat_error *err)
{
    upload u = {.store = s, .path = path, .file = file, .opts = opts};
    LEAT_TRY(refuse_web(s, "written", err));
    LEAT_TRY(leat__file_size(file, &u.size, err));
    u.part_bytes =
        LEAT_MAX(opts->part_bytes ? opts->part_bytes : PART_BYTES, leat__ceil_div(u.size, UINT64_C(10000)));
    u.count = (uint32_t)LEAT_MAX(leat__ceil_div(u.size, u.part_bytes), UINT64_C(1));
    u.etags = leat__zalloc_array(LEAT__MEM_IO, u.count, sizeof *u.etags);
    if (u.etags == NULL) return leat__fail_nomem(err, u.count * sizeof *u.etags, "an upload");
    leat__buf_init(&u.id, LEAT__MEM_IO, 1u << 16);
    leat__mutex_init(&u.lock);
    leat__cond_init(&u.freed);
    int rc = u.count == 1 ? upload_whole(&u, err) : upload_parts(&u, err);
    for (uint32_t i = 0; i < IN_FLIGHT; i++) leat__free(u.parts[i].data);
    leat__cond_destroy(&u.freed);
    leat__mutex_destroy(&u.lock);
    leat__buf_reset(&u.id);
    leat__free(u.etags);
    return rc;
}
