/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points: each equals the cursor of a decode from the start. Files that leat does not decode itself
 * get none, and other data is never accepted as entry points.
 */
#include "codec/make_image.h"

#include "base/mem.h"
#include "base/num.h"
#include "codec/jpeg_entries.h"

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

static bool make(bytes b, leat__buf *out)
{
    bool whole;
    leat__buf_init(out, LEAT__MEM_MISC, 1 << 24);
    assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, NULL, NULL, out, &whole, NULL), 0);
    if (!whole) assert_int_equal(out->len, 0);
    return whole;
}

/* Copies into a block of the exact size, so that sanitizers check the last byte. */
static uint8_t *exact_copy(const leat__buf *b)
{
    uint8_t *p = malloc(b->len ? b->len : 1);
    assert_non_null(p);
    memcpy(p, b->data, b->len);
    return p;
}

static void each_is_where_a_walk_comes(void **state)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        const jpeg_kind *kind = &jpeg_kinds[k];
        bytes b = make_jpeg(kind, 333, 217, 92, 7);
        leat__buf out;
        if (make(b, &out)) {
            uint8_t *data = exact_copy(&out);
            leat__jpeg_entries e;
            assert_true(leat__jpeg_entries_view(&e, data, out.len, scan));
            assert_true(out.len < b.len / 100);
            uint32_t mcus = leat__jpeg_scan_mcus_x(scan) * leat__jpeg_scan_mcus_y(scan);
            leat__jpeg_cursor walked, found;
            leat__jpeg_scan_begin(scan, &walked);
            for (uint32_t mcu = 0; mcu < mcus; mcu++) {
                leat__jpeg_entries_find(&e, mcu, &found);
                assert_int_equal(found.mcu, mcu - mcu % e.step);
                if (found.mcu == mcu) {
                    assert_int_equal(found.byte, walked.byte);
                    assert_int_equal(found.bit, walked.bit);
                    assert_memory_equal(found.dc, walked.dc, e.components * sizeof *found.dc);
                }
                assert_true(leat__jpeg_scan_skip(scan, &walked, 1));
            }
            free(data);
        } else {
            bool ours = (kind->file == JCS_YCbCr || kind->file == JCS_GRAYSCALE) && !kind->progressive &&
                        !kind->separate_scans && !kind->odd_chroma && kind->h * kind->v <= 4;
            if (ours) fail_msg("%s has no entry points", kind->name);
        }
        leat__buf_reset(&out);
        free(b.data);
    }
}

static void what_is_short_cut_or_too_large_has_none(void **state)
{
    leat__buf out;
    bytes b = make_jpeg(&jpeg_kinds[2], 16, 16, 50, 1);
    assert_true(make(b, &out)); /* one MCU: whole, and nothing to gain */
    assert_int_equal(out.len, 0);
    leat__buf_reset(&out);
    free(b.data);

    b = make_jpeg(&jpeg_kinds[2], 200, 200, 90, 1);
    bytes cut = {b.data, b.len - 2};
    assert_false(make(cut, &out));
    leat__buf_reset(&out);
    cut.len = b.len / 2;
    assert_false(make(cut, &out));
    leat__buf_reset(&out);

    const leat__decode_limits small = {.max_pixels = 100 * 100};
    bool whole = true;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, &small, NULL, &out, &whole, NULL), 0);
    assert_false(whole);
    leat__buf_reset(&out);
    free(b.data);
}

/* `given`: rows of all MCUs so far, compared with those of `want`. */
typedef struct taker {
    leat__jpeg_coef_reader *reader;
    leat__jpeg_coefs coefs, want;
    uint64_t most;
    uint32_t given;
} taker;

static bool begin_taking(void *ctx, const leat__jpeg_scan *of)
{
    taker *t = ctx;
    t->given = 0;
    return leat__jpeg_coef_begin(t->reader, of, t->most, &t->coefs);
}

static void compare_row(taker *t)
{
    for (uint32_t c = 0; c < t->want.components; c++) {
        const leat__jpeg_component *a = &t->want.component[c], *g = &t->coefs.component[c];
        const size_t row = 64 * (size_t)g->grid_x * g->grid_y;
        assert_int_equal(a->grid_x, g->grid_x);
        assert_int_equal(g->grid_y, t->want.components == 1 ? 1 : a->v);
        assert_memory_equal(a->quant, g->quant, sizeof a->quant);
        assert_memory_equal(a->coefs + t->given * row, g->coefs, row * sizeof *a->coefs);
    }
    t->given++;
}

static bool take_some(void *ctx, const leat__jpeg_scan *of, leat__jpeg_cursor *at, uint32_t count)
{
    taker *t = ctx;
    const uint32_t wide = leat__jpeg_scan_mcus_x(of);
    for (uint32_t n; count > 0; count -= n) {
        n = LEAT_MIN(count, wide - at->mcu % wide);
        if (!leat__jpeg_coef_put(t->reader, of, &t->coefs, at, n)) return false;
        if (at->mcu % wide == 0) compare_row(t);
    }
    return true;
}

/* A taker gets the same coefficients as leat__jpeg_coef_read, row by row; entry points do not change. */
static void coefficients_are_taken_on_the_way(void **state)
{
    taker t = {.most = UINT64_MAX};
    leat__jpeg_coef_reader *reader = NULL;
    assert_int_equal(leat__jpeg_coef_reader_open(&t.reader, NULL), 0);
    assert_int_equal(leat__jpeg_coef_reader_open(&reader, NULL), 0);
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        bytes b = make_jpeg(&jpeg_kinds[k], 333, 217, 92, 7);
        const leat__jpeg_taker taking = {.ctx = &t, .begin = begin_taking, .mcus = take_some};
        leat__buf out, plain;
        bool whole = false;
        const bool ours = make(b, &plain);
        leat__buf_init(&out, LEAT__MEM_MISC, 1 << 24);
        t.given = 0;
        if (ours) assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &t.want, NULL), 0);
        assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, NULL, &taking, &out, &whole, NULL), 0);
        assert_true(whole == ours && out.len == plain.len);
        assert_true(!ours || t.given == leat__jpeg_scan_mcus_y(scan));
        if (out.len > 0) assert_memory_equal(out.data, plain.data, out.len);
        t.most = 1000; /* too large: not taken, and the same entry points */
        assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, NULL, &taking, &out, &whole, NULL), 0);
        assert_true(whole == ours && t.given == 0 && out.len == 2 * plain.len);
        t.most = UINT64_MAX;
        leat__buf_reset(&out);
        leat__buf_reset(&plain);
        free(b.data);
    }
    leat__jpeg_coef_reader_close(&reader);
    leat__jpeg_coef_reader_close(&t.reader);
}

static void nothing_else_is_taken_for_them(void **state)
{
    uint32_t dice_state = 11;
    bytes b = make_jpeg(&jpeg_kinds[2], 300, 200, 90, 3);
    leat__buf out;
    leat__jpeg_entries e;
    leat__jpeg_cursor at;
    assert_true(make(b, &out));
    uint8_t *data = exact_copy(&out);
    for (size_t len = 0; len < out.len; len++) assert_false(leat__jpeg_entries_view(&e, data, len, scan));
    for (int i = 0; i < 3; i++) { /* kind, components, bits of a position */
        data[i] ^= 0x40;
        assert_false(leat__jpeg_entries_view(&e, data, out.len, scan));
        data[i] ^= 0x40;
    }
    memset(data + 8, 0, 4); /* no step */
    assert_false(leat__jpeg_entries_view(&e, data, out.len, scan));
    memcpy(data, out.data, out.len);
    for (int i = 0; i < 20000; i++) { /* damaged tables are refused or searched without a fault */
        data[dice_below(&dice_state, i % 2 ? 12 : (uint32_t)out.len)] = (uint8_t)dice(&dice_state);
        if (leat__jpeg_entries_view(&e, data, out.len, scan))
            leat__jpeg_entries_find(&e, dice_below(&dice_state, 19 * 13), &at);
        if (i % 50 == 0) memcpy(data, out.data, out.len);
    }
    /* those of another file */
    bytes other = make_jpeg(&jpeg_kinds[0], 300, 200, 90, 3);
    assert_true(leat__jpeg_scan_start(scan, other.data, other.len));
    assert_false(leat__jpeg_entries_view(&e, (const uint8_t *)out.data, out.len, scan));
    free(other.data);
    free(data);
    leat__buf_reset(&out);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_where_a_walk_comes),
        cmocka_unit_test(what_is_short_cut_or_too_large_has_none),
        cmocka_unit_test(coefficients_are_taken_on_the_way),
        cmocka_unit_test(nothing_else_is_taken_for_them),
    };
    return cmocka_run_group_tests(tests, open_scan, close_scan);
}
