/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP requests through libcurl's multi interface: one thread of the process (leat-http) drives
 * all connections. It starts with the first user and ends with the last.
 *
 * A request belongs to the caller and must stay in place until `done`. The loop makes one or more attempts.
 * Each is prepared again (a signature has a date, a resumed body a different range), judged, and retried with
 * backoff and jitter while a retry can help. Time-outs measure lack of progress, not total time. All
 * callbacks run on the loop's thread, must not block, and may submit.
 */
#ifndef LEAT_IO_HTTP_H
#define LEAT_IO_HTTP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/thread.h"

typedef struct leat__http leat__http;
typedef struct leat__http_req leat__http_req;

typedef enum leat__http_verdict {
    LEAT__HTTP_DONE, /* the request has ended, the result is in req->rc */
    LEAT__HTTP_AGAIN /* retry, while attempts are left */
} leat__http_verdict;

typedef struct leat__http_ops {
    /* Fills url and headers (leat__http_header) of the next attempt. LEAT_EAGAIN: try again soon;
     * LEAT_ECLOSED: nothing is left to request, so the request is done. */
    int (*prepare)(leat__http_req *r, leat_error *err);
    /* Called when the headers of a 2xx answer arrived. Non-zero refuses the body; then `judge` decides. */
    int (*accept)(leat__http_req *r);
    /* Receives a piece of a 2xx body. NULL: the body is collected in `body`. */
    void (*take)(leat__http_req *r, const char *data, size_t len);
    /* Called when an attempt ended with an answer (or was refused). NULL: 2xx is success. */
    leat__http_verdict (*judge)(leat__http_req *r);
    void (*done)(leat__http_req *r);
    /* Called once per attempt when it takes much longer than others of its size (`expect`) and the traffic
     * budget allows a second request. NULL: no second request is sent. */
    void (*late)(leat__http_req *r);
} leat__http_ops;

struct leat__http_req {
    /* set by the caller, zero elsewhere */
    const leat__http_ops *ops;
    const char *what;   /* path for messages; no secrets */
    const char *method; /* GET HEAD PUT POST DELETE */
    const void *send;   /* body of PUT and POST; stays in place */
    size_t send_len;
    size_t body_max;   /* of a collected body; 0 = 1 MiB */
    const void *owner; /* for leat__http_cancel */
    bool urgent;       /* a thread waits for the answer, so the request is sent first */
    bool once;         /* no retry */
    bool quick;        /* short time-outs (1 to 2 s), for a server that is either near or absent */
    bool follow;       /* follow redirects */
    uint64_t delay_ns; /* wait before the first attempt, so that neighbouring ranges can join it */
    void *cookie;
    /* of one attempt */
    leat__buf url;
    void *headers;   /* libcurl's list */
    uint64_t expect; /* bytes requested, set by prepare; 0 = never late */
    /* answer */
    long status; /* 0: none */
    char etag[160], modified[64], region[64];
    uint64_t length;           /* of the body, UINT64_MAX unknown */
    bool has_range, odd_range; /* odd: the Content-Range is invalid */
    uint64_t range_first, range_last, range_total;
    uint32_t retry_after_s;
    leat__buf body; /* collected, or the text of an error */
    uint64_t taken; /* body bytes of this attempt that `take` received */
    bool refused;   /* `accept` refused the body */
    /* result */
    int rc;
    leat_error err;
    uint32_t attempts; /* includes those that libcurl made by itself */
    /* private */
    uint32_t barren; /* consecutive attempts with a body of less than 1 KiB */
    uint64_t due_ns;
    void *easy;
    size_t sent;
    bool canceled, told_late;
    uint64_t begun_ns; /* start of the attempt */
    uint64_t heard_ns; /* time of the last bytes of the answer; 0 = none yet */
    leat__http_req *next;
};

/* Returns the loop of this process. LEAT_ENOTSUP without libcurl. */
int leat__http_ref(leat__http **h, leat_error *err) LEAT_MUST_CHECK;
void leat__http_unref(leat__http **h);

void leat__http_submit(leat__http *h, leat__http_req *r);
/* Submits and waits; the result is in rc and err. Frees everything the attempt used except
 * `body`. Not from a callback. `done` must be unset. */
int leat__http_run(leat__http *h, leat__http_req *r, leat_error *err) LEAT_MUST_CHECK;
/* Waits once for requests of `owner`, in a loop: `lock` and `ended` are those of the caller. Ctrl-C in Python
 * (leat__interrupt_hook) cancels them, unless `owner` is NULL. Returns whether they are canceled; `asked`:
 * the result of the previous call. */
bool leat__http_wait(leat__http *h, const void *owner, leat__cond *ended, leat__mutex *lock, bool asked);
/* Cancels all requests of an owner: they soon end with LEAT_ECANCELED and a call of `done`. */
void leat__http_cancel(leat__http *h, const void *owner);
/* Cancels one request, from a callback: it soon ends with LEAT_ECANCELED. */
void leat__http_drop(leat__http *h, leat__http_req *r);
void leat__http_req_reset(leat__http_req *r); /* frees url, headers, body */

/* In prepare: adds "name: value". */
int leat__http_header(leat__http_req *r, const char *name, const char *value);

/* Totals of this process. */
typedef struct leat__http_stats {
    uint64_t requests, retries, bytes_in, bytes_out, throttled;
    uint64_t hedged;      /* second requests for late ones */
    uint64_t answers;     /* attempts with an answer */
    uint64_t waited_ns;   /* sum of the times until the first header */
    uint64_t received_ns; /* sum of the times from the first header to the last byte */
} leat__http_stats;
void leat__http_read(leat__http_stats *s);

/* Returns the receive buffer of a request for this many bytes; 0 = unknown. No budget is charged for it, so
 * it is small beside the range. */
uint64_t leat__http_buffer_bytes(uint64_t range);

/* Limits and their defaults; environment variables set them and are read once (docs/remote.md). */
typedef struct leat__http_limits {
    uint32_t connections; /* LEAT_REMOTE_CONNECTIONS, 64 */
    uint32_t tries;       /* attempts without progress: LEAT_REMOTE_TRIES, 8 */
    uint32_t stall_s;     /* LEAT_REMOTE_STALL_S, 20 */
    uint32_t connect_s;   /* LEAT_REMOTE_CONNECT_S, 10 */
    bool hedge;           /* LEAT_REMOTE_HEDGE, on unless it is "0" */
} leat__http_limits;

#endif
