/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps one pointer per part of every shard's file, set once. If two threads read the same part, the second
 * copy is freed.
 */
#include "loader/kept.h"

#include <stdatomic.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/budget.h"
#include "io/file.h"
#include "loader/setup.h"
#include "pack/reader.h"

struct leat__kept {
    leat_pack *pack;
    uint64_t limit;
    _Atomic uint64_t bytes;
    uint64_t *first; /* first part of each shard, and the end */
    _Atomic(uint8_t *) *parts;
};

int leat__kept_open(leat__kept **out, leat_pack *pack, uint64_t limit, leat_error *err)
{
    uint32_t shards = leat__pack_shards(pack);
    leat__kept *k = LEAT_NEW(LOADER, leat__kept);
    uint64_t parts = 0;

    *out = k;
    if (k == NULL) return leat__fail_nomem(err, sizeof *k, "samples to keep");
    k->pack = pack;
    k->limit = limit;
    k->first = LEAT_NEW_ARRAY(LOADER, uint64_t, (size_t)shards + 1);
    if (k->first == NULL) goto nomem;
    for (uint32_t i = 0; i < shards; i++) {
        k->first[i] = parts;
        parts += leat__ceil_div(leat__pack_data_end(pack, i), LEAT__KEPT_PART);
    }
    k->first[shards] = parts;
    k->parts = leat__zalloc_array(LEAT__MEM_LOADER, (size_t)parts + 1, sizeof *k->parts);
    if (k->parts != NULL) return 0;
nomem:
    leat__kept_close(out);
    return leat__fail_nomem(err, (parts + shards) * 8, "samples to keep");
}

void leat__kept_close(leat__kept **out)
{
    leat__kept *k = *out;
    if (k == NULL) return;
    uint64_t parts = k->parts != NULL ? k->first[leat__pack_shards(k->pack)] : 0;
    for (uint64_t i = 0; i < parts; i++) leat__free(atomic_load(&k->parts[i]));
    leat__free(k->parts);
    leat__free(k->first);
    leat__free(k);
    *out = NULL;
}

static const uint8_t *part_at(const leat__kept *k, uint32_t shard, uint64_t offset)
{
    return atomic_load_explicit(&k->parts[k->first[shard] + offset / LEAT__KEPT_PART], memory_order_acquire);
}

bool leat__kept_has(const leat__kept *k, uint32_t shard, uint64_t offset, uint64_t len)
{
    const uint8_t *part = part_at(k, shard, offset);
    if (part == NULL || part_at(k, shard, offset + len - 1) == NULL) return false;
    __builtin_prefetch(part + offset % LEAT__KEPT_PART);
    return true;
}

/* Returns the part that contains `offset`, read if needed; NULL when it cannot be read or kept. */
static const uint8_t *fill(leat__kept *k, uint32_t shard, uint64_t offset)
{
    _Atomic(uint8_t *) *place = &k->parts[k->first[shard] + offset / LEAT__KEPT_PART];
    uint64_t start = offset - offset % LEAT__KEPT_PART;
    size_t bytes = (size_t)LEAT_MIN(leat__pack_data_end(k->pack, shard) - start, LEAT__KEPT_PART);
    uint8_t *fresh = NULL, *have = NULL;

    if (atomic_fetch_add(&k->bytes, LEAT__KEPT_PART) + LEAT__KEPT_PART > k->limit) goto out;
    fresh = leat__alloc(LEAT__MEM_LOADER, bytes);
    if (fresh == NULL) goto out;
    if (leat__file_pread_cached(leat__pack_file(k->pack, shard), fresh, bytes, start) < bytes) goto out;
    if (atomic_compare_exchange_strong(place, &have, fresh)) return fresh;
out: /* no room, or another thread was first */
    leat__free(fresh);
    atomic_fetch_sub(&k->bytes, LEAT__KEPT_PART);
    return have;
}

bool leat__kept_copy(leat__kept *k, uint32_t shard, uint64_t offset, void *to, uint64_t len)
{
    LEAT_ASSERT(shard < leat__pack_shards(k->pack));
    LEAT_ASSERT(offset + len <= leat__pack_data_end(k->pack, shard));
    for (uint64_t done = 0; done < len;) {
        uint64_t at = offset + done, lead = at % LEAT__KEPT_PART;
        size_t n = (size_t)LEAT_MIN(len - done, LEAT__KEPT_PART - lead);
        const uint8_t *part = part_at(k, shard, at);
        if (part == NULL) part = fill(k, shard, at);
        if (part == NULL) return false;
        memcpy((uint8_t *)to + done, part + lead, n);
        done += n;
    }
    return true;
}

uint64_t leat__kept_bytes(const leat__kept *k)
{
    return atomic_load(&k->bytes);
}

/* ---- of a loader ------------------------------------------------------------------------- */

static bool is_remote(const leat_pack *pack)
{
    for (uint32_t i = 0; i < leat__pack_shards(pack); i++)
        if (leat__file_remote(leat__pack_file(pack, i)) != NULL) return true;
    return false;
}

/* A piece that is not kept costs a request each time, so the index gets nearly all of the budget above the
 * floor. */
uint64_t leat__kept_index(uint64_t limit, uint64_t floor, uint64_t total)
{
    uint64_t room = limit > floor ? (limit - floor) / 4 * 3 : 0;
    return LEAT_MIN(total, LEAT_MAX(room, LEAT__INDEX_FREE));
}

/* Keeps a remote index in memory. */
static void keep_remote_index(leat_loader *l)
{
    uint64_t want =
        leat__kept_index(leat__budget_limit(l->budget), l->floor, leat__pack_index_bytes(l->pack));
    while (want > LEAT__INDEX_FREE &&
           leat_budget_try(l->budget, LEAT_BUDGET_PAGE, want - LEAT__INDEX_FREE) != 0)
        want = LEAT_MAX(want / 2, LEAT__INDEX_FREE); /* other users of the budget hold the rest */
    if (want > LEAT__INDEX_FREE) l->kept_bytes = want - LEAT__INDEX_FREE;
    leat__pack_index_limit(l->pack, LEAT_MAX(want, LEAT__INDEX_FREE));
}

/* Shuffled orders read a few index bytes at a random place for every sample. In addition to LEAT__INDEX_FREE,
 * the index gets up to a quarter of the budget above the floor. */
static void keep_index(leat_loader *l)
{
    if (is_remote(l->pack)) {
        keep_remote_index(l);
        return;
    }
    uint64_t limit = leat__budget_limit(l->budget), total = leat__pack_index_bytes(l->pack);
    uint64_t want = LEAT_MIN(total, (limit - l->floor) / 4);

    if (!leat__order_shuffled(l->opts.order) || want <= LEAT__INDEX_FREE) return;
    if (leat_budget_try(l->budget, LEAT_BUDGET_PAGE, want - LEAT__INDEX_FREE) != 0) return;
    l->kept_bytes = want - LEAT__INDEX_FREE;
    leat__pack_index_keep(l->pack, want);
}

/* With tiny samples in shuffled orders: keeps their bytes too, up to a quarter of the rest. */
static int keep_samples(leat_loader *l, leat_error *err)
{
    leat_budget_stats b;
    leat_budget_read(l->budget, &b);
    uint64_t taken = l->floor + b.used, total = 0; /* leaves a share for other users of the budget */
    uint64_t room = b.limit > taken ? (b.limit - taken) / 4 : 0;

    if (!leat__order_shuffled(l->opts.order) || l->opts.cache != LEAT_CACHE_OS || l->info.samples == 0 ||
        l->info.bytes == 0 || l->info.bytes / l->info.samples > LEAT__TINY_SAMPLE)
        return 0;
    for (uint32_t i = 0; i < leat__pack_shards(l->pack); i++) {
        if (leat__file_remote(leat__pack_file(l->pack, i)) != NULL) return 0;
        total += leat__ceil_div(leat__pack_data_end(l->pack, i), LEAT__KEPT_PART) * LEAT__KEPT_PART;
    }
    room = LEAT_MIN(room, total);
    if (room < LEAT__KEPT_PART) return 0;
    if (leat_budget_try(l->budget, LEAT_BUDGET_PAGE, room) != 0) return 0;
    l->kept_bytes += room;
    return leat__kept_open(&l->env.kept, l->pack, room, err);
}

int leat__loader_keep(leat_loader *l, leat_error *err)
{
    keep_index(l);
    return keep_samples(l, err);
}
