/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters, gauges and timers: creating, writing and reading them.
 *
 * A counter or timer has one cell per thread that ever wrote it. The cell is created at the
 * thread's first write and found by the thread's slot. A cell fills whole cache lines, so no two
 * threads write the same line. The owner adds with a plain load and store (atomic only so that
 * readers may read at any time). Threads without their own slot, or without memory for a cell,
 * share one cell with atomic additions: slower but correct.
 *
 * Owns all meter sets. Any thread may call; the lock is for creating, closing and exporting.
 */
#include "probe/meter.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "probe/meter_set.h"

#define LINE 64u /* bytes per cache line */

typedef _Atomic uint64_t cell_u64;

typedef struct counter_cell {
    _Alignas(LINE) cell_u64 value;
} counter_cell;

typedef struct timer_cell {
    _Alignas(LINE) cell_u64 sum;
    cell_u64 max;
    cell_u64 max_inverted; /* maximum of ~ns, whose complement is the minimum; 0 means no value yet */
    cell_u64 buckets[LEAT__TIMER_BUCKETS];
} timer_cell;

struct leat__counter {
    leat__meter meter;
    _Atomic(counter_cell *) own[LEAT__SLOTS];
    counter_cell shared;
};

struct leat__timer {
    leat__meter meter;
    _Atomic(timer_cell *) own[LEAT__SLOTS];
    timer_cell shared;
};

struct leat__gauge {
    leat__meter meter;
    _Alignas(LINE) _Atomic int64_t value;
};

leat__mutex leat__meters_lock = {.m = PTHREAD_MUTEX_INITIALIZER};
static leat__meters *open_sets;

/* ---- sets ------------------------------------------------------------------------------ */

leat__meters *leat__meters_first_locked(void)
{
    return open_sets;
}

static bool set_name_used_locked(const char *name)
{
    for (const leat__meters *s = open_sets; s; s = s->next) {
        if (strcmp(s->name, name) == 0) return true;
    }
    return false;
}

/* Chooses `name`, or the first of "name-2", "name-3" … that no open set uses. */
static int unique_name_locked(const char *name, leat__buf *out)
{
    leat__buf_puts(out, name);
    for (unsigned n = 2; leat__buf_status(out) == 0 && set_name_used_locked(leat__buf_str(out)); n++) {
        leat__buf_clear(out);
        leat__buf_printf(out, "%s-%u", name, n);
    }
    return leat__buf_status(out);
}

static void push_set_locked(leat__meters *set)
{
    leat__meters **tail = &open_sets;
    while (*tail) tail = &(*tail)->next;
    *tail = set;
}

int leat__meters_open(leat__meters **set, const char *name, leat_error *err)
{
    leat__meters *s = LEAT_NEW(PROBE, leat__meters);
    *set = NULL;
    if (!s) return leat__fail_nomem(err, sizeof *s, "a meter set");
    s->last = &s->first;

    leat__buf unique;
    leat__buf_init(&unique, LEAT__MEM_PROBE, 512);
    leat__fork_renew(&leat__meters_lock);
    leat__mutex_lock(&leat__meters_lock);
    int rc = unique_name_locked(name, &unique);
    if (rc == 0) {
        s->name = leat__buf_take(&unique, NULL);
        if (!s->name) rc = LEAT_ENOMEM;
    }
    if (rc == 0) push_set_locked(s);
    leat__mutex_unlock(&leat__meters_lock);
    leat__buf_reset(&unique);

    if (rc != 0) {
        leat__free(s);
        return rc == LEAT_ENOMEM ? leat__fail_nomem(err, strlen(name) + 1, "a meter set's name")
                                 : leat__fail(err, rc, "name of a meter set is too long");
    }
    *set = s;
    return 0;
}

static void free_meter(leat__meter *m)
{
    if (m->kind == LEAT__METER_COUNTER) {
        leat__counter *c = (leat__counter *)m;
        for (uint32_t i = 0; i < LEAT__SLOTS; i++) leat__free(c->own[i]);
    } else if (m->kind == LEAT__METER_TIMER) {
        leat__timer *t = (leat__timer *)m;
        for (uint32_t i = 0; i < LEAT__SLOTS; i++) leat__free(t->own[i]);
    }
    leat__free(m->name);
    leat__free(m->label);
    leat__free(m->help);
    leat__free(m);
}

void leat__meters_close(leat__meters **set)
{
    leat__meters *s = *set;
    if (!s) return;
    *set = NULL;
    leat__mutex_lock(&leat__meters_lock);
    leat__meters **at = &open_sets;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    leat__mutex_unlock(&leat__meters_lock);

    for (leat__meter *m = s->first, *next; m; m = next) {
        next = m->next;
        free_meter(m);
    }
    leat__free(s->name);
    leat__free(s);
}

/* ---- names ----------------------------------------------------------------------------- */

static bool identifier_ok(const char *s, size_t len)
{
    static const char letters[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return len > 0 && len <= 80 && !(s[0] >= '0' && s[0] <= '9') && strspn(s, letters) >= len;
}

bool leat__meter_name_ok(const char *name)
{
    static const char *const reserved[] = {"_total", "_count", "_sum", "_bucket", "_created", "_info"};
    for (size_t i = 0; i < LEAT_COUNT(reserved); i++) {
        if (leat__str_ends(name, reserved[i])) return false;
    }
    return identifier_ok(name, strlen(name));
}

/* Checks "key=value,key=value". Keys must be identifiers that the exporter does not use itself. */
static bool label_ok(const char *label)
{
    const char *at = label;
    for (unsigned pairs = 0; pairs < LEAT__LABEL_PAIRS; pairs++) {
        size_t len = strcspn(at, "=,");
        if (at[len] != '=' || !identifier_ok(at, len)) return false;
        if ((len == 3 && memcmp(at, "set", 3) == 0) || (len == 2 && memcmp(at, "le", 2) == 0)) {
            return false;
        }
        at += len + 1;
        at += strcspn(at, ",");
        if (*at == '\0') return true;
        at++;
    }
    return false;
}

/* Returns the length of the name without its unit of time. Names with the same stem become the same family in
 * OpenMetrics: timers "x" and "x_ns", counters "x_ns" and "x_seconds" … */
static size_t stem_len(const char *name, leat__meter_kind kind, bool *seconds)
{
    size_t len = strlen(name);
    bool ns = leat__str_ends(name, "_ns");
    if (ns || kind == LEAT__METER_TIMER) {
        *seconds = true;
        return ns ? len - 3 : len;
    }
    *seconds = leat__str_ends(name, "_seconds");
    return *seconds ? len - 8 : len;
}

static bool same_family(const leat__meter *m, const char *name, leat__meter_kind kind)
{
    bool a_seconds, b_seconds;
    size_t a = stem_len(m->name, m->kind, &a_seconds);
    size_t b = stem_len(name, kind, &b_seconds);
    return a == b && a_seconds == b_seconds && memcmp(m->name, name, a) == 0;
}

static bool name_clashes_locked(const char *name, leat__meter_kind kind)
{
    for (const leat__meters *s = open_sets; s; s = s->next) {
        for (const leat__meter *m = s->first; m; m = m->next) {
            bool same_name = strcmp(m->name, name) == 0;
            if (same_name && m->kind == kind) continue;
            if (same_name || same_family(m, name, kind)) return true;
        }
    }
    return false;
}

static leat__meter *find_locked(const leat__meters *set, const char *name, const char *label)
{
    for (leat__meter *m = set->first; m; m = m->next) {
        if (strcmp(m->name, name) == 0 && leat__str_eq(m->label, label)) return m;
    }
    return NULL;
}

/* ---- making ---------------------------------------------------------------------------- */

static void *zalloc_lines(size_t size)
{
    void *p = leat__alloc_aligned(LEAT__MEM_PROBE, size, LINE);
    if (p) memset(p, 0, size);
    return p;
}

static leat__meter *new_meter(leat__meter_kind kind, const char *name, const char *label, const char *help)
{
    LEAT_ASSERT(kind == LEAT__METER_COUNTER || kind == LEAT__METER_GAUGE || kind == LEAT__METER_TIMER);
    static const size_t sizes[] = {
        [LEAT__METER_COUNTER] = sizeof(leat__counter),
        [LEAT__METER_GAUGE] = sizeof(leat__gauge),
        [LEAT__METER_TIMER] = sizeof(leat__timer),
    };
    leat__meter *m = zalloc_lines(sizes[kind]);
    if (!m) return NULL;
    m->kind = kind;
    m->name = leat__strdup(LEAT__MEM_PROBE, name);
    m->label = label ? leat__strdup(LEAT__MEM_PROBE, label) : NULL;
    m->help = help ? leat__strdup(LEAT__MEM_PROBE, help) : NULL;
    if (!m->name || (label && !m->label) || (help && !m->help)) {
        free_meter(m);
        return NULL;
    }
    return m;
}

static atomic_bool off;

void leat__meters_enable(bool on)
{
    atomic_store_explicit(&off, !on, memory_order_relaxed);
}

bool leat__meters_enabled(void)
{
    return !atomic_load_explicit(&off, memory_order_relaxed);
}

uint64_t leat__meters_now(void)
{
    return leat__meters_enabled() ? leat__clock_ns() : 0;
}

static void *make(leat__meters *set, leat__meter_kind kind, const char *name, const char *label,
                  const char *help)
{
    if (!leat__meters_enabled()) return NULL;
    if (!set || !leat__meter_name_ok(name) || (label && !label_ok(label))) return NULL;
    leat__meter *m = NULL;
    leat__mutex_lock(&leat__meters_lock);
    if (!name_clashes_locked(name, kind)) {
        m = find_locked(set, name, label);
        if (!m) {
            m = new_meter(kind, name, label, help);
            if (m) {
                *set->last = m;
                set->last = &m->next;
            }
        }
    }
    leat__mutex_unlock(&leat__meters_lock);
    return m;
}

leat__counter *leat__counter_make(leat__meters *set, const char *name, const char *label, const char *help)
{
    return make(set, LEAT__METER_COUNTER, name, label, help);
}

leat__gauge *leat__gauge_make(leat__meters *set, const char *name, const char *label, const char *help)
{
    return make(set, LEAT__METER_GAUGE, name, label, help);
}

leat__timer *leat__timer_make(leat__meters *set, const char *name, const char *label, const char *help)
{
    return make(set, LEAT__METER_TIMER, name, label, help);
}

/* ---- cells ----------------------------------------------------------------------------- */

static inline uint64_t peek(const cell_u64 *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

static inline void own_add(cell_u64 *cell, uint64_t n)
{
    atomic_store_explicit(cell, peek(cell) + n, memory_order_relaxed);
}

static inline void own_raise(cell_u64 *cell, uint64_t v)
{
    if (v > peek(cell)) atomic_store_explicit(cell, v, memory_order_relaxed);
}

static inline void shared_add(cell_u64 *cell, uint64_t n)
{
    atomic_fetch_add_explicit(cell, n, memory_order_relaxed);
}

static void shared_raise(cell_u64 *cell, uint64_t v)
{
    uint64_t seen = peek(cell);
    while (v > seen && !atomic_compare_exchange_weak_explicit(cell, &seen, v, memory_order_relaxed,
                                                              memory_order_relaxed)) {
    }
}

/* The slot belongs to the calling thread, so no other thread fills this entry. Release order: a
 * reader that sees the pointer also sees the zeroed cell. */
static __attribute__((noinline)) counter_cell *new_counter_cell(leat__counter *c, uint32_t slot)
{
    LEAT_ASSERT(slot < LEAT__SLOTS);
    counter_cell *cell = zalloc_lines(sizeof *cell);
    atomic_store_explicit(&c->own[slot], cell, memory_order_release);
    return cell;
}

static __attribute__((noinline)) timer_cell *new_timer_cell(leat__timer *t, uint32_t slot)
{
    LEAT_ASSERT(slot < LEAT__SLOTS);
    timer_cell *cell = zalloc_lines(sizeof *cell);
    atomic_store_explicit(&t->own[slot], cell, memory_order_release);
    return cell;
}

/* ---- counters and gauges --------------------------------------------------------------- */

void leat__counter_add(leat__counter *c, uint64_t n)
{
    if (!c) return;
    uint32_t slot = leat__slot();
    if (slot < LEAT__SLOTS) {
        counter_cell *cell = atomic_load_explicit(&c->own[slot], memory_order_relaxed);
        if (!cell) cell = new_counter_cell(c, slot);
        if (cell) {
            own_add(&cell->value, n);
            return;
        }
    }
    shared_add(&c->shared.value, n);
}

uint64_t leat__counter_value(const leat__counter *c)
{
    if (!c) return 0;
    uint64_t sum = peek(&c->shared.value);
    for (uint32_t i = 0; i < LEAT__SLOTS; i++) {
        const counter_cell *cell = atomic_load_explicit(&c->own[i], memory_order_acquire);
        if (cell) sum += peek(&cell->value);
    }
    return sum;
}

void leat__gauge_set(leat__gauge *g, int64_t v)
{
    if (g) atomic_store_explicit(&g->value, v, memory_order_relaxed);
}

int64_t leat__gauge_value(const leat__gauge *g)
{
    return g ? atomic_load_explicit(&g->value, memory_order_relaxed) : 0;
}

/* ---- timers ---------------------------------------------------------------------------- */

/* Finds the bucket of a duration. Uses ns - 1, which makes upper bounds inclusive, as OpenMetrics requires.
 * The first four buckets hold one value each (0 with 1). After that, the two bits below the highest select
 * one of four steps per power of two. */
static inline uint32_t bucket_of(uint64_t ns)
{
    uint64_t v = ns - (ns != 0);
    if (v < 4) return (uint32_t)v;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(v);
    uint32_t bucket = (power - 1) * 4 + (uint32_t)(v >> (power - 2) & 3);
    return LEAT_MIN(bucket, LEAT__TIMER_BUCKETS - 1);
}

uint64_t leat__timer_bucket_top(uint32_t bucket)
{
    LEAT_ASSERT(bucket < LEAT__TIMER_BUCKETS);
    if (bucket < 4) return bucket + 1;
    uint32_t power = bucket / 4 + 1;
    return (UINT64_C(5) + bucket % 4) << (power - 2);
}

void leat__timer_record(leat__timer *t, uint64_t ns)
{
    if (!t) return;
    uint32_t slot = leat__slot();
    if (slot < LEAT__SLOTS) {
        timer_cell *cell = atomic_load_explicit(&t->own[slot], memory_order_relaxed);
        if (!cell) cell = new_timer_cell(t, slot);
        if (cell) {
            own_add(&cell->sum, ns);
            own_raise(&cell->max, ns);
            own_raise(&cell->max_inverted, ~ns);
            cell_u64 *bucket = &cell->buckets[bucket_of(ns)];
            atomic_store_explicit(bucket, peek(bucket) + 1, memory_order_release);
            return;
        }
    }
    shared_add(&t->shared.sum, ns);
    shared_raise(&t->shared.max, ns);
    shared_raise(&t->shared.max_inverted, ~ns);
    atomic_fetch_add_explicit(&t->shared.buckets[bucket_of(ns)], 1, memory_order_release);
}

/* Buckets are written last and read first, so every counted value is also in sum, min and max. */
static void add_cell(const timer_cell *cell, leat__timer_stats *stats, uint64_t *max_inverted,
                     uint64_t buckets[LEAT__TIMER_BUCKETS])
{
    for (uint32_t i = 0; i < LEAT__TIMER_BUCKETS; i++) {
        buckets[i] += atomic_load_explicit(&cell->buckets[i], memory_order_acquire);
    }
    stats->sum_ns += peek(&cell->sum);
    stats->max_ns = LEAT_MAX(stats->max_ns, peek(&cell->max));
    *max_inverted = LEAT_MAX(*max_inverted, peek(&cell->max_inverted));
}

static void sum_up(const leat__timer *t, leat__timer_stats *stats, uint64_t buckets[LEAT__TIMER_BUCKETS])
{
    uint64_t max_inverted = 0;
    memset(stats, 0, sizeof *stats);
    memset(buckets, 0, LEAT__TIMER_BUCKETS * sizeof buckets[0]);
    add_cell(&t->shared, stats, &max_inverted, buckets);
    for (uint32_t i = 0; i < LEAT__SLOTS; i++) {
        const timer_cell *cell = atomic_load_explicit(&t->own[i], memory_order_acquire);
        if (cell) add_cell(cell, stats, &max_inverted, buckets);
    }
    /* The count comes from the histogram, so that quantiles always add up. */
    for (uint32_t i = 0; i < LEAT__TIMER_BUCKETS; i++) stats->count += buckets[i];
    if (stats->count > 0) stats->min_ns = ~max_inverted;
}

/* Returns the middle of the quantile's bucket, clamped to the observed minimum and maximum. */
static double quantile(const uint64_t buckets[LEAT__TIMER_BUCKETS], const leat__timer_stats *stats, double q)
{
    LEAT_ASSERT(q >= 0 && q <= 1);
    uint64_t rank = (uint64_t)(q * (double)stats->count);
    uint32_t i = 0;
    for (uint64_t seen = buckets[0]; seen <= rank && i + 1 < LEAT__TIMER_BUCKETS;) {
        seen += buckets[++i];
    }
    double bottom = i == 0 ? 0 : (double)leat__timer_bucket_top(i - 1);
    double middle = i < 4 ? (double)(i + 1) : (bottom + (double)leat__timer_bucket_top(i)) / 2;
    if (i == LEAT__TIMER_BUCKETS - 1) middle = (double)stats->max_ns;
    return LEAT_MIN(LEAT_MAX(middle, (double)stats->min_ns), (double)stats->max_ns);
}

void leat__timer_take(const leat__timer *t, leat__timer_mark *mark)
{
    leat__timer_stats stats;
    memset(mark, 0, sizeof *mark);
    if (!t) return;
    sum_up(t, &stats, mark->buckets);
    mark->sum_ns = stats.sum_ns;
}

static void subtract(const leat__timer_mark *mark, leat__timer_stats *stats,
                     uint64_t buckets[LEAT__TIMER_BUCKETS])
{
    stats->sum_ns -= LEAT_MIN(mark->sum_ns, stats->sum_ns);
    for (uint32_t i = 0; i < LEAT__TIMER_BUCKETS; i++) {
        const uint64_t before = LEAT_MIN(mark->buckets[i], buckets[i]);
        buckets[i] -= before;
        stats->count -= before;
    }
}

void leat__timer_since(const leat__timer *t, const leat__timer_mark *mark, leat__timer_stats *stats)
{
    uint64_t buckets[LEAT__TIMER_BUCKETS];
    memset(stats, 0, sizeof *stats);
    if (!t) return;
    sum_up(t, stats, buckets);
    if (mark != NULL) subtract(mark, stats, buckets);
    if (stats->count == 0) {
        memset(stats, 0, sizeof *stats);
        return;
    }
    stats->p50_ns = quantile(buckets, stats, 0.50);
    stats->p95_ns = quantile(buckets, stats, 0.95);
    stats->p99_ns = quantile(buckets, stats, 0.99);
}

uint64_t leat__timer_buckets(const leat__timer *t, uint64_t buckets[LEAT__TIMER_BUCKETS])
{
    leat__timer_stats stats;
    sum_up(t, &stats, buckets);
    return stats.sum_ns;
}
