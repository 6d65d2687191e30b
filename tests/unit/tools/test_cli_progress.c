/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli_frame.h"

static size_t columns_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static const cli_progress busy = {
    .label = "packing",
    .unit = "images",
    .total = 32000,
    .done = 12345,
    .skipped = 3,
    .per_s = 2100,
    .bytes_per_s = 231.4e6,
};

static void shows_everything_that_is_known(void **state)
{
    char line[512];
    cli_progress_format(&busy, 120, false, line, sizeof line);
    assert_string_equal(line, "packing  ###############.........................   38%  "
                              "12.3k/32.0k images  2.10k/s  ETA 9.4s  3 skipped  231.4 MB/s");
}

static void blocks_have_eighths(void **state)
{
    char line[512];
    cli_progress p = {.label = "x", .unit = "y", .total = 80, .done = 1};
    cli_progress_format(&p, 120, true, line, sizeof line);
    assert_non_null(strstr(line, "x  ▌ "));
    p.done = 80;
    cli_progress_format(&p, 120, true, line, sizeof line);
    assert_non_null(strstr(line, "█  100%  80/80 y"));
}

static void fits_any_width(void **state)
{
    char line[512];
    for (int columns = 1; columns <= 300; columns++) {
        for (int utf8 = 0; utf8 < 2; utf8++) {
            cli_progress_format(&busy, columns, utf8, line, sizeof line);
            assert_true(columns_of(line) < (size_t)columns);
        }
        /* the share is the last to go */
        if (columns >= 20) assert_non_null(strstr(line, "38%"));
    }
}

static void small_buffers_are_respected(void **state)
{
    char line[64];
    for (size_t size = 1; size < sizeof line; size++) {
        memset(line, 'Z', sizeof line);
        cli_progress_format(&busy, 200, true, line, size);
        assert_true(memchr(line, '\0', size) != NULL);
        assert_int_equal(line[size], 'Z');
    }
}

static void unknown_total_has_no_share(void **state)
{
    char line[512];
    cli_progress p = busy;
    p.total = 0;
    cli_progress_format(&p, 120, false, line, sizeof line);
    assert_string_equal(line, "packing  12.3k images  2.10k/s  3 skipped  231.4 MB/s");
}

static void more_than_announced_does_not_crash(void **state)
{
    char line[512];
    cli_progress p = busy;
    p.done = p.total * 3;
    cli_progress_format(&p, 120, true, line, sizeof line);
    assert_non_null(strstr(line, "300%"));
    assert_null(strstr(line, "ETA"));
}

/* Several threads report and talk at once: for the thread sanitizer, and the bar never goes
 * back. */
static atomic_uint_least64_t steps_done;

static void report_and_talk(void *arg)
{
    cli_progress *bar = arg;
    for (int i = 0; i < 400; i++) {
        const uint64_t done = atomic_fetch_add(&steps_done, 1) + 1;
        cli_progress_at(bar, done, done * 1000, done / 2);
        if (i % 100 == 0) cli_say(bar->c, "at %d", i);
        leat__sleep_ns(LEAT_NS_PER_MS);
    }
}

static void any_thread_may_report(void **state)
{
    cli c;
    cli_progress bar;
    leat__thread threads[4] = {0};
    char text[65536];
    FILE *kept = stderr, *file = tmpfile();
    assert_non_null(file);
    cli_begin(&c, (const cli_command *const[]){NULL});
    c.tty_err = true;
    stderr = file;
    cli_progress_begin(&bar, &c, "racing", "steps", 1600);
    for (size_t i = 0; i < LEAT_COUNT(threads); i++)
        assert_ok(leat__thread_start(&threads[i], "report", report_and_talk, &bar, NULL));
    for (size_t i = 0; i < LEAT_COUNT(threads); i++) leat__thread_join(&threads[i]);
    cli_progress_end(&bar);
    stderr = kept;
    assert_int_equal(cli_end(&c, 0), 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);

    int said = 0, last = -1;
    for (const char *s = strtok(text, "\r\n"); s; s = strtok(NULL, "\r\n")) {
        if (strncmp(s, "\033[K", 3) == 0) s += 3;
        said += strncmp(s, "at ", 3) == 0;
        int done = 0;
        const char *percent = strchr(s, '%');
        if (!percent) continue;
        while (percent > s && percent[-1] != ' ') percent--;
        assert_int_equal(sscanf(percent, "%d%%", &done), 1);
        assert_true(done >= last);
        last = done;
    }
    assert_int_equal(said, 16);
    /* after the last drawing less than 0.1 s was left: at most 100 steps of each thread */
    assert_true(last >= 70);
}

static void codes_map_to_exits(void **state)
{
    assert_int_equal(cli_exit_of(LEAT_OK), CLI_OK);
    assert_int_equal(cli_exit_of(LEAT_EINVAL), CLI_USAGE);
    assert_int_equal(cli_exit_of(LEAT_EBUDGET), CLI_FIT);
    assert_int_equal(cli_exit_of(LEAT_ELIMIT), CLI_FIT);
    assert_int_equal(cli_exit_of(LEAT_ECANCELED), CLI_INTERRUPTED);
    /* every other failure is one: never success, never a finding */
#define CHECK_CODE(name, value, text) assert_true(cli_exit_of(LEAT_##name) >= CLI_USAGE);
    LEAT_ERROR_MAP(CHECK_CODE)
    assert_int_equal(cli_exit_of(-1000), CLI_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_everything_that_is_known),
        cmocka_unit_test(blocks_have_eighths),
        cmocka_unit_test(fits_any_width),
        cmocka_unit_test(small_buffers_are_respected),
        cmocka_unit_test(unknown_total_has_no_share),
        cmocka_unit_test(more_than_announced_does_not_crash),
        cmocka_unit_test(any_thread_may_report),
        cmocka_unit_test(codes_map_to_exits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
