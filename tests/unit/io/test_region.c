/* SPDX-License-Identifier: Apache-2.0 */
#include "io/region.h"

#include <stdlib.h>

#include "leat_test.h"

static void equal_or_unknown_regions_are_silent(void **state)
{
    char text[LEAT__REGION_TEXT];
    (void)state;
    leat__region_note("b", "us-east-1", "us-east-1", "AWS_REGION");
    leat__region_note("b", "us-east-1", "", "AWS_REGION");
    leat__region_note("b", "", "us-east-1", "AWS_REGION");
    assert_false(leat__region_warning(LEAT__REGION_LOADER, text));
}

static void the_first_crossing_is_told_once_to_each(void **state)
{
    char text[LEAT__REGION_TEXT];
    (void)state;
    unsetenv("AWS_ENDPOINT_URL");
    leat__region_note("photos", "us-west-2", "eu-north-1", "AWS_REGION");
    leat__region_note("other", "us-west-1", "eu-north-1", "AWS_REGION");
    assert_true(leat__region_warning(LEAT__REGION_LOADER, text));
    assert_contains(text, "s3://photos is in region us-west-2");
    assert_contains(text, "eu-north-1 (AWS_REGION)");
    assert_contains(text, "$0.02");
    assert_contains(text, "$0.09");
    assert_false(leat__region_warning(LEAT__REGION_LOADER, text));
    assert_true(leat__region_warning(LEAT__REGION_COMMAND, text));
    assert_false(leat__region_warning(LEAT__REGION_COMMAND, text));
}

static void regions_are_learned_by_endpoint_and_bucket(void **state)
{
    char region[64] = "";
    (void)state;
    leat__region_learn("", "a", "us-west-2");
    leat__region_learn("http://h", "a", "eu-west-1");
    assert_true(leat__region_learned("", "a", region));
    assert_string_equal(region, "us-west-2");
    assert_true(leat__region_learned("http://h", "a", region));
    assert_string_equal(region, "eu-west-1");
    assert_false(leat__region_learned("http://h", "b", region));
    for (int i = 0; i < 40; i++) {
        char name[] = {(char)('A' + i % 26), (char)('a' + i / 26), 0};
        leat__region_learn("", name, "x");
    }
    assert_false(leat__region_learned("", "a", region)); /* only a few are kept */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_or_unknown_regions_are_silent),
        cmocka_unit_test(the_first_crossing_is_told_once_to_each),
        cmocka_unit_test(regions_are_learned_by_endpoint_and_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
