/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events through the driver: see gpu_stream.h.
 */
#include "gpu/gpu_stream.h"

#include "base/mem.h"
#include "gpu/gpu_impl.h"

enum { STREAM_NON_BLOCKING = 1 };
enum { EVENT_BLOCKING = 1, EVENT_UNTIMED = 2 };
#define STREAM_LEGACY ((leat__cu_stream)(uintptr_t)1)

struct leat__gpu_stream {
    leat__gpu *gpu;
    leat__cu_stream s;
};

struct leat__gpu_event {
    leat__gpu *gpu;
    leat__cu_event e;
};

/* Makes one driver call in the device's context and returns its result. */
#define CALL(gpu, what, err, call)                                                                           \
    do {                                                                                                     \
        int mode_, rc_ = leat__gpu_enter(gpu, &mode_, err);                                                  \
        if (rc_ != 0) return rc_;                                                                            \
        rc_ = leat__cu_explain(&(gpu)->cu, (gpu)->cu.call, what, err);                                       \
        leat__gpu_leave(gpu, mode_);                                                                         \
        return rc_;                                                                                          \
    } while (0)

static int make_stream(leat__gpu_stream *s, bool urgent, leat_error *err)
{
    const leat__cu *const cu = &s->gpu->cu;
    int mode, rc, least, greatest;
    LEAT_TRY(leat__gpu_enter(s->gpu, &mode, err));
    if (urgent && cu->priorities(&least, &greatest) == 0)
        rc = cu->stream_urgent(&s->s, STREAM_NON_BLOCKING, greatest);
    else rc = cu->stream_make(&s->s, STREAM_NON_BLOCKING);
    leat__gpu_leave(s->gpu, mode);
    return leat__cu_explain(cu, rc, "a stream", err);
}

static int open_stream(leat__gpu_stream **out, leat__gpu *gpu, bool urgent, leat_error *err)
{
    leat__gpu_stream *s = LEAT_NEW(MISC, leat__gpu_stream);
    *out = s;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a stream");
    s->gpu = gpu;
    int rc = make_stream(s, urgent, err);
    if (rc == 0) return 0;
    leat__free(s);
    *out = NULL;
    return rc;
}

int leat__gpu_stream_open(leat__gpu_stream **out, leat__gpu *gpu, leat_error *err)
{
    return open_stream(out, gpu, false, err);
}

int leat__gpu_stream_open_urgent(leat__gpu_stream **out, leat__gpu *gpu, leat_error *err)
{
    return open_stream(out, gpu, true, err);
}

void leat__gpu_stream_close(leat__gpu_stream **out)
{
    leat__gpu_stream *s = *out;
    int mode;
    if (s == NULL) return;
    if (leat__gpu_enter(s->gpu, &mode, NULL) == 0) {
        s->gpu->cu.stream_wait(s->s);
        s->gpu->cu.stream_free(s->s);
        leat__gpu_leave(s->gpu, mode);
    }
    leat__free(s);
    *out = NULL;
}

void leat__gpu_stream_drain(leat__gpu_stream *s)
{
    int mode;
    if (leat__gpu_enter(s->gpu, &mode, NULL) != 0) return;
    s->gpu->cu.stream_wait(s->s);
    leat__gpu_leave(s->gpu, mode);
}

void *leat__gpu_stream_handle(leat__gpu_stream *s)
{
    return s->s;
}

int leat__gpu_copy_in(leat__gpu_stream *s, leat__gpu_memory to, const void *from, uint64_t bytes,
                      leat_error *err)
{
    if (bytes == 0) return 0;
    CALL(s->gpu, "copying to the device", err, copy(to, from, (size_t)bytes, s->s));
}

int leat__gpu_copy_out(leat__gpu_stream *s, void *to, leat__gpu_memory from, uint64_t bytes, leat_error *err)
{
    if (bytes == 0) return 0;
    CALL(s->gpu, "copying from the device", err, copy_back(to, from, (size_t)bytes, s->s));
}

static int make_event(leat__gpu_event *e, bool timed, leat_error *err)
{
    CALL(e->gpu, "an event", err, event_make(&e->e, EVENT_BLOCKING | (timed ? 0 : EVENT_UNTIMED)));
}

int leat__gpu_event_open(leat__gpu_event **out, leat__gpu *gpu, bool timed, leat_error *err)
{
    leat__gpu_event *e = LEAT_NEW(MISC, leat__gpu_event);
    *out = e;
    if (e == NULL) return leat__fail_nomem(err, sizeof *e, "an event");
    e->gpu = gpu;
    int rc = make_event(e, timed, err);
    if (rc == 0) return 0;
    leat__free(e);
    *out = NULL;
    return rc;
}

void leat__gpu_event_close(leat__gpu_event **out)
{
    leat__gpu_event *e = *out;
    int mode;
    if (e == NULL) return;
    if (leat__gpu_enter(e->gpu, &mode, NULL) == 0) {
        e->gpu->cu.event_free(e->e);
        leat__gpu_leave(e->gpu, mode);
    }
    leat__free(e);
    *out = NULL;
}

int leat__gpu_event_record(leat__gpu_event *e, leat__gpu_stream *s, leat_error *err)
{
    CALL(e->gpu, "recording an event", err, event_record(e->e, s->s));
}

/* True when any thread captures an ordinary stream of the context. The query does not disturb the capture,
 * but misses streams made with CU_STREAM_NON_BLOCKING. */
static bool captured(const leat__gpu *g)
{
    int status = 0;
    return g->cu.stream_captured(STREAM_LEGACY, &status) != 0 || status != 0;
}

int leat__gpu_event_record_all(leat__gpu_event *e, leat_error *err)
{
    leat__gpu *g = e->gpu;
    int mode, rc;
    if (g->cu.record_all == NULL)
        return leat__fail(err, LEAT_ENOTSUP, "the CUDA driver cannot mark the work of all streams");
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    if (captured(g)) rc = leat__fail(err, LEAT_EAGAIN, "a CUDA graph is being captured");
    else rc = leat__cu_explain(&g->cu, g->cu.record_all(g->ctx, e->e), "recording an event", err);
    leat__gpu_leave(g, mode);
    return rc;
}

int leat__gpu_event_record_on(leat__gpu_event *e, uintptr_t stream, leat_error *err)
{
    leat__gpu *g = e->gpu;
    leat__cu_stream s = (leat__cu_stream)stream; // NOLINT(performance-no-int-to-ptr): the driver's own number
    int mode, status = 0, rc;
    LEAT_TRY(leat__gpu_enter(g, &mode, err));
    if (g->cu.stream_captured(s, &status) != 0 || status != 0)
        rc = leat__fail(err, LEAT_EAGAIN, "a CUDA graph is being captured");
    else rc = leat__cu_explain(&g->cu, g->cu.event_record(e->e, s), "recording an event", err);
    leat__gpu_leave(g, mode);
    return rc;
}

bool leat__gpu_event_passed(leat__gpu_event *e)
{
    int mode;
    if (leat__gpu_enter(e->gpu, &mode, NULL) != 0) return true;
    int rc = e->gpu->cu.event_query(e->e);
    leat__gpu_leave(e->gpu, mode);
    return rc != LEAT__CU_NOT_READY;
}

int leat__gpu_event_wait(leat__gpu_event *e, leat_error *err)
{
    CALL(e->gpu, "waiting for the device", err, event_wait(e->e));
}

int leat__gpu_stream_after(leat__gpu_stream *s, leat__gpu_event *e, leat_error *err)
{
    CALL(s->gpu, "waiting for an event", err, stream_after(s->s, e->e, 0));
}

double leat__gpu_event_seconds(leat__gpu_event *begin, leat__gpu_event *end)
{
    float ms = 0;
    int mode;
    if (leat__gpu_enter(begin->gpu, &mode, NULL) != 0) return 0;
    int rc = begin->gpu->cu.event_span(&ms, begin->e, end->e);
    leat__gpu_leave(begin->gpu, mode);
    return rc == 0 ? (double)ms / 1e3 : 0;
}
