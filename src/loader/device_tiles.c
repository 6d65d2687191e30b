/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of tiles: see device_tiles.h. Made by a worker, freed with the batch.
 */
#include "loader/device_tiles.h"

#include <string.h>

#include "base/mem.h"

static void drop_claims(leat__device_store *store, leat__device_entry *const *keep, uint32_t images)
{
    for (uint32_t i = 0; store != NULL && i < images; i++) leat__device_store_drop(store, keep[i]);
}

/* Divides the memory of a list into its parts. */
static void divide(leat__device_tiles *t, const leat__device_chunk *c, uint32_t pages)
{
    t->image_count = leat__device_chunk_images(c);
    t->tile_count = leat__device_chunk_tiles(c);
    t->range_count = (uint32_t)(c->ranges.len / sizeof *t->ranges);
    t->page_count = pages;
    t->images = (leat_job_image *)(t + 1);
    t->tiles = (leat_job_tile *)(t->images + t->image_count);
    t->ranges = (leat_job_range *)(t->tiles + t->tile_count);
    t->ids = (leat__device_id *)(t->ranges + t->range_count);
    t->keep = (leat__device_entry **)(t->ids + t->image_count);
    t->pages = (leat__cached **)(t->keep + t->image_count);
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) memcpy(to, from, bytes);
}

static size_t list_size(const leat__device_chunk *c, uint32_t pages)
{
    const size_t each = sizeof(leat__device_id) + sizeof(leat__device_entry *);
    return sizeof(leat__device_tiles) + c->images.len + c->tiles.len + c->ranges.len +
           leat__device_chunk_images(c) * each + pages * sizeof(leat__cached *);
}

uint64_t leat__device_tiles_bytes(const leat__device_chunk *c, uint32_t pages)
{
    return 2 * (uint64_t)list_size(c, pages) + c->data.len;
}

int leat__device_tiles_open(leat__device_tiles **out, const leat__device_chunk *c, const leat__device_id *ids,
                            leat__device_store *store, leat__device_entry *const *keep,
                            const leat__device_pages *pages, leat_error *err)
{
    const uint32_t images = leat__device_chunk_images(c);
    const size_t size = list_size(c, pages->count);
    leat__device_tiles *t = leat__alloc(LEAT__MEM_LOADER, size + c->data.len);

    *out = NULL;
    if (t == NULL) {
        drop_claims(store, keep, images);
        leat__cache_unpin_all(pages->cache, pages->list, pages->count);
        return leat__fail_nomem(err, size + c->data.len, "tiles of a batch");
    }
    memset(t, 0, sizeof *t);
    divide(t, c, pages->count);
    t->data = (uint8_t *)t + size;
    t->data_bytes = c->data.len;
    t->bytes = leat__device_tiles_bytes(c, pages->count);
    t->store = store;
    t->cache = pages->cache;
    copy(t->data, c->data.data, c->data.len);
    copy(t->images, c->images.data, c->images.len);
    copy(t->tiles, c->tiles.data, c->tiles.len);
    copy(t->ranges, c->ranges.data, c->ranges.len);
    copy(t->ids, ids, images * sizeof *ids);
    if (store != NULL) copy(t->keep, keep, images * sizeof *keep);
    copy(t->pages, pages->list, pages->count * sizeof *pages->list);
    *out = t;
    return 0;
}

void leat__device_tiles_close(leat__device_tiles *t)
{
    while (t != NULL) {
        leat__device_tiles *next = t->next;
        drop_claims(t->store, t->keep, t->image_count);
        leat__cache_unpin_all(t->cache, t->pages, t->page_count);
        leat__free(t);
        t = next;
    }
}
