/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_match.h"

static leat__match_side side_of(const scene *s, unsigned orientation)
{
    leat__image_looker *looker = NULL;
    const leat__image_small *small;
    leat__image_sign sign;
    leat__match_side side;
    leat__buf b = encode_scene(s, LEAT__CODEC_JPEG, 240, 240, 92);
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    assert_ok(leat__image_look(looker, (const uint8_t *)b.data, b.len, NULL, &small, NULL));
    leat__image_sign_make(&sign, small);
    leat__match_side_make(&side, sign.thumb, orientation);
    leat__image_looker_close(&looker);
    leat__buf_reset(&b);
    return side;
}

static void edits_match_and_others_do_not(void **state)
{
    scene s = plain_scene, crop = plain_scene, light = plain_scene, mirror = plain_scene;
    crop.zoom = 0.8f;
    crop.left = 0.15f;
    crop.top = 0.05f;
    light.gain = 0.7f;
    light.offset = 40;
    mirror.mirror = true;
    for (uint32_t seed = 1; seed < 6; seed++) {
        s.seed = crop.seed = light.seed = mirror.seed = seed;
        const leat__match_side a = side_of(&s, 0), b = side_of(&crop, 0), c = side_of(&light, 0);
        const leat__match_side d = side_of(&mirror, 1), e = side_of(&mirror, 0);
        assert_true(leat__match(&a, &a) > 0.85f);
        assert_true(leat__match(&a, &b) > 0.7f && leat__match(&b, &a) > 0.7f);
        assert_true(leat__match(&a, &c) > 0.6f);
        assert_true(leat__match(&a, &d) > 0.8f && leat__match(&a, &e) < 0.6f);
        s.seed = seed + 50;
        const leat__match_side f = side_of(&s, 0);
        assert_true(leat__match(&a, &f) < 0.6f);
    }
}

/* The same with a white frame of three lines. */
static leat__match_side framed(const scene *s)
{
    leat__match_side side = side_of(s, 0), made;
    uint8_t thumb[LEAT__THUMB_SIDE * LEAT__THUMB_SIDE];
    memcpy(thumb, side.luma, sizeof thumb);
    for (int y = 0; y < LEAT__THUMB_SIDE; y++)
        for (int x = 0; x < LEAT__THUMB_SIDE; x++)
            if (LEAT_MIN(x, y) < 3 || LEAT_MAX(x, y) >= LEAT__THUMB_SIDE - 3)
                thumb[y * LEAT__THUMB_SIDE + x] = 255;
    leat__match_side_make(&made, thumb, 0);
    return made;
}

static void equal_frames_do_not_match(void **state)
{
    scene s = plain_scene, other = plain_scene, light = plain_scene;
    s.gain = other.gain = 0.4f;
    light.gain = 0.5f;
    light.offset = 20;
    for (uint32_t seed = 1; seed < 6; seed++) {
        s.seed = light.seed = seed;
        other.seed = seed + 50;
        const leat__match_side a = framed(&s), b = framed(&other), c = framed(&light);
        assert_true(leat__match(&a, &b) < 0.5f && leat__match(&b, &a) < 0.5f);
        assert_true(leat__match(&a, &c) > 0.6f);
    }
}

static void plain_images_do_not_match(void **state)
{
    scene s = plain_scene, plain = plain_scene;
    plain.gain = 0;
    plain.offset = 100;
    const leat__match_side a = side_of(&s, 0), b = side_of(&plain, 0);
    const float both = leat__match(&b, &b), one = leat__match(&a, &b);
    assert_true(both < 0.6f && one < 0.6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_match_and_others_do_not),
        cmocka_unit_test(equal_frames_do_not_match),
        cmocka_unit_test(plain_images_do_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
