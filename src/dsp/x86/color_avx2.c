/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour kernels compiled for AVX2, with a table lookup by shuffles: each of 16 shuffles covers 16
 * entries and gives 0 for other indices.
 */
#include <immintrin.h>

#include "dsp/color_tmpl.h"
#include "dsp/x86/color_x86.h"

static void lut(const uint8_t *src, uint8_t *dst, size_t n, const uint8_t table[256])
{
    __m256i part[16];
    for (int h = 0; h < 16; h++)
        part[h] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16 * h)));
    const __m256i step = _mm256_set1_epi8(16), top = _mm256_set1_epi8(0x70);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(src + i));
        __m256i out = _mm256_setzero_si256();
        for (int h = 0; h < 16; h++) {
            /* indices 0..15 stay below 0x80, all others get their top bit set */
            const __m256i index = _mm256_adds_epu8(v, top);
            out = _mm256_or_si256(out, _mm256_shuffle_epi8(part[h], index));
            v = _mm256_sub_epi8(v, step);
        }
        _mm256_storeu_si256((__m256i *)(dst + i), out);
    }
    for (; i < n; i++) dst[i] = table[src[i]];
}

const leat__color_dsp leat__color_avx2 = {
    .isa = "avx2",
    .lut = lut,
    COLOR_TMPL_MEMBERS,
};
