/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include "cli_config.h"

static const leat__param table[] = {
    CLI_INT("count", 0, "7", 1, 100, "N", "how many"),
    CLI_BYTES("max-size", 0, "1K", 1, 1e12, "how much"),
    CLI_STRING("names", 0, NULL, "NAMES", "which"),
    CLI_FLAG("force", 'f', "really"),
    CLI_PATH("output", 'o', NULL, NULL, "where to"),
    CLI_PATH("config", 0, NULL, "FILE", "this file"),
    CLI_END,
};
static const cli_command command = {
    .name = "try", .options = {{"A", table}}, .required = "output", .config = true};

static cli_line line;
static cli_config config;

static int parse(const char *text, leat_error *err)
{
    static char option[] = "--count", nine[] = "9";
    static char *words[] = {option, nine, NULL};
    memset(err, 0, sizeof *err);
    cli_config_reset(&config);
    assert_int_equal(cli_parse(&line, &command, 2, words, err), 0);
    return cli_config_parse(&config, &line, "f.yaml", text, strlen(text), err);
}

static const leat__value *value(const char *name)
{
    return &line.values[cli_line_find(&line, name)];
}

static void options_are_read(void **state)
{
    leat_error err;
    assert_int_equal(parse("count: 5\nmax_size: 2K\nforce: yes\nnames: [a, 'b c', 3]\n"
                           "output: out\n",
                           &err),
                     0);
    assert_int_equal(value("count")->i, 9); /* the command line wins */
    assert_int_equal(value("max-size")->u, 2048);
    assert_true(value("force")->i && value("force")->set);
    assert_true(line.typed[cli_line_find(&line, "count")]);
    assert_false(line.typed[cli_line_find(&line, "force")]);
    assert_string_equal(value("names")->s, "a,b c,3");
    assert_int_equal(cli_check_required(&line, &err), 0);
    assert_int_equal(parse("names:\n  x.min: 1\n  y.max: off\n", &err), 0);
    assert_string_equal(value("names")->s, "x.min=1,y.max=off");
    assert_int_equal(cli_check_required(&line, &err), LEAT_EINVAL);
    assert_int_equal(parse("", &err), 0);
    assert_int_equal(parse("# nothing\n", &err), 0);
    assert_int_equal(parse("---\nforce: yes\n...\n# the end\n", &err), 0);
    assert_false(value("names")->set);
}

static void expect_wrong(const char *text, const char *message)
{
    leat_error err;
    assert_int_equal(parse(text, &err), LEAT_EINVAL);
    if (!strstr(err.message, message)) fail_msg("%s", err.message);
}

static void wrong_files_are_refused(void **state)
{
    expect_wrong("names: a\nforse: yes\n", "f.yaml:2: unknown key 'forse'; did you mean 'force'?");
    expect_wrong("json: yes\n", "unknown key 'json'"); /* this command has no --json */
    expect_wrong("quiet: yes\n", "f.yaml:1: 'quiet' works on the command line only");
    expect_wrong("config: x\n", "f.yaml:1: 'config' works on the command line only");
    expect_wrong("count: 0\n", "f.yaml:1: count: 0 is out of range"); /* although the command line wins */
    expect_wrong("count: [1]\n", "'count' needs a single value");
    expect_wrong("output: [a]\n", "'output' needs a single value");
    expect_wrong("names:\n", "has no value");
    expect_wrong("names: []\n", "has no value");
    expect_wrong("names: [[a]]\n", "an element of a list");
    expect_wrong("names: ['a,b']\n", "an element of a list");
    expect_wrong("names: {a: [b]}\n", "an element of a list");
    expect_wrong("names: \"a\\0b\"\n", "has no value");
    expect_wrong("force: yes\nforce: no\n", "f.yaml:2: 'force' appears twice");
    expect_wrong("max_size: 1\nmax-size: 1\n", "appears twice");
    expect_wrong("- a\n", "'option: value'");
    expect_wrong("a: [\n", "f.yaml:");
    expect_wrong("names: a\n---\nforce: yes\n", "f.yaml:3: a second document begins here");
    expect_wrong("names: a\n---\n: [\n", "f.yaml:");
    expect_wrong("? [a]\n: b\n", "a key must be the name of an option");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(wrong_files_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cli_config_reset(&config);
    return failed;
}
