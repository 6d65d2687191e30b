/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels with AVX-512: comparisons of 64 bytes give masks directly, and a compressed vector of numbers
 * gives the positions of set bits.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "text/hash_words.h"
#include "text/masks.h"
#include "text/text_dsp.h"

#define V __attribute__((always_inline)) static inline
#define LANE_BYTES 64

V __m512i load(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

V __m512i each(uint8_t c)
{
    return _mm512_set1_epi8((char)c);
}

V uint64_t is(__m512i v, uint8_t c)
{
    return _mm512_cmpeq_epi8_mask(v, each(c));
}

/* True where lo <= v < lo + n. */
V uint64_t within(__m512i v, uint8_t lo, uint8_t n)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(v, each(lo)), each(n));
}

V __m512i small(__m512i v)
{
    return _mm512_or_si512(v, each(32));
}

enum { WHITE = 1, CONTROL = 2, ALPHA = 4, DIGIT = 8, BRACKET = 16, MARK = 32, END = 64, CLOSER = 128 };

/* Classes of ASCII bytes. */
static const uint8_t classes[128] = {
    2, 2, 2, 2, 2, 2, 2, 2,  2,   3, 3, 3,  3, 3,   2,  2,   2, 2, 2,  2,  2,  2,  2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 1, 96, 128, 0, 0, 0,  0, 128, 16, 144, 0, 0, 32, 0,  96, 0,  8, 8, 8, 8,
    8, 8, 8, 8, 8, 8, 0, 0,  0,   0, 0, 96, 0, 4,   4,  4,   4, 4, 4,  4,  4,  4,  4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4,  4,   4, 4, 4,  4, 16,  0,  144, 0, 0, 0,  4,  4,  4,  4, 4, 4, 4,
    4, 4, 4, 4, 4, 4, 4, 4,  4,   4, 4, 4,  4, 4,   4,  4,   4, 4, 4,  16, 0,  16, 0, 0,
};

/* The first, second and third byte of each pattern that may begin at a candidate, one bit per pattern:
 * cooKIE, priVACy, jaVAScript, teRMS, IPSum, "://", "...", "#x#". */
enum { HASH = 128 };
static const uint8_t byte1[128] = {
    0, 0, 0, 0,   0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0,
    0, 0, 0, 128, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0,
    0, 0, 0, 0,   0, 0, 0, 0, 0, 16, 0, 1, 0, 0, 0,  0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0, 0,  0, 0, 0, 0, 0,
    0, 0, 0, 0,   0, 0, 0, 0, 0, 16, 0, 1, 0, 0, 0,  0, 0, 0, 8, 0, 0, 0, 6, 0, 0, 0, 0,  0, 0, 0, 0, 0,
};

static const uint8_t byte2[128] = {
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0,   128, 128,
    128, 128, 128, 128, 128, 128, 128, 128, 192, 160, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    128, 128, 128, 128, 128, 128, 128, 128, 134, 128, 128, 128, 128, 128, 128, 128, 129, 128, 128,
    128, 136, 128, 128, 144, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    128, 128, 134, 128, 128, 128, 128, 128, 128, 128, 129, 128, 128, 128, 136, 128, 128, 144, 128,
    128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
};

static const uint8_t byte3[128] = {
    0, 0, 0, 0,   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 32, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 2,   0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 2,   0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

static const uint8_t numbers[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

/* Looks up ASCII bytes in a table; 0 for other bytes. */
V __m512i look_up(const uint8_t *table, __m512i v, uint64_t nonascii)
{
    return _mm512_maskz_permutex2var_epi8(~nonascii, load(table), v, load(table + 64));
}

V uint64_t has(__m512i v, uint8_t bits)
{
    return _mm512_test_epi8_mask(v, each(bits));
}

V uint64_t candidates(const uint8_t *p, __m512i v, uint64_t nonascii)
{
    __m512i next = load(p + 1), after = load(p + 2);
    uint64_t next_nonascii = _mm512_movepi8_mask(next);
    __m512i a = look_up(byte1, v, nonascii), b = look_up(byte2, next, next_nonascii);
    __m512i c = look_up(byte3, after, _mm512_movepi8_mask(after));
    b = _mm512_mask_mov_epi8(b, next_nonascii, each(HASH));
    return _mm512_test_epi8_mask(_mm512_and_si512(a, b), c);
}

V void block_masks(const uint8_t *p, masks *m)
{
    __m512i v = load(p);
    m->nonascii = _mm512_movepi8_mask(v);
    m->follow = _mm512_cmplt_epi8_mask(v, each(0xc0));
    __m512i is_class = look_up(classes, v, m->nonascii);
    m->newline = is(v, '\n');
    m->tab = is(v, '\t');
    m->white = has(is_class, WHITE);
    m->control = has(is_class, CONTROL);
    m->alpha = has(is_class, ALPHA);
    m->digit = has(is_class, DIGIT);
    m->bracket = has(is_class, BRACKET);
    m->mark = has(is_class, MARK);
    m->hash = is(v, '#');
    m->curly = is(v, '{');
    m->ends = masks_ends(p, has(is_class, END), m->white, has(is_class, CLOSER));
    m->candidate = candidates(p, v, m->nonascii);
}

V void word_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *alnum)
{
    __m512i v = load(p);
    *nonascii = _mm512_movepi8_mask(v);
    *alnum = within(small(v), 'a', 26) | within(v, '0', 10);
}

V void letter_masks(const uint8_t *p, uint64_t *nonascii, uint64_t *letter, uint64_t *digit)
{
    __m512i v = load(p);
    *nonascii = _mm512_movepi8_mask(v);
    *letter = within(small(v), 'a', 26);
    *digit = within(v, '0', 10);
}

/* Python's white space. */
V void white_mask(const uint8_t *p, uint64_t *nonascii, uint64_t *white)
{
    __m512i v = load(p);
    *nonascii = _mm512_movepi8_mask(v);
    *white = within(v, 9, 5) | within(v, 28, 5);
}

/* Converts 64 bytes to lower case, with blanks for white space. */
V void fold_block(const uint8_t *p, uint8_t *out, uint64_t *nonascii, uint64_t *white)
{
    __m512i v = load(p);
    *nonascii = _mm512_movepi8_mask(v);
    *white = within(v, 9, 5) | within(v, 28, 5);
    v = _mm512_mask_add_epi8(v, within(v, 'A', 26), v, each(32));
    _mm512_storeu_si512(out, _mm512_mask_mov_epi8(v, *white, each(' ')));
}

/* Marks the first bytes of characters that may be white space. */
V uint64_t blank_leads(const uint8_t *p)
{
    __m512i v = load(p);
    return is(v, 0xc2) | within(v, 0xe1, 3);
}

V uint64_t char_starts(const uint8_t *p)
{
    return _mm512_cmpge_epi8_mask(load(p), each(0xc0));
}

V uint64_t high_bytes(const uint8_t *p)
{
    return _mm512_movepi8_mask(load(p));
}

/* Writes the 8-byte words at eight consecutive bytes. */
V void spread_words(const uint8_t *p, void *out)
{
    __m512i v = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
    __m512i at = _mm512_add_epi8(
        _mm512_set1_epi64(0x0706050403020100),
        _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(0x0101010101010101)));
    _mm512_storeu_si512(out, _mm512_shuffle_epi8(v, at));
}

#define HAS_KEEP_BYTES
V uint8_t *keep_bytes(uint8_t *out, const uint8_t *block, uint64_t keep)
{
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(keep, load(block)));
    return out + _mm_popcnt_u64(keep);
}

V void put_positions(uint32_t *out, __m128i at, uint32_t base)
{
    __m512i wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(at), _mm512_set1_epi32((int)base));
    _mm512_storeu_si512(out, wide);
}

#define HAS_PUT_BITS
V uint32_t *put_bits(uint32_t *out, uint64_t m, uint32_t base, const int always)
{
    uint32_t n = (uint32_t)_mm_popcnt_u64(m);
    if (always < 8 && __builtin_expect(m == 0, 1)) return out;
    __m512i at = _mm512_maskz_compress_epi8(m, load(numbers));
    put_positions(out, _mm512_castsi512_si128(at), base);
    if (always > 16 || n > 16) put_positions(out + 16, _mm512_extracti32x4_epi32(at, 1), base);
    if (__builtin_expect(n > 32, 0)) {
        put_positions(out + 32, _mm512_extracti32x4_epi32(at, 2), base);
        put_positions(out + 48, _mm512_extracti32x4_epi32(at, 3), base);
    }
    return out + n;
}

V __m512i times_plus(__m512i a, uint64_t factor, __m512i plus)
{
    return _mm512_add_epi64(_mm512_mullo_epi64(a, _mm512_set1_epi64((int64_t)factor)), plus);
}

V __m512i shifted_out(__m512i x, const uint32_t n)
{
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, n));
}

#define HAS_SHINGLES_OF_5
/* Makes eight shingles at once. The arrays have room for as many past their ends. */
V void shingles_of_5(const uint64_t *w, uint32_t count, uint64_t *out)
{
    for (uint32_t i = 0; i < count; i += 8) {
        const uint64_t *p = w + i;
        __m512i a = times_plus(_mm512_loadu_si512(p), LEAT__HW0, _mm512_loadu_si512(p + 1));
        __m512i b = times_plus(_mm512_loadu_si512(p + 2), LEAT__HW0, _mm512_loadu_si512(p + 3));
        __m512i x = times_plus(times_plus(a, LEAT__HW1, b), LEAT__HW1, _mm512_loadu_si512(p + 4));
        x = _mm512_mullo_epi64(shifted_out(x, 32), _mm512_set1_epi64((int64_t)LEAT__HW3));
        _mm512_storeu_si512(out + i, shifted_out(x, 29));
    }
}

#define HAS_KEEP_LOW
static uint32_t keep_low(const uint64_t *x, uint32_t n, uint32_t most, uint64_t *out)
{
    const __m512i limit = _mm512_set1_epi64(most), half = _mm512_set1_epi64(UINT32_MAX);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i += 8) {
        uint32_t valid = n - i < 8 ? (1u << (n - i)) - 1 : 255;
        __m512i v = _mm512_maskz_loadu_epi64((__mmask8)valid, x + i);
        uint32_t m = _mm512_mask_cmplt_epu64_mask((__mmask8)valid, _mm512_and_si512(v, half), limit);
        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi64((__mmask8)m, v));
        found += (uint32_t)_mm_popcnt_u32(m);
    }
    return found;
}

#define HAS_KEEP_OPEN
/* The bins are 1,024 bits in two vectors. */
static uint32_t keep_open(const uint64_t *x, uint32_t n, uint32_t k, const uint32_t *least, uint32_t most,
                          uint64_t *out)
{
    uint16_t open[LEAT__SKETCH_MAX / 16] = {0};
    for (uint32_t i = 0; i < k; i += 16)
        open[i / 16] =
            _mm512_cmpge_epu32_mask(_mm512_loadu_si512(least + i), _mm512_set1_epi32((int32_t)most));
    const __m512i low = _mm512_loadu_si512(open), high = _mm512_loadu_si512(open + 32);
    const __m512i bins = _mm512_set1_epi64(k), one = _mm512_set1_epi64(1);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i += 8) {
        uint32_t valid = n - i < 8 ? (1u << (n - i)) - 1 : 255;
        __m512i v = _mm512_maskz_loadu_epi64((__mmask8)valid, x + i);
        __m512i bin = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(v, 32), bins), 32);
        __m512i word = _mm512_permutex2var_epi32(low, _mm512_srli_epi64(bin, 5), high);
        __m512i bit = _mm512_rolv_epi32(one, bin); /* rotated by the lower five bits */
        uint32_t m = _mm512_mask_test_epi64_mask((__mmask8)valid, word, bit);
        _mm512_storeu_si512(out + found, _mm512_maskz_compress_epi64((__mmask8)m, v));
        found += (uint32_t)_mm_popcnt_u32(m);
    }
    return found;
}

#include "text/scan_tmpl.h"

#include "text/x86/words_avx512.h"

#include "text/words_tmpl.h"

#include "text/lines_tmpl.h"

#include "text/x86/ngrams_avx512.h"

#include "text/ngrams_tmpl.h"

#include "text/shingle_tmpl.h"

#include "text/join_tmpl.h"

V uint64_t stops(__m512i v)
{
    return is(v, '"') | is(v, '\\') | _mm512_cmplt_epu8_mask(v, each(32));
}

static const uint8_t *string_stop(const uint8_t *p)
{
    for (;; p += 64) {
        uint64_t m = stops(load(p));
        if (m) return p + _tzcnt_u64(m);
    }
}

/* Copies the bytes up to the next escape and decodes it; false at the end of the string or
 * at a longer escape. */
static NOINLINE bool copy_one(const uint8_t **p, uint8_t **d)
{
    __m512i v = load(*p);
    const uint64_t n = _tzcnt_u64(stops(v));
    _mm512_storeu_si512(*d, v);
    *p += n;
    *d += n;
    const uint8_t c = **p == '\\' ? leat__plain_escape[(*p)[1]] : 0;
    if (!c) return false;
    *(*d)++ = c;
    *p += 2;
    return true;
}

/* Decodes all escapes of a block at once: replaces the bytes after backslashes and removes the
 * backslashes. */
static const uint8_t *string_copy(const uint8_t *p, uint8_t **dst)
{
    uint8_t *d = *dst;
    for (;;) {
        __m512i v = load(p);
        uint64_t back = is(v, '\\'), stop = is(v, '"') | _mm512_cmplt_epu8_mask(v, each(32));
        if (!(back | stop)) {
            _mm512_storeu_si512(d, v);
            p += 64;
            d += 64;
            continue;
        }
        uint64_t after = back << 1;
        if (RARE(after & back)) { /* some backslashes may be escaped themselves */
            if (!copy_one(&p, &d)) break;
            continue;
        }
        __m512i plain = look_up(leat__plain_escape, v, _mm512_movepi8_mask(v));
        /* other escapes end the copy at their backslash */
        uint64_t ends = (stop & ~after) | (after & _mm512_testn_epi8_mask(plain, plain)) >> 1;
        uint64_t valid = ends ? (ends & (~ends + 1)) - 1 : ~UINT64_C(0) >> (back >> 63), keep = valid & ~back;
        v = _mm512_mask_mov_epi8(v, after, plain);
        _mm512_storeu_si512(d, _mm512_maskz_compress_epi8(keep, v));
        d += bits_of(keep);
        p += bits_of(valid);
        if (ends) break;
    }
    *dst = d;
    return p;
}

#include "text/x86/utf8_avx2.h"

const leat__text_dsp leat__text_avx512 = {"avx512",     string_stop,  string_copy,  utf8_check,
                                          measure_text, score_text,   shingle_text, keep_low,
                                          keep_open,    join_english, join_lower};
