/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

static int collect(void *cookie, const char *text, size_t len)
{
    return leat__buf_append(cookie, text, len);
}

static leat_doctor_frame frames[10];

static leat__buf view(uint32_t columns, bool ascii, size_t count)
{
    leat_doctor_facts f = healthy();
    starve(&f, 2500);
    f.cpu_all = 2600;
    f.cpu_used = 15.5;
    f.decode_ready = 0.9;
    leat_doctor_diagnosis d = judge(f);
    leat__buf out;
    for (size_t i = 0; i < 10; i++)
        frames[i] = (leat_doctor_frame){.at_s = 60 + (double)i,
                                        .samples_per_s = 100.0 * (double)i,
                                        .lost = 0.1 * (double)i,
                                        .ready = {0, 0.25, 1, 0},
                                        .busy = {0.01, 2, 15.5, 0.1},
                                        .waiting = {0, 3, 42, 0},
                                        .budget_used = UINT64_C(1) << 30,
                                        .budget_limit = UINT64_C(2) << 30,
                                        .cpu_used = 8,
                                        .threads = 16,
                                        .io_depth = 32,
                                        .prefetch = 4,
                                        .epoch = 7,
                                        .samples = 123456,
                                        .bad = 5};
    leat__buf_init(&out, LEAT__MEM_DOCTOR, 1 << 16);
    assert_ok(leat_doctor_top(&d, frames, count, columns, ascii, collect, &out, NULL));
    return out;
}

static void everything_is_on_the_screen(void **state)
{
    leat__buf out = view(80, true, 10);
    (void)state;
    assert_contains(out.data, "epoch 7  123k samples");
    assert_contains(out.data, "CPU-bound");
    assert_contains(out.data, "decode    ########################################  100 %   15.50       42\n");
    assert_contains(out.data, "1.00 GiB of 2.00 GiB");
    assert_contains(out.data, "threads 16  reads in flight 32  prefetch 4  bad samples 5");
    assert_contains(out.data, "best remedy: ");
    for (size_t i = 0; i < out.len; i++) assert_true((unsigned char)out.data[i] < 0x80);
    leat__buf_reset(&out);
}

static void lines_fit_the_terminal(void **state)
{
    static const uint32_t widths[] = {60, 80, 120};
    (void)state;
    for (size_t w = 0; w < LEAT_COUNT(widths); w++) {
        leat__buf out = view(widths[w], true, 10);
        for (const char *line = out.data; *line;) {
            size_t len = strcspn(line, "\n");
            if (len > widths[w]) fail_msg("%zu columns of %u: %.*s", len, widths[w], (int)len, line);
            line += len + 1;
        }
        leat__buf_reset(&out);
    }
}

/* A verdict that does not fit continues in the next line: no word or number is cut, and % stays with its
 * number. */
static void long_lines_are_broken_between_words(void **state)
{
    leat__buf wide = view(1000, true, 10), out = view(50, true, 10);
    char sentence[512];
    (void)state;
    const char *line = strchr(wide.data, '\n') + 1;
    snprintf(sentence, sizeof sentence, "%.*s", (int)strcspn(line, "\n"), line);
    const char *at = strchr(out.data, '\n') + 1;
    uint32_t lines = 1;
    for (char *word = strtok(sentence, " "); word != NULL; word = strtok(NULL, " ")) {
        at = strstr(at, word);
        assert_non_null(at);
        lines += at[-1] == ' ' && at[-2] == ' ';
        assert_true(strcmp(word, "%") != 0 || at[-2] != ' ');
        at += strlen(word);
    }
    assert_true(lines > 1);
    leat__buf_reset(&wide);
    leat__buf_reset(&out);
}

static void without_a_frame_there_is_the_verdict(void **state)
{
    leat__buf out = view(80, false, 0);
    (void)state;
    assert_contains(out.data, "CPU-bound");
    assert_contains(out.data, "best remedy: ");
    assert_null(strstr(out.data, "epoch"));
    leat__buf_reset(&out);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_on_the_screen),
        cmocka_unit_test(lines_fit_the_terminal),
        cmocka_unit_test(long_lines_are_broken_between_words),
        cmocka_unit_test(without_a_frame_there_is_the_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
