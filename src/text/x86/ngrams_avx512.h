/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of ngrams_tmpl.h with AVX-512: compresses vectors to keep places. Arrays have room for a vector
 * past their ends. Included by text_avx512.c after words_avx512.h.
 */
#define HAS_KEEP_PLACES

V __mmask8 first_lanes(uint32_t n)
{
    return (__mmask8)(n < 8 ? (1u << n) - 1 : 255);
}

V __m256i load_u32(const uint32_t *p, __mmask8 valid)
{
    return _mm256_maskz_loadu_epi32(valid, p);
}

V void keep_key(uint64_t *key, uint32_t *place, __mmask8 keep, __m512i k, __m256i p)
{
    _mm512_storeu_si512(key, _mm512_maskz_compress_epi64(keep, k));
    _mm256_storeu_si256((__m256i *)place, _mm256_maskz_compress_epi32(keep, p));
}

static uint32_t keep_pairs(const leat__scorer *s, uint32_t pairs, uint32_t shift)
{
    const __m128i by = _mm_cvtsi32_si128((int)shift);
    const uint64_t *hash = s->word_hash;
    __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    uint32_t count = 0;
    for (uint32_t i = 0; i < pairs; i += 8) {
        __mmask8 valid = first_lanes(pairs - i);
        __m512i key = times_plus(_mm512_maskz_loadu_epi64(valid, hash + i), LEAT__HW1,
                                 _mm512_maskz_loadu_epi64(valid, hash + i + 1));
        __m256i seen = _mm512_i64gather_epi32(_mm512_srl_epi64(key, by), s->filter, 1);
        __mmask8 again = _mm256_mask_test_epi32_mask(valid, seen, _mm256_set1_epi32(2)); /* seen again */
        keep_key(s->key + count, s->u3 + count, again, key, place);
        count += bits_of(again);
        place = _mm256_add_epi32(place, _mm256_set1_epi32(8));
    }
    return count;
}

static uint32_t keep_next(const leat__scorer *s, uint32_t m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m; i += 8) {
        __mmask8 valid = first_lanes(m - i);
        __m256i at = load_u32(s->u1 + i, valid), next = load_u32(s->u1 + i + 1, valid);
        __m512i id = _mm512_cvtepu32_epi64(load_u32(s->u2 + i, valid));
        __m512i id_next = _mm512_cvtepu32_epi64(load_u32(s->u2 + i + 1, valid));
        __mmask8 both = _mm256_mask_cmpeq_epi32_mask(valid, next, _mm256_add_epi32(at, _mm256_set1_epi32(1)));
        keep_key(s->key + count, s->u3 + count, both, _mm512_or_si512(_mm512_slli_epi64(id, 32), id_next),
                 at);
        count += bits_of(both);
    }
    return count;
}

static uint32_t keep_repeated(const leat__scorer *s, uint32_t count, uint32_t *most, uint32_t *most_at)
{
    const uint32_t *place = s->u3, *id = s->u4, *occurs = s->u5;
    uint32_t m = 0;
    for (uint32_t i = 0; i < count; i += 16) {
        __mmask16 valid = (__mmask16)(count - i < 16 ? (1u << (count - i)) - 1 : 0xffff);
        __m512i ids = _mm512_maskz_loadu_epi32(valid, id + i), p = _mm512_maskz_loadu_epi32(valid, place + i);
        __m512i k = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), valid, ids, occurs, 4);
        __mmask16 again = _mm512_cmpgt_epu32_mask(k, _mm512_set1_epi32(1));
        _mm512_storeu_si512(s->u1 + m, _mm512_maskz_compress_epi32(again, p));
        _mm512_storeu_si512(s->u2 + m, _mm512_maskz_compress_epi32(again, ids));
        m += bits_of(again);
        if (!_mm512_cmpgt_epu32_mask(k, _mm512_set1_epi32((int)*most))) continue;
        for (uint32_t j = i; j < i + 16 && j < count; j++)
            if (occurs[id[j]] > *most) {
                *most = occurs[id[j]];
                *most_at = place[j];
            }
    }
    return m;
}
