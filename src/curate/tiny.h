/* SPDX-License-Identifier: Apache-2.0
 *
 * An image vector without any model, stored by `leat embed --model tiny`. For near-duplicates, clusters
 * and maps on machines without PyTorch. It captures colours, layout and edges, not objects.
 */
#ifndef LEAT_CURATE_TINY_H
#define LEAT_CURATE_TINY_H

#include <stdint.h>

#define LEAT__TINY_SIDE 32  /* the image is resized to this square first */
#define LEAT__TINY_LUMA 8   /* lowest DCT coefficients per axis of luma */
#define LEAT__TINY_CHROMA 4 /* the same for Cb and Cr */
#define LEAT__TINY_CELLS 4  /* cells per axis of the edge histograms */
#define LEAT__TINY_ANGLES 8 /* directions per cell */
#define LEAT__TINY_DIM                                                                                       \
    (LEAT__TINY_LUMA * LEAT__TINY_LUMA + 2 * LEAT__TINY_CHROMA * LEAT__TINY_CHROMA +                         \
     LEAT__TINY_CELLS * LEAT__TINY_CELLS * LEAT__TINY_ANGLES)

/* Computes the vector of an image, with the same bits on every machine. `rgb`: LEAT__TINY_SIDE rows
 * of as many pixels of three bytes. `out`: LEAT__TINY_DIM numbers, of length 1. */
void leat__tiny_vector(const uint8_t *rgb, float *out);

#endif
