/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/gpu/gpu_stream.c: copies, events, and each call failing in turn.
 */
#include "fake_driver.h"

#include "base/mem.h"
#include "base/num.h"
#include "gpu/gpu_stream.h"

static leat__gpu *open_fake(void)
{
    leat__gpu *gpu = NULL;
    go_wrong("");
    assert_int_equal(leat__gpu_open(&gpu, 0, fake_path, NULL), 0);
    return gpu;
}

/* Copies in and out, followed by an event. */
static int round_trip(leat__gpu *gpu, const uint8_t *from, uint8_t *to, size_t bytes, leat_error *err)
{
    leat__gpu_stream *s = NULL;
    leat__gpu_event *begin = NULL, *end = NULL;
    leat__gpu_memory memory = 0;
    int rc;
    LEAT_GO(rc, out, leat__gpu_stream_open_urgent(&s, gpu, err));
    leat__gpu_stream_close(&s);
    LEAT_GO(rc, out, leat__gpu_stream_open(&s, gpu, err));
    LEAT_GO(rc, out, leat__gpu_event_open(&begin, gpu, true, err));
    LEAT_GO(rc, out, leat__gpu_event_open(&end, gpu, true, err));
    LEAT_GO(rc, out, leat__gpu_alloc(gpu, bytes, &memory, err));
    LEAT_GO(rc, out, leat__gpu_event_record(begin, s, err));
    LEAT_GO(rc, out, leat__gpu_copy_in(s, memory, from, bytes, err));
    LEAT_GO(rc, out, leat__gpu_copy_out(s, to, memory, bytes, err));
    LEAT_GO(rc, out, leat__gpu_copy_in(s, memory, from, 0, err)); /* nothing to do */
    LEAT_GO(rc, out, leat__gpu_event_record(end, s, err));
    LEAT_GO(rc, out, leat__gpu_event_wait(end, err));
    assert_true(leat__gpu_event_seconds(begin, end) >= 0);
out:
    leat__gpu_stream_close(&s);
    leat__gpu_event_close(&begin);
    leat__gpu_event_close(&end);
    leat__gpu_free(gpu, memory);
    return rc;
}

static void bytes_arrive_and_come_back(void **state)
{
    leat__gpu *gpu = open_fake();
    uint8_t from[1000], to[1000] = {0};
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * 7);
    assert_int_equal(round_trip(gpu, from, to, sizeof from, NULL), 0);
    assert_memory_equal(from, to, sizeof from);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
}

static void each_failing_call_is_an_error_and_nothing_stays(void **state)
{
    leat__gpu *gpu = open_fake();
    uint8_t from[100] = {1}, to[100];
    int before = fake_cuda.calls();
    assert_int_equal(round_trip(gpu, from, to, sizeof from, NULL), 0);
    int calls = fake_cuda.calls() - before, failed = 0;
    uint64_t blocks = leat__mem_blocks();
    for (int i = 1; i <= calls; i++) {
        leat_error err = {0};
        fake_cuda.fail_at(fake_cuda.calls() + i);
        int rc = round_trip(gpu, from, to, sizeof from, &err);
        fake_cuda.fail_at(0);
        if (rc == 0) continue; /* a call of the clearing up */
        failed++;
        assert_int_equal(rc, LEAT_EIO);
        assert_non_null(strstr(err.message, "CUDA_ERROR_UNKNOWN"));
        assert_int_equal(leat__mem_blocks(), blocks);
    }
    assert_true(failed >= 10);
    leat__gpu_close(&gpu);
}

static void an_event_of_all_streams_waits_for_the_trainer(void **state)
{
    leat__gpu *gpu = open_fake();
    leat__gpu_event *e;
    leat_error err = {0};
    int kernel = fake_cuda.begin();
    assert_int_equal(leat__gpu_event_open(&e, gpu, false, NULL), 0);
    assert_int_equal(leat__gpu_event_record_all(e, &err), 0);
    assert_false(leat__gpu_event_passed(e));
    fake_cuda.end(kernel);
    assert_true(leat__gpu_event_passed(e));
    go_wrong("capture ordinary"); /* seen before it is disturbed */
    assert_int_equal(leat__gpu_event_record_all(e, &err), LEAT_EAGAIN);
    assert_int_equal(fake_cuda.broken(), 0);
    go_wrong("capture"); /* cannot be seen */
    assert_int_equal(leat__gpu_event_record_all(e, &err), LEAT_EIO);
    assert_int_equal(fake_cuda.broken(), 1);
    go_wrong("");
    leat__gpu_event_close(&e);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
}

static void a_stream_waits_for_an_event(void **state)
{
    leat__gpu *gpu = open_fake();
    leat__gpu_event *e, *done;
    leat__gpu_stream *s;
    leat__gpu_memory memory;
    uint8_t from[64] = {42}, seen[64];
    int kernel = fake_cuda.begin();
    assert_int_equal(leat__gpu_event_open(&e, gpu, false, NULL), 0);
    assert_int_equal(leat__gpu_event_open(&done, gpu, false, NULL), 0);
    assert_int_equal(leat__gpu_stream_open(&s, gpu, NULL), 0);
    assert_int_equal(leat__gpu_alloc(gpu, 64, &memory, NULL), 0);
    memset((void *)(uintptr_t)memory, 7, 64);
    assert_int_equal(leat__gpu_event_record_all(e, NULL), 0);
    assert_int_equal(leat__gpu_stream_after(s, e, NULL), 0);
    assert_int_equal(leat__gpu_copy_in(s, memory, from, 64, NULL), 0);
    assert_int_equal(leat__gpu_event_record(done, s, NULL), 0);
    assert_false(leat__gpu_event_passed(done));
    memcpy(seen, (void *)(uintptr_t)memory, 64);
    assert_int_equal(seen[0], 7); /* still the trainer's */
    fake_cuda.end(kernel);
    assert_true(leat__gpu_event_passed(done));
    memcpy(seen, (void *)(uintptr_t)memory, 64);
    assert_int_equal(seen[0], 42);
    leat__gpu_event_close(&e);
    leat__gpu_event_close(&done);
    leat__gpu_stream_close(&s);
    leat__gpu_free(gpu, memory);
    leat__gpu_close(&gpu);
    assert_int_equal(fake_cuda.held(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_and_come_back),
        cmocka_unit_test(an_event_of_all_streams_waits_for_the_trainer),
        cmocka_unit_test(a_stream_waits_for_an_event),
        cmocka_unit_test(each_failing_call_is_an_error_and_nothing_stays),
    };
    return cmocka_run_group_tests(tests, find_fake, NULL);
}
