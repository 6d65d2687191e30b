/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures with AVX-512.
 */
#include <immintrin.h>
#include <stdint.h>

typedef __m512i V;
#define VECTORS 2
#define ROWS 1
#define PLACE(j) (j)
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
OP unsigned begin_min64(void)
{
    return 0;
}
OP void end_min64(unsigned mode)
{
    (void)mode;
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

/* ---- fractions ---- */

OP V all_double(const double *p)
{
    return _mm512_castpd_si512(_mm512_set1_pd(*p));
}

OP V fused(V x, V factor, V plus)
{
    return _mm512_castpd_si512(
        _mm512_fmadd_pd(_mm512_castsi512_pd(x), _mm512_castsi512_pd(factor), _mm512_castsi512_pd(plus)));
}

typedef struct limits {
    V v[VECTORS];
} limits;

OP limits load_limits(const uint64_t *limit)
{
    return (limits){{load(limit), load(limit + 8)}};
}

OP void mark_below(V t[1][VECTORS], limits limit, uint32_t *mark)
{
    for (int j = 0; j < VECTORS; j++) mark[j] = _mm512_mask_cmplt_epi16_mask(0x11111111, t[0][j], limit.v[j]);
}

OP uint32_t any_marks(const uint32_t *mark)
{
    V v = load(mark);
    return _mm512_test_epi32_mask(v, v);
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

#define HAS_XXH64
#include "text/permute_tmpl.h"

/* ---- XXH64 of eight texts ---- */

OP V times(V v, uint64_t factor)
{
    return _mm512_mullo_epi64(v, all64(factor));
}

#define turn_all(v, n) _mm512_rol_epi64(v, n)

OP V rounds(V acc, V word)
{
    return times(turn_all(add64(acc, times(word, XXH_P2)), 31), XXH_P1);
}

OP V merge(V h, V acc)
{
    return add64(times(xor_(h, rounds(all64(0), acc)), XXH_P1), all64(XXH_P4));
}

/* Loads eight bytes at each address, for the lanes of the mask. */
OP V words_at(__mmask8 lanes, V address)
{
    return _mm512_mask_i64gather_epi64(all64(0), lanes, address, NULL, 1);
}

/* Hashes one stripe of 32 bytes: for texts of 32 to 63 bytes. */
OP V one_stripe(V address)
{
    V a = rounds(all64(XXH_P1 + XXH_P2), words_at(0xff, address));
    V b = rounds(all64(XXH_P2), words_at(0xff, add64(address, all64(8))));
    V c = rounds(all64(0), words_at(0xff, add64(address, all64(16))));
    V d = rounds(all64(0 - XXH_P1), words_at(0xff, add64(address, all64(24))));
    V h = add64(add64(turn_all(a, 1), turn_all(b, 7)), add64(turn_all(c, 12), turn_all(d, 18)));
    return merge(merge(merge(merge(h, a), b), c), d);
}

/* Hashes the last bytes, at most 31. The steps of four bytes and of one byte share a load. */
OP V rest_of(V h, V address, V rest)
{
    for (uint32_t i = 0; i < 3; i++) {
        __mmask8 more = _mm512_cmpgt_epu64_mask(rest, all64(8 * i + 7));
        V word = words_at(more, add64(address, all64(8 * i)));
        V next = add64(times(turn_all(xor_(h, rounds(all64(0), word)), 27), XXH_P1), all64(XXH_P4));
        h = _mm512_mask_mov_epi64(h, more, next);
    }
    V word = words_at(0xff, add64(address, and_(rest, all64(24))));
    __mmask8 four = _mm512_test_epi64_mask(rest, all64(4));
    V low = times(and_(word, all64(UINT32_MAX)), XXH_P1);
    h = _mm512_mask_mov_epi64(h, four, add64(times(turn_all(xor_(h, low), 23), XXH_P2), all64(XXH_P3)));
    word = _mm512_mask_srli_epi64(word, four, word, 32);
    V bytes = and_(rest, all64(3));
    for (uint32_t i = 0; i < 3; i++) {
        V one = times(and_(word, all64(255)), XXH_P5);
        h = _mm512_mask_mov_epi64(h, _mm512_cmpgt_epu64_mask(bytes, all64(i)),
                                  times(turn_all(xor_(h, one), 11), XXH_P1));
        word = _mm512_srli_epi64(word, 8);
    }
    h = times(xor_(h, _mm512_srli_epi64(h, 33)), XXH_P2);
    h = times(xor_(h, _mm512_srli_epi64(h, 29)), XXH_P3);
    return xor_(h, _mm512_srli_epi64(h, 32));
}

/* Hashes eight texts, all shorter than 32 bytes or all of 32 to 63. */
OP void xxh64_group(const uint8_t *const *text, const uint32_t *len, const uint16_t *which, int stripe,
                    uint64_t *out)
{
    uint64_t address[8], length[8], sum[8];
    for (int i = 0; i < 8; i++) {
        address[i] = (uint64_t)(uintptr_t)text[which[i]];
        length[i] = len[which[i]];
    }
    V at = load(address), bytes = load(length);
    V h = add64(stripe ? one_stripe(at) : all64(XXH_P5), bytes);
    if (stripe) at = add64(at, all64(32));
    store(sum, rest_of(h, at, and_(bytes, all64(31))));
    for (int i = 0; i < 8; i++) out[which[i]] = sum[i];
}

/* Texts wait until eight of them have the same number of stripes, 0 or 1. Longer texts do not wait. */
static void xxh64(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out)
{
    uint16_t waiting[3][LEAT__PERMUTE_MOST];
    uint32_t count[3] = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t stripes = len[i] >> 5, kind = stripes < 2 ? stripes : 2;
        waiting[kind][count[kind]++] = (uint16_t)i;
    }
    for (uint32_t kind = 0; kind < 2; kind++) {
        uint32_t k = 0;
        for (; k + 8 <= count[kind]; k += 8) {
            if (kind == 0) xxh64_group(text, len, waiting[0] + k, 0, out);
            else xxh64_group(text, len, waiting[1] + k, 1, out);
        }
        for (; k < count[kind]; k++)
            out[waiting[kind][k]] = xxh64_of(text[waiting[kind][k]], len[waiting[kind][k]]);
    }
    for (uint32_t k = 0; k < count[2]; k++)
        out[waiting[2][k]] = xxh64_of(text[waiting[2][k]], len[waiting[2][k]]);
}

const leat__permute_dsp leat__permute_avx512 = {"avx512", prime, prime_low, affine, sha1, xxh64};
