/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <unistd.h>

#include "doctor/frame.h"
#include "io/file.h"

#define RUN "doctor-run-log.jsonl"

static uint64_t size_of(const char *path)
{
    leat__file *f;
    uint64_t size;
    assert_ok(leat__file_open(&f, path, LEAT__FILE_READ, NULL));
    assert_ok(leat__file_size(f, &size, NULL));
    leat__file_close(&f);
    return size;
}

static void a_run_is_lines(void **state)
{
    leat__run_log *log;
    leat_doctor_diagnosis d = judge(healthy());
    char *text;
    size_t len;
    (void)state;
    assert_ok(leat__run_log_open(&log, RUN, NULL));
    for (int i = 0; i < 3; i++)
        assert_ok(leat__run_log_frame(log, &(leat_doctor_frame){.samples = (uint64_t)i}, NULL));
    assert_ok(leat__run_log_diagnosis(log, &d, true, NULL));
    leat__run_log_close(&log);
    assert_ok(leat__file_load(RUN, 1 << 20, 1, &text, &len, NULL));
    static const char *const keys[] = {"run", "frame", "frame", "frame", "verdict"};
    char *line = text;
    for (size_t i = 0; i < LEAT_COUNT(keys); i++) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        json_t *root = json_loadb(line, (size_t)(end - line), 0, NULL);
        assert_non_null(root);
        assert_non_null(json_object_get(root, keys[i]));
        if (i == 4) assert_string_equal(json_string_value(json_object_get(root, "state")), "ended");
        json_decref(root);
        line = end + 1;
    }
    assert_int_equal(*line, '\0');
    leat__free(text);
    unlink(RUN);
    assert_no_leaks();
}

/* A part is 32 MiB: the file never grows much beyond it, and each part begins with a verdict. */
static void a_long_run_stays_small(void **state)
{
    leat__run_log *log;
    leat_doctor_diagnosis d = judge(healthy());
    leat_doctor_run *run;
    uint64_t largest = 0, before = 0;
    uint32_t restarts = 0;
    (void)state;
    assert_ok(leat_doctor_run_open(&run, RUN, NULL));
    assert_ok(leat__run_log_open(&log, RUN, NULL));
    for (uint64_t i = 0; i < 12000; i++) {
        assert_ok(leat__run_log_frame(log, &(leat_doctor_frame){.samples = i}, NULL));
        assert_ok(leat__run_log_diagnosis(log, &d, false, NULL));
        if (i % 500 != 0) continue;
        uint64_t now = size_of(RUN);
        restarts += now < before;
        before = now;
        largest = LEAT_MAX(largest, now);
        assert_ok(leat_doctor_run_look(run, NULL, NULL));
    }
    assert_int_equal(restarts, 1);
    assert_in_range(largest, 16 << 20, (32 << 20) + 65536);
    /* a follower keeps the earlier frames */
    leat_doctor_frame frames[4096];
    assert_ok(leat_doctor_run_look(run, NULL, NULL));
    size_t n = leat_doctor_run_frames(run, frames, 4096);
    assert_int_equal(n, 4096);
    assert_int_equal(frames[n - 1].samples, 11999);
    for (size_t i = 1; i < n; i++) assert_true(frames[i].samples > frames[i - 1].samples);
    leat__run_log_close(&log);
    leat_doctor_run_close(&run);
    unlink(RUN);
    assert_no_leaks();
}

static void write_failures_are_reported(void **state)
{
    leat__run_log *log;
    leat_error err = {0};
    (void)state;
    assert_code(leat__run_log_open(&log, "no-such-folder/run.jsonl", &err), LEAT_ENOENT);
    assert_contains(err.message, "no-such-folder: no such folder");
    assert_null(log);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_lines),
        cmocka_unit_test(a_long_run_stays_small),
        cmocka_unit_test(write_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
