/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of spans. A span is read when the events of both ends have passed. If the device is further behind
 * than the ring is long, steps are left out.
 */
#include "loader/step_spans.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

enum { SPANS = 16 };

typedef struct span {
    leat__gpu_event *begin, *end;
} span;

struct leat__step_spans {
    span ring[SPANS];
    uint64_t first, next; /* the oldest span that has not passed, and the one being recorded */
    uintptr_t stream;
    bool open; /* ring[next] has begun */
    _Atomic uint64_t count, sum_ns;
    uint64_t count_before, sum_before; /* values at the start of this epoch */
};

int leat__step_spans_open(leat__step_spans **out, leat__gpu *gpu, leat_error *err)
{
    leat__step_spans *s = LEAT_NEW(LOADER, leat__step_spans);
    *out = s;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "spans of steps");
    int rc = 0;
    for (uint32_t i = 0; i < SPANS && rc == 0; i++) {
        rc = leat__gpu_event_open(&s->ring[i].begin, gpu, true, err);
        if (rc == 0) rc = leat__gpu_event_open(&s->ring[i].end, gpu, true, err);
    }
    if (rc != 0) leat__step_spans_close(out);
    return rc;
}

void leat__step_spans_close(leat__step_spans **out)
{
    leat__step_spans *s = *out;
    if (s == NULL) return;
    *out = NULL;
    for (uint32_t i = 0; i < SPANS; i++) {
        leat__gpu_event_close(&s->ring[i].begin);
        leat__gpu_event_close(&s->ring[i].end);
    }
    leat__free(s);
}

static void collect(leat__step_spans *s)
{
    LEAT_ASSERT(s->first <= s->next && s->next - s->first <= SPANS);
    for (; s->first < s->next; s->first++) {
        const span *one = &s->ring[s->first % SPANS];
        if (!leat__gpu_event_passed(one->end)) return;
        s->sum_ns += (uint64_t)(leat__gpu_event_seconds(one->begin, one->end) * 1e9);
        s->count++;
    }
}

void leat__step_spans_begin(leat__step_spans *s, uintptr_t stream)
{
    collect(s);
    s->stream = stream;
    s->open = s->next - s->first < SPANS &&
              leat__gpu_event_record_on(s->ring[s->next % SPANS].begin, stream, NULL) == 0;
}

void leat__step_spans_end(leat__step_spans *s, bool capturing)
{
    if (s->open && !capturing &&
        leat__gpu_event_record_on(s->ring[s->next % SPANS].end, s->stream, NULL) == 0)
        s->next++;
    s->open = false;
}

void leat__step_spans_epoch(leat__step_spans *s)
{
    collect(s);
    s->open = false;
    s->count_before = s->count;
    s->sum_before = s->sum_ns;
}

double leat__step_spans_ms(const leat__step_spans *s, bool all)
{
    const uint64_t sum = s->sum_ns - (all ? 0 : s->sum_before),
                   count = s->count - (all ? 0 : s->count_before);
    return count > 0 ? (double)sum / (double)count / 1e6 : 0;
}
