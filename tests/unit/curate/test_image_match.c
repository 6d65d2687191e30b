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
        assert_true(leat__match(&a, &a, false, NULL) > 0.85f);
        assert_true(leat__match(&a, &b, false, NULL) > 0.7f && leat__match(&b, &a, false, NULL) > 0.7f);
        assert_true(leat__match(&a, &c, false, NULL) > 0.6f);
        assert_true(leat__match(&a, &d, false, NULL) > 0.8f && leat__match(&a, &e, false, NULL) < 0.6f);
        s.seed = seed + 50;
        const leat__match_side f = side_of(&s, 0);
        assert_true(leat__match(&a, &f, false, NULL) < 0.6f);
    }
}

/* Which image is aligned to which does not change the similarity. */
static void the_order_of_images_does_not_matter(void **state)
{
    scene s = plain_scene, crop = plain_scene;
    for (uint32_t seed = 1; seed < 9; seed++) {
        s.seed = crop.seed = seed;
        crop.zoom = 0.95f - 0.04f * (float)seed;
        crop.left = 0.1f;
        const leat__match_side a = side_of(&s, 0), b = side_of(&crop, 0);
        for (int parts = 0; parts < 2; parts++)
            assert_true(leat__match(&a, &b, parts == 1, NULL) == leat__match(&b, &a, parts == 1, NULL));
    }
}

/* Images that cannot be similar enough give -1; the others have the similarity that they have without a need.
 */
static void a_need_changes_no_similarity_above_it(void **state)
{
    scene s = plain_scene, crop = plain_scene, other = plain_scene;
    const leat__match_need need = {0.6f, 0.5f}, far = {0.6f, 1.5f};
    int hopeless = 0;
    crop.zoom = 0.85f;
    crop.left = 0.1f;
    for (uint32_t seed = 1; seed < 12; seed++) {
        s.seed = crop.seed = seed;
        other.seed = seed + 50;
        const leat__match_side a = side_of(&s, 0), b = side_of(&crop, 0), c = side_of(&other, 0);
        const float found = leat__match(&a, &b, false, &need), unlike = leat__match(&a, &c, false, &need);
        assert_true(found > 0.7f && found == leat__match(&a, &b, false, NULL));
        assert_true(found == leat__match(&b, &a, false, &need));
        assert_true(unlike < 0.6f && unlike == leat__match(&c, &a, false, &need));
        assert_true(unlike == -1 || unlike == leat__match(&a, &c, false, NULL));
        assert_true(leat__match(&a, &c, false, &far) == -1 && leat__match(&a, &c, false, NULL) > -1);
        hopeless += unlike == -1;
    }
    assert_true(hopeless > 0);
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
        assert_true(leat__match(&a, &b, false, NULL) < 0.5f && leat__match(&b, &a, false, NULL) < 0.5f);
        assert_true(leat__match(&a, &c, false, NULL) > 0.6f);
    }
}

/* A white frame around the picture, in one image only. */
static void a_frame_does_not_hide_a_picture(void **state)
{
    enum { SIDE = LEAT__THUMB_SIDE, WIDE = 2 };
    scene s = plain_scene, other = plain_scene;
    s.gain = 0.3f;
    for (uint32_t seed = 1; seed < 5; seed++) {
        uint8_t thumb[SIDE * SIDE];
        s.seed = seed;
        other.seed = seed + 50;
        const leat__match_side a = side_of(&s, 0), b = side_of(&other, 0);
        leat__match_side c;
        memset(thumb, 255, sizeof thumb);
        for (int y = WIDE; y < SIDE - WIDE; y++)
            for (int x = WIDE; x < SIDE - WIDE; x++)
                thumb[y * SIDE + x] = a.luma[(y - WIDE) * SIDE / (SIDE - 2 * WIDE) * SIDE +
                                             (x - WIDE) * SIDE / (SIDE - 2 * WIDE)];
        leat__match_side_make(&c, thumb, 0);
        assert_true(leat__match(&a, &c, false, NULL) > 0.7f && leat__match(&c, &a, false, NULL) > 0.7f);
        assert_true(leat__match(&b, &c, false, NULL) < 0.5f);
    }
}

/* Text over a fifth of one image. */
static void covered_parts_do_not_hide_a_picture(void **state)
{
    enum { SIDE = LEAT__THUMB_SIDE };
    scene s = plain_scene, other = plain_scene;
    for (uint32_t seed = 1; seed < 5; seed++) {
        uint8_t thumb[SIDE * SIDE];
        s.seed = seed;
        other.seed = seed + 50;
        const leat__match_side a = side_of(&s, 0), b = side_of(&other, 0);
        leat__match_side c;
        memcpy(thumb, a.luma, sizeof thumb);
        for (int y = 14; y < 20; y++)
            for (int x = 1; x < SIDE - 1; x++) thumb[y * SIDE + x] = (x * 7 + y * 3) % 5 < 2 ? 155 : 110;
        leat__match_side_make(&c, thumb, 0);
        const float similarity = leat__match(&a, &c, false, NULL);
        assert_true(similarity > 0.7f && similarity <= 0.85f && leat__match(&c, &a, false, NULL) > 0.7f);
        assert_true(leat__match(&b, &c, false, NULL) < 0.5f);
    }
}

/* Large crops with detail that the whole image does not have. */
static void crops_match_without_their_detail(void **state)
{
    enum { SIDE = LEAT__THUMB_SIDE };
    scene s = plain_scene, crop = plain_scene;
    uint32_t more = 0;
    crop.zoom = 0.68f;
    crop.left = 0.2f;
    crop.top = 0.1f;
    for (uint32_t seed = 1; seed < 30; seed++) {
        uint8_t thumb[SIDE * SIDE];
        s.seed = crop.seed = seed;
        const leat__match_side a = side_of(&s, 0);
        leat__match_side b = side_of(&crop, 0);
        for (int i = 0; i < SIDE * SIDE; i++) {
            const int v = b.luma[i] + (int)((uint32_t)i * 2654435761u >> 30) - 2;
            thumb[i] = (uint8_t)LEAT_MIN(LEAT_MAX(v, 0), 255);
        }
        leat__match_side_make(&b, thumb, 0);
        const float plain = leat__match(&a, &b, false, NULL), parts = leat__match(&a, &b, true, NULL);
        assert_true(parts >= plain);
        more += plain < 0.7f && parts >= 0.7f;
    }
    assert_true(more >= 3);
}

/* The scene, shrunk to `side` pixels in the middle of a white thumbnail. */
static leat__match_side matted(const scene *s, int side)
{
    enum { SIDE = LEAT__THUMB_SIDE };
    const leat__match_side whole = side_of(s, 0);
    const int from = (SIDE - side) / 2;
    uint8_t thumb[SIDE * SIDE];
    leat__match_side made;
    memset(thumb, 255, sizeof thumb);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            thumb[(from + y) * SIDE + from + x] = whole.luma[y * SIDE / side * SIDE + x * SIDE / side];
    leat__match_side_make(&made, thumb, 0);
    return made;
}

static void pictures_in_equal_mats_do_not_match(void **state)
{
    static const int sides[] = {10, 12, 14, 16, 20};
    scene s = plain_scene, other = plain_scene, light = plain_scene;
    light.gain = 0.9f;
    for (size_t i = 0; i < LEAT_COUNT(sides); i++)
        for (uint32_t seed = 1; seed < 20; seed++) {
            s.seed = light.seed = seed;
            other.seed = seed + 50;
            const leat__match_side a = matted(&s, sides[i]), b = matted(&other, sides[i]);
            const leat__match_side c = matted(&light, sides[i]);
            assert_true(leat__match(&a, &b, false, NULL) < 0.7f && leat__match(&b, &a, false, NULL) < 0.7f);
            assert_true(leat__match(&a, &c, false, NULL) > 0.7f);
            assert_true(leat__match_share_plain(a.luma, b.luma));
        }
}

/* A frame and a disc over the lower right of it. */
static leat__match_side framed_disc(const scene *s)
{
    enum { SIDE = LEAT__THUMB_SIDE };
    const leat__match_side from = framed(s);
    uint8_t thumb[SIDE * SIDE];
    leat__match_side made;
    memcpy(thumb, from.luma, sizeof thumb);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if ((x - 22) * (x - 22) + (y - 22) * (y - 22) <= 16) thumb[y * SIDE + x] = 226;
    leat__match_side_make(&made, thumb, 0);
    return made;
}

static void framed_discs_need_a_comparison(void **state)
{
    scene s = plain_scene, other = plain_scene;
    for (uint32_t seed = 1; seed < 20; seed++) {
        s.seed = seed;
        other.seed = seed + 50;
        const leat__match_side a = framed_disc(&s), b = framed_disc(&other), c = side_of(&s, 0);
        assert_true(leat__match_share_plain(a.luma, b.luma));
        assert_false(leat__match_share_plain(a.luma, c.luma));
    }
}

static void plain_images_do_not_match(void **state)
{
    scene s = plain_scene, plain = plain_scene;
    plain.gain = 0;
    plain.offset = 100;
    const leat__match_side a = side_of(&s, 0), b = side_of(&plain, 0);
    const float both = leat__match(&b, &b, false, NULL), one = leat__match(&a, &b, false, NULL);
    assert_true(both < 0.6f && one < 0.6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_match_and_others_do_not),
        cmocka_unit_test(the_order_of_images_does_not_matter),
        cmocka_unit_test(a_need_changes_no_similarity_above_it),
        cmocka_unit_test(equal_frames_do_not_match),
        cmocka_unit_test(a_frame_does_not_hide_a_picture),
        cmocka_unit_test(covered_parts_do_not_hide_a_picture),
        cmocka_unit_test(crops_match_without_their_detail),
        cmocka_unit_test(pictures_in_equal_mats_do_not_match),
        cmocka_unit_test(framed_discs_need_a_comparison),
        cmocka_unit_test(plain_images_do_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
