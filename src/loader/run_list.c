/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing of runs: see run_list.h.
 */
#include "loader/run_list.h"

#include <string.h>

#include "base/check.h"

/* True for env->device_share of every LEAT__SHARE_WHOLE consecutive runs. */
static bool goes_to_device(leat__run_env *env)
{
    if (env->tile_blocks == NULL) return false;
    uint32_t share = atomic_load_explicit(&env->device_share, memory_order_relaxed);
    uint32_t number = atomic_fetch_add_explicit(&env->run_number, 1, memory_order_relaxed);
    return (number + 1) * share / LEAT__SHARE_WHOLE != number * share / LEAT__SHARE_WHOLE;
}

leat__run_list_mark leat__run_list_marked(const leat__run_worker *w)
{
    const size_t images = w->chunk_ids.len / sizeof(leat__device_id);
    return (leat__run_list_mark){leat__device_chunk_mark(&w->chunk), images};
}

void leat__run_list_rewind(const leat__run_env *env, leat__run_worker *w, leat__run_list_mark mark)
{
    LEAT_ASSERT(mark.images * sizeof(leat__device_id) <= w->chunk_ids.len);
    leat__device_entry **keep = (leat__device_entry **)(void *)w->chunk_keep.data;
    size_t count = w->chunk_keep.len / sizeof *keep;
    for (size_t i = mark.images; env->store != NULL && i < count; i++)
        leat__device_store_drop(env->store, keep[i]);
    leat__device_chunk_rewind(&w->chunk, mark.chunk);
    w->chunk_ids.len = mark.images * sizeof(leat__device_id);
    if (env->store != NULL) w->chunk_keep.len = mark.images * sizeof *keep;
}

/* Returns the number of an image in the store; those of a sample are adjacent. */
static uint64_t image_number(const leat__run_env *env, const leat__image_group *g, uint64_t sample)
{
    LEAT_ASSERT(g >= env->groups && g < env->groups + env->group_count);
    return sample * env->group_count + (uint64_t)(g - env->groups);
}

bool leat__run_is_resident(const leat__run_env *env, uint64_t sample)
{
    if (env->store == NULL || !env->store_alone) return false;
    for (uint32_t g = 0; g < env->group_count; g++) {
        const uint64_t number = image_number(env, &env->groups[g], sample);
        if (leat__device_store_find(env->store, number) == NULL) return false;
    }
    return true;
}

const uint8_t *leat__run_header(const leat__run_env *env, const leat__image_group *g, uint64_t sample)
{
    return leat__device_store_find(env->store, image_number(env, g, sample))->header;
}

void leat__run_list_begin(leat__run *r, leat__run_worker *w)
{
    const leat__run_list_mark none = {0};
    /* a batch that was begun while the CPUs decoded everything has no room for tiles */
    r->on_device = r->list_bytes > 0 && goes_to_device(r->env);
    r->reads = r->on_device && r->env->reader != NULL &&
               leat__buf_reserve(&w->chunk_pages, r->count * sizeof(leat__cached *)) == 0;
    leat__run_list_rewind(r->env, w, none); /* leftovers of a failed run */
    leat__device_chunk_clear(&w->chunk);
    w->chunk.arena = r->frame->arena.data != NULL ? &r->frame->arena : NULL;
    LEAT_ASSERT(w->chunk_pages.len == 0);
    if (r->on_device && r->env->cache_user != NULL && r->env->cache_user->mapper != NULL)
        leat__mapper_start(r->env->cache_user->mapper);
}

uint64_t leat__run_list_mapped(const leat__run *r, const leat__run_worker *w, const leat__run_sample *s)
{
    const leat__cached *const page = s->cached;
    if (!r->reads || page == NULL || w->chunk.arena == NULL) return 0;
    /* bytes that were read again are not in the page */
    if (s->data < page->data || s->data >= page->data + page->bytes) return 0;
    const uint64_t address = leat__cache_mapped(page, r->env->reader);
    return address != 0 ? address + (uint64_t)(s->data - page->data) : 0;
}

void leat__run_list_release(leat__run *r, leat__run_worker *w, leat__run_sample *s, leat__run_list_mark mark)
{
    if (s->cached == NULL) return;
    if (w->chunk.ranges.len == mark.chunk.ranges) {
        leat__cache_unpin(r->env->cache, s->cached);
    } else { /* leat__run_list_begin made room */
        memcpy(w->chunk_pages.data + w->chunk_pages.len, &s->cached, sizeof s->cached);
        w->chunk_pages.len += sizeof s->cached;
    }
    s->cached = NULL;
}

/* Claims an image that is not yet on the device. */
static leat__device_entry *claim(const leat__run_env *env, uint64_t number, const leat__encoded *image)
{
    uint32_t header = leat__device_header_bytes(image);
    return header > 0 ? leat__device_store_claim(env->store, number, image->data, header, image->len) : NULL;
}

/* Lists one view of an image. The first view adds all tiles, if they should stay on the device. */
static int list_view(const leat__run *r, const leat__image_group *g, uint32_t view, leat__run_worker *w,
                     const leat__run_image *image, const leat__draw_key *key, bool *taken, leat_error *err)
{
    const leat__run_env *env = r->env;
    const uint64_t number = image_number(env, g, key->sample);
    const leat__device_entry *there = env->store != NULL ? leat__device_store_find(env->store, number) : NULL;
    leat__device_entry *kept = NULL;
    if (env->store != NULL && there == NULL && view == 0) kept = claim(env, number, image->encoded);
    leat__device_place place = {
        .resident = there != NULL ? there->address : 0, .mapped = image->mapped, .whole = kept != NULL};
    int rc = leat__device_plan(&w->chunk, g->pipelines[view], image->encoded, key, image->row,
                               g->columns[view], &place, taken, err);
    if (rc != 0 || !*taken || !place.whole) {
        if (kept != NULL) leat__device_store_drop(env->store, kept);
        kept = NULL;
    }
    if (rc != 0 || !*taken) return rc;
    if (leat__buf_append(&w->chunk_ids, &image->id, sizeof image->id) == 0 &&
        (env->store == NULL || leat__buf_append(&w->chunk_keep, &kept, sizeof kept) == 0))
        return 0;
    if (kept != NULL) leat__device_store_drop(env->store, kept);
    return leat__fail_nomem(err, sizeof image->id, "tiles of a batch");
}

/* Charges the list so far; false when the budget has no room. */
static bool charge(leat__run *r, const leat__run_worker *w)
{
    const uint32_t pages = r->reads ? r->count : 0;
    const uint64_t bytes = leat__device_tiles_bytes(&w->chunk, pages);
    if (bytes <= r->list_bytes) return true;
    if (r->task == NULL || leat_task_charge(r->task, bytes - r->list_bytes) != 0) return false;
    r->list_bytes = bytes;
    return true;
}

int leat__run_list(leat__run *r, const leat__image_group *g, leat__run_worker *w,
                   const leat__run_image *image, const leat__draw_key *key, bool *taken, leat_error *err)
{
    leat__run_list_mark mark = leat__run_list_marked(w);
    if (image->encoded->info->codec == LEAT__CODEC_TILE)
        atomic_store_explicit(&r->env->tiled, true, memory_order_relaxed);
    for (uint32_t v = 0; v < g->count; v++) {
        LEAT_TRY(list_view(r, g, v, w, image, key, taken, err));
        *taken = *taken && charge(r, w);
        if (*taken) continue;
        leat__run_list_rewind(r->env, w, mark);
        return 0;
    }
    return 0;
}

int leat__run_list_end(leat__run *r, leat__run_worker *w, int rc, leat_error *err)
{
    leat__device_tiles *tiles;
    const uint32_t images = leat__device_chunk_images(&w->chunk);
    const leat__device_pages pages = {.cache = r->env->cache,
                                      .list = (leat__cached *const *)(const void *)w->chunk_pages.data,
                                      .count = (uint32_t)(w->chunk_pages.len / sizeof(leat__cached *))};

    if (rc != 0 || images == 0) {
        leat__cache_unpin_all(pages.cache, pages.list, pages.count);
        leat__buf_clear(&w->chunk_pages);
        return rc;
    }
    rc = leat__device_tiles_open(&tiles, &w->chunk, (const leat__device_id *)(const void *)w->chunk_ids.data,
                                 r->env->store, (leat__device_entry *const *)(const void *)w->chunk_keep.data,
                                 &pages, err);
    leat__buf_clear(&w->chunk_keep); /* the list owns the claims and the pins */
    leat__buf_clear(&w->chunk_pages);
    LEAT_TRY(rc);
    r->tile_bytes = tiles->bytes; /* the arena is charged with the batch */
    leat__frame_add_tiles(r->frame, tiles);
    atomic_fetch_add_explicit(&r->env->device_images, images, memory_order_relaxed);
    return 0;
}
