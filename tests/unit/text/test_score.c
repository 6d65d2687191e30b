/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/score.h"

/* Large and small texts alternate, so that the arrays are laid out again. */
static void sizes_may_change(void **state)
{
    leat__scorer s;
    leat_error err;
    assert_ok(leat__scorer_init(&s, &err));
    for (int i = 0; i < 6; i++) {
        size_t n = i % 2 ? 1u << 20 : 1000;
        assert_ok(leat__scorer_reserve(&s, n, &err));
        for (size_t k = 0; k < n; k++) s.text[k] = k % 2 ? '\n' : 'a';
        assert_ok(leat__scorer_run(&s, n, &err));
        assert_int_equal(s.counts.words, n / 2);
        assert_int_equal(s.counts.lines, n / 2);
        assert_int_equal(s.counts.unique_lines, 1);
        assert_int_equal(s.counts.dup_5gram_chars, n / 2 % 5 == 0 ? n / 2 - 5 : s.counts.dup_5gram_chars);
        assert_true(s.slab_bytes + s.text_slab_bytes <= leat__scorer_need(1u << 20));
    }
    leat__scorer_reset(&s);
    assert_no_leaks();
}

static void too_large_is_refused(void **state)
{
    leat__scorer s;
    leat_error err;
    assert_ok(leat__scorer_init(&s, &err));
    assert_code(LEAT_ELIMIT, leat__scorer_reserve(&s, (size_t)LEAT__TEXT_MAX + 1, &err));
    assert_contains(err.message, "larger");
    leat__scorer_reset(&s);
    assert_no_leaks();
}

static void counts_have_names(void **state)
{
    for (unsigned i = 0; i < LEAT__COUNT_TOTAL; i++) {
        assert_true(leat__count_name(i)[0] != 0);
        assert_true(leat__count_help(i)[0] != 0);
    }
    assert_string_equal(leat__count_name(LEAT__COUNT_TOTAL), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_may_change),
        cmocka_unit_test(too_large_is_refused),
        cmocka_unit_test(counts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
