/* SPDX-License-Identifier: Apache-2.0
 *
 * Resizes the components of an image before they become pixels, for `like=fast`: each from its own grid
 * directly to the output's, with 8-bit weights, followed by the conversion to RGB.
 *
 *   samples --across--> rows, signed --down, colour--> RGB rows
 *
 * Weights are derived from those of the exact resize (resize.h), so the filters are the same. The weights
 * of an output sum up to 256, none is negative, and none is above 255 (a pixel taken alone gives 1/256 to
 * its neighbour). So sums of samples centred at 0 always fit 16 bits. The horizontal pass rounds to 8
 * bits; colours are computed from the vertical sums before rounding. All variants give the same bits.
 */
#ifndef LEAT_DSP_YCC_RESIZE_H
#define LEAT_DSP_YCC_RESIZE_H

#include "dsp/resize.h"

#define LEAT__YCC_TAPS_MAX 64 /* more would make 8-bit weights too coarse */

/* One axis of one component. Outputs are padded to a multiple of 64. */
typedef struct leat__ycc_axis {
    leat__axis exact;   /* the exact axis, from whose request, range and weights this one is derived */
    uint32_t lo, width; /* inputs that are needed */
    uint32_t count;     /* outputs */
    uint32_t stride;    /* outputs with padding */
    uint32_t pairs;     /* of taps, the same for all outputs */
    uint32_t *first;    /* per output, relative to lo; all taps are inside the width */
    uint16_t *weight; /* weight[pair * stride + output]: two weights, that of the first tap in the low byte */
    int32_t *base;    /* per group of outputs: offset at which kernels load */
    uint16_t *take;   /* per output: which loaded bytes are its first pair */
    uint32_t loads;   /* adjacent loads that each group needs, 1 or 2; 0: two are not enough */
    void *block;
    size_t cap;
} leat__ycc_axis;

/* The rows under the taps of one output of one component. */
typedef struct leat__ycc_taps {
    const int8_t *rows; /* 2 * pairs of them, `pitch` apart, readable to a multiple of 64 */
    size_t pitch;
    const uint16_t *weight; /* `step` from one pair to the next */
    size_t step;
    uint32_t pairs;
} leat__ycc_taps;

typedef struct leat__ycc_resize_dsp {
    const char *isa;
    uint32_t group; /* outputs that share a horizontal load; 0: loads are not planned */
    uint32_t load;  /* bytes of a load, or of each of two */
    /* Resizes several rows: src points at input lo and is readable LEAT__RESIZE_SLACK bytes past both ends;
     * writes up to the next multiple of 64. */
    void (*across)(const leat__ycc_axis *a, uint32_t rows, const uint8_t *src, size_t src_stride, int8_t *dst,
                   size_t dst_stride);
    /* Compute exactly n pixels of one row: grey, or red, green and blue. */
    void (*grey)(const leat__ycc_taps *y, uint8_t *dst, size_t n);
    void (*colour)(const leat__ycc_taps comp[3], uint8_t *const dst[3], size_t n);
} leat__ycc_resize_dsp;

const leat__ycc_resize_dsp *leat__ycc_resize_dsp_for(uint32_t cpu_flags);

/* A zeroed struct is an empty axis; build reuses its memory. Returns 0 with *fits = false when 8-bit weights
 * are not suitable: a filter with negative weights, nearest, too many taps, or an input shorter than the
 * taps. */
int leat__ycc_axis_build(leat__ycc_axis *a, const leat__axis_request *request,
                         const leat__ycc_resize_dsp *dsp, uint32_t cpu_flags, bool *fits,
                         leat_error *err) LEAT_MUST_CHECK;
void leat__ycc_axis_reset(leat__ycc_axis *a);

/* Sums have 8 fraction bits; colours are computed with 4. Shared with the variants. */
enum {
    LEAT__YCC_ROUND8 = 1 << (15 - 8), /* pmulhrsw by these rounds to no fraction bits, */
    LEAT__YCC_ROUND4 = 1 << (15 - 4), /* to 4 fraction bits, */
    LEAT__YCC_RED = 2871,             /* 1.402, 0.344136, 0.714136 and 1.772, with 4 fraction bits */
    LEAT__YCC_GREEN_CB = 705,
    LEAT__YCC_GREEN_CR = 1463,
    LEAT__YCC_BLUE = 3629,
    LEAT__YCC_BIAS = (128 << 4) + 8,
};

#endif
