/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_score.h"

static void score_of(const scene *s, leat__codec_id codec, uint32_t w, uint32_t h, uint32_t quality,
                     double *score)
{
    leat__image_looker *looker = NULL;
    const leat__image_small *small;
    leat__buf b = encode_scene(s, codec, w, h, quality);
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    assert_ok(leat__image_look(looker, (const uint8_t *)b.data, b.len, NULL, &small, NULL));
    leat__image_score(small, score);
    leat__image_looker_close(&looker);
    leat__buf_reset(&b);
}

static void near(double a, double b, double off)
{
    if (!(fabs(a - b) <= off)) fail_msg("%f and %f differ by more than %f", a, b, off);
}

/* Scores from coefficients are those of the pixels. */
static void coefficients_and_pixels_agree(void **state)
{
    for (uint32_t seed = 1; seed < 6; seed++) {
        scene s = plain_scene;
        double a[LEAT__LOOKS], b[LEAT__LOOKS];
        s.seed = seed;
        score_of(&s, LEAT__CODEC_JPEG, 240, 168, 98, a);
        score_of(&s, LEAT__CODEC_PNG, 240, 168, 0, b);
        near(a[LEAT__LOOK_MEAN], b[LEAT__LOOK_MEAN], 0.6);
        near(a[LEAT__LOOK_CONTRAST], b[LEAT__LOOK_CONTRAST], 0.5);
        near(a[LEAT__LOOK_P50], b[LEAT__LOOK_P50], 2);
        near(a[LEAT__LOOK_SATURATION], b[LEAT__LOOK_SATURATION], 1);
        near(a[LEAT__LOOK_ENTROPY], b[LEAT__LOOK_ENTROPY], 0.25);
        near(a[LEAT__LOOK_BLUR] / b[LEAT__LOOK_BLUR], 1, 0.35);
        near(b[LEAT__LOOK_QUALITY], -1, 0);
        near(a[LEAT__LOOK_ASPECT], 240.0 / 168, 1e-9);
    }
}

/* No pixel has all four neighbours, or only one: one number has no variance. */
static void thin_images_have_no_blur(void **state)
{
    static const uint32_t sides[][2] = {{1, 90}, {2, 90}, {90, 1}, {90, 2}, {3, 3}};
    double a[LEAT__LOOKS];
    for (int i = 0; i < 5; i++) {
        score_of(&plain_scene, LEAT__CODEC_PNG, sides[i][0], sides[i][1], 0, a);
        assert_true(isnan(a[LEAT__LOOK_BLUR]) && a[LEAT__LOOK_CONTRAST] > 0);
    }
    score_of(&plain_scene, LEAT__CODEC_PNG, 3, 4, 0, a);
    assert_false(isnan(a[LEAT__LOOK_BLUR]));
    score_of(&plain_scene, LEAT__CODEC_PNG, 3, 90, 0, a);
    assert_true(a[LEAT__LOOK_BLUR] > 0);
}

static void scores_follow_edits(void **state)
{
    scene s = plain_scene, dark = plain_scene, close = plain_scene, grey = plain_scene;
    double a[LEAT__LOOKS], b[LEAT__LOOKS];
    dark.gain = 0.25f;
    close.zoom = 0.2f;
    grey.grey = true;
    score_of(&s, LEAT__CODEC_JPEG, 160, 160, 90, a);
    score_of(&dark, LEAT__CODEC_JPEG, 160, 160, 90, b);
    assert_true(b[LEAT__LOOK_P99] < a[LEAT__LOOK_P99] / 2 &&
                b[LEAT__LOOK_CONTRAST] < a[LEAT__LOOK_CONTRAST] / 2);
    score_of(&close, LEAT__CODEC_JPEG, 160, 160, 90, b);
    assert_true(b[LEAT__LOOK_BLUR] < a[LEAT__LOOK_BLUR]);
    score_of(&grey, LEAT__CODEC_JPEG, 160, 160, 90, b);
    assert_true(b[LEAT__LOOK_SATURATION] == 0 && a[LEAT__LOOK_SATURATION] > 2);
}

static void qualities_are_read_from_the_tables(void **state)
{
    scene s = plain_scene;
    for (uint32_t q = 1; q <= 100; q += 3) {
        double a[LEAT__LOOKS];
        score_of(&s, LEAT__CODEC_JPEG, 16, 16, q, a);
        near(a[LEAT__LOOK_QUALITY], q, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_and_pixels_agree),
        cmocka_unit_test(thin_images_have_no_blur),
        cmocka_unit_test(scores_follow_edits),
        cmocka_unit_test(qualities_are_read_from_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
