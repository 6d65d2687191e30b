/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"

static void comparisons(void **state)
{
    (void)state;
    assert_true(leat__str_eq(NULL, NULL));
    assert_false(leat__str_eq(NULL, ""));
    assert_true(leat__str_eq("a", "a"));
    assert_true(leat__str_starts("foobar", "foo"));
    assert_false(leat__str_starts("fo", "foo"));
    assert_true(leat__str_ends("a.tar.gz", ".tar.gz"));
    assert_false(leat__str_ends("gz", ".tar.gz"));
    assert_true(leat__str_ends_nocase("A.JPEG", ".jpeg"));
    assert_false(leat__str_ends_nocase("A.JPG", ".jpeg"));
}

static void natural_order(void **state)
{
    static const char *const sorted[] = {
        "", "A", "a", "a01", "a1", "a2", "a10", "a10b", "a100000000000000000000", "a100000000000000000001",
        "b"};
    (void)state;
    for (size_t i = 0; i < sizeof sorted / sizeof sorted[0]; i++) {
        for (size_t j = 0; j < sizeof sorted / sizeof sorted[0]; j++) {
            int order = leat__str_natural_cmp(sorted[i], sorted[j]);
            if (i < j) assert_true(order < 0);
            if (i == j) assert_true(order == 0);
            if (i > j) assert_true(order > 0);
        }
    }
}

static void whole_numbers(void **state)
{
    int64_t i;
    uint64_t u;
    double d;
    bool b;
    (void)state;
    assert_true(leat__str_to_i64("-42", &i) && i == -42);
    assert_false(leat__str_to_i64(" 1", &i));
    assert_false(leat__str_to_i64("1x", &i));
    assert_false(leat__str_to_i64("", &i));
    assert_false(leat__str_to_i64("-", &i));
    assert_false(leat__str_to_i64("9223372036854775808", &i));
    assert_non_null(strstr(leat__str_i64_fault("9223372036854775808"), "out of range"));
    assert_string_equal(leat__str_i64_fault("-"), "not a whole number");
    assert_string_equal(leat__str_i64_fault("1.5"), "not a whole number");
    assert_true(leat__str_to_u64("18446744073709551615", &u) && u == UINT64_MAX);
    assert_false(leat__str_to_u64("-1", &u));
    assert_false(leat__str_to_u64("18446744073709551616", &u));
    assert_true(leat__str_to_double("1.5e3", &d) && d == 1500);
    assert_true(leat__str_to_double("-.5", &d) && d == -0.5);
    assert_false(leat__str_to_double("nan", &d));
    assert_false(leat__str_to_double("1e999", &d));
    assert_false(leat__str_to_double("1.5.2", &d));
    assert_true(leat__str_to_bool("Yes", &b) && b);
    assert_true(leat__str_to_bool("off", &b) && !b);
    assert_false(leat__str_to_bool("maybe", &b));
}

static void sizes_and_times(void **state)
{
    uint64_t u;
    double d;
    (void)state;
    assert_true(leat__str_to_bytes("512", &u) && u == 512);
    assert_true(leat__str_to_bytes("4K", &u) && u == 4096);
    assert_true(leat__str_to_bytes("4k", &u) && u == 4096);
    assert_true(leat__str_to_bytes("1.5G", &u) && u == UINT64_C(1610612736));
    assert_true(leat__str_to_bytes("2TiB", &u) && u == UINT64_C(2) << 40);
    assert_true(leat__str_to_bytes("10MB", &u) && u == 10000000);
    assert_true(leat__str_to_bytes("7B", &u) && u == 7);
    assert_true(leat__str_to_bytes("9007199254740993", &u) && u == UINT64_C(9007199254740993));
    assert_false(leat__str_to_bytes("-1G", &u));
    assert_false(leat__str_to_bytes("1X", &u));
    assert_false(leat__str_to_bytes("1GG", &u));
    assert_false(leat__str_to_bytes("99999999999E", &u));
    assert_true(leat__str_to_seconds("250ms", &d) && fabs(d - 0.25) < 1e-12);
    assert_true(leat__str_to_seconds("2m", &d) && d == 120);
    assert_true(leat__str_to_seconds("1h", &d) && d == 3600);
    assert_true(leat__str_to_seconds("3", &d) && d == 3);
    assert_false(leat__str_to_seconds("3 s", &d));
}

static void formats_for_people(void **state)
{
    char t[32];
    (void)state;
    assert_string_equal(leat__format_bytes(0, t, sizeof t), "0 B");
    assert_string_equal(leat__format_bytes(1023, t, sizeof t), "1023 B");
    assert_string_equal(leat__format_bytes(1536, t, sizeof t), "1.50 KiB");
    assert_string_equal(leat__format_bytes(UINT64_C(154140672), t, sizeof t), "147 MiB");
    assert_string_equal(leat__format_bytes(UINT64_MAX, t, sizeof t), "16.0 EiB");
    assert_string_equal(leat__format_bytes(10236, t, sizeof t), "10.0 KiB"); /* 9.996 */
    assert_string_equal(leat__as_size(10231).text, "10.0 KiB");              /* 9.991, up */
    assert_string_equal(leat__as_size(1023).text, "1023 B");
    assert_string_equal(leat__as_size(1536).text, "1.50 KiB");
    assert_string_equal(leat__as_size(1537).text, "1.51 KiB"); /* up: a limit of this size is enough */
    assert_string_equal(leat__as_size(UINT64_MAX).text, "16.0 EiB");
    assert_string_equal(leat__format_count(7, t, sizeof t), "7");
    assert_string_equal(leat__format_count(1281167, t, sizeof t), "1.28M");
    assert_string_equal(leat__format_count(43210, t, sizeof t), "43.2k");
    assert_string_equal(leat__format_count(9.994, t, sizeof t), "9.99"); /* three digits as rounded */
    assert_string_equal(leat__format_count(9.996, t, sizeof t), "10.0");
    assert_string_equal(leat__format_count(-99.96, t, sizeof t), "-100");
    assert_string_equal(leat__format_count(999.6, t, sizeof t), "1.00k");
    assert_string_equal(leat__format_count(999999, t, sizeof t), "1.00M");
    assert_string_equal(leat__format_count(INFINITY, t, sizeof t), "-");
    assert_string_equal(leat__format_seconds(0.00012, t, sizeof t), "120us");
    assert_string_equal(leat__format_seconds(0, t, sizeof t), "0us");
    assert_string_equal(leat__format_seconds(1e-7, t, sizeof t), "<1us");
    assert_string_equal(leat__format_seconds(0.25, t, sizeof t), "250ms");
    assert_string_equal(leat__format_seconds(12.34, t, sizeof t), "12.3s");
    assert_string_equal(leat__format_seconds(125, t, sizeof t), "2m05s");
    assert_string_equal(leat__format_seconds(7260, t, sizeof t), "2h01m");
    assert_string_equal(leat__format_seconds(-1, t, sizeof t), "-");
}

static void hints(void **state)
{
    static const char *const words[] = {"pack", "load", "machine", "doctor"};
    (void)state;
    assert_int_equal(leat__str_distance("pack", "pakc"), 1);
    assert_int_equal(leat__str_distance("", "abc"), 3);
    assert_int_equal(leat__str_distance("kitten", "sitting"), 3);
    assert_string_equal(leat__str_nearest("lod", words, 4), "load");
    assert_string_equal(leat__str_nearest("mach", words, 4), "machine");
    assert_string_equal(leat__str_nearest("docter", words, 4), "doctor");
    assert_string_equal(leat__str_nearest("MACHINE", words, 4), "machine");
    assert_null(leat__str_nearest("zzz", words, 4));
    char big[200];
    memset(big, 'a', 199);
    big[199] = 0;
    assert_null(leat__str_nearest(big, words, 4));
}

static void names_are_listed(void **state)
{
    leat__names none = {0}, few = {0}, many = {0}, large = {0};
    char big[200] = "";
    (void)state;
    memset(big, 'a', sizeof big - 1);
    assert_string_equal(leat__names_end(&none), "none");
    leat__names_add(&few, "cat");
    leat__names_add(&few, "dog");
    assert_string_equal(leat__names_end(&few), "cat, dog");
    for (char c[] = "a"; *c < 'a' + 13; ++*c) leat__names_add(&many, c);
    assert_string_equal(leat__names_end(&many), "a, b, c, d, e, f, g, h, i, j and 3 more");
    for (int i = 0; i < 2; i++) leat__names_add(&large, big);
    leat__names_add(&large, "b"); /* names after one that did not fit are only counted */
    assert_non_null(strstr(leat__names_end(&large), "aaa and 2 more"));
}

static void quoted_keys(void **state)
{
    static const char *const of[][2] = {{"a/1.jpg", "a/1.jpg"},
                                        {"\"a\\n1.jpg\"", "a\n1.jpg"},
                                        {"\"\\r\\n\\\"\\\\n\"", "\r\n\"\\n"},
                                        {"\"\"", ""},
                                        {"a\\n1.jpg", "a\\n1.jpg"},
                                        {"\"", "\""},
                                        {"\"a\".jpg", "\"a\".jpg"},
                                        {"\"a\"b\"", "\"a\"b\""},
                                        {"\"a\\t\"", "\"a\\t\""},
                                        {"\"a\\\"", "\"a\\\""}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(of); i++) {
        char line[32];
        snprintf(line, sizeof line, "%s", of[i][0]);
        const size_t len = leat__str_unquote(line, strlen(line));
        assert_int_equal(len, strlen(of[i][1]));
        assert_memory_equal(line, of[i][1], len);
    }
    assert_int_equal(leat__str_unquote(NULL, 0), 0);
}

static void utf8(void **state)
{
    size_t good;
    (void)state;
    assert_true(leat__utf8_valid("plain", 5, &good) && good == 5);
    assert_true(leat__utf8_valid("\xf0\x9f\x8c\x8a", 4, NULL));
    assert_false(leat__utf8_valid("a\xc0\x80", 3, &good)); /* overlong */
    assert_int_equal(good, 1);
    assert_false(leat__utf8_valid("\xed\xa0\x80", 3, NULL)); /* surrogate */
    assert_false(leat__utf8_valid("\xe0\x9f\xbf", 3, NULL));
    assert_false(leat__utf8_valid("\xf0\x8f\xbf\xbf", 4, NULL));
    assert_false(leat__utf8_valid("\xf4\x90\x80\x80", 4, NULL));
    assert_false(leat__utf8_valid("\xe2\x82", 2, NULL)); /* truncated */
    char out[16];
    assert_string_equal(leat__str_shown("caf\xc3\xa9", out, sizeof out), "caf\xc3\xa9");
    assert_string_equal(leat__str_shown("caf\xe9", out, sizeof out), "caf\\xe9");
    assert_string_equal(leat__str_shown("\n\x7f", out, sizeof out), "\\x0a\\x7f");
    assert_string_equal(leat__str_shown("0123456789abcdef", out, sizeof out), "0123456789a");
}

static void paths(void **state)
{
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 100);
    assert_ok(leat__path_join(&b, "a/b", "c"));
    assert_string_equal(b.data, "a/b/c");
    leat__buf_clear(&b);
    assert_ok(leat__path_join(&b, "a/", "c"));
    assert_string_equal(b.data, "a/c");
    leat__buf_clear(&b);
    assert_ok(leat__path_join(&b, "", "c"));
    assert_string_equal(b.data, "c");
    leat__buf_reset(&b);
    assert_string_equal(leat__path_base("a/b.c"), "b.c");
    assert_string_equal(leat__path_base("b.c"), "b.c");
#define SAFE(text) leat__path_relative_safe(text, sizeof(text) - 1)
    assert_true(SAFE("a/b.jpg"));
    assert_true(SAFE("..a/b"));
    assert_false(SAFE(""));
    assert_false(SAFE("/etc/passwd"));
    assert_false(SAFE("../x"));
    assert_false(SAFE("a/../x"));
    assert_false(SAFE("a//x"));
    assert_false(SAFE("a/./x"));
    assert_false(SAFE("a/"));
    assert_false(SAFE("a\0b"));
    assert_true(SAFE("a\\b")); /* a legal name */
    assert_true(SAFE("-a/b\n. .."));
}

static void gigabytes_of_datasets_are_decimal(void **state)
{
    uint64_t n;
    (void)state;
    assert_true(leat__str_to_bytes10("10G", &n) && n == UINT64_C(10000000000));
    assert_true(leat__str_to_bytes10("10GB", &n) && n == UINT64_C(10000000000));
    assert_true(leat__str_to_bytes10("10GiB", &n) && n == UINT64_C(10) << 30);
    assert_true(leat__str_to_bytes10("1.5T", &n) && n == UINT64_C(1500000000000));
    assert_true(leat__str_to_bytes10("4096", &n) && n == 4096);
    assert_false(leat__str_to_bytes10("10Gx", &n));
    assert_true(leat__str_to_bytes("10G", &n) && n == UINT64_C(10) << 30); /* for memory */
}

static void paths_are_words_of_a_shell(void **state)
{
    static const char *const cases[][2] = {{"a/b-1.leat", "a/b-1.leat"},
                                           {"my photos", "'my photos'"},
                                           {"it's", "'it'\\''s'"},
                                           {"", "''"},
                                           {"-x", "./-x"},
                                           {"- x", "./'- x'"},
                                           {"$HOME", "'$HOME'"},
                                           {"a;b", "'a;b'"},
                                           {"~x", "'~x'"},
                                           {"\xc3\xa9", "'\xc3\xa9'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__buf b;
        leat__buf_init(&b, LEAT__MEM_MISC, 1u << 20);
        assert_int_equal(leat__str_shell(&b, cases[i][0]), 0);
        assert_string_equal(leat__buf_str(&b), cases[i][1]);
        leat__buf_reset(&b);
    }
}

static void secrets_of_urls_are_hidden(void **state)
{
    static const char *const cases[][2] = {
        {"http://h/a.leat?sig=S: not found", "http://h/a.leat?…: not found"},
        {"HTTPS://me:P@h:80/a", "HTTPS://…@h:80/a"},
        {"http://me:P@Q@h?s=a/b@c and \"http://h/x#f\".", "http://…@h?… and \"http://h/x#…\"."},
        {"('https://h/a?b=c', s3://b/k?v)", "('https://h/a?…', s3://b/k?v)"},
        {"http://h/a@b", "http://h/a@b"},
        {"http:// ?a", "http:// ?a"},
        {"http://…@h/a?…", "http://…@h/a?…"},
        {"ftp://me:P@h/x?a s3://me:P@b/k?v", "ftp://…@h/x?… s3://…@b/k?v"},
        {"X=ftp://me:P@h", "X=ftp://…@h"},
        {"://me:P@h", "://me:P@h"},
        {"", ""},
    };
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%s", cases[i][0]);
        leat__str_hide_secrets(text, sizeof text);
        assert_string_equal(text, cases[i][1]);
    }
    for (size_t size = 1; size < 40; size++) { /* cut anywhere: within `size`, without a secret */
        snprintf(text, sizeof text, "%.*s", (int)size - 1, "http://h/?S http://h/?S http://h/?S");
        leat__str_hide_secrets(text, size);
        assert_true(strlen(text) < size);
        assert_null(strchr(text, 'S'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_of_urls_are_hidden),
        cmocka_unit_test(paths_are_words_of_a_shell),
        cmocka_unit_test(gigabytes_of_datasets_are_decimal),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(natural_order),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(sizes_and_times),
        cmocka_unit_test(formats_for_people),
        cmocka_unit_test(hints),
        cmocka_unit_test(names_are_listed),
        cmocka_unit_test(quoted_keys),
        cmocka_unit_test(utf8),
        cmocka_unit_test(paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
