/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/rng.h"
#include "text/hash_words.h"
#include "text/sketch.h"

static uint32_t shingle(leat__sketcher *s, const char *text)
{
    uint32_t n;
    assert_ok(leat__sketcher_reserve(s, strlen(text), NULL));
    memcpy(s->text, text, strlen(text));
    assert_ok(leat__sketcher_shingles(s, strlen(text), &n, NULL));
    return n;
}

static void shingles_of_words(void **state)
{
    leat__sketcher s;
    assert_ok(leat__sketcher_init(&s, 5, 0, NULL));
    assert_int_equal(shingle(&s, ""), 0);
    assert_int_equal(shingle(&s, " .,- "), 0);
    assert_int_equal(shingle(&s, "one two"), 1);
    assert_int_equal(shingle(&s, "one two three four five six"), 2);
    uint64_t first = s.shingle[0];
    /* case, punctuation and white space do not matter; words do */
    shingle(&s, "ONE, two -- \"Three\"\n\nfour; five. Six!");
    assert_int_equal(s.shingle[0], first);
    shingle(&s, "one two three four fiv esix");
    assert_int_not_equal(s.shingle[0], first);
    leat__sketcher_reset(&s);
    assert_no_leaks();
}

static void shingles_of_characters(void **state)
{
    leat__sketcher s;
    assert_ok(leat__sketcher_init(&s, 0, 4, NULL));
    assert_int_equal(shingle(&s, "abcdef"), 3);
    assert_int_equal(shingle(&s, "  A  b \n"), 1);
    uint64_t h = s.shingle[0];
    assert_int_equal(shingle(&s, "a b"), 1);
    assert_int_equal(s.shingle[0], h);
    assert_int_equal(shingle(&s, "\xd0\x96\xd0\xb4\xd0\x96\xd0\xb4\xd0\x96"), 2);
    assert_int_equal(shingle(&s, " \n "), 0);
    leat__sketcher_reset(&s);
    assert_no_leaks();
}

/* The definition, without optimisations: a character is its byte, or 24 bits of its code point. */
static uint64_t window_slowly(const uint32_t *code, uint32_t width)
{
    uint64_t sum = width * LEAT__HW0;
    uint32_t turn = 0;
    for (uint32_t i = 0; i < width; i += 8, turn = (turn + 21) & 63) {
        uint32_t from = width < 8 ? 0 : i + 8 <= width ? i : width - 8;
        uint64_t w = 0;
        for (uint32_t k = 0; k < 8 && from + k < width; k++) w += (uint64_t)code[from + k] << 8 * k;
        if (width < 8) w <<= 64 - 8 * width;
        w *= LEAT__HW1;
        w ^= w >> 29;
        sum += turn ? w << turn | w >> (64 - turn) : w;
    }
    sum = (sum ^ sum >> 32) * LEAT__HW2;
    sum = (sum ^ sum >> 29) * LEAT__HW3;
    return sum ^ sum >> 32;
}

static void check_windows(uint32_t width, const char *text, const uint32_t *code, uint32_t chars)
{
    leat__sketcher s;
    assert_ok(leat__sketcher_init(&s, 0, width, NULL));
    if (width > chars) width = chars;
    assert_int_equal(shingle(&s, text), chars - width + 1);
    for (uint32_t i = 0; i + width <= chars; i++)
        if (s.shingle[i] != window_slowly(code + i, width)) fail_msg("width %u, window %u", width, i);
    leat__sketcher_reset(&s);
}

static void windows_are_those_of_the_definition(void **state)
{
    static const uint32_t widths[] = {1, 2, 5, 7, 8, 9, 15, 16, 23, 24, 25, 40, 64, 100, 1024};
    char ascii[301], wide[600];
    uint32_t code[300], codes[300];
    size_t at = 0;
    for (uint32_t i = 0; i < 300; i++) {
        code[i] = codes[i] = (uint8_t) "the quick brown fox jumps; over 13 lazy dogs."[i * i % 45];
        if (i == 0 || i == 299 || (code[i] == ' ' && code[i - 1] == ' ')) code[i] = codes[i] = 'x';
        ascii[i] = (char)code[i];
        if (i % 37 == 5) {                                  /* Cyrillic Zhe */
            codes[i] = (uint32_t)(0x436 * LEAT__HW0 >> 40); /* in lower case */
            at += (size_t)sprintf(wide + at, "\xd0\x96");
        } else {
            wide[at++] = ascii[i];
        }
    }
    ascii[300] = wide[at] = 0;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        check_windows(widths[i], ascii, code, 300);
        check_windows(widths[i], wide, codes, 300);
    }
    assert_no_leaks();
}

/* All kinds of white space become one blank, also at block boundaries; ASCII capitals become lower case. */
static void texts_are_folded(void **state)
{
    static const char *const blanks[] = {" ",
                                         "\n\n",
                                         "\t \r\n",
                                         "\x1c\x1f",
                                         "\xc2\x85",
                                         "\xc2\xa0 ",
                                         "\xe2\x80\x89",
                                         "\xe1\x9a\x80\xe3\x80\x80",
                                         "                                     "};
    leat__sketcher a, b;
    char x[400], y[400];
    assert_ok(leat__sketcher_init(&a, 0, 24, NULL));
    assert_ok(leat__sketcher_init(&b, 0, 24, NULL));
    for (int shift = 0; shift < 130; shift++) {
        for (size_t k = 0; k < sizeof blanks / sizeof *blanks; k++) {
            memset(x, 'q', (size_t)shift);
            snprintf(x + shift, sizeof x - (size_t)shift, "%sSOME Text%s that IS long enough%s", blanks[k],
                     blanks[k], blanks[k]);
            memset(y, 'q', (size_t)shift);
            snprintf(y + shift, sizeof y - (size_t)shift, "%ssome text that is long enough",
                     shift ? " " : "");
            uint32_t n = shingle(&a, x);
            assert_int_equal(shingle(&b, y), n);
            assert_memory_equal(a.shingle, b.shingle, n * 8);
        }
    }
    leat__sketcher_reset(&a);
    leat__sketcher_reset(&b);
    assert_no_leaks();
}

/* Case is ignored in every script, for words and for characters. */
static void case_does_not_count(void **state)
{
    static const char *const pairs[][2] = {
        {"\xd0\x9c\xd0\x9e\xd0\xa1\xd0\x9a\xd0\x92\xd0\x90 one",
         "\xd0\xbc\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0 ONE"},
        {"\xce\x9f\xce\x94\xce\x9f\xce\xa3", "\xce\xbf\xce\xb4\xce\xbf\xcf\x82"}, /* a final sigma */
        {"\xc3\x89t\xc3\xa9", "\xc3\xa9T\xc3\x89"},
        {"gro\xe1\xba\x9e", "GRO\xc3\x9f"}, /* 3 bytes become 2 */
        {"\xc8\xbaxyz", "\xe2\xb1\xa5XYZ"}, /* 2 bytes become 3 */
        {"\xe2\x84\xaa"
         "elvin",
         "kelvin"},                                                               /* becomes ASCII */
        {"\xf0\x90\x90\x80\xf0\x90\x90\x81", "\xf0\x90\x90\xa8\xf0\x90\x90\xa9"}, /* beyond 16 bits */
        {"aaaaaaaaaaaaaaa\xd0\x96\xd0\x96\xd0\x96\xd0\x96\xd0\x96\xd0\x96\xd0\x96\xd0\x96\xd0\x96zz",
         "aaaaaaaaaaaaaaa\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6\xd0\xb6zz"}};
    for (int chars = 0; chars < 2; chars++) {
        leat__sketcher a, b;
        char x[300], y[300];
        assert_ok(leat__sketcher_init(&a, chars ? 0 : 1, chars ? 3 : 0, NULL));
        assert_ok(leat__sketcher_init(&b, chars ? 0 : 1, chars ? 3 : 0, NULL));
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            for (int shift = 0; shift < 70; shift++) {
                snprintf(x, sizeof x, "%*s. %s %s.", shift, "q", pairs[i][0], pairs[i][0]);
                snprintf(y, sizeof y, "%*s. %s %s.", shift, "q", pairs[i][1], pairs[i][1]);
                uint32_t n = shingle(&a, x);
                assert_int_equal(shingle(&b, y), n);
                assert_memory_equal(a.shingle, b.shingle, n * 8);
            }
        leat__sketcher_reset(&a);
        leat__sketcher_reset(&b);
    }
    assert_no_leaks();
}

/* Pairs of sets with a known similarity: the estimate has no bias, and at most the variance of K independent
 * draws. */
static void estimates_similarity(void **state)
{
    enum { K = 128, TRIALS = 300 };
    static const uint32_t sizes[] = {20, 100, 1000};
    leat__rng r;
    leat__rng_init(&r, 3, 0, 0, 0);
    for (int z = 0; z < 3; z++) {
        uint32_t n = sizes[z], same = n * 2 / 3;
        double j = (double)same / (2 * n - same), sum = 0, square = 0;
        for (int t = 0; t < TRIALS; t++) {
            uint64_t a[1000], b[1000];
            uint32_t x[K], y[K], equal = 0;
            uint8_t p[K], q[K];
            for (uint32_t i = 0; i < n; i++) {
                a[i] = leat__rng_u64(&r);
                b[i] = i < same ? a[i] : leat__rng_u64(&r);
            }
            leat__sketch_fss(a, n, K, x);
            leat__sketch_fss(b, n, K, y);
            for (int i = 0; i < K; i++) equal += x[i] == y[i];
            leat__sketch_bytes(x, K, p);
            leat__sketch_bytes(y, K, q);
            assert_true(leat__sketch_equal(p, q, K) >= equal);
            double d = (double)equal / K - j;
            sum += d;
            square += d * d;
        }
        double sd = sqrt(j * (1 - j) / K);
        assert_true(fabs(sum / TRIALS) < 4 * sd / sqrt(TRIALS));
        assert_true(sqrt(square / TRIALS) < 1.2 * sd);
    }
}

static void repeats_do_not_matter(void **state)
{
    uint64_t a[] = {5, 7, 5, 5, 9}, b[] = {9, 7, 5};
    uint32_t x[112], y[112];
    leat__sketch_fss(a, 5, 112, x);
    leat__sketch_fss(b, 3, 112, y);
    assert_memory_equal(x, y, sizeof x);
    assert_int_equal(leat__sketch_band(x, 8), leat__sketch_band(y, 8));
    assert_int_not_equal(leat__sketch_band(x, 8), leat__sketch_band(x + 8, 8));
    assert_int_not_equal(leat__sketch_band(x, 7), leat__sketch_band(x, 8));
}

/* The definition, without optimisations. */
static void sketch_slowly(const uint64_t *x, uint32_t n, uint32_t k, uint32_t *out)
{
    bool filled[LEAT__SKETCH_MAX] = {0};
    uint32_t left = k;
    for (uint32_t r = 0; left > 0; r++)
        for (uint32_t bin = 0; bin < k; bin++) {
            uint32_t least = UINT32_MAX;
            for (uint32_t i = 0; i < n; i++) {
                uint64_t h = r ? leat__fold(x[i] ^ LEAT__HW0, LEAT__HW1 + 2 * (uint64_t)r * LEAT__HW2) : x[i];
                uint32_t v = (uint32_t)h - ((uint32_t)h == UINT32_MAX);
                if ((r < k ? (uint32_t)((h >> 32) * k >> 32) : r - k) == bin && v < least) least = v;
            }
            if (filled[bin] || least == UINT32_MAX) continue;
            out[bin] = least ^ r * UINT32_C(0x9e3779b1);
            filled[bin] = true;
            left--;
        }
}

static void values_are_those_of_the_definition(void **state)
{
    static const struct {
        uint32_t n, distinct, k;
    } t[] = {{1, 1, 112},   {3, 3, 112},      {30, 30, 112},     {30, 2, 16},      {500, 3, 8},
             {5000, 9, 16}, {5000, 5000, 16}, {5000, 5000, 112}, {2000, 200, 112}, {5000, 300, 16}};
    static uint64_t x[5000];
    uint32_t a[112], b[112];
    leat__rng r;
    leat__rng_init(&r, 9, 0, 0, 0);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        for (uint32_t j = 0; j < t[i].n; j++)
            x[j] = j < t[i].distinct ? leat__rng_u64(&r) : x[j % t[i].distinct];
        leat__sketch_fss(x, t[i].n, t[i].k, a);
        sketch_slowly(x, t[i].n, t[i].k, b);
        assert_memory_equal(a, b, t[i].k * sizeof *a);
    }
}

static void curve(void **state)
{
    assert_true(fabs(leat__sketch_curve(.8, 20, 13) - .6758) < .01);
    assert_true(fabs(leat__sketch_curve(.7, 14, 8) - .565) < .01);
    assert_true(leat__sketch_similarity(112, 112) == 1);
    assert_true(leat__sketch_similarity(0, 112) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shingles_of_words),
        cmocka_unit_test(shingles_of_characters),
        cmocka_unit_test(windows_are_those_of_the_definition),
        cmocka_unit_test(texts_are_folded),
        cmocka_unit_test(case_does_not_count),
        cmocka_unit_test(estimates_similarity),
        cmocka_unit_test(repeats_do_not_matter),
        cmocka_unit_test(values_are_those_of_the_definition),
        cmocka_unit_test(curve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
