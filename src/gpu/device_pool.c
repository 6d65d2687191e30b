/* SPDX-License-Identifier: Apache-2.0
 *
 * Device blocks: a list of idle ones, oldest first, under a lock. A trainer's thread runs ahead of its
 * device, so a released block is usually still being read. Then a few more blocks are allocated; after that
 * the copying stream waits for the oldest one.
 */
#include "gpu/device_pool.h"

#include <stdatomic.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"

#define ROUND (UINT64_C(64) << 10)
#define WAITING_MAX 2 /* idle blocks that are still being read before the stream waits for one */

struct leat__device_pool {
    leat__gpu *gpu;
    _Atomic uint32_t refs; /* held by its owner and the blocks in use */
    leat__mutex lock;      /* guards the rest */
    leat__cond given;
    leat__device_block *idle;
    leat__device_pool_stats stats;
    uint64_t generation; /* counts blocks that were released or settled */
    bool closed;
    bool cannot_mark; /* the driver has no event for the work of all streams */
};

int leat__device_pool_open(leat__device_pool **out, leat__gpu *gpu, uint64_t limit, leat_error *err)
{
    leat__device_pool *p = LEAT_NEW(LOADER, leat__device_pool);
    *out = p;
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "device memory");
    p->gpu = leat__gpu_ref(gpu);
    p->refs = 1;
    p->stats.limit = limit;
    leat__mutex_init(&p->lock);
    leat__cond_init(&p->given);
    return 0;
}

static void unref(leat__device_pool *p)
{
    if (atomic_fetch_sub(&p->refs, 1) != 1) return;
    LEAT_ASSERT(p->closed && p->idle == NULL);
    leat__gpu_close(&p->gpu);
    leat__cond_destroy(&p->given);
    leat__mutex_destroy(&p->lock);
    leat__free(p);
}

/* Frees a block. The driver waits until nothing on the device reads the memory; this does not disturb a
 * capture. */
static void free_block(leat__device_pool *p, leat__device_block *b)
{
    leat__gpu_free(p->gpu, b->memory);
    leat__gpu_event_close(&b->event);
    leat__free(b);
}

static void check_locked(const leat__device_pool *p)
{
    LEAT_ASSERT(p->stats.used <= p->stats.limit && p->stats.used <= p->stats.peak);
    LEAT_ASSERT(p->stats.idle + p->stats.lent <= p->stats.blocks);
    LEAT_ASSERT((p->idle == NULL) == (p->stats.idle == 0));
}

static leat__device_block *unlink_locked(leat__device_pool *p, leat__device_block **at)
{
    LEAT_ASSERT(p->stats.idle > 0);
    leat__device_block *b = *at;
    *at = b->next;
    b->next = NULL;
    p->stats.idle--;
    return b;
}

void leat__device_pool_close(leat__device_pool **out)
{
    leat__device_pool *p = *out;
    if (p == NULL) return;
    *out = NULL;
    leat__mutex_lock(&p->lock);
    p->closed = true;
    while (p->idle != NULL) {
        leat__device_block *b = unlink_locked(p, &p->idle);
        free_block(p, b);
    }
    leat__mutex_unlock(&p->lock);
    unref(p);
}

static bool serves(const leat__device_block *b, uint64_t bytes)
{
    return b->bytes >= bytes && b->bytes / 2 <= bytes;
}

/* Finds an idle block that nothing reads any more; *waiting counts the other suitable ones. Unmarked ones
 * count only if the driver can mark no block at all: a consumer that captures a graph may need more batches
 * before its end. */
static leat__device_block *find_free_locked(leat__device_pool *p, uint64_t bytes, uint32_t *waiting)
{
    for (leat__device_block **at = &p->idle; *at != NULL; at = &(*at)->next) {
        const leat__block_use use = (*at)->use;
        if (!serves(*at, bytes)) continue;
        if (use == LEAT__BLOCK_UNUSED || (use == LEAT__BLOCK_MARKED && leat__gpu_event_passed((*at)->event)))
            return unlink_locked(p, at);
        *waiting += use == LEAT__BLOCK_MARKED || p->cannot_mark;
    }
    return NULL;
}

/* Finds the oldest idle block of this use and a suitable size, or NULL. */
static leat__device_block **oldest_locked(leat__device_pool *p, uint64_t bytes, leat__block_use use)
{
    leat__device_block **at = &p->idle;
    while (*at != NULL && ((*at)->use != use || !serves(*at, bytes))) at = &(*at)->next;
    return *at != NULL ? at : NULL;
}

static void free_locked(leat__device_pool *p, leat__device_block **at)
{
    leat__device_block *b = unlink_locked(p, at);
    LEAT_ASSERT(p->stats.used >= b->bytes && p->stats.blocks > 0);
    p->stats.used -= b->bytes;
    p->stats.blocks--;
    free_block(p, b);
}

static int allocate_locked(leat__device_pool *p, uint64_t bytes, leat__device_block **out, leat_error *err)
{
    leat__device_block *b = LEAT_NEW(LOADER, leat__device_block);
    int rc;
    if (b == NULL) return leat__fail_nomem(err, sizeof *b, "device memory");
    LEAT_GO(rc, out, leat__gpu_event_open(&b->event, p->gpu, false, err));
    LEAT_GO(rc, out, leat__gpu_alloc(p->gpu, bytes, &b->memory, err));
    b->bytes = bytes;
    p->stats.used += bytes;
    p->stats.peak = LEAT_MAX(p->stats.peak, p->stats.used);
    p->stats.blocks++;
    *out = b;
    b = NULL;
out:
    if (b != NULL) free_block(p, b);
    return rc;
}

/* Takes the oldest marked block and makes the stream wait for it. Else frees an unmarked one, which waits for
 * its readers, and allocates a new one. */
static int take_waiting_locked(leat__device_pool *p, uint64_t bytes, leat__gpu_stream *s,
                               leat__device_block **out, leat_error *err)
{
    leat__device_block **at = oldest_locked(p, bytes, LEAT__BLOCK_MARKED);
    if (at != NULL) {
        LEAT_TRY(leat__gpu_stream_after(s, (*at)->event, err));
        *out = unlink_locked(p, at);
        return 0;
    }
    at = oldest_locked(p, bytes, LEAT__BLOCK_UNMARKED);
    if (at == NULL) return LEAT_EAGAIN;
    bytes = (*at)->bytes;
    free_locked(p, at);
    return allocate_locked(p, bytes, out, err);
}

/* Frees idle blocks of other sizes: all of them, or until `bytes` fit the limit. */
static void make_room_locked(leat__device_pool *p, uint64_t bytes, bool all)
{
    leat__device_block **at = &p->idle;
    while (*at != NULL && (all || p->stats.used + bytes > p->stats.limit)) {
        if (serves(*at, bytes) || (*at)->use == LEAT__BLOCK_UNSETTLED) at = &(*at)->next;
        else free_locked(p, at);
    }
}

static int take_locked(leat__device_pool *p, uint64_t bytes, leat__gpu_stream *s, leat__device_block **out,
                       leat_error *err)
{
    uint32_t waiting = 0;
    *out = find_free_locked(p, bytes, &waiting);
    if (*out != NULL) return 0;
    if (waiting < WAITING_MAX) {
        make_room_locked(p, bytes, false);
        p->stats.full = false;
        if (p->stats.used + bytes <= p->stats.limit) {
            int rc = allocate_locked(p, bytes, out, err);
            if (rc == LEAT_ENOMEM) {
                make_room_locked(p, bytes, true);
                rc = allocate_locked(p, bytes, out, err);
            }
            /* the device has less memory than the limit: continue with the blocks there are */
            if (rc != LEAT_ENOMEM || p->stats.blocks == 0) return rc;
            p->stats.full = true;
        }
    }
    return take_waiting_locked(p, bytes, s, out, err);
}

int leat__device_pool_take(leat__device_pool *p, uint64_t bytes, leat__gpu_stream *s,
                           leat__device_block **out, leat_error *err)
{
    uint64_t rounded;
    *out = NULL;
    if (!leat__align_up_u64(LEAT_MAX(bytes, UINT64_C(1)), ROUND, &rounded) || rounded > p->stats.limit)
        return leat__fail(err, LEAT_EBUDGET, "device memory: a batch needs %s, the limit is %s",
                          leat__as_size(bytes).text, leat__as_size(p->stats.limit).text);
    leat__mutex_lock(&p->lock);
    int rc = take_locked(p, rounded, s, out, err);
    check_locked(p);
    LEAT_ASSERT(rc != 0 || (*out)->bytes >= bytes);
    leat__mutex_unlock(&p->lock);
    if (rc != 0) return rc;
    atomic_fetch_add(&p->refs, 1);
    return 0;
}

void leat__device_pool_lend(leat__device_pool *p, leat__device_block *b)
{
    leat__mutex_lock(&p->lock);
    LEAT_ASSERT(!b->lent);
    b->lent = true;
    p->stats.lent++;
    leat__mutex_unlock(&p->lock);
}

void leat__device_pool_give(leat__device_pool *p, leat__device_block *b)
{
    if (b == NULL) return;
    leat__mutex_lock(&p->lock);
    bool closed = p->closed;
    b->use = b->lent ? LEAT__BLOCK_UNSETTLED : LEAT__BLOCK_UNUSED;
    p->stats.lent -= b->lent;
    b->lent = false;
    if (!closed) {
        leat__device_block **at = &p->idle;
        while (*at != NULL) at = &(*at)->next;
        *at = b;
        p->stats.idle++;
        p->generation++;
        leat__cond_broadcast(&p->given);
    }
    LEAT_ASSERT(closed || b->next == NULL);
    leat__mutex_unlock(&p->lock);
    if (closed) free_block(p, b);
    unref(p);
}

void leat__device_pool_settle(leat__device_pool *p, bool capturing)
{
    bool changes = false;
    leat__mutex_lock(&p->lock);
    for (leat__device_block *b = p->idle; b != NULL; b = b->next) {
        if (b->use != LEAT__BLOCK_UNSETTLED && b->use != LEAT__BLOCK_UNMARKED) continue;
        const int rc = capturing ? LEAT_EAGAIN : leat__gpu_event_record_all(b->event, NULL);
        capturing |= rc == LEAT_EAGAIN; /* another thread is capturing */
        p->cannot_mark |= rc == LEAT_ENOTSUP;
        changes |= rc == 0 || b->use == LEAT__BLOCK_UNSETTLED;
        b->use = rc == 0 ? LEAT__BLOCK_MARKED : LEAT__BLOCK_UNMARKED;
    }
    if (changes) {
        p->generation++;
        leat__cond_broadcast(&p->given);
    }
    leat__mutex_unlock(&p->lock);
}

void leat__device_pool_wait(leat__device_pool *p, uint64_t deadline_ns)
{
    leat__mutex_lock(&p->lock);
    uint64_t before = p->generation;
    while (p->generation == before && leat__cond_wait_until(&p->given, &p->lock, deadline_ns)) {
    }
    leat__mutex_unlock(&p->lock);
}

void leat__device_pool_read(leat__device_pool *p, leat__device_pool_stats *stats)
{
    leat__mutex_lock(&p->lock);
    *stats = p->stats;
    leat__mutex_unlock(&p->lock);
}
