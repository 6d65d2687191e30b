/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's streams in the trace: see device_trace.h.
 */
#include "loader/device_trace.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/thread.h"
#include "probe/trace.h"

#define AGAIN_NS LEAT_NS_PER_S /* the clocks of host and device drift apart */
#define WAIT_NS (10 * LEAT_NS_PER_MS)
#define NUMBERS 64u

/* Loaders being traced, a bit each; the rows of a closed one are reused. */
static _Atomic uint64_t numbers;

static uint32_t take_number(void)
{
    uint64_t known = atomic_load(&numbers);
    uint32_t i;
    do {
        for (i = 0; i < NUMBERS - 1 && (known >> i & 1) != 0; i++) continue;
    } while (!atomic_compare_exchange_weak(&numbers, &known, known | UINT64_C(1) << i));
    return i + 1;
}

/* Relates the device's clock to the host's: the event's time is between two reads of the host's clock. */
static int set_clock(leat__device_trace *t)
{
    const uint64_t begin = leat__clock_ns();
    leat_error err;
    LEAT_TRY(leat__gpu_event_record(t->event, t->stream, &err));
    while (!leat__gpu_event_passed(t->event) && leat__clock_ns() < begin + WAIT_NS) leat__thread_yield();
    LEAT_TRY(leat__gpu_event_wait(t->event, &err));
    t->event_ns = begin + (leat__clock_ns() - begin) / 2;
    return 0;
}

void leat__device_trace_tick(leat__device_trace *t, leat__gpu *gpu)
{
    leat_error err;
    if (t->failed || !leat__trace_on()) return;
    if (t->number == 0) t->number = take_number();
    if (t->event_ns != 0 && leat__clock_ns() < t->event_ns + AGAIN_NS) return;
    t->failed = (t->stream == NULL && leat__gpu_stream_open(&t->stream, gpu, &err) != 0) ||
                (t->event == NULL && leat__gpu_event_open(&t->event, gpu, true, &err) != 0) ||
                set_clock(t) != 0;
}

void leat__device_trace_span(leat__device_trace *t, uint32_t stream, const char *stream_name,
                             const char *work, leat__gpu_event *begin, leat__gpu_event *end, int64_t arg)
{
    if (t->failed || t->event_ns == 0 || stream >= LEAT__TRACE_STREAMS || !leat__trace_on()) return;
    if (t->rows[stream] == 0) {
        char name[48];
        snprintf(name, sizeof name, t->number > 1 ? "%s (loader %u)" : "%s", stream_name, t->number);
        t->rows[stream] = leat__trace_row(name);
    }
    /* negative for work that began before the event was recorded again */
    const double since = leat__gpu_event_seconds(t->event, begin) * 1e9;
    const double length = leat__gpu_event_seconds(begin, end) * 1e9;
    const uint64_t from = (uint64_t)LEAT_MAX((double)t->event_ns + since, 1.0);
    leat__trace_span_on(t->rows[stream], work, from, from + (uint64_t)LEAT_MAX(length, 0.0), arg);
}

void leat__device_trace_close(leat__device_trace *t)
{
    leat__gpu_event_close(&t->event);
    leat__gpu_stream_close(&t->stream);
    if (t->number > 0) atomic_fetch_and(&numbers, ~(UINT64_C(1) << (t->number - 1)));
    *t = (leat__device_trace){0};
}
