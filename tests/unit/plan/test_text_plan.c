/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of docs/text-scale.md, and limits.
 */
#include "plan_test.h"

static leat_plan_text make(leat_plan_text_facts f)
{
    leat_plan_text p;
    leat_error err = {0};
    if (leat_plan_text_make(&f, &p, &err) != 0) fail_msg("%s", err.message);
    return p;
}

static void one_terabyte(void **state)
{
    leat_plan_text p = make((leat_plan_text_facts){
        .text_bytes = 1000 * PLAN_GB, .cpus = 32, .disk_bytes_per_s = 2e9, .memory_bytes = 128 * PLAN_GB});
    (void)state;
    assert_int_equal(p.documents, 250000000);
    assert_true(p.filter.seconds > 790 && p.filter.seconds < 810); /* 13 minutes: 1.6 TB at 2 GB/s */
    assert_int_equal(p.filter.limit, LEAT_PLAN_IO);
    assert_int_equal(p.filter.output_bytes, 600 * PLAN_GB);
    assert_true(p.dedup.seconds > 42 * 60 && p.dedup.seconds < 43 * 60);
    assert_int_equal(p.dedup.work_bytes, UINT64_C(250000000) * 328);
    assert_int_equal(p.dedup.ram_bytes, UINT64_C(250000000) * 12 / 15 * 16 + (8 << 20) * 16 / 15 + 1);
    assert_int_equal(p.dedup.passes, 2);
    assert_int_equal(p.dedup.fits, 1);
    assert_true(p.source[0] != '\0');
}

static void facts_matter(void **state)
{
    leat_plan_text_facts f = {.text_bytes = 500 * PLAN_GB, .cpus = 8, .memory_bytes = 64 * PLAN_GB};
    leat_plan_text p = make(f), q;
    (void)state;
    assert_int_equal(p.dedup.fits, 1);
    f.cpus = 1;
    q = make(f);
    assert_true(q.filter.seconds > 5 * p.filter.seconds && q.filter.limit == LEAT_PLAN_CPU);
    f.nodes = 4; /* filters only */
    assert_true(make(f).filter.seconds < q.filter.seconds / 3.9);
    assert_true(make(f).dedup.seconds == q.dedup.seconds && make(f).dedup.nodes == 1);
    f.bands_per_iteration = 7;
    p = make(f);
    assert_int_equal(p.dedup.work_bytes, p.documents * 244);
    assert_int_equal(p.dedup.passes, 3);
    assert_true(p.dedup.seconds > q.dedup.seconds);
    f.memory_bytes = PLAN_GB; /* 1.5 GB for 125 million documents */
    assert_int_equal(make(f).dedup.fits, 0);
    f.memory_bytes = 0;
    f.documents = UINT64_C(5000000000); /* more than lines have numbers */
    assert_int_equal(make(f).dedup.fits, 0);
}

static void nonsense_is_refused(void **state)
{
    leat_plan_text p;
    leat_error err = {0};
    leat_plan_text_facts f = {0};
    (void)state;
    assert_int_equal(leat_plan_text_make(&f, &p, &err), LEAT_EINVAL);
    f.text_bytes = 1;
    f.bands = 3;
    f.bands_per_iteration = 4;
    assert_int_equal(leat_plan_text_make(&f, &p, &err), LEAT_EINVAL);
    f = (leat_plan_text_facts){.text_bytes = 1, .bands = 200, .rows = 20};
    assert_int_equal(leat_plan_text_make(&f, &p, &err), LEAT_EINVAL);
    f = (leat_plan_text_facts){.text_bytes = 1, .disk_bytes_per_s = -1};
    assert_int_equal(leat_plan_text_make(&f, &p, &err), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_terabyte), cmocka_unit_test(facts_matter),
                                       cmocka_unit_test(nonsense_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
