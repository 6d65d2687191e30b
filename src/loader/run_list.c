/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing of runs: see run_list.h.
 */
#include "loader/run_list.h"

/* As many runs of LEAT__SHARE_WHOLE in turn as the share says. */
static bool goes_to_device(leat__run_env *env)
{
    if (env->tile_blocks == NULL) return false;
    uint32_t share = atomic_load_explicit(&env->device_share, memory_order_relaxed);
    uint32_t number = atomic_fetch_add_explicit(&env->run_number, 1, memory_order_relaxed);
    return (number + 1) * share / LEAT__SHARE_WHOLE != number * share / LEAT__SHARE_WHOLE;
}

void leat__run_list_begin(leat__run *r, leat__run_worker *w)
{
    r->on_device = goes_to_device(r->env);
    leat__device_chunk_clear(&w->chunk);
    leat__buf_clear(&w->chunk_ids);
    w->chunk.arena = r->frame->arena.data != NULL ? &r->frame->arena : NULL;
}

int leat__run_list(const leat__run *r, const leat__image_group *g, leat__run_worker *w,
                   const leat__encoded *image, const leat__draw_key *key, uint64_t salt, uint32_t row,
                   bool *taken, leat_error *err)
{
    leat__device_mark mark = leat__device_chunk_mark(&w->chunk);
    const leat__device_id id = {key->sample, salt};
    size_t ids = w->chunk_ids.len;
    (void)r;
    for (uint32_t v = 0; v < g->count; v++) {
        leat__device_place place = {0};
        LEAT_TRY(leat__device_plan(&w->chunk, g->pipelines[v], image, key, row, g->columns[v], &place, taken,
                                   err));
        if (!*taken) {
            leat__device_chunk_rewind(&w->chunk, mark);
            w->chunk_ids.len = ids;
            return 0;
        }
        if (leat__buf_append(&w->chunk_ids, &id, sizeof id) != 0)
            return leat__fail_nomem(err, sizeof id, "tiles of a batch");
    }
    return 0;
}

int leat__run_list_end(leat__run *r, leat__run_worker *w, leat_error *err)
{
    leat__device_tiles *tiles;
    uint32_t images = leat__device_chunk_images(&w->chunk);

    if (images == 0) return 0;
    LEAT_TRY(leat__device_tiles_open(&tiles, &w->chunk,
                                     (const leat__device_id *)(const void *)w->chunk_ids.data,
                                     r->env->tile_blocks, err));
    r->tile_bytes = tiles->bytes + w->chunk.arena_bytes;
    leat__frame_add_tiles(r->frame, tiles);
    atomic_fetch_add_explicit(&r->env->device_images, images, memory_order_relaxed);
    return 0;
}
