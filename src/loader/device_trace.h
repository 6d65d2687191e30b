/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the trace for the streams of a loader's device: when copies and kernels ran, measured by events.
 * One event whose host time is known relates the device's clock to the host's; it is recorded again every
 * second. Everything is created at the first use, so a loader that is not traced pays nothing. One thread at
 * a time.
 */
#ifndef LEAT_LOADER_DEVICE_TRACE_H
#define LEAT_LOADER_DEVICE_TRACE_H

#include "gpu/gpu_stream.h"

#define LEAT__TRACE_STREAMS 8 /* maximum streams of a device */

/* Zeroed: nothing was traced. */
typedef struct leat__device_trace {
    leat__gpu_stream *stream; /* nothing else is queued on it */
    leat__gpu_event *event;
    uint64_t event_ns;                  /* the host's time of `event`; 0: not recorded yet */
    uint32_t number;                    /* number of the loader among those being traced, from 1 */
    uint32_t rows[LEAT__TRACE_STREAMS]; /* rows of the trace; 0: not made yet */
    bool failed;                        /* a driver call failed: nothing more is traced */
} leat__device_trace;

/* Call it while tracing is on, before the work of a batch is queued. */
void leat__device_trace_tick(leat__device_trace *t, leat__gpu *gpu);
/* Records work between two events that have passed, on `stream`, which always has the same name. */
void leat__device_trace_span(leat__device_trace *t, uint32_t stream, const char *stream_name,
                             const char *work, leat__gpu_event *begin, leat__gpu_event *end, int64_t arg);
void leat__device_trace_close(leat__device_trace *t);

#endif
