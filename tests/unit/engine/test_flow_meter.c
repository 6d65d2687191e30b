/* SPDX-License-Identifier: Apache-2.0
 *
 * The meters of a running flow can be exported and match its own statistics.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stages.h"

#include "probe/meter.h"

static int fail_fives(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    return number_of(task) % 5 == 0 ? leat__fail(err, LEAT_EDATA, "five") : 0;
}

static bool says(const char *text)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__meters_openmetrics(NULL, &b), 0);
    bool found = strstr(leat__buf_str(&b), text) != NULL;
    if (!found) print_message("%s\n", leat__buf_str(&b));
    leat__buf_reset(&b);
    return found;
}

static void meters_match_stage_counts(void **state)
{
    numbers n = {.end = 100, .bytes = 10};
    rig r = {0};
    leat_flow_opts fo = rig_opts(&r, 2, 100000);
    fo.name = "metered";
    fo.on_error = LEAT_FLOW_SKIP;
    leat_stage s[] = {number_stage(&n), plain_stage(LEAT_STAGE_MAP, "fives", fail_fives, NULL)};
    rig_start(&r, &fo, s, 2);
    leat_task *t;
    while (leat_flow_next(r.flow, &t, -1, NULL) == 0 && t) leat_task_release(t);
    leat_stage_stats ss;
    assert_int_equal(leat_flow_read_stage(r.flow, 1, &ss), 0);
    assert_int_equal(ss.items, 100);
    assert_int_equal(ss.failed, 20);
    assert_true(says("leat_stage_items_total{set=\"metered\",stage=\"fives\"} 100"));
    assert_true(says("leat_stage_failed_total{set=\"metered\",stage=\"fives\"} 20"));
    assert_true(says("leat_stage_bytes_total{set=\"metered\",stage=\"fives\"} 1000"));
    rig_close(&r);
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__meters_openmetrics(NULL, &b), 0);
    assert_null(strstr(leat__buf_str(&b), "metered")); /* removed with the flow */
    leat__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meters_match_stage_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
