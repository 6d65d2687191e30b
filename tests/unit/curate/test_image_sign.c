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

/* The planes of `p` as they are stored for an orientation: turned upright they are `p` again. */
static void store_turned(const leat__planes *p, uint32_t orientation, leat__planes *out)
{
    const uint32_t w = p->width, h = p->height;
    const bool sideways = orientation >= 5;
    assert_int_equal(leat__planes_resize(out, sideways ? h : w, sideways ? w : h, 3, NULL), 0);
    for (int c = 0; c < 3; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) { /* as the EXIF standard places row 0 and column 0 */
                const uint32_t mx = w - 1 - x, my = h - 1 - y;
                const uint32_t at[9][2] = {{0},    {x, y},  {mx, y},  {mx, my}, {x, my},
                                           {y, x}, {y, mx}, {my, mx}, {my, x}};
                out->plane[c][at[orientation][1] * out->stride + at[orientation][0]] =
                    p->plane[c][y * p->stride + x];
            }
}

static void look_at_planes(const leat__planes *p, leat__codec_id codec, uint32_t orientation,
                           leat__image_sign *sign, uint64_t *content)
{
    leat__image_looker *looker = NULL;
    const leat__image_small *small;
    const leat__encode_opts o = {.quality = 97, .orientation = orientation};
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_MISC, 1u << 26);
    assert_ok(leat__codec_encode(codec, p, &o, &b, NULL));
    const size_t len = b.len;
    assert_ok(leat__buf_zeros(&b, LEAT__CODEC_PADDING));
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    assert_ok(leat__image_look(looker, (const uint8_t *)b.data, len, NULL, &small, NULL));
    assert_int_equal(small->info.orientation, orientation);
    leat__image_sign_make(sign, small);
    *content = small->content;
    leat__image_looker_close(&looker);
    leat__buf_reset(&b);
}

static void signatures_are_of_the_upright_image(void **state)
{
    static const leat__codec_id codecs[] = {LEAT__CODEC_JPEG, LEAT__CODEC_RAW};
    scene s = plain_scene;
    leat__planes upright = {0}, stored = {0};
    assert_int_equal(leat__planes_resize(&upright, 322, 241, 3, NULL), 0);
    for (int c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 241; y++)
            for (uint32_t x = 0; x < 322; x++)
                upright.plane[c][y * upright.stride + x] =
                    y < 40 ? 0 : (uint8_t)scene_at(&s, c, (float)x / 322, (float)y / 241);
    for (size_t k = 0; k < LEAT_COUNT(codecs); k++) {
        leat__image_sign first, turned, as_stored;
        uint64_t content[3];
        look_at_planes(&upright, codecs[k], 1, &first, &content[0]);
        for (uint32_t o = 2; o <= 8; o++) {
            store_turned(&upright, o, &stored);
            look_at_planes(&stored, codecs[k], o, &turned, &content[1]);
            look_at_planes(&stored, codecs[k], 1, &as_stored, &content[2]);
            assert_true(coarse(&first, &turned) < 0.01 && fine(&first, &turned) < 0.01);
            assert_true(fine(&first, &as_stored) > 0.2);
            assert_true(turned.has_trimmed);
            assert_true(leat__image_sign_distance(first.trimmed, turned.trimmed, LEAT__COARSE_BYTES - 1) <
                        0.02);
            for (int i = 0; i < LEAT__THUMB_BYTES; i++)
                assert_true(abs(first.thumb[i] - turned.thumb[i]) <= 6);
            assert_true(content[1] != content[2]);
        }
    }
    leat__planes_reset(&upright);
    leat__planes_reset(&stored);
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
        cmocka_unit_test(signatures_are_of_the_upright_image),
        cmocka_unit_test(borders_are_trimmed),
        cmocka_unit_test(frames_of_tiny_images_are_trimmed),
        cmocka_unit_test(plain_images_are_flat),
        cmocka_unit_test(one_pixel_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
