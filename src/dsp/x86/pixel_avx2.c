/* SPDX-License-Identifier: Apache-2.0
 *
 * Row writers with AVX2, FMA and F16C. Values are computed, not looked up: pixel.h explains why the result
 * is the same. The ends of rows are looked up.
 */
#include <immintrin.h>
#include <string.h>

#include "dsp/x86/blend.h"
#include "dsp/x86/pixel_x86.h"
#include "dsp/x86/weave.h"

/* Normalises eight values: v / 255, minus mean, divided by std, with the formula that leat__norm_init has
 * checked. */
static inline __m256 normalize(const leat__norm *n, const uint8_t *src)
{
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)src));
    if (!n->computable) return _mm256_i32gather_ps(n->f32, v, 4);
    const __m256 x = _mm256_cvtepi32_ps(v);
    const __m256 rdiv = _mm256_set1_ps(n->rdiv), rstd = _mm256_set1_ps(n->rstd);
    __m256 q = _mm256_mul_ps(x, rdiv);
    q = _mm256_fmadd_ps(_mm256_fnmadd_ps(q, _mm256_set1_ps(n->div), x), rdiv, q);
    q = _mm256_sub_ps(q, _mm256_set1_ps(n->mean));
    const __m256 r = _mm256_mul_ps(q, rstd);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(r, _mm256_set1_ps(n->std), q), rstd, r);
}

static void to_f32(const leat__norm *n, const uint8_t *src, float *dst, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) _mm256_storeu_ps(dst + i, normalize(n, src + i));
    for (; i < count; i++) dst[i] = n->f32[src[i]];
}

static void to_f16(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i),
                         _mm256_cvtps_ph(normalize(n, src + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < count; i++) dst[i] = n->f16[src[i]];
}

static inline __m128i bf16_of(__m256 v)
{
    const __m256i u = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i high = _mm256_srli_epi32(up, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

static void to_bf16(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8) _mm_storeu_si128((__m128i *)(dst + i), bf16_of(normalize(n, src + i)));
    for (; i < count; i++) dst[i] = n->bf16[src[i]];
}

/* Interleaves 16 bytes of each row to 48; returns the bytes of a row that are done. */
static inline size_t weave(const void *const src[3], uint8_t *dst, size_t bytes, int log_size)
{
    __m128i take[3][3];
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < 3; c++) take[k][c] = _mm_loadu_si128((const __m128i *)weave16[log_size][k][c]);
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16) {
        __m128i row[3];
        for (int c = 0; c < 3; c++) row[c] = _mm_loadu_si128((const __m128i *)((const uint8_t *)src[c] + at));
        for (int k = 0; k < 3; k++) {
            const __m128i all = _mm_or_si128(
                _mm_or_si128(_mm_shuffle_epi8(row[0], take[k][0]), _mm_shuffle_epi8(row[1], take[k][1])),
                _mm_shuffle_epi8(row[2], take[k][2]));
            _mm_storeu_si128((__m128i *)(dst + 3 * at + 16 * k), all);
        }
    }
    return at;
}

#define INTERLEAVE(bits, log_size)                                                                           \
    static void interleave##bits(const uint##bits##_t *const src[3], uint##bits##_t *dst, size_t count)      \
    {                                                                                                        \
        const void *const rows[3] = {src[0], src[1], src[2]};                                                \
        const size_t size = sizeof *dst;                                                                     \
        size_t i = weave(rows, (uint8_t *)dst, size * count, log_size) / size;                               \
        for (; i < count; i++)                                                                               \
            for (size_t c = 0; c < 3; c++) dst[3 * i + c] = src[c][i];                                       \
    }
INTERLEAVE(8, 0)
INTERLEAVE(16, 1)
INTERLEAVE(32, 2)

static void reverse(const uint8_t *src, uint8_t *dst, size_t count)
{
    const __m256i order = _mm256_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13,
                                           12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(src + count - 32 - i));
        const __m256i turned = _mm256_shuffle_epi8(v, order);
        _mm256_storeu_si256((__m256i *)(dst + i), _mm256_permute2x128_si256(turned, turned, 1));
    }
    for (; i < count; i++) dst[i] = src[count - 1 - i];
}

const leat__pixel_dsp leat__pixel_avx2 = {
    .isa = "avx2",
    .to_f32 = to_f32,
    .to_f16 = to_f16,
    .to_bf16 = to_bf16,
    .interleave8 = interleave8,
    .interleave16 = interleave16,
    .interleave32 = interleave32,
    .reverse = reverse,
    .blend_u8 = blend_u8,
    .blend_f32 = blend_f32,
    .blend_f16 = blend_f16,
    .blend_bf16 = blend_bf16,
};
