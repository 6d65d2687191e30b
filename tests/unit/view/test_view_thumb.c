/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

#include "codec/raw.h"
#include "op/pipeline.h"
#include "view/view_thumb.h"

static leat_pack *pack;
static leat__view_thumbs *thumbs;

static void thumbnails_are_those_of_the_fast_resize(void **state)
{
    uint8_t *pixels = NULL, wanted[32 * 24 * 3];
    uint32_t width, height;
    leat_sample *sample = NULL;
    leat_view v;
    leat__image_info info;
    leat__pipeline *p = NULL;
    leat__pipeline_worker *w = NULL;
    const leat__pipeline_opts o = {.ops = "Resize((24, 32), like=fast); ToLayout(nhwc)"};
    const leat__draw_key key = {0};
    assert_ok(leat__view_thumb_pixels(thumbs, 0, 32, &pixels, &width, &height, NULL));
    assert_int_equal(width, 32);
    assert_int_equal(height, 24);
    assert_ok(leat_sample_open(&sample, pack, NULL));
    assert_ok(leat_sample_read(sample, 0, NULL));
    assert_ok(leat_sample_field(sample, 0, &v, NULL));
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, v.data, v.size, &info, NULL));
    const leat__encoded image = {.info = &info, .data = v.data, .len = v.size};
    assert_ok(leat__pipeline_open(&p, &o, NULL));
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    assert_ok(leat__pipeline_run(p, w, &image, &key, wanted, NULL));
    assert_memory_equal(pixels, wanted, sizeof wanted);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    leat_sample_close(&sample);
    leat__free(pixels);
}

static void sizes_fit_and_follow_the_orientation(void **state)
{
    static const struct {
        uint32_t row, side, width, height;
    } cases[] = {{0, 1000, 64, 48}, {0, 1, 1, 1}, {3, 1000, 48, 67}, {3, 67, 48, 67}, {19, 40, 40, 23}};
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        uint8_t *pixels = NULL;
        uint32_t width, height;
        assert_ok(
            leat__view_thumb_pixels(thumbs, cases[i].row, cases[i].side, &pixels, &width, &height, NULL));
        assert_int_equal(width, cases[i].width);
        assert_int_equal(height, cases[i].height);
        leat__free(pixels);
    }
}

static void pictures_are_jpegs(void **state)
{
    leat__buf out;
    leat_error err = {0};
    const char *type;
    leat__image_info info;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_ok(leat__view_thumb(thumbs, 2, 33, &out, NULL));
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, (const uint8_t *)out.data, out.len, &info, NULL));
    assert_int_equal(info.width, 33);
    leat__buf_clear(&out);
    assert_ok(leat__view_image(thumbs, 2, &out, &type, NULL));
    assert_string_equal(type, "image/jpeg");
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, (const uint8_t *)out.data, out.len, &info, NULL));
    assert_int_equal(info.width, 66);
    leat__buf_clear(&out);
    assert_code(LEAT_ENOENT, leat__view_thumb(thumbs, 5, 33, &out, &err));
    assert_contains(err.message, "row 5 has no image");
    assert_code(LEAT_ENOENT, leat__view_image(thumbs, 5, &out, &type, &err));
    assert_code(LEAT_EINVAL, leat__view_thumb(thumbs, BOX_ROWS, 33, &out, &err));
    leat__buf_reset(&out);
}

/* An image with 5 channels of uint16 is shown by its first three. */
static void wide_images_are_shown(void **state)
{
    static const leat_field field = {.name = "image", .type = LEAT_FIELD_IMAGE};
    leat_pack *wide = NULL;
    leat__view_thumbs *t = NULL;
    leat__buf raw, out;
    leat_packer *packer = NULL;
    leat_packer_stats stats;
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    const char *type;
    uint16_t samples[8 * 4 * 5];
    for (size_t i = 0; i < LEAT_COUNT(samples); i++) samples[i] = (uint16_t)(i * 400);
    leat__buf_init(&raw, LEAT__MEM_MISC, 1 << 20);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_ok(leat__raw_encode_wide(samples, 8, 4, 5, LEAT__SAMPLE_U16, 1, &raw, NULL));
    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    assert_ok(leat_packer_open(&packer, "wide.leat", &o, NULL));
    const leat_pack_value v = {.data = raw.data,
                               .size = raw.len,
                               .image = {.width = 8,
                                         .height = 4,
                                         .codec = 4,
                                         .channels = 5,
                                         .orientation = 1,
                                         .flags = LEAT_PACK_IMAGE_U16}};
    const leat_pack_sample sample = {.key = "w", .key_size = 1, .values = &v};
    assert_ok(leat_packer_append(packer, &sample, NULL));
    assert_ok(leat_packer_finish(packer, &stats, NULL));
    leat_packer_close(&packer);
    assert_ok(leat_pack_open(&wide, "wide.leat", NULL, NULL));
    assert_ok(leat__view_thumbs_open(&t, wide, 0, NULL));
    assert_ok(leat__view_image(t, 0, &out, &type, NULL));
    assert_string_equal(type, "image/jpeg");
    uint8_t *pixels = NULL;
    uint32_t width, height;
    assert_ok(leat__view_thumb_pixels(t, 0, 8, &pixels, &width, &height, NULL));
    assert_int_equal(pixels[0], 0);              /* the least value */
    assert_int_equal(pixels[(31 * 3) + 2], 255); /* the greatest of the channels shown */
    leat__free(pixels);
    leat__view_thumbs_close(&t);
    leat_pack_close(&wide);
    leat__buf_reset(&raw);
    leat__buf_reset(&out);
    assert_no_leaks();
}

static int setup(void **state)
{
    box_pack(BOX_PACK);
    assert_ok(leat_pack_open(&pack, BOX_PACK, NULL, NULL));
    return leat__view_thumbs_open(&thumbs, pack, 0, NULL);
}

static int teardown(void **state)
{
    leat__view_thumbs_close(&thumbs);
    leat_pack_close(&pack);
    return leat__mem_blocks() != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thumbnails_are_those_of_the_fast_resize),
                                       cmocka_unit_test(sizes_fit_and_follow_the_orientation),
                                       cmocka_unit_test(pictures_are_jpegs),
                                       cmocka_unit_test(wide_images_are_shown)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
