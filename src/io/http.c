/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of all HTTP requests: see http.h. Requests move
 *
 *   submit -> incoming (lock) -> waiting (for their time, or a free connection) -> active -> done
 *
 * and back to waiting for another attempt. Everything after `incoming` belongs to the loop's thread. The
 * number of active requests adapts to the server. It begins small, so that the first ranges do not share the
 * link, and doubles with every round trip. Each "slow down" answer halves the limit; other answers then raise
 * it slowly.
 */
#include "io/http.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <leat/version.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"
#include "io/curl_api.h"
#include "io/hedge.h"
#include "io/http_answer.h"

#define BODY_MAX (1u << 20)
#define BACKOFF_FIRST_NS (100 * LEAT_NS_PER_MS)
#define BACKOFF_MAX_NS (10 * LEAT_NS_PER_S)
#define INTERRUPT_NS (100 * LEAT_NS_PER_MS) /* between two questions whether to stop */
#define ATTEMPTS_MAX 1000u                  /* attempts that made progress */
#define PROGRESS_BYTES 1024u /* bytes of a body; an attempt that receives fewer made no progress */
#define ACTIVE_MIN 4.0
#define ACTIVE_FIRST 8.0
#define IDLE_MAX 64   /* easy handles kept for reuse */
#define EVENTS_MAX 64 /* sockets served in one round */
/* Receive buffer of one transfer. Larger ones save calls; more than BUFFER_MOST would be a new mapping per
 * request. */
#define BUFFER_PART 4 /* of the requested range */
#define BUFFER_LEAST (UINT64_C(16) << 10)
#define BUFFER_MOST (UINT64_C(100) << 10)

static _Atomic uint64_t total_requests, total_retries, total_in, total_out, total_throttled, total_hedged;
static _Atomic uint64_t total_answers, total_waited_ns, total_received_ns;

void leat__http_read(leat__http_stats *s)
{
    *s = (leat__http_stats){
        atomic_load(&total_requests), atomic_load(&total_retries),   atomic_load(&total_in),
        atomic_load(&total_out),      atomic_load(&total_throttled), atomic_load(&total_hedged),
        atomic_load(&total_answers),  atomic_load(&total_waited_ns), atomic_load(&total_received_ns)};
}

uint64_t leat__http_buffer_bytes(uint64_t range)
{
    if (range == 0) return BUFFER_MOST;
    return LEAT_MIN(LEAT_MAX(range / BUFFER_PART, BUFFER_LEAST), BUFFER_MOST);
}

#ifdef LEAT_HAVE_CURL

static leat__http_limits limits;
static leat__once limits_once = LEAT__ONCE_INIT;

static const char *bad_limit; /* name of an environment variable with an invalid value */

static uint32_t number_from(const char *name, uint32_t standard, uint32_t most)
{
    const char *text = getenv(name);
    uint64_t value;
    if (text == NULL || *text == '\0') return standard;
    if (leat__str_to_u64(text, &value) && value > 0) return (uint32_t)LEAT_MIN(value, most);
    bad_limit = name;
    return standard;
}

static void read_limits(void)
{
    limits.connections = number_from("LEAT_REMOTE_CONNECTIONS", 64, 1024);
    limits.tries = number_from("LEAT_REMOTE_TRIES", 8, 1000);
    limits.stall_s = number_from("LEAT_REMOTE_STALL_S", 20, 3600);
    limits.connect_s = number_from("LEAT_REMOTE_CONNECT_S", 10, 3600);
    const char *hedge = getenv("LEAT_REMOTE_HEDGE");
    limits.hedge = hedge == NULL || strcmp(hedge, "0") != 0;
    if (hedge != NULL && strcmp(hedge, "0") != 0 && strcmp(hedge, "1") != 0 && *hedge != '\0')
        bad_limit = "LEAT_REMOTE_HEDGE";
}

static const leat__http_limits *get_limits(void)
{
    leat__once_run(&limits_once, read_limits);
    return &limits;
}

struct leat__http {
    const leat__curl *curl;
    CURLM *multi;
    leat__thread thread;
    uint32_t users; /* guarded by process.lock */
    uint32_t generation;
    leat__mutex lock; /* guards the next four */
    leat__http_req *incoming_head, *incoming_tail;
    const void *cancel[64];
    size_t cancel_count;
    bool closing;
    /* used by the loop's thread */
    leat__http_req *waiting_head, *waiting_tail;
    leat__http_req *active; /* list */
    uint32_t active_count;
    double limit; /* maximum active requests */
    bool slowed;  /* the server has asked for fewer requests */
    uint64_t halved_ns;
    CURL *idle[IDLE_MAX];
    size_t idle_count;
    uint64_t jitter;
    leat__hedge hedge;
    bool dropped;      /* a request was canceled by leat__http_drop */
    int epoll, wake;   /* wake: an eventfd that ends a wait */
    uint64_t timer_ns; /* time at which libcurl must be called; UINT64_MAX = never */
};

static struct {
    leat__mutex lock;
    leat__http *loop;
} process = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

/* ---- one attempt ------------------------------------------------------------------------- */

int leat__http_header(leat__http_req *r, const char *name, const char *value)
{
    const leat__curl *curl;
    leat__buf line;
    if (strpbrk(value, "\r\n") != NULL)
        return leat__fail(&r->err, LEAT_EINVAL, "the value of the header %s has a line break", name);
    LEAT_TRY(leat__curl_load(&curl, NULL));
    leat__buf_init(&line, LEAT__MEM_IO, BODY_MAX);
    /* libcurl sends an empty value for "name;" and removes the header for "name:" */
    int rc = leat__buf_printf(&line, "%s: %s", name, value);
    struct curl_slist *list = rc == 0 ? curl->slist_append(r->headers, leat__buf_str(&line)) : NULL;
    leat__buf_reset(&line);
    if (list == NULL) return LEAT_ENOMEM;
    r->headers = list;
    return 0;
}

/* Adds the time since the attempt began, or since its last bytes, to the totals. */
static void hear(leat__http_req *r)
{
    uint64_t now = leat__clock_ns();
    if (r->heard_ns == 0) {
        atomic_fetch_add_explicit(&total_answers, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&total_waited_ns, now - r->begun_ns, memory_order_relaxed);
    } else {
        atomic_fetch_add_explicit(&total_received_ns, now - r->heard_ns, memory_order_relaxed);
    }
    r->heard_ns = now;
}

static size_t on_header(char *data, size_t size, size_t count, void *cookie)
{
    leat__http_req *r = cookie;
    size_t len = size * count, whole = len;
    hear(r);
    while (len > 0 && (data[len - 1] == '\r' || data[len - 1] == '\n')) len--;
    if (len > 5 && strncmp(data, "HTTP/", 5) == 0) { /* also after a redirect or "100 Continue" */
        const char *blank = memchr(data, ' ', len);
        leat__http_answer_clear(r);
        r->status = blank != NULL ? strtol(blank, NULL, 10) : 0;
    } else if (len > 0) {
        leat__http_answer_header(r, data, len);
    } else if (r->status / 100 == 2 && r->ops->accept != NULL && r->ops->accept(r) != 0) {
        r->refused = true;
        return 0; /* ends the transfer */
    }
    return whole;
}

static size_t on_body(char *data, size_t size, size_t count, void *cookie)
{
    leat__http_req *r = cookie;
    size_t len = size * count;
    hear(r);
    atomic_fetch_add_explicit(&total_in, len, memory_order_relaxed);
    if (r->status / 100 == 2 && r->ops->take != NULL) {
        r->taken += len;
        r->ops->take(r, data, len);
        return len;
    }
    if (leat__buf_append(&r->body, data, len) == 0) return len;
    return r->status / 100 == 2 ? 0 : len; /* the first part of an error page is enough */
}

static size_t on_send(char *data, size_t size, size_t count, void *cookie)
{
    leat__http_req *r = cookie;
    size_t len = LEAT_MIN(size * count, r->send_len - r->sent);
    memcpy(data, (const char *)r->send + r->sent, len);
    r->sent += len;
    atomic_fetch_add_explicit(&total_out, len, memory_order_relaxed);
    return len;
}

static int on_seek(void *cookie, curl_off_t offset, int origin)
{
    leat__http_req *r = cookie;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > r->send_len) return CURL_SEEKFUNC_FAIL;
    r->sent = (size_t)offset;
    r->attempts++; /* libcurl sends it again because a reused connection was closed without an answer */
    return CURL_SEEKFUNC_OK;
}

static void set_method(const leat__curl *curl, CURL *easy, leat__http_req *r)
{
    bool put = strcmp(r->method, "PUT") == 0, post = strcmp(r->method, "POST") == 0;
    if (strcmp(r->method, "HEAD") == 0) curl->easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (put) curl->easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    if (post) curl->easy_setopt(easy, CURLOPT_POST, 1L);
    if (put || post) {
        curl->easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
        curl->easy_setopt(easy, CURLOPT_READDATA, r);
        curl->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl->easy_setopt(easy, CURLOPT_SEEKDATA, r);
        curl->easy_setopt(easy, put ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE,
                          (curl_off_t)r->send_len);
    } else if (strcmp(r->method, "GET") != 0) {
        curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method);
    }
}

static void set_trust(const leat__curl *curl, CURL *easy)
{
    static const char *const names[] = {"LEAT_CA_FILE", "AWS_CA_BUNDLE", "SSL_CERT_FILE"};
    curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        const char *file = getenv(names[i]);
        if (file == NULL || *file == '\0') continue;
        curl->easy_setopt(easy, CURLOPT_CAINFO, file);
        return;
    }
}

static void set_up(leat__http *h, CURL *easy, leat__http_req *r)
{
    const leat__curl *curl = h->curl;
    const leat__http_limits *l = get_limits();
    curl->easy_setopt(easy, CURLOPT_URL, leat__buf_str(&r->url));
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, r->follow ? 1L : 0L);
    curl->easy_setopt(easy, CURLOPT_MAXREDIRS, 5L);
    /* Many connections are faster than many streams on one: a lost packet stalls only one of
     * them. */
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L); /* a key may have "." and ".." between slashes */
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "leat/" LEAT_VERSION);
    curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)leat__http_buffer_bytes(r->expect));
    curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, r->quick ? 1L : (long)l->connect_s);
    const long stall_s = r->quick ? 3L : (long)l->stall_s;
    /* Writes have no minimum rate: while servers join the parts of an upload, they only send a blank now and
     * then. */
    curl->easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT,
                      leat__http_reads(r) ? LEAT_MAX(PROGRESS_BYTES / stall_s, 1L) : 1L);
    curl->easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, stall_s);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, r);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, r);
    curl->easy_setopt(easy, CURLOPT_PRIVATE, r);
    curl->easy_setopt(easy, CURLOPT_HTTPHEADER, r->headers);
    set_method(curl, easy, r);
    set_trust(curl, easy);
}

/* ---- the loop ---------------------------------------------------------------------------- */

static void drop_headers(leat__http_req *r)
{
    const leat__curl *curl;
    if (r->headers != NULL && leat__curl_load(&curl, NULL) == 0) curl->slist_free_all(r->headers);
    r->headers = NULL;
}

void leat__http_req_reset(leat__http_req *r)
{
    drop_headers(r);
    leat__buf_reset(&r->url);
    leat__buf_reset(&r->body);
}

static void finish(leat__http_req *r, int rc)
{
    r->rc = rc;
    drop_headers(r);
    leat__buf_reset(&r->url);
    r->ops->done(r);
}

static void put_waiting(leat__http *h, leat__http_req *r)
{
    r->next = NULL;
    if (r->urgent) {
        r->next = h->waiting_head;
        h->waiting_head = r;
        if (h->waiting_tail == NULL) h->waiting_tail = r;
        return;
    }
    if (h->waiting_tail != NULL) h->waiting_tail->next = r;
    else h->waiting_head = r;
    h->waiting_tail = r;
}

static void throttled(leat__http *h)
{
    uint64_t now = leat__clock_ns();
    atomic_fetch_add_explicit(&total_throttled, 1, memory_order_relaxed);
    if (now - h->halved_ns < LEAT_NS_PER_S) return; /* at most one step down per second */
    h->halved_ns = now;
    h->slowed = true;
    h->limit = LEAT_MAX(h->limit / 2, ACTIVE_MIN);
}

/* "Full jitter": a random time up to the exponential bound, so that many clients that failed
 * together do not retry together. */
static uint64_t backoff(leat__http *h, const leat__http_req *r)
{
    if (r->retry_after_s > 0) return r->retry_after_s * LEAT_NS_PER_S;
    if (r->barren == 0) return 0; /* the last attempt made progress: resume at once */
    uint64_t bound = BACKOFF_FIRST_NS << LEAT_MIN(r->barren - 1, 10u);
    h->jitter = leat__mix64(h->jitter + leat__clock_ns());
    return h->jitter % LEAT_MIN(bound, BACKOFF_MAX_NS);
}

static void try_again(leat__http *h, leat__http_req *r)
{
    r->barren = r->taken >= PROGRESS_BYTES ? 0 : r->barren + 1;
    if (r->once || r->barren >= get_limits()->tries || r->attempts >= ATTEMPTS_MAX) {
        if (r->attempts > 1) leat__error_context(&r->err, "gave up after %u attempts", r->attempts);
        finish(r, r->rc != 0 ? r->rc : LEAT_EIO);
        return;
    }
    atomic_fetch_add_explicit(&total_retries, 1, memory_order_relaxed);
    r->due_ns = leat__clock_ns() + backoff(h, r);
    put_waiting(h, r);
}

static void begin(leat__http *h, leat__http_req *r)
{
    leat__http_answer_clear(r);
    drop_headers(r);
    leat__buf_clear(&r->url);
    r->told_late = false;
    r->sent = 0;
    r->taken = 0;
    r->expect = r->heard_ns = 0;
    int rc = r->ops->prepare(r, &r->err);
    /* servers that do not know "Expect: 100-continue" would cost a second per request */
    if (rc == 0 && r->send != NULL) rc = leat__http_header(r, "Expect", "");
    if (rc == LEAT_EAGAIN) {
        r->due_ns = leat__clock_ns() + 50 * LEAT_NS_PER_MS;
        put_waiting(h, r);
        return;
    }
    if (rc == LEAT_ECLOSED) {
        finish(r, 0);
        return;
    }
    CURL *easy = h->idle_count > 0 ? h->idle[--h->idle_count] : h->curl->easy_init();
    if (rc == 0 && easy == NULL) rc = leat__fail_nomem(&r->err, 4096, "a request");
    if (rc == 0) {
        set_up(h, easy, r);
        r->attempts++;
        r->begun_ns = leat__clock_ns();
        atomic_fetch_add_explicit(&total_requests, 1, memory_order_relaxed);
        if (h->curl->multi_add_handle(h->multi, easy) != CURLM_OK)
            rc = leat__fail(&r->err, LEAT_EINTERNAL, "%s: libcurl refused the request", r->what);
    }
    if (rc != 0) {
        if (easy != NULL) h->curl->easy_cleanup(easy);
        finish(r, rc);
        return;
    }
    r->easy = easy;
    r->next = h->active;
    h->active = r;
    h->active_count++;
}

static void stop_transfer(leat__http *h, leat__http_req *r)
{
    CURL *easy = r->easy;
    leat__http_req **at = &h->active;
    while (*at != r) at = &(*at)->next;
    *at = r->next;
    r->next = NULL;
    h->active_count--;
    h->curl->multi_remove_handle(h->multi, easy);
    h->curl->easy_reset(easy);
    r->easy = NULL;
    if (h->idle_count < IDLE_MAX) h->idle[h->idle_count++] = easy;
    else h->curl->easy_cleanup(easy);
}

static void ended(leat__http *h, leat__http_req *r, CURLcode code)
{
    stop_transfer(h, r);
    if (!r->refused) r->rc = 0;
    if (code != CURLE_OK && !r->refused) {
        bool tls = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
        /* also the code of a redirect to another protocol, which has a status */
        bool not_http = code == CURLE_UNSUPPORTED_PROTOCOL && r->status == 0;
        bool name = code == CURLE_URL_MALFORMAT || (code == CURLE_UNSUPPORTED_PROTOCOL && !not_http);
        if (r->status / 100 == 2 && code == CURLE_WRITE_ERROR && r->ops->take == NULL) {
            finish(r, leat__fail(&r->err, LEAT_ELIMIT, "%s: the response is too long", r->what));
            return;
        }
        r->rc = leat__fail(&r->err, tls ? LEAT_EPERM : LEAT_EIO, "%s: %s: %s%s", r->what, r->method,
                           not_http                           ? "the answer is not HTTP"
                           : code == CURLE_OPERATION_TIMEDOUT ? "no progress until the time-out"
                                                              : h->curl->easy_strerror(code),
                           tls ? " (--ca-file or LEAT_CA_FILE names the authorities to trust)" : "");
        if (tls || name) finish(r, r->rc); /* a retry cannot help */
        else try_again(h, r);
        return;
    }
    if (r->status / 100 == 2 && r->expect > 0)
        leat__hedge_note(&h->hedge, r->expect, leat__clock_ns() - r->begun_ns);
    if (r->status == 429 || r->status == 503) throttled(h);
    else if (r->status / 100 == 2)
        h->limit = LEAT_MIN(h->limit + (h->slowed ? 1 / h->limit : 1), (double)limits.connections);
    leat__http_verdict v = LEAT__HTTP_DONE;
    if (r->ops->judge != NULL) {
        v = r->ops->judge(r);
    } else if (r->status / 100 != 2) {
        leat__http_explain(r);
        v = leat__http_transient(r) ? LEAT__HTTP_AGAIN : LEAT__HTTP_DONE;
    }
    if (v == LEAT__HTTP_AGAIN) try_again(h, r);
    else finish(r, r->rc);
}

/* Ends a canceled request. EINTR tells the command that a signal ended the wait and that the message names
 * the path. */
static void end_canceled(leat__http_req *r)
{
    bool stop = leat__stop_asked();
    int rc =
        stop ? leat__fail(&r->err, LEAT_ECANCELED, "%s: interrupted while waiting for the server", r->what)
             : leat__fail(&r->err, LEAT_ECANCELED, "%s: %s was canceled", r->what, r->method);
    if (stop) r->err.sys_errno = EINTR;
    finish(r, rc);
}

static bool is_canceled(const leat__http *h, const leat__http_req *r)
{
    for (size_t i = 0; i < h->cancel_count; i++)
        if (h->cancel[i] == r->owner) return true;
    return false;
}

/* True for requests that write; others can be canceled without loss. */
static bool writes(const leat__http_req *r)
{
    return strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0;
}

/* Takes submitted requests and marks canceled ones. After leat__stop_ask nothing more is written, but a
 * DELETE in flight is completed, so that no unfinished upload is left. False when the loop must end. */
static bool take_incoming(leat__http *h)
{
    leat__mutex_lock(&h->lock);
    leat__http_req *list = h->incoming_head;
    h->incoming_head = h->incoming_tail = NULL;
    bool stop = leat__stop_asked(), any_canceled = h->cancel_count > 0 || h->dropped || stop;
    for (leat__http_req *r = list; stop && r != NULL; r = r->next) r->canceled |= writes(r);
    for (leat__http_req *r = h->waiting_head; any_canceled && r != NULL; r = r->next)
        r->canceled |= is_canceled(h, r) || (stop && (r->attempts > 0 || writes(r)));
    for (leat__http_req *r = h->active; any_canceled && r != NULL; r = r->next)
        r->canceled |= is_canceled(h, r) || (stop && (leat__http_reads(r) || writes(r)));
    h->dropped = false;
    h->cancel_count = 0;
    bool over = h->closing && list == NULL && h->waiting_head == NULL && h->active == NULL;
    leat__mutex_unlock(&h->lock);
    while (list != NULL) {
        leat__http_req *r = list;
        list = r->next;
        put_waiting(h, r);
    }
    for (leat__http_req *r = h->active, *next; any_canceled && r != NULL; r = next) {
        next = r->next;
        if (!r->canceled) continue;
        stop_transfer(h, r);
        end_canceled(r);
    }
    return !over;
}

/* Starts requests that are due; returns when the next is due, UINT64_MAX for none. */
static uint64_t start_due(leat__http *h)
{
    leat__http_req *list = h->waiting_head;
    uint64_t now = leat__clock_ns(), next_due = UINT64_MAX;
    h->waiting_head = h->waiting_tail = NULL;
    while (list != NULL) {
        leat__http_req *r = list;
        list = r->next;
        r->next = NULL;
        if (r->canceled) {
            end_canceled(r);
        } else if (r->due_ns > now) {
            next_due = LEAT_MIN(next_due, r->due_ns);
            bool urgent = r->urgent;
            r->urgent = false; /* in its place: must not be moved forward again */
            put_waiting(h, r);
            r->urgent = urgent;
        } else if (r->urgent || h->active_count < (uint32_t)h->limit) {
            begin(h, r);
        } else { /* the limit is reached: the rest stays in order */
            leat__http_req *last = r;
            r->next = list;
            while (last->next != NULL) last = last->next;
            if (h->waiting_tail != NULL) h->waiting_tail->next = r;
            else h->waiting_head = r;
            h->waiting_tail = last;
            break;
        }
    }
    return next_due;
}

/* Triggers second requests for late ones, except while the server asks for fewer requests. Returns when the
 * next request may be late. */
static uint64_t look_for_late(leat__http *h)
{
    uint64_t now = leat__clock_ns(), next = UINT64_MAX;
    if (!limits.hedge || (h->slowed && h->limit < limits.connections)) return UINT64_MAX;
    for (leat__http_req *r = h->active; r != NULL; r = r->next) {
        if (r->expect == 0 || r->told_late || r->ops->late == NULL) continue;
        uint64_t after = leat__hedge_after(&h->hedge, r->expect);
        if (after == UINT64_MAX) continue;
        if (now - r->begun_ns < after) {
            next = LEAT_MIN(next, r->begun_ns + after);
            continue;
        }
        r->told_late = true;
        if (!leat__hedge_spend(&h->hedge, r->expect, atomic_load(&total_in))) continue;
        atomic_fetch_add_explicit(&total_hedged, 1, memory_order_relaxed);
        r->ops->late(r);
    }
    return next;
}

/* Ends transfers that stopped in the middle of an answer. libcurl does so too, but only by the mean rate of
 * some seconds. Until the first byte arrives, only libcurl's limit applies. */
static void end_stalled(leat__http *h)
{
    uint64_t now = leat__clock_ns();
    for (leat__http_req *r = h->active, *next; r != NULL; r = next) {
        next = r->next;
        uint64_t most = (r->quick ? 3 : limits.stall_s) * LEAT_NS_PER_S;
        if (leat__http_reads(r) && r->heard_ns != 0 && now > r->heard_ns && now - r->heard_ns > most)
            ended(h, r, CURLE_OPERATION_TIMEDOUT);
    }
}

static void reap(leat__http *h)
{
    int left;
    for (CURLMsg *m; (m = h->curl->multi_info_read(h->multi, &left)) != NULL;) {
        if (m->msg != CURLMSG_DONE) continue;
        void *r = NULL;
        CURLcode code = m->data.result;
        h->curl->easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &r);
        ended(h, r, code);
    }
}

/* ---- sockets: libcurl names those it waits for, and epoll reports which are ready. So the cost of a round
 * depends on what arrived, not on what is in flight (curl_multi_perform checks every socket each time). */

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *cookie, void *unused)
{
    const leat__http *h = cookie;
    (void)easy, (void)unused;
    struct epoll_event e = {.data.fd = socket};
    if (what & CURL_POLL_IN) e.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) e.events |= EPOLLOUT;
    if (what == CURL_POLL_REMOVE) (void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, socket, &e);
    else if (epoll_ctl(h->epoll, EPOLL_CTL_MOD, socket, &e) != 0 && errno == ENOENT)
        (void)epoll_ctl(h->epoll, EPOLL_CTL_ADD, socket, &e);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *cookie)
{
    leat__http *h = cookie;
    (void)multi;
    h->timer_ns = ms < 0 ? UINT64_MAX : leat__clock_ns() + (uint64_t)ms * LEAT_NS_PER_MS;
    return 0;
}

static void wake_loop(const leat__http *h)
{
    const uint64_t one = 1;
    ssize_t n = write(h->wake, &one, sizeof one);
    (void)n; /* a full counter has already woken the loop */
}

static void serve(leat__http *h, const struct epoll_event *e)
{
    int running, events = 0;
    if (e->data.fd == h->wake) {
        uint64_t count;
        ssize_t n = read(h->wake, &count, sizeof count);
        (void)n;
        return;
    }
    /* reading or writing reports an error or a closed connection */
    if (e->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) events |= CURL_CSELECT_IN;
    if (e->events & EPOLLOUT) events |= CURL_CSELECT_OUT;
    (void)h->curl->multi_socket_action(h->multi, e->data.fd, events, &running);
}

/* Waits until `due` at most, then serves ready sockets and libcurl's timers. */
static void wait_and_serve(leat__http *h, uint64_t due)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t now = leat__clock_ns();
    int running;
    due = LEAT_MIN(LEAT_MIN(due, h->timer_ns), now + LEAT_NS_PER_S);
    int wait_ms = due > now ? (int)((due - now + LEAT_NS_PER_MS - 1) / LEAT_NS_PER_MS) : 0;
    int count = epoll_wait(h->epoll, events, EVENTS_MAX, wait_ms);
    for (int i = 0; i < count; i++) serve(h, &events[i]);
    if (h->timer_ns > leat__clock_ns()) return;
    h->timer_ns = UINT64_MAX; /* libcurl sets the next one */
    (void)h->curl->multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

static void loop_main(void *arg)
{
    leat__http *h = arg;
    while (take_incoming(h)) {
        uint64_t due = LEAT_MIN(start_due(h), look_for_late(h));
        if (h->waiting_head != NULL && h->active_count == 0 && due == UINT64_MAX) due = 0;
        if (h->dropped) due = 0;
        wait_and_serve(h, due);
        reap(h);
        end_stalled(h);
    }
}

/* ---- users ------------------------------------------------------------------------------- */

static void close_loop(leat__http *h)
{
    for (size_t i = 0; i < h->idle_count; i++) h->curl->easy_cleanup(h->idle[i]);
    if (h->multi != NULL) h->curl->multi_cleanup(h->multi);
    if (h->epoll >= 0) (void)close(h->epoll);
    if (h->wake >= 0) (void)close(h->wake);
    leat__mutex_destroy(&h->lock);
    leat__free(h);
}

static int open_sockets(leat__http *h, leat_error *err)
{
    struct epoll_event e = {.events = EPOLLIN};
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->wake = e.data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->epoll < 0 || h->wake < 0 || epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->wake, &e) != 0)
        return leat__fail_errno(err, errno, "cannot wait for connections");
    const leat__curl *curl = h->curl;
    curl->multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)limits.connections + 16);
    curl->multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl->multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl->multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl->multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    return 0;
}

static int open_loop(leat__http **out, leat_error *err)
{
    const leat__curl *curl;
    LEAT_TRY(leat__curl_load(&curl, err));
    leat__http *h = LEAT_NEW(IO, leat__http);
    if (h == NULL) return leat__fail_nomem(err, sizeof *h, "the HTTP loop");
    h->curl = curl;
    h->generation = leat__fork_generation();
    h->limit = LEAT_MIN(ACTIVE_FIRST, (double)get_limits()->connections);
    h->jitter = leat__clock_wall_ns();
    h->epoll = h->wake = -1;
    h->timer_ns = UINT64_MAX;
    leat__mutex_init(&h->lock);
    h->multi = curl->multi_init();
    int rc = h->multi == NULL ? leat__fail_nomem(err, 4096, "the HTTP loop") : 0;
    if (rc == 0) rc = open_sockets(h, err);
    if (rc == 0) rc = leat__thread_start(&h->thread, "leat-http", loop_main, h, err);
    if (rc != 0) {
        close_loop(h);
        return rc;
    }
    *out = h;
    return 0;
}

int leat__http_ref(leat__http **out, leat_error *err)
{
    int rc = 0;
    *out = NULL;
    (void)get_limits();
    if (bad_limit != NULL)
        return leat__fail(err, LEAT_EINVAL, "%s: '%.40s' is not %s", bad_limit, getenv(bad_limit),
                          strcmp(bad_limit, "LEAT_REMOTE_HEDGE") == 0 ? "0 or 1" : "a whole number above 0");
    leat__fork_renew(&process.lock);
    leat__mutex_lock(&process.lock);
    /* After a fork the thread belongs to the parent: the child starts a new loop. */
    if (process.loop != NULL && process.loop->generation != leat__fork_generation()) process.loop = NULL;
    if (process.loop == NULL) rc = open_loop(&process.loop, err);
    if (rc == 0) {
        process.loop->users++;
        *out = process.loop;
    }
    leat__mutex_unlock(&process.lock);
    return rc;
}

void leat__http_unref(leat__http **loop)
{
    leat__http *h = *loop;
    *loop = NULL;
    if (h == NULL || h->generation != leat__fork_generation()) return;
    leat__mutex_lock(&process.lock);
    bool last = --h->users == 0;
    if (last && process.loop == h) process.loop = NULL;
    leat__mutex_unlock(&process.lock);
    if (!last) return;
    leat__mutex_lock(&h->lock);
    h->closing = true;
    leat__mutex_unlock(&h->lock);
    wake_loop(h);
    leat__thread_join(&h->thread);
    close_loop(h);
}

void leat__http_submit(leat__http *h, leat__http_req *r)
{
    leat__buf_init(&r->url, LEAT__MEM_IO, BODY_MAX);
    leat__buf_init(&r->body, LEAT__MEM_IO, r->body_max != 0 ? r->body_max : BODY_MAX);
    r->headers = r->easy = NULL;
    r->rc = 0;
    leat__error_reset(&r->err);
    r->attempts = r->barren = 0;
    r->due_ns = r->delay_ns != 0 ? leat__clock_ns() + r->delay_ns : 0;
    r->canceled = false;
    r->next = NULL;
    if (h->generation != leat__fork_generation()) {
        finish(r, leat__fail(&r->err, LEAT_EFORK, "%s: opened before a fork; open it again", r->what));
        return;
    }
    leat__mutex_lock(&h->lock);
    if (h->incoming_tail != NULL) h->incoming_tail->next = r;
    else h->incoming_head = r;
    h->incoming_tail = r;
    leat__mutex_unlock(&h->lock);
    wake_loop(h);
}

void leat__http_drop(leat__http *h, leat__http_req *r)
{
    r->canceled = true;
    h->dropped = true;
}

void leat__http_cancel(leat__http *h, const void *owner)
{
    for (bool put = false; !put;) {
        leat__mutex_lock(&h->lock);
        put = h->cancel_count < LEAT_COUNT(h->cancel);
        if (put) h->cancel[h->cancel_count++] = owner;
        /* requests submitted later are not affected */
        for (leat__http_req *r = h->incoming_head; put && r != NULL; r = r->next)
            r->canceled |= r->owner == owner;
        leat__mutex_unlock(&h->lock);
        wake_loop(h);
        if (!put) leat__sleep_ns(LEAT_NS_PER_MS);
    }
}

#else

int leat__http_ref(leat__http **h, leat_error *err)
{
    *h = NULL;
    return leat__fail(err, LEAT_ENOTSUP,
                      "this build has no remote storage: it was built without the "
                      "headers of libcurl");
}

void leat__http_unref(leat__http **h)
{
    *h = NULL;
}

int leat__http_header(leat__http_req *r, const char *name, const char *value)
{
    (void)r, (void)name, (void)value;
    return LEAT_ENOTSUP;
}

void leat__http_req_reset(leat__http_req *r)
{
    leat__buf_reset(&r->url);
    leat__buf_reset(&r->body);
}

void leat__http_submit(leat__http *h, leat__http_req *r)
{
    (void)h;
    r->rc = LEAT_ENOTSUP;
    r->ops->done(r);
}

void leat__http_cancel(leat__http *h, const void *owner)
{
    (void)h, (void)owner;
}

void leat__http_drop(leat__http *h, leat__http_req *r)
{
    (void)h, (void)r;
}

#endif

/* ---- waiting for one --------------------------------------------------------------------- */

typedef struct waiter {
    leat__mutex lock;
    leat__cond ended;
    leat__http_ops ops;
    bool over;
} waiter;

static void wake(leat__http_req *r)
{
    waiter *w = (waiter *)((char *)r->ops - offsetof(waiter, ops));
    leat__mutex_lock(&w->lock);
    w->over = true;
    leat__cond_signal(&w->ended);
    leat__mutex_unlock(&w->lock);
}

bool leat__http_wait(leat__http *h, const void *owner, leat__cond *ended, leat__mutex *lock, bool asked)
{
    if (asked || owner == NULL || !leat__interrupt_hooked()) {
        leat__cond_wait(ended, lock);
        return asked;
    }
    if (leat__cond_wait_until(ended, lock, leat__clock_ns() + INTERRUPT_NS)) return false;
    leat__mutex_unlock(lock); /* the hook may run Python code */
    asked = leat__interrupted();
    if (asked) leat__http_cancel(h, owner);
    leat__mutex_lock(lock);
    return asked;
}

int leat__http_run(leat__http *h, leat__http_req *r, leat_error *err)
{
    waiter w = {.over = false};
    const leat__http_ops *ops = r->ops;
    leat__mutex_init(&w.lock);
    leat__cond_init(&w.ended);
    w.ops = *ops;
    w.ops.done = wake;
    r->ops = &w.ops;
    /* Ctrl-C ends only reads */
    if (r->owner == NULL && r->send == NULL && leat__http_reads(r)) r->owner = &w;
    leat__http_submit(h, r);
    leat__mutex_lock(&w.lock);
    for (bool asked = false; !w.over;)
        asked = leat__http_wait(h, r->owner == &w ? &w : NULL, &w.ended, &w.lock, asked);
    leat__mutex_unlock(&w.lock);
    leat__cond_destroy(&w.ended);
    leat__mutex_destroy(&w.lock);
    r->ops = ops;
    if (r->owner == &w) r->owner = NULL;
    if (r->rc != 0 && err != NULL) *err = r->err;
    return r->rc;
}
