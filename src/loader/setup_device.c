/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a loader's setup for a device: where batches go, which side decodes, and what is cached on the
 * device.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "engine/budget.h"
#include "loader/bounds.h"
#include "loader/setup.h"

/* Returns why the CPU has to decode everything; NULL: it need not. */
static const char *cpu_only(const leat_loader *l, const char **op)
{
    *op = NULL;
    if (l->opts.digest != 0) return "digest hashes pixels on the host";
    if (l->opts.sample_fn != NULL) return "sample_fn changes pixels on the host";
    if (leat__mixing_on_host(&l->mixing)) return "Mosaic and CopyPaste mix pixels on the host";
    if (l->env.follow.count > 0) return "fields that follow an image are made on the host";
    if (l->table_count > 1) return "packs with different tables of the tile codec are decoded on the host";
    for (uint32_t i = 0; i < l->pipeline_count; i++) {
        if (leat__pipeline_wide(l->pipelines[i]))
            return "images other than 8-bit ones of 1, 3 or 4 channels are decoded on the host";
        const char *const why = leat__device_refuses(l->pipelines[i], op);
        if (why != NULL) return why;
    }
    return l->pipeline_count == 0 ? "there are no images" : NULL;
}

/* True when rows consist only of images and numbers of the index. */
static bool needs_images_only(const leat_loader *l)
{
    const leat__shape *shape = leat__frames_shape(l->frames);
    for (uint32_t c = 0; c < shape->count; c++) {
        const leat__column *column = &shape->columns[c];
        if (column->kind == LEAT__COLUMN_IMAGE || column->kind == LEAT__COLUMN_ONE_HOT ||
            column->kind == LEAT__COLUMN_LAMBDA)
            continue;
        leat_field_type type = leat_pack_field(l->pack, column->field)->type;
        if (type != LEAT_FIELD_INT && type != LEAT_FIELD_FLOAT) return false;
    }
    return true;
}

static uint64_t mean_bytes(const leat_loader *l)
{
    return l->info.bytes / LEAT_MAX(l->info.samples, UINT64_C(1));
}

/* Sets the bytes of `limit` that the store reserves: its table, and headers of the images that the device has
 * memory for. With a large pack only a part of the headers is reserved; the rest is charged later while the
 * budget has room. Returns the sum. */
static uint64_t reserve_headers(leat_loader *l, uint64_t limit, leat__device_store_opts *keep)
{
    leat__to_device_stats stats = {0};
    uint64_t table, sum;
    if (!leat__mul_u64(l->info.samples, l->env.group_count, &keep->images) ||
        !leat__mul_u64(keep->images, sizeof(void *), &table))
        return UINT64_MAX;
    leat__to_device_read(l->device, &stats);
    const uint64_t fit = stats.pool.limit / LEAT_MAX(mean_bytes(l), UINT64_C(1));
    keep->reserve = LEAT_MIN(LEAT_MIN(keep->images, fit), limit / 16 / LEAT__ENTRY_BYTES) * LEAT__ENTRY_BYTES;
    return leat__add_u64(table, keep->reserve, &sum) ? sum : UINT64_MAX;
}

/* Reserves memory for the tiles of batches that the device decodes; false when the budget has no room for
 * them. `keep`: options of the store if tiles stay on the device, or NULL. With a store, an arena has room
 * for all tiles of any image. */
static bool reserve_tiles(leat_loader *l, leat__device_store_opts *keep)
{
    /* an initial estimate: crops need about half of the tiles */
    const uint64_t sample = mean_bytes(l), limit = leat__budget_limit(l->budget);
    uint64_t arena = ((keep != NULL ? sample + sample / 8 : sample / 2) + 1024) * l->opts.batch_size;
    if (keep != NULL) arena += l->info.max_sample_bytes;
    const uint64_t tiles = arena + l->opts.batch_size * LEAT__LIST_BYTES + LEAT__LIST_LARGE;
    const uint64_t headers = keep != NULL ? reserve_headers(l, limit, keep) : 0;
    if (!leat__add_u64(l->floor, tiles, &l->floor) || !leat__add_u64(l->floor, headers, &l->floor))
        l->floor = UINT64_MAX;
    if (l->floor > limit) return false;
    uint64_t spare = limit - l->floor;
    spare -= LEAT_MIN(spare, l->kept_bytes);
    if (keep != NULL) keep->extras = spare / 2;
    if (keep != NULL) spare -= keep->extras;
    l->env.arena_bytes = arena;
    if (!leat__add_u64(arena, spare, &l->env.arena_most)) l->env.arena_most = UINT64_MAX;
    return true;
}

/* Sets up decoding on the device. If that is impossible, decode = gpu fails with the reason, and auto uses
 * the CPU. */
static int set_up_decoding(leat_loader *l, leat_error *err)
{
    const char *op, *why = cpu_only(l, &op);
    bool keeps = l->opts.cache == LEAT_CACHE_DEVICE, must = keeps || l->opts.decode == LEAT_DECODE_GPU;
    if (l->opts.decode == LEAT_DECODE_CPU) return 0;
    if (why != NULL && !must) return 0;
    if (why != NULL)
        return leat__fail(err, LEAT_EINVAL, keeps ? "`cache` device: %s%s%s" : "`decode` gpu: %s%s%s",
                          op != NULL ? op : "", op != NULL ? " " : "", why);
    const uint64_t floor = l->floor;
    leat__device_store_opts keep = {.budget = l->budget};
    if (!reserve_tiles(l, keeps ? &keep : NULL)) {
        if (must) return leat__loader_check_floor(l, leat__budget_limit(l->budget), err);
        l->floor = floor;
        return 0;
    }
    LEAT_TRY(leat__blocks_open(&l->env.tile_blocks, l->budget, LEAT_BUDGET_BATCH, LEAT__MEM_BATCH, err));
    leat__blocks_lock_pages(l->env.tile_blocks, leat__to_device_gpu(l->device), &l->opts.log);
    if (keeps) {
        l->opts.decode = LEAT_DECODE_GPU; /* never moved back to the CPUs */
        LEAT_TRY(leat__to_device_caches(l->device, &keep, &l->env.store, err));
        l->env.store_alone = needs_images_only(l);
    }
    uint32_t columns = leat__frames_shape(l->frames)->count;
    const leat__pipeline **of = LEAT_NEW_ARRAY(LOADER, const leat__pipeline *, columns + 1);
    if (of == NULL) return leat__fail_nomem(err, columns * sizeof *of, "pipelines");
    for (uint32_t g = 0; g < l->env.group_count; g++) {
        const leat__image_group *group = &l->env.groups[g];
        for (uint32_t v = 0; v < group->count; v++) of[group->columns[v]] = group->pipelines[v];
    }
    const leat__tile_tables *tables = l->table_count > 0 ? l->tables[0] : NULL;
    int rc = leat__to_device_decodes(l->device, &l->env, &l->mixing, tables, of, columns, err);
    leat__free(of);
    if (rc != 0 && rc != LEAT_ENOMEM && !must) { /* no kernels for this device: the CPU decodes */
        leat__blocks_close(&l->env.tile_blocks);
        l->floor = floor;
        return 0;
    }
    l->env.device_share = must ? LEAT__SHARE_WHOLE : 0;
    return rc;
}

/* Lets the device read cached pages in place, but only if pages stay cached. Pages that are read once would
 * be held longer than needed. */
int leat__loader_map_cache(leat_loader *l, leat_error *err)
{
    if (l->env.tile_blocks == NULL || l->env.cache == NULL ||
        !leat__cache_stays(l->env.cache, &l->cache_user))
        return 0;
    LEAT_TRY(leat__mapper_open(&l->cache_user.mapper, leat__to_device_gpu(l->device), &l->opts.log, err));
    l->env.reader = leat__to_device_gpu(l->device);
    return 0;
}

/* CUDA is not touched unless a device was requested. */
int leat__loader_set_up_device(leat_loader *l, leat_error *err)
{
    const char *name = l->opts.device;
    if (name == NULL || strcmp(name, "cpu") == 0) return 0;
    leat__to_device_opts opts = {.device = name,
                                 .memory = l->opts.device_memory,
                                 .frame_bytes = leat__frames_device_bytes(l->frames, l->opts.batch_size)};
    LEAT_TRY(leat__to_device_open(&l->device, &opts, err));
    leat__frames_for_device(l->frames, leat__to_device_gpu(l->device), &l->opts.log);
    return set_up_decoding(l, err);
}
