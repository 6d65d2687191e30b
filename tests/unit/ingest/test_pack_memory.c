/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory limits of packing: in proportion to the threads, and hard when set by the user.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ingest/pack_memory.h"

#define MIB (UINT64_C(1) << 20)

static void test_by_threads(void **state)
{
    leat_ingest_opts o;
    leat__pack_memory a;
    leat_budget_stats one, eight;
    leat_error err;
    leat_ingest_opts_init(&o);
    assert_int_equal(leat__pack_memory_open(&a, &o, 1, &err), 0);
    leat_budget_read(a.budget, &one);
    assert_true(one.limit <= 256 * MIB && one.limit <= a.ceiling);
    assert_int_equal(a.large, one.limit / 2);
    assert_int_equal(leat__pack_memory_ask(&a, a.ceiling, &err), 0);
    assert_int_equal(leat__pack_memory_ask(&a, a.ceiling + 1, &err), LEAT_EBUDGET);
    assert_int_equal(leat__pack_memory_peak(&a), a.ceiling); /* refused images are not processed */
    leat__pack_memory_close(&a);
    assert_int_equal(leat__pack_memory_open(&a, &o, 8, &err), 0);
    leat_budget_read(a.budget, &eight);
    assert_true(eight.limit == 1024 * MIB || eight.limit == a.ceiling);
    leat__pack_memory_close(&a);
    assert_null(a.budget);
}

static void test_as_asked(void **state)
{
    leat_ingest_opts o;
    leat__pack_memory a;
    leat_budget_stats stats;
    leat_error err;
    leat_ingest_opts_init(&o);
    o.memory = 64 * MIB;
    assert_int_equal(leat__pack_memory_open(&a, &o, 8, &err), 0);
    leat_budget_read(a.budget, &stats);
    assert_int_equal(stats.limit, 64 * MIB);
    assert_int_equal(a.large, UINT64_MAX); /* nothing is processed outside the budget */
    leat__pack_memory_close(&a);
}

/* An image that is processed alone is counted besides what the flow holds then. */
static void test_peak(void **state)
{
    leat_ingest_opts o;
    leat__pack_memory a;
    leat_error err;
    leat_ingest_opts_init(&o);
    assert_int_equal(leat__pack_memory_open(&a, &o, 1, &err), 0);
    assert_int_equal(leat_budget_try(a.budget, LEAT_BUDGET_OTHER, 5 * MIB), 0);
    assert_int_equal(leat__pack_memory_peak(&a), 5 * MIB);
    assert_int_equal(leat__pack_memory_ask(&a, 20 * MIB, &err), 0);
    leat_budget_release(a.budget, LEAT_BUDGET_OTHER, 5 * MIB);
    assert_int_equal(leat__pack_memory_ask(&a, 10 * MIB, &err), 0);
    assert_int_equal(leat__pack_memory_peak(&a), 25 * MIB);
    leat__pack_memory_close(&a);
    assert_int_equal(leat__pack_memory_peak(&a), 0);
}

/* A small budget is declared as a whole, and the number that a refusal names is enough. */
static void test_small(void **state)
{
    leat_ingest_opts o;
    leat__pack_memory a;
    leat_error err;
    leat_ingest_opts_init(&o);
    o.memory = 20 * MIB;
    assert_int_equal(leat__pack_memory_open(&a, &o, 8, &err), 0);
    assert_int_equal(leat__pack_memory_scratch(&a, 2 * MIB, 1 * MIB, 3 * MIB), 10 * MIB);
    assert_int_equal(leat__pack_memory_fits(&a, 13 * MIB, &err), 0);
    assert_int_equal(leat__pack_memory_fits(&a, 14 * MIB, &err), LEAT_EBUDGET);
    assert_non_null(strstr(err.message, "at least 21.0 MiB"));
    leat__pack_memory_close(&a);
    o.memory = 8 * MIB; /* too small for any image: the flow refuses it */
    assert_int_equal(leat__pack_memory_open(&a, &o, 8, &err), 0);
    assert_int_equal(leat__pack_memory_scratch(&a, 2 * MIB, 1 * MIB, 3 * MIB), 2 * MIB);
    leat__pack_memory_close(&a);
    o.memory = 0;
    assert_int_equal(leat__pack_memory_open(&a, &o, 8, &err), 0);
    assert_int_equal(leat__pack_memory_scratch(&a, 2 * MIB, 1 * MIB, 3 * MIB), 2 * MIB);
    assert_int_equal(leat__pack_memory_fits(&a, UINT64_MAX, &err), 0);
    leat__pack_memory_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_threads),
        cmocka_unit_test(test_as_asked),
        cmocka_unit_test(test_peak),
        cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
