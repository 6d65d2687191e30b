/* SPDX-License-Identifier: Apache-2.0
 *
 * A streaming resize: planar rows come in from the top, in bands of any height; finished
 * output rows leave as soon as their last input row has come. Between the two passes is a
 * ring of horizontally resized rows that fits a cache, so no image is ever held whole.
 *
 *   rows -> [horizontal] -> ring -> [vertical] -> row out
 *   rows -> ring -> [vertical] -> [horizontal] -> row out      (vertical first)
 *
 * Each pass rounds to 8 bits, so their order shows in the last bit. Pillow before 13 always
 * began horizontally; since 13 it begins vertically when the height shrinks by more than
 * twice as many pixels as the width.
 *
 * One resizer per thread; it keeps the coefficient tables of the last few sizes.
 */
#ifndef LEAT_DSP_RESIZER_H
#define LEAT_DSP_RESIZER_H

#include "dsp/resize.h"

#define LEAT__RESIZER_PLANES 4

typedef struct leat__resizer leat__resizer;

/* Where finished rows go. `target` gives, for output row y and plane c, where exactly `width`
 * bytes may be written; `done` says that all planes of that row are there. Rows come in any
 * order when the image is flipped vertically. */
typedef struct leat__resize_out {
    uint8_t *(*target)(void *ctx, uint32_t y, uint32_t plane);
    int (*done)(void *ctx, uint32_t y);
    void *ctx;
} leat__resize_out;

int leat__resizer_open(leat__resizer **r, leat_error *err) LEAT_MUST_CHECK;
void leat__resizer_close(leat__resizer **r);

/* Plans an image: builds or finds both axes. Afterwards *need says which part of the input
 * (x, y, width, height, unmirrored) must be delivered. */
typedef enum leat__pass_order {
    LEAT__PASS_PILLOW13, /* by that rule */
    LEAT__PASS_PILLOW12, /* horizontal first */
    LEAT__PASS_FAST      /* by ycc_resizer.h where it can; here as the first */
} leat__pass_order;
#define LEAT__PASS_CHOICES "pillow13|pillow12|fast"

/* Whether the vertical pass comes first. */
bool leat__resize_vertical_first(const leat__axis_request *x, const leat__axis_request *y,
                                 leat__pass_order order);

typedef struct leat__resize_need {
    uint32_t x, y, width, height;
} leat__resize_need;
int leat__resizer_plan(leat__resizer *r, const leat__axis_request *x, const leat__axis_request *y,
                       leat__pass_order order, leat__resize_need *need, leat_error *err) LEAT_MUST_CHECK;

/* Starts the planned image with this many planes; then rows 0 .. need.height-1 once each, in
 * order. Each plane row is readable LEAT__RESIZE_SLACK bytes beyond both ends. Returns what
 * `done` returned when that is not 0. */
int leat__resizer_begin(leat__resizer *r, uint32_t planes, const leat__resize_out *out,
                        leat_error *err) LEAT_MUST_CHECK;
int leat__resizer_rows(leat__resizer *r, uint32_t y, uint32_t count, const uint8_t *const *plane,
                       size_t stride) LEAT_MUST_CHECK;
bool leat__resizer_finished(const leat__resizer *r); /* all output rows have left */

#endif
