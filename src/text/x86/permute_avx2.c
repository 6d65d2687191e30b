/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures with AVX2.
 */
#include <immintrin.h>
#include <stdint.h>

typedef __m256i V;
#define VECTORS 2
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

/* Of values up to 2^62: as doubles they are in the same order, and a minimum of doubles is one operation. The
 * least of them are denormal, which must not be taken for zeros meanwhile. */
OP V min64(V a, V b)
{
    return _mm256_castpd_si256(_mm256_min_pd(_mm256_castsi256_pd(a), _mm256_castsi256_pd(b)));
}

OP unsigned begin_min64(void)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr((mode & ~(unsigned)_MM_DENORMALS_ZERO_MASK) | _MM_MASK_DENORM);
    __asm__ volatile("" ::: "memory"); /* loads stay after it, stores before the end */
    return mode;
}

OP void end_min64(unsigned mode)
{
    __asm__ volatile("" ::: "memory");
    _mm_setcsr(mode);
}

/* s, or `over` = s - P if that is not negative. */
OP V min_unsigned61(V s, V over)
{
    return _mm256_castpd_si256(
        _mm256_blendv_pd(_mm256_castsi256_pd(over), _mm256_castsi256_pd(s), _mm256_castsi256_pd(over)));
}

/* a * h + plus, from the halves of both. */
OP V multiply_add(V a, V a_high, V h, V h_high, V plus)
{
    V cross = _mm256_add_epi64(_mm256_mul_epu32(a_high, h), _mm256_mul_epu32(a, h_high));
    V low = _mm256_add_epi64(_mm256_mul_epu32(a, h), plus);
    return _mm256_add_epi64(low, _mm256_slli_epi64(cross, 32));
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
