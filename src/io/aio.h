/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous whole reads: io_uring where the kernel allows it, else a few threads. The backend
 * is chosen at open (option, then the environment LEAT_IO=uring|threads, then what works) and
 * affects only speed.
 *
 * A request belongs to the caller and must stay in place from submit until it is done. It completes exactly
 * once: a thread of the lane calls `done` or, when `done` is NULL, leat__aio_wait() returns it. Any thread
 * may submit and wait. submit never blocks on I/O: requests beyond the depth are queued. Remote files go to
 * the HTTP loop, which has its own limit of requests and joins neighbouring reads; the depth does not apply
 * to them.
 */
#ifndef LEAT_IO_AIO_H
#define LEAT_IO_AIO_H

#include "io/file.h"
#include "io/remote.h"

typedef enum leat__aio_kind {
    LEAT__AIO_AUTO = 0,
    LEAT__AIO_URING,
    LEAT__AIO_THREADS,
    LEAT__AIO_MANUAL /* no thread: leat__aio_turn runs each read; for deterministic tests */
} leat__aio_kind;

typedef struct leat__aio_opts {
    leat__aio_kind kind; /* LEAT__AIO_AUTO; a forced kind that does not work gives LEAT_ENOTSUP */
    uint32_t depth;      /* reads in flight at once, 1..1024; 0 = 16 */
    uint32_t max_depth;  /* upper limit for depth_set; 0 = max(depth, 64) */
} leat__aio_opts;

typedef struct leat__aio_req leat__aio_req;
struct leat__aio_req {
    /* set by the caller */
    const leat__file *file; /* direct files: offset, len and buf aligned to LEAT__IO_ALIGN */
    uint64_t offset;
    void *buf;
    size_t len;
    void (*done)(leat__aio_req *req); /* must not block; may submit; may free the request */
    void *cookie;                     /* for the caller's use */
    /* set when done */
    int rc; /* 0: all `len` bytes were read; LEAT_EDATA: the file ended before; LEAT_EIO; LEAT_ECANCELED */
    int sys_errno;
    char note[256];              /* remote files: why it failed */
    uint64_t submit_ns, done_ns; /* of leat__clock_ns */
    /* private */
    leat__aio_req *next;
    size_t got;
    uint64_t hold_ns;
    bool seated;       /* the ring uses the file's descriptor */
    leat__range range; /* remote files */
};

typedef struct leat__aio leat__aio;

int leat__aio_open(leat__aio **a, const leat__aio_opts *opts, leat_error *err) LEAT_MUST_CHECK;
/* Cancels queued requests and waits for those in flight; all become done. */
void leat__aio_close(leat__aio **a);
leat__aio_kind leat__aio_backend(const leat__aio *a);

void leat__aio_submit(leat__aio *a, leat__aio_req *req);
/* Returns the next finished request without `done`; LEAT_ETIMEDOUT after deadline_ns (0 = do not
 * wait, UINT64_MAX = no deadline); LEAT_ENOENT when nothing is queued or in flight. */
int leat__aio_wait(leat__aio *a, leat__aio_req **req, uint64_t deadline_ns) LEAT_MUST_CHECK;

/* While on, reads of remote files end with LEAT_ECANCELED, including those in flight, so that a stop does not
 * wait for a dead network. */
void leat__aio_stop_remote(leat__aio *a, bool on);

/* Manual lanes: reads one queued request, chosen by `draw`, and calls its `done` on the caller's
 * thread; false when none is queued. */
bool leat__aio_turn(leat__aio *a, uint32_t draw);

void leat__aio_depth_set(leat__aio *a, uint32_t depth); /* clamped to 1..max_depth */
uint32_t leat__aio_depth(const leat__aio *a);
uint32_t leat__aio_in_flight(const leat__aio *a);

/* Describes the failure of a done request in err. */
int leat__aio_error(const leat__aio_req *req, leat_error *err);

#endif
