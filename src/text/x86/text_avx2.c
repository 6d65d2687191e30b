/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels with AVX2: masks of 64 bytes from two vectors each. The templates are compiled
 * again here, so that bit operations use BMI.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "text/masks.h"
#include "text/text_dsp.h"

#define V __attribute__((always_inline)) static inline

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

/* lo <= v < lo + n */
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

/* cooKIE, priVACy, jaVAScript, teRMS, IPSum, "://", "...", "#x#" */
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

/* White space of Python. */
V void white_mask(const uint8_t *p, uint64_t *nonascii, uint64_t *white)
{
    __m256i a = load(p), b = load(p + 32);
    *nonascii = pair(a, b);
    *white = pair(either(within(a, 9, 5), within(a, 28, 5)), either(within(b, 9, 5), within(b, 28, 5)));
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
    for (uint8_t *d = *dst;; p += 32, d += 32) {
        __m256i v = load(p);
        uint32_t m = stops(v);
        _mm256_storeu_si256((__m256i *)d, v);
        if (m) {
            *dst = d + _tzcnt_u32(m);
            return p + _tzcnt_u32(m);
        }
    }
}

const leat__text_dsp leat__text_avx2 = {"avx2",     string_stop,  string_copy,  measure_text,
                                        score_text, shingle_text, join_english, join_lower};
