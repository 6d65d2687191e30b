/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor_test.h"

#include "doctor/variant.h"
#include "loader/tiny_pack.h"

#define PACK "doctor-variant.leat"

static int setup(void **state)
{
    (void)state;
    tiny_pack(PACK, &(tiny_opts){.samples = 40, .classes = 2, .bad_every = 20});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(PACK);
}

static leat__set loaded(void)
{
    static const uint64_t ids[] = {3, 1, 4, 15, 9, 2, 6};
    leat__set set;
    assert_ok(leat__set_load(&set, PACK, ids, LEAT_COUNT(ids), LEAT_COUNT(ids), 1 << 20, NULL, NULL));
    assert_int_equal(set.count, LEAT_COUNT(ids));
    for (uint32_t i = 0; i < LEAT_COUNT(ids); i++) { /* each once, in another order */
        uint32_t found = 0;
        for (uint32_t k = 0; k < set.count; k++) found += set.sample[k].id == ids[i];
        assert_int_equal(found, 1);
    }
    return set;
}

/* A few samples represent all: the mean size of any leading part is near that of the whole. */
static void a_part_has_large_and_small_ones(void **state)
{
    uint64_t ids[40];
    leat__set all, part;
    (void)state;
    for (uint64_t i = 0; i < LEAT_COUNT(ids); i++) ids[i] = i;
    assert_ok(leat__set_load(&all, PACK, ids, LEAT_COUNT(ids), LEAT_COUNT(ids), 1 << 20, NULL, NULL));
    for (uint32_t n = 8; n < all.count; n += 8) {
        assert_ok(leat__set_load(&part, PACK, ids, LEAT_COUNT(ids), n, 1 << 20, NULL, NULL));
        assert_int_equal(part.count, n);
        double ratio = leat__set_bytes(&part) / leat__set_bytes(&all);
        if (ratio < 0.93 || ratio > 1.07) fail_msg("%u samples are %.3f of the mean size", n, ratio);
        leat__set_reset(&part);
    }
    leat__set_reset(&all);
    assert_no_leaks();
}

/* Tiles have the same pixels: the measured set is the set that would be stored. */
static void tiles_are_the_same_pixels(void **state)
{
    leat__set from = loaded(), to;
    leat__decoder *d;
    char action[128];
    (void)state;
    assert_ok(leat__variant_make(LEAT__VARIANT_TILED, &from, 1024, &to, action, sizeof action, NULL));
    assert_contains(action, "--images tiled");
    assert_int_equal(to.count, from.count);
    assert_ok(leat__decoder_open(&d, NULL));
    for (uint32_t i = 0; i < to.count; i++) {
        leat__planes a = {0}, b = {0};
        leat__decode_request plain = {0}, tiled = {.tables = to.tables};
        assert_int_equal(to.sample[i].info.codec, LEAT__CODEC_TILE);
        assert_ok(leat__codec_decode_planes(d, &from.sample[i].info, from.sample[i].data, from.sample[i].len,
                                            &plain, &a, NULL));
        assert_ok(leat__codec_decode_planes(d, &to.sample[i].info, to.sample[i].data, to.sample[i].len,
                                            &tiled, &b, NULL));
        assert_int_equal(a.width, b.width);
        for (uint32_t c = 0; c < a.channels; c++)
            for (uint32_t y = 0; y < a.height; y++)
                assert_memory_equal(a.plane[c] + y * a.stride, b.plane[c] + y * b.stride, a.width);
        leat__planes_reset(&a);
        leat__planes_reset(&b);
    }
    leat__decoder_close(&d);
    leat__set_reset(&to);
    leat__set_reset(&from);
    assert_no_leaks();
}

static void pixels_take_more_bytes_and_quality_fewer(void **state)
{
    leat__set from = loaded(), raw, low;
    char action[128];
    (void)state;
    assert_ok(leat__variant_make(LEAT__VARIANT_RAW, &from, 1024, &raw, action, sizeof action, NULL));
    assert_int_equal(raw.count, from.count);
    assert_true(leat__set_bytes(&raw) > leat__set_bytes(&from));
    assert_ok(leat__variant_make(LEAT__VARIANT_QUALITY, &from, 1024, &low, action, sizeof action, NULL));
    assert_true(low.count == from.count && leat__set_bytes(&low) < leat__set_bytes(&from));
    leat__set_reset(&raw);
    leat__set_reset(&low);
    leat__set_reset(&from);
    assert_no_leaks();
}

static void stored_again_they_take_a_share(void **state)
{
    leat__set from = loaded(), none = {0};
    double same, low, small;
    (void)state;
    assert_ok(leat__variant_share(&from, 0, 90, &same, NULL));
    assert_ok(leat__variant_share(&from, 0, 30, &low, NULL));
    assert_ok(leat__variant_share(&from, 16, 0, &small, NULL));
    assert_true(low > 0 && low < same);
    assert_true(small > 0 && small < same);
    assert_ok(leat__variant_share(&none, 0, 90, &same, NULL));
    assert_true(same == 0);
    for (uint32_t i = 0; i < from.count; i++) from.sample[i].info.width = 60000; /* would take minutes */
    assert_ok(leat__variant_share(&from, 0, 90, &same, NULL));
    assert_true(same == 0);
    leat__set_reset(&from);
    assert_no_leaks();
}

static void impossible_variants_are_empty(void **state)
{
    leat__set from = loaded(), raw, again;
    char action[128];
    (void)state;
    /* images of 76 pixels are not large beside an output of 64 */
    assert_ok(leat__variant_make(LEAT__VARIANT_SMALLER, &from, 4096, &again, action, sizeof action, NULL));
    assert_int_equal(again.count, 0);
    assert_ok(leat__variant_make(LEAT__VARIANT_SMALLER, &from, 256, &again, action, sizeof action, NULL));
    assert_int_equal(again.count, from.count);
    assert_contains(action, "--max-side 32");
    for (uint32_t i = 0; i < again.count; i++)
        assert_true(LEAT_MAX(again.sample[i].info.width, again.sample[i].info.height) <= 32);
    leat__set_reset(&again);
    assert_ok(leat__variant_make(LEAT__VARIANT_RAW, &from, 1024, &raw, action, sizeof action, NULL));
    assert_ok(leat__variant_make(LEAT__VARIANT_RAW, &raw, 1024, &again, action, sizeof action, NULL));
    assert_int_equal(again.count, 0);
    assert_ok(leat__variant_make(LEAT__VARIANT_TILED, &raw, 1024, &again, action, sizeof action, NULL));
    assert_int_equal(again.count, 0);
    leat__set_reset(&raw);
    leat__set_reset(&from);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_large_and_small_ones),
        cmocka_unit_test(tiles_are_the_same_pixels),
        cmocka_unit_test(pixels_take_more_bytes_and_quality_fewer),
        cmocka_unit_test(stored_again_they_take_a_share),
        cmocka_unit_test(impossible_variants_are_empty),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
