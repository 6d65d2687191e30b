/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace rings: spans and instants with a time stamp, one ring per thread, newest kept. Off by
 * default: a span then costs one load and one branch. Written without locks; exported as
 * Chrome trace JSON (chrome://tracing, Perfetto), one track per thread.
 *
 * `name` must be a string that lives as long as the process (a literal or an interned name).
 */
#ifndef LEAT_PROBE_TRACE_H
#define LEAT_PROBE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

int leat__trace_start(uint32_t events_per_thread, leat_error *err) LEAT_MUST_CHECK;
void leat__trace_stop(void);  /* keeps what was recorded */
void leat__trace_reset(void); /* drops it; only while stopped */
bool leat__trace_on(void);

void leat__trace_span(const char *name, uint64_t begin_ns, uint64_t end_ns, int64_t arg);
void leat__trace_instant(const char *name, int64_t arg);
void leat__trace_counter(const char *name, int64_t value);
uint64_t leat__trace_dropped(void); /* events overwritten or lost so far */

int leat__trace_json(leat__buf *out); /* while recording or stopped */

#endif
