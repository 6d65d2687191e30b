/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of the bilinear filter, four outputs at a time: the same operations as weigh() and
 * round_weights() of resize.c, so that every bit is equal. A random crop has its own axes, so this runs
 * twice per sample. Static inline: each ISA file has its own copy.
 */
#ifndef LEAT_DSP_X86_WEIGHTS_X86_H
#define LEAT_DSP_X86_WEIGHTS_X86_H

#include <immintrin.h>

#include "dsp/resize.h"

/* Four outputs: their first input, number of taps and centre. */
typedef struct four_outputs {
    __m256d first, taps, center;
} four_outputs;

static inline __attribute__((always_inline)) __m256d bilinear_at(const four_outputs *o, uint32_t tap,
                                                                 __m256d scale)
{
    const __m256d t = _mm256_set1_pd(tap), one = _mm256_set1_pd(1.0);
    const __m256d x =
        _mm256_add_pd(_mm256_sub_pd(_mm256_add_pd(o->first, t), o->center), _mm256_set1_pd(0.5));
    const __m256d far = _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_mul_pd(x, scale));
    const __m256d v = _mm256_max_pd(_mm256_sub_pd(one, far), _mm256_setzero_pd());
    return _mm256_and_pd(v, _mm256_cmp_pd(t, o->taps, _CMP_LT_OQ));
}

static inline void weigh_bilinear(leat__axis *a, double scale)
{
    const __m256d s = _mm256_set1_pd(scale), zero = _mm256_setzero_pd();
    for (uint32_t j = 0; j < a->count; j += 4) {
        const four_outputs o = {_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(a->first + j))),
                                _mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(a->taps_of + j))),
                                _mm256_loadu_pd(a->center + j)};
        __m256d sum = zero;
        for (uint32_t t = 0; t < a->taps; t++) sum = _mm256_add_pd(sum, bilinear_at(&o, t, s));
        /* all weights of an output may be 0: they stay 0 */
        sum = _mm256_blendv_pd(sum, _mm256_set1_pd(1.0), _mm256_cmp_pd(sum, zero, _CMP_EQ_OQ));
        for (uint32_t t = 0; t < a->taps; t++) {
            const __m256d k = _mm256_mul_pd(_mm256_div_pd(bilinear_at(&o, t, s), sum),
                                            _mm256_set1_pd(1 << LEAT__RESIZE_BITS));
            _mm_storeu_si128((__m128i *)(a->weight + (size_t)t * a->stride + j),
                             _mm256_cvttpd_epi32(_mm256_add_pd(k, _mm256_set1_pd(0.5))));
        }
    }
}

#endif
