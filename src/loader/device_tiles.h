/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of tiles, of some rows of a batch, that the device will decode; a run makes it instead of decoding.
 * The bytes are in the arena of the batch, one page-locked block filled by all runs. Tiles that do not fit
 * are in a block of the list. Tiles in page-locked cached pages stay there: the device reads them, and the
 * list pins the pages until then.
 */
#ifndef LEAT_LOADER_DEVICE_TILES_H
#define LEAT_LOADER_DEVICE_TILES_H

#include "loader/cache.h"
#include "loader/device_store.h"
#include "op/device_plan.h"

/* The sample of an image, and which draw of it in the epoch (shares.h). */
typedef struct leat__device_id {
    uint64_t sample, salt;
    uint64_t wanted,
        attempt; /* attempt > 0: `sample` is candidate `attempt` to replace the sample `wanted` */
} leat__device_id;

typedef struct leat__device_tiles {
    struct leat__device_tiles *next; /* next list of the same batch */
    uint8_t *data;                   /* bytes that did not fit the arena */
    uint64_t data_bytes;
    uint32_t image_count, tile_count;
    leat_job_image *images; /* tiles name images of this list */
    leat_job_tile *tiles;
    leat__device_id *ids; /* sample of each image */
    leat__device_store *store;
    leat__device_entry **keep; /* per image: its claim in the store, or NULL */
    uint64_t bytes;            /* leat__device_tiles_bytes */
    leat_job_range *ranges;    /* ranges of `pages` that the device reads */
    leat__cache *cache;
    leat__cached **pages; /* pinned */
    uint32_t range_count, page_count;
} leat__device_tiles;

/* Pages that a list will hold. */
typedef struct leat__device_pages {
    leat__cache *cache;
    leat__cached *const *list;
    uint32_t count;
} leat__device_pages;

/* Copies `chunk`; `ids` names the sample of each of its images, `keep` its claim in `store`
 * (NULL: none). The list owns the claims and the pins of `pages`, even on failure, and drops claims that were
 * not kept. */
int leat__device_tiles_open(leat__device_tiles **t, const leat__device_chunk *chunk,
                            const leat__device_id *ids, leat__device_store *store,
                            leat__device_entry *const *keep, const leat__device_pages *pages,
                            leat_error *err) LEAT_MUST_CHECK;
/* Returns the bytes to charge for a list with `pages` pages: the list, and its copy in the page-locked
 * descriptors of the batch. Its part of the arena is charged separately. */
uint64_t leat__device_tiles_bytes(const leat__device_chunk *chunk, uint32_t pages);
void leat__device_tiles_close(leat__device_tiles *list); /* closes all lists of a batch; NULL is allowed */

#endif
