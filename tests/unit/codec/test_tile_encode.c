/* SPDX-License-Identifier: Apache-2.0
 *
 * Encoding: every kind of JPEG that can be tiled is tiled, at many sizes and both densities, and can be
 * restored; every other is refused with a reason.
 */
#include "codec/make_tiles.h"

#include "base/fault.h"
#include "probe/cpu.h"

static void all_kinds_and_sizes_are_tiled(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1},  {2, 3},   {5, 17},  {8, 8},    {16, 16},
                                        {33, 9}, {64, 64}, {65, 63}, {63, 129}, {200, 131}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int density = 0; density < 2; density++) {
                leat__tile_kept kept;
                leat__tile_facts facts;
                if (!can_be_tiled(&jpeg_kinds[k])) continue;
                bytes jpeg = make_jpeg(&jpeg_kinds[k], sizes[s][0], sizes[s][1], 90, 7);
                bytes b = tile_jpeg(jpeg, (leat__tile_density)density, &kept);
                if (kept != LEAT__TILE_KEPT_NONE)
                    fail_msg("%s %ux%u: %s", jpeg_kinds[k].name, sizes[s][0], sizes[s][1],
                             leat__tile_kept_text(kept));
                assert_int_equal(leat__tile_describe(b.data, b.len, &facts, NULL), 0);
                assert_int_equal(facts.density, density);
                assert_true(facts.exact);
                assert_int_equal(facts.progressive, jpeg_kinds[k].progressive);
                assert_int_equal(facts.file_bytes, jpeg.len);
                free(b.data);
                free(jpeg.data);
            }
}

static void others_are_refused_with_their_reason(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        const jpeg_kind *kind = &jpeg_kinds[k];
        leat__tile_kept kept;
        bytes jpeg = make_jpeg(kind, 50, 40, 80, 1);
        bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
        leat__tile_kept want = LEAT__TILE_KEPT_NONE;
        if (kind->file != JCS_YCbCr && kind->file != JCS_GRAYSCALE) want = LEAT__TILE_KEPT_COLOUR;
        else if (!can_be_tiled(kind)) want = LEAT__TILE_KEPT_SAMPLING;
        assert_int_equal(kept, want);
        assert_int_equal(b.len == 0, want != LEAT__TILE_KEPT_NONE);
        free(b.data);
        free(jpeg.data);
    }
}

/* Separate scans of which the last is missing: libjpeg decodes that component as grey. The decoded file and
 * its tiles agree. */
static void a_component_without_a_scan_is_grey(void **state)
{
    bytes jpeg = make_jpeg(&jpeg_kinds[17], 70, 50, 80, 1);
    leat__image_info info;
    leat__planes whole = {0}, tiled = {0};
    leat__tile_kept kept;
    leat__decode_request request = {.tables = tables};
    assert_true(jpeg_kinds[17].separate_scans);
    size_t at = jpeg.len - 4;
    while (jpeg.data[at] != 0xff || jpeg.data[at + 1] != 0xda) at--;
    memcpy(jpeg.data + at, "\xff\xd9", 2);
    jpeg.len = at + 2;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, jpeg.data, jpeg.len, &info, NULL), 0);
    assert_int_equal(leat__codec_decode_planes(decoder, &info, jpeg.data, jpeg.len, NULL, &whole, NULL), 0);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_FAST, &kept);
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    assert_int_equal(decode_tiles(b, &request, &tiled, NULL), 0);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < whole.height; y++)
            assert_memory_equal(whole.plane[c] + y * whole.stride, tiled.plane[c] + y * tiled.stride,
                                whole.width);
    leat__planes_reset(&whole);
    leat__planes_reset(&tiled);
    free(b.data);
    free(jpeg.data);
}

/* Coefficients that no encoder writes: at the limits they are tiled or refused by a proof; beyond, they are
 * refused for their range. */
static void coefficients_out_of_range_are_refused(void **state)
{
    bytes jpeg = make_jpeg(&jpeg_kinds[7], 16, 16, 80, 1);
    leat__jpeg_coefs coefs;
    leat__tile_parts *parts = malloc(sizeof *parts);
    leat__tile_pack_dsp dsp;
    leat__tile_header h;
    leat__tile_pack_init(&dsp, leat__cpu_flags());
    assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL), 0);
    int16_t *blocks = (int16_t *)(uintptr_t)coefs.component[0].coefs;
    const struct {
        int at, coef, quant;
        leat__tile_kept want;
    } cases[] = {
        {5, 16383, 2, LEAT__TILE_KEPT_NONE},  {5, -16383, 2, LEAT__TILE_KEPT_NONE},
        {5, 16384, 1, LEAT__TILE_KEPT_RANGE}, {5, -32768, 1, LEAT__TILE_KEPT_RANGE},
        {5, 1000, 33, LEAT__TILE_KEPT_RANGE}, {0, 8191, 1, LEAT__TILE_KEPT_NONE},
        {0, -8192, 1, LEAT__TILE_KEPT_RANGE}, {63, 1, 65535, LEAT__TILE_KEPT_RANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(blocks, 0, 4 * 64 * sizeof *blocks);
        blocks[64 + cases[i].at] = (int16_t)cases[i].coef;
        coefs.component[0].quant[cases[i].at] = (uint16_t)cases[i].quant;
        assert_int_equal(leat__tile_header_from(&h, &coefs), LEAT__TILE_KEPT_NONE);
        assert_int_equal(leat__tile_take_apart(&dsp, parts, &h, &coefs, 0, 0), cases[i].want);
    }
    free(parts);
    free(jpeg.data);
}

/* The bytes are the same whether pixels were compared or not. Files that are not restored byte for byte are
 * compared in any case. */
static void trust_changes_no_byte(void **state)
{
    leat__tile_encode_opts check = {.density = LEAT__TILE_SMALL};
    leat__tile_encode_opts trust = {.density = LEAT__TILE_SMALL, .trust = true};
    leat__tile_encoder *e;
    leat__buf want, got;
    size_t tiled = 0;
    leat__buf_init(&want, LEAT__MEM_MISC, 1 << 20);
    leat__buf_init(&got, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__tile_encoder_open(&e, tables, NULL), 0);
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes jpeg = make_jpeg(&jpeg_kinds[k], 90, 70, 85, 3);
        leat__jpeg_coefs a, b;
        leat__tile_kept kept, again;
        assert_int_equal(leat__jpeg_coef_read_libjpeg(reader, jpeg.data, jpeg.len, NULL, &a, NULL), 0);
        assert_int_equal(leat__tile_encode(e, &a, jpeg.data, jpeg.len, &check, &want, &kept, NULL), 0);
        assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &b, NULL), 0);
        assert_int_equal(leat__tile_encode(e, &b, jpeg.data, jpeg.len, &trust, &got, &again, NULL), 0);
        assert_int_equal(kept, again);
        assert_int_equal(want.len, got.len);
        if (want.len > 0) assert_memory_equal(want.data, got.data, want.len);
        tiled += kept == LEAT__TILE_KEPT_NONE;
        free(jpeg.data);
    }
    assert_true(tiled >= 10);
    leat__tile_encoder_close(&e);
    leat__buf_reset(&want);
    leat__buf_reset(&got);
}

static void small_tiles_need_tables(void **state)
{
    leat__tile_encoder *bare;
    leat__jpeg_coefs coefs;
    leat__tile_kept kept;
    leat__buf out;
    leat__tile_encode_opts small = {.density = LEAT__TILE_SMALL}, fast = {LEAT__TILE_FAST};
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 40, 40, 80, 1);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL), 0);
    assert_int_equal(leat__tile_encoder_open(&bare, NULL, NULL), 0);
    assert_int_equal(leat__tile_encode(bare, &coefs, jpeg.data, jpeg.len, &small, &out, &kept, NULL),
                     LEAT_EINVAL);
    assert_int_equal(leat__tile_encode(bare, &coefs, jpeg.data, jpeg.len, &fast, &out, &kept, NULL), 0);
    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
    leat__buf file;
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__tile_restore((uint8_t *)out.data, out.len, NULL, &file, NULL), 0);
    assert_int_equal(file.len, jpeg.len);
    assert_memory_equal(file.data, jpeg.data, jpeg.len);
    leat__buf_reset(&file);
    leat__buf_reset(&out);
    leat__tile_encoder_close(&bare);
    free(jpeg.data);
}

/* Each allocation fails in turn: an error, no leak, and the encoder still works. */
static void survives_failed_allocations(void **state)
{
    if (!leat__fault_available()) skip();
    leat__jpeg_coefs coefs;
    leat__tile_encode_opts opts = {.density = LEAT__TILE_SMALL};
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 80, 70, 80, 1);
    assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL), 0);
    for (uint64_t nth = 1; nth < 200; nth++) {
        leat__tile_encoder *e = NULL;
        leat__tile_kept kept;
        leat__buf out;
        leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
        leat__fault_arm(LEAT__FAULT_ALLOC, nth, false);
        int rc = leat__tile_encoder_open(&e, tables, NULL);
        if (rc == 0) rc = leat__tile_encode(e, &coefs, jpeg.data, jpeg.len, &opts, &out, &kept, NULL);
        uint64_t asked = leat__fault_count(LEAT__FAULT_ALLOC);
        leat__fault_disarm();
        if (rc != 0) assert_int_equal(rc, LEAT_ENOMEM);
        leat__tile_encoder_close(&e);
        leat__buf_reset(&out);
        if (asked < nth) {
            assert_int_equal(rc, 0);
            free(jpeg.data);
            return;
        }
        assert_int_not_equal(rc, 0);
    }
    fail_msg("allocations without end");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_and_sizes_are_tiled),
        cmocka_unit_test(others_are_refused_with_their_reason),
        cmocka_unit_test(a_component_without_a_scan_is_grey),
        cmocka_unit_test(coefficients_out_of_range_are_refused),
        cmocka_unit_test(trust_changes_no_byte),
        cmocka_unit_test(small_tiles_need_tables),
        cmocka_unit_test(survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
