/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

/* An H200 that trains at `rate` with batches of 256, and threads that take 221 us for an image. */
static leat_plan h200(double rate, int32_t threads)
{
    leat_plan_facts f = guide_facts();
    double ms = 256e3 / rate;
    snprintf(f.gpu, sizeof f.gpu, "H200");
    snprintf(f.cpu, sizeof f.cpu, "Intel(R) Xeon(R) Processor");
    snprintf(f.isa, sizeof f.isa, "avx512icl");
    f.batch = 256;
    f.element_bytes = 1;
    f.workers = threads;
    f.measured.step_ms = (leat_plan_range){ms, ms, ms};
    f.measured.cpu_us = (leat_plan_range){221, 221, 221};
    return plan_of(f);
}

/* bench/RESULTS.md: ResNet-50 and ResNet-18 fed by 1, 2 and 4 threads. */
static void shares_are_those_that_were_measured(void **state)
{
    static const struct {
        double rate;
        int32_t threads;
        double gpu, both;
    } rows[] = {
        {6634, 1, 0.985, 0.961}, {6634, 2, 0.988, 0.991}, {6634, 4, 0.983, 0.998}, {17634, 4, 0.936, 0.971}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        leat_plan p = h200(rows[i].rate, rows[i].threads);
        assert_int_equal(p.decode_count, 3);
        assert_string_equal(p.decodes[0].decode, "cpu");
        assert_near(p.decodes[1].share, rows[i].gpu, 0.04);
        assert_near(p.decodes[2].share, rows[i].both, 0.04);
        assert_true(p.decodes[2].rate >= p.decodes[1].rate && p.decodes[2].rate >= p.decodes[0].rate);
    }
    leat_plan p = h200(6634, 1); /* CPUs alone: 0.504 */
    assert_near(p.decodes[0].share, 0.504, 0.05);
    assert_int_equal(p.decodes[0].threads, 2); /* 6,634 x 221 us, beside the trainer */
    p = h200(17608, 4);                        /* 0.771 */
    assert_near(p.decodes[0].share, 0.771, 0.1);
    assert_int_equal(p.decodes[0].threads, 5);
    assert_int_equal(p.decodes[1].threads, 1);
    assert_true(p.decodes[1].device_bytes > p.decodes[0].device_bytes);
    assert_int_equal(p.decodes[1].estimated, 0);
}

/* Ops such as GaussianBlur run on CPUs only: no row promises a rate of the GPU. */
static void images_that_need_cpus_are_not_decoded_there(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.measured.step_ms = (leat_plan_range){100, 100, 100};
    f.workers = 1;
    f.measured.cpu_us = (leat_plan_range){9000, 9000, 9000};
    leat_plan all = plan_of(f);
    f.host_share = 0.5;
    leat_plan half = plan_of(f);
    f.host_share = 1;
    leat_plan none = plan_of(f);
    assert_int_equal(none.decode_count, 1);
    assert_string_equal(none.decodes[0].decode, "cpu");
    assert_near(none.decodes[0].rate, all.decodes[0].rate, 1e-9);
    assert_int_equal(half.decode_count, 3);
    assert_true(half.decodes[1].rate < 0.9 * all.decodes[1].rate);
    assert_true(half.decodes[1].rate > half.decodes[0].rate);
    assert_true(half.decodes[2].rate <= all.decodes[2].rate);
}

static void only_tiles_and_leats_threads_are_asked(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    f.measured.step_ms = (leat_plan_range){100, 100, 100};
    leat_plan p = plan_of(f);
    assert_int_equal(p.decode_count, 3);
    assert_int_equal(p.decodes[1].estimated, 1); /* an A10G: by its bandwidth */
    f.images = LEAT_PLAN_KEEP;
    assert_int_equal(plan_of(f).decode_count, 0);
    f.images = LEAT_PLAN_TILED;
    f.loader = LEAT_PLAN_PROCESS;
    assert_int_equal(plan_of(f).decode_count, 0);
    f.loader = LEAT_PLAN_LEAT;
    f.gpus = 0;
    assert_int_equal(plan_of(f).decode_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_that_were_measured),
        cmocka_unit_test(images_that_need_cpus_are_not_decoded_there),
        cmocka_unit_test(only_tiles_and_leats_threads_are_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
