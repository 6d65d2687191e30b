/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels with AVX2: two vectors per mask of 64 bytes. The templates are compiled again here, so that
 * bit operations use BMI.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "text/masks.h"
#include "text/text_dsp.h"

#include "bit_table.h"

#define V __attribute__((always_inline)) static inline
#define LANE_BYTES 32

V __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

V __m256i is(__m256i v, char c)
{
    return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c));
}

V __m256i either(__m256i a, __m256i b)
{
    return _mm256_or_si256(a, b);
}

V __m256i both(__m256i a, __m256i b)
{
    return _mm256_and_si256(a, b);
}

/* True where lo <= v < lo + n. */
V __m256i within(__m256i v, uint8_t lo, uint8_t n)
{
    __m256i d = _mm256_sub_epi8(v, _mm256_set1_epi8((char)lo));
    return _mm256_cmpeq_epi8(_mm256_min_epu8(d, _mm256_set1_epi8((char)(n - 1))), d);
}

V uint64_t pair(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

V __m256i small(__m256i v)
{
    return either(v, _mm256_set1_epi8(32));
}

V __m256i white(__m256i v)
{
    return either(is(v, ' '), within(v, 9, 5));
}

V __m256i bracket(__m256i v)
{
    __m256i low = small(v); /* [ and { differ in this bit, as do ] and } */
    return either(either(is(low, 0x7b), is(low, 0x7d)), is(both(v, _mm256_set1_epi8((char)0xfe)), 0x28));
}

V __m256i end_mark(__m256i v)
{
    return either(either(is(v, '.'), is(v, '!')), is(v, '?'));
}

V __m256i closer(__m256i v)
{
    return either(either(is(v, '"'), is(v, '\'')), either(is(v, ')'), is(v, ']')));
}

/* Marks where a pattern may begin: cooKIE, priVACy, jaVAScript, teRMS, IPSum, "://", "...", "#x#". */
V __m256i candidate(const uint8_t *p)
{
    __m256i r0 = load(p), r1 = load(p + 1), r2 = load(p + 2);
    __m256i a0 = small(r0), a1 = small(r1), a2 = small(r2), s2 = is(a2, 's');
    __m256i c = both(both(is(a0, 'k'), is(a1, 'i')), is(a2, 'e'));
    c = either(c, both(both(is(a0, 'v'), is(a1, 'a')), either(is(a2, 'c'), s2)));
    c = either(c, both(either(both(is(a0, 'r'), is(a1, 'm')), both(is(a0, 'i'), is(a1, 'p'))), s2));
    c = either(c, both(both(is(r0, ':'), is(r1, '/')), is(r2, '/')));
    c = either(c, both(both(is(r0, '.'), is(r1, '.')), is(r2, '.')));
    return either(c, _mm256_andnot_si256(is(r1, '#'), both(is(r0, '#'), is(r2, '#'))));
}

V void block_masks(const uint8_t *p, masks *m)
{
    __m256i a = load(p), b = load(p + 32);
    m->nonascii = pair(a, b);
    m->follow = 0;
    if (__builtin_expect(m->nonascii != 0, 0)) {
        __m256i first = _mm256_set1_epi8(-64);
        m->follow = pair(_mm256_cmpgt_epi8(first, a), _mm256_cmpgt_epi8(first, b));
    }
    m->newline = pair(is(a, '\n'), is(b, '\n'));
    m->tab = pair(is(a, '\t'), is(b, '\t'));
    m->white = pair(white(a), white(b));
    m->control = pair(within(a, 0, 32), within(b, 0, 32));
    m->alpha = pair(within(small(a), 'a', 26), within(small(b), 'a', 26));
    m->digit = pair(within(a, '0', 10), within(b, '0', 10));
    m->bracket = pair(bracket(a), bracket(b));
    uint64_t end = pair(end_mark(a), end_mark(b));
    m->mark = end | pair(is(a, ','), is(b, ','));
    m->hash = pair(is(a, '#'), is(b, '#'));
    m->curly = pair(is(a, '{'), is(b, '{'));
    m->ends = masks_ends(p, end, m->white, pair(closer(a), closer(b)));
    m->candidate = pair(candidate(p), candidate(p + 32));
}

V void word_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *alnum)
{
    __m256i a = load(p), b = load(p + 32);
    *nonascii = pair(a, b);
    *alnum = pair(either(within(small(a), 'a', 26), within(a, '0', 10)),
                  either(within(small(b), 'a', 26), within(b, '0', 10)));
}

V void letter_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *letter, uint64_t *digit)
{
    __m256i a = load(p), b = load(p + 32);
    *nonascii = pair(a, b);
    *letter = pair(within(small(a), 'a', 26), within(small(b), 'a', 26));
    *digit = pair(within(a, '0', 10), within(b, '0', 10));
}

/* Python's white space. */
V void white_mask(const uint8_t *p, uint64_t *nonascii, uint64_t *white)
{
    __m256i a = load(p), b = load(p + 32);
    *nonascii = pair(a, b);
    *white = pair(either(within(a, 9, 5), within(a, 28, 5)), either(within(b, 9, 5), within(b, 28, 5)));
}

V __m256i fold_half(__m256i v, __m256i is_white)
{
    __m256i capital = both(within(v, 'A', 26), _mm256_set1_epi8(32));
    return _mm256_blendv_epi8(either(v, capital), _mm256_set1_epi8(' '), is_white);
}

/* Converts 64 bytes to lower case, with blanks for white space. */
V void fold_block(const uint8_t *p, uint8_t *out, uint64_t *nonascii, uint64_t *white)
{
    __m256i a = load(p), b = load(p + 32);
    __m256i x = either(within(a, 9, 5), within(a, 28, 5)), y = either(within(b, 9, 5), within(b, 28, 5));
    *nonascii = pair(a, b);
    *white = pair(x, y);
    _mm256_storeu_si256((__m256i *)out, fold_half(a, x));
    _mm256_storeu_si256((__m256i *)(out + 32), fold_half(b, y));
}

/* Marks the first bytes of characters that may be white space. */
V uint64_t blank_leads(const uint8_t *p)
{
    __m256i a = load(p), b = load(p + 32);
    return pair(either(is(a, (char)0xc2), within(a, 0xe1, 3)), either(is(b, (char)0xc2), within(b, 0xe1, 3)));
}

V uint64_t char_starts(const uint8_t *p)
{
    __m256i last = _mm256_set1_epi8(-65);
    return pair(_mm256_cmpgt_epi8(load(p), last), _mm256_cmpgt_epi8(load(p + 32), last));
}

V uint64_t high_bytes(const uint8_t *p)
{
    return pair(load(p), load(p + 32));
}

/* Writes eight words: the 8 bytes that begin at p, at p + 1 … and at p + 7. */
V void spread_words(const uint8_t *p, void *out)
{
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
    __m256i low = _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 8, /* 0 and 1 */
                                   2, 3, 4, 5, 6, 7, 8, 9, 3, 4, 5, 6, 7, 8, 9, 10);
    __m256i high = _mm256_add_epi8(low, _mm256_set1_epi8(4));
    _mm256_storeu_si256(out, _mm256_shuffle_epi8(v, low));
    _mm256_storeu_si256((__m256i *)out + 1, _mm256_shuffle_epi8(v, high));
}

/* Positions of the set bits of a mask of four, as pairs of 32-bit numbers. */
static const uint32_t kept_pairs[16][8] = {
    {0},
    {0, 1},
    {2, 3},
    {0, 1, 2, 3},
    {4, 5},
    {0, 1, 4, 5},
    {2, 3, 4, 5},
    {0, 1, 2, 3, 4, 5},
    {6, 7},
    {0, 1, 6, 7},
    {2, 3, 6, 7},
    {0, 1, 2, 3, 6, 7},
    {4, 5, 6, 7},
    {0, 1, 4, 5, 6, 7},
    {2, 3, 4, 5, 6, 7},
    {0, 1, 2, 3, 4, 5, 6, 7},
};

#define HAS_KEEP_LOW
static uint32_t keep_low(const uint64_t *x, uint32_t n, uint32_t most, uint64_t *out)
{
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    const __m256i limit = _mm256_xor_si256(_mm256_set1_epi64x((int64_t)((uint64_t)most << 32)), sign);
    uint32_t found = 0, i = 0;
    for (; i + 4 <= n; i += 4) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(x + i));
        __m256i low = _mm256_xor_si256(_mm256_slli_epi64(v, 32), sign);
        uint32_t m = (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(limit, low)));
        __m256i at = _mm256_loadu_si256((const __m256i *)kept_pairs[m]);
        _mm256_storeu_si256((__m256i *)(out + found), _mm256_permutevar8x32_epi32(v, at));
        found += (uint32_t)_mm_popcnt_u32(m);
    }
    for (; i < n; i++) {
        out[found] = x[i];
        found += (uint32_t)x[i] < most;
    }
    return found;
}

#define HAS_PUT_BITS
/* Appends the positions of the set bits, one byte of the mask at a time: the array has room for 64. */
V uint32_t *put_bits(uint32_t *out, uint64_t m, uint32_t base, const int always)
{
    if (always < 8 && __builtin_expect(m == 0, 1)) return out;
    __m256i at = _mm256_set1_epi32((int)base);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++, m >>= 8) {
        __m256i k = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bit_table[m & 255]));
        _mm256_storeu_si256((__m256i *)out, _mm256_add_epi32(at, k));
        out += _mm_popcnt_u32(m & 255);
        at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
    }
    return out;
}

#include "text/scan_tmpl.h"

#include "text/words_tmpl.h"

#include "text/lines_tmpl.h"

#include "text/ngrams_tmpl.h"

#include "text/shingle_tmpl.h"

#include "text/join_tmpl.h"

V uint32_t stops(__m256i v)
{
    return (uint32_t)_mm256_movemask_epi8(either(either(is(v, '"'), is(v, '\\')), within(v, 0, 32)));
}

static const uint8_t *string_stop(const uint8_t *p)
{
    for (;; p += 32) {
        uint32_t m = stops(load(p));
        if (m) return p + _tzcnt_u32(m);
    }
}

static const uint8_t *string_copy(const uint8_t *p, uint8_t **dst)
{
    uint8_t *d = *dst;
    for (;;) {
        __m256i v = load(p);
        uint32_t m = stops(v);
        _mm256_storeu_si256((__m256i *)d, v);
        size_t n = m ? _tzcnt_u32(m) : 32;
        p += n;
        d += n;
        if (!m) continue;
        uint8_t c = *p == '\\' ? leat__plain_escape[p[1]] : 0;
        if (!c) break;
        *d++ = c;
        p += 2;
    }
    *dst = d;
    return p;
}

#include "text/x86/utf8_avx2.h"

const leat__text_dsp leat__text_avx2 = {"avx2",       string_stop,  string_copy,  utf8_check,
                                        measure_text, score_text,   shingle_text, keep_low,
                                        keep_open,    join_english, join_lower};
