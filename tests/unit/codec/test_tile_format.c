/* SPDX-License-Identifier: Apache-2.0
 *
 * Header of a tiled sample: what was written can be read; everything else is refused.
 */
#include "codec/make_tiles.h"

#include "base/bytes.h"

static bytes sample(leat__tile_density density)
{
    leat__tile_kept kept;
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 150, 70, 85, 4);
    bytes b = tile_jpeg(jpeg, density, &kept);
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    free(jpeg.data);
    return b;
}

static void header_is_as_documented(void **state)
{
    bytes b = sample(LEAT__TILE_SMALL);
    leat__tile_header h;
    assert_int_equal(leat__tile_header_parse(&h, b.data, b.len, NULL), 0);
    assert_memory_equal(b.data, "LTIL\x01", 5);
    assert_int_equal(b.data[6], LEAT__TILE_420);
    assert_int_equal(leat__load_u16(b.data + 8), 150);
    assert_int_equal(leat__load_u16(b.data + 10), 70);
    assert_int_equal(b.data[12], 2); /* luma and chroma tables */
    assert_int_equal(b.data[13], 0 | 1 << 2 | 1 << 4);
    assert_int_equal(leat__load_u32(b.data + 16), leat__tile_tables_id(tables));
    assert_int_equal(h.tiles_x, 3);
    assert_int_equal(h.tiles_y, 2);
    assert_int_equal(h.header_bytes % 16, 0);
    assert_int_equal(h.header_bytes, (36 + 128 + 2 * 6 + 15) / 16 * 16);
    for (int i = 0; i < 16; i++) assert_int_equal(b.data[h.header_bytes + h.tile_bytes + (uint32_t)i], 0);
    free(b.data);
}

static void wrong_fields_are_refused(void **state)
{
    static const struct {
        uint8_t at, value;
        int want;
    } cases[] = {
        {0, 'X', LEAT_EDATA}, {4, 2, LEAT_EDATA},   {4, 0, LEAT_EFORMAT},  {4, 3, LEAT_EFORMAT},
        {5, 32, LEAT_EDATA},  {6, 6, LEAT_EDATA},   {7, 0, LEAT_EDATA},    {7, 9, LEAT_EDATA},
        {12, 0, LEAT_EDATA},  {12, 4, LEAT_EDATA},  {13, 64, LEAT_EDATA},  {13, 3, LEAT_EDATA},
        {14, 1, LEAT_EDATA},  {8, 200, LEAT_EDATA}, {20, 255, LEAT_EDATA}, {27, 1, LEAT_EDATA},
    };
    bytes b = sample(LEAT__TILE_FAST);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat__tile_header h;
        leat_error err = {0};
        uint8_t was = b.data[cases[i].at];
        assert_int_not_equal(was, cases[i].value);
        b.data[cases[i].at] = cases[i].value;
        assert_int_equal(leat__tile_header_parse(&h, b.data, b.len, &err), cases[i].want);
        assert_true(err.offset >= 0 && err.offset < 256);
        b.data[cases[i].at] = was;
    }
    for (size_t len = 0; len < b.len; len += len < 300 ? 1 : 97) {
        leat__tile_header h;
        assert_int_equal(leat__tile_header_parse(&h, b.data, len, NULL), LEAT_EDATA);
    }
    free(b.data);
}

static void wide_quantisers_are_kept(void **state)
{
    leat__tile_header h = {
        .width = 9, .height = 9, .sampling = LEAT__TILE_444, .orientation = 6, .tile_bytes = 7};
    leat__tile_header again;
    leat__buf out;
    size_t lengths;
    leat__buf_init(&out, LEAT__MEM_MISC, 4096);
    leat__tile_geometry(&h);
    for (uint32_t k = 0; k < 64; k++) {
        h.quant[0][k] = (uint16_t)(k + 1);
        h.quant[1][k] = h.quant[2][k] = (uint16_t)(1000 + k);
    }
    assert_int_equal(leat__tile_header_write(&h, &out, &lengths), 0);
    leat__store_u16(out.data + lengths, 7);
    assert_int_equal(leat__buf_zeros(&out, 7 + LEAT__TILE_GUARD), 0);
    assert_int_equal(leat__tile_header_parse(&again, (uint8_t *)out.data, out.len, NULL), 0);
    assert_memory_equal(again.quant, h.quant, sizeof h.quant);
    assert_int_equal(again.orientation, 6);
    assert_int_equal(again.header_bytes, h.header_bytes);
    leat__buf_reset(&out);
}

static void shapes_cover_the_grid(void **state)
{
    static const uint32_t blocks[] = {64, 192, 128, 96, 128, 96};
    for (int s = 0; s < LEAT__TILE_SAMPLINGS; s++) {
        leat__tile_header h = {.width = 201, .height = 131, .sampling = (leat__tile_sampling)s};
        leat__tile_shape shape;
        leat__tile_geometry(&h);
        leat__tile_shape_at(&h, 0, 0, &shape);
        assert_int_equal(shape.blocks, blocks[s]);
        for (uint32_t c = 0; c < h.components; c++) {
            uint32_t across = 0, down = 0;
            for (uint32_t x = 0; x < h.tiles_x; x++) {
                leat__tile_shape_at(&h, x, 0, &shape);
                across += shape.wide[c];
            }
            for (uint32_t y = 0; y < h.tiles_y; y++) {
                leat__tile_shape_at(&h, 0, y, &shape);
                down += shape.high[c];
            }
            assert_int_equal(across, leat__tile_grid_x(&h, c));
            assert_int_equal(down, leat__tile_grid_y(&h, c));
        }
    }
}

static void reasons_have_names(void **state)
{
    assert_string_equal(leat__tile_kept_name(LEAT__TILE_KEPT_NONE), "tiled");
    assert_string_equal(leat__tile_kept_name(LEAT__TILE_KEPT_RESTORE), "restore");
    for (int k = 0; k < LEAT__TILE_KEPT_COUNT; k++)
        assert_true(strlen(leat__tile_kept_text((leat__tile_kept)k)) > 3);
    assert_string_equal(leat__tile_kept_name(LEAT__TILE_KEPT_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_as_documented),  cmocka_unit_test(wrong_fields_are_refused),
        cmocka_unit_test(wide_quantisers_are_kept), cmocka_unit_test(shapes_cover_the_grid),
        cmocka_unit_test(reasons_have_names),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
