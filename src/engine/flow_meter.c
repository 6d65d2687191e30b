/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports a flow's statistics as meters of the probe module (OpenMetrics). Owns one meter set per running
 * flow, updated when tasks settle, which costs a few ns per lock hold. The scheduler uses its own counters,
 * so a flow also works without meters.
 */
#include "engine/flow_meter.h"

#include <stdio.h>

#include "base/mem.h"
#include "probe/meter.h"

typedef struct stage_meters {
    leat__counter *items, *failed, *bytes, *busy, *wait;
    leat__gauge *ready;
} stage_meters;

struct leat__flow_meters {
    leat__meters *set;
    leat__gauge *charged;
    stage_meters stage[LEAT__STAGES_MAX];
};

int leat__flow_meters_open(leat_flow *f, leat_error *err)
{
    if (f->pool->replay || f->meters) return 0;
    leat__flow_meters *m = LEAT_NEW(ENGINE, leat__flow_meters);
    if (!m) return leat__fail_nomem(err, sizeof *m, "a flow's meters");
    f->meters = m;
    LEAT_TRY(leat__meters_open(&m->set, f->name,
                               err)); /* on failure, closing the flow closes the half-built set */
    m->charged = leat__gauge_make(m->set, "charged_bytes", NULL, "bytes the flow holds");
    /* A stage whose name is not a valid label has no meters; writing to NULL does nothing. */
    for (uint32_t i = 0; i < f->stage_count; i++) {
        char label[48];
        snprintf(label, sizeof label, "stage=%s", f->stages[i].name);
        stage_meters *s = &m->stage[i];
        s->items = leat__counter_make(m->set, "stage_items", label, "tasks that finished here");
        s->failed = leat__counter_make(m->set, "stage_failed", label, "tasks that failed here");
        s->bytes = leat__counter_make(m->set, "stage_bytes", label, "bytes they held afterwards");
        s->busy = leat__counter_make(m->set, "stage_busy_ns", label, "time in process()");
        s->wait = leat__counter_make(m->set, "stage_wait_ns", label, "time tasks were ready");
        s->ready = leat__gauge_make(m->set, "stage_ready", label, "tasks ready and waiting");
    }
    return 0;
}

void leat__flow_meters_close(leat_flow *f)
{
    if (!f->meters) return;
    leat__meters_close(&f->meters->set);
    leat__free(f->meters);
    f->meters = NULL;
}

void leat__flow_meters_settled(leat_flow *f, const leat__stage *s)
{
    leat__flow_meters *m = f->meters;
    if (!m) return;
    stage_meters *to = &m->stage[s - f->stages];
    leat__task_counts *told = &f->stages[s - f->stages].told;
    leat__counter_add(to->items, s->items - told->items);
    leat__counter_add(to->failed, s->failed - told->failed);
    leat__counter_add(to->bytes, s->bytes - told->bytes);
    leat__counter_add(to->busy, s->busy_ns - told->busy_ns);
    leat__counter_add(to->wait, s->wait_ns - told->wait_ns);
    leat__gauge_set(to->ready, s->ready.count);
    leat__gauge_set(m->charged, (int64_t)atomic_load(&f->charged));
    *told = (leat__task_counts){s->items, s->failed, s->bytes, s->busy_ns, s->wait_ns};
}
