/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <string.h>

#include "base/fault.h"
#include "base/num.h"
#include "cli_page.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "FILE", "write it here, and nowhere else"),
    CLI_INT("count", 0, "4", 1, 9, NULL, "how many"),
    CLI_BYTES("memory", 'm', "1G", 1, 0, "how much"),
    CLI_CHOICE("mode", 0, "keep", "keep|raw", "user's choice [of two]: a\\b"),
    CLI_FLAG("resume", 0, "resume"),
    CLI_END,
};
static const cli_command sample = {
    .name = "sample",
    .summary = "show a page",
    .examples = (const cli_example[]){{"leat sample x -o y", "do it"}, {NULL, NULL}},
    .description = "First paragraph of words that continue for a while and must be wrapped at the "
                   "width of the page.\n\n.Second 'paragraph' - with \\ things of roff.",
    .args = (const cli_arg_spec[]){{.name = "SRC", .help = "from here", .path = true},
                                   {.name = "MORE", .help = "and", .optional = true, .many = true},
                                   {.name = NULL}},
    .options = {{"Sampling", options}},
    .required = "output",
    .json = (const cli_key[]){{"samples", "how many"}, {NULL, NULL}},
};
static const cli_command secret = {.name = "secret", .summary = "not shown", .hidden = true};
static const cli_command *const commands[] = {&sample, &secret, NULL};

static size_t longest_line(const char *s)
{
    size_t longest = 0;
    while (*s) {
        const size_t n = strcspn(s, "\n");
        longest = LEAT_MAX(longest, n);
        s += n + (s[n] == '\n');
    }
    return longest;
}

#define HAS(text, part)                                                                                      \
    do {                                                                                                     \
        if (!strstr(text, part)) fail_msg("not there: %s in\n%s", part, text);                               \
    } while (0)

static void text_page(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    cli_writer w = cli_writer_text(&out, 72, false);
    cli_page_command(&w, &sample);
    const char *text = leat__buf_str(&out);
    HAS(text, "leat sample - show a page\n\nEXAMPLES\n  leat sample x -o y\n      do it\n");
    HAS(text, "  leat sample [OPTIONS] SRC [MORE...] --output FILE\n");
    HAS(text, "\nSAMPLING\n");
    HAS(text, "  -o, --output FILE         write it here, and nowhere else (required)\n");
    HAS(text, "      --count N             how many; 1 to 9 [4]\n");
    HAS(text, "  -m, --memory BYTES        how much [1G]\n");
    HAS(text, "      --resume              resume\n");
    HAS(text, "\nJSON KEYS\n  samples                   how many\n");
    HAS(text, "page.\n\n  .Second");
    assert_true(longest_line(text) <= 72);
    leat__buf_reset(&out);
}

static void tables_name_the_kinds(void **state)
{
    static const leat__param kinds[] = {CLI_PATH("a", 0, NULL, "FILE", "h"),
                                        CLI_STRING("b", 0, NULL, "TEXT", "h"),
                                        CLI_CHOICE("c", 0, "x", "x|y", "h"),
                                        CLI_BYTES("d", 0, "1", 1, 0, "h"),
                                        CLI_FLAG("e", 0, "h"),
                                        {.name = "f", .kind = LEAT__PARAM_BYTES10},
                                        {.name = "g", .kind = LEAT__PARAM_SECONDS},
                                        {.name = "h", .kind = LEAT__PARAM_FLOATS},
                                        {.name = "i", .kind = LEAT__PARAM_INTS},
                                        CLI_END};
    static const char *const names[] = {"path",  "string",  "choice", "bytes", "flag",
                                        "bytes", "seconds", "floats", "ints"};
    static const cli_command command = {.name = "kinds", .summary = "s", .options = {{"Kinds", kinds}}};
    static const cli_command *const list[] = {&command, NULL};
    leat__buf out;
    (void)state;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    cli_tables_json(list, NULL, &out);
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        char row[64];
        snprintf(row, sizeof row, "\"name\":\"%s\",\"kind\":\"%s\"", kinds[i].name, names[i]);
        HAS(leat__buf_str(&out), row);
    }
    leat__buf_reset(&out);
}

static void text_follows_the_width(void **state)
{
    for (int width = 0; width < 200; width += 7) {
        leat__buf out;
        leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
        cli_writer w = cli_writer_text(&out, width, false);
        cli_page_command(&w, &sample);
        cli_page_overview(&w, commands);
        assert_true(longest_line(leat__buf_str(&out)) <= (size_t)LEAT_MAX(50, LEAT_MIN(width, 100)));
        assert_null(strstr(leat__buf_str(&out), "\033"));
        leat__buf_reset(&out);
    }
}

static void roff_is_escaped(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    cli_writer w = cli_writer_roff(&out);
    cli_page_command(&w, &sample);
    const char *text = leat__buf_str(&out);
    HAS(text, ".TH \"LEAT-SAMPLE\" 1 ");
    HAS(text, ".SH NAME\nleat\\-sample \\- show a page\n");
    HAS(text, ".PP\n\\&.Second \\(aqparagraph\\(aq \\- with \\e things of roff.\n");
    HAS(text, ".TP\n\\fB\\-o, \\-\\-output FILE\\fR\nwrite it here");
    HAS(text, ".SH \"SAMPLING\"\n");
    leat__buf_reset(&out);
}

static void completions_quote(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    cli_complete_zsh(commands, &out);
    HAS(leat__buf_str(&out), "'--mode=[user'\\''s choice \\[of two\\]\\: a\\\\b]:WORD:(keep raw)'");
    HAS(leat__buf_str(&out), "'(-o --output)'{-o+,--output=}'[write it here");
    HAS(leat__buf_str(&out), "'*:MORE: '");
    leat__buf_clear(&out);
    cli_complete_fish(commands, &out);
    HAS(leat__buf_str(&out), "-l mode -x -a 'keep raw' -d 'user\\'s choice [of two]: a\\\\b'\n");
    HAS(leat__buf_str(&out), "-l output -s o -r -F -d ");
    leat__buf_clear(&out);
    cli_complete_bash(commands, &out);
    HAS(leat__buf_str(&out), "--output|-o) kind=files ;;");
    HAS(leat__buf_str(&out), "--mode) words='keep raw'; kind=words ;;");
    assert_null(strstr(leat__buf_str(&out), "secret"));
    leat__buf_reset(&out);
}

/* Out of memory anywhere is remembered by the buffer: half a page is never printed. */
static void memory_may_run_out(void **state)
{
    if (!leat__fault_available()) skip();
    const uint64_t blocks = leat__mem_blocks();
    for (uint64_t nth = 1; nth < 1000; nth++) {
        leat__buf out;
        leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
        cli_writer w = cli_writer_text(&out, 80, true);
        leat__fault_arm(LEAT__FAULT_ALLOC, nth, true);
        cli_page_command(&w, &sample);
        const bool hit = leat__fault_count(LEAT__FAULT_ALLOC) >= nth;
        leat__fault_disarm();
        const int status = leat__buf_status(&out);
        leat__buf_reset(&out);
        assert_int_equal(leat__mem_blocks(), blocks);
        if (!hit) {
            assert_int_equal(status, 0);
            return;
        }
        assert_int_equal(status, LEAT_ENOMEM);
    }
    fail_msg("never ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_page),          cmocka_unit_test(text_follows_the_width),
        cmocka_unit_test(roff_is_escaped),    cmocka_unit_test(completions_quote),
        cmocka_unit_test(memory_may_run_out), cmocka_unit_test(tables_name_the_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
