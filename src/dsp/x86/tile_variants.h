/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of the x86 variants of the tile decoder's kernels.
 */
#ifndef LEAT_DSP_X86_TILE_VARIANTS_H
#define LEAT_DSP_X86_TILE_VARIANTS_H

#include <stdbool.h>

#include "dsp/idct.h"
#include "dsp/tile_entropy.h"
#include "dsp/tile_pack.h"
#include "dsp/ycc.h"

#define TILE_ENTROPY_VARIANT(name)                                                                           \
    leat__tile_damage name(leat__tile_coefs *coefs, const uint8_t *in, size_t len,                           \
                           const leat__tile_shape *shape, const leat__tile_codes *codes)
TILE_ENTROPY_VARIANT(leat__tile_decode_avx2);         /* with pdep */
TILE_ENTROPY_VARIANT(leat__tile_decode_avx2_shuffle); /* without */
TILE_ENTROPY_VARIANT(leat__tile_decode_avx512);

#define TILE_TAKE_VARIANT(name)                                                                              \
    uint32_t name(leat__tile_parts *parts, uint32_t first, const int16_t *blocks, uint32_t count,            \
                  int16_t guess)
#define TILE_PUT_VALUES_VARIANT(name) uint8_t *name(uint8_t *at, leat__tile_parts *parts)
#define TILE_ORDER_VARIANT(name)                                                                             \
    void name(leat__scan_block *out, const leat__tile_coefs *coefs, uint32_t first, uint32_t count)
#define TILE_SAME_VARIANT(name)                                                                              \
    bool name(const leat__tile_coefs *coefs, uint32_t first, const int16_t *blocks, uint32_t count)
TILE_TAKE_VARIANT(leat__tile_take_avx2);
TILE_TAKE_VARIANT(leat__tile_take_avx512);
TILE_PUT_VALUES_VARIANT(leat__tile_put_values_avx2); /* with pext */
TILE_PUT_VALUES_VARIANT(leat__tile_put_values_avx512);
TILE_ORDER_VARIANT(leat__tile_order_avx2);
TILE_ORDER_VARIANT(leat__tile_order_avx512);
TILE_SAME_VARIANT(leat__tile_same_avx2);
TILE_SAME_VARIANT(leat__tile_same_avx512);

#define IDCT_VARIANT(name)                                                                                   \
    void name(uint8_t *dst, size_t stride, const leat__tile_coefs *coefs, const leat__idct_area *area,       \
              const uint16_t quant[64])
IDCT_VARIANT(leat__idct_area_avx2);
IDCT_VARIANT(leat__idct_area_avx512);
#define IDCT_PLAIN_VARIANT(name)                                                                             \
    void name(uint8_t *dst, size_t stride, const int16_t *blocks, const uint8_t *last, uint32_t count,       \
              const uint16_t quant[64])
IDCT_PLAIN_VARIANT(leat__idct_plain_avx2);
IDCT_PLAIN_VARIANT(leat__idct_plain_avx512);

#define H2V1_VARIANT(name) void name(uint8_t *out, const uint8_t *in, uint32_t n)
#define H2V2_VARIANT(name) void name(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
#define H1V2_VARIANT(name)                                                                                   \
    void name(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n, uint32_t bias)
#define RGB_VARIANT(name)                                                                                    \
    void name(uint8_t *r, uint8_t *g, uint8_t *b, const uint8_t *y, const uint8_t *cb, const uint8_t *cr,    \
              uint32_t n)
H2V1_VARIANT(leat__up_h2v1_avx2);
H2V2_VARIANT(leat__up_h2v2_avx2);
H1V2_VARIANT(leat__up_h1v2_avx2);
RGB_VARIANT(leat__ycc_rgb_avx2);
H2V1_VARIANT(leat__up_h2v1_avx512);
H2V2_VARIANT(leat__up_h2v2_avx512);
H1V2_VARIANT(leat__up_h1v2_avx512);
RGB_VARIANT(leat__ycc_rgb_avx512);

#endif
