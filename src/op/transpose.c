/* SPDX-License-Identifier: Apache-2.0
 *
 * Transposes planar images in blocks that fit into the L1 cache in both directions. Pure function.
 */
#include "op/transpose.h"

#include "base/num.h"

enum { BLOCK = 32 };

static void transpose_block(const uint8_t *src, size_t src_stride, uint8_t *dst, size_t dst_stride,
                            uint32_t width, uint32_t height)
{
    for (uint32_t x = 0; x < width; x++)
        for (uint32_t y = 0; y < height; y++) dst[x * dst_stride + y] = src[y * src_stride + x];
}

int leat__planes_transpose(const leat__planes *src, leat__planes *dst, leat_error *err)
{
    LEAT_TRY(leat__planes_resize(dst, src->height, src->width, src->channels, err));
    for (uint32_t c = 0; c < src->channels; c++)
        for (uint32_t y = 0; y < src->height; y += BLOCK)
            for (uint32_t x = 0; x < src->width; x += BLOCK)
                transpose_block(leat__planes_row(src, c, y) + x, src->stride, leat__planes_row(dst, c, x) + y,
                                dst->stride, LEAT_MIN(BLOCK, src->width - x),
                                LEAT_MIN(BLOCK, src->height - y));
    return 0;
}
