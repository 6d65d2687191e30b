/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/trace.c: the Chrome trace JSON, that the newest events are kept, and that an
 * export during recording never shows a partial event.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/mem.h"
#include "base/thread.h"
#include "probe/trace.h"

static void start(uint32_t events)
{
    leat_error err = {0};
    assert_int_equal(leat__trace_start(events, &err), 0);
}

static json_t *export(void)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 64 << 20);
    assert_int_equal(leat__trace_json(&out), 0);
    json_error_t why;
    json_t *root = json_loads(leat__buf_str(&out), 0, &why);
    if (!root) fail_msg("not JSON: %s", why.text);
    leat__buf_reset(&out);
    return root;
}

/* The n-th event of this phase, NULL when there are fewer. */
static json_t *nth(json_t *root, const char *phase, size_t n)
{
    json_t *events = json_object_get(root, "traceEvents"), *e;
    size_t i;
    json_array_foreach(events, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "ph")), phase) == 0 && n-- == 0) {
            return e;
        }
    }
    return NULL;
}

static long long arg_of(json_t *e, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(e, "args"), key));
}

static void test_off(void **state)
{
    assert_false(leat__trace_on());
    leat__trace_span("x", 1, 2, 3);
    assert_int_equal(leat__trace_begin(), 0);
    leat__trace_end("x", 0, 1);
    json_t *root = export();
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 1); /* the process */
    json_decref(root);
    assert_int_equal(leat__mem_used(LEAT__MEM_PROBE), 0);
}

static void test_kinds(void **state)
{
    start(64);
    assert_true(leat__trace_on());
    leat__trace_span("decode", 1000001, 1003502, -5);
    leat__trace_span("backwards", 20, 10, 0);
    leat__trace_span("mark \"1\"", 30, 40, 7);
    uint64_t begin = leat__trace_begin();
    assert_true(begin != 0);
    leat__trace_end("timed", begin, 1);
    leat__trace_stop();
    leat__trace_span("late", 1, 2, 1);
    leat__trace_end("late", begin, 1);

    json_t *root = export();
    json_t *e = nth(root, "X", 0);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "decode");
    assert_true(json_number_value(json_object_get(e, "ts")) == 1000.001);
    assert_true(json_number_value(json_object_get(e, "dur")) == 3.501);
    assert_int_equal(arg_of(e, "arg"), -5);
    e = nth(root, "X", 1);
    assert_true(json_number_value(json_object_get(e, "dur")) == 0);
    e = nth(root, "X", 2);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "mark \"1\"");
    e = nth(root, "X", 3);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "timed");
    assert_null(nth(root, "X", 4));
    json_decref(root);
    leat__trace_reset();
    assert_int_equal(leat__mem_used(LEAT__MEM_PROBE), 0);
}

static void test_newest_are_kept(void **state)
{
    start(100); /* 128 */
    for (int i = 0; i < 1000; i++) leat__trace_span("s", 1, 2, i);
    assert_int_equal(leat__trace_dropped(), 1000 - 128);
    json_t *root = export();
    for (int i = 0; i < 128; i++) {
        assert_int_equal(arg_of(nth(root, "X", (size_t)i), "arg"), 1000 - 128 + i);
    }
    assert_null(nth(root, "X", 128));
    json_t *other = json_object_get(root, "otherData");
    assert_int_equal(json_integer_value(json_object_get(other, "dropped_events")), 872);
    json_decref(root);
    leat__trace_reset(); /* stops, too */
    assert_false(leat__trace_on());
    assert_int_equal(leat__trace_dropped(), 0);
}

static void test_start_twice_and_bad_sizes(void **state)
{
    leat_error err = {0};
    start(0);
    assert_int_equal(leat__trace_start(0, &err), LEAT_ESTATE);
    leat__trace_stop();
    assert_int_equal(leat__trace_start(UINT32_MAX, &err), LEAT_EINVAL);
    start(8); /* continues after the kept events */
    leat__trace_span("a", 1, 2, 1);
    leat__trace_reset();
    start(8);
    leat__trace_span("b", 1, 2, 2); /* the ring from before the reset is not used again */
    json_t *root = export();
    assert_int_equal(arg_of(nth(root, "X", 0), "arg"), 2);
    assert_null(nth(root, "X", 1));
    json_decref(root);
    leat__trace_reset();
    assert_int_equal(leat__mem_used(LEAT__MEM_PROBE), 0);
}

static void named_main(void *arg)
{
    leat__trace_span("hello", 1, 2, *(int *)arg);
}

static void test_one_track_per_thread(void **state)
{
    leat__thread t[2] = {{0}};
    leat_error err = {0};
    int values[2] = {1, 2};
    start(16);
    assert_int_equal(leat__thread_start(&t[0], "decode-0", named_main, &values[0], &err), 0);
    assert_int_equal(leat__thread_start(&t[1], "decode-1", named_main, &values[1], &err), 0);
    leat__thread_join(&t[0]);
    leat__thread_join(&t[1]);
    leat__trace_stop();
    json_t *root = export(); /* the threads have ended, their tracks remain */
    long long tids[2] = {0};
    for (size_t n = 0; n < 3; n++) {
        json_t *m = nth(root, "M", n);
        assert_non_null(m);
        const char *name = json_string_value(json_object_get(json_object_get(m, "args"), "name"));
        if (strcmp(name, "decode-0") == 0) {
            tids[0] = json_integer_value(json_object_get(m, "tid"));
        }
        if (strcmp(name, "decode-1") == 0) {
            tids[1] = json_integer_value(json_object_get(m, "tid"));
        }
    }
    assert_true(tids[0] != 0 && tids[1] != 0 && tids[0] != tids[1]);
    for (size_t n = 0; n < 2; n++) {
        json_t *e = nth(root, "X", n);
        int which = arg_of(e, "arg") == 1 ? 0 : 1;
        assert_int_equal(json_integer_value(json_object_get(e, "tid")), tids[which]);
    }
    json_decref(root);
    leat__trace_reset();
}

/* A row that is not a thread's: its spans are on it, and the thread's are not. */
static void test_rows_of_other_work(void **state)
{
    char name[32];
    start(16);
    const uint32_t one = leat__trace_row("stream 1"), two = leat__trace_row("stream 2");
    assert_true(one > 0 && two > 0 && one != two);
    assert_int_equal(leat__trace_row("stream 1"), one);
    leat__trace_span_on(two, "copy", 100, 200, 5);
    leat__trace_span("own", 100, 200, 6);
    json_t *root = export();
    json_t *e = nth(root, "X", 0), *own = nth(root, "X", 1), *m = nth(root, "M", 2);
    const long long tid = json_integer_value(json_object_get(e, "tid"));
    assert_int_equal(arg_of(e, "arg"), 5);
    assert_true(tid != json_integer_value(json_object_get(own, "tid")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(m, "args"), "name")), "stream 2");
    assert_int_equal(json_integer_value(json_object_get(m, "tid")), tid);
    assert_null(nth(root, "M", 3)); /* a row without events is not written */
    json_decref(root);
    leat__trace_reset();
    uint32_t last = 1;
    for (int i = 0; i < 600 && last > 0; i++) {
        snprintf(name, sizeof name, "row %d", i);
        last = leat__trace_row(name);
    }
    assert_int_equal(last, 0); /* there are no more; those before stay */
    assert_int_equal(leat__trace_row("stream 2"), two);
}

/* ---- exporting while others write ------------------------------------------------------ */

static _Atomic bool stop_writing;

/* Every field of an event follows from its number, so a partial event would show. */
static void busy_main(void *arg)
{
    static const char *const names[] = {"n0", "n1", "n2"};
    for (int64_t i = 1; !atomic_load(&stop_writing); i++) {
        leat__trace_span(names[i % 3], (uint64_t)i * 1000, (uint64_t)i * 3000, i);
    }
}

static void check_whole(json_t *root, bool *any)
{
    json_t *events = json_object_get(root, "traceEvents"), *e;
    size_t i;
    json_array_foreach(events, i, e)
    {
        if (strcmp(json_string_value(json_object_get(e, "ph")), "X") != 0) continue;
        long long n = arg_of(e, "arg");
        char name[8] = {'n', (char)('0' + n % 3), 0};
        assert_string_equal(json_string_value(json_object_get(e, "name")), name);
        assert_true(json_number_value(json_object_get(e, "ts")) == (double)n);
        assert_true(json_number_value(json_object_get(e, "dur")) == (double)n * 2);
        *any = true;
    }
}

static void test_export_while_recording(void **state)
{
    leat__thread t[4] = {{0}};
    leat_error err = {0};
    bool any = false;
    atomic_store(&stop_writing, false);
    start(16); /* small: overwritten constantly */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(leat__thread_start(&t[i], "busy", busy_main, NULL, &err), 0);
    }
    for (int round = 0; round < 200 || (!any && round < 100000); round++) {
        json_t *root = export();
        check_whole(root, &any);
        json_decref(root);
        if (round % 50 == 49) { /* resets during recording free no ring in use */
            leat__trace_reset();
            start(16);
        }
    }
    atomic_store(&stop_writing, true);
    for (int i = 0; i < 4; i++) leat__thread_join(&t[i]);
    assert_true(any);
    leat__trace_reset();
    assert_int_equal(leat__mem_used(LEAT__MEM_PROBE), 0);
}

static void churn_main(void *arg)
{
    leat__trace_span("x", 1, 2, 1);
}

static void test_thread_churn_is_bounded(void **state)
{
    leat_error err = {0};
    start(8);
    for (int i = 0; i < 1030; i++) {
        leat__thread t = {0};
        assert_int_equal(leat__thread_start(&t, "churn", churn_main, NULL, &err), 0);
        leat__thread_join(&t);
    }
    assert_int_equal(leat__trace_dropped(), 6); /* 1024 rings at most, the rest is counted */
    leat__trace_reset();
}

static void test_no_memory(void **state)
{
    if (!leat__fault_available()) skip();
    start(8);
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    leat__trace_span("lost", 1, 2, 1);
    leat__trace_span("kept", 1, 2, 2);
    leat__fault_disarm();
    assert_int_equal(leat__trace_dropped(), 1);
    json_t *root = export();
    assert_int_equal(arg_of(nth(root, "X", 0), "arg"), 2);
    json_decref(root);
    leat__trace_reset();
    assert_int_equal(leat__mem_used(LEAT__MEM_PROBE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_newest_are_kept),
        cmocka_unit_test(test_start_twice_and_bad_sizes),
        cmocka_unit_test(test_one_track_per_thread),
        cmocka_unit_test(test_export_while_recording),
        cmocka_unit_test(test_thread_churn_is_bounded),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_rows_of_other_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
