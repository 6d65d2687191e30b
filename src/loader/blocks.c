/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept blocks: a short list with a lock. Sizes are rounded up if the budget has room, so that blocks fit
 * similar requests. A request that no kept block fits drops one, so there are never more blocks than were in
 * use at once. A block larger than requested stays charged for the difference while it is in use, so that the
 * budget knows all memory that is allocated.
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
#define PAGE 4096u
/* Up to this size a block much larger than requested wastes little. */
#define SMALL (UINT64_C(1) << 20)
/* Rounding step: small enough to waste little, large enough that sizes repeat. */
#define STEP(bytes) ((bytes) < SMALL ? UINT64_C(4) << 10 : UINT64_C(64) << 10)

struct leat__blocks {
    leat_budget *budget;
    leat_budget_cat cat;
    leat__mem_cat mem;
    uint64_t spare; /* bytes of the budget that kept blocks leave free */
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

void leat__blocks_leave(leat__blocks *b, uint64_t bytes)
{
    b->spare = bytes;
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

/* Page-locks a new block of whole pages, once, because that costs about as much as a copy. */
static void lock_pages(leat__blocks *b, leat__block *block)
{
    leat_error why;
    if (!leat__blocks_locked(b) || block->bytes % PAGE != 0) return;
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

/* Releases bytes that a block in use was charged for. */
static void return_lent(leat__blocks *b, uint64_t bytes)
{
    if (bytes == 0) return;
    leat__budget_lend(b->budget, -(int64_t)bytes);
    leat_budget_release(b->budget, b->cat, bytes);
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
 * likely to be in the CPU caches. It stays charged until it is paid for. */
static leat__block find(leat__blocks *b, uint64_t bytes)
{
    leat__block found = {0};

    leat__mutex_lock(&b->lock);
    for (uint32_t i = b->count; i-- > 0 && found.data == NULL;) {
        if (serves(&b->kept[i], bytes)) found = remove_locked(b, i);
    }
    leat__mutex_unlock(&b->lock);
    if (found.data != NULL) leat__budget_lend(b->budget, (int64_t)found.bytes);
    found.asked = bytes;
    found.paid = 0;
    found.used = true;
    return found;
}

/* Allocates a block, with room for larger requests if the budget has it. */
static leat__block allocate(leat__blocks *b, uint64_t bytes, uint64_t rounded)
{
    LEAT_ASSERT(rounded >= bytes);
    if (rounded > bytes) {
        if (leat_budget_try(b->budget, b->cat, rounded - bytes) != 0) rounded = bytes;
        else leat__budget_lend(b->budget, (int64_t)(rounded - bytes));
    }
    leat__block block = {.bytes = rounded, .asked = bytes};
    block.data = leat__alloc_aligned(b->mem, rounded, PAGE);
    if (block.data == NULL) return_lent(b, rounded - bytes);
    return block;
}

static leat__block take(leat__blocks *b, uint64_t bytes, uint64_t rounded)
{
    leat__block block = find(b, bytes);
    if (block.data == NULL) {
        drop_smallest(b, rounded);
        block = allocate(b, bytes, rounded);
    }
    if (block.data == NULL) return (leat__block){0};
    atomic_fetch_add(&b->refs, 1);
    LEAT_ASSERT(block.bytes >= block.asked && block.asked == bytes);
    return block;
}

leat__block leat__blocks_take_unpaid(leat__blocks *b, uint64_t bytes)
{
    bytes = LEAT_MAX(bytes, UINT64_C(1));
    return take(b, bytes, bytes);
}

leat__block leat__blocks_take(leat__blocks *b, uint64_t bytes)
{
    uint64_t rounded;

    bytes = LEAT_MAX(bytes, UINT64_C(1));
    if (!leat__align_up_u64(bytes, STEP(bytes), &rounded)) return (leat__block){0};
    leat__block block = take(b, bytes, rounded);
    if (block.data != NULL) leat__blocks_pay(b, &block, bytes);
    return block;
}

uint64_t leat__blocks_pay(leat__blocks *b, leat__block *block, uint64_t bytes)
{
    const uint64_t part = LEAT_MIN(bytes, block->asked - block->paid);

    LEAT_ASSERT(block->paid <= block->asked);
    if (part == 0) return bytes;
    if (block->used) {
        leat__budget_lend(b->budget, -(int64_t)part);
        leat__budget_reuse(b->budget, b->cat, part);
    } else {
        leat__budget_allocated(b->budget, (int64_t)part);
        if (block->paid == 0) lock_pages(b, block);
    }
    block->paid += part;
    return bytes - part;
}

/* Returns the bytes of a block in use that these blocks are charged for. */
static uint64_t lent(const leat__block *block)
{
    LEAT_ASSERT(block->paid <= block->asked && block->asked <= block->bytes);
    return block->bytes - (block->used ? block->paid : block->asked);
}

void leat__blocks_give(leat__blocks *b, leat__block block)
{
    bool kept = false;

    /* In a forked child a thread that no longer exists may hold the lock. */
    if (block.data == NULL || b->fork_generation != leat__fork_generation()) return;
    const uint64_t own = lent(&block);
    const bool filled = block.paid == block.asked; /* a batch that was given up is not */
    leat__mutex_lock(&b->lock);
    LEAT_ASSERT(b->count <= KEPT_MAX && block.bytes > 0);
    if (filled && !b->closed && b->count < KEPT_MAX &&
        leat__budget_try_twice(b->budget, b->cat, block.paid, b->spare) == 0) {
        leat__budget_lend(b->budget, -(int64_t)own);
        b->kept[b->count++] = block;
        kept = true;
    }
    leat__mutex_unlock(&b->lock);
    if (!kept) {
        leat__budget_allocated(b->budget, -(int64_t)block.paid);
        free_block(b, block);
        return_lent(b, own);
    }
    unref(b);
}
