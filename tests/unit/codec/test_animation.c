/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of GIF animations: positions, disposal, transparency, the end, damage. test_frames.py compares
 * with Pillow.
 */
#include "codec/foreign.h"

#include "codec/animation.h"

/* Two colours on a canvas of 2 x 1; frames of one pixel of colour 1 ("clear, 1, end"), with `flags` of the
 * graphic control and a position. */
static size_t put_frame(uint8_t *to, uint8_t flags, uint8_t transparent, uint8_t x)
{
    const uint8_t block[] = {'!', 0xf9, 4, flags, 0, 0, transparent, 0, ',',  x,    0, 0,
                             0,   1,    0, 1,     0, 0, 2,           2, 0x4c, 0x01, 0};
    memcpy(to, block, sizeof block);
    return sizeof block;
}

static size_t put_head(uint8_t *to)
{
    memcpy(to, "GIF89a\2\0\1\0\x80\0\0\x0a\x0b\x0c\x14\x15\x16", 19);
    return 19;
}

static const leat__decode_limits limits;

static void frames_follow_one_another(void **state)
{
    uint8_t file[256] = {0};
    leat__anim f;
    leat_error err = {0};
    bool end;
    size_t n = put_head(file);
    n += put_frame(file + n, 1 << 2, 0, 0);     /* stays */
    n += put_frame(file + n, 2 << 2, 0, 1);     /* is replaced by the background */
    n += put_frame(file + n, 3 << 2, 0, 0);     /* is replaced by what was there */
    n += put_frame(file + n, 1 << 2 | 1, 1, 1); /* colour 1 is transparent */
    file[n++] = ';';
    assert_int_equal(leat__anim_count(LEAT__CODEC_GIF, file, n), 4);
    assert_true(leat__anim_known(LEAT__CODEC_GIF));
    if (leat__anim_open(&f, LEAT__CODEC_GIF, file, n, &limits, &err) != 0) fail_msg("%s", err.message);
    static const uint8_t want[4][2] = {{0x14, 0x0a}, {0x14, 0x14}, {0x14, 0x0a}, {0x14, 0x0a}};
    for (uint32_t i = 0; i < 4; i++) {
        if (leat__anim_next(&f, &end, &err) != 0) fail_msg("%s", err.message);
        assert_false(end);
        assert_int_equal(f.index, i + 1);
        assert_int_equal(f.canvas[0], want[i][0]);
        assert_int_equal(f.canvas[4], want[i][1]);
    }
    leat__planes p = {0};
    assert_int_equal(leat__anim_planes(&f, &p, &err), 0);
    assert_int_equal(p.channels, 3);
    assert_int_equal(p.plane[1][0], 0x15);
    leat__planes_reset(&p);
    assert_int_equal(leat__anim_next(&f, &end, &err), 0);
    assert_true(end);
    leat__anim_close(&f);
}

static void errors_name_what_is_wrong(void **state)
{
    uint8_t file[256] = {0};
    leat__anim f;
    leat_error err = {0};
    bool end;
    size_t n = put_head(file);
    n += put_frame(file + n, 0, 0, 0);
    n += put_frame(file + n, 0, 0, 2); /* outside */
    file[n++] = ';';
    assert_int_equal(leat__anim_open(&f, LEAT__CODEC_GIF, file, n, &limits, &err), 0);
    assert_int_equal(leat__anim_next(&f, &end, &err), 0);
    assert_int_equal(leat__anim_next(&f, &end, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "outside of the canvas"));
    leat__anim_close(&f);
    const leat__decode_limits one = {.max_pixels = 1};
    assert_int_equal(leat__anim_open(&f, LEAT__CODEC_GIF, file, n, &one, &err), LEAT_ELIMIT);
    assert_int_equal(leat__anim_open(&f, LEAT__CODEC_BMP, file, n, &limits, &err), LEAT_ENOTSUP);
    assert_int_equal(leat__anim_count(LEAT__CODEC_BMP, file, n), 1);
    assert_false(leat__anim_known(LEAT__CODEC_JPEG));
}

/* Decoding ends for every truncation and every flipped bit, with or without an error. */
static void damage_ends(void **state)
{
    static const char *const names[] = {"gif/animated.gif", "gif/transparent.gif"};
    for (int k = 0; k < 2; k++) {
        bytes b = foreign_file(names[k]);
        for (size_t i = 0; i < b.len; i += 3) {
            leat__anim f;
            bool end = false;
            b.data[i] ^= (uint8_t)(1u << i % 8);
            if (leat__anim_open(&f, LEAT__CODEC_GIF, b.data, b.len - i % 7, &limits, NULL) == 0)
                for (int n = 0; n < 64 && !end && leat__anim_next(&f, &end, NULL) == 0; n++) {
                }
            leat__anim_close(&f);
            b.data[i] ^= (uint8_t)(1u << i % 8);
        }
        free(b.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_follow_one_another),
        cmocka_unit_test(errors_name_what_is_wrong),
        cmocka_unit_test(damage_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
