/* SPDX-License-Identifier: Apache-2.0
 *
 * Every table of every subcommand: what a compiler cannot see.
 */
#include "leat_test.h"

#include <ctype.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cli_parse.h"

#define COMMAND(name) extern const cli_command cli_cmd_##name;
#include "commands.inc"
#undef COMMAND
static const cli_command *const commands[] = {
#define COMMAND(name) &cli_cmd_##name,
#include "commands.inc"
#undef COMMAND
    NULL,
};

#define CHECK(ok, ...)                                                                                       \
    do {                                                                                                     \
        if (!(ok)) fail_msg(__VA_ARGS__);                                                                    \
    } while (0)

/* ASCII, one line, starts low (a word in capitals such as JPEG is fine), ends without a stop. */
static void check_sentence(const char *command, const char *of, const char *text)
{
    CHECK(text && text[0], "%s: %s has no help", command, of);
    for (const char *s = text; *s; s++)
        CHECK(*s >= ' ' && *s < 0x7f, "%s: %s: not ASCII: %s", command, of, text);
    CHECK(text[strlen(text) - 1] != '.', "%s: %s: ends with a stop", command, of);
    CHECK(!isupper((unsigned char)text[0]) || !islower((unsigned char)text[1]),
          "%s: %s: starts with a capital: %s", command, of, text);
}

static void check_option(const cli_command *c, size_t i, const leat__param *p)
{
    check_sentence(c->name, p->name, p->help);
    for (const char *s = p->name; *s; s++)
        CHECK(islower((unsigned char)*s) || isdigit((unsigned char)*s) || *s == '-',
              "%s: --%s is not in kebab-case", c->name, p->name);
    CHECK(!leat__str_starts(p->name, "no-"), "%s: --%s: --no- is for flags turned off", c->name, p->name);
    const leat__param *other;
    for (size_t k = 0; k < i && (other = cli_option_at(c, k)) != NULL; k++) {
        CHECK(!leat__str_eq(other->name, p->name), "%s: --%s twice", c->name, p->name);
        CHECK(!p->shortcut || other->shortcut != p->shortcut, "%s: -%c twice", c->name, p->shortcut);
    }
    CHECK((p->kind == LEAT__PARAM_CHOICE) == (p->choices != NULL), "%s: --%s: choices", c->name, p->name);
    if (!p->def || (p->kind == LEAT__PARAM_FLAG && !p->def[0])) return;
    leat__value value;
    leat_error err = {0};
    CHECK(leat__param_parse(p, p->name, p->def, &value, &err) == 0, "%s: bad default: %s", c->name,
          err.message);
}

static void tables_are_sound(void **state)
{
    for (size_t i = 0; commands[i]; i++) {
        const cli_command *c = commands[i];
        check_sentence(c->name, "the command", c->summary);
        CHECK(c->run != NULL, "%s: no function", c->name);
        CHECK(c->examples && c->examples->command, "%s: no example", c->name);
        for (const cli_key *k = c->json; k && k->name; k++) check_sentence(c->name, k->name, k->help);
        for (const cli_arg_spec *a = c->args; a && a->name; a++) {
            check_sentence(c->name, a->name, a->help);
            CHECK(!a->many || !a[1].name, "%s: %s... is not the last", c->name, a->name);
            CHECK(a->optional || a == c->args || !a[-1].optional, "%s: %s comes after an optional one",
                  c->name, a->name);
        }
        const leat__param *p;
        for (size_t k = 0; (p = cli_option_at(c, k)) != NULL; k++) check_option(c, k, p);
        char name[64];
        for (int k = 0; cli_word(c->required, k, name, sizeof name); k++) {
            cli_line line;
            leat_error err = {0};
            const int rc = cli_parse(&line, c, 0, (char *[]){NULL}, &err);
            CHECK(rc == 0 || rc == LEAT_EINVAL, "%s: %s", c->name, err.message);
            CHECK(cli_line_find(&line, name) >= 0, "%s: no --%s to require", c->name, name);
        }
        for (size_t k = 0; k < i; k++)
            CHECK(!leat__str_eq(commands[k]->name, c->name), "two commands %s", c->name);
    }
}

/* Both names of an option with two are accepted, by every command that has one of them. */
static void twins_are_accepted(void **state)
{
    size_t tried = 0;
    for (size_t i = 0; commands[i]; i++) {
        const leat__param *p;
        for (size_t k = 0; (p = cli_option_at(commands[i], k)) != NULL; k++) {
            const char *twin = cli_twin(p->name);
            cli_line line;
            leat_error err = {0};
            char word[64], *argv[] = {word, (char *)"3", (char *)"--help"};
            if (!twin) continue;
            snprintf(word, sizeof word, "--%s", twin);
            CHECK(cli_parse(&line, commands[i], 3, argv, &err) == 0, "%s: %s", commands[i]->name,
                  err.message);
            assert_int_equal(line.values[k].i, 3);
            tried++;
        }
    }
    assert_true(tried >= 4);
}

/* A message of the library that names an option shows the flag as the user typed it. */
static void messages_name_flags(void **state)
{
    size_t tried = 0;
    leat__options_as_flags(true);
    for (size_t i = 0; commands[i]; i++) {
        const leat__param *p;
        for (size_t k = 0; (p = cli_option_at(commands[i], k)) != NULL; k++) {
            char name[64], shown[96];
            leat_error err;
            assert_true(strlen(p->name) < sizeof name);
            strcpy(name, p->name);
            for (char *s = name; *s; s++)
                if (*s == '-') *s = '_';
            leat__fail(&err, LEAT_EINVAL, "`%s` has no effect", name);
            snprintf(shown, sizeof shown, "--%s has no effect", p->name);
            CHECK(leat__str_eq(err.message, shown), "%s: %s", commands[i]->name, err.message);
            tried++;
        }
    }
    leat__options_as_flags(false);
    assert_true(tried > 300);
}

/* The words of an example up to a pipe or a redirection; quotes make one word. */
static int split(char *text, char **out, int max)
{
    int n = 0;
    for (char *s = text; *s && n + 1 < max;) {
        while (*s == ' ') s++;
        if (!*s || strchr("|>&;#", *s)) break;
        const char quote = *s == '\'' || *s == '"' ? *s++ : ' ';
        out[n++] = s;
        while (*s && *s != quote) s++;
        if (*s) *s++ = '\0';
    }
    out[n] = NULL;
    return n;
}

static void examples_parse(void **state)
{
    size_t tried = 0;
    for (size_t i = 0; commands[i]; i++) {
        for (const cli_example *e = commands[i]->examples; e->command; e++) {
            char text[512], *argv[64];
            leat_error err = {0};
            cli_line line;
            if (e->text) check_sentence(commands[i]->name, e->command, e->text);
            if (!leat__str_starts(e->command, "leat ")) continue;
            assert_true(strlen(e->command) < sizeof text);
            strcpy(text, e->command);
            const int n = split(text, argv, (int)LEAT_COUNT(argv));
            CHECK(n >= 2 && leat__str_eq(argv[1], commands[i]->name), "%s: an example of another command: %s",
                  commands[i]->name, e->command);
            CHECK(cli_parse(&line, commands[i], n - 2, argv + 2, &err) == 0, "%s: %s", e->command,
                  err.message);
            tried++;
        }
    }
    assert_true(tried > 0);
}

/* Copies the file or folder that an example writes; false where it writes none, or is meant to find it there.
 */
static bool output_of(const char *command, char *out, size_t size)
{
    static const char *const finds_it[] = {" --resume", " --force", " --from ", " --plan", " --if-exists "};
    const char *at = strstr(command, " -o ");
    for (size_t i = 0; i < LEAT_COUNT(finds_it); i++)
        if (strstr(command, finds_it[i])) return false;
    if (!at) return false;
    snprintf(out, size, "%.*s", (int)strcspn(at + 4, " "), at + 4);
    return true;
}

/* The examples of a page can be run in sequence: an output that exists would be refused. */
static void examples_write_different_files(void **state)
{
    size_t tried = 0;
    for (size_t i = 0; commands[i]; i++)
        for (const cli_example *e = commands[i]->examples; e->command; e++) {
            char one[256], other[256];
            if (leat__str_eq(commands[i]->name, "append") || !output_of(e->command, one, sizeof one))
                continue;
            tried++;
            for (const cli_example *before = commands[i]->examples; before < e; before++)
                CHECK(!output_of(before->command, other, sizeof other) || !leat__str_eq(one, other),
                      "two examples write %s: %s; %s", one, before->command, e->command);
        }
    assert_true(tried > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(twins_are_accepted),
        cmocka_unit_test(messages_name_flags),
        cmocka_unit_test(examples_parse),
        cmocka_unit_test(examples_write_different_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
