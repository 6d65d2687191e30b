/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps tasks in order. A segment is a part of the flow in which one task stays one task. It numbers the
 * tasks that enter, keeps them in a ring indexed by number, and passes them on in order: to the consumer,
 * into a group, or (children) into the next segment.
 *
 * Part of the scheduler: called with the pool's lock held. Changes only mark segments dirty;
 * leat__flow_advance processes them. So a slot freed downstream can move several tasks upstream
 * without recursion.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/flow_window.h"
#include "engine/sched.h"

/* Checks the invariants of a segment between two transitions. */
static void check_segment(const leat__segment *seg)
{
    LEAT_ASSERT(seg->base <= seg->next && seg->low <= seg->next);
    LEAT_ASSERT(seg->next - seg->base <= seg->mask + 1);
    LEAT_ASSERT(seg->inside <= seg->next - seg->base);
    LEAT_ASSERT(seg->group_count <= seg->inside);
    LEAT_ASSERT(seg->base == seg->next || seg->ring[seg->base & seg->mask] != NULL);
    LEAT_ASSERT((seg->inside == 0) == (seg->base == seg->next));
}

leat__node *leat__segment_at(const leat__segment *seg, uint64_t seq)
{
    return seq >= seg->base && seq < seg->next ? seg->ring[seq & seg->mask] : NULL;
}

uint32_t leat__segment_room(const leat__segment *seg)
{
    uint32_t counted = seg->inside - (seg->lean ? seg->group_count : 0);
    uint64_t slots = seg->mask + 1 - (seg->next - seg->base);
    return counted < seg->window ? (uint32_t)LEAT_MIN(seg->window - counted, slots) : 0;
}

static void mark(leat_flow *f, uint32_t index)
{
    f->dirty |= UINT64_C(1) << index;
}

static uint32_t index_of(const leat_flow *f, const leat__segment *seg)
{
    return (uint32_t)(seg - f->segments);
}

static bool failed(const leat__node *n)
{
    return n->pub.status != 0;
}

/* True when the task is removed silently at its turn. */
static bool vanishes(const leat_flow *f, const leat__node *n)
{
    return n->dropped || (failed(n) && !n->fatal && f->opts.on_error == LEAT_FLOW_SKIP);
}

static bool fails_flow(const leat_flow *f, const leat__node *n)
{
    return failed(n) && (n->fatal || f->opts.on_error == LEAT_FLOW_FAIL);
}

void leat__flow_fail(leat_flow *f, const leat__node *n, int code, const char *message)
{
    LEAT_ASSERT(code < 0);
    if (f->state != LEAT__FLOW_RUNNING) return;
    f->state = LEAT__FLOW_FAILED;
    atomic_store(&f->stop, true);
    if (n && n->why) f->error = *n->why;
    else leat__fail(&f->error, code, "%s: %s", f->name, message ? message : leat_code_text(code));
    if (f->waiters) leat__bell_ring(f->changed);
}

static void retire(leat_flow *f, leat__segment *seg, leat__node *n)
{
    LEAT_ASSERT(seg->inside > 0);
    LEAT_ASSERT(seg->ring[n->pub.seq & seg->mask] == n);
    seg->ring[n->pub.seq & seg->mask] = NULL;
    seg->inside--;
    while (seg->base < seg->next && !seg->ring[seg->base & seg->mask]) seg->base++;
    check_segment(seg);
    uint32_t index = index_of(f, seg);
    mark(f, index);
    if (index > 0) mark(f, index - 1); /* the previous segment may wait for space in this one */
}

void leat__segment_leave(leat_flow *f, leat__node *n)
{
    LEAT_ASSERT(n->state == LEAT__NODE_OUT);
    LEAT_ASSERT(n->segment == f->segment_count - 1);
    retire(f, &f->segments[f->segment_count - 1], n);
}

static void hand_over(leat_flow *f, leat__node *n)
{
    LEAT_ASSERT(n->state == LEAT__NODE_ARRIVED);
    n->state = LEAT__NODE_OUT;
    leat__list_push(&f->out, n);
    if (f->waiters) leat__bell_ring(f->changed);
}

static void arrive(leat_flow *f, leat__segment *seg, leat__node *n)
{
    LEAT_ASSERT(n->stage == seg->last);
    n->state = LEAT__NODE_ARRIVED;
    mark(f, index_of(f, seg));
    bool now = seg->end == LEAT__END_SINK || (seg->end == LEAT__END_EXIT && f->opts.unordered);
    if (!now) return;
    if (fails_flow(f, n)) {
        if (seg->end == LEAT__END_EXIT) leat__flow_fail(f, n, n->pub.status, NULL);
        return; /* a sink's failure waits for the tasks before it */
    }
    if (seg->end == LEAT__END_EXIT && !vanishes(f, n)) {
        hand_over(f, n);
        return;
    }
    if (seg->end == LEAT__END_SINK && !vanishes(f, n)) f->results++;
    retire(f, seg, n);
    leat__node_bury(f, n);
}

/* Queues n before `stage`; tombstones go straight to the end of the segment. */
void leat__node_forward(leat_flow *f, leat__node *n, uint32_t stage, uint64_t now)
{
    LEAT_ASSERT(n->segment < f->segment_count);
    LEAT_ASSERT(stage <= f->segments[n->segment].last);
    LEAT_ASSERT(n->state != LEAT__NODE_OUT && n->state != LEAT__NODE_LOAN);
    leat__segment *seg = &f->segments[n->segment];
    if (n->dropped || failed(n)) {
        bool last_wants_it = seg->end == LEAT__END_SINK && !n->dropped && !n->fatal &&
                             f->opts.on_error == LEAT_FLOW_GIVE_BACK && stage < seg->last;
        stage = last_wants_it ? seg->last - 1 : seg->last;
    }
    n->stage = (uint16_t)stage;
    if (stage >= seg->last) {
        arrive(f, seg, n);
        return;
    }
    leat__stage *s = &f->stages[stage];
    n->state = LEAT__NODE_READY;
    n->since_ns = now;
    mark(f, index_of(f, seg)); /* an ordered stage may wait for this task */
    if (s->decl.flags & LEAT_STAGE_ORDERED) return;
    if (s->ready.count == 0) s->ready_since_ns = now;
    leat__list_push(&s->ready, n);
}

void leat__segment_enter(leat_flow *f, uint32_t index, leat__node *n, uint64_t now)
{
    leat__segment *seg = &f->segments[index];
    LEAT_ASSERT(!seg->closed || index > 0 || f->source_ended);
    LEAT_ASSERT(seg->ring[seg->next & seg->mask] == NULL);
    n->pub.seq = seg->next++;
    seg->ring[n->pub.seq & seg->mask] = n;
    seg->inside++;
    check_segment(seg);
    if (leat__segment_room(seg) == 0) seg->filled++;
    n->next = n->prev = NULL;
    n->segment = (uint16_t)index;
    leat__node_forward(f, n, index == 0 ? 1 : seg->first, now); /* the source has run */
}

/* Advances the turn of ordered stages past tasks that will not run there. */
static void advance_turns(leat_flow *f, leat__segment *seg)
{
    for (uint32_t i = seg->first; i < seg->last; i++) {
        leat__stage *s = &f->stages[i];
        if (!(s->decl.flags & LEAT_STAGE_ORDERED)) continue;
        while (s->turn < seg->next) {
            const leat__node *n = leat__segment_at(seg, s->turn);
            /* Stop at a failure that ends the flow: no task after it may run in this stage. */
            if (n && (n->stage <= i || fails_flow(f, n))) break;
            s->turn++;
        }
    }
}

/* Turns the group before a gather into one task of the next segment. */
static bool form_group(leat_flow *f, leat__segment *seg, uint64_t now)
{
    LEAT_ASSERT(seg->end == LEAT__END_GATHER);
    LEAT_ASSERT(seg->group_count <= f->stages[seg->last].decl.count);
    const uint32_t index = index_of(f, seg), count = seg->group_count;
    if (count > 0) {
        if (leat__segment_room(&f->segments[index + 1]) == 0) return false;
        leat__node *g = leat__node_new(f);
        leat__node **members = leat__alloc_array(LEAT__MEM_ENGINE, count, sizeof *members);
        if (!g || !members) {
            leat__free(members);
            if (g) leat__node_spare(f, g);
            leat__flow_fail(f, NULL, LEAT_ENOMEM, "out of memory for a group of tasks");
            return false;
        }
        seg->group_count = 0; /* set before its members leave */
        for (uint32_t i = 0; i < count; i++) {
            members[i] = seg->group[i];
            retire(f, seg, members[i]);
        }
        g->members = members;
        g->pub.members = (leat_task *const *)(void *)members;
        g->pub.member_count = count;
        leat__node *last = members[count - 1];
        if (fails_flow(f, last)) { /* the flow fails when the output reaches this group */
            g->pub.status = last->pub.status;
            g->fatal = last->fatal;
            g->pub.error = g->why = last->why;
            last->pub.error = last->why = NULL;
        }
        leat__segment_enter(f, index + 1, g, now);
    }
    seg->group_full = false;
    return true;
}

static bool pass_gather(leat_flow *f, leat__segment *seg, leat__node *n)
{
    const leat__stage *gather = &f->stages[seg->last];
    bool closes =
        fails_flow(f, n) || (gather->decl.closes && gather->decl.closes(gather->decl.cookie, &n->pub));
    if (vanishes(f, n)) {
        retire(f, seg, n);
        leat__node_bury(f, n);
    } else {
        LEAT_ASSERT(seg->group_count < gather->decl.count);
        seg->group[seg->group_count++] = n;
    }
    seg->group_full = closes || seg->group_count == gather->decl.count;
    return true;
}

/* Numbers the children of the first parent; true when the parent itself is finished. */
static bool pass_expand(leat_flow *f, leat__segment *seg, leat__node *n, uint64_t now)
{
    uint32_t after = index_of(f, seg) + 1;
    while (n->kids.head && leat__segment_room(&f->segments[after]) > 0)
        leat__segment_enter(f, after, leat__list_pop(&n->kids), now);
    if (n->kids.head || n->state != LEAT__NODE_ARRIVED) return false;
    if (failed(n) && !vanishes(f, n)) { /* the parent itself takes the place of the next child */
        if (leat__segment_room(&f->segments[after]) == 0) return false;
        retire(f, seg, n);
        leat__segment_enter(f, after, n, now);
        return true;
    }
    retire(f, seg, n);
    leat__node_bury(f, n);
    return true;
}

static bool pass(leat_flow *f, leat__segment *seg, leat__node *n, uint64_t now)
{
    LEAT_ASSERT(seg->end == LEAT__END_EXPAND || n->pub.seq == seg->low);
    if (seg->end == LEAT__END_EXPAND) return pass_expand(f, seg, n, now);
    if (n->state == LEAT__NODE_OUT) return true; /* unordered: already delivered */
    if (n->state != LEAT__NODE_ARRIVED) return false;
    if (seg->end == LEAT__END_GATHER) return pass_gather(f, seg, n);
    if (fails_flow(f, n)) {
        leat__flow_fail(f, n, n->pub.status, NULL);
        return false;
    }
    if (vanishes(f, n)) {
        retire(f, seg, n);
        leat__node_bury(f, n);
    } else {
        hand_over(f, n);
    }
    return true;
}

static void advance(leat_flow *f, uint32_t index, uint64_t now)
{
    LEAT_ASSERT(index < f->segment_count);
    leat__segment *seg = &f->segments[index];
    advance_turns(f, seg);
    while (f->state == LEAT__FLOW_RUNNING) {
        if (seg->group_full && !form_group(f, seg, now)) return;
        seg->low = LEAT_MAX(seg->low, seg->base);
        if (seg->low == seg->next) break;
        leat__node *n = leat__segment_at(seg, seg->low);
        if (n && !pass(f, seg, n, now)) return;
        seg->low++;
    }
    check_segment(seg);
    if (f->state != LEAT__FLOW_RUNNING || !seg->closed || seg->low != seg->next) return;
    if (seg->group_count > 0 && !form_group(f, seg, now)) return;
    if (seg->inside > 0) return;
    LEAT_ASSERT(seg->group_count == 0 && seg->base == seg->next);
    if (index + 1 < f->segment_count) {
        f->segments[index + 1].closed = true;
        mark(f, index + 1);
    } else {
        f->state = LEAT__FLOW_ENDED;
        f->ended_ns = now;
        if (f->waiters) leat__bell_ring(f->changed);
    }
}

void leat__flow_advance(leat_flow *f, uint64_t now)
{
    while (f->dirty) {
        uint32_t index = 63 - (uint32_t)__builtin_clzll(f->dirty); /* downstream first */
        f->dirty &= ~(UINT64_C(1) << index);
        advance(f, index, now);
    }
}

/* ---- Building -------------------------------------------------------------------------- */

static void split(leat_flow *f)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->stage_count; i++) {
        leat__stage *s = &f->stages[i];
        bool begins = i == 0 || s->decl.kind == LEAT_STAGE_GATHER;
        if (begins && i > 0) {
            f->segments[count - 1].last = i;
            f->segments[count - 1].end = LEAT__END_GATHER;
        }
        if (begins) f->segments[count++].first = i;
        s->segment = count - 1;
        f->segments[count - 1].last = i + 1;
        if (s->decl.kind == LEAT_STAGE_EXPAND) {
            f->segments[count - 1].end = LEAT__END_EXPAND;
            f->segments[count].first = f->segments[count].last = i + 1;
            count++;
        } else {
            f->segments[count - 1].end = s->decl.kind == LEAT_STAGE_SINK ? LEAT__END_SINK : LEAT__END_EXIT;
        }
    }
    f->segment_count = count;
    LEAT_ASSERT(count > 0 && count <= 64);
}

/* Returns how many tasks a segment may hold. The last one: as many as may be prefetched for the consumer. The
 * others: enough to keep every thread busy and, before a gather, to fill groups. */
static uint32_t window_of(const leat_flow *f, uint32_t index, uint32_t parallel)
{
    const leat__segment *seg = &f->segments[index];
    uint64_t window = 2 * (uint64_t)parallel + 2;
    if (f->opts.mode == LEAT_FLOW_BATCH) window = LEAT_MAX(window, 1u << 16);
    if (seg->end == LEAT__END_GATHER) {
        uint64_t count = f->stages[seg->last].decl.count;
        window = LEAT_MAX(2 * count, window + count);
    }
    if (seg->end == LEAT__END_SINK) window = LEAT_MAX(window, 64);
    return (uint32_t)LEAT_MIN(window, UINT64_C(1) << 30);
}

int leat__segments_build(leat_flow *f, uint32_t parallel, leat_error *err)
{
    LEAT_ASSERT(f->stage_count > 0 && f->stage_count <= LEAT__STAGES_MAX);
    LEAT_ASSERT(f->segments == NULL);
    f->segments = LEAT_NEW_ARRAY(ENGINE, leat__segment, 2 * f->stage_count + 1);
    if (!f->segments) return leat__fail_nomem(err, f->stage_count, "the parts of a flow");
    split(f);
    for (uint32_t i = 0; i < f->segment_count; i++) {
        leat__segment *seg = &f->segments[i];
        seg->window = window_of(f, i, parallel);
        uint64_t cap = 64;
        /* Twice the window: unordered results may overtake a straggler. The exit also leaves room
         * for a larger prefetch. */
        uint64_t want = seg->end == LEAT__END_EXIT ? LEAT_MAX(4 * (uint64_t)seg->window, 1024)
                                                   : 2 * (uint64_t)seg->window;
        while (cap < want) cap *= 2;
        seg->mask = cap - 1;
        LEAT_ASSERT(seg->window > 0 && seg->window <= cap);
        seg->ring = LEAT_NEW_ARRAY(ENGINE, leat__node *, cap);
        if (!seg->ring) return leat__fail_nomem(err, cap * 8, "the order of a flow");
        if (seg->end != LEAT__END_GATHER) continue;
        seg->group = LEAT_NEW_ARRAY(ENGINE, leat__node *, f->stages[seg->last].decl.count);
        if (!seg->group) return leat__fail_nomem(err, 8, "a group of tasks");
    }
    return 0;
}

/* Sets the windows of a lean flow's segments from its knobs. */
static void window_lean(leat_flow *f)
{
    uint64_t most = leat__flow_window(f->knobs[LEAT_KNOB_THREADS].value, f->knobs[LEAT_KNOB_IO_DEPTH].value);
    for (uint32_t i = 0; i + 1 < f->segment_count; i++) {
        f->segments[i].lean = true;
        f->segments[i].window = (uint32_t)LEAT_MIN(most, f->segments[i].mask + 1);
    }
}

void leat__segments_window(leat_flow *f)
{
    LEAT_ASSERT(f->segment_count > 0);
    leat__segment *last = &f->segments[f->segment_count - 1];
    if (f->opts.lean && f->opts.mode != LEAT_FLOW_BATCH) window_lean(f);
    if (last->end != LEAT__END_EXIT) return;
    uint64_t prefetch = f->knobs[LEAT_KNOB_PREFETCH].value;
    last->window = (uint32_t)LEAT_MIN(prefetch, last->mask + 1);
    mark(f, f->segment_count - 1);
    if (f->segment_count > 1) mark(f, f->segment_count - 2);
}

static void take_out(leat_flow *f, leat__node *n)
{
    leat__stage *s = &f->stages[n->stage];
    if (n->state == LEAT__NODE_READY && !(s->decl.flags & LEAT_STAGE_ORDERED) &&
        (n->prev || n->next || s->ready.head == n))
        leat__list_remove(&s->ready, n);
    if (n->state == LEAT__NODE_OUT) leat__list_remove(&f->out, n);
}

bool leat__segments_drain(leat_flow *f, uint32_t most)
{
    LEAT_ASSERT(f->running == 0);
    f->dirty = 0;
    for (uint32_t i = 0; i < f->segment_count; i++) {
        leat__segment *seg = &f->segments[i];
        for (; seg->ring && seg->base < seg->next; seg->base++) {
            leat__node **slot = &seg->ring[seg->base & seg->mask];
            if (!*slot) continue;
            if (most-- == 0) return true;
            take_out(f, *slot);
            leat__node_bury(f, *slot);
            *slot = NULL;
        }
        seg->low = seg->base = seg->next;
        seg->inside = seg->group_count = 0;
    }
    return false;
}

void leat__segments_free(leat_flow *f)
{
    for (uint32_t i = 0; i < f->segment_count; i++) {
        leat__free(f->segments[i].ring);
        leat__free(f->segments[i].group);
    }
    leat__free(f->segments);
    f->segments = NULL;
    f->segment_count = 0;
}
