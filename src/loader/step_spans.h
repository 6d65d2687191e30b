/* SPDX-License-Identifier: Apache-2.0
 *
 * What the device takes for a step of the consumer: an event on its stream when a batch is delivered, and one
 * when the next batch is asked for. Work that is queued in between runs between them. A loop that never waits
 * for its device looks idle to the host; these spans tell how long its steps are. Two calls of the
 * driver per step, which never wait.
 */
#ifndef LEAT_LOADER_STEP_SPANS_H
#define LEAT_LOADER_STEP_SPANS_H

#include "gpu/gpu_stream.h"

typedef struct leat__step_spans leat__step_spans;

int leat__step_spans_open(leat__step_spans **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__step_spans_close(leat__step_spans **s);

/* The consumer's thread: a batch was delivered; the next one is asked for; a new epoch. `capturing`: the
 * thread captures a CUDA graph, so the span is dropped. */
void leat__step_spans_begin(leat__step_spans *s, uintptr_t stream);
void leat__step_spans_end(leat__step_spans *s, bool capturing);
void leat__step_spans_epoch(leat__step_spans *s); /* not while another thread reads */

/* The mean of this epoch, or of `all`; 0 = none has passed. Any thread. */
double leat__step_spans_ms(const leat__step_spans *s, bool all);

#endif
