/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails for AVX-512.
 */
#include "dsp/x86/align_x86.h"

#include <immintrin.h>

#define TMPL_LANES 16
#include "dsp/align_tmpl.h"
#include "dsp/x86/align_products_tmpl.h"

static tmpl_int tmpl_gather(const uint32_t *from, tmpl_int at)
{
    return (tmpl_int)_mm512_i32gather_epi32((__m512i)at, from, 4);
}

static tmpl_float tmpl_root(tmpl_float v)
{
    return (tmpl_float)_mm512_sqrt_ps((__m512)v);
}

const leat__align_dsp leat__align_avx512 = {.isa = "avx512",
                                            .products = tmpl_products,
                                            .prepare = tmpl_prepare,
                                            .shrink = tmpl_shrink,
                                            .slide = tmpl_slide,
                                            .sample = tmpl_sample,
                                            .sums = tmpl_sums,
                                            .compare = tmpl_compare};
