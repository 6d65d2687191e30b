/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds: see bounds.h. Only ragged values and images of different size make the size of a batch
 * vary.
 */
#include "loader/bounds.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/file.h"
#include "loader/footprint.h"
#include "loader/scratch.h"
#include "loader/sizes.h"

#define CHUNK 512u      /* index entries read at once */
#define ASSUME_SHARE 8  /* share of the budget up to which assumed bounds are good enough */
#define PART_ALIGN 256u /* alignment of the parts of a batch */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return leat__mul_u64(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return leat__add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

leat__ragged_bound leat__ragged_assume(const leat_pack_info *info, uint32_t batch, bool repeats)
{
    leat__ragged_bound b = {.value = info->max_sample_bytes, .batch = times(info->max_sample_bytes, batch)};
    if (!repeats) b.batch = LEAT_MIN(b.batch, info->bytes);
    return b;
}

/* The largest values so far, in a heap with the smallest of them on top. */
typedef struct top {
    uint64_t *value;
    uint32_t count, room;
} top;

static void sink(top *t, uint32_t at)
{
    for (;;) {
        uint32_t least = at, left = 2 * at + 1;
        if (left < t->count && t->value[left] < t->value[least]) least = left;
        if (left + 1 < t->count && t->value[left + 1] < t->value[least]) least = left + 1;
        if (least == at) return;
        uint64_t swap = t->value[at];
        t->value[at] = t->value[least];
        t->value[least] = swap;
        at = least;
    }
}

static void top_add(top *t, uint64_t value)
{
    if (t->count == t->room) {
        if (value <= t->value[0]) return;
        t->value[0] = value;
        sink(t, 0);
        return;
    }
    uint32_t at = t->count++;
    while (at > 0 && t->value[(at - 1) / 2] > value) {
        t->value[at] = t->value[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    t->value[at] = value;
}

static void add_cells(top *t, const leat__measured *what, const leat_pack_cell *cells, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!cells[i].absent) top_add(t, what->value(what->arg, &cells[i]));
}

static void add_range(top *t, const leat__measured *what, uint64_t first, uint64_t count,
                      leat_pack_cell *cells)
{
    if (leat_pack_cells(what->pack, what->field, first, count, cells, NULL) == 0) {
        add_cells(t, what, cells, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        if (leat_pack_cells(what->pack, what->field, first + i, 1, cells, NULL) == 0)
            add_cells(t, what, cells, 1);
}

static uint64_t stored_bytes(void *arg, const leat_pack_cell *cell)
{
    (void)arg;
    return cell->length;
}

int leat__ragged_measure(leat_pack *pack, uint32_t field, const uint64_t *indices, uint64_t count,
                         uint32_t batch, bool repeats, leat__ragged_bound *out, leat_error *err)
{
    const leat__measured what = {
        .pack = pack, .field = field, .indices = indices, .count = count, .value = stored_bytes};
    return leat__values_measure(&what, batch, repeats, out, err);
}

int leat__values_measure(const leat__measured *what, uint32_t batch, bool repeats, leat__ragged_bound *out,
                         leat_error *err)
{
    const uint64_t *const indices = what->indices, count = what->count;
    top t = {.room = repeats ? 1 : batch};
    int rc = 0;

    t.value = LEAT_NEW_ARRAY(LOADER, uint64_t, t.room);
    leat_pack_cell *cells = LEAT_NEW_ARRAY(LOADER, leat_pack_cell, CHUNK);
    if (t.value == NULL || cells == NULL) {
        rc = leat__fail_nomem(err, t.room * sizeof *t.value, "the largest values");
        goto out;
    }
    uint64_t step = indices != NULL ? 1 : CHUNK;
    for (uint64_t i = 0; i < count; i += step)
        add_range(&t, what, indices != NULL ? indices[i] : i, LEAT_MIN(step, count - i), cells);
    *out = (leat__ragged_bound){0};
    for (uint32_t i = 0; i < t.count; i++) {
        out->value = LEAT_MAX(out->value, t.value[i]);
        out->batch = plus(out->batch, t.value[i]);
    }
    if (repeats) out->batch = times(out->value, batch);
out:
    leat__free(t.value);
    leat__free(cells);
    return rc;
}

/* Returns the rows of the largest batch. */
static uint32_t most_rows(const leat_loader *l)
{
    return (uint32_t)LEAT_MIN((uint64_t)l->opts.batch_size, LEAT_MAX(l->rows, UINT64_C(1)));
}

/* Computes the bounds for these ragged columns. A run's share of a batch is largest when the batch is not
 * larger than the run. */
static int bound_with(leat_loader *l, const leat__ragged_bound *ragged, leat_error *err)
{
    const leat__shape *shape = leat__frames_shape(l->frames);
    uint64_t *sizes = l->feed.ragged, share = 0;

    for (uint32_t c = 0; c < shape->count; c++)
        sizes[c] = times(ragged[c].batch, LEAT_MAX(shape->columns[c].grows, 1u));
    bool fits = leat__frame_size(shape, most_rows(l), sizes, l->opts.digest != 0, &l->max_frame_bytes);
    for (uint32_t c = 0; c < shape->count; c++)
        sizes[c] = LEAT_MIN(times(ragged[c].value, l->run_listed), ragged[c].batch);
    fits = fits && leat__frame_size(shape, l->run_listed, sizes, l->opts.digest != 0, &share);
    if (!fits)
        return leat__fail(err, LEAT_EOVERFLOW, "a batch of %u samples is too large", l->opts.batch_size);
    share = plus(share, (3 * (uint64_t)shape->count + 3) * PART_ALIGN + LEAT__FRAME_ALIGN);
    uint64_t slots = l->run_listed * (uint64_t)(2 * LEAT__IO_ALIGN + LEAT_PACK_PADDING);
    /* with a disk cache, samples that are not in memory are read in whole pages */
    uint64_t largest = l->opts.disk_cache != NULL ? l->info.max_page_bytes : l->info.max_sample_bytes;
    l->max_run_bytes = plus(plus(LEAT__RUN_TARGET, largest), plus(slots, share));
    /* plus one sample that is on the device, because the CPUs may have to decode it */
    if (l->opts.cache == LEAT_CACHE_DEVICE) l->max_run_bytes = plus(l->max_run_bytes, largest);
    l->floor = leat__footprint_floor(l->max_run_bytes, l->max_frame_bytes);
    return 0;
}

/* True for columns with values as stored in the pack, of any length. */
static bool takes_stored(const leat__column *c)
{
    return c->kind == LEAT__COLUMN_RAGGED && c->sizing == LEAT__SIZING_ONE;
}

static int measure(leat_loader *l, bool repeats, leat__ragged_bound *ragged, leat_error *err)
{
    const leat__shape *shape = leat__frames_shape(l->frames);

    for (uint32_t c = 0; c < shape->count; c++) {
        if (!takes_stored(&shape->columns[c])) continue;
        LEAT_TRY(leat__ragged_measure(l->pack, shape->columns[c].field, l->indices, l->universe, most_rows(l),
                                      repeats, &ragged[c], err));
    }
    return 0;
}

int leat__loader_bound(leat_loader *l, bool repeats, leat_error *err)
{
    const leat__shape *shape = leat__frames_shape(l->frames);
    leat_budget_stats b;
    bool any = false;
    int rc = 0;

    leat__ragged_bound *ragged = LEAT_NEW_ARRAY(LOADER, leat__ragged_bound, shape->count + 1);
    if (ragged == NULL) return leat__fail_nomem(err, shape->count * sizeof *ragged, "bounds");
    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        if (column->sizing == LEAT__SIZING_OWN || leat__column_padded(column)) {
            LEAT_GO(rc, out, leat__sizes_bound(l, c, most_rows(l), repeats, &ragged[c], err));
        } else if (takes_stored(column)) {
            ragged[c] = leat__ragged_assume(&l->info, most_rows(l), repeats);
            any = true;
        }
    }
    leat_budget_read(l->budget, &b);
    rc = bound_with(l, ragged, NULL);
    if (any && (rc != 0 || l->floor > b.limit / ASSUME_SHARE)) {
        LEAT_GO(rc, out, measure(l, repeats, ragged, err));
    }
    LEAT_GO(rc, out, bound_with(l, ragged, err));
    rc = leat__loader_check_floor(l, b.limit, err);
out:
    leat__free(ragged);
    return rc;
}

static uint64_t image_scratch(void *arg, const leat_pack_cell *cell)
{
    return leat__scratch_bytes(cell, arg);
}

/* Returns what a budget must have, besides the memory of one image beyond that of a worker. */
static uint64_t beside_scratch(const leat_loader *l, uint64_t limit)
{
    uint64_t above = limit > l->floor ? limit - l->floor : 0;
    uint64_t others =
        times(leat_pool_threads(l->pool) - 1, LEAT__WORKER_RAM); /* the scratch of the other workers stays */
    uint64_t serial = leat__footprint_alone(plus(l->max_run_bytes, l->kept_bytes), l->max_frame_bytes, 0);
    return plus(serial, LEAT_MIN(others, above));
}

/* Returns a budget that is enough for every image, too; looks them up in the index. */
static uint64_t enough_for_images(const leat_loader *l)
{
    uint64_t most = 0;
    for (uint32_t g = 0; g < l->env.group_count; g++) {
        leat__scratch_use use = l->env.groups[g].use;
        leat__ragged_bound found = {0};
        const leat__measured what = {.pack = l->pack,
                                     .field = l->env.groups[g].field,
                                     .indices = l->indices,
                                     .count = l->universe,
                                     .value = image_scratch,
                                     .arg = &use};
        if (leat__values_measure(&what, 1, false, &found, NULL) == 0) most = LEAT_MAX(most, found.value);
    }
    return leat__footprint_least(l->floor, plus(l->max_run_bytes, l->kept_bytes), l->max_frame_bytes,
                                 leat_pool_threads(l->pool),
                                 most > LEAT__WORKER_RAM ? most - LEAT__WORKER_RAM : 0);
}

int leat__loader_check_floor(const leat_loader *l, uint64_t limit, leat_error *err)
{
    if (l->floor <= limit) return 0;
    const uint64_t enough = enough_for_images(l);
    return leat__fail(err, LEAT_EBUDGET,
                      "`memory`: batches of %u sample%s%s need at least %s, %s more than the budget of %s",
                      most_rows(l), leat__plural(most_rows(l)),
                      enough > l->floor ? " and the largest image" : "", leat__as_size(enough).text,
                      leat__as_size(enough - limit).text, leat__as_size(limit).text);
}

void leat__loader_bound_scratch(leat_loader *l)
{
    const uint64_t limit = leat__budget_limit(l->budget), serial = beside_scratch(l, limit);
    l->env.scratch_most = limit > serial ? limit - serial : 0;
    l->env.scratch_rest = beside_scratch(l, UINT64_MAX);
}
