/* SPDX-License-Identifier: Apache-2.0
 *
 * PNG: files written by libspng from known pixels, read back whole and by region.
 */
#include "codec/foreign.h"

#include <spng.h>
#include <zlib.h>

#include "base/mem.h"
#include "codec/wide.h"

typedef struct png_kind {
    const char *name;
    uint8_t colour, bits, channels_in, channels_out, trns;
} png_kind;

static const png_kind kinds[] = {
    {"png grey", SPNG_COLOR_TYPE_GRAYSCALE, 8, 1, 1, 0},
    {"png rgb", SPNG_COLOR_TYPE_TRUECOLOR, 8, 3, 3, 0},
    {"png rgb", SPNG_COLOR_TYPE_TRUECOLOR, 8, 3, 3, 1},
    {"png rgba", SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, 4, 4, 0},
    {"png grey alpha", SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, 2, 4, 0},
    {"png palette", SPNG_COLOR_TYPE_INDEXED, 8, 1, 3, 0},
    {"png palette", SPNG_COLOR_TYPE_INDEXED, 8, 1, 4, 1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static uint8_t palette_at(uint32_t index, uint32_t c)
{
    return (uint8_t)(index * (3 + 2 * c) + 7 * c);
}

static bytes make_png(const png_kind *k, uint32_t w, uint32_t h, const uint8_t *pixels, bool interlaced,
                      uint32_t orientation)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {w, h, k->bits, k->colour, 0, 0, interlaced};
    struct spng_plte plte = {.n_entries = 256};
    struct spng_trns trns = {.n_type3_entries = 100};
    for (uint32_t i = 0; i < 256; i++) {
        plte.entries[i].red = palette_at(i, 0);
        plte.entries[i].green = palette_at(i, 1);
        plte.entries[i].blue = palette_at(i, 2);
        trns.type3_alpha[i] = (uint8_t)(i * 2);
    }
    int len = 0, rc;
    size_t n = 0;
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    assert_int_equal(spng_set_ihdr(ctx, &ihdr), 0);
    if (k->colour == SPNG_COLOR_TYPE_INDEXED) assert_int_equal(spng_set_plte(ctx, &plte), 0);
    if (k->trns) assert_int_equal(spng_set_trns(ctx, &trns), 0);
    uint8_t tiff[26] = "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\0\0\0\0\0\0\0";
    tiff[18] = (uint8_t)orientation;
    struct spng_exif exif = {26, (char *)tiff};
    if (orientation > 1) assert_int_equal(spng_set_exif(ctx, &exif), 0);
    size_t bytes_in = (size_t)w * h * k->channels_in * (k->bits / 8u);
    rc = spng_encode_image(ctx, pixels, bytes_in, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    assert_int_equal(rc, 0);
    uint8_t *out = spng_get_png_buffer(ctx, &n, &len);
    assert_non_null(out);
    bytes b = {malloc(n + LEAT__CODEC_PADDING), n};
    memcpy(b.data, out, n);
    memset(b.data + n, 0, LEAT__CODEC_PADDING);
    free(out);
    spng_ctx_free(ctx);
    return b;
}

/* Returns the expected channel c of a pixel. */
static uint8_t want(const png_kind *k, const uint8_t *p, uint32_t c)
{
    if (k->colour == SPNG_COLOR_TYPE_INDEXED)
        return c < 3 ? palette_at(p[0], c) : p[0] < 100 ? (uint8_t)(p[0] * 2) : 255;
    if (k->colour == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA) return c < 3 ? p[0] : p[1];
    return p[c];
}

static void check(const png_kind *k, bytes b, uint32_t w, const uint8_t *pixels, leat__decoder *d,
                  leat__decode_request rq)
{
    leat__image_info info;
    leat__planes out = {0};
    leat_error err = {0};
    assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, &err), 0);
    assert_string_equal(info.format, k->name);
    assert_int_equal(info.channels, k->channels_out);
    int rc = leat__codec_decode_planes(d, &info, b.data, b.len, &rq, &out, &err);
    if (rc != 0) fail_msg("%s: %s", k->name, err.message);
    for (uint32_t y = 0; y < out.height; y++)
        for (uint32_t x = 0; x < out.width; x++)
            for (uint32_t c = 0; c < out.channels; c++)
                assert_int_equal(out.plane[c][y * out.stride + x],
                                 want(k, pixels + ((size_t)(rq.y + y) * w + rq.x + x) * k->channels_in, c));
    leat__planes_reset(&out);
}

static void pixels_come_back(void **state)
{
    leat__decoder *d = NULL;
    uint32_t s = 3, w = 67, h = 45;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (size_t n = 0; n < 2 * KINDS; n++) {
        size_t i = n / 2;
        uint8_t *pixels = make_pixels(w, h, kinds[i].channels_in, 2);
        bytes b = make_png(&kinds[i], w, h, pixels, n % 2, 1);
        check(&kinds[i], b, w, pixels, d, (leat__decode_request){0});
        for (int r = 0; r < 20; r++) {
            leat__decode_request rq = {.width = 1 + dice_below(&s, w), .height = 1 + dice_below(&s, h)};
            rq.x = dice_below(&s, w - rq.width + 1);
            rq.y = dice_below(&s, h - rq.height + 1);
            check(&kinds[i], b, w, pixels, d, rq);
        }
        free(b.data);
        free(pixels);
    }
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

static void orientation_is_read(void **state)
{
    uint8_t *pixels = make_pixels(9, 9, 3, 2);
    for (uint32_t o = 1; o <= 8; o++) {
        bytes b = make_png(&kinds[1], 9, 9, pixels, false, o);
        leat__image_info info;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, NULL), 0);
        assert_int_equal(info.orientation, o);
        free(b.data);
    }
    free(pixels);
}

/* Samples are big-endian in the file, and in native byte order in memory. */
static void sixteen_bits_are_kept(void **state)
{
    static const char *const names[] = {"png/deep_grey.png", "png/deep_grey_alpha.png", "png/deep_rgb.png",
                                        "png/deep_rgba.png"};
    leat__decoder *d = NULL;
    leat__wide out = {0};
    leat__planes planes = {0};
    leat_error err = {0};
    uint32_t s = 4;
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    for (uint32_t n = 1; n <= 4; n++) {
        bytes b = foreign_file(names[n - 1]);
        leat__image_info info;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, NULL), 0);
        assert_int_equal(info.type, LEAT__SAMPLE_U16);
        assert_int_equal(info.channels, n);
        for (int i = 0; i < 10; i++) {
            leat__decode_request rq = {.width = 1 + dice_below(&s, FOREIGN_W),
                                       .height = 1 + dice_below(&s, FOREIGN_H)};
            rq.x = dice_below(&s, FOREIGN_W - rq.width + 1);
            rq.y = dice_below(&s, FOREIGN_H - rq.height + 1);
            assert_int_equal(leat__codec_decode_wide(d, &info, b.data, b.len, &rq, &out, &err), 0);
            for (uint32_t y = 0; y < rq.height; y++)
                for (uint32_t x = 0; x < rq.width * n; x++)
                    assert_int_equal(((uint16_t *)leat__wide_row(&out, y))[x],
                                     formula16(rq.x + x / n, rq.y + y, x % n));
        }
        int rc = leat__codec_decode_planes(d, &info, b.data, b.len, NULL, &planes, &err);
        assert_int_equal(rc, LEAT_EFORMAT);
        assert_non_null(strstr(err.message, "uint16 samples"));
        for (size_t len = 60; len < b.len; len += b.len / 9) /* cut */
            assert_int_equal(leat__codec_decode_wide(d, &info, b.data, len, NULL, &out, &err), LEAT_EDATA);
        free(b.data);
    }
    leat__wide_reset(&out);
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
}

/* Images with a side over the limit are refused at once, on every machine. */
static void sides_are_limited(void **state)
{
    uint8_t pixel[3] = {1, 2, 3};
    bytes b = make_png(&kinds[1], 1, 1, pixel, false, 1);
    leat_error err = {0};
    leat__image_info info;
    for (int at = 16; at <= 20; at += 4) {
        memcpy(b.data + 16, "\0\0\0\1\0\0\0\1", 8);
        memcpy(b.data + at, "\x00\x0f\x42\x40", 4); /* 1,000,000 */
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, &err), 0);
        memcpy(b.data + at, "\x00\x0f\x42\x41", 4);
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, &err), LEAT_ELIMIT);
        assert_non_null(strstr(err.message, "1,000,000"));
    }
    free(b.data);
}

/* Checksums cover every byte of a PNG: every truncation and every flipped bit is detected. */
static void damage_is_known(void **state)
{
    uint8_t *pixels = make_pixels(40, 30, 3, 2);
    bytes b = make_png(&kinds[1], 40, 30, pixels, false, 1);
    leat__image_info info, again;
    leat__decoder *d = NULL;
    leat__planes out = {0};
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, NULL), 0);
    for (int i = 0; i < 50; i++) {
        leat_error err = {0};
        size_t len = b.len * (size_t)i / 50;
        assert_int_equal(leat__codec_decode_planes(d, &info, b.data, len, NULL, &out, &err), LEAT_EDATA);
        assert_true(err.offset >= 0 && (size_t)err.offset <= len);
    }
    assert_int_equal(leat__codec_decode_planes(d, &info, b.data, b.len - 12, NULL, &out, NULL), LEAT_EDATA);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] ^= 1u << (i & 7);
        int rc = leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &again, NULL);
        if (rc == 0) rc = leat__codec_decode_planes(d, &again, b.data, b.len, NULL, &out, NULL);
        assert_true(rc == LEAT_EDATA || rc == LEAT_EFORMAT || rc == LEAT_ELIMIT);
        b.data[i] ^= 1u << (i & 7);
    }
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    assert_int_equal(leat__mem_blocks(), 0);
    free(b.data);
    free(pixels);
}

/* Inserts a chunk after the header; `data` is its type and content. */
static bytes with_chunk(bytes b, const uint8_t *data, size_t n)
{
    const size_t at = 33; /* end of the header chunk */
    const uint32_t numbers[2] = {(uint32_t)n - 4, (uint32_t)crc32(0, data, (uInt)n)};
    bytes out = {malloc(b.len + n + 8 + LEAT__CODEC_PADDING), b.len + n + 8};
    memcpy(out.data, b.data, at);
    for (int i = 0; i < 4; i++) {
        out.data[at + i] = (uint8_t)(numbers[0] >> (24 - 8 * i));
        out.data[at + 4 + n + i] = (uint8_t)(numbers[1] >> (24 - 8 * i));
    }
    memcpy(out.data + at + 4, data, n);
    memcpy(out.data + at + 8 + n, b.data + at, b.len - at);
    memset(out.data + out.len, 0, LEAT__CODEC_PADDING);
    return out;
}

/* A colour profile of 30 MB in a chunk of 30 KB is not decompressed; its checksum is verified. */
static void profiles_take_no_memory(void **state)
{
    uint8_t *pixels = make_pixels(40, 30, 3, 2), *zeros = calloc(30, 1000000), *chunk = malloc(60000);
    uLongf n = 60000 - 7;
    bytes b = make_png(&kinds[1], 40, 30, pixels, false, 1);
    leat__image_info info;
    leat__decoder *d = NULL;
    leat__planes out = {0};
    memcpy(chunk, "iCCPa\0\0", 7);
    assert_int_equal(compress(chunk + 7, &n, zeros, 30000000), Z_OK);
    bytes large = with_chunk(b, chunk, n + 7);
    assert_int_equal(leat__decoder_open(&d, NULL), 0);
    assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, large.data, large.len, &info, NULL), 0);
    leat__mem_peak_reset();
    assert_int_equal(leat__codec_decode_planes(d, &info, large.data, large.len, NULL, &out, NULL), 0);
    assert_true(leat__mem_peak(LEAT__MEM_CODEC) < 1000000);
    large.data[100] ^= 1;
    assert_int_equal(leat__codec_decode_planes(d, &info, large.data, large.len, NULL, &out, NULL),
                     LEAT_EDATA);
    leat__planes_reset(&out);
    leat__decoder_close(&d);
    free(b.data);
    free(large.data);
    free(chunk);
    free(zeros);
    free(pixels);
}

/* Only an interlaced image is held as a whole. */
static void memory_is_that_of_interlaced_images(void **state)
{
    uint8_t *pixels = make_pixels(40, 30, 3, 2);
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        bytes b = make_png(&kinds[1], 40, 30, pixels, interlaced, 1);
        leat__image_info info;
        assert_int_equal(leat__codec_probe(LEAT__CODEC_PNG, b.data, b.len, &info, NULL), 0);
        assert_int_equal(info.memory, interlaced * 40 * 30 * 3);
        free(b.data);
    }
    free(pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_come_back),
        cmocka_unit_test(orientation_is_read),
        cmocka_unit_test(sixteen_bits_are_kept),
        cmocka_unit_test(sides_are_limited),
        cmocka_unit_test(damage_is_known),
        cmocka_unit_test(profiles_take_no_memory),
        cmocka_unit_test(memory_is_that_of_interlaced_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
