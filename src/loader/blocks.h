/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of memory for reuse: batches, encoded samples. A returned block is kept for the next
 * request, so that the steady state neither allocates nor faults pages in.
 *
 * A block in use is charged by its user. A kept block is charged by this object, and kept only if the budget
 * allows, so that unused memory never blocks requests for memory. Any thread may call.
 */
#ifndef LEAT_LOADER_BLOCKS_H
#define LEAT_LOADER_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include <leat/flow.h>
#include <leat/log.h>

#include "base/error.h"
#include "base/mem.h"
#include "gpu/device.h"

typedef struct leat__block {
    uint8_t *data; /* aligned to 4096 */
    uint64_t bytes;
    uint64_t asked; /* bytes that its user pays for; these blocks are charged for the rest */
    uint64_t paid;  /* of `asked`: bytes that its user was charged for so far */
    bool used;      /* it was used before, so all of its memory is resident */
    bool locked;    /* page-locked for a device */
} leat__block;

typedef struct leat__blocks leat__blocks;

/* Opens an empty object. Blocks returned after close are freed. */
int leat__blocks_open(leat__blocks **b, leat_budget *budget, leat_budget_cat cat, leat__mem_cat mem,
                      leat_error *err) LEAT_MUST_CHECK;
/* Blocks are kept only while this much of the budget is free, so that a task which needs up to as many bytes
 * begins at once. (It takes kept blocks then, and their charge is released.) Default: 0. */
void leat__blocks_leave(leat__blocks *b, uint64_t bytes);
/* From now on new blocks of whole pages are page-locked for the device when they are first paid for. The
 * device is kept open. The first failure is logged; after that, blocks are ordinary memory. */
void leat__blocks_lock_pages(leat__blocks *b, leat__gpu *gpu, const leat_log *log);
bool leat__blocks_locked(leat__blocks *b); /* page-locking was requested and has not failed */
/* Frees the kept blocks. The object lives until the last block was returned. */
void leat__blocks_close(leat__blocks **b);
void leat__blocks_trim(leat__blocks *b);     /* frees the kept blocks */
uint64_t leat__blocks_kept(leat__blocks *b); /* bytes kept now */

/* Returns a block of at least `bytes` with undefined content; data is NULL when out of memory. The caller has
 * charged `bytes` to the budget and releases them after it has returned the block. */
leat__block leat__blocks_take(leat__blocks *b, uint64_t bytes) LEAT_MUST_CHECK;
/* The same for a block that is filled in parts. The caller charges each part, pays for it, then writes it. So
 * the memory of a new block is counted as it is filled. A kept block stays charged until it is paid for. */
leat__block leat__blocks_take_unpaid(leat__blocks *b, uint64_t bytes) LEAT_MUST_CHECK;
/* The caller has charged `bytes` more of the block, which page-locks a new block if requested. Returns the
 * part of `bytes` that exceeds what the block needed. */
uint64_t leat__blocks_pay(leat__blocks *b, leat__block *block, uint64_t bytes);
void leat__blocks_give(leat__blocks *b, leat__block block); /* an empty block is allowed */

#endif
