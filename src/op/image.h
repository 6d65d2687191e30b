/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for the planar images of the codec module (leat__planes): scratch images that grow as needed and
 * keep their memory.
 */
#ifndef LEAT_OP_IMAGE_H
#define LEAT_OP_IMAGE_H

#include "codec/codec.h"

static inline uint8_t *leat__planes_row(const leat__planes *im, uint32_t channel, uint32_t y)
{
    return im->plane[channel] + (size_t)y * im->stride;
}

static inline void leat__planes_swap(leat__planes *a, leat__planes *b)
{
    const leat__planes t = *a;
    *a = *b;
    *b = t;
}

#endif
