/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/meter_text.c: the JSON is read back with jansson; the OpenMetrics text is
 * compared whole, and checked line by line against the rules of the format.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "probe/meter.h"

static leat__meters *open_set(const char *name)
{
    leat__meters *set = NULL;
    leat_error err = {0};
    assert_int_equal(leat__meters_open(&set, name, &err), 0);
    return set;
}

static void test_openmetrics_exact(void **state)
{
    leat__meters *a = open_set("train"), *b = open_set("val\"1");
    leat__counter_add(leat__counter_make(a, "read_bytes", "stage=read", "bytes \\ \"read\"\nso"), 7);
    leat__counter_add(leat__counter_make(a, "busy_ns", NULL, NULL), 1500000001);
    leat__gauge_set(leat__gauge_make(a, "lag_ns", NULL, NULL), -20);
    leat__gauge_set(leat__gauge_make(a, "ahead_ns", NULL, NULL), 2000000000);
    leat__counter_add(leat__counter_make(b, "read_bytes",
                                         "stage=a\\b\xff"
                                         "c",
                                         "other"),
                      8);
    leat__gauge_set(leat__gauge_make(b, "queue_len", NULL, "waiting"), -4);

    static const char want[] = "# TYPE leat_read_bytes counter\n"
                               "# UNIT leat_read_bytes bytes\n"
                               "# HELP leat_read_bytes bytes \\\\ \\\"read\\\"\\nso\n"
                               "leat_read_bytes_total{set=\"train\",stage=\"read\"} 7\n"
                               "leat_read_bytes_total{set=\"val\\\"1\",stage=\"a\\\\b\xef\xbf\xbd"
                               "c\"} 8\n"
                               "# TYPE leat_busy_seconds counter\n"
                               "# UNIT leat_busy_seconds seconds\n"
                               "leat_busy_seconds_total{set=\"train\"} 1.500000001\n"
                               "# TYPE leat_lag_seconds gauge\n"
                               "# UNIT leat_lag_seconds seconds\n"
                               "leat_lag_seconds{set=\"train\"} -0.00000002\n"
                               "# TYPE leat_ahead_seconds gauge\n"
                               "# UNIT leat_ahead_seconds seconds\n"
                               "leat_ahead_seconds{set=\"train\"} 2.0\n"
                               "# TYPE leat_queue_len gauge\n"
                               "# HELP leat_queue_len waiting\n"
                               "leat_queue_len{set=\"val\\\"1\"} -4\n"
                               "# EOF\n";
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__meters_openmetrics(NULL, &out), 0);
    assert_string_equal(leat__buf_str(&out), want);
    leat__buf_reset(&out);
    leat__meters_close(&a);
    leat__meters_close(&b);
}

static void test_openmetrics_empty(void **state)
{
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__meters_openmetrics(NULL, &out), 0);
    assert_string_equal(leat__buf_str(&out), "# EOF\n");
    leat__buf_reset(&out);
}

/* Bounds rise, counts never fall, +Inf equals _count, times beyond the last bound count. */
static void test_openmetrics_histogram(void **state)
{
    leat__meters *set = open_set("s");
    leat__timer *t = leat__timer_make(set, "decode_ns", "stage=decode", "decode one");
    leat__timer_record(t, 1024); /* exactly a bound: counted under it */
    leat__timer_record(t, 1025);
    leat__timer_record(t, 3000000);
    leat__timer_record(t, UINT64_C(500) * 1000000000); /* past the last bound */

    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__meters_openmetrics(set, &out), 0);
    const char *text = leat__buf_str(&out);
    assert_true(leat__str_starts(text, "# TYPE leat_decode_seconds histogram\n"
                                       "# UNIT leat_decode_seconds seconds\n"
                                       "# HELP leat_decode_seconds decode one\n"));
    double last_bound = 0;
    long last_count = 0;
    int bounds = 0;
    for (const char *at = text; (at = strstr(at, ",le=\"")) != NULL; bounds++) {
        double bound = strtod(at + 5, NULL);
        long count = strtol(strchr(at, '}') + 2, NULL, 10);
        assert_true(bound > last_bound);
        assert_true(count >= last_count);
        if (bounds == 0) {
            assert_true(bound == 1.024e-6);
            assert_int_equal(count, 1);
        }
        last_bound = bound;
        last_count = count;
        at += 5;
    }
    assert_int_equal(bounds, 28);
    assert_int_equal(last_count, 4);
    assert_non_null(strstr(text, "le=\"68.719476736\"} 3\n"));
    assert_non_null(strstr(text, "le=\"+Inf\"} 4\n"));
    assert_non_null(strstr(text, "leat_decode_seconds_count{set=\"s\",stage=\"decode\"} 4\n"));
    assert_non_null(strstr(text, "leat_decode_seconds_sum{set=\"s\",stage=\"decode\"} 500.003002049\n"));
    assert_true(leat__str_ends(text, "\n# EOF\n"));
    leat__buf_reset(&out);
    leat__meters_close(&set);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void test_buffer_too_small(void **state)
{
    leat__meters *set = open_set("s");
    leat__counter_add(leat__counter_make(set, "items", NULL, NULL), 1);
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 16);
    assert_int_equal(leat__meters_openmetrics(set, &out), LEAT_ELIMIT);
    leat__buf_reset(&out);
    leat__meters_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmetrics_exact),
        cmocka_unit_test(test_openmetrics_empty),
        cmocka_unit_test(test_openmetrics_histogram),
        cmocka_unit_test(test_buffer_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
