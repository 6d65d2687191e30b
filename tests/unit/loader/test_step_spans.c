/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/loader/step_spans.c over the stand-in driver: stream 0 is the consumer's, its kernels end when
 * the test says so, and each span takes 1 ms.
 */
#include "gpu/fake_driver.h"

#include "base/mem.h"
#include "loader/step_spans.h"

static leat__gpu *gpu;

static leat__step_spans *open_spans(void)
{
    leat__step_spans *s = NULL;
    go_wrong("");
    assert_int_equal(leat__gpu_open(&gpu, 0, fake_path, NULL), 0);
    assert_int_equal(leat__step_spans_open(&s, gpu, NULL), 0);
    return s;
}

static void close_spans(leat__step_spans *s)
{
    leat__step_spans_close(&s);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
    assert_int_equal(fake_cuda.broken(), 0);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void step(leat__step_spans *s)
{
    leat__step_spans_begin(s, 0);
    leat__step_spans_end(s, false);
}

static void a_span_counts_when_the_device_has_passed_it(void **state)
{
    leat__step_spans *s = open_spans();
    assert_true(leat__step_spans_ms(s, true) == 0);
    leat__step_spans_begin(s, 0);
    int kernel = fake_cuda.begin();
    leat__step_spans_end(s, false);
    leat__step_spans_epoch(s);
    assert_true(leat__step_spans_ms(s, true) == 0); /* still running */
    fake_cuda.end(kernel);
    leat__step_spans_epoch(s);
    assert_true(leat__step_spans_ms(s, true) == 1);
    assert_true(leat__step_spans_ms(s, false) == 0); /* of the epoch before */
    step(s);
    step(s);
    assert_true(leat__step_spans_ms(s, false) == 1);
    close_spans(s);
}

/* A device that is far behind: the ring is full, and steps are left out until it has caught up. */
static void steps_are_left_out_where_the_device_is_behind(void **state)
{
    leat__step_spans *s = open_spans();
    int kernel = fake_cuda.begin();
    for (int i = 0; i < 100; i++) step(s);
    assert_true(leat__step_spans_ms(s, true) == 0);
    fake_cuda.end(kernel);
    for (int i = 0; i < 100; i++) step(s);
    assert_true(leat__step_spans_ms(s, true) == 1);
    close_spans(s);
}

static void nothing_is_recorded_while_a_graph_is_captured(void **state)
{
    leat__step_spans *s = open_spans();
    leat__step_spans_begin(s, 0);
    go_wrong("capture");
    leat__step_spans_end(s, true); /* the loader knows it, */
    step(s);                       /* or the driver says so */
    go_wrong("");
    leat__step_spans_end(s, false);
    leat__step_spans_epoch(s);
    assert_true(leat__step_spans_ms(s, true) == 0);
    close_spans(s);
}

static void failures_leave_nothing_behind(void **state)
{
    go_wrong("");
    for (int call = 1;; call++) {
        leat__step_spans *s = NULL;
        leat_error err = {0};
        assert_int_equal(leat__gpu_open(&gpu, 0, fake_path, NULL), 0);
        fake_cuda.fail_at(call);
        const int rc = leat__step_spans_open(&s, gpu, &err);
        fake_cuda.fail_at(0);
        assert_true((rc == 0) == (s != NULL));
        close_spans(s);
        if (rc == 0) break;
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_counts_when_the_device_has_passed_it),
        cmocka_unit_test(steps_are_left_out_where_the_device_is_behind),
        cmocka_unit_test(nothing_is_recorded_while_a_graph_is_captured),
        cmocka_unit_test(failures_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
