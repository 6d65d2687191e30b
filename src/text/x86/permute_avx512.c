/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures with AVX-512.
 */
#include <immintrin.h>
#include <stdint.h>

typedef __m512i V;
#define VECTORS 2
#define rotate(v, n) _mm512_rol_epi32(v, n)
#define OP __attribute__((always_inline)) static inline

OP V load(const void *p)
{
    return _mm512_loadu_si512(p);
}
OP void store(void *p, V v)
{
    _mm512_storeu_si512(p, v);
}
OP V all64(uint64_t x)
{
    return _mm512_set1_epi64((int64_t)x);
}
OP V all32(uint32_t x)
{
    return _mm512_set1_epi32((int32_t)x);
}
OP V and_(V a, V b)
{
    return _mm512_and_si512(a, b);
}
OP V xor_(V a, V b)
{
    return _mm512_xor_si512(a, b);
}
OP V add64(V a, V b)
{
    return _mm512_add_epi64(a, b);
}
OP V sub64(V a, V b)
{
    return _mm512_sub_epi64(a, b);
}
OP V add32(V a, V b)
{
    return _mm512_add_epi32(a, b);
}
OP V mul32(V a, V b)
{
    return _mm512_mullo_epi32(a, b);
}
OP V min32(V a, V b)
{
    return _mm512_min_epu32(a, b);
}
OP V min64(V a, V b)
{
    return _mm512_min_epu64(a, b);
}
OP V min_unsigned61(V s, V over)
{
    return _mm512_min_epu64(s, over);
}
OP V shift_right32(V v)
{
    return _mm512_srli_epi64(v, 32);
}
OP V shift_right61(V v)
{
    return _mm512_srli_epi64(v, 61);
}

OP V multiply_add(V a, V a_high, V h, V h_high, V plus)
{
    (void)a_high;
    (void)h_high;
    return _mm512_add_epi64(_mm512_mullo_epi64(a, h), plus);
}

OP V choose(V b, V c, V d)
{
    return _mm512_ternarylogic_epi32(b, c, d, 0xca);
}
OP V parity(V b, V c, V d)
{
    return _mm512_ternarylogic_epi32(b, c, d, 0x96);
}
OP V majority(V b, V c, V d)
{
    return _mm512_ternarylogic_epi32(b, c, d, 0xe8);
}

#include "text/permute_tmpl.h"

const leat__permute_dsp leat__permute_avx512 = {"avx512", prime, prime_low, affine, sha1, xxh64};
