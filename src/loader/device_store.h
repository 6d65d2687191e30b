/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that stay on the device (cache = device): quantisers and all tiles of an image, copied there once.
 * The host keeps the header, from which the tiles of a crop are listed. A resident image is neither read nor
 * copied again. Images that do not fit are copied for each batch, as without the store.
 *
 * A worker claims an image that it sees for the first time and puts all of it into the arena of
 * its batch. The copying thread copies that arena into the store instead of into the batch's
 * memory, and keeps the claims when the batch was decoded without damage. Entries are not freed
 * before close, so `find` needs no lock.
 */
#ifndef LEAT_LOADER_DEVICE_STORE_H
#define LEAT_LOADER_DEVICE_STORE_H

#include <stdatomic.h>

#include <leat/flow.h>

#include "gpu/device_pool.h"

typedef struct leat__device_store leat__device_store;

/* Most bytes of header and entry, for most images. */
#define LEAT__ENTRY_BYTES UINT64_C(640)

/* An image. */
typedef struct leat__device_entry {
    _Atomic uint32_t state;
    uint32_t header_bytes;
    uint64_t bytes;           /* of the encoded image */
    leat__gpu_memory address; /* of its quantisers and tiles, once resident */
    uint8_t header[];
} leat__device_entry;

typedef struct leat__device_store_stats {
    uint64_t images; /* resident */
    uint64_t bytes;  /* bytes of device memory in use */
} leat__device_store_stats;

typedef struct leat__device_store_opts {
    leat__device_pool *pool;
    leat_budget *budget; /* charged for the headers */
    uint64_t images;     /* images in the pack: numbers are below this */
    uint64_t limit;      /* maximum bytes of the pool */
    /* bytes for headers: charged at open, and charged later at most, while the budget has room */
    uint64_t reserve, extras;
} leat__device_store_opts;

int leat__device_store_open(leat__device_store **s, const leat__device_store_opts *opts,
                            leat_error *err) LEAT_MUST_CHECK;
/* Call it when no queued work reads the store. */
void leat__device_store_close(leat__device_store **s);

/* Any thread: finds a resident image, or NULL. */
const leat__device_entry *leat__device_store_find(leat__device_store *s, uint64_t image);
/* Any thread: claims an image; keep or drop the entry later. NULL: already claimed, or no room. */
leat__device_entry *leat__device_store_claim(leat__device_store *s, uint64_t image, const uint8_t *header,
                                             uint32_t header_bytes, uint64_t bytes);
void leat__device_store_drop(leat__device_store *s, leat__device_entry *e);

/* The copying thread: takes memory for the arena of a batch, to be written by `stream`; 0: none. */
leat__gpu_memory leat__device_store_take(leat__device_store *s, uint64_t bytes, leat__gpu_stream *stream);
void leat__device_store_keep(leat__device_store *s, leat__device_entry *e, leat__gpu_memory address);

void leat__device_store_read(leat__device_store *s, leat__device_store_stats *stats);

#endif
