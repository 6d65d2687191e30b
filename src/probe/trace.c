/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace rings. Each thread writes its own ring; the exporter reads all rings while they are
 * written. Every event has a sequence number that is odd during writing. So a reader detects an
 * event that changed during the read, and skips it:
 *
 *   writer:  seq = 2p+1   fields (release)   seq = 2p+2 (release)   head = p+1
 *   reader:  seq = 2p+2?  fields (acquire)   seq still 2p+2?        keep
 *
 * A reader that sees a new field also sees the odd number stored before it, because of the
 * release; its second check then fails. This needs no fences, which thread checkers do not model.
 *
 * Rings outlive their threads, so that they can be exported later; reset frees them all. It first
 * waits until no writer is inside. Writers raise a count for their slot and then check whether
 * tracing is on; reset turns tracing off and then checks the counts. All are sequentially
 * consistent, so one of the two sees the other.
 *
 * Owns the rings. Any thread may call; the lock is for starting, resetting and exporting, never
 * for recording.
 */
#include "probe/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/thread.h"
#include "probe/slot.h"

#define EVENTS_DEFAULT 16384u
#define EVENTS_MAX (UINT32_C(1) << 22)
#define RINGS_MAX 1024u             /* bounds the memory of a program that keeps starting threads */
#define ROWS_MAX 512u               /* maximum rows that do not belong to a thread */
#define ROW_TID (UINT64_C(1) << 30) /* above the ids of threads */

typedef struct event {
    _Atomic uint64_t seq;
    _Atomic(const char *) name;
    _Atomic uint64_t begin_ns;
    _Atomic uint64_t length; /* ns */
    _Atomic int64_t arg;
    _Atomic uint32_t row; /* 0 = the row of the thread */
} event;

typedef struct ring {
    struct ring *next;
    uint32_t tid, mask;
    char thread[32];
    _Alignas(64) _Atomic uint64_t head; /* events written in total */
    event events[];
} ring;

_Atomic bool leat__trace_is_on;

static leat__mutex control = {.m = PTHREAD_MUTEX_INITIALIZER};
static _Atomic(ring *) rings; /* newest first; writers push, reset empties */
static _Atomic uint32_t ring_count, ring_events;
static _Atomic uint32_t generation = 1; /* changed by reset: older rings are freed */
static _Atomic uint64_t lost;           /* events without a ring */
static char row_names[ROWS_MAX][48];    /* guarded by `control`; row 0 is not used */
static uint32_t row_count = 1;

/* Writers inside, by slot; one cache line each. The last entry is for threads without a slot. */
static struct {
    _Alignas(64) _Atomic uint32_t count;
} writing[LEAT__SLOTS + 1];

static _Thread_local struct {
    ring *ring;
    uint32_t generation;
} mine __attribute__((tls_model("initial-exec")));

/* ---- recording ------------------------------------------------------------------------- */

int leat__trace_start(uint32_t events_per_thread, leat_error *err)
{
    if (events_per_thread == 0) events_per_thread = EVENTS_DEFAULT;
    if (events_per_thread > EVENTS_MAX) {
        return leat__fail(err, LEAT_EINVAL, "a trace ring has at most %u events, not %u", EVENTS_MAX,
                          events_per_thread);
    }
    uint32_t events = 1;
    while (events < events_per_thread) events *= 2;
    LEAT_ASSERT(leat__is_pow2(events) && events <= EVENTS_MAX);

    int rc = 0;
    leat__mutex_lock(&control);
    if (leat__trace_on()) {
        rc = leat__fail(err, LEAT_ESTATE, "tracing is already on");
    } else {
        atomic_store(&ring_events, events);
        atomic_store(&leat__trace_is_on, true);
    }
    leat__mutex_unlock(&control);
    return rc;
}

void leat__trace_stop(void)
{
    atomic_store(&leat__trace_is_on, false);
}

void leat__trace_reset(void)
{
    leat__mutex_lock(&control);
    leat__trace_stop();
    for (uint32_t i = 0; i <= LEAT__SLOTS; i++) {
        while (atomic_load(&writing[i].count) != 0) leat__thread_yield();
    }
    for (ring *r = atomic_exchange(&rings, NULL), *next; r; r = next) {
        next = r->next;
        leat__free(r);
    }
    atomic_store(&ring_count, 0);
    atomic_fetch_add(&generation, 1);
    atomic_store(&lost, 0);
    leat__mutex_unlock(&control);
}

static ring *make_ring(void)
{
    if (atomic_fetch_add(&ring_count, 1) >= RINGS_MAX) {
        atomic_fetch_sub(&ring_count, 1);
        return NULL;
    }
    uint32_t events = atomic_load(&ring_events);
    size_t size = sizeof(ring) + events * sizeof(event);
    ring *r = leat__alloc_aligned(LEAT__MEM_PROBE, size, 64);
    if (!r) {
        atomic_fetch_sub(&ring_count, 1);
        return NULL;
    }
    memset(r, 0, size);
    r->mask = events - 1;
    LEAT_ASSERT(events > 0 && leat__is_pow2(events));
    r->tid = leat__thread_id();
    if (pthread_getname_np(pthread_self(), r->thread, sizeof r->thread) != 0) {
        r->thread[0] = '\0';
    }
    r->next = atomic_load(&rings);
    while (!atomic_compare_exchange_weak(&rings, &r->next, r)) {
    }
    return r;
}

static void write_event(ring *r, uint32_t row, const char *name, uint64_t begin_ns, uint64_t length,
                        int64_t arg)
{
    LEAT_ASSERT(row < ROWS_MAX);
    uint64_t p = atomic_load_explicit(&r->head, memory_order_relaxed);
    event *e = &r->events[p & r->mask];
    atomic_store_explicit(&e->seq, 2 * p + 1, memory_order_relaxed);
    atomic_store_explicit(&e->name, name, memory_order_release);
    atomic_store_explicit(&e->begin_ns, begin_ns, memory_order_release);
    atomic_store_explicit(&e->length, length, memory_order_release);
    atomic_store_explicit(&e->arg, arg, memory_order_release);
    atomic_store_explicit(&e->row, row, memory_order_release);
    atomic_store_explicit(&e->seq, 2 * p + 2, memory_order_release);
    atomic_store_explicit(&r->head, p + 1, memory_order_release);
}

static void record(uint32_t row, const char *name, uint64_t begin_ns, uint64_t ns, int64_t arg)
{
    _Atomic uint32_t *inside = &writing[leat__slot()].count;
    atomic_fetch_add(inside, 1);
    if (atomic_load(&leat__trace_is_on)) {
        uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
        if (!mine.ring || mine.generation != now) {
            mine.ring = make_ring();
            mine.generation = now;
        }
        if (mine.ring) {
            write_event(mine.ring, row, name, begin_ns, ns, arg);
        } else {
            atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
        }
    }
    atomic_fetch_sub(inside, 1);
}

void leat__trace_span(const char *name, uint64_t begin_ns, uint64_t end_ns, int64_t arg)
{
    leat__trace_span_on(0, name, begin_ns, end_ns, arg);
}

uint32_t leat__trace_row(const char *name)
{
    uint32_t row = 1;
    leat__mutex_lock(&control);
    while (row < row_count && strcmp(row_names[row], name) != 0) row++;
    if (row == ROWS_MAX) row = 0;
    LEAT_ASSERT(row_count <= ROWS_MAX);
    if (row == row_count) snprintf(row_names[row_count++], sizeof row_names[row], "%s", name);
    leat__mutex_unlock(&control);
    return row;
}

void leat__trace_span_on(uint32_t row, const char *name, uint64_t begin_ns, uint64_t end_ns, int64_t arg)
{
    if (!leat__trace_on()) return;
    record(row, name, begin_ns, end_ns > begin_ns ? end_ns - begin_ns : 0, arg);
}

uint64_t leat__trace_dropped(void)
{
    uint64_t dropped = atomic_load_explicit(&lost, memory_order_relaxed);
    leat__mutex_lock(&control);
    for (const ring *r = atomic_load(&rings); r; r = r->next) {
        uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
        uint64_t size = (uint64_t)r->mask + 1;
        if (head > size) dropped += head - size;
    }
    leat__mutex_unlock(&control);
    return dropped;
}

/* ---- Chrome trace JSON ----------------------------------------------------------------- */

typedef struct copy {
    const char *name;
    uint64_t begin_ns, length;
    int64_t arg;
    uint32_t row;
} copy;

/* False when the event at position p is incomplete or overwritten. */
static bool read_event(const ring *r, uint64_t p, copy *c)
{
    const event *e = &r->events[p & r->mask];
    if (atomic_load_explicit(&e->seq, memory_order_acquire) != 2 * p + 2) return false;
    c->name = atomic_load_explicit(&e->name, memory_order_acquire);
    c->begin_ns = atomic_load_explicit(&e->begin_ns, memory_order_acquire);
    c->length = atomic_load_explicit(&e->length, memory_order_acquire);
    c->arg = atomic_load_explicit(&e->arg, memory_order_acquire);
    c->row = atomic_load_explicit(&e->row, memory_order_acquire);
    return atomic_load_explicit(&e->seq, memory_order_relaxed) == 2 * p + 2;
}

/* The format uses microseconds; nanoseconds become exact decimals. */
static void put_us(leat__json *j, const char *key, uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    leat__json_key(j, key);
    leat__json_raw(j, text);
}

static void put_meta(leat__json *j, const char *what, uint64_t pid, uint64_t tid, const char *name)
{
    leat__json_object(j);
    leat__json_kstr(j, "ph", "M");
    leat__json_kstr(j, "name", what);
    leat__json_ku64(j, "pid", pid);
    leat__json_ku64(j, "tid", tid);
    leat__json_key(j, "args");
    leat__json_object(j);
    leat__json_kstr(j, "name", name);
    leat__json_end(j);
    leat__json_end(j);
}

static void put_event(leat__json *j, const copy *c, uint64_t pid, uint64_t tid)
{
    leat__json_object(j);
    leat__json_kstr(j, "ph", "X");
    leat__json_kstr(j, "name", c->name);
    leat__json_kstr(j, "cat", "leat");
    put_us(j, "ts", c->begin_ns);
    put_us(j, "dur", c->length);
    leat__json_ku64(j, "pid", pid);
    leat__json_ku64(j, "tid", tid);
    leat__json_key(j, "args");
    leat__json_object(j);
    leat__json_ki64(j, "arg", c->arg);
    leat__json_end(j);
    leat__json_end(j);
}

/* Writes the events of a ring and marks the rows they are on. */
static void put_ring(leat__json *j, const ring *r, uint64_t pid, bool used[ROWS_MAX])
{
    put_meta(j, "thread_name", pid, r->tid, r->thread);
    uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint64_t size = (uint64_t)r->mask + 1;
    for (uint64_t p = head > size ? head - size : 0; p < head; p++) {
        copy c;
        if (!read_event(r, p, &c)) continue;
        put_event(j, &c, pid, c.row > 0 ? ROW_TID + c.row : r->tid);
        LEAT_ASSERT(c.row < ROWS_MAX);
        used[c.row] = true;
    }
}

int leat__trace_json(leat__buf *out)
{
    uint64_t dropped = leat__trace_dropped();
    uint64_t pid = (uint64_t)getpid();
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "displayTimeUnit", "ms");
    leat__json_key(&j, "otherData");
    leat__json_object(&j);
    leat__json_ku64(&j, "dropped_events", dropped);
    leat__json_end(&j);
    leat__json_key(&j, "traceEvents");
    leat__json_array(&j);
    put_meta(&j, "process_name", pid, 0, "leat");
    bool used[ROWS_MAX] = {false};
    leat__mutex_lock(&control);
    for (const ring *r = atomic_load(&rings); r; r = r->next) put_ring(&j, r, pid, used);
    for (uint32_t row = 1; row < row_count; row++)
        if (used[row]) put_meta(&j, "thread_name", pid, ROW_TID + row, row_names[row]);
    leat__mutex_unlock(&control);
    leat__json_end(&j);
    leat__json_end(&j);
    return leat__buf_status(out);
}
