/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that compare images by their signatures: products of descriptors, and the alignment of thumbnails
 * of 32 x 32 pixels. Sums have a fixed order and products are not fused with additions, so every variant
 * gives the same bits.
 */
#ifndef LEAT_DSP_ALIGN_H
#define LEAT_DSP_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#define LEAT__ALIGN_SIDE 32
#define LEAT__ALIGN_PIXELS (LEAT__ALIGN_SIDE * LEAT__ALIGN_SIDE)
#define LEAT__ALIGN_MIDDLE 15.5f /* centre of the pixel grid */
#define LEAT__ALIGN_GROUP 16     /* codes stored side by side */
#define LEAT__ALIGN_CODE 48      /* bytes of each of these codes */
#define LEAT__ALIGN_PAD 32       /* floats past `pixel` that may be read */
#define LEAT__ALIGN_BYTE_PAD 64  /* bytes past `byte` that may be read */

typedef struct leat__align_image {
    float pixel[LEAT__ALIGN_PIXELS + LEAT__ALIGN_PAD]; /* minus 128 */
    /* Each pixel with its right, lower and lower right neighbours, one byte each from the lowest on. The last
     * row and column are repeated. */
    uint32_t quad[LEAT__ALIGN_PIXELS];
    uint8_t byte[LEAT__ALIGN_PIXELS + LEAT__ALIGN_BYTE_PAD];
} leat__align_image;

/* Maps a pixel of q to a position in d: X = p0 + p1 x + p2 y, Y = p3 + p4 x + p5 y, relative to the centre.
 * The value of the pixel of q is then gain * d + offset. */
typedef struct leat__align_map {
    float p[6], gain, offset;
} leat__align_map;

/* For each pixel of q: value and gradient of d at its position, and the remaining difference. Bit x of
 * inside[y] is 0 when the position is outside d. */
typedef struct leat__align_probes {
    float value[LEAT__ALIGN_PIXELS], gx[LEAT__ALIGN_PIXELS], gy[LEAT__ALIGN_PIXELS], rest[LEAT__ALIGN_PIXELS];
    uint32_t inside[LEAT__ALIGN_SIDE];
} leat__align_probes;

/* Sums over all pixels, with weights that limit outliers: */
enum {
    LEAT__ALIGN_XX, /* gx gx x {1, x, y, x x, x y, y y} */
    LEAT__ALIGN_XY = LEAT__ALIGN_XX + 6,
    LEAT__ALIGN_YY = LEAT__ALIGN_XY + 6,
    LEAT__ALIGN_X1 = LEAT__ALIGN_YY + 6, /* gx x {1, x, y} */
    LEAT__ALIGN_XV = LEAT__ALIGN_X1 + 3, /* gx value, gx rest */
    LEAT__ALIGN_XR = LEAT__ALIGN_XV + 3,
    LEAT__ALIGN_Y1 = LEAT__ALIGN_XR + 3,
    LEAT__ALIGN_YV = LEAT__ALIGN_Y1 + 3,
    LEAT__ALIGN_YR = LEAT__ALIGN_YV + 3,
    LEAT__ALIGN_VV = LEAT__ALIGN_YR + 3,
    LEAT__ALIGN_VR,
    LEAT__ALIGN_V1,
    LEAT__ALIGN_R1,
    LEAT__ALIGN_11,
    LEAT__ALIGN_SUMS
};

#define LEAT__ALIGN_COARSE 16 /* side of the largest reduced thumbnail */
#define LEAT__ALIGN_TAPS 5    /* pixels that one pixel of the smallest covers, at most */
#define LEAT__ALIGN_SCALE 8   /* factor of its values: sums of 256 products fit 32 bits */

/* How to average 32 pixels down to n, at most 16. */
typedef struct leat__align_shrink {
    int n, taps;
    int32_t first[LEAT__ALIGN_COARSE]; /* first pixel of each average; `weight` has the weights of the
                                          pixels from it on */
    float weight[LEAT__ALIGN_TAPS][LEAT__ALIGN_COARSE];
} leat__align_shrink;

typedef struct leat__align_dsp {
    const char *isa;
    /* out[i]: sum of products of `q` and code i. `bytes` is a multiple of 16; the sum fits 32 bits
     * for up to 2^16 bytes. */
    void (*products)(const int8_t *q, const int8_t *codes, size_t bytes, size_t count, int32_t *out);
    /* Like products, for groups of 16 codes of 48 bytes: bytes 0 to 3 of each, then bytes 4 to 7 ..., all
     * plus 128. out: 16 sums per group. */
    void (*group_products)(const int8_t *q, const uint8_t *groups, size_t count, int32_t *out);
    /* Finds each i with distance[i] = 1 - product[i] * own * scale[i] < limit. Returns how many; `at` lists
     * them in ascending order. Both arrays have `count` entries. */
    size_t (*nearer)(const int32_t *product, const float *scale, size_t count, float own, float limit,
                     uint32_t *at, float *distance);
    /* Prepares an image from a thumbnail's luma, 32 rows of 32. One more byte may be read. */
    void (*prepare)(const uint8_t *thumb, leat__align_image *out);
    /* Computes the averages minus their mean, times LEAT__ALIGN_SCALE: n rows of 16, zeros from n on. Returns
     * the sum of their squares. */
    int32_t (*shrink)(const leat__align_image *image, const leat__align_shrink *how, int16_t *out);
    /* Sums the products of the n x n corner of `a` with the part of `b` at (left, top), both with rows of 16;
     * the rest of `a` is zero. out: (span + 1)^2 sums, for top and left from 0 to span. Up to 16 numbers past
     * `b` are read. */
    void (*slide)(const int16_t *a, const int16_t *b, int n, int span, int32_t *out);
    /* Correlates the gradients of the n x n corner of `a`, as signed square roots, with those of `b`; both
     * have rows of 16. Up to 16 numbers past `b` are read. `floor` is added to the sums of absolute
     * gradients. */
    float (*outlines)(const int16_t *a, const int16_t *b, int n, float floor);
    /* Fills the probes. Returns the sum of
     * rest
     * ; *count: pixels inside. */
    float (*sample)(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                    leat__align_probes *out, int *count);
    /* Computes the weighted sums. A difference above `limit` has the weight (limit / difference)^2. */
    void (*sums)(const leat__align_probes *p, float limit, float out[LEAT__ALIGN_SUMS]);
    /* Correlates the gradients, as signed square roots, where the images overlap. `floor` is added to the
     * sums of absolute gradients. */
    float (*compare)(const leat__align_image *q, const leat__align_image *d, const leat__align_map *m,
                     float floor);
    /* The same, from the probes of `q`, the other image and `m`. */
    float (*compare_sampled)(const leat__align_image *q, const leat__align_probes *p,
                             const leat__align_map *m, float floor);
} leat__align_dsp;

const leat__align_dsp *leat__align_dsp_for(uint32_t cpu_flags);

#endif
