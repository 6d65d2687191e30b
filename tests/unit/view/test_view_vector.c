/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

#include "base/rng.h"
#include "view/view_vector.h"

#define ROWS 2000u
#define DIM 6u

/* Points that vary by 3 along (1, 1, 0 …) / sqrt 2, by 2 along the last axis, by 0.1 otherwise,
 * around 5. */
static void the_map_is_along_the_greatest_variance(void **state)
{
    float *rows = LEAT_NEW_ARRAY(MISC, float, ROWS *DIM), mean[DIM], axes[2 * DIM];
    leat__rng rng;
    leat__rng_init(&rng, 9, 0, 0, 0);
    for (uint32_t r = 0; r < ROWS; r++) {
        const double a = 3 * leat__rng_normal(&rng), b = 2 * leat__rng_normal(&rng);
        for (uint32_t i = 0; i < DIM; i++)
            rows[r * DIM + i] = (float)(5 + 0.1 * leat__rng_normal(&rng) +
                                        (i < 2          ? a / sqrt(2)
                                         : i == DIM - 1 ? b
                                                        : 0));
    }
    assert_ok(leat__view_pca(rows, ROWS, DIM, mean, axes, NULL));
    assert_true(fabsf(axes[0] - 0.7071f) < 0.02f && fabsf(axes[1] - 0.7071f) < 0.02f);
    assert_true(fabsf(axes[DIM - 1]) < 0.05f && fabsf(axes[2 * DIM - 1] - 1) < 0.02f);
    for (uint32_t i = 0; i < DIM; i++) assert_true(fabsf(mean[i] - 5) < 0.3f);
    float again[2 * DIM];
    assert_ok(leat__view_pca(rows, ROWS, DIM, mean, again, NULL));
    assert_memory_equal(axes, again, sizeof axes);
    assert_ok(leat__view_pca(rows, 1, DIM, mean, axes, NULL)); /* no variance at all */
    assert_ok(leat__view_pca(rows, 0, DIM, mean, axes, NULL));
    for (uint32_t i = 0; i < 2 * DIM; i++) assert_true(isfinite(axes[i]));
    leat__free(rows);
    assert_no_leaks();
}

static void neighbours_are_those_of_the_cosine(void **state)
{
    leat__view_data d;
    leat__view_near near[8];
    uint32_t count;
    leat_error err = {0};
    box_open(&d, 1 << 20);
    leat__view_column *c = leat__view_find(&d, "vector"); /* (i, 1, 0.5): its angle falls with i */
    assert_ok(leat__view_similar(&d, c, 2, near, 4, &count, NULL));
    assert_int_equal(count, 4);
    double best = 2;
    for (uint32_t i = 0; i < count; i++) {
        const double r = near[i].row, want = (2 * r + 1.25) / sqrt((4 + 1.25) * (r * r + 1.25));
        assert_true(fabs(near[i].cosine - want) < 1e-5);
        assert_true(near[i].cosine <= best && near[i].row != 2);
        best = near[i].cosine;
    }
    assert_int_equal(near[0].row, 3);
    assert_code(LEAT_ENOENT, leat__view_similar(&d, c, 9, near, 4, &count, &err)); /* not finite */
    assert_contains(err.message, "row 9 has no vector");
    assert_ok(leat__view_similar(&d, c, 0, near, 0, &count, NULL));
    assert_int_equal(count, 0);
    leat__view_data_close(&d);
    assert_no_leaks();
}

static void every_row_has_a_place_on_the_map(void **state)
{
    leat__view_data d;
    box_open(&d, 1 << 20);
    leat__view_column *c = leat__view_find(&d, "vector");
    assert_ok(leat__view_load_plane(&d, c, NULL));
    for (uint32_t i = 0; i < BOX_ROWS; i++)
        assert_true(i == 9 ? isnan(c->plane[2 * i])
                           : isfinite(c->plane[2 * i]) && isfinite(c->plane[2 * i + 1]));
    const float turn = c->plane[2 * 19] > c->plane[0] ? 1.0f : -1.0f; /* the first axis orders the angles */
    for (uint32_t i = 0; i + 1 < 8; i++) assert_true(turn * c->plane[2 * i] < turn * c->plane[2 * i + 2]);
    leat__view_data_close(&d);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_map_is_along_the_greatest_variance),
                                       cmocka_unit_test(neighbours_are_those_of_the_cosine),
                                       cmocka_unit_test(every_row_has_a_place_on_the_map)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
