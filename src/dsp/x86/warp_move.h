/* SPDX-License-Identifier: Apache-2.0
 *
 * The warp kernels of AVX2 and AVX-512 that are written with intrinsics: moving bytes, positions of images
 * whose coordinates fit 16 bits, and fetching pixels. Both use 256 bits: twice the width was slower here
 * (224 pixels on Zen 4, in ns: pack 24 and 12, fixed 25 and 22, a gather 68 and four loads 54). Only static
 * functions.
 */
#include <immintrin.h>

#include "dsp/warp_tmpl.h"
#include "dsp/x86/warp_x86.h"

static void pack(const uint8_t *const plane[4], uint32_t *px, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(plane[0] + i));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(plane[1] + i));
        const __m256i c = _mm256_loadu_si256((const __m256i *)(plane[2] + i));
        const __m256i d = _mm256_loadu_si256((const __m256i *)(plane[3] + i));
        const __m256i ab0 = _mm256_unpacklo_epi8(a, b), ab1 = _mm256_unpackhi_epi8(a, b);
        const __m256i cd0 = _mm256_unpacklo_epi8(c, d), cd1 = _mm256_unpackhi_epi8(c, d);
        /* each holds four pixels of the first and of the second sixteen */
        const __m256i p0 = _mm256_unpacklo_epi16(ab0, cd0), p1 = _mm256_unpackhi_epi16(ab0, cd0);
        const __m256i p2 = _mm256_unpacklo_epi16(ab1, cd1), p3 = _mm256_unpackhi_epi16(ab1, cd1);
        __m256i *const to = (__m256i *)(px + i);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(p0, p1, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(p2, p3, 0x20));
        _mm256_storeu_si256(to + 2, _mm256_permute2x128_si256(p0, p1, 0x31));
        _mm256_storeu_si256(to + 3, _mm256_permute2x128_si256(p2, p3, 0x31));
    }
    const uint8_t *const rest[4] = {plane[0] + i, plane[1] + i, plane[2] + i, plane[3] + i};
    tmpl_pack(rest, px + i, n - i);
}

static void unpack(const uint32_t *px, uint8_t *const plane[4], uint32_t channels, size_t n)
{
    const __m256i sort = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12,
                                          1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i turn = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v[4]; /* eight bytes of each channel */
        for (int k = 0; k < 4; k++) {
            const __m256i p = _mm256_loadu_si256((const __m256i *)(px + i) + k);
            v[k] = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(p, sort), turn);
        }
        const __m256i ac0 = _mm256_unpacklo_epi64(v[0], v[1]), bd0 = _mm256_unpackhi_epi64(v[0], v[1]);
        const __m256i ac1 = _mm256_unpacklo_epi64(v[2], v[3]), bd1 = _mm256_unpackhi_epi64(v[2], v[3]);
        const __m256i row[4] = {
            _mm256_permute2x128_si256(ac0, ac1, 0x20), _mm256_permute2x128_si256(bd0, bd1, 0x20),
            _mm256_permute2x128_si256(ac0, ac1, 0x31), _mm256_permute2x128_si256(bd0, bd1, 0x31)};
        for (uint32_t c = 0; c < channels; c++) _mm256_storeu_si256((__m256i *)(plane[c] + i), row[c]);
    }
    uint8_t *rest[4] = {NULL};
    for (uint32_t c = 0; c < channels; c++) rest[c] = plane[c] + i;
    tmpl_unpack(px + i, rest, channels, n - i);
}

/* Stores a position as a pair of words, x and y: one subtraction compares both, one multiplication computes
 * the offset. */
static void fixed(const leat__warp_image *im, int32_t *at, size_t n, const uint32_t from[2],
                  const uint32_t step[2])
{
    size_t i = 0;
    if (im->stride <= INT16_MAX && im->height <= INT16_MAX) {
        const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i sx = _mm256_set1_epi32((int)step[0]), sy = _mm256_set1_epi32((int)step[1]);
        const __m256i last = _mm256_set1_epi32((int)((im->height - 1) << 16 | (im->width - 1)));
        const __m256i weigh = _mm256_set1_epi32((int)((uint32_t)im->stride << 16 | 1));
        const __m256i outside = _mm256_set1_epi32(im->outside);
        __m256i x = _mm256_add_epi32(_mm256_set1_epi32((int)from[0]), _mm256_mullo_epi32(lanes, sx));
        __m256i y = _mm256_add_epi32(_mm256_set1_epi32((int)from[1]), _mm256_mullo_epi32(lanes, sy));
        for (; i + 8 <= n; i += 8) {
            const __m256i pair = _mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xaa);
            const __m256i over = _mm256_subs_epu16(pair, last);
            const __m256i in = _mm256_cmpeq_epi32(over, _mm256_setzero_si256());
            const __m256i offset = _mm256_madd_epi16(pair, weigh);
            _mm256_storeu_si256((__m256i *)(at + i), _mm256_blendv_epi8(outside, offset, in));
            x = _mm256_add_epi32(x, _mm256_slli_epi32(sx, 3));
            y = _mm256_add_epi32(y, _mm256_slli_epi32(sy, 3));
        }
    }
    const uint32_t rest[2] = {from[0] + (uint32_t)i * step[0], from[1] + (uint32_t)i * step[1]};
    tmpl_fixed(im, at + i, n - i, rest, step);
}

/* Four loads, joined, take less time than one gather of four. */
static void nearest(const leat__warp_image *im, leat__warp_spots s, uint32_t *px, size_t n)
{
    const int32_t *const from = (const int32_t *)im->origin, *const at = s.at;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm_storeu_si128((__m128i *)(px + i),
                         _mm_setr_epi32(from[at[i]], from[at[i + 1]], from[at[i + 2]], from[at[i + 3]]));
    for (; i < n; i++) px[i] = im->origin[at[i]];
}

#define WARP_MOVE_MEMBERS .pack = pack, .unpack = unpack, .fixed = fixed, .nearest = nearest
