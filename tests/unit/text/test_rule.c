/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "text/rule.h"

static void profiles_have_rules(void **state)
{
    leat__profile p;
    for (unsigned i = 0; leat__profile_at(i, &p); i++) {
        leat__rule_set set = {0};
        assert_true(p.source[0] != 0);
        assert_ok(leat__rule_set_profile(&set, p.name, NULL));
        assert_true(set.count >= 2);
        assert_string_equal(set.rule[0].profile, p.name);
    }
    leat__rule_set set = {0};
    leat_error err;
    assert_code(LEAT_EINVAL, leat__rule_set_profile(&set, "gopher@papr", &err));
    assert_contains(err.message, "gopher@paper?");
    assert_code(LEAT_EINVAL, leat__rule_set_profile(&set, "c4@paper, gopher@paper,c4@paper", &err));
    assert_contains(err.message, "\"c4@paper\" appears twice");
}

static void thresholds_change(void **state)
{
    leat__rule_set set = {0};
    leat_error err;
    char name[64];
    assert_ok(leat__rule_set_profile(&set, "gopher@paper,fineweb@paper", &err));
    unsigned n = set.count;
    assert_ok(leat__rule_set_change(&set, "words.min=20,words.max=off,urls.max=3", &err));
    assert_int_equal(set.count, n + 1);
    assert_string_equal(leat__rule_name(&set.rule[n], name, sizeof name), "urls.max");
    assert_true(set.rule[0].threshold == 20);
    assert_false(set.rule[1].on);
    static const char *const bad[] = {"words",         "words.min",   "wrds.min=2",
                                      "words.least=2", "words.min=x", "urls.min=off"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_code(LEAT_EINVAL, leat__rule_set_change(&set, bad[i], &err));
    assert_code(LEAT_EINVAL, leat__rule_set_change(&set, "words.min=5,words.max=9,words.min=off", &err));
    assert_contains(err.message, "\"words.min\" appears twice");
    assert_code(LEAT_EINVAL, leat__rule_set_change(&set, "words.min=5, words.min=off", &err));
    assert_ok(leat__rule_set_change(&set, " words.min=21 , words.max=off ", &err));
    assert_true(set.rule[0].threshold == 21);
}

static void changes_name_rules(void **state)
{
    assert_true(leat__rule_changes_have("words.min=3", "words.min"));
    assert_true(leat__rule_changes_have("words.max=3,lang_score.min=off", "lang_score.min"));
    assert_false(leat__rule_changes_have("words.max=3", "words.min"));
    assert_false(leat__rule_changes_have("words.minimum=3", "words.min"));
    assert_false(leat__rule_changes_have("", "words.min"));
}

static void judging(void **state)
{
    leat__rule_set set = {0};
    leat__counts c = {
        .words = 49, .chars = 300, .word_chars = 250, .alpha_words = 49, .stop_words_distinct = 2};
    uint8_t failed[LEAT__RULES_MAX];
    assert_ok(leat__rule_set_profile(&set, "gopher@paper", NULL));
    assert_int_equal(leat__rule_set_judge(&set, &c, failed), 0);
    assert_int_equal(failed[0], 1);
    assert_int_equal(failed[1], 0);
    c.words = 50;
    assert_int_equal(leat__rule_set_judge(&set, &c, NULL), -1);
    c.hashes = 6;
    assert_int_equal(leat__rule_set_judge(&set, &c, NULL), 4);
    assert_ok(leat__rule_set_change(&set, "hash_ratio.max=0.12", NULL));
    assert_int_equal(leat__rule_set_judge(&set, &c, NULL), -1);
}

static void bounds(void **state)
{
    leat__rule r = {.threshold = 2};
    static const bool keeps[4][3] = {{0, 1, 1}, {1, 1, 0}, {0, 0, 1}, {1, 0, 0}};
    for (int b = 0; b < 4; b++)
        for (int v = 1; v <= 3; v++) {
            r.bound = (uint8_t)b;
            assert_int_equal(leat__rule_keeps(&r, v), keeps[b][v - 1]);
        }
}

/* Division by zero: NeMo's ratios are 1, the others 0; with too few words for n-grams, the score is 1. */
static void empty_documents(void **state)
{
    leat__counts c = {0};
    assert_true(leat__score_value((unsigned)leat__score_find("space_ratio", 11), &c) == 1);
    assert_true(leat__score_value((unsigned)leat__score_find("top_2gram_ratio", 15), &c) == 0);
    assert_true(leat__score_value((unsigned)leat__score_find("nemo_dup_5gram_ratio", 20), &c) == 1);
    c = (leat__counts){.chars = 10, .newlines = 2, .dup_line_chars = 4, .nemo_alnum = 8};
    assert_true(leat__score_value((unsigned)leat__score_find("dup_line_chars_ratio", 20), &c) == .5);
    assert_true(leat__score_value((unsigned)leat__score_find("non_alnum_ratio", 15), &c) == 1 - .8);
    assert_int_equal(leat__score_find("nothing", 7), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_have_rules),
        cmocka_unit_test(thresholds_change),
        cmocka_unit_test(changes_name_rules),
        cmocka_unit_test(judging),
        cmocka_unit_test(bounds),
        cmocka_unit_test(empty_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
