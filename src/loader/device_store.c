/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: see device_store.h. Device memory comes in slabs that are filled from the start; one
 * table has the entry of each image.
 */
#include "loader/device_store.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define SLAB (UINT64_C(64) << 20)
#define ALIGN UINT64_C(256)
#define STEP (UINT64_C(64) << 10) /* bytes charged for headers at a time */

enum { FREE, CLAIMED, RESIDENT };

typedef struct slab {
    struct slab *next;
    leat__device_block *block;
} slab;

struct leat__device_store {
    leat__device_store_opts opts;
    leat__device_entry *_Atomic *entries; /* by image */
    atomic_bool full;
    _Atomic uint64_t images, bytes;
    _Atomic uint64_t charged; /* bytes charged to the budget */
    _Atomic uint64_t unused;  /* the part of them that no header uses yet */
    /* used by the copying thread */
    slab *slabs; /* the first is being filled */
    uint64_t slab_used, taken;
};

int leat__device_store_open(leat__device_store **out, const leat__device_store_opts *opts, leat_error *err)
{
    leat__device_store *s = LEAT_NEW(LOADER, leat__device_store);
    uint64_t table = 0, bytes = 0;
    int rc = 0;
    *out = NULL;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "tiles on a device");
    s->opts = *opts;
    if (!leat__mul_u64(opts->images + 1, sizeof *s->entries, &table) ||
        !leat__add_u64(table, opts->reserve, &bytes))
        LEAT_GO(rc, out, leat__fail(err, LEAT_EOVERFLOW, "`cache` device: too many images"));
    if (leat_budget_try(opts->budget, LEAT_BUDGET_OTHER, bytes) != 0)
        LEAT_GO(rc, out,
                leat__fail(err, LEAT_EBUDGET, "`cache` device: a table of %s exceeds the budget",
                           leat__as_size(bytes).text));
    atomic_store(&s->charged, bytes);
    atomic_store(&s->unused, opts->reserve);
    s->entries = leat__zalloc(LEAT__MEM_LOADER, table);
    if (s->entries == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, table, "tiles on a device"));
    *out = s;
    s = NULL;
out:
    leat__device_store_close(&s);
    return rc;
}

void leat__device_store_close(leat__device_store **out)
{
    leat__device_store *s = *out;
    if (s == NULL) return;
    *out = NULL;
    for (uint64_t i = 0; s->entries != NULL && i < s->opts.images; i++)
        leat__free(atomic_load_explicit(&s->entries[i], memory_order_relaxed));
    while (s->slabs != NULL) {
        slab *first = s->slabs;
        s->slabs = first->next;
        leat__device_pool_give(s->opts.pool, first->block);
        leat__free(first);
    }
    leat_budget_release(s->opts.budget, LEAT_BUDGET_OTHER, atomic_load(&s->charged));
    leat__free(s->entries);
    leat__free(s);
}

const leat__device_entry *leat__device_store_find(leat__device_store *s, uint64_t image)
{
    const leat__device_entry *e = atomic_load_explicit(&s->entries[image], memory_order_acquire);
    return e != NULL && atomic_load_explicit(&e->state, memory_order_acquire) == RESIDENT ? e : NULL;
}

/* Takes `size` bytes of the charged, unused ones. */
static bool take_unused(leat__device_store *s, uint64_t size)
{
    uint64_t unused = atomic_load(&s->unused);
    while (unused >= size)
        if (atomic_compare_exchange_weak(&s->unused, &unused, unused - size)) return true;
    return false;
}

/* Takes `size` bytes for a header; false when the budget has no room now. Batches in flight free bytes later,
 * so the next image tries again. */
static bool take_header(leat__device_store *s, uint64_t size)
{
    const uint64_t most = s->opts.reserve + s->opts.extras + (s->opts.images + 1) * sizeof *s->entries;
    const uint64_t step = LEAT_MAX(STEP, size);
    if (take_unused(s, size)) return true;
    if (atomic_fetch_add(&s->charged, step) + step > most ||
        leat_budget_try(s->opts.budget, LEAT_BUDGET_OTHER, step) != 0) {
        atomic_fetch_sub(&s->charged, step);
        return false;
    }
    atomic_fetch_add(&s->unused, step - size);
    return true;
}

/* Adds an entry for an image without one; NULL: out of memory, or another thread was first. */
static leat__device_entry *add_entry(leat__device_store *s, uint64_t image, const uint8_t *header,
                                     uint32_t header_bytes, uint64_t bytes)
{
    const uint64_t size = sizeof(leat__device_entry) + header_bytes;
    leat__device_entry *none = NULL, *e;
    if (!take_header(s, size)) return NULL;
    e = leat__zalloc(LEAT__MEM_LOADER, size);
    if (e != NULL) {
        atomic_init(&e->state, CLAIMED);
        e->header_bytes = header_bytes;
        e->bytes = bytes;
        memcpy(e->header, header, header_bytes);
        if (atomic_compare_exchange_strong(&s->entries[image], &none, e)) return e;
        leat__free(e);
    }
    atomic_fetch_add(&s->unused, size);
    return NULL;
}

leat__device_entry *leat__device_store_claim(leat__device_store *s, uint64_t image, const uint8_t *header,
                                             uint32_t header_bytes, uint64_t bytes)
{
    uint32_t expected = FREE;
    leat__device_entry *e;
    if (atomic_load_explicit(&s->full, memory_order_relaxed)) return NULL;
    e = atomic_load_explicit(&s->entries[image], memory_order_acquire);
    if (e == NULL) return add_entry(s, image, header, header_bytes, bytes);
    return atomic_compare_exchange_strong(&e->state, &expected, CLAIMED) ? e : NULL;
}

void leat__device_store_drop(leat__device_store *s, leat__device_entry *e)
{
    (void)s;
    if (e != NULL) atomic_store(&e->state, FREE);
}

/* Adds a slab to fill. False: limit reached, or out of memory. */
static bool add_slab(leat__device_store *s, uint64_t bytes, leat__gpu_stream *stream)
{
    uint64_t size = LEAT_MAX(bytes, LEAT_MIN(SLAB, s->opts.limit - s->taken));
    slab *first;
    if (s->taken + size > s->opts.limit || (first = LEAT_NEW(LOADER, slab)) == NULL) return false;
    if (leat__device_pool_take(s->opts.pool, size, stream, &first->block, NULL) != 0) {
        leat__free(first);
        return false;
    }
    first->next = s->slabs;
    s->slabs = first;
    s->taken += size;
    s->slab_used = 0;
    return true;
}

leat__gpu_memory leat__device_store_take(leat__device_store *s, uint64_t bytes, leat__gpu_stream *stream)
{
    const uint64_t rounded = (bytes + ALIGN - 1) & ~(ALIGN - 1);
    if (atomic_load(&s->full)) return 0;
    const bool fits = s->slabs != NULL && s->slab_used + rounded <= s->slabs->block->bytes;
    if (!fits && !add_slab(s, rounded, stream)) {
        atomic_store(&s->full, true);
        return 0;
    }
    const leat__gpu_memory at = s->slabs->block->memory + s->slab_used;
    s->slab_used += rounded;
    atomic_fetch_add(&s->bytes, rounded);
    return at;
}

void leat__device_store_keep(leat__device_store *s, leat__device_entry *e, leat__gpu_memory address)
{
    e->address = address;
    atomic_store_explicit(&e->state, RESIDENT, memory_order_release);
    atomic_fetch_add(&s->images, 1);
}

void leat__device_store_read(leat__device_store *s, leat__device_store_stats *stats)
{
    stats->images = atomic_load(&s->images);
    stats->bytes = atomic_load(&s->bytes);
}
