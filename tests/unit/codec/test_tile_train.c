/* SPDX-License-Identifier: Apache-2.0
 *
 * Training: without images the tables are flat and work; the same images give the same bytes; trained
 * tables code their images in fewer bytes.
 */
#include "codec/make_tiles.h"

static void train(leat__buf *blob, bool with_images)
{
    leat__tile_trainer *t;
    leat__buf_init(blob, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__tile_trainer_open(&t, NULL), 0);
    if (with_images) train_on_kinds(t);
    uint32_t tiled = 0;
    for (size_t k = 0; k < JPEG_KINDS; k++) tiled += can_be_tiled(&jpeg_kinds[k]);
    assert_int_equal(leat__tile_trainer_images(t), with_images ? tiled : 0);
    assert_int_equal(leat__tile_trainer_finish(t, blob, NULL), 0);
    leat__tile_trainer_close(&t);
}

static void same_images_same_tables(void **state)
{
    leat__buf a, b;
    train(&a, true);
    train(&b, true);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    leat__buf_reset(&a);
    leat__buf_reset(&b);
}

/* Every image counted by a separate trainer, then joined. */
static void joined_trainers_are_one(void **state)
{
    leat__tile_trainer *all;
    leat__buf a, b;
    train(&a, true);
    leat__buf_init(&b, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__tile_trainer_open(&all, NULL), 0);
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        leat__tile_trainer *part;
        leat__jpeg_coefs coefs;
        bytes jpeg = make_jpeg(&jpeg_kinds[k], 130, 70, 80, (uint32_t)k);
        assert_int_equal(leat__tile_trainer_open(&part, NULL), 0);
        assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL), 0);
        assert_int_equal(leat__tile_trainer_add(part, &coefs, jpeg.data, jpeg.len, NULL), 0);
        assert_int_equal(leat__tile_trainer_join(all, part, NULL), 0);
        leat__tile_trainer_close(&part);
        free(jpeg.data);
    }
    assert_int_equal(leat__tile_trainer_finish(all, &b, NULL), 0);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    leat__tile_trainer_close(&all);
    leat__buf_reset(&a);
    leat__buf_reset(&b);
}

static size_t size_with(const leat__tile_tables *t, bytes jpeg)
{
    leat__tile_encoder *e;
    leat__jpeg_coefs coefs;
    leat__tile_kept kept;
    leat__tile_facts facts;
    leat__buf out;
    leat__tile_encode_opts opts = {.density = LEAT__TILE_SMALL};
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 24);
    assert_int_equal(leat__tile_encoder_open(&e, t, NULL), 0);
    assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL), 0);
    assert_int_equal(leat__tile_encode(e, &coefs, jpeg.data, jpeg.len, &opts, &out, &kept, NULL), 0);
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    assert_int_equal(leat__tile_describe((uint8_t *)out.data, out.len, &facts, NULL), 0);
    leat__tile_encoder_close(&e);
    leat__buf_reset(&out);
    return facts.tile_bytes;
}

static void trained_tables_are_smaller_than_flat(void **state)
{
    leat__buf blob;
    leat__tile_tables *flat;
    train(&blob, false);
    assert_int_equal(leat__tile_tables_open(&flat, blob.data, blob.len, NULL), 0);
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 300, 200, 80, 11);
    size_t trained = size_with(tables, jpeg), untrained = size_with(flat, jpeg);
    assert_true(trained < untrained);
    free(jpeg.data);
    leat__tile_tables_close(&flat);
    leat__buf_reset(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_images_same_tables),
        cmocka_unit_test(joined_trainers_are_one),
        cmocka_unit_test(trained_tables_are_smaller_than_flat),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
