/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares with values of Python's str.lower and datatrove's simplify_text.
 */
#include "leat_test.h"

#include "text/fold.h"

static uint8_t out[4096];

static void lowers(const char *text, const char *want)
{
    size_t n = leat__fold_lower((const uint8_t *)text, strlen(text), 0, strlen(text), out);
    out[n] = 0;
    assert_string_equal((char *)out, want);
}

static void simplifies(const char *text, const char *want)
{
    size_t n = leat__fold_simplify((const uint8_t *)text, strlen(text), 0, strlen(text), out);
    assert_true(n <= LEAT__FOLD_GROWTH * strlen(text));
    out[n] = 0;
    assert_string_equal((char *)out, want);
}

static void lower_case(void **state)
{
    lowers("", "");
    lowers("  One\tTWO\u3000\n Three ", "one two three");
    lowers("GRÖSSE ẞ Ⱥ", "grösse ß ⱥ");
    lowers("İ", "i\u0307");
    /* a sigma is final after a letter and before none; an apostrophe does not count */
    lowers("ΟΔΟΣ ΣΑΣ ΑΣ' ΑΣ'Α Σ", "οδος σας ας' ασ'α σ");
}

static void simple_text(void **state)
{
    simplifies("", "");
    simplifies(" ... !?", "");
    simplifies("Don't STOP: now", "don t stop now");
    simplifies("1 12.5 1,000,000 1.2.3 v2 ٣٫٥ １２", "0 0 0 0 0 0 v0 0 0");
    simplifies("1. 2, .5", "0 0 0");
    simplifies("École café İstanbul x\u0301\u0302y", "ecole cafe istanbul xy");
    simplifies("a \u0301 b", "a b");
    simplifies("한", "\u1112\u1161\u11ab");
    simplifies("가", "\u1100\u1161");
    simplifies("x≠y \u037e", "x=y ;");
    simplifies("a\x7f"
               "b\x01"
               "c",
               "a b c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lower_case), cmocka_unit_test(simple_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
