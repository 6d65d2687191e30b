/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of a device. These streams do not synchronize with the default stream. Close them before
 * the device. A stream is used by one thread at a time, an event by any.
 */
#ifndef LEAT_GPU_GPU_STREAM_H
#define LEAT_GPU_GPU_STREAM_H

#include "gpu/device.h"

typedef struct leat__gpu_stream leat__gpu_stream;
typedef struct leat__gpu_event leat__gpu_event;

int leat__gpu_stream_open(leat__gpu_stream **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
/* Opens a stream with high priority: its kernels start before waiting kernels of other streams. */
int leat__gpu_stream_open_urgent(leat__gpu_stream **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_stream_close(leat__gpu_stream **s); /* waits for all queued work */

void *leat__gpu_stream_handle(leat__gpu_stream *s); /* the driver's handle */

void leat__gpu_stream_drain(leat__gpu_stream *s); /* waits for all queued work, failed or not */

/* Queue a copy. The host memory must stay valid until the copy is done, which an event recorded after it
 * shows. */
int leat__gpu_copy_in(leat__gpu_stream *s, leat__gpu_memory to, const void *from, uint64_t bytes,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__gpu_copy_out(leat__gpu_stream *s, void *to, leat__gpu_memory from, uint64_t bytes,
                       leat_error *err) LEAT_MUST_CHECK;

/* Opens an event. The time between two `timed` events can be read. */
int leat__gpu_event_open(leat__gpu_event **e, leat__gpu *gpu, bool timed, leat_error *err) LEAT_MUST_CHECK;
void leat__gpu_event_close(leat__gpu_event **e);

int leat__gpu_event_record(leat__gpu_event *e, leat__gpu_stream *s, leat_error *err) LEAT_MUST_CHECK;
/* Records an event after all work that the process has queued on the device, on any stream. LEAT_EAGAIN: a
 * CUDA graph is being captured. This is detected only for streams without CU_STREAM_NON_BLOCKING; any other
 * capture would end with an error. LEAT_ENOTSUP: the driver is too old (before CUDA 12.5). */
int leat__gpu_event_record_all(leat__gpu_event *e, leat_error *err) LEAT_MUST_CHECK;

/* Records an event on a stream of the consumer (CUstream). LEAT_EAGAIN: the stream is being captured. */
int leat__gpu_event_record_on(leat__gpu_event *e, uintptr_t stream, leat_error *err) LEAT_MUST_CHECK;

bool leat__gpu_event_passed(
    leat__gpu_event *e); /* also true when the device failed, because nothing runs any more */
int leat__gpu_event_wait(leat__gpu_event *e,
                         leat_error *err) LEAT_MUST_CHECK; /* sleeps, without using a CPU */
/* Makes work queued on `s` from now on wait for the event. */
int leat__gpu_stream_after(leat__gpu_stream *s, leat__gpu_event *e, leat_error *err) LEAT_MUST_CHECK;
double leat__gpu_event_seconds(leat__gpu_event *begin, leat__gpu_event *end); /* 0 when not known */

#endif
