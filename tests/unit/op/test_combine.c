/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/combine.h"
#include "op/spec.h"

enum { DRAWS = 4000 };

static leat__recipe draw(const leat__pipeline *p, uint64_t sample)
{
    leat__recipe r;
    leat_error err = {0};
    if (leat__pipeline_draw(p, &(leat__draw_key){4, 0, sample}, 64, 48, &r, &err) != 0)
        fail_msg("%s", err.message);
    return r;
}

/* Returns the share of DRAWS whose recipe begins with this kind of step. */
static double share(const leat__pipeline *p, leat__step_kind kind)
{
    int n = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const leat__recipe r = draw(p, i);
        n += r.count > 1 && r.step[1].kind == kind;
    }
    return (double)n / DRAWS;
}

static void assert_near(double got, double want)
{
    if (got < want - 0.03 || got > want + 0.03) fail_msg("%g, not %g", got, want);
}

static void all_or_none_are_applied(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(32); RandomApply(RandomInvert(1); "
                                         "RandomSolarize(9, 1), p=0.3)");
    int applied = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const leat__recipe r = draw(p, i);
        assert_true(r.count == 1 || r.count == 3);
        if (r.count == 1) continue;
        assert_int_equal(r.step[1].kind, LEAT__STEP_INVERT);
        assert_int_equal(r.step[2].kind, LEAT__STEP_SOLARIZE);
        applied++;
    }
    assert_near((double)applied / DRAWS, 0.3);
    leat__pipeline_close(&p);
}

static void one_is_chosen_by_weight(void **state)
{
    leat__pipeline *even = fixture_pipeline("CenterCrop(32); RandomChoice(RandomInvert(1); "
                                            "RandomEqualize(1); RandomGrayscale(1))");
    leat__pipeline *weighed = fixture_pipeline(
        "CenterCrop(32); RandomChoice(RandomInvert(1); RandomEqualize(1); RandomGrayscale(1), p=(6, 0, 2))");
    assert_near(share(even, LEAT__STEP_INVERT), 1.0 / 3);
    assert_near(share(even, LEAT__STEP_EQUALIZE), 1.0 / 3);
    assert_near(share(even, LEAT__STEP_GRAYSCALE), 1.0 / 3);
    assert_near(share(weighed, LEAT__STEP_INVERT), 0.75);
    assert_true(share(weighed, LEAT__STEP_EQUALIZE) == 0);
    assert_near(share(weighed, LEAT__STEP_GRAYSCALE), 0.25);
    leat__pipeline_close(&even);
    leat__pipeline_close(&weighed);
}

static void orders_are_equally_likely(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(32); RandomOrder(RandomInvert(1); "
                                         "RandomEqualize(1); RandomGrayscale(1))");
    int seen[27] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        const leat__recipe r = draw(p, i);
        int code = 0;
        assert_int_equal(r.count, 4);
        for (int k = 1; k < 4; k++)
            code = code * 3 + (r.step[k].kind == LEAT__STEP_INVERT) +
                   2 * (r.step[k].kind == LEAT__STEP_EQUALIZE);
        seen[code]++;
    }
    int orders = 0;
    for (int i = 0; i < 27; i++) {
        if (!seen[i]) continue;
        assert_near((double)seen[i] / DRAWS, 1.0 / 6);
        orders++;
    }
    assert_int_equal(orders, 6);
    leat__pipeline_close(&p);
}

/* Combinators can be nested; each draws independently. */
static void nested_ones_draw_apart(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(32); RandomApply(RandomApply(RandomInvert(1), p=0.5); "
                                         "RandomApply(RandomEqualize(1), p=0.5), p=0.5)");
    int counts[4] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) counts[draw(p, i).count]++;
    assert_near((double)counts[1] / DRAWS, 0.625);
    assert_near((double)counts[2] / DRAWS, 0.25);
    assert_near((double)counts[3] / DRAWS, 0.125);
    leat__pipeline_close(&p);
}

static void sizes_are_one_or_refused(void **state)
{
    static const struct {
        const char *text;
        uint32_t width; /* 0: refused */
    } cases[] = {
        {"RandomChoice(RandomResizedCrop(24); CenterCrop(24))", 24},
        {"RandomChoice(RandomResizedCrop(24); CenterCrop(23))", 0},
        {"RandomChoice(RandomResizedCrop(24); RandomHorizontalFlip())", 0},
        {"RandomApply(RandomResizedCrop(24))", 0},
        {"RandomApply(RandomResizedCrop(24)); CenterCrop(16)", 16},
        {"CenterCrop(24); RandomApply(RandomResizedCrop(24))", 24},
        {"CenterCrop(24); RandomApply(Pad(2); CenterCrop(24))", 24},
        {"CenterCrop(24); RandomApply(Pad(2))", 0},
        {"RandomOrder(RandomHorizontalFlip(); RandomResizedCrop(24); ColorJitter(0.4))", 24},
        {"RandomOrder(Pad(4); RandomResizedCrop(24))", 0},
        {"RandomOrder(CenterCrop(24); CenterCrop(20))", 0},
        {"CenterCrop(24); RandomOrder(RandomApply(Pad(1); CenterCrop(24)); RandomInvert())", 24},
        {"CenterCrop(24); RandomOrder(RandomRotation(9, expand=true); RandomInvert())", 0},
        {"CenterCrop(24); RandomChoice(RandomRotation(9); RandomApply(RandomAffine(5)); "
         "GaussianBlur(3))",
         24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *p = NULL;
        leat_error err = {0};
        const int rc = leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = cases[i].text}, &err);
        if (!cases[i].width) {
            assert_code(LEAT_EINVAL, rc);
            assert_non_null(strstr(err.message, "does not give all images one size"));
            assert_memory_equal(err.message, "Random", 6);
            continue;
        }
        if (rc != 0) fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(leat__pipeline_output(p)->width, cases[i].width);
        for (uint64_t k = 0; k < 100; k++) assert_int_equal(draw(p, k).width, cases[i].width);
        leat__pipeline_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_or_none_are_applied),   cmocka_unit_test(one_is_chosen_by_weight),
        cmocka_unit_test(orders_are_equally_likely), cmocka_unit_test(nested_ones_draw_apart),
        cmocka_unit_test(sizes_are_one_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
