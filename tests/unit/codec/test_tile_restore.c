/* SPDX-License-Identifier: Apache-2.0
 *
 * Restoring files: with restarts, separate scans, bytes after the end, fill bytes, zero
 * padding.
 */
#include "codec/make_tiles.h"

#include "base/fault.h"
#include "base/num.h"

static leat__buf file;

static void restore(bytes sample)
{
    leat_error err = {0};
    leat__buf_clear(&file);
    if (leat__tile_restore(sample.data, sample.len, tables, &file, &err) != 0) fail_msg("%s", err.message);
}

static void expect_exact(bytes jpeg, const char *what)
{
    leat__tile_kept kept;
    leat__tile_facts facts;
    bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    if (kept != LEAT__TILE_KEPT_NONE) fail_msg("%s: %s", what, leat__tile_kept_text(kept));
    assert_int_equal(leat__tile_describe(b.data, b.len, &facts, NULL), 0);
    assert_true(facts.exact);
    restore(b);
    assert_int_equal(file.len, jpeg.len);
    assert_memory_equal(file.data, jpeg.data, jpeg.len);
    free(b.data);
}

/* Returns a copy with `n` bytes inserted at `at`. */
static bytes insert(bytes in, size_t at, const void *what, size_t n)
{
    bytes out = {calloc(1, in.len + n + LEAT__CODEC_PADDING), in.len + n};
    memcpy(out.data, in.data, at);
    memcpy(out.data + at, what, n);
    memcpy(out.data + at + n, in.data + at, in.len - at);
    return out;
}

static void files_come_back(void **state)
{
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        if (!can_be_tiled(&jpeg_kinds[k])) continue;
        for (int quality = 10; quality <= 100; quality += 30) {
            bytes jpeg = make_jpeg(&jpeg_kinds[k], 117, 95, quality, 6);
            expect_exact(jpeg, jpeg_kinds[k].name);
            free(jpeg.data);
        }
    }
    leat__buf_reset(&file);
}

static void odd_bytes_around_come_back(void **state)
{
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 117, 95, 80, 6);
    bytes trailing = insert(jpeg, jpeg.len, "trailing \xff\xda garbage", 18);
    expect_exact(trailing, "bytes after EOI");
    bytes filled = insert(jpeg, jpeg.len - 2, "\xff\xff\xff", 3);
    expect_exact(filled, "fill bytes before EOI");
    bytes comment = insert(jpeg, 2, "\xff\xfe\x00\x06\xff\xd9\xff\xda", 8);
    expect_exact(comment, "markers inside a comment");
    bytes early = insert(jpeg, 2, "\xff\xff\xff\xfe\x00\x03x", 7);
    expect_exact(early, "fill bytes before a segment");
    free(jpeg.data);
    free(trailing.data);
    free(filled.data);
    free(comment.data);
    free(early.data);
    leat__buf_reset(&file);
}

/* The last byte of a scan ends in one bits, some of which are padding. Clearing just those gives the file of
 * an encoder that pads with zeros. Clearing more or fewer gives a file that neither rule restores, or a
 * damaged one. */
static void zero_padding_comes_back(void **state)
{
    uint32_t done = 0;
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    for (uint32_t w = 8; w <= 64; w += 8)
        for (uint32_t cleared = 1; cleared < 8; cleared++) {
            leat__tile_kept kept;
            leat__tile_header h;
            bytes jpeg = make_jpeg(&jpeg_kinds[7], w, 8, 30, w);
            uint8_t *last = jpeg.data + jpeg.len - 3, low = (uint8_t)((1u << cleared) - 1);
            if ((*last & low) == low && *last != 0xff) {
                *last = (uint8_t)(*last & ~low);
                bytes b = tile_jpeg(jpeg, LEAT__TILE_FAST, &kept);
                if (kept == LEAT__TILE_KEPT_NONE) {
                    restore(b);
                    assert_memory_equal(file.data, jpeg.data, jpeg.len);
                    assert_int_equal(leat__tile_header_parse(&h, b.data, b.len, NULL), 0);
                    done += (h.flags & LEAT__TILE_FLAG_PAD_ZERO) != 0;
                } else {
                    assert_int_equal(kept, LEAT__TILE_KEPT_RESTORE);
                }
                free(b.data);
            }
            free(jpeg.data);
        }
    assert_true(done > 0);
    leat__buf_reset(&file);
}

/* Tiles a file with and without writing the scan to compare it: the sample or the reason must be the same,
 * and an exact sample must restore the file. Damaged files are ignored. */
static leat__tile_kept expect_same_both_ways(bytes jpeg, bool *usual)
{
    leat__tile_encode_opts opts = {.density = LEAT__TILE_SMALL, .trust = true};
    leat__tile_kept kept[2] = {LEAT__TILE_KEPT_DAMAGED, LEAT__TILE_KEPT_DAMAGED};
    leat__jpeg_coefs coefs;
    leat__buf out[2];
    *usual = false;
    for (int way = 0; way < 2; way++) {
        leat__buf_init(&out[way], LEAT__MEM_MISC, 1 << 24);
        if (leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, NULL) != 0) continue;
        *usual = *usual || coefs.usual;
        coefs.usual = coefs.usual && way == 0;
        assert_int_equal(
            leat__tile_encode(encoder, &coefs, jpeg.data, jpeg.len, &opts, &out[way], &kept[way], NULL), 0);
    }
    assert_int_equal(kept[0], kept[1]);
    assert_int_equal(out[0].len, out[1].len);
    if (kept[0] == LEAT__TILE_KEPT_NONE) {
        leat__tile_facts facts;
        bytes sample = {(uint8_t *)out[0].data, out[0].len};
        assert_memory_equal(out[0].data, out[1].data, out[0].len);
        assert_int_equal(leat__tile_describe(sample.data, sample.len, &facts, NULL), 0);
        restore(sample);
        if (facts.exact) {
            assert_int_equal(file.len, jpeg.len);
            assert_memory_equal(file.data, jpeg.data, jpeg.len);
        }
    }
    leat__buf_reset(&out[0]);
    leat__buf_reset(&out[1]);
    return kept[0];
}

/* Flips bits of the scan: most files that still decode are another sequence of codes. */
static void unwritten_scans_are_those_that_would_be_written(void **state)
{
    uint32_t seed = 5, usual = 0, other = 0;
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        if (!can_be_tiled(&jpeg_kinds[k]) || jpeg_kinds[k].progressive) continue;
        bytes jpeg = make_jpeg(&jpeg_kinds[k], 45, 37, 70, 6);
        bool is_usual;
        expect_same_both_ways(jpeg, &is_usual);
        assert_int_equal(is_usual, !jpeg_kinds[k].separate_scans);
        for (int i = 0; i < 300; i++) {
            size_t at = jpeg.len - 3 - dice_below(&seed, (uint32_t)jpeg.len / 2);
            uint8_t was = jpeg.data[at];
            jpeg.data[at] ^= (uint8_t)(1u << dice_below(&seed, 8));
            leat__tile_kept kept = expect_same_both_ways(jpeg, &is_usual);
            jpeg.data[at] = was;
            usual += is_usual;
            other += !is_usual && kept != LEAT__TILE_KEPT_DAMAGED;
        }
        free(jpeg.data);
    }
    assert_true(usual > 100);
    assert_true(other > 0); /* unused bits of both kinds, at least */
    leat__buf_reset(&file);
}

/* Builds a grey file of one block by hand. DC codes: 0 for size 0. AC codes: 00 end, 01 sixteen zeros, 10
 * size 1, and 110 `fourth`. */
static bytes one_block(uint8_t fourth, uint8_t scan)
{
    uint8_t made[] = {
        0xff, 0xd8, 0xff, 0xc0, 0,    11, 8,  0,    8,    0,    8,      1,    1,    0x11, 0,  0xff, 0xc4,
        0,    20,   0x00, 1,    0,    0,  0,  0,    0,    0,    0,      0,    0,    0,    0,  0,    0,
        0,    0,    0,    0xff, 0xc4, 0,  23, 0x10, 0,    3,    1,      0,    0,    0,    0,  0,    0,
        0,    0,    0,    0,    0,    0,  0,  0x00, 0xf0, 0x01, fourth, 0xff, 0xdb, 0,    67, 0,
    };
    const uint8_t rest[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, scan, 0xff, 0xd9};
    size_t len = sizeof made + 64 + sizeof rest;
    bytes b = {calloc(1, len + LEAT__CODEC_PADDING), len};
    assert_non_null(b.data);
    memcpy(b.data, made, sizeof made);
    memset(b.data + sizeof made, 1, 64);
    memcpy(b.data + sizeof made + 64, rest, sizeof rest);
    return b;
}

static void only_the_usual_codes_are_usual(void **state)
{
    const struct {
        uint8_t fourth, scan;
        bool usual;
        leat__tile_kept kept;
    } cases[] = {
        {0x11, 0x1f, true, LEAT__TILE_KEPT_NONE},     /* 0 00 11111 */
        {0x11, 0x00, true, LEAT__TILE_KEPT_NONE},     /* 0 00 00000 */
        {0x11, 0x07, false, LEAT__TILE_KEPT_RESTORE}, /* 0 00 00111: padded with both */
        {0x11, 0x34, true, LEAT__TILE_KEPT_NONE},     /* 0 01 10 1 00: zeros, then a value */
        {0x11, 0x27, false, LEAT__TILE_KEPT_RESTORE}, /* 0 01 00 111: zeros, then the end */
        {0x00, 0x1f, false, LEAT__TILE_KEPT_RESTORE}, /* two codes for the end: the first */
        {0x00, 0x6f, false, LEAT__TILE_KEPT_NONE},    /* 0 110 1111: the one that is written */
    };
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        bool usual;
        bytes jpeg = one_block(cases[i].fourth, cases[i].scan);
        leat__tile_kept kept = expect_same_both_ways(jpeg, &usual);
        if (usual != cases[i].usual || kept != cases[i].kept)
            fail_msg("case %zu: usual %d, %s", i, usual, leat__tile_kept_text(kept));
        free(jpeg.data);
    }
    leat__buf_reset(&file);
}

static void a_damaged_restore_part_is_an_error(void **state)
{
    leat__tile_kept kept;
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 117, 95, 80, 6);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_FAST, &kept);
    uint32_t seed = 9, errors = 0;
    leat__tile_header h;
    assert_int_equal(leat__tile_header_parse(&h, b.data, b.len, NULL), 0);
    for (int i = 0; i < 300; i++) {
        size_t at = b.len - 1 - dice_below(&seed, h.restore_bytes);
        uint8_t was = b.data[at];
        b.data[at] = (uint8_t)dice(&seed);
        leat__buf_clear(&file);
        int rc = leat__tile_restore(b.data, b.len, tables, &file, NULL);
        assert_true(rc == 0 || rc == LEAT_EDATA || rc == LEAT_ELIMIT);
        errors += rc != 0;
        b.data[at] = was;
    }
    assert_true(errors > 100);
    free(b.data);
    free(jpeg.data);
    leat__buf_reset(&file);
}

/* Each allocation fails in turn: an error, nothing leaks (the teardown counts blocks). */
static void restoring_survives_failed_allocations(void **state)
{
    leat__tile_kept kept;
    if (!leat__fault_available()) skip();
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 117, 95, 80, 6);
    bytes b = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    for (uint64_t nth = 1; nth < 100; nth++) {
        leat__buf_init(&file, LEAT__MEM_MISC, 1 << 24);
        leat__fault_arm(LEAT__FAULT_ALLOC, nth, false);
        int rc = leat__tile_restore(b.data, b.len, tables, &file, NULL);
        uint64_t asked = leat__fault_count(LEAT__FAULT_ALLOC);
        leat__fault_disarm();
        leat__buf_reset(&file);
        assert_int_equal(rc, asked < nth ? 0 : LEAT_ENOMEM);
        if (asked < nth) break;
        assert_true(nth < 99);
    }
    free(b.data);
    free(jpeg.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(odd_bytes_around_come_back),
        cmocka_unit_test(zero_padding_comes_back),
        cmocka_unit_test(unwritten_scans_are_those_that_would_be_written),
        cmocka_unit_test(only_the_usual_codes_are_usual),
        cmocka_unit_test(a_damaged_restore_part_is_an_error),
        cmocka_unit_test(restoring_survives_failed_allocations),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
