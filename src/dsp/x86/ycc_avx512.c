/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsampling and colour conversion for AVX-512: the template with 64-byte vectors.
 */
#include <immintrin.h>

#include "dsp/x86/tile_variants.h"
#include "dsp/ycc.h"

#define V __m512i
#define V_BYTES 64
#define V_LOAD(p) _mm512_loadu_si512(p)
#define V_STORE(p, v) _mm512_storeu_si512(p, v)
#define V_WIDEN(p) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define V_ZERO _mm512_setzero_si512()
#define V_SET16(x) _mm512_set1_epi16(x)
#define V_SET32(x) _mm512_set1_epi32(x)
#define V_ADD16 _mm512_add_epi16
#define V_SUB16 _mm512_sub_epi16
#define V_MULHRS _mm512_mulhrs_epi16
#define V_DOT _mm512_dpwssd_epi32
#define V_SRL16 _mm512_srli_epi16
#define V_SLL16 _mm512_slli_epi16
#define V_SRA32 _mm512_srai_epi32
#define V_OR _mm512_or_si512
#define V_LO8 _mm512_unpacklo_epi8
#define V_HI8 _mm512_unpackhi_epi8
#define V_LO16 _mm512_unpacklo_epi16
#define V_HI16 _mm512_unpackhi_epi16
#define V_PACK32 _mm512_packs_epi32
#define V_PACKUS _mm512_packus_epi16
#define YCC_NAME(x) leat__##x##_avx512
#include "dsp/x86/ycc_tmpl.h"
