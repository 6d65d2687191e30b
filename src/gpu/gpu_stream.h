/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of a device: work that is queued, and marks in it. A stream here never waits for
 * the default stream nor the default stream for it. Close them before the device. A stream is used by
 * one thread at a time, an event by any.
 */
#ifndef LEAT_GPU_GPU_STREAM_H
#define LEAT_GPU_GPU_STREAM_H

#include "gpu/device.h"

typedef struct leat__gpu_stream leat__gpu_stream;
typedef struct leat__gpu_event leat__gpu_event;

int leat__gpu_stream_open(leat__gpu_stream **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
/* Its kernels come before those of other streams that wait for room on the device. */
int leat__gpu_stream_open_urgent(leat__gpu_stream **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_stream_close(leat__gpu_stream **s); /* waits for all queued work */

void *leat__gpu_stream_handle(leat__gpu_stream *s); /* the driver's */

void leat__gpu_stream_drain(leat__gpu_stream *s); /* waits for all queued work, failed or not */

/* Queues a copy. The memory must stay until an event recorded after it has passed. */
int leat__gpu_copy_in(leat__gpu_stream *s, leat__gpu_memory to, const void *from, uint64_t bytes,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__gpu_copy_out(leat__gpu_stream *s, void *to, leat__gpu_memory from, uint64_t bytes,
                       leat_error *err) LEAT_MUST_CHECK;

/* `timed` events can be asked for the time between them. */
int leat__gpu_event_open(leat__gpu_event **e, leat__gpu *gpu, bool timed, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_event_close(leat__gpu_event **e);

int leat__gpu_event_record(leat__gpu_event *e, leat__gpu_stream *s, leat_error *err) LEAT_MUST_CHECK;
/* Marks all work of the process on the device so far, whatever its stream. Ends the capture of a CUDA graph
 * with an error, unless it is seen before: LEAT_EAGAIN, for captured streams without CU_STREAM_NON_BLOCKING.
 * LEAT_ENOTSUP: the driver is too old (before CUDA 12.5). */
int leat__gpu_event_record_all(leat__gpu_event *e, leat_error *err) LEAT_MUST_CHECK;

/* The same on a stream of the consumer (CUstream). LEAT_EAGAIN: it captures a graph. */
int leat__gpu_event_record_on(leat__gpu_event *e, uintptr_t stream, leat_error *err) LEAT_MUST_CHECK;

bool leat__gpu_event_passed(leat__gpu_event *e); /* also when the device failed: nothing runs any more */
int leat__gpu_event_wait(leat__gpu_event *e, leat_error *err) LEAT_MUST_CHECK; /* without using a CPU */
/* What is queued on `s` from now on begins after the event. */
int leat__gpu_stream_after(leat__gpu_stream *s, leat__gpu_event *e, leat_error *err) LEAT_MUST_CHECK;
double leat__gpu_event_seconds(leat__gpu_event *begin, leat__gpu_event *end); /* 0 when not known */

#endif
