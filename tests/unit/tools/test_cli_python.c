/* SPDX-License-Identifier: Apache-2.0
 *
 * What the Python package gets of a command line.
 */
#include "leat_test.h"

#include <string.h>

#include "base/str.h"
#include "cli_parse.h"
#include "cli_python.h"

extern const cli_command cli_cmd_train;

static void given_options_become_json(void **state)
{
    char *argv[] = {(char *)"a \"b\".leat",  (char *)"--batch-size=64", (char *)"--memory=2K",
                    (char *)"--no-scale-lr", (char *)"--lr=0.5",        (char *)"--precision=32",
                    (char *)"--output=out"};
    cli_line line;
    leat_error err = {0};
    leat__buf json;
    (void)state;
    assert_int_equal(cli_parse(&line, &cli_cmd_train, 7, argv, &err), 0);
    const cli c = {.command = &cli_cmd_train, .line = &line};
    leat__buf_init(&json, LEAT__MEM_MISC, 4096);
    cli_python_json(&c, &json);
    assert_int_equal(leat__buf_status(&json), 0);
    const char *text = leat__buf_str(&json);
    static const char *const parts[] = {"\"args\":[\"a \\\"b\\\".leat\"]",
                                        "\"batch_size\":64",
                                        "\"memory\":2048",
                                        "\"scale_lr\":false",
                                        "\"lr\":0.5",
                                        "\"precision\":\"32\"",
                                        "\"output\":\"out\""};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL) fail_msg("no %s in %s", parts[i], text);
    assert_null(strstr(text, "epochs")); /* a default: the table in Python has it too */
    leat__buf_reset(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_options_become_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
