/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "base/num.h"
#include "op/op.h"
#include "plan/parts.h"

static double cost(const char *ops, const char *isa, uint32_t width, uint32_t height)
{
    double us;
    bool sure;
    assert_true(leat__plan_ops_us(ops, isa, width, height, &us, &sure));
    assert_true(sure);
    return us;
}

#define JITTER "ColorJitter(0.4, 0.4, 0.4, 0.1)"

/* What the table says of one op for this many times 224 x 224 pixels. */
static double row(const char *name, double times)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_op_cost_rows); i++)
        if (strcmp(plan_op_cost_rows[i].name, name) == 0)
            return plan_op_cost_rows[i].fixed_us + times * plan_op_cost_rows[i].avx2_us;
    fail_msg("no row of %s", name);
    return 0;
}

static void ops_add_up_by_name_isa_and_size(void **state)
{
    (void)state;
    assert_near(cost("RandomResizedCrop(224); Resize(96)", "avx2", 224, 224), 0, 0);
    assert_near(cost("GaussianBlur(23); " JITTER, "avx2", 224, 224),
                row("GaussianBlur", 1) + row("ColorJitter", 1), 0.1);
    assert_near(cost(JITTER, "avx2", 112, 112), row("ColorJitter", 0.25), 0.1);
    assert_true(cost(JITTER, "avx512icl", 224, 224) < cost(JITTER, "avx2", 224, 224));
    assert_true(cost(JITTER, "avx2", 224, 224) < cost(JITTER, "scalar", 224, 224));
}

/* The cost of an op inside RandomApply was counted whatever its p was. */
static void an_op_costs_by_its_probability(void **state)
{
    const double blur = row("GaussianBlur", 1), clahe = row("CLAHE", 1), invert = row("RandomInvert", 1);
    (void)state;
    assert_near(cost("RandomApply(GaussianBlur(23), p=0.2)", "avx2", 224, 224), 0.2 * blur, 0.1);
    assert_near(cost("GaussianBlur(23, p=0.2)", "avx2", 224, 224), 0.2 * blur, 0.1);
    assert_near(cost("RandomApply(GaussianBlur(23, p=0.5); CLAHE(p=1), p=0.2)", "avx2", 224, 224),
                0.2 * (0.5 * blur + clahe), 0.1);
    assert_near(cost("CLAHE()", "avx2", 224, 224), 0.5 * clahe, 0.1); /* its default */
    assert_near(cost("RandomChoice(GaussianBlur(23); CLAHE(p=1), p=(1, 3))", "avx2", 224, 224),
                0.25 * blur + 0.75 * clahe, 0.1);
    assert_near(cost("RandomChoice(GaussianBlur(23); RandomInvert(1))", "avx2", 224, 224),
                (blur + invert) / 2, 0.1);
    assert_near(cost("RandomOrder(GaussianBlur(23); RandomInvert(1))", "avx2", 224, 224), blur + invert, 0.1);
    assert_near(cost("RandomApply(GaussianBlur(23), p=0)", "avx2", 224, 224), 0, 0);
}

static void ops_after_ten_crops_cost_ten_times(void **state)
{
    const double crops = cost("TenCrop(112)", "avx2", 224, 224), one = cost(JITTER, "avx2", 112, 112);
    (void)state;
    assert_near(crops, row("TenCrop", 10 / 4.0), 0.1);
    assert_near(cost("TenCrop(112)", "avx2", 5000, 4000), crops, 0); /* it copies only its crops */
    assert_near(cost("FiveCrop(112)", "avx2", 224, 224), row("FiveCrop", 5 / 4.0), 0.1);
    const double more = cost("TenCrop(112); " JITTER, "avx2", 224, 224) - crops;
    assert_near(more, row("ColorJitter", 10 / 4.0), 0.1);
    assert_true(more > 9 * one && more <= 10 * one);
    /* the table of samples has the output of one image */
    assert_near(cost("Normalize(0.5, 0.5)", "avx2", 224, 224), 0, 0);
    assert_near(cost("TenCrop(112); Normalize(0.5, 0.5)", "avx2", 224, 224) - crops,
                row("Normalize", 9 / 4.0), 0.1);
}

static void arguments_change_the_cost(void **state)
{
    const double jitter = row("ColorJitter", 1), policy = cost("RandAugment()", "avx2", 224, 224);
    (void)state;
    assert_true(cost("ColorJitter(0.4)", "avx2", 224, 224) < 0.15 * jitter); /* brightness only */
    assert_true(cost("ColorJitter(hue=0.1)", "avx2", 224, 224) > 0.5 * jitter);
    assert_true(cost("GaussianBlur(3)", "avx2", 224, 224) < 0.6 * row("GaussianBlur", 1));
    assert_true(cost("RandAugment(4)", "avx2", 224, 224) > 1.8 * policy);
    assert_true(cost("RandAugment(interpolation=bilinear)", "avx2", 224, 224) > 2 * policy);
}

/* The table's cost was that of the output, wherever the op stood: 12.5 ms were planned, 198 ms were real. */
static void an_op_costs_by_the_size_of_its_image(void **state)
{
    const double whole = 5000.0 * 4000 / (224 * 224);
    (void)state;
    assert_near(cost(JITTER "; Resize(224); CenterCrop(224)", "avx2", 5000, 4000), row("ColorJitter", whole),
                1);
    assert_near(cost("Resize(224); CenterCrop(224); " JITTER, "avx2", 5000, 4000), row("ColorJitter", 1),
                0.1);
    assert_near(cost("RandomResizedCrop(224); " JITTER, "avx2", 5000, 4000), row("ColorJitter", 1), 0.1);
    /* between a resize and a crop */
    assert_near(cost("Resize(224); " JITTER "; CenterCrop(224)", "avx2", 5000, 4000),
                row("ColorJitter", 1.25), 0.1);
}

static void a_size_that_varies_is_a_guess(void **state)
{
    leat_plan_facts f = guide_facts();
    double us;
    bool sure;
    (void)state;
    assert_true(leat__plan_ops_us("RandomShortestSize((100, 400)); " JITTER "; Resize((224, 224))", "avx2",
                                  500, 500, &us, &sure));
    assert_false(sure);
    const double most = row("ColorJitter", 400.0 * 400 / (224 * 224));
    assert_true(us >= most / 2 && us < most);
    f.ops_us = us;
    leat_plan_range exact = plan_of(f).speed.cpu;
    f.ops_guess = 1;
    leat_plan plan = plan_of(f);
    assert_true(plan.speed.cpu.low < exact.low && plan.speed.cpu.high > exact.high);
}

static void every_op_has_a_cost(void **state)
{
    const leat__op_def *op;
    (void)state;
    for (uint32_t i = 0; (op = leat__op_at(i)) != NULL; i++) {
        if (op->kind == LEAT_OP_ROLE) continue; /* not in pipelines */
        if (leat__plan_op_us(op->name, "avx2") < 0) fail_msg("%s is not in data/plan/ops.txt", op->name);
    }
}

static void unknown_ops_are_named(void **state)
{
    double us;
    bool sure;
    (void)state;
    assert_false(leat__plan_ops_us("RandomResizedCrop(224); Sparkle(3)", "avx2", 224, 224, &us, &sure));
    assert_near(us, 0, 0);
    assert_true(leat__plan_ops_us("", "avx2", 224, 224, &us, &sure));
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
    snprintf(f.cpu, sizeof f.cpu, "AMD EPYC, family 26");
    assert_near(leat__plan_cpu_times(&f), 1.35, 0);
    snprintf(f.isa, sizeof f.isa, "avx512icl");
    assert_near(leat__plan_cpu_times(&f), 0.68, 0);
    f.cpu[0] = '\0'; /* not known: the tables' own */
    assert_near(leat__plan_cpu_times(&f), 1, 0);
}

/* The share of the image that is decoded: by the ops, as --crop says for its own three. */
static void the_first_ops_say_what_is_decoded(void **state)
{
    static const struct {
        const char *ops;
        double low, high;
    } cases[] = {{"Resize((224,224))", 1, 1},
                 {"Resize(256); CenterCrop(224)", 0.54, 0.62},
                 {"RandomResizedCrop(224)", 0.36, 0.48},
                 {"CenterCrop(100)", 0.053, 0.054},
                 {"ColorJitter(0.4); CenterCrop(100)", 1, 1}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        leat__pipeline *p = NULL;
        const leat__pipeline_opts o = {.ops = cases[i].ops};
        assert_ok(leat__pipeline_open(&p, &o, NULL));
        const double area = leat__plan_ops_area(p, 500, 375);
        if (!(area >= cases[i].low && area <= cases[i].high)) fail_msg("%s: %g", cases[i].ops, area);
        leat__pipeline_close(&p);
    }
}

/* The cost of a canvas is that of its result, whose size varies. */
static void a_canvas_costs_by_its_result(void **state)
{
    double small, large;
    bool sure;
    (void)state;
    assert_true(leat__plan_ops_us("RandomZoomOut(side_range=(1,2), p=1); Resize((64,64))", "avx2", 400, 400,
                                  &small, &sure));
    assert_false(sure);
    assert_true(leat__plan_ops_us("RandomZoomOut(side_range=(1,8), p=1); Resize((64,64))", "avx2", 400, 400,
                                  &large, &sure));
    assert_true(large > 5 * small);
    assert_true(leat__plan_ops_us("RandomZoomOut(side_range=(2,2), p=1); Resize((224,224))", "avx2", 224, 224,
                                  &small, &sure));
    assert_near(small, 2 + 4 * leat__plan_op_us("RandomZoomOut", "avx2"), 1e-6);
    assert_true(leat__plan_ops_us("RandomZoomOut(p=1); Resize((224,224))", "avx2", 224, 224, &large, &sure));
    assert_near(large, 2 + 7 * leat__plan_op_us("RandomZoomOut", "avx2"), 1e-6); /* 1 to 4 times the side */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_add_up_by_name_isa_and_size),
        cmocka_unit_test(an_op_costs_by_its_probability),
        cmocka_unit_test(ops_after_ten_crops_cost_ten_times),
        cmocka_unit_test(arguments_change_the_cost),
        cmocka_unit_test(an_op_costs_by_the_size_of_its_image),
        cmocka_unit_test(a_size_that_varies_is_a_guess),
        cmocka_unit_test(every_op_has_a_cost),
        cmocka_unit_test(unknown_ops_are_named),
        cmocka_unit_test(the_cpu_counts_in_tables_not_in_measurements),
        cmocka_unit_test(the_first_ops_say_what_is_decoded),
        cmocka_unit_test(a_canvas_costs_by_its_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
