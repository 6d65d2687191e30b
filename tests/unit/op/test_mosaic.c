/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/mosaic.h"

enum { W = 7, H = 5 };

/* Every pixel of the mosaic comes from its part, whose corner is where the four meet. */
static void four_parts_meet(void **state)
{
    static const leat__mosaic cases[] = {{true, 3, 2}, {true, 0, 0}, {true, 0, 4}, {true, 6, 0}};
    uint8_t parts[4][H][W][2], out[H][W][2];
    const uint8_t *part[4];
    for (int k = 0; k < 4; k++) {
        part[k] = &parts[k][0][0][0];
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                parts[k][y][x][0] = (uint8_t)(16 * k + y);
                parts[k][y][x][1] = (uint8_t)x;
            }
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int cx = (int)cases[i].x, cy = (int)cases[i].y;
        leat__mosaic_plane(&cases[i], W, H, 2, part, &out[0][0][0]);
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                const int k = (x >= cx) + 2 * (y >= cy);
                assert_int_equal(out[y][x][0], 16 * k + (y >= cy ? y - cy : y + H - cy));
                assert_int_equal(out[y][x][1], x >= cx ? x - cx : x + W - cx);
            }
    }
}

static void boxes_move_with_their_part(void **state)
{
    const leat__mosaic m = {true, 40, 30};
    const leat__box_rule plain = {.format = LEAT__BOX_XYXY};
    const leat__box_rule strict = {.format = LEAT__BOX_XYXY, .min_visible = 0.5f};
    float whole[4] = {70, 80, 90, 95}, cut[4] = {50, 60, 70, 80}, again[4] = {50, 60, 70, 80};
    float gone[4] = {1, 1, 20, 20}, right[4] = {10, 90, 50, 100};
    assert_true(leat__mosaic_box(&m, 100, 100, 0, &plain, whole)); /* shifted by (-60, -70) */
    assert_true(whole[0] == 10 && whole[1] == 10 && whole[2] == 30 && whole[3] == 25);
    assert_true(leat__mosaic_box(&m, 100, 100, 0, &plain, cut));
    assert_true(cut[0] == 0 && cut[1] == 0 && cut[2] == 10 && cut[3] == 10);
    assert_false(leat__mosaic_box(&m, 100, 100, 0, &strict, again)); /* a quarter is left */
    assert_false(leat__mosaic_box(&m, 100, 100, 0, &plain, gone));
    assert_true(leat__mosaic_box(&m, 100, 100, 1, &plain, right));
    assert_true(right[0] == 50 && right[1] == 20 && right[2] == 90 && right[3] == 30);
    float shares[4] = {0.75f, 0.8f, 0.1f, 0.1f}; /* middle and size */
    const leat__box_rule relative = {.format = LEAT__BOX_CXCYWH, .relative = true};
    assert_true(leat__mosaic_box(&m, 100, 100, 0, &relative, shares));
    assert_true(shares[0] > 0.149f && shares[0] < 0.151f && shares[1] > 0.099f && shares[1] < 0.101f);
}

static void draws_stay_in_the_range(void **state)
{
    leat__pipeline *p = NULL;
    leat__mosaic m[500];
    leat__rng rng;
    uint32_t active = 0;
    leat_error err = {0};
    const leat__pipeline_opts wrong = {.ops = "CenterCrop(9); Mosaic((0.8, 0.2))"};
    const leat__pipeline_opts right = {.ops = "CenterCrop(9); Mosaic((0.2, 0.6), p=0.5)"};
    assert_ok(leat__pipeline_open(&p, &right, NULL));
    leat__rng_init(&rng, 1, 2, 3, 4);
    leat__mosaic_draw(m, 500, leat__pipeline_batch_op(p, 0), 100, 50, &rng);
    for (int i = 0; i < 500; i++) {
        active += m[i].active;
        assert_in_range(m[i].x, 20, 59);
        assert_in_range(m[i].y, 10, 29);
    }
    assert_in_range(active, 200, 300);
    assert_true(leat__mosaic_is(leat__pipeline_batch_op(p, 0)));
    leat__pipeline_close(&p);
    assert_int_equal(leat__pipeline_open(&p, &wrong, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "Mosaic.center"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_parts_meet),
        cmocka_unit_test(boxes_move_with_their_part),
        cmocka_unit_test(draws_stay_in_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
