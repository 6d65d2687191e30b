/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include <unistd.h>

#include "doctor/frame.h"
#include "io/file.h"

#define RUN "doctor-run-follow.jsonl"
#define OTHER "doctor-run-other.jsonl"

static leat_doctor_frame frames[64];

static void put(const char *path, const char *text)
{
    assert_ok(leat__file_store(path, text, strlen(text), NULL));
}

static uint32_t news_of(leat_doctor_run *run)
{
    uint32_t news = 7;
    assert_ok(leat_doctor_run_look(run, &news, NULL));
    return news;
}

/* The writer is ahead by any number of bytes: a line counts when it is complete. */
static void a_growing_file_is_followed(void **state)
{
    static const char *const pieces[] = {"{\"run\":\"a\",\"pa", "rt\":0}\n{\"frame\":{\"samples\":1}}\n{\"fr",
                                         "ame\":{\"samples\":2}}\n",
                                         "{\"facts\":{\"steps\":100,\"data_ms\":1},\"state\":\"running\"}\n",
                                         "{\"facts\":{\"steps\":200,\"data_ms\":1},\"state\":\"ended\"}\n"};
    static const size_t seen[] = {0, 1, 2, 2, 2};
    leat_doctor_run *run;
    (void)state;
    unlink(RUN);
    assert_ok(leat_doctor_run_open(&run, RUN, NULL));
    assert_code(leat_doctor_run_look(run, NULL, NULL), LEAT_ENOENT);
    for (size_t i = 0; i < LEAT_COUNT(pieces); i++) {
        assert_ok(leat__file_append(RUN, pieces[i], strlen(pieces[i]), NULL));
        assert_int_equal(news_of(run), 1);
        assert_int_equal(news_of(run), 0);
        assert_int_equal(leat_doctor_run_frames(run, frames, 64), seen[i]);
        assert_int_equal(leat_doctor_run_diagnosis(run) != NULL, i >= 3);
        assert_int_equal(leat_doctor_run_ended(run), i == 4);
    }
    assert_near(leat_doctor_run_diagnosis(run)->facts.steps, 200, 0);
    leat_doctor_run_close(&run);
    unlink(RUN);
    assert_no_leaks();
}

static void another_run_takes_its_place(void **state)
{
    leat_doctor_run *run;
    (void)state;
    put(RUN, "{\"run\":\"a\",\"part\":0}\n{\"frame\":{\"samples\":1}}\n{\"facts\":{\"steps\":9}}\n");
    assert_ok(leat_doctor_run_open(&run, RUN, NULL));
    assert_int_equal(news_of(run), 1);
    assert_int_equal(leat_doctor_run_frames(run, frames, 64), 1);
    /* a verdict without a state means that the run is over */
    assert_int_equal(leat_doctor_run_ended(run), 1);
    /* the next part of the same run continues it */
    put(RUN, "{\"run\":\"a\",\"part\":1}\n{\"frame\":{\"samples\":2}}\n");
    assert_int_equal(news_of(run), 1);
    assert_int_equal(leat_doctor_run_frames(run, frames, 64), 2);
    assert_int_equal(frames[1].samples, 2);
    /* emptied, and not yet started again: the known frames are kept */
    put(RUN, "");
    assert_int_equal(news_of(run), 0);
    assert_int_equal(leat_doctor_run_frames(run, frames, 64), 2);
    /* another run, renamed over it: longer than the first, so that size alone would not tell */
    put(OTHER, "{\"run\":\"b\",\"part\":0}\n{\"frame\":{\"samples\":5}}\n{\"frame\":{\"samples\":6}}\n"
               "{\"frame\":{\"samples\":7}}\n");
    assert_ok(leat__path_rename(OTHER, RUN, NULL));
    assert_int_equal(news_of(run), 1);
    assert_int_equal(leat_doctor_run_frames(run, frames, 64), 3);
    assert_int_equal(frames[0].samples, 5);
    assert_null(leat_doctor_run_diagnosis(run));
    assert_int_equal(leat_doctor_run_ended(run), 0);
    leat_doctor_run_close(&run);
    unlink(RUN);
    assert_no_leaks();
}

static void other_files_are_refused(void **state)
{
    static const char *const texts[] = {"hello\n",
                                        "{\"run\":\"a\"}\n{\"frame\":{\"samples\":\"x\"}}\n",
                                        "{\"run\":\"a\"}\n[1,2]\n",
                                        "{\"steps\":\"many\"}\n",
                                        "{\"lost\":}\n",
                                        "{\"path\": 3}\n",
                                        "3\n"};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(texts); i++) {
        leat_doctor_run *run;
        leat_error err = {0};
        put(RUN, texts[i]);
        assert_ok(leat_doctor_run_open(&run, RUN, NULL));
        if (leat_doctor_run_look(run, NULL, &err) != LEAT_EDATA) fail_msg("%s was taken", texts[i]);
        assert_contains(err.message, RUN);
        leat_doctor_run_close(&run);
    }
    unlink(RUN);
    assert_no_leaks();
}

/* Any prefix of a real run, byte by byte, is either understood or waited for. */
static void any_prefix_is_a_run(void **state)
{
    leat__run_log *log;
    leat_doctor_run *run;
    leat_doctor_diagnosis d = judge(healthy());
    char *text;
    size_t len;
    (void)state;
    assert_ok(leat__run_log_open(&log, RUN, NULL));
    assert_ok(leat__run_log_frame(log, &(leat_doctor_frame){.at_s = 0.25, .samples = 1}, NULL));
    assert_ok(leat__run_log_diagnosis(log, &d, true, NULL));
    leat__run_log_close(&log);
    assert_ok(leat__file_load(RUN, 1 << 20, 1, &text, &len, NULL));
    assert_ok(leat_doctor_run_open(&run, NULL, NULL));
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(leat_doctor_run_ended(run), 0);
        assert_ok(leat_doctor_run_feed(run, text + i, 1, NULL));
    }
    assert_int_equal(leat_doctor_run_ended(run), 1);
    assert_string_equal(leat_doctor_run_diagnosis(run)->sentence, d.sentence);
    leat_doctor_run_close(&run);
    leat__free(text);
    unlink(RUN);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_growing_file_is_followed),
        cmocka_unit_test(another_run_takes_its_place),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(any_prefix_is_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
