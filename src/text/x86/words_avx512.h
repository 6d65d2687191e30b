/* SPDX-License-Identifier: Apache-2.0
 *
 * Words with AVX-512, eight at a time: gathers their first 16 bytes and hashes them like hash_words.h.
 * Included by text_avx512.c after scan_tmpl.h; replaces loops of words_tmpl.h and shingle_tmpl.h.
 */
#include "text/sketch.h"
#include "text/word_table.h"

#define HAS_WORD_PASS
#define HAS_WORD_KEYS

/* Eight words: their bytes, padded with zeros, and their lengths. */
typedef struct eight_words {
    __m512i low, high, len;
} eight_words;

V __m512i all64(uint64_t x)
{
    return _mm512_set1_epi64((int64_t)x);
}

/* Sets bit 5 of every ASCII byte, like lower8(). */
V __m512i lower64(__m512i a)
{
    return _mm512_or_si512(a, _mm512_srli_epi64(_mm512_andnot_si512(a, all64(0x8080808080808080)), 2));
}

/* Loads the words with the given boundaries; lanes after the first n have length 0. The bytes of words longer
 * than 16 bytes are not valid. */
V eight_words load_words(const uint8_t *text, const uint32_t *bounds, uint32_t n, const int lower)
{
    const __mmask8 valid = (__mmask8)(n < 8 ? (1u << n) - 1 : 255);
    __m512i both = _mm512_maskz_loadu_epi64(valid, bounds); /* start, end */
    __m512i start = _mm512_and_si512(both, all64(UINT32_MAX)), ones = all64(UINT64_MAX);
    eight_words w;
    w.len = _mm512_sub_epi64(_mm512_srli_epi64(both, 32), start);
    w.low = _mm512_i64gather_epi64(start, text, 1);
    w.high = _mm512_i64gather_epi64(start, text + 8, 1);
    if (lower) {
        w.low = lower64(w.low);
        w.high = lower64(w.high);
    }
    /* shifts by 64 or more give 0 */
    __m512i bits = _mm512_slli_epi64(w.len, 3), more = _mm512_subs_epu16(bits, all64(64));
    w.low = _mm512_andnot_si512(_mm512_sllv_epi64(ones, bits), w.low);
    w.high = _mm512_andnot_si512(_mm512_sllv_epi64(ones, more), w.high);
    return w;
}

/* Like leat__fold(): the two halves of the 128-bit products, combined by xor. */
V __m512i fold_products(__m512i a, __m512i b)
{
    const __m512i half = all64(UINT32_MAX);
    __m512i a1 = _mm512_srli_epi64(a, 32), b1 = _mm512_srli_epi64(b, 32);
    __m512i p00 = _mm512_mul_epu32(a, b), p01 = _mm512_mul_epu32(a, b1);
    __m512i p10 = _mm512_mul_epu32(a1, b), p11 = _mm512_mul_epu32(a1, b1);
    __m512i mid = _mm512_add_epi64(_mm512_srli_epi64(p00, 32), _mm512_and_si512(p01, half));
    mid = _mm512_add_epi64(mid, p10); /* below 2^64: p10 is at most (2^32 - 1)^2 */
    __m512i high =
        _mm512_add_epi64(_mm512_add_epi64(p11, _mm512_srli_epi64(p01, 32)), _mm512_srli_epi64(mid, 32));
    __m512i low = _mm512_mask_mov_epi32(p00, 0xaaaa, _mm512_slli_epi64(mid, 32));
    return _mm512_xor_si512(low, high);
}

/* Like leat__hash_short(). */
V __m512i hash_eight(const eight_words *w)
{
    __m512i a = _mm512_xor_si512(w->low, all64(LEAT__HW0)), b = _mm512_xor_si512(w->high, all64(LEAT__HW1));
    return _mm512_xor_si512(fold_products(a, b), _mm512_slli_epi64(w->len, 32));
}

/* Like word_key() of shingle_tmpl.h, for words of up to 16 bytes. */
V __m512i key_eight(const eight_words *w)
{
    __m512i b = _mm512_xor_si512(w->high, all64(LEAT__HW1));
    b = _mm512_xor_si512(b, _mm512_slli_epi64(w->len, 32));
    return fold_products(_mm512_xor_si512(w->low, all64(LEAT__HW0 ^ LEAT__HW2)), b);
}

/* Hashes the words of more than 16 bytes, which have their bits set in `longer`. */
static NOINLINE void hash_long_words(const uint8_t *text, const uint32_t *bounds, uint32_t longer,
                                     uint64_t *out)
{
    for (; longer; longer &= longer - 1) {
        uint32_t k = lowest(longer);
        out[k] = leat__hash_run(text + bounds[2 * k], bounds[2 * k + 1] - bounds[2 * k], 0);
    }
}

/* Returns the sums of the lengths before each lane. *sum has, in all lanes, the sum before the first lane,
 * and then after the last. */
V __m256i sums_before(__m512i len, __m256i *sum)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i each_len = _mm512_cvtepi64_epi32(len), x = each_len;
    x = _mm256_add_epi32(x, _mm256_alignr_epi32(x, zero, 7));
    x = _mm256_add_epi32(x, _mm256_alignr_epi32(x, zero, 6));
    x = _mm256_add_epi32(x, _mm256_alignr_epi32(x, zero, 4));
    __m256i before = _mm256_add_epi32(*sum, _mm256_sub_epi32(x, each_len));
    *sum = _mm256_add_epi32(*sum, _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(7)));
    return before;
}

/* Counts the characters of each word of a text that is not ASCII. */
static NOINLINE void count_word_chars(leat__scorer *s)
{
    uint32_t sum = 0, longest = 0;
    for (uint32_t i = 0; i < s->word_count; i++) {
        uint32_t chars = chars_in(s, s->bounds[2 * i], s->bounds[2 * i + 1]);
        longest = chars > longest ? chars : longest;
        s->before[i] = sum;
        sum += chars;
    }
    s->before[s->word_count] = sum;
    s->counts.longest_word = longest;
}

/* Like word_pass() of words_tmpl.h. */
static NOINLINE void word_pass(leat__scorer *s)
{
    const leat__word_table *table = leat__word_table_get();
    _Static_assert(sizeof(leat__word_entry) == 24 && offsetof(leat__word_entry, bit) == 16, "three words");
    const __m512i multiplier = all64(table->multiplier);
    const uint32_t count = s->word_count;
    __m512i longest = _mm512_setzero_si512(), facts_of_stops = longest;
    __m256i sum = _mm256_setzero_si256();
    uint32_t stops = 0, symbols = 0;
    for (uint32_t i = 0; i < count; i += 8) {
        const uint32_t *bounds = s->bounds + 2 * i;
        eight_words w = load_words(s->text, bounds, count - i, 0);
        _mm512_storeu_si512(s->word_hash + i, hash_eight(&w));
        uint32_t longer = _mm512_cmpgt_epu64_mask(w.len, all64(16));
        if (RARE(longer)) hash_long_words(s->text, bounds, longer, s->word_hash + i);
        __m512i at = _mm512_srli_epi64(_mm512_mullo_epi64(w.low, multiplier), 58);
        at = _mm512_add_epi64(at, _mm512_add_epi64(at, at));
        __m512i key = _mm512_i64gather_epi64(at, &table->entry[0].key, 8);
        __m512i facts = _mm512_i64gather_epi64(at, &table->entry[0].bit, 8);
        __mmask8 same = _mm512_cmpeq_epi64_mask(key, w.low);
        same = _mm512_mask_cmpeq_epi64_mask(same, _mm512_srli_epi64(facts, 32), w.len);
        __mmask8 stop = _mm512_mask_test_epi64_mask(same, facts, all64(UINT32_MAX));
        facts_of_stops = _mm512_mask_or_epi64(facts_of_stops, stop, facts_of_stops, facts);
        stops += bits_of(stop);
        symbols += bits_of(same) - bits_of(stop);
        longest = _mm512_max_epu64(longest, w.len);
        _mm256_storeu_si256((__m256i *)(s->before + i), sums_before(w.len, &sum));
    }
    s->before[count] = (uint32_t)_mm256_cvtsi256_si32(sum);
    s->counts.longest_word = (uint32_t)_mm512_reduce_max_epu64(longest);
    s->counts.stop_words = stops;
    s->counts.stop_words_distinct = bits_of((uint32_t)_mm512_reduce_or_epi64(facts_of_stops));
    s->counts.symbol_words = symbols;
    if (s->nonascii) count_word_chars(s);
}

static inline uint64_t word_key(const uint8_t *p, uint32_t len);

static NOINLINE void long_word_keys(const leat__sketcher *s, uint32_t i, uint32_t longer)
{
    for (; longer; longer &= longer - 1) {
        uint32_t k = i + lowest(longer);
        s->word_hash[k] = word_key(s->text + s->bounds[2 * k], s->bounds[2 * k + 1] - s->bounds[2 * k]);
    }
}

/* Computes word_key() of all words. */
static NOINLINE void word_keys(leat__sketcher *s, uint32_t words)
{
    for (uint32_t i = 0; i < words; i += 8) {
        eight_words w = load_words(s->text, s->bounds + 2 * i, words - i, 1);
        _mm512_storeu_si512(s->word_hash + i, key_eight(&w));
        uint32_t longer = _mm512_cmpgt_epu64_mask(w.len, all64(16));
        if (RARE(longer)) long_word_keys(s, i, longer);
    }
}
