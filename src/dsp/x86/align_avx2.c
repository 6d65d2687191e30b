/* SPDX-License-Identifier: Apache-2.0
 *
 * Alignment of thumbnails for AVX2.
 */
#include "dsp/x86/align_x86.h"

#include <immintrin.h>

#define TMPL_LANES 8
#include "dsp/align_tmpl.h"
#include "dsp/x86/align_products_tmpl.h"

static tmpl_int tmpl_gather(const uint32_t *from, tmpl_int at)
{
    return (tmpl_int)_mm256_i32gather_epi32((const int *)from, (__m256i)at, 4);
}

static tmpl_float tmpl_root(tmpl_float v)
{
    return (tmpl_float)_mm256_sqrt_ps((__m256)v);
}

const leat__align_dsp leat__align_avx2 = {.isa = "avx2",
                                          .products = tmpl_products,
                                          .prepare = tmpl_prepare,
                                          .shrink = tmpl_shrink,
                                          .slide = tmpl_slide,
                                          .sample = tmpl_sample,
                                          .sums = tmpl_sums,
                                          .compare = tmpl_compare};
