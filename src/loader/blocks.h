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
    bool locked; /* page-locked for a device */
} leat__block;

typedef struct leat__blocks leat__blocks;

/* Opens an empty object. Blocks returned after close are freed. */
int leat__blocks_open(leat__blocks **b, leat_budget *budget, leat_budget_cat cat, leat__mem_cat mem,
                      leat_error *err) LEAT_MUST_CHECK;
/* From now on new blocks are page-locked for the device, which is kept open. The first failure is
 * logged; after that, blocks are ordinary memory. */
void leat__blocks_lock_pages(leat__blocks *b, leat__gpu *gpu, const leat_log *log);
bool leat__blocks_locked(leat__blocks *b); /* page-locking was requested and has not failed */
/* Frees the kept blocks. The object lives until the last block was returned. */
void leat__blocks_close(leat__blocks **b);
void leat__blocks_trim(leat__blocks *b);     /* frees the kept blocks */
uint64_t leat__blocks_kept(leat__blocks *b); /* bytes kept now */

/* Returns a block of at least `bytes` with undefined content; data is NULL when out of memory. */
leat__block leat__blocks_take(leat__blocks *b, uint64_t bytes) LEAT_MUST_CHECK;
void leat__blocks_give(leat__blocks *b, leat__block block); /* an empty block is allowed */

#endif
