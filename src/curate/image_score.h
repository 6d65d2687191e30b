/* SPDX-License-Identifier: Apache-2.0
 *
 * Quality scores of an image, from its small version. Brightness runs from 0 to 255.
 */
#ifndef LEAT_CURATE_IMAGE_SCORE_H
#define LEAT_CURATE_IMAGE_SCORE_H

#include "curate/image_small.h"

/* Names of columns: append only. */
#define LEAT__LOOK_MAP(X)                                                                                    \
    X(MEAN, "mean", "mean brightness")                                                                       \
    X(CONTRAST, "contrast", "standard deviation of brightness")                                              \
    X(P1, "p1", "brightness that 1 % of the image is below")                                                 \
    X(P5, "p5", "the same for 5 %")                                                                          \
    X(P50, "p50", "the same for 50 %")                                                                       \
    X(P95, "p95", "the same for 95 %")                                                                       \
    X(P99, "p99", "the same for 99 %")                                                                       \
    X(ENTROPY, "entropy", "bits of the histogram of brightness")                                             \
    X(BLUR, "blur", "variance of the Laplacian: small when blurred")                                         \
    X(SATURATION, "saturation", "mean distance from grey in Cb and Cr")                                      \
    X(CAST, "cast", "distance from grey of the mean colour")                                                 \
    X(QUALITY, "jpeg_quality", "quality of the JPEG by its tables, -1 when not known")                       \
    X(BORDER, "border", "share of the area that is a border of one colour")                                  \
    X(ASPECT, "aspect", "longer side / shorter side")                                                        \
    X(SIZE, "size", "square root of the number of pixels")                                                   \
    X(NOISE, "noise", "deviation of the noise, from the quietest quarter of the image")

typedef enum leat__look {
#define LEAT__LOOK_ENUM(id, name, help) LEAT__LOOK_##id,
    LEAT__LOOK_MAP(LEAT__LOOK_ENUM)
#undef LEAT__LOOK_ENUM
        LEAT__LOOKS
} leat__look;

extern const char *const leat__look_names[LEAT__LOOKS];

/* Computes all scores except BORDER, which comes from the signature. */
void leat__image_score(const leat__image_small *small, double score[LEAT__LOOKS]);

#endif
