/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour kernels compiled for AVX-512, with a table lookup by two permutations of 128 entries.
 */
#include <immintrin.h>

#include "dsp/color_tmpl.h"
#include "dsp/x86/color_x86.h"

static void lut(const uint8_t *src, uint8_t *dst, size_t n, const uint8_t table[256])
{
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 some = n - i >= 64 ? ~0ull : _bzhi_u64(~0ull, (unsigned)(n - i));
        const __m512i v = _mm512_maskz_loadu_epi8(some, src + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, v, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, v, t3);
        const __mmask64 upper = _mm512_movepi8_mask(v);
        _mm512_mask_storeu_epi8(dst + i, some, _mm512_mask_blend_epi8(upper, low, high));
    }
}

const leat__color_dsp leat__color_avx512 = {
    .isa = "avx512",
    .lut = lut,
    COLOR_TMPL_MEMBERS,
};
