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

int leat__device_tiles_open(leat__device_tiles **out, const leat__device_chunk *c, const leat__device_id *ids,
                            leat__device_store *store, leat__device_entry *const *keep, leat__blocks *blocks,
                            leat_error *err)
{
    uint32_t images = leat__device_chunk_images(c);
    size_t size =
        sizeof(leat__device_tiles) + c->images.len + c->tiles.len + images * (sizeof *ids + sizeof *keep);
    leat__device_tiles *t = leat__alloc(LEAT__MEM_LOADER, size);

    *out = NULL;
    if (t == NULL) {
        drop_claims(store, keep, images);
        return leat__fail_nomem(err, size, "tiles of a batch");
    }
    memset(t, 0, sizeof *t);
    if (c->data.len > 0) t->data = leat__blocks_take(blocks, c->data.len);
    if (c->data.len > 0 && t->data.data == NULL) {
        drop_claims(store, keep, images);
        leat__free(t);
        return leat__fail_nomem(err, c->data.len, "tiles of a batch");
    }
    t->blocks = blocks;
    t->data_bytes = c->data.len;
    t->image_count = images;
    t->tile_count = leat__device_chunk_tiles(c);
    t->images = (leat_job_image *)(t + 1);
    t->tiles = (leat_job_tile *)(t->images + images);
    t->ids = (leat__device_id *)(t->tiles + t->tile_count);
    t->bytes = t->data.bytes + size;
    if (c->data.len > 0) memcpy(t->data.data, c->data.data, c->data.len);
    memcpy(t->images, c->images.data, c->images.len);
    if (c->tiles.len > 0) memcpy(t->tiles, c->tiles.data, c->tiles.len);
    memcpy(t->ids, ids, images * sizeof *ids);
    t->store = store;
    t->keep = (leat__device_entry **)(t->ids + images);
    if (store != NULL) memcpy(t->keep, keep, images * sizeof *keep);
    *out = t;
    return 0;
}

void leat__device_tiles_close(leat__device_tiles *t)
{
    while (t != NULL) {
        leat__device_tiles *next = t->next;
        drop_claims(t->store, t->keep, t->image_count);
        leat__blocks_give(t->blocks, t->data);
        leat__free(t);
        t = next;
    }
}
