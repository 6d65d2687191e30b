/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/reads.h"
#include "io/inject.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-reads.leat"
#define SAMPLES 300

static uint64_t ids[SAMPLES];

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = SAMPLES, .classes = 3});
    for (uint64_t i = 0; i < SAMPLES; i++) ids[i] = (i * 7) % SAMPLES;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(PACK);
}

static leat_doctor_facts measured(leat_order order, uint32_t depth)
{
    leat_loader_opts o;
    leat_doctor_facts f;
    leat_error err = {0};
    leat_loader_opts_init(&o);
    o.order = order;
    o.io_depth = depth;
    leat_doctor_facts_init(&f);
    f.cached = 1;
    int rc = leat__reads_measure(PACK, ids, SAMPLES, &o, 0.4, NULL, &f, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return f;
}

static void every_rate_is_there(void **state)
{
    leat_doctor_facts f = measured(LEAT_ORDER_RANDOM, 0);
    (void)state;
    assert_true(f.io_cold > 0 && f.io_pages > 0 && f.io_deep > 0 && f.io_warm > 0);
    assert_true(f.read_ms >= 0 || f.io_cold == f.io_warm);
    assert_true(f.sample_bytes > 100 && f.dataset_bytes > SAMPLES * 100);
    f = measured(LEAT_ORDER_SEQUENTIAL, 0);
    assert_near(f.io_cold, f.io_pages, 0);
    assert_no_leaks();
}

/* A disk that answers each read after 4 ms, at most 32 at a time: at most 8,000 reads/s. */
static void a_slow_disk_is_slow(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 4000000};
    (void)state;
    assert_ok(leat__io_inject(&rule, NULL));
    leat_doctor_facts f = measured(LEAT_ORDER_RANDOM, 0);
    leat__io_inject_clear();
    assert_true(f.io_cold < 9000);
    assert_true(f.read_ms >= 4 || f.io_cold == f.io_warm);
}

/* With a depth set by the user, the maximum depth is measured from memory too. */
static void a_fixed_depth_is_compared(void **state)
{
    leat__inject_rule rule = {.path = PACK, .delay_ns = 4000000};
    (void)state;
    assert_true(measured(LEAT_ORDER_RANDOM, 0).io_warm_deep < 0);
    assert_ok(leat__io_inject(&rule, NULL));
    leat_doctor_facts f = measured(LEAT_ORDER_RANDOM, 2);
    leat__io_inject_clear();
    assert_true(f.io_warm <= 2 / 0.004);
    assert_true(f.io_warm_deep > 4 * f.io_warm);
}

static void reads_that_fail_are_an_error(void **state)
{
    leat__inject_rule rule = {.path = PACK, .offset = 4096, .sys_errno = 5};
    leat_loader_opts o;
    leat_doctor_facts f;
    leat_error err = {0};
    (void)state;
    leat_loader_opts_init(&o);
    leat_doctor_facts_init(&f);
    assert_ok(leat__io_inject(&rule, NULL));
    assert_true(leat__reads_measure(PACK, ids, SAMPLES, &o, 0.2, NULL, &f, &err) < 0);
    leat__io_inject_clear();
    assert_contains(err.message, PACK);
    assert_no_leaks();
}

static void what_was_just_written_is_in_memory(void **state)
{
    double cached = -1;
    (void)state;
    assert_ok(leat__reads_resident(PACK, &cached, NULL));
    assert_true(cached > 0.5 && cached <= 1);
    assert_code(LEAT_ENOENT, leat__reads_resident("no-such.leat", &cached, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_just_written_is_in_memory),
        cmocka_unit_test(every_rate_is_there),
        cmocka_unit_test(a_slow_disk_is_slow),
        cmocka_unit_test(a_fixed_depth_is_compared),
        cmocka_unit_test(reads_that_fail_are_an_error),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
