/* SPDX-License-Identifier: Apache-2.0
 *
 * First fit over a bitmap: slots are hundreds of kilobytes, so a chunk has few of them and the
 * search costs little compared with the read.
 */
#include "loader/chunk.h"

#include "base/check.h"
#include "base/error.h"
#include "base/num.h"
#include "io/file.h"

#define UNIT LEAT__IO_ALIGN
#define NOWHERE UINT64_MAX

leat__chunk *leat__chunk_open(leat__mem_cat cat, uint64_t bytes)
{
    uint64_t units = bytes / UNIT, words = leat__ceil_div(units, UINT64_C(64));

    LEAT_ASSERT(bytes > 0 && bytes % LEAT__CHUNK_ALIGN == 0);
    leat__chunk *c = leat__zalloc(cat, sizeof *c + words * sizeof c->taken[0]);
    uint8_t *data = c != NULL ? leat__alloc_aligned(cat, bytes, LEAT__CHUNK_ALIGN) : NULL;
    if (data == NULL) {
        leat__free(c);
        return NULL;
    }
    c->data = data;
    c->bytes = bytes;
    c->units = c->free_units = units;
    return c;
}

int leat__chunk_map(leat__chunk *c, leat__gpu *gpu, leat_error *err)
{
    leat__gpu_memory address;
    LEAT_ASSERT(c->gpu == NULL);
    LEAT_TRY(leat__gpu_map_pages(gpu, c->data, c->bytes, &address, err));
    c->gpu = leat__gpu_ref(gpu);
    atomic_store_explicit(&c->mapped, address, memory_order_release);
    return 0;
}

uint64_t leat__chunk_mapped(const leat__chunk *c, const leat__gpu *gpu)
{
    const uint64_t address = atomic_load_explicit(&c->mapped, memory_order_acquire);
    return address != 0 && leat__gpu_same(c->gpu, gpu) ? address : 0;
}

void leat__chunk_close(leat__chunk *c)
{
    if (c->gpu != NULL) leat__gpu_unlock_pages(c->gpu, c->data);
    leat__gpu_close(&c->gpu);
    leat__free(c->data);
    leat__free(c);
}

static bool is_taken(const leat__chunk *c, uint64_t unit)
{
    return (c->taken[unit / 64] >> unit % 64 & 1) != 0;
}

static uint64_t find_gap(const leat__chunk *c, uint64_t units)
{
    uint64_t free = 0;
    for (uint64_t u = 0; u < c->units; u++) {
        free = is_taken(c, u) ? 0 : free + 1;
        if (free == units) return u + 1 - units;
    }
    return NOWHERE;
}

static void flip(leat__chunk *c, uint64_t first, uint64_t units)
{
    for (uint64_t u = first; u < first + units; u++) c->taken[u / 64] ^= UINT64_C(1) << u % 64;
}

static uint64_t units_of(uint64_t bytes)
{
    return leat__ceil_div(LEAT_MAX(bytes, UINT64_C(1)), (uint64_t)UNIT);
}

uint8_t *leat__chunk_take(leat__chunk *c, uint64_t bytes)
{
    LEAT_ASSERT(bytes <= c->bytes);
    uint64_t units = units_of(bytes);
    uint64_t first = units <= c->free_units ? find_gap(c, units) : NOWHERE;

    if (first == NOWHERE) return NULL;
    flip(c, first, units);
    c->free_units -= units;
    LEAT_ASSERT(is_taken(c, first) && is_taken(c, first + units - 1));
    return c->data + first * UNIT;
}

void leat__chunk_give(leat__chunk *c, const uint8_t *room, uint64_t bytes)
{
    LEAT_ASSERT(room >= c->data && (uint64_t)(room - c->data) % UNIT == 0);
    uint64_t first = (uint64_t)(room - c->data) / UNIT, units = units_of(bytes);

    LEAT_ASSERT(first + units <= c->units && is_taken(c, first));
    flip(c, first, units);
    c->free_units += units;
    LEAT_ASSERT(c->free_units <= c->units);
}

bool leat__chunk_empty(const leat__chunk *c)
{
    return c->free_units == c->units;
}
