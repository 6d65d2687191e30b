/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures with AVX2.
 */
#include <immintrin.h>
#include <stdint.h>

typedef __m256i V;
#define VECTORS 2
#define ROWS 2
#define PLACE(j) (((j)&1) | ((j)&2) << 1 | ((j)&4) >> 1)
#define rotate(v, n) _mm256_or_si256(_mm256_slli_epi32(v, n), _mm256_srli_epi32(v, 32 - (n)))
#define OP __attribute__((always_inline)) static inline

OP V load(const void *p)
{
    return _mm256_loadu_si256(p);
}
OP void store(void *p, V v)
{
    _mm256_storeu_si256(p, v);
}
OP V all64(uint64_t x)
{
    return _mm256_set1_epi64x((int64_t)x);
}
OP V all32(uint32_t x)
{
    return _mm256_set1_epi32((int32_t)x);
}
OP V and_(V a, V b)
{
    return _mm256_and_si256(a, b);
}
OP V xor_(V a, V b)
{
    return _mm256_xor_si256(a, b);
}
OP V add64(V a, V b)
{
    return _mm256_add_epi64(a, b);
}
OP V sub64(V a, V b)
{
    return _mm256_sub_epi64(a, b);
}
OP V add32(V a, V b)
{
    return _mm256_add_epi32(a, b);
}
OP V mul32(V a, V b)
{
    return _mm256_mullo_epi32(a, b);
}
OP V min32(V a, V b)
{
    return _mm256_min_epu32(a, b);
}
OP V shift_right32(V v)
{
    return _mm256_srli_epi64(v, 32);
}
OP V shift_right61(V v)
{
    return _mm256_srli_epi64(v, 61);
}

/* Minimum of values up to 2^62: as doubles they have the same order, and a minimum of doubles is one
 * instruction. The smallest are denormal, so denormals must not be treated as zeros. */
OP V min64(V a, V b)
{
    return _mm256_castpd_si256(_mm256_min_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b)));
}

OP unsigned begin_min64(void)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr((mode & ~(unsigned)_MM_DENORMALS_ZERO_MASK) | _MM_MASK_DENORM);
    __asm__ volatile("" ::: "memory"); /* keeps loads after it, and stores before the end */
    return mode;
}

OP void end_min64(unsigned mode)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(mode);
}

/* Returns s, or `over` = s - P if that is not negative. */
OP V min_unsigned61(V s, V over)
{
    return _mm256_castpd_si256(
        _mm256_blendv_pd(_mm256_castsi256_pd(over), _mm256_castsi256_pd(s), _mm256_castsi256_pd(over)));
}

/* Returns a * h + plus, from the halves of both. */
OP V multiply_add(V a, V a_high, V h, V h_high, V plus)
{
    V cross = _mm256_add_epi64(_mm256_mul_epu32(a_high, h), _mm256_mul_epu32(a, h_high));
    V low = _mm256_add_epi64(_mm256_mul_epu32(a, h), plus);
    return _mm256_add_epi64(low, _mm256_slli_epi64(cross, 32));
}

/* ---- fractions ---- */

OP V all_double(const double *p)
{
    return _mm256_castpd_si256(_mm256_broadcast_sd(p));
}

OP V fused(V x, V factor, V plus)
{
    return _mm256_castpd_si256(
        _mm256_fmadd_pd(_mm256_castsi256_pd(x), _mm256_castsi256_pd(factor), _mm256_castsi256_pd(plus)));
}

/* Returns the lower halves of eight numbers, of which `a` has 0, 1, 4, 5. */
OP V lower_halves(V a, V b)
{
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _MM_SHUFFLE(2, 0, 2, 0)));
}

typedef V limits;

OP limits load_limits(const uint64_t *limit)
{
    V low = lower_halves(load(limit), load(limit + 4));
    return _mm256_blend_epi16(low, _mm256_slli_epi32(low, 16), 0xaa);
}

/* Handles two hashes: the lower 16 bits of the first, then of the second. Uses shuffles, because the
 * multiplier's port is busy. */
OP void mark_below(V t[2][2], limits limit, uint32_t *mark)
{
    const V up = _mm256_setr_epi8(0, 0, 0, 1, 0, 0, 4, 5, 0, 0, 8, 9, 0, 0, 12, 13, 0, 0, 0, 1, 0, 0, 4, 5, 0,
                                  0, 8, 9, 0, 0, 12, 13);
    V first = lower_halves(t[0][0], t[0][1]), second = lower_halves(t[1][0], t[1][1]);
    V both = _mm256_blend_epi16(first, _mm256_shuffle_epi8(second, up), 0xaa);
    *mark = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, both));
}

OP uint32_t any_marks(const uint32_t *mark)
{
    V none = _mm256_cmpeq_epi32(and_(load(mark), all32(0x55555555)), all32(0));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(none)) ^ 0xff;
}

OP V choose(V b, V c, V d)
{
    return xor_(d, and_(b, xor_(c, d)));
}
OP V parity(V b, V c, V d)
{
    return xor_(xor_(b, c), d);
}
OP V majority(V b, V c, V d)
{
    return xor_(and_(b, c), and_(d, xor_(b, c)));
}

#include "text/permute_tmpl.h"

const leat__permute_dsp leat__permute_avx2 = {"avx2", prime, prime_low, affine, sha1, xxh64};
