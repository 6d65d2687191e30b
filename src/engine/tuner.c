/* SPDX-License-Identifier: Apache-2.0
 *
 * Tuners: the controller's memory across consecutive flows. `mutex` guards the decisions, which
 * any thread reads. The rest is used by the flow that has the tuner, under its pool's lock or
 * before it starts.
 *
 * Counters of a flow begin at 0. So the values seen by the last tick are stored relative to the flow's final
 * counts (negative, modulo 2^64). The next flow's first tick then covers the rest of the old flow too, so
 * that epochs shorter than a tick are tuned.
 */
#include "engine/tuner.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"

enum { KEPT = 64 };

struct leat_tuner {
    bool used;
    uint32_t stage_count;
    uint32_t values[3];
    uint64_t later; /* bit per stage: it completes asynchronously */
    leat__control_state control;
    leat__mutex mutex;
    uint64_t count;
    leat_decision last[KEPT];
};

int leat_tuner_open(leat_tuner **tuner, leat_error *err)
{
    LEAT_REQUIRE(tuner != NULL, err);
    leat_tuner *t = LEAT_NEW(ENGINE, leat_tuner);
    *tuner = t;
    if (!t) return leat__fail_nomem(err, sizeof *t, "a tuner");
    leat__mutex_init(&t->mutex);
    return 0;
}

void leat_tuner_close(leat_tuner **tuner)
{
    if (tuner == NULL) return;
    leat_tuner *t = *tuner;
    *tuner = NULL;
    if (!t) return;
    leat__mutex_destroy(&t->mutex);
    leat__free(t);
}

void leat__tuner_decided(leat_tuner *t, const leat_decision *d)
{
    LEAT_ASSERT(d->from != d->to);
    leat__mutex_lock(&t->mutex);
    leat_decision *kept = &t->last[t->count % KEPT];
    *kept = *d;
    kept->number = t->count++;
    leat__mutex_unlock(&t->mutex);
}

uint32_t leat_tuner_read(leat_tuner *t, uint64_t first, leat_decision *out, uint32_t max)
{
    if (t == NULL || (out == NULL && max > 0)) return 0;
    uint32_t count = 0;
    leat__mutex_lock(&t->mutex);
    if (t->count > KEPT) first = LEAT_MAX(first, t->count - KEPT);
    for (; first < t->count && count < max; first++) out[count++] = t->last[first % KEPT];
    leat__mutex_unlock(&t->mutex);
    return count;
}

void leat__tuner_recall(leat_flow *f)
{
    const leat_tuner *t = f->tuner;
    if (!t->used || t->stage_count != f->stage_count) return;
    for (int k = 0; k < 3; k++)
        if (!f->knobs[k].pinned) f->knobs[k].value = t->values[k];
    for (uint32_t i = 0; i < f->stage_count; i++) f->stages[i].answers_later = t->later >> i & 1;
    f->control = t->control;
}

void leat__tuner_remember(leat_flow *f, uint64_t now)
{
    LEAT_ASSERT(f->segment_count > 0);
    leat_tuner *t = f->tuner;
    leat__control_state *s = &t->control;
    t->used = true;
    t->stage_count = f->stage_count;
    t->later = 0;
    for (int k = 0; k < 3; k++) t->values[k] = f->knobs[k].value;
    *s = f->control;
    uint64_t blocked = f->blocked_ns + (f->blocked_since_ns ? now - f->blocked_since_ns : 0);
    /* After its end a flow had no work: do not count that time. */
    uint64_t until = f->ended_ns ? f->ended_ns : now;
    s->at_ns = until > s->at_ns ? until - s->at_ns : 0;
    s->results -= f->results;
    s->filled -= f->segments[f->segment_count - 1].filled;
    s->consumer_wait_ns -= f->consumer_wait_ns;
    s->blocked_ns -= blocked;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        const leat__stage *st = &f->stages[i];
        s->items[i] -= st->items;
        s->busy_ns[i] -= st->busy_ns;
        s->ready_ns[i] -= st->ready_ns;
        if (st->answers_later) t->later |= UINT64_C(1) << i;
    }
}
