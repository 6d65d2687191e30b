/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk: memory in huge pages, split into slots for direct reads. For kernel and device, a read into huge
 * pages is a few large pieces instead of hundreds of small ones, which nearly doubles the rate of a fast disk
 * (bench/RESULTS.md).
 *
 * The owner of a chunk has the lock and keeps the list of chunks. A device can read a chunk once a mapper
 * (mapper.h) has mapped it.
 */
#ifndef LEAT_LOADER_CHUNK_H
#define LEAT_LOADER_CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "gpu/device.h"

#define LEAT__CHUNK_ALIGN (UINT64_C(2) << 20)

typedef struct leat__chunk {
    struct leat__chunk *prev, *next; /* for its owner */
    void *owner;
    bool pinned, leaves;          /* flags of its owner */
    struct leat__chunk *map_next; /* for the mapper, like the next two */
    leat__gpu *gpu;               /* the device of the address `mapped`; a reference */
    _Atomic uint64_t mapped;      /* 0: not mapped */
    uint8_t *data;
    uint64_t bytes;
    uint64_t units, free_units;
    uint64_t taken[]; /* a bit per unit */
} leat__chunk;

/* Allocates a chunk; `bytes` is a multiple of LEAT__CHUNK_ALIGN. NULL when out of memory. */
leat__chunk *leat__chunk_open(leat__mem_cat cat, uint64_t bytes) LEAT_MUST_CHECK;
void leat__chunk_close(leat__chunk *c); /* call it when no slot is in use and no device reads it */

/* Page-locks the chunk so that `gpu` can read it. Call it once. */
int leat__chunk_map(leat__chunk *c, leat__gpu *gpu, leat_error *err) LEAT_MUST_CHECK;
uint64_t leat__chunk_mapped(const leat__chunk *c,
                            const leat__gpu *gpu); /* its address there; 0: not mapped */

/* Takes a slot aligned for direct reads; NULL when no gap is large enough. */
uint8_t *leat__chunk_take(leat__chunk *c, uint64_t bytes) LEAT_MUST_CHECK;
/* Returns a slot; `bytes` as in take. */
void leat__chunk_give(leat__chunk *c, const uint8_t *room, uint64_t bytes);
bool leat__chunk_empty(const leat__chunk *c);

#endif
