/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory layout of meters, shared by meter.c, which writes them, and meter_text.c, which exports
 * them. Not for other files.
 */
#ifndef LEAT_PROBE_METER_SET_H
#define LEAT_PROBE_METER_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "probe/meter.h"
#include "probe/slot.h"

typedef enum leat__meter_kind { LEAT__METER_COUNTER, LEAT__METER_GAUGE, LEAT__METER_TIMER } leat__meter_kind;

#define LEAT__LABEL_PAIRS 8

/* The first fields of every meter. */
typedef struct leat__meter {
    struct leat__meter *next; /* in the set, in order of creation */
    leat__meter_kind kind;
    char *name, *label, *help; /* label and help may be NULL */
} leat__meter;

/* Histogram: bucket i holds lower < ns <= leat__timer_bucket_top(i). Four steps per power of
 * two up to 2^48 ns (78 hours); longer times fall into the last bucket. */
uint64_t leat__timer_bucket_top(uint32_t bucket);
/* Fills the histogram and returns the sum in ns. */
uint64_t leat__timer_buckets(const leat__timer *t, uint64_t buckets[LEAT__TIMER_BUCKETS]);

struct leat__meters {
    leat__meters *next; /* in the list of open sets */
    char *name;
    leat__meter *first, **last;
};

/* Guards the list of sets and the lists in them; never taken by a write to a meter. */
extern leat__mutex leat__meters_lock;
leat__meters *leat__meters_first_locked(void);

#endif
