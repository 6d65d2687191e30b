/* SPDX-License-Identifier: Apache-2.0
 *
 * leat's own entropy decoding, compared with libjpeg's coefficients for every kind, size, quality, table
 * and restart interval; entry points; and that no damaged file is accepted.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "codec/jpeg_scan.h"

static leat__jpeg_scan *scan;

static int open_scan(void **state)
{
    return leat__jpeg_scan_open(&scan, NULL);
}

static int close_scan(void **state)
{
    leat__jpeg_scan_close(&scan);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

/* Writes the same coefficients to another file: with optimised tables, and restarts every few MCUs. */
static bytes recode(bytes b, bool optimise, unsigned interval)
{
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long len = 0;
    d.err = c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&d);
    jpeg_create_compress(&c);
    jpeg_mem_src(&d, b.data, b.len);
    jpeg_read_header(&d, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&d);
    jpeg_copy_critical_parameters(&d, &c);
    jpeg_mem_dest(&c, &out, &len);
    c.optimize_coding = optimise;
    c.restart_interval = interval;
    jpeg_write_coefficients(&c, arrays);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    jpeg_destroy_decompress(&d);
    bytes r = {malloc(len), len}; /* nothing behind the end: nothing is read there */
    assert_non_null(r.data);
    memcpy(r.data, out, len);
    free(out);
    return r;
}

/* All coefficients, block by block; NULL when the file is not supported. */
typedef struct blocks {
    leat__jpeg_blocks to;
    int16_t *memory;
    uint8_t *last;
} blocks;

static blocks make_blocks(const leat__jpeg_coefs *f)
{
    blocks b = {0};
    size_t total = 0, at[4];
    for (uint32_t c = 0; c < f->components; c++) {
        at[c] = total;
        total += (size_t)f->component[c].grid_x * f->component[c].grid_y;
    }
    b.memory = calloc(total, 64 * sizeof(int16_t));
    b.last = calloc(total, 1);
    for (uint32_t c = 0; c < f->components; c++) {
        b.to.block[c] = b.memory + 64 * at[c];
        b.to.last[c] = b.last + at[c];
        b.to.stride[c] = f->component[c].grid_x;
    }
    return b;
}

static void free_blocks(blocks *b)
{
    free(b->memory);
    free(b->last);
}

/* Returns the destination of row y of MCUs, from MCU x on. */
static leat__jpeg_blocks blocks_at(const blocks *b, uint32_t x, uint32_t y)
{
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(scan);
    leat__jpeg_blocks to = b->to;
    for (uint32_t c = 0; c < f->components; c++) {
        bool alone = f->components == 1;
        size_t n = x * (alone ? 1 : f->component[c].h) + y * (alone ? 1 : f->component[c].v) * to.stride[c];
        to.block[c] += 64 * n;
        to.last[c] += n;
    }
    return to;
}

static bool decode_all(bytes file, blocks *b)
{
    leat__jpeg_cursor at;
    size_t end = 0;
    *b = (blocks){0};
    if (!leat__jpeg_scan_start(scan, file.data, file.len)) return false;
    *b = make_blocks(leat__jpeg_scan_frame(scan));
    leat__jpeg_scan_begin(scan, &at);
    for (uint32_t y = 0; y < leat__jpeg_scan_mcus_y(scan); y++) {
        leat__jpeg_blocks to = blocks_at(b, 0, y);
        if (!leat__jpeg_scan_mcus(scan, &at, leat__jpeg_scan_mcus_x(scan), &to)) return false;
    }
    return leat__jpeg_scan_finish(scan, &at, &end, NULL) && end <= file.len;
}

static const uint8_t zigzag_of[64] = {0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42,
                                      3,  8,  12, 17, 25, 30, 41, 43, 9,  11, 18, 24, 31, 40, 44, 53,
                                      10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38, 46, 51, 55, 60,
                                      21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

static void compare_with_libjpeg(bytes file, const blocks *b)
{
    const leat__jpeg_coefs *f = leat__jpeg_scan_frame(scan);
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr e;
    c.err = jpeg_std_error(&e);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, file.data, file.len);
    jpeg_read_header(&c, TRUE);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&c);
    assert_int_equal(f->components, c.num_components);
    assert_int_equal(f->restart_interval, c.restart_interval);
    for (uint32_t i = 0; i < f->components; i++) {
        const leat__jpeg_component *comp = &f->component[i];
        assert_int_equal(comp->blocks_x, c.comp_info[i].width_in_blocks);
        assert_int_equal(comp->blocks_y, c.comp_info[i].height_in_blocks);
        assert_int_equal(comp->width, c.comp_info[i].downsampled_width);
        assert_int_equal(comp->height, c.comp_info[i].downsampled_height);
        for (uint32_t y = 0; y < comp->grid_y; y++) {
            JBLOCKARRAY row = c.mem->access_virt_barray((j_common_ptr)&c, arrays[i], y, 1, FALSE);
            const int16_t *got = b->to.block[i] + 64 * (size_t)y * comp->grid_x;
            assert_memory_equal(row[0], got, comp->grid_x * sizeof(JBLOCK));
            for (uint32_t x = 0; x < comp->grid_x; x++)
                for (uint32_t k = 1; k < 64; k++)
                    if (got[64 * x + k] != 0)
                        assert_true(zigzag_of[k] <= b->to.last[i][(size_t)y * comp->grid_x + x]);
        }
        for (int q = 0; q < 64; q++)
            assert_int_equal(comp->quant[q], c.comp_info[i].quant_table->quantval[q]);
    }
    assert_int_equal(e.num_warnings, 0);
    jpeg_destroy_decompress(&c);
}

static bool ordinary(const jpeg_kind *kind)
{
    return !kind->progressive && !kind->separate_scans;
}

static void check_file(bytes file, bool mine)
{
    blocks b;
    assert_int_equal(decode_all(file, &b), mine);
    if (mine) compare_with_libjpeg(file, &b);
    assert_int_equal(leat__jpeg_scan_whole(scan, file.data, file.len, NULL), mine);
    free_blocks(&b);
}

static void coefficients_are_libjpegs(void **state)
{
    static const int qualities[] = {1, 30, 75, 95, 100};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t q = 0; q < 5; q++) {
            bytes b = make_jpeg(&jpeg_kinds[k], 75, 43, qualities[q], 4);
            check_file(b, ordinary(&jpeg_kinds[k]));
            for (unsigned interval = 0; interval < 10; interval += 3) {
                bytes r = recode(b, true, interval);
                check_file(r, true);
                free(r.data);
            }
            free(b.data);
        }
}

static void all_small_sizes(void **state)
{
    for (uint32_t size = 1; size <= 70; size++)
        for (size_t k = 0; k < JPEG_KINDS; k += 1 + size % 3) {
            if (!ordinary(&jpeg_kinds[k])) continue;
            bytes b = make_jpeg(&jpeg_kinds[k], size, 71 - size, 60 + (int)(size % 40), size);
            bytes r = recode(b, size % 2 == 0, size % 5);
            check_file(b, true);
            check_file(r, true);
            free(b.data);
            free(r.data);
        }
}

/* Decodes from every MCU on, at once and MCU by MCU. */
static void any_mcu_is_an_entry_point(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        if (!ordinary(&jpeg_kinds[k])) continue;
        bytes file = make_jpeg(&jpeg_kinds[k], 75, 43, 90, 4);
        bytes with_restarts = recode(file, true, 3);
        blocks want, got;
        assert_true(decode_all(with_restarts, &want));
        uint32_t across = leat__jpeg_scan_mcus_x(scan), down = leat__jpeg_scan_mcus_y(scan);
        got = make_blocks(leat__jpeg_scan_frame(scan));
        leat__jpeg_cursor at, skipped;
        leat__jpeg_scan_begin(scan, &at);
        for (uint32_t i = 0; i < across * down; i++) {
            leat__jpeg_cursor entry = at, rest = at;
            leat__jpeg_blocks to = blocks_at(&got, i % across, i / across);
            assert_true(leat__jpeg_scan_mcus(scan, &entry, 1, &to));
            assert_true(leat__jpeg_scan_skip(scan, &rest, across * down - i));
            assert_false(leat__jpeg_scan_skip(scan, &rest, 1)); /* no more are left */
            leat__jpeg_scan_begin(scan, &skipped);
            assert_true(leat__jpeg_scan_skip(scan, &skipped, i + 1));
            assert_memory_equal(&skipped, &entry, sizeof entry);
            at = entry;
        }
        const leat__jpeg_coefs *f = leat__jpeg_scan_frame(scan);
        for (uint32_t c = 0; c < f->components; c++) {
            size_t n = (size_t)f->component[c].grid_x * f->component[c].grid_y;
            assert_memory_equal(want.to.block[c], got.to.block[c], 64 * n * sizeof(int16_t));
            assert_memory_equal(want.to.last[c], got.to.last[c], n);
        }
        free_blocks(&want);
        free_blocks(&got);
        free(file.data);
        free(with_restarts.data);
    }
}

static void cut_files_are_not_taken(void **state)
{
    bytes file = make_jpeg(&jpeg_kinds[2], 75, 43, 85, 4);
    for (size_t len = 0; len < file.len; len++) {
        bytes cut = {malloc(len + 1), len};
        memcpy(cut.data, file.data, len);
        check_file(cut, false);
        free(cut.data);
    }
    free(file.data);
}

/* Refuses bytes before the end marker, a wrong restart marker, and a scan that is too long. */
static void odd_ends_are_not_taken(void **state)
{
    bytes file = make_jpeg(&jpeg_kinds[15], 75, 43, 85, 4);
    bytes longer = {malloc(file.len + 1), file.len + 1};
    memcpy(longer.data, file.data, file.len - 2);
    for (int stray = 0; stray < 256; stray += 85) {
        longer.data[file.len - 2] = (uint8_t)stray;
        longer.data[file.len - 1] = 0xff;
        longer.data[file.len] = 0xd9;
        check_file(longer, false);
    }
    free(longer.data);
    size_t wrong = 0;
    for (size_t i = 0; i + 1 < file.len; i++) {
        if (file.data[i] != 0xff || file.data[i + 1] < 0xd0 || file.data[i + 1] > 0xd7) continue;
        file.data[i + 1] ^= 1;
        check_file(file, false);
        file.data[i + 1] ^= 1;
        wrong++;
    }
    assert_true(wrong >= 2);
    check_file(file, true);
    free(file.data);
}

static void limits_and_samplings_are_for_others(void **state)
{
    jpeg_kind kind = jpeg_kinds[2];
    leat__decode_limits small = {.max_pixels = 1000}, few = {.max_out_bytes = 75 * 43 * 3 - 1};
    bytes file = make_jpeg(&kind, 75, 43, 85, 4);
    assert_true(leat__jpeg_scan_whole(scan, file.data, file.len, NULL));
    assert_false(leat__jpeg_scan_whole(scan, file.data, file.len, &small));
    assert_false(leat__jpeg_scan_whole(scan, file.data, file.len, &few));
    few.max_out_bytes++;
    assert_true(leat__jpeg_scan_whole(scan, file.data, file.len, &few));
    free(file.data);
    /* 3:2 cannot be upsampled by libjpeg, but read */
    uint8_t *sampling;
    kind = jpeg_kinds[4];
    file = make_jpeg(&kind, 16, 16, 85, 4);
    for (sampling = file.data; sampling[0] != 0xff || sampling[1] != 0xc0; sampling++) continue;
    sampling[4 + 6 + 1] = 0x31; /* and Cb, Cr: 2x1, 1x1: six blocks, as 4x1 and two have */
    sampling[4 + 6 + 4] = 0x21;
    assert_true(leat__jpeg_scan_start(scan, file.data, file.len));
    assert_false(leat__jpeg_scan_whole(scan, file.data, file.len, NULL));
    free(file.data);
}

/* A cursor is not trusted and may have any content. */
static void wild_cursors_do_no_harm(void **state)
{
    bytes file = make_jpeg(&jpeg_kinds[15], 75, 43, 85, 4), exact = recode(file, true, 2);
    uint32_t seed = 7, taken = 0;
    assert_true(leat__jpeg_scan_start(scan, exact.data, exact.len));
    blocks b = make_blocks(leat__jpeg_scan_frame(scan));
    for (int i = 0; i < 20000; i++) {
        leat__jpeg_cursor at = {.byte = dice_below(&seed, (uint32_t)exact.len + 3),
                                .bit = dice_below(&seed, 9),
                                .mcu = dice_below(&seed, 20)};
        leat__jpeg_blocks to = blocks_at(&b, 0, 0);
        if (!leat__jpeg_scan_mcus(scan, &at, dice_below(&seed, 6), &to)) continue;
        assert_true(at.bit < 8 && at.byte <= exact.len);
        taken++;
    }
    assert_true(taken > 100);
    free_blocks(&b);
    free(file.data);
    free(exact.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_libjpegs), cmocka_unit_test(all_small_sizes),
        cmocka_unit_test(any_mcu_is_an_entry_point), cmocka_unit_test(cut_files_are_not_taken),
        cmocka_unit_test(odd_ends_are_not_taken),    cmocka_unit_test(limits_and_samplings_are_for_others),
        cmocka_unit_test(wild_cursors_do_no_harm),
    };
    return cmocka_run_group_tests(tests, open_scan, close_scan);
}
