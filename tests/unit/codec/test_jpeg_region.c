/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions without libjpeg: supported kinds have libjpeg's pixels, with and without entry points; other
 * kinds are left to libjpeg; damage and wrong entry points. test_jpeg_decode.c tests that every region
 * through codec.h has libjpeg's pixels.
 */
#include "codec/make_image.h"

#include "base/clock.h"
#include "base/mem.h"
#include "codec/jpeg_entries.h"
#include "codec/jpeg_region.h"

static leat__jpeg_region *region;
static leat__jpeg_scan *scan;
static leat__decoder *decoder;

static int set_up(void **state)
{
    assert_int_equal(leat__jpeg_region_open(&region, NULL), 0);
    assert_int_equal(leat__jpeg_scan_open(&scan, NULL), 0);
    return leat__decoder_open(&decoder, NULL);
}

static int tear_down(void **state)
{
    leat__jpeg_region_close(&region);
    leat__jpeg_scan_close(&scan);
    leat__decoder_close(&decoder);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

typedef struct seen {
    const uint8_t *ref; /* NULL: pixels are not compared */
    uint32_t ref_w, channels, x, y, width, next;
} seen;

/* Rows come once and in order, and equal libjpeg's. */
static int take_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    seen *s = ctx;
    assert_int_equal(y, s->next);
    s->next += count;
    for (uint32_t i = 0; s->ref && i < count; i++)
        for (uint32_t x = 0; x < s->width; x++)
            for (uint32_t c = 0; c < s->channels; c++)
                assert_int_equal(plane[c][i * stride + x],
                                 plain_at(s->ref, s->ref_w, s->channels, s->x + x, s->y + y + i, c));
    return 0;
}

static leat__image_info probe_ok(bytes b)
{
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
    return info;
}

static bool is_ours(const jpeg_kind *k)
{
    return (k->file == JCS_YCbCr || k->file == JCS_GRAYSCALE) && !k->progressive && !k->separate_scans &&
           !k->odd_chroma && k->h * k->v <= 4;
}

static void check_kind(const jpeg_kind *kind, uint32_t w, uint32_t h, bool entries)
{
    uint32_t state = w + 3 * h, rw, rh, channels, done;
    bytes b = make_jpeg(kind, w, h, 90, w);
    leat__image_info info = probe_ok(b);
    uint8_t *ref = plain_jpeg(b, 1, &rw, &rh, &channels);
    leat__buf index;
    bool whole, complete;
    leat__buf_init(&index, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, NULL, NULL, &index, &whole, NULL), 0);
    for (uint32_t i = 0; i < 60; i++) {
        leat__decode_job job = {.info = &info, .data = b.data, .len = b.len, .scale_denom = 1};
        job.width = i == 0 ? w : 1 + dice_below(&state, w);
        job.height = i == 0 ? h : 1 + dice_below(&state, h);
        job.x = dice_below(&state, w - job.width + 1);
        job.y = dice_below(&state, h - job.height + 1);
        job.whole = i == 0;
        seen s = {ref, rw, channels, job.x, job.y, job.width, 0};
        leat__row_sink sink = {take_rows, &s};
        job.sink = &sink;
        if (entries && index.len > 0) {
            job.entries = (const uint8_t *)index.data;
            job.entries_len = index.len;
        }
        assert_int_equal(leat__jpeg_region_decode(region, &job, &done, &complete, NULL), 0);
        if (complete != is_ours(kind)) fail_msg("%s: complete is %d", kind->name, complete);
        assert_int_equal(done, complete ? job.height : 0);
        assert_int_equal(done, s.next);
    }
    leat__buf_reset(&index);
    free(ref);
    free(b.data);
}

static void ordinary_files_are_decoded(void **state)
{
    static const uint32_t sizes[][2] = {{1, 1}, {9, 14}, {100, 67}, {290, 301}, {700, 40}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int entries = 0; entries < 2; entries++)
                check_kind(&jpeg_kinds[k], sizes[i][0], sizes[i][1], entries);
}

/* The rows before the damage are delivered; libjpeg then takes over and reports the error. */
static void damage_is_libjpegs_to_judge(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 240, 320, 90, 5);
    leat__image_info info = probe_ok(b);
    leat_error err = {0};
    seen s = {0};
    leat__row_sink sink = {take_rows, &s};
    leat__decode_request rq = {.x = 30, .y = 0, .width = 100, .height = 320};
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len / 2, &rq, &sink, &err), LEAT_EDATA);
    assert_true(s.next > 50 && s.next < 320);
    assert_true(err.offset > 0);
    /* whole, except for the end marker: only a decode of everything must tell */
    s.next = 0;
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len - 2, &rq, &sink, &err), 0);
    s.next = 0;
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len - 2, NULL, &sink, &err), LEAT_EDATA);
    free(b.data);
}

static void wrong_entry_points_do_no_harm(void **state)
{
    uint32_t rw, rh, channels;
    bytes b = make_jpeg(&jpeg_kinds[2], 320, 240, 90, 6);
    leat__image_info info = probe_ok(b);
    uint8_t *ref = plain_jpeg(b, 1, &rw, &rh, &channels);
    leat__buf index;
    bool whole;
    leat__buf_init(&index, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__jpeg_entries_make(scan, b.data, b.len, NULL, NULL, &index, &whole, NULL), 0);
    assert_true(index.len > 100);
    leat__decode_request rq = {.x = 100,
                               .y = 100,
                               .width = 90,
                               .height = 80,
                               .entries = (const uint8_t *)index.data,
                               .entries_len = index.len};
    /* truncated: not read; all ones from the middle on: places behind the file's end, so that
     * libjpeg decodes what is left */
    for (int round = 0; round < 2; round++) {
        seen s = {ref, rw, channels, rq.x, rq.y, rq.width, 0};
        leat__row_sink sink = {take_rows, &s};
        rq.entries_len = index.len - (round == 0);
        if (round == 1) memset(index.data + index.len / 2, 0xff, index.len - index.len / 2);
        assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len, &rq, &sink, NULL), 0);
        assert_int_equal(s.next, rq.height);
    }
    /* any at all: no crash, all rows once */
    uint32_t dice_state = 3;
    for (int round = 0; round < 300; round++) {
        seen s = {0};
        leat__row_sink sink = {take_rows, &s};
        for (size_t i = 12; i < index.len; i++) index.data[i] = (char)dice(&dice_state);
        assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len, &rq, &sink, NULL), 0);
        assert_int_equal(s.next, rq.height);
    }
    leat__buf_reset(&index);
    free(ref);
    free(b.data);
}

static int refuse(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    return LEAT_ECANCELED;
}

static void sink_can_stop_it(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 100, 100, 90, 5);
    leat__image_info info = probe_ok(b);
    leat__row_sink sink = {refuse, NULL};
    assert_int_equal(leat__codec_decode(decoder, &info, b.data, b.len, NULL, &sink, NULL), LEAT_ECANCELED);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_files_are_decoded),
        cmocka_unit_test(damage_is_libjpegs_to_judge),
        cmocka_unit_test(wrong_entry_points_do_no_harm),
        cmocka_unit_test(sink_can_stop_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
