/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/apply.h"

static int mirror(int i, int n)
{
    if (n == 1) return 0;
    while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
    return i;
}

/* Compares with the kernel in two dimensions and double precision, which torchvision rounds. */
static void blur_within_one_of_the_definition(void **state)
{
    static const struct {
        uint32_t w, h;
        double sigma;
    } kernels[] = {{1, 1, 1}, {3, 3, 0.8}, {5, 9, 2.5}, {21, 3, 4}};
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        leat__workspace b = {0};
        leat__planes in = {0};
        fixture_picture(&b.image, 70, 33, 3);
        fixture_picture(&in, 70, 33, 3);
        const int rw = (int)kernels[k].w / 2, rh = (int)kernels[k].h / 2;
        const double s2 = 2 * kernels[k].sigma * kernels[k].sigma;
        const leat__step s = {.kind = LEAT__STEP_BLUR,
                              .width = kernels[k].w,
                              .height = kernels[k].h,
                              .amount = kernels[k].sigma};
        assert_ok(leat__step_apply(&b, &s, false, NULL));
        for (int y = 0; y < 33; y++)
            for (int x = 0; x < 70; x++) {
                double sum = 0, all = 0;
                for (int j = -rh; j <= rh; j++)
                    for (int i = -rw; i <= rw; i++) {
                        const double w = exp(-(i * i + j * j) / s2);
                        sum += w * leat__planes_row(&in, 1, (uint32_t)mirror(y + j, 33))[mirror(x + i, 70)];
                        all += w;
                    }
                assert_true(fabs(leat__planes_row(&b.image, 1, (uint32_t)y)[x] - sum / all) <= 0.51);
            }
        leat__workspace_reset(&b);
        leat__planes_reset(&in);
    }
    assert_no_leaks();
}

static void sharpness_of_one_changes_nothing(void **state)
{
    static const uint32_t sizes[][2] = {{40, 30}, {1, 1}, {2, 9}, {9, 2}, {3, 3}};
    for (size_t k = 0; k < 5; k++) {
        leat__workspace b = {0};
        leat__planes in = {0};
        fixture_picture(&b.image, sizes[k][0], sizes[k][1], 3);
        fixture_picture(&in, sizes[k][0], sizes[k][1], 3);
        assert_ok(
            leat__step_apply(&b, &(leat__step){.kind = LEAT__STEP_SHARPNESS, .amount = 1}, false, NULL));
        for (uint32_t y = 0; y < sizes[k][1]; y++)
            assert_memory_equal(leat__planes_row(&b.image, 2, y), leat__planes_row(&in, 2, y), sizes[k][0]);
        /* and the border never changes */
        assert_ok(
            leat__step_apply(&b, &(leat__step){.kind = LEAT__STEP_SHARPNESS, .amount = 3}, false, NULL));
        assert_memory_equal(leat__planes_row(&b.image, 0, 0), leat__planes_row(&in, 0, 0), sizes[k][0]);
        leat__workspace_reset(&b);
        leat__planes_reset(&in);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blur_within_one_of_the_definition),
        cmocka_unit_test(sharpness_of_one_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
