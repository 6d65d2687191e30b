/* SPDX-License-Identifier: Apache-2.0
 *
 * Meters: numbers that any thread writes without a lock and any thread may read at any time.
 *
 * A meter set is a named group (a flow, a loader). Meters are created at set-up, never in the hot
 * path, and live as long as their set. Each thread writes its own cache lines (see slot.h) and
 * readers add them up. A write costs 2 to 4 ns, no matter how many threads write
 * (bench/kernel_meter; docs/internals/meters.md).
 *
 *   counter  - grows: items, bytes, nanoseconds busy
 *   gauge    - goes up and down, last value wins: queue length, bytes charged. One cell for
 *              all threads: write it when a state changes, not per pixel
 *   timer    - count, sum, min, max and a histogram of durations (powers of two, 4 steps each)
 */
#ifndef LEAT_PROBE_METER_H
#define LEAT_PROBE_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct leat__meters leat__meters;
typedef struct leat__counter leat__counter;
typedef struct leat__gauge leat__gauge;
typedef struct leat__timer leat__timer;

/* Opens a set. A second open set of the same name is called "name-2", and so on, because exports identify
 * sets by name. Writers must have stopped before close. */
int leat__meters_open(leat__meters **set, const char *name, leat_error *err) LEAT_MUST_CHECK;
void leat__meters_close(leat__meters **set);

/* Turns meters off, to measure their cost (bench/meters_cost): meters created while off are NULL
 * and leat__meters_now returns 0. On by default. */
void leat__meters_enable(bool on);
bool leat__meters_enabled(void);
/* Returns the time, for the start or end of a measurement; 0 while meters are off. */
uint64_t leat__meters_now(void);

/* Create a meter. `name` is in snake_case and ends with its unit ("read_bytes", "decode_ns"). `label`
 * distinguishes stages ("stage=decode", "stage=decode,op=crop" or NULL). The same name and label return the
 * same meter. NULL when out of memory, when the name or label is malformed or reserved (leat__meter_name_ok),
 * when an open set uses the name for another kind of meter, or while meters are off. Writing to NULL does
 * nothing. */
leat__counter *leat__counter_make(leat__meters *set, const char *name, const char *label, const char *help);
leat__gauge *leat__gauge_make(leat__meters *set, const char *name, const char *label, const char *help);
leat__timer *leat__timer_make(leat__meters *set, const char *name, const char *label, const char *help);

/* True for a valid name: letters, digits and '_', not starting with a digit, at most 80. Endings that
 * OpenMetrics adds are not allowed (_total, _count, _sum, _bucket, _created, _info). */
bool leat__meter_name_ok(const char *name);

void leat__counter_add(leat__counter *c, uint64_t n);
uint64_t leat__counter_value(const leat__counter *c);
void leat__gauge_set(leat__gauge *g, int64_t v);
int64_t leat__gauge_value(const leat__gauge *g);
void leat__timer_record(leat__timer *t, uint64_t ns);

typedef struct leat__timer_stats {
    uint64_t count, sum_ns, min_ns, max_ns; /* all 0 when nothing was recorded */
    double p50_ns, p95_ns, p99_ns;          /* from the histogram: within 12.5 % */
} leat__timer_stats;

/* A snapshot of a timer. leat__timer_since returns what was recorded after it (NULL: since the timer was
 * made). Minimum and maximum are always since then. */
#define LEAT__TIMER_BUCKETS 188u
typedef struct leat__timer_mark {
    uint64_t sum_ns, buckets[LEAT__TIMER_BUCKETS];
} leat__timer_mark;
void leat__timer_take(const leat__timer *t, leat__timer_mark *mark);
void leat__timer_since(const leat__timer *t, const leat__timer_mark *mark, leat__timer_stats *stats);

/* Exports the set, or every open set of the process when set is NULL. OpenMetrics text has
 * durations in seconds ("decode_ns" is leat_decode_seconds) and ends with "# EOF". */
int leat__meters_openmetrics(leat__meters *set, leat__buf *out);

#endif
