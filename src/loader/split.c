/* SPDX-License-Identifier: Apache-2.0
 *
 * The split: see split.h. One thread: the consumer's.
 */
#include "loader/split.h"

#include "base/check.h"

#define WHOLE 16u
#define WINDOW 8u            /* batches */
#define WAITS 0.01           /* share of time waited above which the CPUs do not keep up */
#define FAR 0.1              /* share of time waited above which steps are larger */
#define CALM 0.002           /* share of time waited below which the CPUs keep up */
#define CALM_WINDOWS 8u      /* calm windows before the device gets less */
#define FLOOR_WINDOWS 256u   /* windows after which a lower share is tried again */
#define SLOWER 2             /* or when a step takes this many times as long */
#define HANDOVER_NS 1000000u /* shorter waits are the cost of taking a ready batch, not waiting */

static void end_window(leat__split *s, double waits, uint64_t step_ns)
{
    if (waits > WAITS) {
        if (waits > FAR) s->share += WHOLE / 2;
        else if (s->calm == 0 && s->share < WHOLE) s->share += s->share < 4 ? 2 : 4;
        else if (s->share < WHOLE) s->share += 1; /* a share just below was enough shortly before */
        if (s->share > WHOLE) s->share = WHOLE;
        LEAT_ASSERT(s->floor <= WHOLE);
        s->floor = s->share;
        s->floor_step_ns = step_ns;
        s->floor_age = s->calm = 0;
        return;
    }
    const bool slower = step_ns / SLOWER > s->floor_step_ns;
    if (++s->floor_age > FLOOR_WINDOWS || slower) s->floor = 0;
    s->calm = waits < CALM ? s->calm + 1 : 0;
    if (s->calm < CALM_WINDOWS || s->share <= s->floor) return;
    s->share -= slower ? (s->share + 1) / 2 : 1;
    s->calm = 1;
}

uint32_t leat__split_step(leat__split *s, uint64_t waited_ns, uint64_t now_ns, bool batch)
{
    LEAT_ASSERT(s->share <= WHOLE);
    s->waited_ns += waited_ns;
    if (s->begin_ns == 0) { /* the first batch includes the start of the epoch */
        s->begin_ns = batch ? now_ns : 0;
        s->waited_ns = 0;
        return s->share;
    }
    if (!batch || ++s->batches < WINDOW) return s->share;
    uint64_t span = now_ns - s->begin_ns;
    const uint64_t trained = span > s->waited_ns ? span - s->waited_ns : 0;
    const uint64_t handover = WINDOW * HANDOVER_NS;
    const uint64_t lacked = s->waited_ns > handover ? s->waited_ns - handover : 0;
    end_window(s, span > 0 ? (double)lacked / (double)span : 0, trained / WINDOW);
    s->begin_ns = now_ns;
    s->waited_ns = 0;
    s->batches = 0;
    return s->share;
}
