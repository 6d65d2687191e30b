/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/image_encode.h"

typedef struct bench {
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__encoder *e;
    leat__encode_plan plan;
} bench;

static void begin(bench *b, leat__encode_plan plan)
{
    b->plan = plan;
    b->e = NULL;
    leat__records_pool_init(&b->spare, 1, 1);
    assert_int_equal(leat__encoder_open(&b->e, &b->plan, NULL), 0);
    b->run = leat__records_pool_take(&b->spare);
}

static void end(bench *b)
{
    leat__records_pool_give(&b->spare, b->run);
    leat__records_pool_reset(&b->spare);
    leat__encoder_close(&b->e);
}

static leat__item *put(bench *b, const char *key, const leat__buf *image)
{
    b->r = leat__records_add(b->run);
    assert_int_equal(leat__records_key(b->run, b->r, key, strlen(key), NULL), 0);
    assert_non_null(leat__records_bytes(b->run, &b->r->items[0], image->data, image->len));
    return &b->r->items[0];
}

static int handle(bench *b, leat__item *item, leat_error *err)
{
    return leat__encoder_image(b->e, b->run, b->r, item, NULL, err);
}

static void kept_images_keep_their_bytes(void **state)
{
    static const leat__codec_id codecs[] = {LEAT__CODEC_JPEG, LEAT__CODEC_PNG};
    for (int trust = 0; trust < 2; trust++) {
        bench b;
        begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_KEEP, .trust = trust});
        for (int i = 0; i < 2; i++) {
            leat__buf image = make_image(codecs[i], 90, 60, 1);
            leat__item *item = put(&b, "k", &image);
            assert_int_equal(handle(&b, item, NULL), 0);
            assert_int_equal(item->size, image.len);
            assert_memory_equal(leat__records_data(b.run, item), image.data, image.len);
            assert_int_equal(item->image.codec, codecs[i]);
            assert_int_equal(item->image.width, 90);
            assert_int_equal(item->image.flags, trust ? LEAT_PACK_IMAGE_UNCHECKED : 0);
            assert_true(item->image.cost > 0);
            leat__buf_reset(&image);
        }
        end(&b);
    }
}

static void damage_is_found_unless_trusted(void **state)
{
    for (int trust = 0; trust < 2; trust++) {
        bench b;
        leat_error err = {0};
        begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_KEEP, .trust = trust});
        leat__buf image = make_image(LEAT__CODEC_JPEG, 90, 60, 1);
        image.len -= 100;
        leat__item *item = put(&b, "k", &image);
        assert_int_equal(handle(&b, item, &err), trust ? 0 : LEAT_EDATA);
        if (!trust) assert_true(err.offset > 0);
        image.len = 0;
        item = put(&b, "empty", &image);
        assert_int_equal(handle(&b, item, &err), LEAT_EDATA);
        leat__buf text = {.data = (char *)"P6 64 64, not an image we read", .len = 20};
        item = put(&b, "ppm", &text);
        assert_int_equal(handle(&b, item, &err), LEAT_EFORMAT);
        leat__buf_reset(&image);
        end(&b);
    }
}

static void raw_holds_the_pixels(void **state)
{
    bench b;
    begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_RAW});
    leat__buf image = make_image(LEAT__CODEC_PNG, 50, 40, 4);
    leat__buf want = make_image(LEAT__CODEC_RAW, 50, 40, 4);
    leat__item *item = put(&b, "k", &image);
    assert_int_equal(handle(&b, item, NULL), 0);
    assert_int_equal(item->image.codec, LEAT__CODEC_RAW);
    assert_int_equal(item->size, want.len);
    assert_memory_equal(leat__records_data(b.run, item), want.data, want.len);
    leat__buf_reset(&image);
    leat__buf_reset(&want);
    end(&b);
}

static void mix_is_chosen_by_key(void **state)
{
    leat__encode_plan plan = {.images = LEAT_IMAGES_MIX, .mix_raw = 0.3};
    int raw = 0;
    for (int i = 0; i < 10000; i++) {
        char key[32];
        int n = snprintf(key, sizeof key, "class/%d.jpg", i);
        bool once = leat__encode_is_raw(&plan, key, (size_t)n);
        assert_int_equal(once, leat__encode_is_raw(&plan, key, (size_t)n));
        raw += once;
    }
    assert_in_range(raw, 2850, 3150);
    plan.mix_raw = 0;
    assert_false(leat__encode_is_raw(&plan, "x", 1));
    plan.mix_raw = 1;
    assert_true(leat__encode_is_raw(&plan, "x", 1));
}

static void max_side_makes_smaller_never_larger(void **state)
{
    bench b;
    begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_KEEP, .max_side = 64, .quality = 0});
    leat__buf large = make_image(LEAT__CODEC_PNG, 200, 100, 4);
    leat__buf small = make_image(LEAT__CODEC_PNG, 60, 64, 4);
    leat__item *item = put(&b, "large", &large);
    assert_int_equal(handle(&b, item, NULL), 0);
    assert_int_equal(item->image.codec, LEAT__CODEC_JPEG);
    assert_int_equal(item->image.width, 64);
    assert_int_equal(item->image.height, 32);
    assert_int_equal(item->image.flags, LEAT_PACK_IMAGE_RESIZED);
    item = put(&b, "small", &small);
    assert_int_equal(handle(&b, item, NULL), 0);
    assert_int_equal(item->image.codec, LEAT__CODEC_PNG);
    assert_memory_equal(leat__records_data(b.run, item), small.data, small.len);
    leat__buf_reset(&large);
    leat__buf_reset(&small);
    end(&b);
    uint32_t w = 3, h = 1000;
    leat__encode_size(10, &w, &h);
    assert_int_equal(w, 1);
    assert_int_equal(h, 10);
}

static void quality_encodes_all(void **state)
{
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        bench b;
        begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_KEEP, .quality = i ? 95 : 40});
        leat__buf image = make_image(LEAT__CODEC_PNG, 200, 100, 4);
        leat__item *item = put(&b, "k", &image);
        assert_int_equal(handle(&b, item, NULL), 0);
        assert_int_equal(item->image.codec, LEAT__CODEC_JPEG);
        size[i] = item->size;
        leat__buf_reset(&image);
        end(&b);
    }
    assert_true(size[0] < size[1]);
}

static leat__tile_tables *flat_tables(void)
{
    leat__tile_trainer *t = NULL;
    leat__tile_tables *tables = NULL;
    leat__buf blob;
    leat__buf_init(&blob, LEAT__MEM_INGEST, 1u << 24);
    assert_int_equal(leat__tile_trainer_open(&t, NULL), 0);
    assert_int_equal(leat__tile_trainer_finish(t, &blob, NULL), 0);
    assert_int_equal(leat__tile_tables_open(&tables, blob.data, blob.len, NULL), 0);
    leat__tile_trainer_close(&t);
    leat__buf_reset(&blob);
    return tables;
}

/* The same limit skips the same images, however they are stored. */
static void limits_are_those_of_the_image(void **state)
{
    static const uint32_t sizes[][2] = {{150, 90}, {2000, 1}, {1, 2000}, {700, 500}};
    static const leat_image_mode how[] = {LEAT_IMAGES_TILED, LEAT_IMAGES_KEEP, LEAT_IMAGES_RAW};
    leat__tile_tables *tables = flat_tables();
    for (int i = 0; i < 4; i++) {
        uint64_t pixels = (uint64_t)sizes[i][0] * sizes[i][1];
        leat__buf image = make_image(LEAT__CODEC_JPEG, sizes[i][0], sizes[i][1], 4);
        for (int k = 0; k < 3; k++) {
            for (uint32_t over = 0; over < 2; over++) {
                leat_error err = {0};
                leat__encode_plan plan = {.images = how[k], .tables = tables};
                bench b;
                plan.limits.max_out_bytes = pixels * 3 - over;
                begin(&b, plan);
                assert_int_equal(handle(&b, put(&b, "k", &image), &err), over ? LEAT_ELIMIT : 0);
                assert_true(!over || strstr(err.message, "bytes are over the limit"));
                end(&b);
                plan.limits = (leat__decode_limits){.max_work = pixels - over};
                begin(&b, plan);
                assert_int_equal(handle(&b, put(&b, "k", &image), &err), over ? LEAT_ELIMIT : 0);
                assert_true(!over || strstr(err.message, "pixels times scans"));
                end(&b);
            }
        }
        leat__buf_reset(&image);
    }
    leat__tile_tables_close(&tables);
}

static void tiles_restore(leat__tile_density density)
{
    bench b;
    leat__tile_tables *tables = flat_tables();
    leat__tile_facts facts;
    begin(&b, (leat__encode_plan){.images = LEAT_IMAGES_TILED, .tables = tables, .density = density});
    leat__buf image = make_image(LEAT__CODEC_JPEG, 150, 90, 4);
    leat__buf png = make_image(LEAT__CODEC_PNG, 50, 40, 4), back;
    leat__item *item = put(&b, "k", &image);
    assert_int_equal(handle(&b, item, NULL), 0);
    assert_int_equal(item->image.codec, LEAT__CODEC_TILE);
    assert_int_equal(item->image.flags, LEAT_PACK_IMAGE_RECODED);
    assert_int_equal(leat__tile_describe(leat__records_data(b.run, item), item->size, &facts, NULL), 0);
    assert_int_equal(facts.density, density);
    leat__buf_init(&back, LEAT__MEM_INGEST, 1u << 24);
    assert_int_equal(leat__tile_restore(leat__records_data(b.run, item), item->size, tables, &back, NULL), 0);
    assert_int_equal(back.len, image.len);
    assert_memory_equal(back.data, image.data, image.len);
    item = put(&b, "png", &png); /* only JPEGs are tiled */
    assert_int_equal(handle(&b, item, NULL), 0);
    assert_int_equal(item->image.codec, LEAT__CODEC_PNG);
    image.len -= 50;
    item = put(&b, "cut", &image);
    leat_error err = {0};
    assert_int_equal(handle(&b, item, &err), LEAT_EDATA);
    leat__buf_reset(&back);
    leat__buf_reset(&image);
    leat__buf_reset(&png);
    end(&b);
    leat__tile_tables_close(&tables);
}

static void tiled_images_restore(void **state)
{
    tiles_restore(LEAT__TILE_SMALL);
    tiles_restore(LEAT__TILE_FAST);
}

static void limits_and_needs(void **state)
{
    leat__encode_plan plan = {.images = LEAT_IMAGES_RAW, .limits = {.max_pixels = 1000}};
    bench b;
    leat_error err = {0};
    begin(&b, plan);
    leat__buf image = make_image(LEAT__CODEC_JPEG, 150, 90, 4);
    leat__item *item = put(&b, "k", &image);
    assert_int_equal(handle(&b, item, &err), LEAT_ELIMIT);
    plan.limits.max_pixels = 0;
    assert_true(leat__encode_need(&plan, (uint8_t *)image.data, image.len).result > 150 * 90 * 3);
    plan.images = LEAT_IMAGES_KEEP;
    leat__encode_bytes need = leat__encode_need(&plan, (uint8_t *)image.data, image.len);
    assert_true(need.work < 150 * 90 * 6 && need.result < 150 * 90);
    need = leat__encode_need(&plan, (const uint8_t *)"x", 1);
    assert_true(need.work == 0 && need.result == 0);
    leat__buf_reset(&image);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_images_keep_their_bytes),
        cmocka_unit_test(limits_are_those_of_the_image),
        cmocka_unit_test(damage_is_found_unless_trusted),
        cmocka_unit_test(raw_holds_the_pixels),
        cmocka_unit_test(mix_is_chosen_by_key),
        cmocka_unit_test(max_side_makes_smaller_never_larger),
        cmocka_unit_test(quality_encodes_all),
        cmocka_unit_test(tiled_images_restore),
        cmocka_unit_test(limits_and_needs),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
