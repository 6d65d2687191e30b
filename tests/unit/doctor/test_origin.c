/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <time.h>

#include <leat/version.h>

#include "doctor/origin.h"

static void it_names_command_machine_date_and_version(void **state)
{
    leat__buf out;
    char year[8];
    time_t now = time(NULL);
    (void)state;
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 4096);
    leat__origin_text(&out);
    assert_contains(leat__buf_str(&out), "test_doctor_origin"); /* the command: this program */
    assert_contains(leat__buf_str(&out), " CPU");
    assert_contains(leat__buf_str(&out), "GiB");
    strftime(year, sizeof year, "%Y-", gmtime(&now));
    assert_contains(leat__buf_str(&out), year);
    assert_contains(leat__buf_str(&out), leat_version());
    assert_null(strchr(leat__buf_str(&out), '\n'));
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_names_command_machine_date_and_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
