/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace rings: time-stamped spans. Each thread has a ring that keeps the newest ones. Off by default: an
 * event then costs one load and one branch. Rings are written without locks and can be exported at any time
 * as Chrome trace JSON (chrome://tracing, Perfetto), one row per thread. Work outside threads, such as a GPU
 * stream's, has separate rows.
 *
 * `name` must be a string that lives as long as the process (a literal or an interned name).
 *
 *   uint64_t begin = leat__trace_begin();
 *   …
 *   leat__trace_end("decode", begin, sample);
 */
#ifndef LEAT_PROBE_TRACE_H
#define LEAT_PROBE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"

/* Starts recording. events_per_thread: 0 = 16384; at most 2^22; rounded up to a power of two. Each thread's
 * first event creates its ring; events of an earlier recording are kept. LEAT_ESTATE: already on. */
int leat__trace_start(uint32_t events_per_thread, leat_error *err) LEAT_MUST_CHECK;
void leat__trace_stop(void);  /* keeps the recorded events */
void leat__trace_reset(void); /* drops the events and frees the rings; stops recording first if
                               * needed */

extern _Atomic bool leat__trace_is_on;
static inline bool leat__trace_on(void)
{
    return atomic_load_explicit(&leat__trace_is_on, memory_order_relaxed);
}

void leat__trace_span(const char *name, uint64_t begin_ns, uint64_t end_ns, int64_t arg);
/* Returns a row that does not belong to a thread; the same name gives the same row. 0: there are too many. */
uint32_t leat__trace_row(const char *name);
/* Records a span on that row; 0: on the row of this thread. */
void leat__trace_span_on(uint32_t row, const char *name, uint64_t begin_ns, uint64_t end_ns, int64_t arg);
uint64_t leat__trace_dropped(void); /* events overwritten or lost so far */

/* Begin and end a span; the clock is read only while tracing is on. */
static inline uint64_t leat__trace_begin(void)
{
    return leat__trace_on() ? leat__clock_ns() : 0;
}

static inline void leat__trace_end(const char *name, uint64_t begin_ns, int64_t arg)
{
    if (begin_ns != 0 && leat__trace_on()) {
        leat__trace_span(name, begin_ns, leat__clock_ns(), arg);
    }
}

int leat__trace_json(leat__buf *out); /* while recording or stopped */

#endif
