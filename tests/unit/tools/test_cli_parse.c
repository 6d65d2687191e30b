/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cli_parse.h"

static const leat__param first[] = {
    CLI_INT("count", 'c', "7", 1, 100, "N", "how many"),
    CLI_BYTES("memory", 'm', NULL, 1024, 1e12, "how much"),
    CLI_STRING("text", 't', "some", NULL, "words"),
    CLI_END,
};
static const leat__param second[] = {
    CLI_CHOICE("mode", 0, "raw", "keep|raw", "which"),
    CLI_FLAG("force", 'f', "really"),
    CLI_PATH("output", 'o', NULL, NULL, "where to"),
    CLI_END,
};
static const cli_key keys[] = {{"x", "y"}, {NULL, NULL}};
static const cli_arg_spec args[] = {
    {.name = "KIND", .help = "what", .choices = "exact|fuzzy"},
    {.name = "FILE", .help = "from where", .many = true},
    {.name = NULL},
};
static const cli_command command = {
    .name = "try",
    .args = args,
    .options = {{"A", first}, {"B", second}},
    .json = keys,
    .required = "output",
};
static const cli_command bare = {.name = "bare"};

#define WORDS_MAX 16

/* argv belongs to the line: kept here for one test at a time. */
static char *words[WORDS_MAX];

static int parse_words(cli_line *line, const cli_command *cmd, leat_error *err, const char *const *list)
{
    int n = 0;
    for (; list[n]; n++) words[n] = (char *)(uintptr_t)list[n];
    words[n] = NULL;
    memset(err, 0, sizeof *err);
    return cli_parse(line, cmd, n, words, err);
}

#define PARSE(line, cmd, err, ...) parse_words(line, cmd, err, (const char *const[]){__VA_ARGS__, NULL})

static const leat__value *value(const cli_line *line, const char *name)
{
    const int i = cli_line_find(line, name);
    assert_true(i >= 0);
    return &line->values[i];
}

static void defaults_are_values_not_given(void **state)
{
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &command, &err, "exact", "f", "-o", "x"), 0);
    assert_int_equal(value(&line, "count")->i, 7);
    assert_false(value(&line, "count")->set);
    assert_int_equal(value(&line, "memory")->u, 0);
    assert_string_equal(value(&line, "text")->s, "some");
    assert_int_equal(value(&line, "mode")->i, 1);
    assert_string_equal(value(&line, "mode")->s, "raw");
    assert_int_equal(value(&line, "force")->i, 0);
    assert_true(value(&line, "output")->set);
    assert_false(line.help);
}

static void options_and_arguments_mix(void **state)
{
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &command, &err, "-fc", "3", "fuzzy", "--output=a=b", "one", "--memory",
                           "2K", "--", "--two", "-"),
                     0);
    assert_int_equal(line.arg_count, 4);
    assert_string_equal(line.args[0], "fuzzy");
    assert_string_equal(line.args[1], "one");
    assert_string_equal(line.args[2], "--two");
    assert_string_equal(line.args[3], "-");
    assert_int_equal(value(&line, "count")->i, 3);
    assert_int_equal(value(&line, "force")->i, 1);
    assert_int_equal(value(&line, "memory")->u, 2048);
    assert_string_equal(value(&line, "output")->s, "a=b");
}

static void the_last_one_wins(void **state)
{
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &command, &err, "exact", "f", "-o1", "-o", "2", "--output=3", "--force",
                           "--no-force", "--mode=keep", "--mode", "raw"),
                     0);
    assert_string_equal(value(&line, "output")->s, "3");
    assert_int_equal(value(&line, "force")->i, 0);
    assert_true(value(&line, "force")->set);
    assert_int_equal(value(&line, "mode")->i, 1);
}

static void wrong_words_are_explained(void **state)
{
    static const struct {
        const char *words[6];
        const char *message;
    } cases[] = {
        {{"exact", "f"}, "--output is missing: where to"},
        {{"-o", "x"}, "KIND is missing: what"},
        {{"exact", "-o", "x"}, "FILE is missing: from where"},
        {{"exat", "f"}, "KIND: 'exat' is not one of exact|fuzzy; did you mean 'exact'?"},
        {{"--cuont", "1"}, "unknown option --cuont; did you mean --count?"},
        {{"--out", "x"}, "unknown option --out; did you mean --output?"},
        {{"--no-forse"}, "unknown option --no-forse; did you mean --no-force?"},
        {{"--no-force=yes"}, "--no-force takes no value"},
        {{"--zzzzzzzz"}, "unknown option --zzzzzzzz"},
        {{"--count"}, "--count needs a value"},
        {{"--count", "--force"}, "--count needs a value (--count=--force if '--force' is meant)"},
        {{"-c", "-f"}, "-c needs a value (-c-f if '-f' is meant)"},
        {{"--count", "0"}, "--count: 0 is out of range (1 to 100)"},
        {{"--count", "-1"}, "--count: -1 is out of range (1 to 100)"},
        {{"-c1e2"}, "-c: '1e2' is not a whole number"},
        {{"--memory", "12Q"}, "--memory: '12Q' is not a size such as 512M or 4G"},
        {{"-fz"}, "unknown option -z"},
    };
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        cli_line line;
        leat_error err;
        assert_int_equal(parse_words(&line, &command, &err, cases[i].words), LEAT_EINVAL);
        assert_string_equal(err.message, cases[i].message);
    }
}

static void help_asks_for_nothing_else(void **state)
{
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &command, &err, "--help"), 0);
    assert_true(line.help);
    assert_int_equal(PARSE(&line, &command, &err, "nonsense", "-h"), 0);
    assert_true(line.help);
    assert_int_equal(PARSE(&line, &command, &err, "exact", "--", "-h"), LEAT_EINVAL);
}

static void json_is_there_when_it_is_documented(void **state)
{
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &bare, &err, NULL), 0);
    assert_int_equal(cli_line_find(&line, "json"), -1);
    assert_int_equal(PARSE(&line, &bare, &err, "--json"), LEAT_EINVAL);
    assert_int_equal(PARSE(&line, &bare, &err, "x"), LEAT_EINVAL);
    assert_string_equal(err.message, "unexpected argument 'x'");
}

static void too_large_a_table_is_refused(void **state)
{
    static leat__param many[CLI_OPTIONS_MAX + 1];
    static char names[CLI_OPTIONS_MAX][8];
    for (size_t i = 0; i < CLI_OPTIONS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        many[i] = (leat__param)CLI_FLAG(names[i], 0, "one of many");
    }
    const cli_command large = {.name = "large", .options = {{"All", many}}};
    cli_line line;
    leat_error err;
    assert_int_equal(PARSE(&line, &large, &err, NULL), LEAT_EINTERNAL);
    many[CLI_OPTIONS_MAX - 4].name = NULL; /* the four common ones fit */
    assert_int_equal(PARSE(&line, &large, &err, NULL), 0);
}

static void commands_are_found(void **state)
{
    static const cli_command a = {.name = "pack"}, b = {.name = "plan"},
                             hidden = {.name = "secret", .hidden = true};
    static const cli_command *const all[] = {&a, &b, &hidden, NULL};
    const char *near = NULL;
    assert_ptr_equal(cli_find(all, "plan", &near), &b);
    assert_ptr_equal(cli_find(all, "secret", &near), &hidden);
    assert_null(cli_find(all, "pakc", &near));
    assert_string_equal(near, "pack");
    assert_null(cli_find(all, "secre", &near));
    assert_null(near);
    assert_null(cli_find(all, "p", &near)); /* two begin like this */
    assert_null(cli_find(all, "", &near));
}

/* Any words at all: parsed or refused with a message, never out of bounds. */
static void any_words_are_survived(void **state)
{
    static const char alphabet[] = "-=co01fh.,jnx\xff\n";
    char text[WORDS_MAX][12];
    const char *list[WORDS_MAX];
    srand(1);
    for (int round = 0; round < 20000; round++) {
        const int n = rand() % (WORDS_MAX - 1);
        for (int i = 0; i < n; i++) {
            const int len = rand() % 11;
            for (int k = 0; k < len; k++) text[i][k] = alphabet[rand() % (int)(sizeof alphabet - 1)];
            text[i][len] = '\0';
            list[i] = text[i];
        }
        list[n] = NULL;
        cli_line line;
        leat_error err;
        const int rc = parse_words(&line, &command, &err, list);
        assert_true(rc == 0 || (rc == LEAT_EINVAL && err.message[0] != '\0'));
        assert_null(strchr(err.message, '\n'));
        assert_true(line.arg_count <= (size_t)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_values_not_given),
        cmocka_unit_test(options_and_arguments_mix),
        cmocka_unit_test(the_last_one_wins),
        cmocka_unit_test(wrong_words_are_explained),
        cmocka_unit_test(help_asks_for_nothing_else),
        cmocka_unit_test(json_is_there_when_it_is_documented),
        cmocka_unit_test(too_large_a_table_is_refused),
        cmocka_unit_test(commands_are_found),
        cmocka_unit_test(any_words_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
