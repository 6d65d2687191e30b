/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept blocks: a short list with a lock. Sizes are rounded up, so that blocks fit similar requests. A request
 * that no kept block fits drops one, so there are never more blocks than were in use at once.
 */
#include "loader/blocks.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/log.h"
#include "base/num.h"
#include "base/thread.h"
#include "engine/budget.h"

#define KEPT_MAX 64
/* Up to this size a block much larger than requested wastes little. */
#define SMALL (UINT64_C(1) << 20)
/* Rounding step: small enough to waste little, large enough that sizes repeat. */
#define STEP(bytes) ((bytes) < SMALL ? UINT64_C(4) << 10 : UINT64_C(64) << 10)

struct leat__blocks {
    leat_budget *budget;
    leat_budget_cat cat;
    leat__mem_cat mem;
    leat__gpu *gpu; /* the device that pages are locked for, or NULL */
    leat_log log;
    atomic_bool lock_failed;
    uint32_t fork_generation;
    _Atomic uint64_t refs; /* held by its owner and the blocks in use */
    leat__mutex lock;      /* guards the fields below */
    leat__block kept[KEPT_MAX];
    uint32_t count;
    bool closed;
};

int leat__blocks_open(leat__blocks **out, leat_budget *budget, leat_budget_cat cat, leat__mem_cat mem,
                      leat_error *err)
{
    leat__blocks *b = LEAT_NEW(LOADER, leat__blocks);
    *out = b;
    if (b == NULL) return leat__fail_nomem(err, sizeof *b, "blocks");
    b->budget = budget;
    leat__budget_ref(budget); /* blocks may be returned after close */
    b->cat = cat;
    b->mem = mem;
    b->refs = 1;
    b->fork_generation = leat__fork_generation();
    leat__mutex_init(&b->lock);
    return 0;
}

static void unref(leat__blocks *b)
{
    if (atomic_fetch_sub(&b->refs, 1) != 1) return;
    LEAT_ASSERT(b->count == 0 && b->closed);
    leat__gpu_close(&b->gpu);
    leat__mutex_destroy(&b->lock);
    leat_budget_close(&b->budget);
    leat__free(b);
}

void leat__blocks_lock_pages(leat__blocks *b, leat__gpu *gpu, const leat_log *log)
{
    b->gpu = leat__gpu_ref(gpu);
    b->log = *log;
}

bool leat__blocks_locked(leat__blocks *b)
{
    return b->gpu != NULL && !atomic_load(&b->lock_failed);
}

/* Page-locks a new block, once, because that costs about as much as a copy. */
static void lock_pages(leat__blocks *b, leat__block *block)
{
    leat_error why;
    if (!leat__blocks_locked(b) || block->data == NULL) return;
    if (leat__gpu_lock_pages(b->gpu, block->data, block->bytes, &why) == 0) block->locked = true;
    else if (!atomic_exchange(&b->lock_failed, true))
        leat__log(&b->log, LEAT_LOG_WARN,
                  "batches are not page-locked, so copies to the device are slower (%s)", why.message);
}

static void free_block(leat__blocks *b, leat__block block)
{
    if (block.locked) leat__gpu_unlock_pages(b->gpu, block.data);
    leat__free(block.data);
}

void leat__blocks_trim(leat__blocks *b)
{
    leat__mutex_lock(&b->lock);
    while (b->count > 0) {
        leat__block block = b->kept[--b->count];
        leat_budget_release(b->budget, b->cat, block.bytes);
        free_block(b, block);
    }
    leat__mutex_unlock(&b->lock);
}

void leat__blocks_close(leat__blocks **out)
{
    leat__blocks *b = *out;
    if (b == NULL) return;
    leat__mutex_lock(&b->lock);
    b->closed = true;
    leat__mutex_unlock(&b->lock);
    leat__blocks_trim(b);
    unref(b);
    *out = NULL;
}

uint64_t leat__blocks_kept(leat__blocks *b)
{
    uint64_t bytes = 0;

    leat__mutex_lock(&b->lock);
    for (uint32_t i = 0; i < b->count; i++) bytes += b->kept[i].bytes;
    leat__mutex_unlock(&b->lock);
    return bytes;
}

static leat__block remove_locked(leat__blocks *b, uint32_t at)
{
    LEAT_ASSERT(at < b->count && b->count <= KEPT_MAX);
    leat__block block = b->kept[at];
    b->count--;
    for (uint32_t i = at; i < b->count; i++) b->kept[i] = b->kept[i + 1];
    return block;
}

/* Drops the smallest kept block of the same class (small or large) as `bytes`. */
static void drop_smallest(leat__blocks *b, uint64_t bytes)
{
    leat__block block = {0};

    leat__mutex_lock(&b->lock);
    uint32_t at = b->count;
    for (uint32_t i = 0; i < b->count; i++) {
        if ((b->kept[i].bytes > SMALL) != (bytes > SMALL)) continue;
        if (at == b->count || b->kept[i].bytes < b->kept[at].bytes) at = i;
    }
    if (at < b->count) block = remove_locked(b, at);
    leat__mutex_unlock(&b->lock);
    if (block.data == NULL) return;
    leat_budget_release(b->budget, b->cat, block.bytes);
    free_block(b, block);
}

static bool serves(const leat__block *kept, uint64_t bytes)
{
    return kept->bytes >= bytes && (kept->bytes <= SMALL || kept->bytes / 2 <= bytes);
}

/* Finds the most recently kept block that is large enough but not wastefully large. Its pages are the most
 * likely to be in the CPU caches. */
static leat__block find(leat__blocks *b, uint64_t bytes)
{
    leat__block found = {0};

    leat__mutex_lock(&b->lock);
    for (uint32_t i = b->count; i-- > 0 && found.data == NULL;) {
        if (serves(&b->kept[i], bytes)) found = remove_locked(b, i);
    }
    leat__mutex_unlock(&b->lock);
    if (found.data != NULL) leat__budget_reuse(b->budget, b->cat, found.bytes);
    return found;
}

leat__block leat__blocks_take(leat__blocks *b, uint64_t bytes)
{
    uint64_t rounded;

    if (!leat__align_up_u64(bytes > 0 ? bytes : 1, STEP(bytes), &rounded)) return (leat__block){0};
    leat__block block = find(b, rounded);
    if (block.data == NULL) {
        drop_smallest(b, rounded);
        block = (leat__block){leat__alloc_aligned(b->mem, rounded, 4096), rounded, false};
        if (block.data != NULL) leat__budget_allocated(b->budget, (int64_t)rounded);
        lock_pages(b, &block);
    }
    if (block.data != NULL) atomic_fetch_add(&b->refs, 1);
    LEAT_ASSERT(block.data == NULL || block.bytes >= bytes);
    return block;
}

void leat__blocks_give(leat__blocks *b, leat__block block)
{
    bool kept = false;

    /* In a forked child a thread that no longer exists may hold the lock. */
    if (block.data == NULL || b->fork_generation != leat__fork_generation()) return;
    leat__mutex_lock(&b->lock);
    LEAT_ASSERT(b->count <= KEPT_MAX && block.bytes > 0);
    if (!b->closed && b->count < KEPT_MAX && leat__budget_try_twice(b->budget, b->cat, block.bytes) == 0) {
        b->kept[b->count++] = block;
        kept = true;
    }
    leat__mutex_unlock(&b->lock);
    if (!kept) {
        leat__budget_allocated(b->budget, -(int64_t)block.bytes);
        free_block(b, block);
    }
    unref(b);
}
