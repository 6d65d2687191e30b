/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <leat/text.h>

static void lists(void **state)
{
    const char *name, *help;
    uint32_t n = 0;
    while (leat_text_score(n, &name, &help) == 0) n++;
    assert_true(n > 50);
    assert_ok(leat_text_profile(0, &name, &help));
    assert_string_equal(name, "gopher@paper");
    assert_ok(leat_text_modifier(0, &name, &help));
    assert_code(LEAT_ENOENT, leat_text_profile(1000, &name, &help));
    assert_code(LEAT_ENOENT, leat_text_modifier(1000, &name, &help));
    assert_true(leat_dedup_chance(1, 14, 8) == 1);
}

static void scores_of_a_text(void **state)
{
    leat_text_scorer *s = NULL;
    double out[2];
    leat_error err;
    assert_ok(leat_text_scorer_open(&s, &err));
    assert_ok(leat_text_scorer_run(s, "one two", 7, out, 2, &err));
    assert_true(out[0] == 2);
    assert_code(LEAT_EDATA, leat_text_scorer_run(s, "one \xff", 5, out, 2, &err));
    assert_int_equal(err.offset, 4);
    assert_ok(leat_text_scorer_run(s, "", 0, out, 2, &err));
    leat_text_scorer_close(&s);
    assert_no_leaks();
}

static void signatures_of_a_text(void **state)
{
    leat_text_signer *s = NULL;
    uint64_t out[2];
    uint32_t shingles;
    leat_error err;
    assert_ok(leat_text_signer_open(&s, LEAT_COMPATIBLE_DATATROVE, 2, 0, 2, &err));
    assert_ok(leat_text_signer_run(s, "one two three", 13, out, &shingles, &err));
    assert_int_equal(shingles, 2);
    assert_ok(leat_text_signer_run(s, "one", 3, out, &shingles, &err));
    assert_int_equal(shingles, 0);
    assert_code(LEAT_EDATA, leat_text_signer_run(s, "one \xff", 5, out, &shingles, &err));
    leat_text_signer_close(&s);
    assert_code(LEAT_EINVAL, leat_text_signer_open(&s, LEAT_COMPATIBLE_NONE, 2, 0, 2, &err));
    assert_code(LEAT_EINVAL, leat_text_signer_open(&s, LEAT_COMPATIBLE_DATATROVE, 0, 2, 2, &err));
    assert_code(LEAT_EINVAL, leat_text_signer_open(&s, LEAT_COMPATIBLE_DATASKETCH, 2, 2, 2, &err));
    assert_code(LEAT_EINVAL, leat_text_signer_open(&s, LEAT_COMPATIBLE_DATASKETCH, 2, 0, 2000, &err));
    assert_null(s);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists), cmocka_unit_test(scores_of_a_text),
                                       cmocka_unit_test(signatures_of_a_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
