/* SPDX-License-Identifier: Apache-2.0
 *
 * All variants of the kernels give the same results, on random texts of difficult parts.
 */
#include "leat_test.h"

#include "base/rng.h"
#include "base/num.h"
#include "probe/cpu.h"
#include "text/english_words.h"
#include "text/fold.h"
#include "text/text_dsp.h"
#include "text/unicode.h"

static const char *const pieces[] = {
    " ",
    "\n",
    "\n\n",
    "the",
    "of",
    "a",
    "word",
    "...",
    "\xe2\x80\xa6",
    "#",
    "#x#",
    "http://a.b/c",
    "privacy policy",
    "lorem ipsum",
    "JavaScript",
    "end. ",
    "\"yes.\" ",
    "[1]",
    "\r\n",
    "\x1c",
    "\xc2\x85",
    "\xe3\x80\x80",
    "\xe6\xbc\xa2",
    "\xd0\x96",
    "\xf0\x9f\x98\x80",
    "{",
    "- ",
    "\xe2\x80\xa2 ",
    "use cookies",
    "x.[1].",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static size_t random_text(leat__rng *r, uint8_t *out, size_t max)
{
    size_t n = 0, want = leat__rng_below(r, max - 64);
    while (n < want) {
        const char *p = pieces[leat__rng_below(r, sizeof pieces / sizeof pieces[0])];
        memcpy(out + n, p, strlen(p));
        n += strlen(p);
        if (leat__rng_below(r, 3)) out[n++] = ' ';
    }
    return n;
}

static void check_characters(const leat__text_dsp *fast, const uint8_t *text, size_t n, uint32_t chars)
{
    leat__sketcher x, y;
    assert_ok(leat__sketcher_init(&x, 0, chars, NULL));
    assert_ok(leat__sketcher_init(&y, 0, chars, NULL));
    memcpy(x.text, text, n);
    memcpy(y.text, text, n);
    uint32_t m = leat__text_c.shingles(&x, n);
    assert_int_equal(fast->shingles(&y, n), m);
    if (m > 0) assert_memory_equal(x.shingle, y.shingle, m * 8);
    leat__sketcher_reset(&x);
    leat__sketcher_reset(&y);
}

static void check_kept(const leat__text_dsp *fast)
{
    uint64_t x[100], a[108], b[108];
    leat__rng r;
    leat__rng_init(&r, 4, 0, 0, 0);
    for (uint32_t n = 0; n <= 100; n++) {
        uint32_t most = n % 5 ? (uint32_t)leat__rng_u64(&r) : n % 2 ? 0 : UINT32_MAX;
        for (uint32_t i = 0; i < n; i++) x[i] = leat__rng_u64(&r) | (i % 7 ? 0 : UINT32_MAX);
        if (n > 3) x[3] = (x[3] & ~(uint64_t)UINT32_MAX) | most;
        uint32_t m = leat__text_c.keep_low(x, n, most, a);
        assert_int_equal(fast->keep_low(x, n, most, b), m);
        if (m > 0) assert_memory_equal(a, b, m * 8);
        for (uint32_t i = 0; i < m; i++) assert_true((uint32_t)a[i] < most);
    }
}

static void check_open(const leat__text_dsp *fast)
{
    static const uint32_t counts[] = {1, 2, 31, 33, 112, 260, 512, 513, LEAT__SKETCH_MAX};
    uint64_t x[100], a[108], b[108];
    uint32_t least[LEAT__SKETCH_MAX];
    leat__rng r;
    leat__rng_init(&r, 5, 0, 0, 0);
    for (uint32_t n = 0; n <= 100; n++) {
        uint32_t k = counts[n % LEAT_COUNT(counts)], want = 0;
        uint32_t most = n % 4 ? (uint32_t)leat__rng_u64(&r) : UINT32_MAX;
        for (uint32_t i = 0; i < LEAT__SKETCH_MAX; i++)
            least[i] = leat__rng_below(&r, 3) ? UINT32_MAX : (uint32_t)leat__rng_u64(&r);
        for (uint32_t i = 0; i < n; i++) x[i] = i % 7 ? leat__rng_u64(&r) : i % 2 ? UINT64_MAX : i;
        for (uint32_t i = 0; i < n; i++) want += least[(x[i] >> 32) * k >> 32] >= most;
        assert_int_equal(leat__text_c.keep_open(x, n, k, least, most, a), want);
        assert_int_equal(fast->keep_open(x, n, k, least, most, b), want);
        if (want > 0) assert_memory_equal(a, b, want * 8);
    }
}

static void check_variant(const leat__text_dsp *fast)
{
    leat__scorer a, b;
    leat__sketcher x, y;
    leat__rng r;
    assert_ok(leat__scorer_init(&a, NULL));
    assert_ok(leat__scorer_init(&b, NULL));
    assert_ok(leat__sketcher_init(&x, 5, 0, NULL));
    assert_ok(leat__sketcher_init(&y, 5, 0, NULL));
    /* lays out the arrays */
    assert_ok(leat__scorer_run(&a, 0, NULL));
    assert_ok(leat__scorer_run(&b, 0, NULL));
    leat__rng_init(&r, 1, 0, 0, 0);
    for (int i = 0; i < 600; i++) {
        size_t n = random_text(&r, a.text, i < 500 ? 1000 : 60000);
        memcpy(b.text, a.text, n);
        memcpy(x.text, a.text, n);
        memcpy(y.text, a.text, n);
        leat__text_c.score(&a, n);
        fast->score(&b, n);
        for (unsigned k = 0; k < LEAT__COUNT_TOTAL; k++)
            if (((uint32_t *)&a.counts)[k] != ((uint32_t *)&b.counts)[k])
                fail_msg("text %d: %s: c %u, %s %u", i, leat__count_name(k), ((uint32_t *)&a.counts)[k],
                         fast->isa, ((uint32_t *)&b.counts)[k]);
        x.words = y.words = i % 4 ? 5 : 2;
        check_characters(fast, a.text, n, (uint32_t[]){24, 24, 1, 7, 8, 13, 16, 33}[i % 8]);
        uint32_t m = leat__text_c.shingles(&x, n);
        assert_int_equal(fast->shingles(&y, n), m);
        if (m > 0) assert_memory_equal(x.shingle, y.shingle, m * 8);
        leat__text_size s, t;
        leat__text_c.measure(a.text, n, &s);
        fast->measure(a.text, n, &t);
        assert_memory_equal(&s, &t, sizeof s);
        assert_true(s.words >= a.word_count && s.newlines >= a.newline_count &&
                    s.candidates >= a.candidate_count);
    }
    leat__scorer_reset(&a);
    leat__scorer_reset(&b);
    leat__sketcher_reset(&x);
    leat__sketcher_reset(&y);
    assert_no_leaks();
}

static void variants_agree(void **state)
{
    check_open(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_open(leat__text_dsp_for(leat__cpu_detected()));
    check_kept(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_kept(leat__text_dsp_for(leat__cpu_detected()));
    check_variant(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_variant(leat__text_dsp_for(leat__cpu_detected()));
}

static void check_strings(const leat__text_dsp *fast)
{
    uint8_t text[400], a[400], b[400];
    leat__rng r;
    leat__rng_init(&r, 2, 0, 0, 0);
    for (int i = 0; i < 2000; i++) {
        size_t stop = leat__rng_below(&r, 200);
        for (size_t k = 0; k < sizeof text; k++) text[k] = (uint8_t)(0x23 + leat__rng_below(&r, 0x38));
        text[stop] = "\"\\\n\0\x1f"[leat__rng_below(&r, 5)];
        text[stop + 1] = 'u'; /* other escapes do not end a copy */
        uint8_t *da = a, *db = b;
        assert_ptr_equal(leat__text_c.string_stop(text), text + stop);
        assert_ptr_equal(fast->string_stop(text), text + stop);
        assert_ptr_equal(leat__text_c.string_copy(text, &da), text + stop);
        assert_ptr_equal(fast->string_copy(text, &db), text + stop);
        assert_int_equal(da - a, stop);
        assert_int_equal(db - b, stop);
        assert_memory_equal(a, b, stop);
    }
}

static void check_escapes(const leat__text_dsp *dsp)
{
    static const char two[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    uint8_t text[600], want[400], out[600];
    leat__rng r;
    leat__rng_init(&r, 3, 0, 0, 0);
    for (int i = 0; i < 2000; i++) {
        size_t n = 0, len = 0, some = leat__rng_below(&r, 12) + 1;
        memset(text, 0, sizeof text);
        while (len < 200) {
            size_t k = leat__rng_below(&r, 8);
            bool escape = leat__rng_below(&r, some) == 0;
            want[len++] = escape ? (uint8_t)means[k] : 'x';
            if (escape) text[n++] = '\\';
            text[n++] = escape ? (uint8_t)two[k] : 'x';
        }
        memcpy(text + n, i % 2 ? "\"" : "\\x", 2); /* the second one is not an escape */
        uint8_t *d = out;
        assert_ptr_equal(dsp->string_copy(text, &d), text + n);
        assert_int_equal(d - out, len);
        assert_memory_equal(out, want, len);
    }
}

static void escapes_are_replaced(void **state)
{
    check_escapes(&leat__text_c);
    check_escapes(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_escapes(leat__text_dsp_for(leat__cpu_detected()));
}

/* Valid text with wrong bytes at random positions: every variant finds the first one. */
static void check_utf8(const leat__text_dsp *fast)
{
    static const uint32_t codes[] = {'x',    'y',    0x7f,   0x80,   0xe9,    0x7ff,   0x800,
                                     0x20ac, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    static const uint8_t bytes[] = {'x',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1,
                                    0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
    uint8_t text[300];
    leat__rng r;
    leat__rng_init(&r, 4, 0, 0, 0);
    for (int i = 0; i < 40000; i++) {
        size_t n = 0, most = leat__rng_below(&r, 200), ascii = leat__rng_below(&r, 4);
        while (n < most)
            n += leat__utf8_encode(codes[leat__rng_below(&r, ascii ? LEAT_COUNT(codes) : 3)], text + n);
        assert_int_equal(leat__utf8_check(text, n), n);
        assert_int_equal(fast->utf8_check(text, n), n);
        for (uint32_t k = 0; k < 2 && n > 0; k++)
            text[leat__rng_below(&r, n)] = bytes[leat__rng_below(&r, LEAT_COUNT(bytes))];
        n -= n > 0 ? leat__rng_below(&r, LEAT_MIN(n, 4)) : 0; /* perhaps inside a code point */
        assert_int_equal(fast->utf8_check(text, n), leat__utf8_check(text, n));
    }
}

static void utf8_is_checked_alike(void **state)
{
    check_utf8(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_utf8(leat__text_dsp_for(leat__cpu_detected()));
}

static void strings_end_at_the_same_place(void **state)
{
    check_strings(leat__text_dsp_for(leat__cpu_detected() & LEAT__CPU_AVX2));
    check_strings(leat__text_dsp_for(leat__cpu_detected()));
}

/* Joins the words with the tables alone, of the whole text at once. */
static uint32_t join_slowly(leat__minhasher *m, const uint8_t *text, size_t len, bool english, uint8_t *out,
                            uint32_t *start)
{
    leat__word_list list = {.out = out, .start = start};
    if (english) leat__english_split(&list, m->folded, leat__fold_simplify(text, len, 0, len, m->folded));
    else leat__fold_lower_words(&list, text, len, 0, len, m->folded);
    start[list.count] = (uint32_t)list.bytes;
    return list.count;
}

static void check_words(leat__minhasher *m, const uint8_t *text, size_t len, bool english)
{
    const uint32_t keep[] = {0, LEAT__CPU_AVX2, UINT32_MAX};
    static uint8_t out[1 << 18];
    static uint32_t start[1 << 16];
    uint32_t words = join_slowly(m, text, len, english, out, start);
    for (size_t i = 0; i < LEAT_COUNT(keep); i++) {
        const leat__text_dsp *dsp = leat__text_dsp_for(leat__cpu_detected() & keep[i]);
        memcpy(m->text, text, len);
        assert_int_equal(english ? dsp->join_english(m, len) : dsp->join_lower(m, len), words);
        assert_memory_equal(m->start, start, (words + 1) * sizeof *start);
        if (words > 0) assert_memory_equal(m->joined, out, start[words]);
    }
}

static void words_are_those_of_the_tables(void **state)
{
    static const char *const odd[] = {
        " ",       "don't",
        "dont",    "SHOULDNTVE",
        "1,000.5", "12km",
        "5",       ".",
        ",",       "3.",
        "x9y",     "Gr\u00f6\u00dfe",
        "\u03a3",  "A\u03a3",
        "\u00a9",  "\u3000",
        "\u2019s", "\u2260",
        "id",      "\x1c",
        "\t",      "\ud55c\uad6d",
        "\u0301",  "AaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaB",
        "I",       "z"};
    leat__minhasher m;
    leat__rng r;
    uint8_t text[8192];
    leat__rng_init(&r, 3, 0, 0, 0);
    assert_ok(leat__minhasher_init(&m, LEAT__MINHASH_DATATROVE, 5, 0, 8, NULL));
    for (int i = 0; i < 400; i++) {
        size_t n = 0, want = leat__rng_below(&r, i < 300 ? 300 : sizeof text - 200);
        uint64_t blanks = leat__rng_below(&r, 4);
        while (n < want) {
            const char *p = odd[leat__rng_below(&r, LEAT_COUNT(odd))];
            memcpy(text + n, p, strlen(p));
            n += strlen(p);
            if (leat__rng_below(&r, 4) < blanks) text[n++] = ' ';
        }
        check_words(&m, text, n, true);
        check_words(&m, text, n, false);
    }
    leat__minhasher_reset(&m);
    assert_no_leaks();
}

static void masked_cpus_run_plain_c(void **state)
{
    assert_ptr_equal(leat__text_dsp_for(0), &leat__text_c);
    assert_string_equal(leat__text_dsp_for(0)->isa, "c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_agree),
        cmocka_unit_test(strings_end_at_the_same_place),
        cmocka_unit_test(escapes_are_replaced),
        cmocka_unit_test(utf8_is_checked_alike),
        cmocka_unit_test(words_are_those_of_the_tables),
        cmocka_unit_test(masked_cpus_run_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
