/* SPDX-License-Identifier: Apache-2.0
 *
 * Row writers with AVX-512. Values are computed, not looked up: pixel.h explains why the result is the
 * same.
 */
#include <immintrin.h>

#include "dsp/x86/blend.h"
#include "dsp/x86/pixel_x86.h"
#include "dsp/x86/weave.h"

/* Normalises values: v / 255, minus mean, divided by std, with the formula that leat__norm_init has
 * checked. */
static inline __m512 normalize(const leat__norm *n, __m128i bytes)
{
    const __m512i v = _mm512_cvtepu8_epi32(bytes);
    if (!n->computable) return _mm512_i32gather_ps(v, n->f32, 4);
    const __m512 x = _mm512_cvtepi32_ps(v);
    const __m512 rdiv = _mm512_set1_ps(n->rdiv), rstd = _mm512_set1_ps(n->rstd);
    __m512 q = _mm512_mul_ps(x, rdiv);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, _mm512_set1_ps(n->div), x), rdiv, q);
    q = _mm512_sub_ps(q, _mm512_set1_ps(n->mean));
    const __m512 r = _mm512_mul_ps(q, rstd);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(r, _mm512_set1_ps(n->std), q), rstd, r);
}

static inline __mmask16 some(size_t left)
{
    return left >= 16 ? 0xffff : (__mmask16)((1u << left) - 1);
}

static inline __m128i load_some(const uint8_t *src, size_t left)
{
    return _mm_maskz_loadu_epi8(some(left), src);
}

static inline __m256i bf16_of(__m512 v)
{
    const __m512i u = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

static void to_f32(const leat__norm *n, const uint8_t *src, float *dst, size_t count)
{
    for (size_t i = 0; i < count; i += 16)
        _mm512_mask_storeu_ps(dst + i, some(count - i), normalize(n, load_some(src + i, count - i)));
}

static void to_f16(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i += 16) {
        const __m512 v = normalize(n, load_some(src + i, count - i));
        _mm256_mask_storeu_epi16(dst + i, some(count - i), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
}

static void to_bf16(const leat__norm *n, const uint8_t *src, uint16_t *dst, size_t count)
{
    for (size_t i = 0; i < count; i += 16)
        _mm256_mask_storeu_epi16(dst + i, some(count - i),
                                 bf16_of(normalize(n, load_some(src + i, count - i))));
}

/* Loads bytes [at, at + 64) of a row of `bytes`, zero past its end. */
static inline __m512i row_part(const uint8_t *row, size_t at, size_t bytes)
{
    if (at + 64 <= bytes) return _mm512_loadu_si512(row + at);
    return _mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, (unsigned)(bytes - at)), row + at);
}

static inline void weave(const void *const src[3], uint8_t *dst, size_t bytes, int log_size)
{
    const uint8_t *const a = src[0], *const b = src[1], *const c = src[2];
    for (size_t at = 0; at < bytes; at += 64, dst += 192) {
        const __m512i va = row_part(a, at, bytes), vb = row_part(b, at, bytes);
        const __m512i vc = row_part(c, at, bytes);
        const size_t left = 3 * (bytes - at);
        for (size_t k = 0; k < 3; k++) {
            const struct weave64 *const w = &weave64[log_size][k];
            const __m512i two = _mm512_permutex2var_epi8(va, _mm512_loadu_si512(w->two), vb);
            const __m512i all = _mm512_mask_permutexvar_epi8(two, w->mask, _mm512_loadu_si512(w->third), vc);
            if (left >= 64 * (k + 1)) _mm512_storeu_si512(dst + 64 * k, all);
            else if (left > 64 * k)
                _mm512_mask_storeu_epi8(dst + 64 * k, _bzhi_u64(~0ull, (unsigned)(left - 64 * k)), all);
        }
    }
}

static void interleave8(const uint8_t *const src[3], uint8_t *dst, size_t count)
{
    const void *const rows[3] = {src[0], src[1], src[2]};
    weave(rows, dst, count, 0);
}

static void interleave16(const uint16_t *const src[3], uint16_t *dst, size_t count)
{
    const void *const rows[3] = {src[0], src[1], src[2]};
    weave(rows, (uint8_t *)dst, 2 * count, 1);
}

static void interleave32(const uint32_t *const src[3], uint32_t *dst, size_t count)
{
    const void *const rows[3] = {src[0], src[1], src[2]};
    weave(rows, (uint8_t *)dst, 4 * count, 2);
}

static void reverse(const uint8_t *src, uint8_t *dst, size_t count)
{
    static const uint8_t last_first[64] = {63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48,
                                           47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,
                                           31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
                                           15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
    const __m512i order = _mm512_loadu_si512(last_first);
    size_t i = 0;
    for (; i + 64 <= count; i += 64)
        _mm512_storeu_si512(dst + i,
                            _mm512_permutexvar_epi8(order, _mm512_loadu_si512(src + count - 64 - i)));
    for (; i < count; i++) dst[i] = src[count - 1 - i];
}

const leat__pixel_dsp leat__pixel_avx512 = {
    .isa = "avx512",
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
