/* SPDX-License-Identifier: Apache-2.0
 *
 * A streaming resize: planar rows come in from the top, in bands of any height. An output row is finished
 * as soon as its last input row has arrived. A ring of rows between the two passes fits into a cache, so a
 * whole image is never held.
 *
 *   rows -> [horizontal] -> ring -> [vertical] -> row out
 *   rows -> ring -> [vertical] -> [horizontal] -> row out      (vertical first)
 *
 * Each pass rounds to 8 bits, so their order affects the last bit. Pillow before 13 always ran the
 * horizontal pass first; since 13 it runs the vertical one first when the height shrinks by more than
 * twice as many pixels as the width.
 *
 * One resizer per thread; it keeps the coefficient tables of the last few sizes.
 */
#ifndef LEAT_DSP_RESIZER_H
#define LEAT_DSP_RESIZER_H

#include "dsp/resize.h"

#define LEAT__RESIZER_PLANES 4

typedef struct leat__resizer leat__resizer;

/* The destination of finished rows. `target` returns, for output row y and plane c, where exactly `width`
 * bytes may be written. `done` is called when all planes of that row are written. Rows may come in any order
 * when the image is flipped vertically. */
typedef struct leat__resize_out {
    uint8_t *(*target)(void *ctx, uint32_t y, uint32_t plane);
    int (*done)(void *ctx, uint32_t y);
    void *ctx;
} leat__resize_out;

int leat__resizer_open(leat__resizer **r, leat_error *err) LEAT_MUST_CHECK;
void leat__resizer_close(leat__resizer **r);

/* The order of the two passes. */
typedef enum leat__pass_order {
    LEAT__PASS_PILLOW13, /* Pillow 13's rule, as above */
    LEAT__PASS_PILLOW12, /* horizontal first */
    LEAT__PASS_FAST      /* by ycc_resizer.h if possible; here like pillow13 */
} leat__pass_order;
#define LEAT__PASS_CHOICES "pillow13|pillow12|fast"

/* True when the vertical pass comes first. */
bool leat__resize_vertical_first(const leat__axis_request *x, const leat__axis_request *y,
                                 leat__pass_order order);

typedef struct leat__resize_need {
    uint32_t x, y, width, height;
} leat__resize_need;
/* Plans an image: builds or finds both axes. *need is the part of the input that must be delivered, before
 * mirroring. */
int leat__resizer_plan(leat__resizer *r, const leat__axis_request *x, const leat__axis_request *y,
                       leat__pass_order order, leat__resize_need *need, leat_error *err) LEAT_MUST_CHECK;

/* begin starts the planned image with this many planes. Then rows takes input rows 0 .. need.height-1, once
 * each, in order. Each plane row must be readable LEAT__RESIZE_SLACK bytes past both ends. Returns the result
 * of `done` when that is not 0. */
int leat__resizer_begin(leat__resizer *r, uint32_t planes, const leat__resize_out *out,
                        leat_error *err) LEAT_MUST_CHECK;
int leat__resizer_rows(leat__resizer *r, uint32_t y, uint32_t count, const uint8_t *const *plane,
                       size_t stride) LEAT_MUST_CHECK;
bool leat__resizer_finished(const leat__resizer *r); /* all output rows are written */

#endif
