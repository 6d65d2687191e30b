/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes an image that is given as components (grey, or Y, Cb and Cr, possibly with coarser chroma) to
 * pixels: the fast counterpart of resizer.h, with the kernels of ycc_resize.h. If a component would be
 * reduced to half its size or less, its blocks are requested at half the size (`shrink`, idct_small.h).
 *
 *   plan -> which part of each component is needed
 *   rows -> resized horizontally at once and kept: as many as the crop has, as wide as the output
 *   finish -> resized vertically and converted, row by row
 *
 * Chroma samples are at the centre of the pixels they represent, as in JPEG.
 *
 * One per thread. Zeroed memory is not enough: it must be opened.
 */
#ifndef LEAT_DSP_YCC_RESIZER_H
#define LEAT_DSP_YCC_RESIZER_H

#include "dsp/resizer.h"
#include "dsp/ycc_resize.h"

typedef struct leat__ycc_resizer leat__ycc_resizer;

/* The grids of an image. */
typedef struct leat__ycc_grid {
    uint32_t components; /* 1 or 3 */
    uint32_t h, v;       /* pixels per chroma sample */
} leat__ycc_grid;

/* A rectangle of a component, in samples of blocks with side 8 >> shrink. */
typedef struct leat__ycc_part {
    uint32_t x, y, width, height;
    uint32_t shrink;
} leat__ycc_part;

int leat__ycc_resizer_open(leat__ycc_resizer **r, leat_error *err) LEAT_MUST_CHECK;
void leat__ycc_resizer_close(leat__ycc_resizer **r);

/* Plans the resize that the axes describe, of pixels from (left, top) on. part[c] is the part of each
 * component that must be delivered. Returns 0 with *fits = false when 8-bit weights are not suitable. */
int leat__ycc_resizer_plan(leat__ycc_resizer *r, const leat__ycc_grid *grid, uint32_t left, uint32_t top,
                           const leat__axis_request *x, const leat__axis_request *y, leat__ycc_part part[3],
                           bool *fits, leat_error *err) LEAT_MUST_CHECK;

/* Takes the next `count` rows of component c's part; readable LEAT__RESIZE_SLACK bytes past both ends. */
void leat__ycc_resizer_rows(leat__ycc_resizer *r, uint32_t c, uint32_t count, const uint8_t *rows,
                            size_t stride);

/* Writes all rows to `out`. LEAT_EINTERNAL when parts are missing; else the result of `done`. */
int leat__ycc_resizer_finish(leat__ycc_resizer *r, const leat__resize_out *out) LEAT_MUST_CHECK;

#endif
