/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/unicode.h"

static void properties_are_those_of_python(void **state)
{
    assert_int_equal(leat__unicode_of('a'), LEAT__UNI_ALPHA);
    assert_true(leat__unicode_of(0xa0) & LEAT__UNI_SPACE);
    assert_false(leat__unicode_of(0x200b) & LEAT__UNI_SPACE);
    assert_true(leat__unicode_of(0x2028) & LEAT__UNI_BREAK);
    assert_true(leat__unicode_of(0x1c) & LEAT__UNI_SPACE);
    assert_true(leat__unicode_of(0x416) & LEAT__UNI_ALPHA);
    assert_true(leat__unicode_of(0x663) & LEAT__UNI_DIGIT);
    assert_true(leat__unicode_of(0x3002) & LEAT__UNI_TERMINAL);
    assert_true(leat__unicode_of(0x2022) & LEAT__UNI_BULLET);
    assert_int_equal(leat__unicode_of(0x110000), 0);
}

/* Every code point is encoded and decoded, and the check accepts all encoded ones except surrogates. */
static void all_code_points(void **state)
{
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t b[4] = {0};
        uint32_t n = leat__utf8_encode(c, b), len;
        assert_int_equal(leat__utf8_decode(b, &len), c);
        assert_int_equal(len, n);
        bool surrogate = c >= 0xd800 && c < 0xe000;
        assert_int_equal(leat__utf8_check(b, n), surrogate ? 0 : n);
        if (n > 1) assert_int_equal(leat__utf8_check(b, n - 1), 0);
    }
}

static void invalid_bytes_are_located(void **state)
{
    static const char *const bad[] = {
        "\x80",         "\xc0\xaf",         "\xc1\xbf",         "\xe0\x80\xaf",
        "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff",         "\xe2\x82",         "\xe2(\xa1",        "\xc3("};
    char text[64];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t before = 0; before < 20; before++) {
            memset(text, 'x', before);
            memcpy(text + before, bad[i], strlen(bad[i]));
            size_t n = before + strlen(bad[i]);
            assert_int_equal(leat__utf8_check((uint8_t *)text, n), before);
        }
    assert_int_equal(leat__utf8_check((const uint8_t *)"", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(properties_are_those_of_python),
        cmocka_unit_test(all_code_points),
        cmocka_unit_test(invalid_bytes_are_located),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
