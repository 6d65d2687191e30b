/* SPDX-License-Identifier: Apache-2.0
 *
 * A chunk: memory in huge pages, cut into rooms for what direct reads bring. A read into huge
 * pages is a few large pieces for the kernel and the device instead of hundreds of small ones,
 * which nearly doubles what a fast disk delivers (bench/RESULTS.md).
 *
 * Its owner has the lock and keeps the list.
 */
#ifndef LEAT_LOADER_CHUNK_H
#define LEAT_LOADER_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define LEAT__CHUNK_ALIGN (UINT64_C(2) << 20)

typedef struct leat__chunk {
    struct leat__chunk *prev, *next; /* its owner's */
    void *owner;
    bool pinned, leaves; /* its owner's notes */
    uint8_t *data;
    uint64_t bytes;
    uint64_t units, free_units;
    uint64_t taken[]; /* a bit per unit */
} leat__chunk;

/* `bytes`: a multiple of LEAT__CHUNK_ALIGN. NULL when out of memory. */
leat__chunk *leat__chunk_open(leat__mem_cat cat, uint64_t bytes) LEAT_MUST_CHECK;
void leat__chunk_close(leat__chunk *c); /* nothing in it is used any more */

/* A room aligned for direct reads; NULL when no gap is that large. */
uint8_t *leat__chunk_take(leat__chunk *c, uint64_t bytes) LEAT_MUST_CHECK;
void leat__chunk_give(leat__chunk *c, const uint8_t *room, uint64_t bytes); /* as it was taken */
bool leat__chunk_empty(const leat__chunk *c);

#endif
