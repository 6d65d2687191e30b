/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures how long a step of the consumer takes on the device: records an event on its stream when a batch
 * is delivered, and one when the next batch is requested. Work queued in between runs between the events. A
 * loop that never waits for its device looks idle to the host; these spans show how long its steps are. Costs
 * two driver calls per step, which never wait.
 */
#ifndef LEAT_LOADER_STEP_SPANS_H
#define LEAT_LOADER_STEP_SPANS_H

#include "gpu/gpu_stream.h"

typedef struct leat__step_spans leat__step_spans;

int leat__step_spans_open(leat__step_spans **s, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
void leat__step_spans_close(leat__step_spans **s);

/* Called by the consumer's thread: begin when a batch was delivered, end when the next one is requested,
 * epoch at the start of an epoch. `capturing`: the thread captures a CUDA graph, so the span is dropped. */
void leat__step_spans_begin(leat__step_spans *s, uintptr_t stream);
void leat__step_spans_end(leat__step_spans *s, bool capturing);
void leat__step_spans_epoch(leat__step_spans *s); /* not while another thread reads */

/* Returns the mean over this epoch, or over `all`; 0 = no span has passed. Any thread. */
double leat__step_spans_ms(const leat__step_spans *s, bool all);

#endif
