/* SPDX-License-Identifier: Apache-2.0
 *
 * A resize of an image that comes as components (grey, or Y, Cb and Cr, chroma perhaps coarser) and
 * leaves as pixels: the fast counterpart of resizer.h, on the kernels of ycc_resize.h. Where a
 * component's grid is so fine that it would be halved anyway, its blocks are asked for at half
 * the size (`shrink`, idct_small.h).
 *
 *   plan -> which part of each component is needed
 *   rows -> resized across at once and kept: as long as the crop, as wide as the output
 *   finish -> resized down and converted, row by row
 *
 * Chroma samples are in the middle of the pixels they represent, as in JPEG.
 *
 * One per thread; zeroed memory is not enough: open it.
 */
#ifndef LEAT_DSP_YCC_RESIZER_H
#define LEAT_DSP_YCC_RESIZER_H

#include "dsp/resizer.h"
#include "dsp/ycc_resize.h"

typedef struct leat__ycc_resizer leat__ycc_resizer;

/* The image's grids. */
typedef struct leat__ycc_grid {
    uint32_t components; /* 1 or 3 */
    uint32_t h, v;       /* pixels per chroma sample */
} leat__ycc_grid;

/* A rectangle of a component, in samples of blocks of 8 >> shrink. */
typedef struct leat__ycc_part {
    uint32_t x, y, width, height;
    uint32_t shrink;
} leat__ycc_part;

int leat__ycc_resizer_open(leat__ycc_resizer **r, leat_error *err) LEAT_MUST_CHECK;
void leat__ycc_resizer_close(leat__ycc_resizer **r);

/* Plans the resize of the pixels from (left, top) on that the axes describe. part[c] says what
 * must be delivered of each component. *fits false (with 0): not something for 8-bit weights. */
int leat__ycc_resizer_plan(leat__ycc_resizer *r, const leat__ycc_grid *grid, uint32_t left, uint32_t top,
                           const leat__axis_request *x, const leat__axis_request *y, leat__ycc_part part[3],
                           bool *fits, leat_error *err) LEAT_MUST_CHECK;

/* The next `count` rows of component c's part; readable LEAT__RESIZE_SLACK bytes
 * beyond both ends. */
void leat__ycc_resizer_rows(leat__ycc_resizer *r, uint32_t c, uint32_t count, const uint8_t *rows,
                            size_t stride);

/* All rows to `out`; LEAT_EINTERNAL when parts are missing, or what `done` returned. */
int leat__ycc_resizer_finish(leat__ycc_resizer *r, const leat__resize_out *out) LEAT_MUST_CHECK;

#endif
