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
    leat__tile_density density; /* TILED */
    leat__decode_limits limits;
    const leat__tile_tables *tables; /* TILED: of the pack that is written */
    bool stored;                     /* merge: images stay as stored, except tiles with other tables */
    bool frames;                     /* all frames of animations, not only the first */
    bool inspected;                  /* an inspector looks at each image */
} leat__encode_plan;

/* Bytes of a run in the packing flow, before and after it is encoded, and of what encodes it. */
#define LEAT__ENCODE_IN (2u << 20)
#define LEAT__ENCODE_OUT (4u << 20)
#define LEAT__ENCODE_SCRATCH(plan) ((plan)->inspected ? 14u << 20 : 8u << 20)

typedef struct leat__encoder leat__encoder;

/* The plan must outlive the encoder. */
int leat__encoder_open(leat__encoder **e, const leat__encode_plan *plan, leat_error *err) LEAT_MUST_CHECK;
void leat__encoder_close(leat__encoder **e);

/* Processes one image of a record. Afterwards the item describes what is stored and where its
 * bytes are. An animation whose frames are all wanted leaves them in the record, and the first in the
 * item. `from`: the tables of the pack it comes from, when it is already tiled. LEAT_EDATA,
 * LEAT_EFORMAT and LEAT_ELIMIT concern only this image; LEAT_ENOMEM does not. */
int leat__encoder_image(leat__encoder *e, leat__records *run, leat__record *r, leat__item *item,
                        const leat__tile_tables *from, leat_error *err) LEAT_MUST_CHECK;

/* From now on (inspector NULL: no longer) gives the coefficients of images that become tiles to the
 * inspector. Not those of frames, which it looks at later. */
void leat__encoder_watch(leat__encoder *e, const leat__inspector *inspector, void *looker);

/* Bytes of memory needed to process this image, including the result. */
uint64_t leat__encode_need(const leat__encode_plan *plan, const uint8_t *data, size_t len);

/* Width and height after max_side. */
void leat__encode_size(uint32_t max_side, uint32_t *width, uint32_t *height);

/* True when this key is in the share `mix_raw` that is stored as pixels. */
bool leat__encode_is_raw(const leat__encode_plan *plan, const char *key, size_t len);

#endif
