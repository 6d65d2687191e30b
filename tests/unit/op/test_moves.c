/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/pipeline.h"

/* Combinators of colour ops do not change the geometry; those that contain geometry must draw the same. */
static void geometry_inside_is_compared(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"RandomResizedCrop(8)", "RandomApply(RandomInvert); RandomResizedCrop(8)", true},
        {"RandomResizedCrop(8); RandomApply(RandomHorizontalFlip(1))",
         "RandomOrder(RandomInvert(); RandomEqualize()); RandomResizedCrop(8); "
         "RandomApply(RandomInvert; RandomHorizontalFlip(1))",
         true},
        {"CenterCrop(8); RandomApply(RandomRotation(5))",
         "CenterCrop(8); RandomApply(RandomRotation(5), p=0.4)", false},
        {"CenterCrop(8); RandomApply(RandomRotation(5))", "CenterCrop(8); RandomRotation(5)", false},
        {"CenterCrop(8); RandomApply(RandomRotation(5))", "CenterCrop(8); RandomApply(RandomRotation(6))",
         false},
        {"CenterCrop(8); RandomApply(RandomRotation(5))", "CenterCrop(8); RandomOrder(RandomRotation(5))",
         false},
        {"CenterCrop(8); RandomChoice(RandomRotation(5); RandomInvert)",
         "CenterCrop(8); RandomChoice(RandomRotation(5, fill=3); RandomEqualize)", true},
        {"CenterCrop(8); RandomChoice(RandomRotation(5); RandomInvert)",
         "CenterCrop(8); RandomChoice(RandomInvert; RandomRotation(5))", false},
        {"CenterCrop(8); RandomOrder(RandomRotation(5); RandomInvert)",
         "CenterCrop(8); RandomOrder(RandomRotation(5))", false},
        {"CenterCrop(8); RandomOrder(RandomRotation(5); RandomInvert)", "CenterCrop(8)", false},
        {"CenterCrop(8); RandomOrder(RandomEqualize; RandomInvert)", "CenterCrop(8)", true},
        {"CenterCrop(8); RandomChoice(RandomApply(RandomInvert; RandomVerticalFlip); RandomInvert)",
         "CenterCrop(8); RandomChoice(RandomApply(RandomVerticalFlip); RandomSolarize(3))", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__pipeline *a = fixture_pipeline(cases[i].a), *b = fixture_pipeline(cases[i].b);
        if (leat__pipeline_same_geometry(a, b) != cases[i].same ||
            leat__pipeline_same_geometry(b, a) != cases[i].same)
            fail_msg("%s / %s", cases[i].a, cases[i].b);
        leat__recipe r, q;
        for (uint64_t k = 0; k < 200 && cases[i].same; k++) {
            const leat__draw_key key = {1, 2, k};
            uint32_t n = 0, m = 0;
            assert_ok(leat__pipeline_draw(a, &key, 40, 30, &r, NULL));
            assert_ok(leat__pipeline_draw(b, &key, 40, 30, &q, NULL));
            for (;;) { /* the steps that move pixels are the same */
                while (n < r.count && !leat__step_is_geometry(r.step[n].kind)) n++;
                while (m < q.count && !leat__step_is_geometry(q.step[m].kind)) m++;
                assert_int_equal(n == r.count, m == q.count);
                if (n == r.count) break;
                assert_int_equal(r.step[n].kind, q.step[m].kind);
                assert_int_equal(r.step[n].x, q.step[m].x);
                assert_memory_equal(r.step[n].matrix, q.step[m].matrix, sizeof r.step[n].matrix);
                n++, m++;
            }
        }
        leat__pipeline_close(&a);
        leat__pipeline_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(geometry_inside_is_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
