/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "codec/jpeg_coef.h"
#include "codec/tile/tile.h"
#include "curate/image_small.h"

static leat__image_looker *looker;

static const leat__image_small *look(const leat__buf *b)
{
    const leat__image_small *s;
    leat_error err = {0};
    if (leat__image_look(looker, (const uint8_t *)b->data, b->len, NULL, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static double mean_of(const leat__small_plane *p)
{
    double sum = 0;
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) sum += p->data[y * p->stride + x];
    return sum / p->width / p->height;
}

static void coefficients_and_pixels_agree(void **state)
{
    scene s = plain_scene;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 203, 161, 97),
              png = encode_scene(&s, LEAT__CODEC_PNG, 203, 161, 0);
    const leat__image_small *small = look(&jpeg);
    assert_true(small->coefficients);
    assert_int_equal(small->components, 3);
    assert_int_equal(small->plane[0].width, 51); /* two samples per block */
    assert_int_equal(small->plane[0].height, 41);
    assert_int_equal(small->blocks, 26 * 21);
    double mean[3];
    for (int c = 0; c < 3; c++) mean[c] = mean_of(&small->plane[c]);
    small = look(&png);
    assert_false(small->coefficients);
    for (int c = 0; c < 3; c++) assert_true(fabs(mean[c] - mean_of(&small->plane[c])) < 1);
    leat__buf_reset(&jpeg);
    leat__buf_reset(&png);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

static void small_images_are_decoded_in_full(void **state)
{
    scene s = plain_scene;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 32, 32, 90);
    const leat__image_small *small = look(&jpeg);
    assert_int_equal(small->plane[0].width, 32);
    assert_int_equal(small->plane[1].width, 16);
    leat__buf_reset(&jpeg);
    leat__image_looker_close(&looker);
}

static void tiles_have_the_content_of_their_jpeg(void **state)
{
    scene s = plain_scene;
    leat__jpeg_coef_reader *reader = NULL;
    leat__tile_trainer *trainer = NULL;
    leat__tile_tables *tables = NULL;
    leat__tile_encoder *encoder = NULL;
    leat__jpeg_coefs coefs;
    leat__tile_kept kept;
    leat__buf blob, tiles, jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 203, 161, 80);
    leat__buf_init(&blob, LEAT__MEM_MISC, 1u << 20);
    leat__buf_init(&tiles, LEAT__MEM_MISC, 1u << 20);
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    assert_ok(leat__jpeg_coef_reader_open(&reader, NULL));
    assert_ok(leat__tile_trainer_open(&trainer, NULL));
    assert_ok(leat__tile_trainer_finish(trainer, &blob, NULL));
    assert_ok(leat__tile_tables_open(&tables, blob.data, blob.len, NULL));
    assert_ok(leat__tile_encoder_open(&encoder, tables, NULL));
    const uint8_t *data = (const uint8_t *)jpeg.data;
    assert_ok(leat__jpeg_coef_read(reader, data, jpeg.len, &(leat__decode_limits){0}, &coefs, NULL));
    assert_ok(leat__tile_encode(encoder, &coefs, data, jpeg.len, &(leat__tile_encode_opts){0}, &tiles, &kept,
                                NULL));
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    const size_t len = tiles.len;
    assert_ok(leat__buf_zeros(&tiles, LEAT__CODEC_PADDING));
    const leat__image_small *small = look(&jpeg);
    const uint64_t content = small->content, energy = small->energy[9], blocks = small->blocks;
    assert_ok(leat__image_look(looker, (const uint8_t *)tiles.data, len, tables, &small, NULL));
    assert_int_equal(small->info.codec, LEAT__CODEC_TILE);
    assert_true(small->coefficients);
    assert_int_equal(small->blocks, blocks);
    assert_int_equal(small->energy[9], energy);
    assert_true(small->content == content);
    leat__tile_encoder_close(&encoder);
    leat__tile_tables_close(&tables);
    leat__tile_trainer_close(&trainer);
    leat__jpeg_coef_reader_close(&reader);
    leat__buf_reset(&blob);
    leat__buf_reset(&tiles);
    leat__buf_reset(&jpeg);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

static void damage_is_an_error_and_leaves_nothing(void **state)
{
    scene s = plain_scene;
    const leat__image_small *small;
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    leat__buf jpeg = encode_scene(&s, LEAT__CODEC_JPEG, 96, 80, 90);
    const uint64_t content = look(&jpeg)->content;
    for (size_t cut = 1; cut < jpeg.len; cut += 131)
        assert_true(
            leat__image_look(looker, (const uint8_t *)jpeg.data, jpeg.len - cut, NULL, &small, NULL) != 0);
    assert_true(leat__image_look(looker, (const uint8_t *)jpeg.data, jpeg.len - 2, NULL, &small, NULL) !=
                0); /* no end marker */
    assert_true(look(&jpeg)->content == content);
    leat__buf_reset(&jpeg);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

/* A scene of 80x60 pixels with the same alpha everywhere; 256: RGB. */
static uint64_t content_with_alpha(uint32_t alpha, double *mean)
{
    leat__planes p = {0};
    assert_ok(leat__planes_resize(&p, 80, 60, alpha < 256 ? 4 : 3, NULL));
    for (uint32_t c = 0; c < p.channels; c++)
        for (uint32_t i = 0; i < 60 * 80; i++)
            p.plane[c][i / 80 * p.stride + i % 80] = (uint8_t)(c == 3 ? alpha : i % 100 + 20 * c);
    leat__buf b = encode_planes(&p, LEAT__CODEC_PNG, 0);
    const leat__image_small *small = look(&b);
    const uint64_t content = small->content;
    *mean = mean_of(&small->plane[0]);
    leat__buf_reset(&b);
    return content;
}

static void alpha_counts_where_it_is_not_opaque(void **state)
{
    double mean[5];
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    const uint64_t rgb = content_with_alpha(256, &mean[0]), opaque = content_with_alpha(255, &mean[1]);
    const uint64_t half = content_with_alpha(128, &mean[2]), none = content_with_alpha(0, &mean[3]);
    assert_true(rgb == opaque && mean[0] == mean[1]);
    assert_true(half != opaque && none != opaque && none != half);
    assert_true(content_with_alpha(254, &mean[4]) != opaque);
    assert_true(mean[3] == 128); /* over grey */
    assert_true(fabs(mean[2] - (mean[0] + 128) / 2) < 1);
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

static void icons_in_alpha_are_visible(void **state)
{
    assert_ok(leat__image_looker_open(&looker, NULL, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        leat__buf b = encode_icon(i, i == 0 ? 0 : 255, 64);
        const leat__image_small *small = look(&b);
        const leat__small_plane *p = &small->plane[0];
        assert_int_equal(p->data[0], 128);
        assert_int_equal(p->data[p->height / 2 * p->stride + p->width / 2], i == 0 ? 0 : 255);
        assert_true(small->squares > 1000000 && small->edge_squares > 0);
        leat__buf_reset(&b);
    }
    leat__image_looker_close(&looker);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_and_pixels_agree),
        cmocka_unit_test(small_images_are_decoded_in_full),
        cmocka_unit_test(tiles_have_the_content_of_their_jpeg),
        cmocka_unit_test(damage_is_an_error_and_leaves_nothing),
        cmocka_unit_test(alpha_counts_where_it_is_not_opaque),
        cmocka_unit_test(icons_in_alpha_are_visible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
