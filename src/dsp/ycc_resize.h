/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize of the components of an image before they become pixels, for `like=fast`: each from its
 * own grid straight to the output's, with weights of 8 bits, followed by the conversion to RGB.
 *
 *   samples --across--> rows, signed --down, colour--> RGB rows
 *
 * Weights come from those of the exact resize (resize.h), so that the filters are the same. Those
 * of an output sum up to 256, none is negative, and none is above 255 (a pixel taken alone gives
 * 1/256 to its neighbour): then sums of samples centred at 0 fit 16 bits, whatever they are. A pass
 * rounds to 8 bits; the colours see the sums before rounding. All variants give the same bits.
 */
#ifndef LEAT_DSP_YCC_RESIZE_H
#define LEAT_DSP_YCC_RESIZE_H

#include "dsp/resize.h"

#define LEAT__YCC_TAPS_MAX 64 /* more would make 8 bits too coarse */

/* One axis of one component. Outputs are padded to a multiple of 64. */
typedef struct leat__ycc_axis {
    leat__axis exact;   /* whose request, range and weights these are made of */
    uint32_t lo, width; /* inputs that are needed */
    uint32_t count;     /* outputs */
    uint32_t stride;    /* outputs with padding */
    uint32_t pairs;     /* of taps, the same for all outputs */
    uint32_t *first;    /* per output, from lo; all taps are inside the width */
    uint16_t *weight;   /* pair by pair, per output: the first tap's in the low byte */
    int32_t *base;      /* per group of outputs: where kernels load, and */
    uint16_t *take;     /* per output: which bytes of it are the first pair's */
    uint32_t loads;     /* side by side in which every group finds them; 0: in two they do not */
    void *block;
    size_t cap;
} leat__ycc_axis;

/* Rows under the taps of one output of one component. */
typedef struct leat__ycc_taps {
    const int8_t *rows; /* 2 * pairs of them, `pitch` apart, readable to a multiple of 64 */
    size_t pitch;
    const uint16_t *weight; /* `step` apart from pair to pair */
    size_t step;
    uint32_t pairs;
} leat__ycc_taps;

typedef struct leat__ycc_resize_dsp {
    const char *isa;
    uint32_t group; /* outputs that share a load across, */
    uint32_t load;  /* bytes of a load, or of each of two; group 0: none are placed */
    /* Some rows: src points at input lo and is readable LEAT__RESIZE_SLACK bytes beyond both
     * ends; writes up to the next multiple of 64. */
    void (*across)(const leat__ycc_axis *a, uint32_t rows, const uint8_t *src, size_t src_stride, int8_t *dst,
                   size_t dst_stride);
    /* n pixels of one row, written exactly: grey, or red, green and blue. */
    void (*grey)(const leat__ycc_taps *y, uint8_t *dst, size_t n);
    void (*colour)(const leat__ycc_taps comp[3], uint8_t *const dst[3], size_t n);
} leat__ycc_resize_dsp;

const leat__ycc_resize_dsp *leat__ycc_resize_dsp_for(uint32_t cpu_flags);

/* Zeroed struct = empty axis; build reuses its memory. *fits false (with 0): not something for 8
 * bits: a filter with negative weights, nearest, too many taps, or an input of fewer. */
int leat__ycc_axis_build(leat__ycc_axis *a, const leat__axis_request *request,
                         const leat__ycc_resize_dsp *dsp, uint32_t cpu_flags, bool *fits,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__ycc_axis_reset(leat__ycc_axis *a);

/* Sums have 8 bits after the point; colours are made with 4. Shared with the variants. */
enum {
    LEAT__YCC_ROUND8 = 1 << (15 - 8), /* pmulhrsw by these: to no bits after the point, */
    LEAT__YCC_ROUND4 = 1 << (15 - 4), /* to 4 bits, */
    LEAT__YCC_RED = 2871,             /* 1.402, 0.344136, 0.714136 and 1.772, with 4 bits after the point */
    LEAT__YCC_GREEN_CB = 705,
    LEAT__YCC_GREEN_CR = 1463,
    LEAT__YCC_BLUE = 3629,
    LEAT__YCC_BIAS = (128 << 4) + 8,
};

#endif
