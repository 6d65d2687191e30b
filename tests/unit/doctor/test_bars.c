/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/bars.h"

static leat_doctor_diagnosis starved(void)
{
    leat_doctor_facts f = healthy();
    starve(&f, 2500);
    f.cpu_all = 2600;
    f.cpu_used = 15.5;
    f.decode_ready = 0.9;
    return judge(f);
}

static void rates_are_logarithmic_and_mark_the_limit(void **state)
{
    leat_doctor_diagnosis d = starved();
    leat__bar rows[LEAT__RATE_BARS];
    uint32_t count = leat__rate_bars(&d, rows), limits = 0;
    (void)state;
    assert_int_equal(count, 5); /* the budget is not a limit: it has no row */
    assert_string_equal(rows[count - 1].name, "reached now");
    assert_true(rows[count - 1].reached);
    for (uint32_t i = 0; i < count; i++) {
        assert_in_range((uint64_t)(1000 * rows[i].share), 250, 1000);
        assert_true(strlen(rows[i].name) <= 18);
        limits += rows[i].limit;
        if (rows[i].limit) assert_string_equal(rows[i].name, "decode + augment");
    }
    assert_int_equal(limits, 1);
    assert_near(rows[2].share, 1, 1e-9); /* delivery is by far the fastest */
}

/* A verdict that is not sure: reads do not limit beside a slower part. */
static void a_faster_part_is_not_marked(void **state)
{
    leat_doctor_diagnosis d = starved();
    leat__bar rows[LEAT__RATE_BARS];
    (void)state;
    d.limit = LEAT_LIMIT_IO;
    d.io = 61600;
    d.cpu = 41700;
    d.trainer = 40500;
    uint32_t count = leat__rate_bars(&d, rows);
    for (uint32_t i = 0; i < count; i++) assert_false(rows[i].limit);
    d.io = 40600;
    leat__rate_bars(&d, rows);
    assert_true(rows[0].limit);
    d.device = 30000;
    assert_int_equal(leat__rate_bars(&d, rows), count + 1);
    assert_string_equal(rows[3].name, "device");
    assert_false(rows[0].limit);
}

static void unknown_parts_are_named(void **state)
{
    leat_doctor_facts f = healthy();
    leat__bar rows[LEAT__RATE_BARS];
    (void)state;
    f.io_cold = f.io_warm = -1;
    leat_doctor_diagnosis d = judge(f);
    assert_true(leat__rate_bars(&d, rows) > 0);
    assert_string_equal(rows[0].value, "not known");
    assert_near(rows[0].share, 0, 0);
    leat_doctor_facts_init(&f);
    d = judge(f);
    assert_int_equal(leat__rate_bars(&d, rows), 0);
}

static void shares_stay_within_the_bar(void **state)
{
    leat_doctor_diagnosis d = starved();
    leat__bar rows[LEAT__SHARE_BARS];
    (void)state;
    d.facts.cpu_used = 40; /* of 16 CPUs: inconsistent clocks */
    uint32_t count = leat__share_bars(&d, rows);
    assert_true(count >= 6);
    assert_string_equal(rows[0].name, "waiting for data");
    assert_true(rows[0].limit);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(rows[i].share >= 0 && rows[i].share <= 1);
        assert_true(strlen(rows[i].name) <= 18);
        if (strcmp(rows[i].name, "CPUs busy") == 0) assert_string_equal(rows[i].value, "100.0 %");
    }
    d.facts.prepare_ms = 5; /* lost is of both */
    leat__share_bars(&d, rows);
    assert_string_equal(rows[0].name, "wait and transform");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_logarithmic_and_mark_the_limit),
        cmocka_unit_test(a_faster_part_is_not_marked),
        cmocka_unit_test(unknown_parts_are_named),
        cmocka_unit_test(shares_stay_within_the_bar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
