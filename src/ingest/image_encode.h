/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes an image between source and pack: decodes it once to verify it, then keeps, shrinks,
 * re-encodes or tiles it, or stores its pixels. A pure function of the image, its key and the
 * settings. One encoder per thread.
 */
#ifndef LEAT_INGEST_IMAGE_ENCODE_H
#define LEAT_INGEST_IMAGE_ENCODE_H

#include <leat/ingest.h>

#include "codec/codec.h"
#include "codec/tile/tile.h"
#include "ingest/inspect.h"
#include "ingest/record.h"

#define LEAT__TILE_TABLES_BLOB "tile-tables"

typedef struct leat__encode_plan {
    leat_image_mode images; /* never AUTO */
    double mix_raw;
    uint32_t max_side, quality;
    bool trust;
    leat__tile_density density; /* for TILED */
    leat__decode_limits limits;
    const leat__tile_tables *tables; /* TILED: tables of the new pack */
    bool stored;                     /* merge: images stay as stored, except tiles with other tables */
    bool frames;                     /* all frames of animations, not only the first */
    /* Bytes that the inspector of each image needs; NULL without one. */
    uint64_t (*inspect)(const leat__image_info *info);
} leat__encode_plan;

/* Memory of a run in the packing flow: before it is encoded, afterwards, and while it is encoded. */
#define LEAT__ENCODE_IN (2u << 20)
#define LEAT__ENCODE_OUT (4u << 20)
#define LEAT__ENCODE_SCRATCH(plan) ((plan)->inspect ? 14u << 20 : 8u << 20)

typedef struct leat__encoder leat__encoder;

/* Opens an encoder; the plan must outlive it. */
int leat__encoder_open(leat__encoder **e, const leat__encode_plan *plan, leat_error *err) LEAT_MUST_CHECK;
void leat__encoder_close(leat__encoder **e);

/* Processes one image of a record. Afterwards the item describes the stored image and the location of
 * its bytes. If all frames of an animation are wanted, they are in the record, and the first in the
 * item. `from`: tables of the source pack, for an image that is already tiled. LEAT_EDATA,
 * LEAT_EFORMAT and LEAT_ELIMIT concern only this image; LEAT_ENOMEM does not. */
int leat__encoder_image(leat__encoder *e, leat__records *run, leat__record *r, leat__item *item,
                        const leat__tile_tables *from, leat_error *err) LEAT_MUST_CHECK;

/* From now on passes the coefficients of images that become tiles to the inspector; NULL ends that.
 * Frames are excluded: the inspector gets them later. */
void leat__encoder_watch(leat__encoder *e, const leat__inspector *inspector, void *looker);

/* Memory to process an image: `work` is needed only while the image is processed, `result` is a bound on the
 * bytes that remain. */
typedef struct leat__encode_bytes {
    uint64_t work, result;
} leat__encode_bytes;

/* Returns the memory needed to process this image, besides its encoded bytes. */
leat__encode_bytes leat__encode_need(const leat__encode_plan *plan, const uint8_t *data, size_t len);

/* Computes width and height after max_side is applied. */
void leat__encode_size(uint32_t max_side, uint32_t *width, uint32_t *height);

/* True when this key is in the share `mix_raw` that is stored as pixels. */
bool leat__encode_is_raw(const leat__encode_plan *plan, const char *key, size_t len);

#endif
