/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "op/op.h"
#include "plan/parts.h"

static void ops_add_up_by_name_isa_and_size(void **state)
{
    double one, two, small;
    (void)state;
    assert_true(leat__plan_ops_us("RandomResizedCrop(224); Resize(96)", "avx2", 50176, &one));
    assert_near(one, 0, 0);
    assert_true(leat__plan_ops_us("GaussianBlur(23); ColorJitter(0.4, hue=0.2)", "avx2", 50176, &two));
    assert_near(two, 514 + 485 + 40, 0.1);
    assert_true(leat__plan_ops_us("GaussianBlur(23); ColorJitter(0.4)", "avx512icl", 12544, &small));
    assert_near(small, (446 + 326) / 4.0 + 40, 0.1);
    assert_true(leat__plan_ops_us("RandomApply(GaussianBlur(9); RandomInvert())", "scalar", 50176, &one));
    assert_near(one, 774 + 25 + 40, 0.1);
}

static void every_op_has_a_cost(void **state)
{
    const leat__op_def *op;
    (void)state;
    for (uint32_t i = 0; (op = leat__op_at(i)) != NULL; i++) {
        char text[64];
        double us;
        if (op->kind == LEAT_OP_ROLE) continue; /* not in pipelines */
        snprintf(text, sizeof text, "%s()", op->name);
        if (!leat__plan_ops_us(text, "avx2", 50176, &us))
            fail_msg("%s is not in data/plan/ops.txt", op->name);
    }
}

static void unknown_ops_are_named(void **state)
{
    double us;
    (void)state;
    assert_false(leat__plan_ops_us("RandomResizedCrop(224); Sparkle(3)", "avx2", 50176, &us));
    assert_near(us, 0, 0);
    assert_true(leat__plan_ops_us("", "avx2", 50176, &us));
}

static void the_cpu_counts_in_tables_not_in_measurements(void **state)
{
    leat_plan_facts f = guide_facts();
    (void)state;
    snprintf(f.isa, sizeof f.isa, "avx512icl");
    snprintf(f.cpu, sizeof f.cpu, "AMD EPYC 9R14");
    assert_near(leat__plan_cpu_times(&f), 1, 0);
    double here = plan_of(f).speed.cpu.mid;
    snprintf(f.cpu, sizeof f.cpu, "Intel(R) Xeon(R) Processor");
    assert_near(plan_of(f).speed.cpu.mid, here / leat__plan_cpu_times(&f), here * 1e-9);
    assert_near(leat__plan_cpu_times(&f), 1.75, 0);
    f.measured.cpu_us = (leat_plan_range){90, 100, 110};
    here = plan_of(f).speed.cpu.mid;
    snprintf(f.cpu, sizeof f.cpu, "AMD EPYC 9R14");
    assert_near(plan_of(f).speed.cpu.mid, here, 0);
    snprintf(f.isa, sizeof f.isa, "avx2"); /* an older one */
    assert_near(leat__plan_cpu_times(&f), 1.35, 0);
    f.cpu[0] = '\0'; /* not known: the tables' own */
    assert_near(leat__plan_cpu_times(&f), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_add_up_by_name_isa_and_size),
        cmocka_unit_test(every_op_has_a_cost),
        cmocka_unit_test(unknown_ops_are_named),
        cmocka_unit_test(the_cpu_counts_in_tables_not_in_measurements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
