/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <leat/leat.h>

static void numbers_and_text_agree(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", LEAT_VERSION_MAJOR, LEAT_VERSION_MINOR, LEAT_VERSION_PATCH);
    assert_string_equal(text, LEAT_VERSION);
    assert_string_equal(leat_version(), LEAT_VERSION);
    assert_int_equal(leat_version_number(), LEAT_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_and_text_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
