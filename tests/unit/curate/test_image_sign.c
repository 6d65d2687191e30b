/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_sign.h"

static leat__image_sign sign_of(const scene *s, uint32_t w, uint32_t h, uint32_t quality)
{
    leat__image_looker *looker = NULL;
    leat__image_sign sign;
    const leat__image_small *small;
    leat__buf b = encode_scene(s, LEAT__CODEC_JPEG, w, h, quality);
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    assert_ok(leat__image_look(looker, (const uint8_t *)b.data, b.len, NULL, &small, NULL));
    leat__image_sign_make(&sign, small);
    leat__image_looker_close(&looker);
    leat__buf_reset(&b);
    return sign;
}

static float coarse(const leat__image_sign *a, const leat__image_sign *b)
{
    return leat__image_sign_distance(a->coarse, b->coarse, LEAT__COARSE_BYTES - 1);
}

static float fine(const leat__image_sign *a, const leat__image_sign *b)
{
    return leat__image_sign_distance(a->fine, b->fine, LEAT__FINE_BYTES);
}

static void edits_are_near_and_others_far(void **state)
{
    scene s = plain_scene, other = plain_scene, bright = plain_scene;
    other.seed = 2;
    bright.gain = 0.8f;
    bright.offset = 30;
    leat__image_sign a = sign_of(&s, 300, 200, 95), small = sign_of(&s, 150, 100, 60),
                     light = sign_of(&bright, 300, 200, 95);
    leat__image_sign b = sign_of(&other, 300, 200, 95);
    assert_true(coarse(&a, &small) < 0.02 && fine(&a, &small) < 0.05);
    assert_true(coarse(&a, &light) < 0.02 && fine(&a, &light) < 0.05);
    assert_true(coarse(&a, &b) > 0.4 && fine(&a, &b) > 0.4);
}

static void a_mirrored_image_has_the_turned_descriptor(void **state)
{
    scene s = plain_scene, m = plain_scene;
    int8_t turned[LEAT__FINE_BYTES], back[LEAT__FINE_BYTES];
    m.mirror = true;
    leat__image_sign a = sign_of(&s, 160, 160, 95), b = sign_of(&m, 160, 160, 95);
    assert_true(fine(&a, &b) > 0.3);
    leat__image_sign_turn(a.fine, turned, LEAT__FINE_ORDER, 1);
    assert_true(leat__image_sign_distance(turned, b.fine, LEAT__FINE_BYTES) < 0.02);
    for (unsigned o = 0; o < LEAT__ORIENTATIONS;
         o++) { /* four of them are their own inverse; 5 and 6 are inverse to each other */
        leat__image_sign_turn(a.fine, turned, LEAT__FINE_ORDER, o);
        leat__image_sign_turn(turned, back, LEAT__FINE_ORDER, o == 5 ? 6 : o == 6 ? 5 : o);
        assert_memory_equal(back, a.fine, sizeof back);
        leat__image_sign_turn(a.coarse, turned, LEAT__COARSE_ORDER, o);
        assert_true(o == 0 || memcmp(turned, a.coarse, LEAT__COARSE_BYTES) != 0);
    }
}

static void borders_are_trimmed(void **state)
{
    scene s = plain_scene, framed = plain_scene;
    framed.border = 24;
    leat__image_sign a = sign_of(&s, 240, 240, 95), b = sign_of(&framed, 288, 288, 95);
    assert_false(a.has_trimmed);
    assert_true(b.has_trimmed);
    assert_true(b.border > 0.25 && b.border < 0.4);
    assert_true(coarse(&a, &b) > 0.2);
    assert_true(leat__image_sign_distance(a.coarse, b.trimmed, LEAT__COARSE_BYTES - 1) < 0.05);
}

/* JPEG mixes a frame of two pixels with the image: it is not quite plain. */
static void frames_of_tiny_images_are_trimmed(void **state)
{
    scene s = plain_scene, framed = plain_scene;
    framed.border = 2;
    for (uint32_t seed = 1; seed < 9; seed++) {
        s.seed = framed.seed = seed;
        const leat__image_sign a = sign_of(&s, 32, 32, 95), b = sign_of(&framed, 36, 36, 90);
        assert_true(b.has_trimmed);
        assert_true(leat__image_sign_distance(a.coarse, b.trimmed, LEAT__COARSE_BYTES - 1) < 0.1);
    }
}

static void plain_images_are_flat(void **state)
{
    scene s = plain_scene;
    s.gain = 0;
    s.offset = 90;
    leat__image_sign a = sign_of(&s, 64, 64, 90);
    assert_int_equal(a.coarse[LEAT__COARSE_FLAGS], LEAT__SIGN_FLAT);
    assert_false(a.has_trimmed);
    assert_in_range(a.thumb[5], 88, 92);
}

static void one_pixel_is_enough(void **state)
{
    scene s = plain_scene;
    leat__image_sign a = sign_of(&s, 1, 1, 90), b = sign_of(&s, 3, 700, 90);
    assert_int_equal(a.coarse[LEAT__COARSE_FLAGS], LEAT__SIGN_FLAT);
    assert_true(fine(&b, &b) < 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_near_and_others_far),
        cmocka_unit_test(a_mirrored_image_has_the_turned_descriptor),
        cmocka_unit_test(borders_are_trimmed),
        cmocka_unit_test(frames_of_tiny_images_are_trimmed),
        cmocka_unit_test(plain_images_are_flat),
        cmocka_unit_test(one_pixel_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
