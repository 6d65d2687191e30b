/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits coefficients into parts: joined again by the rules of the format, they are the same.
 */
#include "codec/make_tiles.h"
#include "probe/cpu.h"

/* Undoes the prediction as defined in docs/tile-format.md. */
static int16_t predicted(const int16_t (*dc)[64], const leat__tile_shape *s, uint32_t c, uint32_t i)
{
    uint32_t x = i % s->wide[c];
    if (x > 0) return dc[c][i - 1];
    return i >= s->wide[c] ? dc[c][i - s->wide[c]] : 0;
}

static void check_tile(const leat__tile_header *h, const leat__jpeg_coefs *coefs, leat__tile_parts *parts,
                       uint32_t tx, uint32_t ty)
{
    leat__tile_shape s;
    int16_t dc[3][64];
    uint32_t b = 0, n = 0;
    leat__tile_shape_at(h, tx, ty, &s);
    for (uint32_t c = 0; c < s.components; c++) {
        const leat__jpeg_component *comp = &coefs->component[c];
        for (uint32_t i = 0; i < s.count[c]; i++, b++) {
            uint32_t x = tx * leat__tile_blocks_x(h, c) + i % s.wide[c];
            uint32_t y = ty * leat__tile_blocks_y(h, c) + i / s.wide[c];
            const int16_t *want = comp->coefs + 64 * ((size_t)y * comp->grid_x + x);
            int16_t got[64] = {0};
            for (uint32_t k = 0; k < 64; k++)
                if (parts->mask[b] >> k & 1) got[leat__tile_order[k]] = parts->value[n++];
            got[0] = (int16_t)(got[0] + predicted((const int16_t(*)[64])dc, &s, c, i));
            dc[c][i] = got[0];
            assert_memory_equal(got, want, sizeof got);
            uint32_t groups = parts->groups[b];
            assert_true(groups == 8 || parts->mask[b] >> 8 * groups == 0);
            assert_true(groups == 0 || parts->mask[b] >> 8 * (groups - 1) != 0);
        }
    }
    assert_int_equal(n, parts->values);
}

static void tiles_hold_all_coefficients(void **state)
{
    leat__tile_parts *parts = malloc(sizeof *parts);
    leat__tile_pack_dsp dsp;
    leat__tile_pack_init(&dsp, leat__cpu_flags());
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        leat__jpeg_coefs coefs;
        leat__tile_header h;
        uint64_t blocks = 0;
        if (!can_be_tiled(&jpeg_kinds[k])) continue;
        bytes b = make_jpeg(&jpeg_kinds[k], 150, 99, 85, 2);
        assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL), 0);
        assert_int_equal(leat__tile_header_from(&h, &coefs), LEAT__TILE_KEPT_NONE);
        for (uint32_t ty = 0; ty < h.tiles_y; ty++)
            for (uint32_t tx = 0; tx < h.tiles_x; tx++) {
                leat__tile_shape s;
                assert_int_equal(leat__tile_take_apart(&dsp, parts, &h, &coefs, tx, ty), 0);
                check_tile(&h, &coefs, parts, tx, ty);
                leat__tile_shape_at(&h, tx, ty, &s);
                blocks += s.blocks;
            }
        uint64_t all = 0;
        for (uint32_t c = 0; c < h.components; c++)
            all += (uint64_t)leat__tile_grid_x(&h, c) * leat__tile_grid_y(&h, c);
        assert_int_equal(blocks, all);
        free(b.data);
    }
    free(parts);
}

static void arithmetic_coding_is_refused(void **state)
{
    leat__jpeg_coefs coefs;
    leat__tile_header h;
    bytes b = make_jpeg(&jpeg_kinds[0], 20, 20, 85, 2);
    assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL), 0);
    coefs.arithmetic = true;
    assert_int_equal(leat__tile_header_from(&h, &coefs), LEAT__TILE_KEPT_CODING);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_hold_all_coefficients),
        cmocka_unit_test(arithmetic_coding_is_refused),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
