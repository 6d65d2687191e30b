/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the transformed components of a JPEG to rows of pixels: fancy upsampling, colour conversion,
 * the sink. Shared by the tile decoder and the JPEG region decoder. The image is processed in *strips* of
 * whole block rows, top to bottom; only the blocks that the region needs are filled in. The planes hold
 * one strip, and one row of the previous strip if chroma is interpolated vertically.
 *
 *   leat__raster_begin(&r, &shape, x, y, width, height, strip_rows, err);
 *   for (strip = r.first; strip <= r.last; strip++) {
 *       … write the blocks r.comp[c].bx0 .. bx1 of this strip at leat__raster_at(…) …
 *       leat__raster_emit(&r, strip, sink);
 *   }
 *
 * Grey, and YCbCr of 4:4:4, 4:2:2, 4:2:0, 4:4:0 or 4:1:1. Pixels equal libjpeg-turbo's, bit for bit.
 * Instead of pixels, the components themselves can be requested, each with its own rectangle and block
 * size (leat__raster_begin_parts): then nothing is upsampled or converted here. One per thread; zeroed is
 * empty.
 */
#ifndef LEAT_CODEC_RASTER_H
#define LEAT_CODEC_RASTER_H

#include "codec/planes.h"
#include "dsp/ycc.h"

#define LEAT__RASTER_COMPONENTS 3
#define LEAT__RASTER_CARRY 1 /* rows kept of the previous strip */

typedef struct leat__raster_shape {
    uint32_t width, height; /* of the image */
    uint32_t components;    /* 1 or 3 */
    uint32_t h, v;          /* pixels per chroma sample: 1, 2, 4 and 1, 2 */
} leat__raster_shape;

/* The samples of a component that the region needs, and the blocks that contain them. */
typedef struct leat__raster_span {
    uint32_t x0, x1, y0, y1;     /* samples */
    uint32_t bx0, bx1, by0, by1; /* blocks */
    uint32_t width, height;      /* of the whole component, in samples */
    uint32_t shrink, side;       /* blocks have 8 >> shrink samples in each direction */
    uint32_t strip_rows;         /* samples */
} leat__raster_span;

typedef struct leat__raster {
    leat__raster_shape shape;
    leat__raster_span comp[LEAT__RASTER_COMPONENTS];
    uint32_t x, y, width, height; /* the region, in pixels */
    uint32_t strip_rows;          /* pixels: a multiple of 8 * v */
    uint32_t first, last;         /* strips that contain the region */
    uint32_t done;                /* rows passed to the sink */
    bool smooth;                  /* chroma is interpolated, not repeated */
    bool parts;                   /* components are requested, not pixels */
    leat__planes planes;          /* CARRY + strip_rows rows of each component */
    leat__planes chroma;          /* two upsampled rows */
    leat__band band;
    leat__ycc_dsp ycc;
    uint32_t cpu_flags; /* for which the kernels were chosen */
} leat__raster;

/* Fits the scratch to the region, which must be inside the image and not empty. */
int leat__raster_begin(leat__raster *r, const leat__raster_shape *shape, uint32_t x, uint32_t y,
                       uint32_t width, uint32_t height, uint32_t strip_rows, leat_error *err) LEAT_MUST_CHECK;
/* Like leat__raster_begin, for components: part[c] of each, inside the component and not empty. */
int leat__raster_begin_parts(leat__raster *r, const leat__raster_shape *shape, const leat__ycc_part *part,
                             uint32_t strip_rows, leat_error *err) LEAT_MUST_CHECK;
void leat__raster_reset(leat__raster *r);
/* Only computes what the region needs: spans, strips and `smooth`. Allocates nothing. */
void leat__raster_find(leat__raster *r, const leat__raster_shape *shape, uint32_t x, uint32_t y,
                       uint32_t width, uint32_t height, uint32_t strip_rows);

/* Returns the address of sample x of row y of component c while `strip` is in the planes. Up to
 * LEAT__CODEC_PADDING bytes past the last block of a row may be written. */
static inline uint8_t *leat__raster_at(const leat__raster *r, uint32_t strip, uint32_t c, uint32_t x,
                                       uint32_t y)
{
    const leat__raster_span *s = &r->comp[c];
    uint32_t row = y + LEAT__RASTER_CARRY - strip * s->strip_rows;
    return r->planes.plane[c] + row * r->planes.stride + (x - s->bx0 * s->side);
}

/* Passes the rows of the region, or of the parts, that `strip` completes to the sink; returns the sink's
 * result. */
int leat__raster_emit(leat__raster *r, uint32_t strip, const leat__row_sink *sink);

#endif
