/* SPDX-License-Identifier: Apache-2.0
 *
 * Files in buckets: see remote.h. A `get` is one request and the ranges it serves, ordered by offset. The
 * file lists its waiting gets. The first get to start takes over the ranges of its neighbours, which then end
 * without a request.
 *
 * A forked child gets a copy of the file, whose locks and requests belong to threads of the parent. The
 * child's first read creates new locks and connections for the copy, and does not touch the buffers of the
 * parent's requests.
 */
#include "io/remote.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/remote_ahead.h"
#include "io/store.h"

#define TAIL_BYTES (256u << 10)
#define OPEN_TRIES 3 /* attempts to open a file that is replaced meanwhile: nothing was read yet */
/* Bytes of a joined request: as many as arrive in JOIN_TIME_NS at the current rate, so that with a slow
 * server the first pages do not wait for their neighbours. Large requests cost a server less CPU time per
 * byte. */
#define JOIN_LEAST (UINT64_C(1) << 20)
#define JOIN_BYTES (UINT64_C(8) << 20)
/* the limit when JOIN_MANY requests wait: enough remain for all connections */
#define JOIN_MOST (UINT64_C(16) << 20)
#define JOIN_MANY 32u
#define JOIN_TIME_NS (250 * LEAT_NS_PER_MS)
#define RATE_NS (20 * LEAT_NS_PER_MS)     /* between two measurements of the rate */
#define JOIN_GAP (16u << 10)              /* extra bytes read to avoid a separate request */
#define JOIN_WAIT_NS (LEAT_NS_PER_MS / 2) /* time for neighbours to arrive */

struct leat__remote {
    leat__store *store;
    _Atomic uint32_t generation; /* fork generation of the process that owns store, locks and ahead */
    char *path;                  /* for messages */
    char *url, *key;             /* url: as given by the user; may contain a signature */
    uint64_t size;
    char etag[160], modified[64];
    bool match;                   /* If-Match can be sent, because the ETag is strong */
    leat__mutex lock;             /* guards the next six */
    struct get *queued;           /* gets that wait for their turn */
    uint32_t gets;                /* number of gets; one may briefly outlive its ranges */
    uint8_t *tail;                /* the end of the file, from tail_at; NULL after settle */
    double rate;                  /* bytes per ns that the process receives */
    uint64_t rate_ns, rate_bytes; /* time and total bytes at the last measurement of the rate */
    leat__cond ended;             /* signalled when gets is 0 */
    leat__ahead *ahead;
    uint64_t tail_at;
};

/* A second request for the rest of a late get. Both write the same bytes, from the loop's thread; the one
 * that receives bytes first fills the ranges. */
typedef struct twin {
    leat__call call; /* first */
    struct get *get;
    uint64_t pos; /* bytes of the get's range that its body has reached */
    bool active;
    char range_text[64];
} twin;

typedef struct get {
    leat__call call; /* first: requests are cast to it */
    leat__remote *file;
    uint64_t offset, len, got; /* the whole range, and how much of it arrived */
    uint64_t pos;              /* as in twin, for the get's own body */
    twin *twin;                /* NULL until it is late */
    bool over;                 /* the get's own request has ended, but its twin is still in flight */
    int rc;                    /* result of that request */
    leat_error err;
    leat__range *ranges;     /* not yet complete, by offset */
    struct get *prev, *next; /* list `queued` */
    bool listed;
    char range_text[64];
} get;

static bool is_ours(const leat__remote *f)
{
    return atomic_load(&f->generation) == leat__fork_generation();
}

/* ---- joining ----------------------------------------------------------------------------- */

static void unlist_locked(get *g)
{
    if (!g->listed) return;
    *(g->prev != NULL ? &g->prev->next : &g->file->queued) = g->next;
    if (g->next != NULL) g->next->prev = g->prev;
    g->prev = g->next = NULL;
    g->listed = false;
}

/* Takes over the ranges of `o`, which begins at or shortly after the end of `g`. */
static void append_locked(get *g, get *o)
{
    leat__range **at = &g->ranges;
    while (*at != NULL) at = &(*at)->next;
    *at = o->ranges;
    o->ranges = NULL;
    g->len = o->offset + o->len - g->offset;
    unlist_locked(o);
}

/* Returns the limit of a joined request, and updates the rate now and then. A pause of the reader does not
 * mean a slow server, so it lowers the rate only slowly. */
static uint64_t join_limit_locked(leat__remote *f)
{
    uint64_t now = leat__clock_ns(), past = now - f->rate_ns;
    if (past >= RATE_NS) {
        leat__http_stats http;
        leat__http_read(&http);
        double bytes = (double)(http.bytes_in - f->rate_bytes);
        if (f->rate_ns != 0) f->rate = LEAT_MAX(bytes / (double)past, f->rate / 2);
        f->rate_ns = now;
        f->rate_bytes = http.bytes_in;
    }
    uint64_t most = f->gets >= JOIN_MANY ? JOIN_MOST : JOIN_BYTES;
    double bytes = f->rate * (double)JOIN_TIME_NS;
    return bytes < (double)most ? LEAT_MAX((uint64_t)bytes, JOIN_LEAST) : most;
}

static get *follower_locked(const get *g, uint64_t limit)
{
    uint64_t end = g->offset + g->len;
    for (get *o = g->file->queued; o != NULL; o = o->next)
        if (o != g && o->call.http.owner == g->call.http.owner && o->offset >= end &&
            o->offset - end <= JOIN_GAP && o->offset + o->len - g->offset <= limit)
            return o;
    return NULL;
}

/* Joins waiting neighbours to the get, when it starts. False when another get took its ranges. */
static bool join(get *g)
{
    leat__remote *f = g->file;
    leat__mutex_lock(&f->lock);
    unlist_locked(g);
    bool any = g->ranges != NULL;
    uint64_t limit = join_limit_locked(f);
    for (get *o; any && (o = follower_locked(g, limit)) != NULL;) append_locked(g, o);
    leat__mutex_unlock(&f->lock);
    return any;
}

/* ---- one request ------------------------------------------------------------------------- */

static int changed(get *g, leat__http_req *r)
{
    r->rc = leat__fail(&r->err, LEAT_ECHANGED, "%s: was replaced while it was being read", g->file->path);
    leat__error_at(&r->err, NULL, -1, (int64_t)(g->offset + g->got));
    return r->rc;
}

/* Sets the error if the answer says that a file that existed has changed: it was replaced (412, 304, 416) or
 * removed. */
static bool says_changed(leat__http_req *r)
{
    const bool gone = r->status == 404 || r->status == 410;
    if (!gone && r->status != 412 && r->status != 304 && r->status != 416) return false;
    r->rc = leat__fail(&r->err, LEAT_ECHANGED, "%s: was %s while it was being read", r->what,
                       gone ? "removed" : "replaced");
    return true;
}

static int prepare(leat__http_req *r, leat_error *err)
{
    get *g = (get *)r;
    leat__remote *f = g->file;
    if (r->attempts == 0 && !join(g)) return LEAT_ECLOSED;
    /* the connection broke, but after the last byte that was needed */
    if (g->ranges == NULL) return LEAT_ECLOSED;
    snprintf(g->range_text, sizeof g->range_text, "bytes=%llu-%llu", (unsigned long long)(g->offset + g->got),
             (unsigned long long)(g->offset + g->len - 1));
    g->call.header_count = 0;
    g->pos = g->got;
    r->expect = g->len - g->got;
    leat__call_header(&g->call, "range", g->range_text);
    if (f->match) leat__call_header(&g->call, "if-match", f->etag);
    return leat__call_prepare(r, err);
}

static int accept_at(get *g, leat__http_req *r, uint64_t pos)
{
    leat__remote *f = g->file;
    uint64_t from = g->offset + pos, last = g->offset + g->len - 1;
    const bool sized = !r->has_range || r->range_total == f->size;
    if ((r->etag[0] != '\0' && strcmp(r->etag, f->etag) != 0) ||
        (f->etag[0] == '\0' && strcmp(r->modified, f->modified) != 0) || (r->etag[0] == '\0' && !sized))
        return changed(g, r);
    /* some servers answer 200 instead of 206 with the requested range */
    if (r->has_range && sized && r->range_first == from && r->range_last <= last && r->range_last >= from)
        return 0;
    if (!r->has_range && r->status == 200 && from == 0 && r->length == f->size) return 0;
    r->rc = leat__fail(&r->err, LEAT_EIO, "%s: the server sent another range than requested", f->path);
    return r->rc;
}

static int accept_range(leat__http_req *r)
{
    get *g = (get *)r;
    return accept_at(g, r, g->pos);
}

/* Copies bytes of the body to their ranges. */
static void hand_out(get *g, const char *data, size_t len)
{
    while (len > 0 && g->ranges != NULL) {
        leat__range *p = g->ranges;
        uint64_t at = g->offset + g->got;
        size_t n = len;
        if (at < p->offset) { /* a gap */
            n = (size_t)LEAT_MIN((uint64_t)n, p->offset - at);
        } else {
            n = LEAT_MIN(n, p->len - p->got);
            memcpy((char *)p->buf + p->got, data, n);
            p->got += n;
        }
        g->got += n;
        data += n;
        len -= n;
        if (p->got < p->len) continue;
        g->ranges = p->next;
        p->done(p, 0, NULL);
    }
}

/* Takes bytes of one of the two responses from *pos on; skips bytes that the other one has delivered. */
static void take_at(get *g, uint64_t *pos, const char *data, size_t len)
{
    uint64_t known = g->got > *pos ? g->got - *pos : 0;
    *pos += len;
    if (known >= len || g->ranges == NULL) return;
    hand_out(g, data + known, len - (size_t)known);
    if (g->ranges != NULL || g->twin == NULL || !g->twin->active) return;
    /* the range is complete: stop the other request */
    leat__http *http = leat__store_http(g->file->store);
    if (pos == &g->pos) leat__http_drop(http, &g->twin->call.http);
    else if (!g->over) leat__http_drop(http, &g->call.http);
}

static void take(leat__http_req *r, const char *data, size_t len)
{
    get *g = (get *)r;
    take_at(g, &g->pos, data, len);
}

static leat__http_verdict judge(leat__http_req *r)
{
    get *g = (get *)r;
    if (r->refused && r->rc != LEAT_ECHANGED) return LEAT__HTTP_AGAIN; /* `accept` has set the error */
    if (r->refused || says_changed(r)) return LEAT__HTTP_DONE;
    if (r->status / 100 != 2) return leat__call_judge(r);
    if (g->ranges == NULL) return LEAT__HTTP_DONE;
    r->rc = leat__fail(&r->err, LEAT_EIO, "%s: the body ended at byte %llu", g->file->path,
                       (unsigned long long)(g->offset + g->got));
    return LEAT__HTTP_AGAIN;
}

/* Ends a get after its request and its twin, if any, have ended. */
static void conclude(get *g)
{
    leat__mutex_lock(&g->file->lock);
    unlist_locked(g);
    leat__range *list = g->ranges;
    g->ranges = NULL;
    leat__mutex_unlock(&g->file->lock);
    leat_error err = g->err;
    int rc = g->rc;
    if (rc != 0 && rc != LEAT_ECANCELED) {
        char range[80];
        snprintf(range, sizeof range, " (bytes %llu to %llu)", (unsigned long long)(g->offset + g->got),
                 (unsigned long long)(g->offset + g->len - 1));
        size_t n = strlen(err.message);
        snprintf(err.message + n, sizeof err.message - n, "%s", range);
        if (err.offset < 0) err.offset = (int64_t)(g->offset + g->got);
    }
    while (list != NULL) {
        leat__range *p = list;
        list = p->next;
        p->done(p, rc != 0 ? rc : LEAT_EIO, &err);
    }
    leat__remote *f = g->file;
    leat__free(g->twin);
    leat__free(g);
    leat__mutex_lock(&f->lock);
    if (--f->gets == 0) leat__cond_broadcast(&f->ended);
    leat__mutex_unlock(&f->lock);
}

static void finished(leat__http_req *r)
{
    get *g = (get *)r;
    g->rc = r->rc;
    g->err = r->err;
    leat__http_req_reset(r);
    g->over = true;
    /* the twin may still receive the missing bytes, and writes into the ranges until it ends */
    if (g->twin == NULL || !g->twin->active) conclude(g);
}

/* ---- the second request ------------------------------------------------------------------ */

static int twin_prepare(leat__http_req *r, leat_error *err)
{
    twin *t = (twin *)r;
    get *g = t->get;
    if (g->ranges == NULL) return LEAT_ECLOSED;
    t->pos = g->got;
    snprintf(t->range_text, sizeof t->range_text, "bytes=%llu-%llu", (unsigned long long)(g->offset + g->got),
             (unsigned long long)(g->offset + g->len - 1));
    t->call.header_count = 0;
    leat__call_header(&t->call, "range", t->range_text);
    if (g->file->match) leat__call_header(&t->call, "if-match", g->file->etag);
    return leat__call_prepare(r, err);
}

static int twin_accept(leat__http_req *r)
{
    twin *t = (twin *)r;
    return accept_at(t->get, r, t->pos);
}

static void twin_take(leat__http_req *r, const char *data, size_t len)
{
    twin *t = (twin *)r;
    take_at(t->get, &t->pos, data, len);
}

static leat__http_verdict twin_judge(leat__http_req *r)
{
    if (r->status / 100 != 2) r->rc = LEAT_EIO; /* the first request reports the error */
    return LEAT__HTTP_DONE;
}

static void twin_done(leat__http_req *r)
{
    twin *t = (twin *)r;
    get *g = t->get;
    leat__http_req_reset(r);
    t->active = false;
    if (g->over) conclude(g);
}

static void late(leat__http_req *r)
{
    static const leat__http_ops ops = {.prepare = twin_prepare,
                                       .accept = twin_accept,
                                       .take = twin_take,
                                       .judge = twin_judge,
                                       .done = twin_done};
    get *g = (get *)r;
    if (g->twin != NULL) return; /* one per get */
    g->twin = LEAT_NEW(IO, twin);
    if (g->twin == NULL) return;
    g->twin->get = g;
    g->twin->active = true;
    g->twin->call = (leat__call){.store = g->file->store, .key = g->file->key};
    g->twin->call.http = (leat__http_req){.ops = &ops,
                                          .what = g->file->path,
                                          .method = "GET",
                                          .owner = r->owner,
                                          .urgent = true,
                                          .once = true,
                                          .follow = r->follow};
    leat__http_submit(leat__store_http(g->file->store), &g->twin->call.http);
}

static const leat__http_ops get_ops = {
    .prepare = prepare, .accept = accept_range, .take = take, .judge = judge, .done = finished, .late = late};

static void start(leat__remote *f, leat__range *p, bool urgent)
{
    get *g = LEAT_NEW(IO, get);
    leat_error err;
    p->next = NULL;
    p->got = 0;
    if (!is_ours(f)) {
        leat__free(g);
        p->done(p, leat__fail(&err, LEAT_EFORK, "%s: opened before a fork; open it again", f->path), &err);
        return;
    }
    if (g == NULL) {
        p->done(p, leat__fail_nomem(&err, sizeof *g, "a request"), &err);
        return;
    }
    g->file = f;
    g->offset = p->offset;
    g->len = p->len;
    g->ranges = p;
    g->call.store = f->store;
    g->call.key = f->key;
    g->call.http = (leat__http_req){.ops = &get_ops,
                                    .what = f->path,
                                    .method = "GET",
                                    .owner = p->owner,
                                    .urgent = urgent,
                                    .delay_ns = urgent ? 0 : JOIN_WAIT_NS};
    g->call.http.follow = leat__store_scheme(f->store) >= LEAT__SCHEME_HTTP;
    leat__mutex_lock(&f->lock);
    g->next = f->queued;
    if (g->next != NULL) g->next->prev = g;
    f->queued = g;
    f->gets++;
    g->listed = true;
    leat__mutex_unlock(&f->lock);
    leat__http_submit(leat__store_http(f->store), &g->call.http);
}

void leat__remote_read(leat__remote *f, leat__range *r)
{
    start(f, r, false);
}

void leat__remote_cancel(leat__remote *f, const void *owner)
{
    if (!is_ours(f)) return;
    leat__http_cancel(leat__store_http(f->store), owner);
}

bool leat__remote_wait(leat__remote *f, const void *owner, leat__cond *ended, leat__mutex *lock, bool asked)
{
    return leat__http_wait(leat__store_http(f->store), owner, ended, lock, asked);
}

/* ---- opening ----------------------------------------------------------------------------- */

static int accept_tail(leat__http_req *r)
{
    if (r->has_range) return r->range_last + 1 == r->range_total ? 0 : LEAT_EIO;
    if (r->status == 206) return LEAT_EIO;
    return r->length <= TAIL_BYTES ? 0 : LEAT_ENOTSUP; /* the body is the whole of a small file */
}

static leat__http_verdict judge_tail(leat__http_req *r)
{
    const leat__remote *f = r->cookie;
    /* without an earlier answer about the file, 404 and 416 may mean that it does not exist or is empty */
    if ((f->size > 0 || r->status == 412) && says_changed(r)) return LEAT__HTTP_DONE;
    if (r->refused && r->status == 206) {
        r->rc = leat__fail(&r->err, LEAT_EIO, "%s: the server sent %s (Content-Range)", r->what,
                           r->has_range   ? "another range than requested"
                           : r->odd_range ? "an invalid range"
                                          : "a range without naming it");
        return LEAT__HTTP_AGAIN;
    }
    if (r->refused) {
        r->rc = leat__fail(&r->err, LEAT_ENOTSUP,
                           "%s: the server does not support byte ranges, which reading needs", r->what);
        return LEAT__HTTP_DONE;
    }
    if (r->status / 100 != 2 || !r->has_range || r->range_first + r->body.len == r->range_total)
        return leat__call_judge(r);
    r->rc = leat__fail(&r->err, LEAT_EIO, "%s: the server sent %zu bytes of its end, not %llu", r->what,
                       r->body.len, (unsigned long long)(r->range_total - r->range_first));
    return LEAT__HTTP_AGAIN;
}

static int ask_size(leat__remote *f, leat_error *err)
{
    leat__call c = {.store = f->store, .key = f->key};
    c.http = (leat__http_req){.what = f->path, .method = "HEAD", .urgent = true};
    int rc = leat__call_run(&c, err);
    if (rc == 0 && c.http.length == UINT64_MAX)
        rc = leat__fail(err, LEAT_ENOTSUP, "%s: the server does not report its size", f->path);
    if (rc == 0) {
        f->size = c.http.length;
        snprintf(f->etag, sizeof f->etag, "%s", c.http.etag);
        snprintf(f->modified, sizeof f->modified, "%s", c.http.modified);
    }
    leat__http_req_reset(&c.http);
    return rc;
}

/* Reads the end of the file, and with it the size and the ETag. */
static int ask_tail(leat__remote *f, leat_error *err)
{
    static const leat__http_ops ops = {
        .prepare = leat__call_prepare, .accept = accept_tail, .judge = judge_tail};
    char range[64];
    leat__call c = {.store = f->store, .key = f->key};
    c.http = (leat__http_req){.ops = &ops,
                              .what = f->path,
                              .method = "GET",
                              .urgent = true,
                              .body_max = TAIL_BYTES + 4096,
                              .cookie = f};
    /* Azure and some web servers do not support ranges counted from the end. */
    if (f->size > 0)
        snprintf(range, sizeof range, "bytes=%llu-%llu",
                 (unsigned long long)(f->size > TAIL_BYTES ? f->size - TAIL_BYTES : 0),
                 (unsigned long long)f->size - 1);
    else snprintf(range, sizeof range, "bytes=-%u", TAIL_BYTES);
    leat__call_header(&c, "range", range);
    if (f->size > 0 && f->etag[0] != '\0') leat__call_header(&c, "if-match", f->etag);
    int rc = leat__call_run(&c, err);
    if (c.http.status == 416 && f->size == 0) rc = LEAT_EAGAIN; /* an empty object has no ranges */
    if (rc == 0) {
        f->size = c.http.has_range ? c.http.range_total : c.http.body.len;
        f->tail_at = c.http.has_range ? c.http.range_first : 0;
        snprintf(f->etag, sizeof f->etag, "%s", c.http.etag);
        snprintf(f->modified, sizeof f->modified, "%s", c.http.modified);
        size_t len;
        if (f->size > 0) f->tail = (uint8_t *)leat__buf_take(&c.http.body, &len);
    }
    leat__http_req_reset(&c.http);
    return rc;
}

static int find_out_once(leat__remote *f, leat_error *err)
{
    f->size = 0;
    f->etag[0] = f->modified[0] = '\0';
    if (leat__store_scheme(f->store) == LEAT__SCHEME_AZ) {
        LEAT_TRY(ask_size(f, err));
        if (f->size > 0) LEAT_TRY(ask_tail(f, err));
    } else {
        int rc = ask_tail(f, err);
        if (rc == LEAT_EAGAIN) rc = ask_size(f, err);
        /* the server may support ranges, but not those counted from the end */
        if (rc == LEAT_ENOTSUP && ask_size(f, NULL) == 0 && f->size > 0) rc = ask_tail(f, err);
        LEAT_TRY(rc);
    }
    f->match = f->etag[0] == '"'; /* not W/"…": a weak ETag never matches */
    return 0;
}

/* Finds size, ETag and end of the file. */
static int find_out(leat__remote *f, leat_error *err)
{
    int rc = LEAT_ECHANGED;
    for (int i = 0; i < OPEN_TRIES && rc == LEAT_ECHANGED; i++) rc = find_out_once(f, err);
    return rc;
}

int leat__remote_open(leat__remote **out, const char *path, leat_error *err)
{
    leat__url u;
    *out = NULL;
    LEAT_TRY(leat__url_named(path, err));
    LEAT_TRY(leat__url_parse(&u, path, err));
    leat__remote *f = LEAT_NEW(IO, leat__remote);
    if (f == NULL) return leat__fail_nomem(err, sizeof *f, "a file");
    atomic_store(&f->generation, leat__fork_generation());
    leat__mutex_init(&f->lock);
    leat__cond_init(&f->ended);
    int rc = 0;
    f->path = leat__path_display(path);
    f->url = leat__strdup(LEAT__MEM_IO, path);
    f->key = leat__strdup(LEAT__MEM_IO, u.key);
    if (f->path == NULL || f->url == NULL || f->key == NULL)
        rc = leat__fail_nomem(err, strlen(path), "a path");
    if (rc == 0) {
        rc = leat__store_open(&f->store, path, err);
        if (rc != 0 && rc != LEAT_EINVAL) leat__error_context(err, "%s", f->path);
    }
    if (rc == 0) rc = find_out(f, err);
    if (rc == 0) rc = leat__ahead_open(&f->ahead, f, f->size, err);
    if (rc == 0) *out = f;
    else leat__remote_close(&f);
    return rc;
}

/* In a forked child: makes new locks, requests and connections for the copy. Every range request sends the
 * ETag, so size and ETag need not be requested again. */
static int renew(leat__remote *f, leat_error *err)
{
    static leat__mutex lock = {PTHREAD_MUTEX_INITIALIZER};
    leat__store *store = NULL;
    leat__ahead *ahead = NULL;
    leat__fork_renew(&lock);
    leat__mutex_lock(&lock);
    int rc = is_ours(f) ? LEAT_EEXIST : leat__store_open(&store, f->url, err);
    if (rc == 0) rc = leat__ahead_open(&ahead, f, f->size, err);
    if (rc == 0) {
        leat__mutex_init(&f->lock);
        leat__cond_init(&f->ended);
        f->store = store;
        f->ahead = ahead;
        f->queued = NULL;
        f->gets = 0;
        atomic_store(&f->generation, leat__fork_generation());
    } else {
        leat__store_close(&store);
    }
    leat__mutex_unlock(&lock);
    return rc == LEAT_EEXIST ? 0 : rc; /* another thread has already renewed it */
}

static void wipe(char *text)
{
    if (text != NULL) memset(text, 0, strlen(text)); /* a signed URL is a secret */
    leat__free(text);
}

void leat__remote_close(leat__remote **file)
{
    leat__remote *f = *file;
    if (f == NULL) return;
    *file = NULL;
    /* a copy in a forked child that was never read: the parent's threads may hold its locks */
    if (!is_ours(f)) return;
    leat__ahead_close(&f->ahead);
    leat__mutex_lock(&f->lock);
    while (f->gets > 0) leat__cond_wait(&f->ended, &f->lock);
    leat__mutex_unlock(&f->lock);
    leat__free(f->tail);
    leat__store_close(&f->store);
    wipe(f->key);
    wipe(f->url);
    leat__free(f->path);
    leat__cond_destroy(&f->ended);
    leat__mutex_destroy(&f->lock);
    leat__free(f);
}

const char *leat__remote_path(const leat__remote *f)
{
    return f->path;
}

uint64_t leat__remote_size(const leat__remote *f)
{
    return f->size;
}

/* ---- reads that wait --------------------------------------------------------------------- */

typedef struct waiter {
    leat__range range;
    leat__mutex lock;
    leat__cond ended;
    bool over;
    int rc;
    leat_error err;
} waiter;

static void wake(leat__range *r, int rc, const leat_error *err)
{
    waiter *w = r->cookie;
    leat__mutex_lock(&w->lock);
    w->rc = rc;
    if (rc != 0 && err != NULL) w->err = *err;
    w->over = true;
    leat__cond_signal(&w->ended);
    leat__mutex_unlock(&w->lock);
}

static int read_now(leat__remote *f, void *buf, size_t len, uint64_t offset, leat_error *err)
{
    waiter w = {.range = {.offset = offset, .buf = buf, .len = len, .done = wake}};
    w.range.owner = w.range.cookie = &w;
    leat__mutex_init(&w.lock);
    leat__cond_init(&w.ended);
    start(f, &w.range, true);
    leat__mutex_lock(&w.lock);
    for (bool asked = false; !w.over;) asked = leat__remote_wait(f, &w, &w.ended, &w.lock, asked);
    leat__mutex_unlock(&w.lock);
    leat__cond_destroy(&w.ended);
    leat__mutex_destroy(&w.lock);
    if (w.rc != 0 && err != NULL) *err = w.err;
    return w.rc;
}

int leat__remote_pread(leat__remote *f, void *buf, size_t len, uint64_t offset, size_t *got, leat_error *err)
{
    *got = 0;
    if (offset >= f->size) return 0;
    if (!is_ours(f)) LEAT_TRY(renew(f, err));
    len = (size_t)LEAT_MIN((uint64_t)len, f->size - offset);
    leat__mutex_lock(&f->lock);
    if (f->tail != NULL && offset + len > f->tail_at) { /* the end is already loaded */
        uint64_t from = LEAT_MAX(offset, f->tail_at);
        memcpy((char *)buf + (from - offset), f->tail + (from - f->tail_at), (size_t)(offset + len - from));
        *got = (size_t)(offset + len - from);
    }
    leat__mutex_unlock(&f->lock);
    size_t left = len - *got;
    if (left > 0 && !leat__ahead_read(f->ahead, buf, left, offset)) {
        *got = 0;
        LEAT_TRY(read_now(f, buf, left, offset, err));
    }
    *got = len;
    return 0;
}

void leat__remote_settle(leat__remote *f)
{
    if (!is_ours(f)) return;
    leat__mutex_lock(&f->lock);
    uint8_t *tail = f->tail;
    f->tail = NULL;
    leat__mutex_unlock(&f->lock);
    leat__free(tail);
    leat__ahead_drop(f->ahead);
}
