/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsampling and colour conversion for AVX2: the template with 32-byte vectors.
 */
#include <immintrin.h>

#include "dsp/x86/tile_variants.h"
#include "dsp/ycc.h"

#define V __m256i
#define V_BYTES 32
#define V_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define V_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define V_WIDEN(p) _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define V_ZERO _mm256_setzero_si256()
#define V_SET16(x) _mm256_set1_epi16(x)
#define V_SET32(x) _mm256_set1_epi32(x)
#define V_ADD16 _mm256_add_epi16
#define V_SUB16 _mm256_sub_epi16
#define V_MULHRS _mm256_mulhrs_epi16
#define V_DOT(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define V_SRL16 _mm256_srli_epi16
#define V_SLL16 _mm256_slli_epi16
#define V_SRA32 _mm256_srai_epi32
#define V_OR _mm256_or_si256
#define V_LO8 _mm256_unpacklo_epi8
#define V_HI8 _mm256_unpackhi_epi8
#define V_LO16 _mm256_unpacklo_epi16
#define V_HI16 _mm256_unpackhi_epi16
#define V_PACK32 _mm256_packs_epi32
#define V_PACKUS _mm256_packus_epi16
#define YCC_NAME(x) leat__##x##_avx2
#include "dsp/x86/ycc_tmpl.h"
