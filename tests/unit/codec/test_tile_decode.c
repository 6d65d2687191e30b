/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding: any region of any kind, with each instruction set, equals plain libjpeg's pixels; damage is an
 * error with its offset.
 */
#include "codec/make_tiles.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "probe/cpu.h"

static const uint32_t levels[] = {
    LEAT__CPU_SSE42,
    LEAT__CPU_SSE42 | LEAT__CPU_AVX2,
    LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL,
};
enum { LEVELS = 3 };

static void compare_region(bytes sample, const uint8_t *ref, uint32_t width, uint32_t channels, uint32_t x,
                           uint32_t y, uint32_t w, uint32_t h)
{
    leat__planes got = {0};
    leat_error err = {0};
    leat__decode_request request = {x, y, w, h, .tables = tables};
    if (decode_tiles(sample, &request, &got, &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(got.channels, channels);
    assert_int_equal(got.width, w);
    assert_int_equal(got.height, h);
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t row = 0; row < h; row++)
            for (uint32_t i = 0; i < w; i++)
                if (got.plane[c][row * got.stride + i] != plain_at(ref, width, channels, x + i, y + row, c))
                    fail_msg("region %u,%u %ux%u differs at %u,%u channel %u", x, y, w, h, i, row, c);
    leat__planes_reset(&got);
}

static void any_region_equals_libjpeg(void **state)
{
    uint32_t seed = 5;
    static const uint32_t sizes[][2] = {{1, 1}, {3, 130}, {4, 4}, {5, 6}, {97, 70}, {210, 150}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            uint32_t width, height, channels;
            leat__tile_kept kept;
            if (!can_be_tiled(&jpeg_kinds[k])) continue;
            bytes jpeg = make_jpeg(&jpeg_kinds[k], sizes[s][0], sizes[s][1], 88, 3);
            uint8_t *ref = plain_jpeg(jpeg, 1, &width, &height, &channels);
            for (int round = 0; round < 24; round++) {
                uint32_t w = 1 + dice_below(&seed, width), h = 1 + dice_below(&seed, height);
                uint32_t x = dice_below(&seed, width - w + 1);
                uint32_t y = dice_below(&seed, height - h + 1);
                if (round == 0) x = y = 0, w = width, h = height;
                bytes b = tile_jpeg(jpeg, (leat__tile_density)(round & 1), &kept);
                assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
                for (int l = 0; l < LEVELS; l++) {
                    leat__cpu_mask(levels[l]);
                    compare_region(b, ref, width, channels, x, y, w, h);
                }
                leat__cpu_mask(~0u);
                free(b.data);
            }
            free(ref);
            free(jpeg.data);
        }
}

static void probe_tells_what_is_in_it(void **state)
{
    leat__tile_kept kept;
    leat__image_info info;
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 75, 43, 85, 4);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_FAST, &kept);
    assert_int_equal(leat__codec_sniff(b.data, b.len), LEAT__CODEC_TILE);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_TILE, b.data, b.len, &info, NULL), 0);
    assert_int_equal(info.width, 75);
    assert_int_equal(info.height, 43);
    assert_int_equal(info.channels, 3);
    assert_int_equal(info.orientation, 1);
    assert_string_equal(info.format, "tiled 4:2:0");
    free(b.data);
    free(jpeg.data);
}

static void tables_must_be_the_right_ones(void **state)
{
    leat__tile_kept kept;
    leat__planes got = {0};
    leat__decode_request none = {0}, right = {.tables = tables};
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 75, 43, 85, 4);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    assert_int_equal(decode_tiles(b, &none, &got, NULL), LEAT_EINVAL);
    assert_int_equal(decode_tiles(b, &right, &got, NULL), 0);
    b.data[16] ^= 1; /* the id */
    assert_int_equal(decode_tiles(b, &right, &got, NULL), LEAT_EDATA);
    leat__planes_reset(&got);
    free(b.data);
    free(jpeg.data);
}

/* Lengthens one tile at the cost of the next: the header is still valid, but neither tile is. */
static void damage_is_found_and_placed(void **state)
{
    leat__tile_kept kept;
    leat__tile_header h;
    leat__planes got = {0};
    leat_error err = {0};
    leat__decode_request request = {.tables = tables};
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 150, 143, 85, 4);
    for (int density = 0; density < 2; density++) {
        bytes b = tile_jpeg(jpeg, (leat__tile_density)density, &kept);
        assert_int_equal(leat__tile_header_parse(&h, b.data, b.len, NULL), 0);
        uint8_t *lengths = b.data + (h.lengths - b.data);
        leat__store_u16(lengths + 4, (uint16_t)(leat__load_u16(lengths + 4) + 1));
        leat__store_u16(lengths + 6, (uint16_t)(leat__load_u16(lengths + 6) - 1));
        assert_int_equal(decode_tiles(b, &request, &got, &err), LEAT_EDATA);
        int64_t third = (int64_t)h.header_bytes + leat__load_u16(lengths) + leat__load_u16(lengths + 2);
        assert_int_equal(err.offset, third);
        assert_non_null(strstr(err.message, "tile 2 (column 2, row 0)"));
        /* What does not touch it decodes. */
        leat__decode_request corner = {0, 0, 60, 60, .tables = tables};
        assert_int_equal(decode_tiles(b, &corner, &got, &err), 0);
        free(b.data);
    }
    leat__planes_reset(&got);
    free(jpeg.data);
}

static int stop_at_second(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    return ++*(int *)ctx == 2 ? LEAT_ECANCELED : 0;
}

static void what_the_sink_says_is_returned(void **state)
{
    leat__tile_kept kept;
    leat__image_info info;
    int calls = 0;
    leat__row_sink sink = {stop_at_second, &calls};
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 75, 143, 85, 4);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_FAST, &kept);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_TILE, b.data, b.len, &info, NULL), 0);
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len, NULL, &sink, NULL), LEAT_ECANCELED);
    assert_int_equal(calls, 2);
    free(b.data);
    free(jpeg.data);
}

static void decoding_survives_failed_allocations(void **state)
{
    leat__tile_kept kept;
    leat__image_info info;
    leat__decode_request request = {.tables = tables};
    if (!leat__fault_available()) skip();
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 117, 95, 80, 6);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_TILE, b.data, b.len, &info, NULL), 0);
    for (uint64_t nth = 1; nth < 50; nth++) {
        leat__decoder *d = NULL;
        leat__planes got = {0};
        leat__fault_arm(LEAT__FAULT_ALLOC, nth, false);
        int rc = leat__decoder_open(&d, NULL);
        if (rc == 0) rc = leat__codec_decode_planes(d, &info, b.data, b.len, &request, &got, NULL);
        uint64_t asked = leat__fault_count(LEAT__FAULT_ALLOC);
        leat__fault_disarm();
        leat__decoder_close(&d);
        leat__planes_reset(&got);
        assert_int_equal(rc, asked < nth ? 0 : LEAT_ENOMEM);
        if (asked < nth) break;
        assert_true(nth < 49);
    }
    free(b.data);
    free(jpeg.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_region_equals_libjpeg),
        cmocka_unit_test(probe_tells_what_is_in_it),
        cmocka_unit_test(tables_must_be_the_right_ones),
        cmocka_unit_test(damage_is_found_and_placed),
        cmocka_unit_test(what_the_sink_says_is_returned),
        cmocka_unit_test(decoding_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
