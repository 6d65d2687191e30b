/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviour common to all codecs, and every failed allocation during a decode.
 */
#include "codec/make_image.h"

#include "base/fault.h"
#include "base/mem.h"
#include "codec/codec_ops.h"

static void sniff_knows_the_formats(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        leat__codec_id id;
    } cases[] = {
        {"\xff\xd8\xff\xe0", 4, LEAT__CODEC_JPEG},
        {"\x89PNG\r\n\x1a\n....", 12, LEAT__CODEC_PNG},
        {"RIFF....WEBPVP8 ", 16, LEAT__CODEC_WEBP},
        {"GIF89a", 6, LEAT__CODEC_GIF},
        {"BM............\x28\0\0\0", 18, LEAT__CODEC_BMP},
        {"BM............\x29\0\0\0", 18, LEAT__CODEC_NONE},
        {"LRAW\1\3\1\0\0\0\0\0\0\0\0\0", 16, LEAT__CODEC_RAW},
        {"text, no image..", 16, LEAT__CODEC_NONE},
        {"\xff\xd8", 2, LEAT__CODEC_NONE},
        {"", 0, LEAT__CODEC_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(leat__codec_sniff((const uint8_t *)cases[i].bytes, cases[i].len), cases[i].id);
    assert_string_equal(leat__codec_name(LEAT__CODEC_TILE), "tiled");
    assert_string_equal(leat__codec_name((leat__codec_id)99), "unknown");
    assert_true(leat__codec_built(LEAT__CODEC_JPEG));
    assert_false(leat__codec_built(LEAT__CODEC_NONE));
}

static void suffixes_name_the_format(void **state)
{
    static const struct {
        const char *name;
        leat__codec_id id;
    } cases[] = {
        {"jpg", LEAT__CODEC_JPEG},      {"cat/1.JPeG", LEAT__CODEC_JPEG}, {".jfif", LEAT__CODEC_JPEG},
        {"a.b.tiff", LEAT__CODEC_TIFF}, {"heic", LEAT__CODEC_HEIF},       {"x.heif", LEAT__CODEC_HEIF},
        {"jp", LEAT__CODEC_NONE},       {"jpgx", LEAT__CODEC_NONE},       {"", LEAT__CODEC_NONE},
        {"a.", LEAT__CODEC_NONE},       {"x.jpg/b", LEAT__CODEC_NONE},    {"raw", LEAT__CODEC_NONE},
        {"jpg jpeg", LEAT__CODEC_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(leat__codec_of_suffix(cases[i].name), cases[i].id);
}

static void every_format_has_its_facts(void **state)
{
    for (int id = 0; id < LEAT__CODEC_COUNT; id++) {
        const leat__codec_facts *facts = leat__codec_facts_of((leat__codec_id)id);
        assert_true(facts->name[0] && facts->label[0] && facts->method[0]);
        for (int other = 0; other < id; other++)
            assert_string_not_equal(facts->name, leat__codec_name((leat__codec_id)other));
        char first[16];
        size_t n = strcspn(facts->suffixes, " ");
        memcpy(first, facts->suffixes, n);
        first[n] = 0;
        if (n > 0) assert_int_equal(leat__codec_of_suffix(first), id);
    }
    assert_true(leat__codec_facts_of(LEAT__CODEC_PNG)->lossless &&
                !leat__codec_facts_of(LEAT__CODEC_GIF)->lossless);
    assert_string_equal(leat__codec_facts_of(LEAT__CODEC_TILE)->media, "image/jpeg");
    assert_null(leat__codec_facts_of(LEAT__CODEC_HEIF)->media);
}

static void unknown_formats_are_named_unknown(void **state)
{
    leat__image_info info = {0};
    leat_error err = {0};
    leat__decoder *d = NULL;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_NONE, (const uint8_t *)"x", 1, &info, &err), LEAT_EFORMAT);
    assert_int_equal(leat__codec_decode(d, &info, NULL, 0, NULL, NULL, &err), LEAT_EFORMAT);
    leat__decoder_close(&d);
    leat__decoder_close(&d); /* twice is fine */
}

static void limits_get_defaults(void **state)
{
    leat__decode_limits l = {.max_scans = 7};
    leat__decode_limits_fill(&l);
    assert_int_equal(l.max_pixels, 178956970);
    assert_int_equal(l.max_out_bytes, 1 << 30);
    assert_int_equal(l.max_scans, 7);
    assert_int_equal(l.max_work, 4000000000);
}

/* Each allocation fails in turn: always LEAT_ENOMEM, nothing leaks, the next attempt works. */
static void every_allocation_may_fail(void **state)
{
    if (!leat__fault_available()) skip();
    bytes b = make_jpeg(&jpeg_kinds[2], 90, 60, 85, 1);
    leat__image_info info;
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
    int rc = LEAT_ENOMEM;
    for (uint64_t n = 1; rc != 0; n++) {
        leat__decoder *d = NULL;
        leat__planes out = {0};
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        rc = leat__decoder_open(&d, NULL);
        if (rc == 0) rc = leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &out, NULL);
        leat__fault_disarm();
        assert_true(rc == 0 || rc == LEAT_ENOMEM);
        if (d) {
            assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &out, NULL), 0);
        }
        leat__decoder_close(&d);
        leat__planes_reset(&out);
        assert_int_equal(leat__mem_blocks(), 0);
        assert_true(n < 100);
    }
    free(b.data);
}

static int count_part(void *ctx, uint32_t c, uint32_t count, const uint8_t *rows, size_t stride)
{
    ((uint32_t *)ctx)[c] += count;
    return 0;
}

/* Components are delivered completely, at their own size; requests outside them are refused. */
static void components_may_be_asked_for(void **state)
{
    bytes b = make_jpeg(&jpeg_kinds[2], 90, 61, 85, 1);
    bytes odd = make_jpeg(&jpeg_kinds[9], 90, 61, 85, 1);
    leat__image_info info, rgb;
    leat__decoder *d = NULL;
    leat__ycc_part part[3] = {{3, 5, 60, 50, 0}, {0, 0, 45, 31, 0}, {1, 2, 22, 14, 1}};
    const leat__decode_request request = {.parts = part};
    uint32_t rows[3] = {0};
    const leat__row_sink sink = {.part = count_part, .ctx = rows};
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL), 0);
    assert_int_equal(info.chroma_h, 2);
    assert_int_equal(info.chroma_v, 2);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_decode(d, &info, b.data, b.len, &request, &sink, NULL), 0);
    for (int c = 0; c < 3; c++) assert_int_equal(rows[c], part[c].height);
    part[2].width = 23; /* of 23 samples at this size, from the second on */
    assert_int_equal(leat__codec_decode(d, &info, b.data, b.len, &request, &sink, NULL), LEAT_EINVAL);
    part[2].width = 22;
    part[1].shrink = 4;
    assert_int_equal(leat__codec_decode(d, &info, b.data, b.len, &request, &sink, NULL), LEAT_EINVAL);
    part[1].shrink = 0;
    assert_int_equal(leat__codec_decode(d, &info, b.data, b.len / 2, &request, &sink, NULL),
                     LEAT_ENOTSUP); /* damage: the verdict is that of a decode to pixels */
    assert_int_equal(leat__codec_probe(LEAT__CODEC_JPEG, odd.data, odd.len, &rgb, NULL), 0);
    assert_int_equal(rgb.chroma_h, 0);
    assert_int_equal(leat__codec_decode(d, &rgb, odd.data, odd.len, &request, &sink, NULL), LEAT_EINVAL);
    leat__decoder_close(&d);
    free(b.data);
    free(odd.data);
    assert_int_equal(leat__mem_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(components_may_be_asked_for),       cmocka_unit_test(sniff_knows_the_formats),
        cmocka_unit_test(suffixes_name_the_format),          cmocka_unit_test(every_format_has_its_facts),
        cmocka_unit_test(unknown_formats_are_named_unknown), cmocka_unit_test(limits_get_defaults),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
