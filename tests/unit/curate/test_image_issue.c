/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "curate/image_issue.h"

static void limits_are_parsed(void **state)
{
    leat__issue_limits l;
    leat_error err = {0};
    assert_ok(leat__issue_limits_parse(&l, NULL, NULL));
    assert_ok(leat__issue_limits_parse(&l, "dark=40,grey=off", NULL));
    assert_true(l.set[LEAT__ISSUE_DARK] && l.limit[LEAT__ISSUE_DARK] == 40);
    assert_true(l.off[LEAT__ISSUE_GREY] && !l.set[LEAT__ISSUE_BLURRY]);
    assert_code(LEAT_EINVAL, leat__issue_limits_parse(&l, "drak=40", &err));
    assert_contains(err.message, "did you mean dark?");
    assert_code(LEAT_EINVAL, leat__issue_limits_parse(&l, "dark=much", NULL));
    assert_code(LEAT_EINVAL, leat__issue_limits_parse(&l, "dark", NULL));
    assert_code(LEAT_EINVAL, leat__issue_limits_parse(&l, "truncated=1", NULL)); /* has no score */
    assert_code(LEAT_EINVAL, leat__issue_limits_parse(&l, "=,,", NULL));
}

static void limits_adapt(void **state)
{
    leat__issue_limits l = {0};
    double scores[1000];
    for (int i = 0; i < 1000; i++) scores[i] = 200 + i % 40; /* an ordinary data set: outliers begin at 92 */
    leat__issue_limits_adapt(&l, LEAT__ISSUE_DARK, scores, 1000);
    assert_true(l.limit[LEAT__ISSUE_DARK] > 60 && l.limit[LEAT__ISSUE_DARK] <= 110);
    for (int i = 0; i < 1000; i++) scores[i] = i % 256; /* all values occur: only surely dark images count */
    leat__issue_limits_adapt(&l, LEAT__ISSUE_DARK, scores, 1000);
    assert_true(l.limit[LEAT__ISSUE_DARK] == 60);
    for (int i = 0; i < 1000; i++) scores[i] = 0; /* a grey data set has no grey outliers */
    leat__issue_limits_adapt(&l, LEAT__ISSUE_GREY, scores, 1000);
    assert_true(l.off[LEAT__ISSUE_GREY]);
    for (int i = 0; i < 1000; i++) scores[i] = i < 3 ? 100 : 32;
    leat__issue_limits_adapt(&l, LEAT__ISSUE_LARGE, scores, 1000);
    assert_true(l.limit[LEAT__ISSUE_LARGE] == 64);
    l.set[LEAT__ISSUE_LARGE] = true;
    l.limit[LEAT__ISSUE_LARGE] = 7;
    leat__issue_limits_adapt(&l, LEAT__ISSUE_LARGE, scores, 1000);
    assert_true(l.limit[LEAT__ISSUE_LARGE] == 7);
    for (int i = 0; i < 1000; i++)
        scores[i] = i % 10 == 0 ? (double)NAN : 500 + i % 40; /* not all have one */
    leat__issue_limits_adapt(&l, LEAT__ISSUE_BLURRY, scores, 1000);
    assert_true(l.limit[LEAT__ISSUE_BLURRY] == 100 && !l.off[LEAT__ISSUE_BLURRY]);
    leat__issue_limits_adapt(&l, LEAT__ISSUE_BRIGHT, scores, 0);
    assert_true(l.limit[LEAT__ISSUE_BRIGHT] == 235);
}

static void bits_compare_scores(void **state)
{
    leat__issue_limits l = {0};
    double score[LEAT__LOOKS] = {0};
    for (int i = LEAT__ISSUE_SCORED; i < LEAT__ISSUES; i++) l.limit[i] = leat__issue_kinds[i].sure;
    score[LEAT__LOOK_P99] = 59;
    score[LEAT__LOOK_CONTRAST] = 50;
    score[LEAT__LOOK_BLUR] = score[LEAT__LOOK_SATURATION] = 50;
    score[LEAT__LOOK_ENTROPY] = 6;
    score[LEAT__LOOK_SIZE] = 300;
    score[LEAT__LOOK_ASPECT] = 5;
    score[LEAT__LOOK_QUALITY] = -1; /* not a JPEG */
    const uint64_t dark = UINT64_C(1) << LEAT__ISSUE_DARK, odd = UINT64_C(1) << LEAT__ISSUE_ODD_ASPECT;
    assert_true(leat__issue_bits(&l, score) == (dark | odd));
    l.off[LEAT__ISSUE_DARK] = true;
    assert_true(leat__issue_bits(&l, score) == odd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_parsed),
        cmocka_unit_test(limits_adapt),
        cmocka_unit_test(bits_compare_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
