/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize with Pillow's arithmetic: the same double-precision coefficients, the same 22-bit
 * fixed point, the same rounding between the two passes, so pixels are equal bit for bit.
 *
 * An *axis* is one dimension of a resize: for each output, the first input and the weights of its taps. A
 * kernel table has the two passes for one ISA: horizontal (planar rows in, as many out) and vertical (some
 * rows in, one out). Kernels use no threads and cannot fail.
 */
#ifndef LEAT_DSP_RESIZE_H
#define LEAT_DSP_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* In the order of LEAT__FILTER_CHOICES. */
typedef enum leat__filter {
    LEAT__FILTER_NEAREST,
    LEAT__FILTER_BOX,
    LEAT__FILTER_BILINEAR,
    LEAT__FILTER_HAMMING,
    LEAT__FILTER_BICUBIC,
    LEAT__FILTER_LANCZOS,
    LEAT__FILTER_COUNT
} leat__filter;
#define LEAT__FILTER_CHOICES "nearest|box|bilinear|hamming|bicubic|lanczos"

#define LEAT__RESIZE_BITS 22        /* fraction bits of a weight */
#define LEAT__RESIZE_SLACK 64       /* bytes readable before and after each input row */
#define LEAT__RESIZE_MAX (1u << 24) /* longest axis, in or out */

/* A request for one axis. All numbers are in pixels of the (cropped) input image. */
typedef struct leat__axis_request {
    uint32_t in, out;     /* length of the whole input and of the whole output */
    float box_lo, box_hi; /* Pillow's `box` along this axis; both 0 = the whole input */
    uint32_t from, count; /* requested window of the output; count 0 = all of it */
    leat__filter filter;
    bool mirror_in;  /* the input is mirrored before the resize */
    bool mirror_out; /* the window is mirrored after the resize */
} leat__axis_request;

/* Outputs in their final order. Inputs [lo, hi) are needed; `first` is relative to lo. */
typedef struct leat__axis {
    leat__axis_request request;
    uint32_t lo, hi;
    uint32_t count;       /* outputs */
    uint32_t taps;        /* maximum taps of an output */
    uint32_t stride;      /* outputs per tap in `weight`, a multiple of 16 */
    bool copy;            /* every output is one input with weight 1: a plain copy in order, */
    bool reverse;         /* or in reverse order */
    uint32_t *first;      /* per output */
    uint32_t *taps_of;    /* per output */
    int32_t *weight;      /* weight[tap * stride + output], zero past taps_of; has taps rounded up to 4 */
    double *center, *sum; /* scratch of the build: per output, */
    double *work;         /* and per weight */
    void *packed;         /* the weights in the form of the selected kernels */
    size_t weight_cap, output_cap, packed_cap, work_cap;
} leat__axis;

typedef struct leat__resize_dsp {
    const char *isa;
    /* Computes the weights of the bilinear filter for inputs `scale` apart; NULL: use the portable ones.
     * Handles four outputs at a time: values after the last one are overwritten later. */
    void (*weigh_bilinear)(leat__axis *a, double scale);
    uint32_t tap_group; /* vertical taps are given in multiples of this many rows */
    /* pack_bytes returns the size of `packed` for an axis; pack fills it (once per axis, after the build). */
    size_t (*pack_bytes)(const leat__axis *a, bool vertical);
    void (*pack)(const leat__axis *a, bool vertical, void *packed);
    /* Resizes several rows at once, so that weights are loaded once for the planes of a pixel row. src[i]
     * points at input lo. Writes a->count bytes of each dst[i], and may write up to the next multiple of
     * 64. */
    void (*horizontal)(const leat__axis *a, const uint8_t *const *src, uint8_t *const *dst, uint32_t rows);
    /* Computes one output row. rows[t] is tap t of output `index`; taps are rounded up to tap_group, with any
     * readable row for taps past taps_of. Reads up to the next multiple of 64 bytes, writes exactly n. */
    void (*vertical)(const leat__axis *a, uint32_t index, const uint8_t *const *rows, uint8_t *dst, size_t n);
} leat__resize_dsp;

/* Returns the fastest kernels that these CPU flags (src/probe/cpu.h) allow. */
const leat__resize_dsp *leat__resize_dsp_for(uint32_t cpu_flags);

/* A zeroed struct is an empty axis. Build reuses its memory; after a failure the axis is unusable until the
 * next build. LEAT_EINVAL for sizes of 0 or out of range, LEAT_ENOMEM. */
int leat__axis_build(leat__axis *a, const leat__axis_request *request, const leat__resize_dsp *dsp,
                     bool vertical, leat_error *err) LEAT_MUST_CHECK;
void leat__axis_reset(leat__axis *a);

/* Finds the inputs [lo, hi) that a build would need, without computing weights. */
int leat__axis_range(const leat__axis_request *request, uint32_t *lo, uint32_t *hi,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
