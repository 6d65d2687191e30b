/* SPDX-License-Identifier: Apache-2.0
 *
 * Earlier work of a decoder, a coefficient reader or a tile encoder must not matter: for random sequences
 * of valid and damaged images, each result equals that of a fresh object.
 */
#include "codec/make_tiles.h"

#include "codec/foreign.h"

#ifdef LEAT_HAVE_PNG
#include <spng.h>
#endif
#ifdef LEAT_HAVE_WEBP
#include <webp/encode.h>
#endif

#include "base/hash.h"
#include "leat_test.h"

enum { IMAGES_MAX = 256, REQUESTS = 3, SOF0 = 0xc0, DHT = 0xc4, SOS = 0xda, DQT = 0xdb };

static struct {
    leat__codec_id codec;
    bytes file;
} images[IMAGES_MAX];
static uint32_t count;

static bytes padded(const void *data, size_t len)
{
    bytes b = {calloc(1, len + LEAT__CODEC_PADDING), len};
    assert_non_null(b.data);
    memcpy(b.data, data, len);
    return b;
}

static void add(leat__codec_id codec, bytes file)
{
    assert_true(count < IMAGES_MAX);
    images[count].codec = codec;
    images[count++].file = file;
}

/* Returns the file without its segments of one kind, up to the first scan. */
static bytes without(bytes jpeg, uint8_t marker)
{
    bytes b = {calloc(1, jpeg.len + LEAT__CODEC_PADDING), 2};
    assert_non_null(b.data);
    memcpy(b.data, jpeg.data, 2);
    for (size_t at = 2;;) {
        const uint8_t *p = jpeg.data + at;
        size_t size = 2 + ((size_t)p[2] << 8 | p[3]);
        if (p[1] == SOS) {
            memcpy(b.data + b.len, p, jpeg.len - at);
            b.len += jpeg.len - at;
            return b;
        }
        if (p[1] != marker) {
            memcpy(b.data + b.len, p, size);
            b.len += size;
        }
        at += size;
    }
}

/* Adds a file, and damaged versions of it. */
static void add_with_damage(leat__codec_id codec, bytes file, uint32_t *s)
{
    add(codec, file);
    add(codec, padded(file.data, file.len - 1 - dice_below(s, (uint32_t)file.len / 2)));
    bytes hit = padded(file.data, file.len);
    for (int i = 0; i < 3; i++)
        hit.data[file.len / 3 + dice_below(s, (uint32_t)(file.len / 2))] ^= 1u << dice_below(s, 8);
    add(codec, hit);
}

static void add_jpegs(uint32_t *s)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        uint32_t w = 20 + dice_below(s, 90), h = 20 + dice_below(s, 90);
        bytes b = make_jpeg(&jpeg_kinds[k], w, h, 40 + (int)dice_below(s, 60), (uint32_t)k);
        add_with_damage(LEAT__CODEC_JPEG, b, s);
        add(LEAT__CODEC_JPEG, without(b, DHT));
        add(LEAT__CODEC_JPEG, without(b, DQT));
        if (!can_be_tiled(&jpeg_kinds[k])) continue;
        leat__tile_kept kept;
        bytes tile = tile_jpeg(b, k % 2 ? LEAT__TILE_FAST : LEAT__TILE_SMALL, &kept);
        assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
        add_with_damage(LEAT__CODEC_TILE, tile, s);
    }
}

static void add_pixels(leat__codec_id codec, uint32_t channels, uint32_t *s)
{
    leat__planes image = {0};
    leat__buf out;
    uint32_t w = 9 + dice_below(s, 60), h = 9 + dice_below(s, 60);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 20);
    assert_ok(leat__planes_resize(&image, w, h, channels, NULL));
    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) image.plane[c][y * image.stride + x] = (uint8_t)(dice(s) & 63);
    assert_ok(leat__codec_encode(codec, &image, NULL, &out, NULL));
    add_with_damage(codec, padded(out.data, out.len), s);
    leat__buf_reset(&out);
    leat__planes_reset(&image);
}

#ifdef LEAT_HAVE_PNG
static void add_png(uint8_t colour, uint32_t channels, bool interlaced, uint32_t *s)
{
    uint32_t w = 9 + dice_below(s, 60), h = 9 + dice_below(s, 60);
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr ihdr = {w, h, 8, colour, 0, 0, interlaced};
    struct spng_plte plte = {.n_entries = 256};
    struct spng_trns trns = {.n_type3_entries = 90};
    uint8_t *pixels = make_pixels(w, h, channels, w);
    size_t n = 0;
    int rc = 0;
    for (uint32_t i = 0; i < 256; i++) {
        plte.entries[i].red = (uint8_t)dice(s);
        trns.type3_alpha[i] = (uint8_t)dice(s);
    }
    spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    assert_int_equal(spng_set_ihdr(ctx, &ihdr), 0);
    if (colour == SPNG_COLOR_TYPE_INDEXED) {
        assert_int_equal(spng_set_plte(ctx, &plte), 0);
        if (interlaced) assert_int_equal(spng_set_trns(ctx, &trns), 0);
    }
    assert_int_equal(
        spng_encode_image(ctx, pixels, (size_t)w * h * channels, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    uint8_t *out = spng_get_png_buffer(ctx, &n, &rc);
    add_with_damage(LEAT__CODEC_PNG, padded(out, n), s);
    free(out);
    free(pixels);
    spng_ctx_free(ctx);
}
#endif

#ifdef LEAT_HAVE_WEBP
static void add_webp(bool alpha, bool lossless, uint32_t *s)
{
    uint32_t w = 9 + dice_below(s, 60), h = 9 + dice_below(s, 60), channels = alpha ? 4 : 3;
    uint8_t *pixels = make_pixels(w, h, channels, w), *out = NULL;
    int wide = (int)w, high = (int)h, stride = (int)(w * channels);
    size_t n;
    if (alpha)
        n = lossless ? WebPEncodeLosslessRGBA(pixels, wide, high, stride, &out)
                     : WebPEncodeRGBA(pixels, wide, high, stride, 70, &out);
    else
        n = lossless ? WebPEncodeLosslessRGB(pixels, wide, high, stride, &out)
                     : WebPEncodeRGB(pixels, wide, high, stride, 70, &out);
    assert_true(n > 0);
    add_with_damage(LEAT__CODEC_WEBP, padded(out, n), s);
    WebPFree(out);
    free(pixels);
}
#endif

static int make_images(void **state)
{
    uint32_t s = 5;
    open_tiles(state);
    count = 0;
    add_jpegs(&s);
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
        add_pixels(LEAT__CODEC_RAW, channels, &s);
#ifdef LEAT_HAVE_PNG
    for (int i = 0; i < 2; i++) {
        add_png(SPNG_COLOR_TYPE_GRAYSCALE, 1, i, &s);
        add_png(SPNG_COLOR_TYPE_TRUECOLOR, 3, i, &s);
        add_png(SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 4, i, &s);
        add_png(SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 2, i, &s);
        add_png(SPNG_COLOR_TYPE_INDEXED, 1, i, &s);
    }
#endif
#ifdef LEAT_HAVE_WEBP
    for (int i = 0; i < 4; i++) add_webp(i & 1, i & 2, &s);
#endif
    static const struct {
        leat__codec_id codec;
        const char *name;
    } foreign[] = {{LEAT__CODEC_GIF, "gif/palette.gif"},
                   {LEAT__CODEC_GIF, "gif/transparent.gif"},
                   {LEAT__CODEC_BMP, "bmp/rgb.bmp"},
                   {LEAT__CODEC_BMP, "bmp/palette.bmp"},
                   {LEAT__CODEC_TIFF, "tiff/rgb_tiff_lzw.tif"},
                   {LEAT__CODEC_TIFF, "tiff/palette.tif"},
                   {LEAT__CODEC_AVIF, "avif/lossy.avif"},
                   {LEAT__CODEC_JXL, "jxl/rgb.jxl"},
                   {LEAT__CODEC_HEIF, "heif/rgb.heic"}};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (leat__codec_built(foreign[i].codec))
            add_with_damage(foreign[i].codec, foreign_file(foreign[i].name), &s);
    return 0;
}

static int free_images(void **state)
{
    for (uint32_t i = 0; i < count; i++) free(images[i].file.data);
    return close_tiles(state);
}

/* ---- decoding ---- */

/* Code, message and pixels as one number. */
typedef uint64_t outcome;

static outcome outcome_of(int rc, const leat_error *err, const void *data, size_t len)
{
    outcome h = leat__hash64(&rc, sizeof rc, 0);
    if (rc != 0) return leat__hash64(err->message, strlen(err->message), h);
    return len > 0 ? leat__hash64(data, len, h) : h;
}

static outcome outcome_of_planes(int rc, const leat_error *err, const leat__planes *p)
{
    outcome h = outcome_of(rc, err, NULL, 0);
    for (uint32_t c = 0; rc == 0 && c < p->channels; c++)
        for (uint32_t y = 0; y < p->height; y++) h = leat__hash64(p->plane[c] + y * p->stride, p->width, h);
    return h;
}

/* Decodes the whole image, a region, and the whole image at half size if the format supports it. */
static outcome decode_one(leat__decoder *d, uint32_t image, int kind)
{
    const bytes b = images[image].file;
    leat__decode_request rq = {.tables = tables};
    leat__image_info info;
    leat__planes out = {0};
    leat_error err = {0};
    int rc = leat__codec_probe(images[image].codec, b.data, b.len, &info, &err);
    if (rc != 0) return outcome_of(rc, &err, NULL, 0);
    if (kind == 1) {
        rq.x = info.width / 3;
        rq.y = info.height / 4;
        rq.width = info.width / 3 + 1;
        rq.height = info.height / 3 + 1;
    }
    if (kind == 2 && images[image].codec == LEAT__CODEC_JPEG) rq.scale_denom = 2;
    rc = leat__codec_decode_planes(d, &info, b.data, b.len, &rq, &out, &err);
    outcome h = outcome_of_planes(rc, &err, &out);
    leat__planes_reset(&out);
    return h;
}

static void decoding_forgets_the_image_before(void **state)
{
    static outcome alone[IMAGES_MAX][REQUESTS];
    for (uint32_t i = 0; i < count; i++)
        for (int kind = 0; kind < REQUESTS; kind++) {
            leat__decoder *d = NULL;
            assert_ok(leat__decoder_open(&d, NULL));
            alone[i][kind] = decode_one(d, i, kind);
            leat__decoder_close(&d);
        }
    uint32_t s = 77;
    const uint64_t steps = test_count("LEAT_TEST_HISTORY", 6000);
    for (uint64_t step = 0, before = 0; step < steps; step++) {
        uint32_t i = dice_below(&s, count);
        int kind = (int)dice_below(&s, REQUESTS);
        if (decode_one(decoder, i, kind) != alone[i][kind])
            fail_msg("image %u (%s), request %d, differs after image %u", i,
                     leat__codec_name(images[i].codec), kind, (uint32_t)before);
        before = i;
    }
}

/* ---- coefficients, their pixels, and tiles ---- */

static outcome read_one(leat__jpeg_coef_reader *r, leat__tile_encoder *e, uint32_t image, bool libjpeg)
{
    const bytes b = images[image].file;
    leat__jpeg_coefs f;
    leat__buf out;
    leat__tile_kept kept = LEAT__TILE_KEPT_DAMAGED;
    leat__tile_encode_opts opts = {.density = image % 2 ? LEAT__TILE_FAST : LEAT__TILE_SMALL};
    leat_error err = {0};
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 24);
    int rc = libjpeg ? leat__jpeg_coef_read_libjpeg(r, b.data, b.len, NULL, &f, &err)
                     : leat__jpeg_coef_read(r, b.data, b.len, NULL, &f, &err);
    outcome h = 0;
    for (uint32_t c = 0; rc == 0 && c < f.components; c++) {
        const leat__jpeg_component *comp = &f.component[c];
        h = leat__hash64(comp->quant, sizeof comp->quant, h);
        h = leat__hash64(comp->coefs, 128 * (size_t)comp->grid_x * comp->grid_y, h);
    }
    if (rc == 0) rc = leat__tile_encode(e, &f, b.data, b.len, &opts, &out, &kept, &err);
    h ^= outcome_of(rc, &err, out.data, out.len) + (uint64_t)kept;
    leat__buf_reset(&out);
    return h;
}

static void tiling_forgets_the_image_before(void **state)
{
    static outcome alone[IMAGES_MAX][2];
    for (uint32_t i = 0; i < count; i++)
        for (int way = 0; way < 2 && images[i].codec == LEAT__CODEC_JPEG; way++) {
            leat__jpeg_coef_reader *r;
            leat__tile_encoder *e;
            assert_ok(leat__jpeg_coef_reader_open(&r, NULL));
            assert_ok(leat__tile_encoder_open(&e, tables, NULL));
            alone[i][way] = read_one(r, e, i, way);
            leat__tile_encoder_close(&e);
            leat__jpeg_coef_reader_close(&r);
        }
    uint32_t s = 78;
    const uint64_t steps = test_count("LEAT_TEST_HISTORY", 4000);
    for (uint64_t step = 0, before = 0; step < steps; step++) {
        uint32_t i = dice_below(&s, count);
        int way = (int)dice_below(&s, 2);
        if (images[i].codec != LEAT__CODEC_JPEG) continue;
        if (read_one(reader, encoder, i, way) != alone[i][way])
            fail_msg("image %u, way %d, differs after image %u", i, way, (uint32_t)before);
        before = i;
    }
}

/* ---- files that need tables of another file, or do not ---- */

static void missing_tables_are_never_another_files(void **state)
{
    const jpeg_kind *plain = &jpeg_kinds[2], *optimised = &jpeg_kinds[12];
    bytes b = make_jpeg(plain, 60, 50, 75, 1), p = make_jpeg(optimised, 60, 50, 30, 2);
    bytes no_codes = without(b, DHT), no_quants = without(b, DQT);
    leat__image_info info;
    leat__planes with = {0}, got = {0};
    leat_error err;
    leat__jpeg_coefs f;
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL));
    assert_ok(leat__codec_decode_planes(decoder, &info, b.data, b.len, NULL, &with, NULL));
    for (int round = 0; round < 3; round++) { /* alone, and after another file */
        if (round > 0) {
            leat__image_info other;
            assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, p.data, p.len, &other, NULL));
            assert_ok(leat__codec_decode_planes(decoder, &other, p.data, p.len, NULL, &got, NULL));
            assert_ok(leat__jpeg_coef_read(reader, p.data, p.len, NULL, &f, NULL));
        }
        assert_ok(leat__codec_decode_planes(decoder, &info, no_codes.data, no_codes.len, NULL, &got, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < 50; y++)
                assert_memory_equal(got.plane[c] + y * got.stride, with.plane[c] + y * with.stride, 60);
        assert_ok(leat__jpeg_coef_read(reader, no_codes.data, no_codes.len, NULL, &f, NULL));
        assert_code(LEAT_EDATA, leat__codec_decode_planes(decoder, &info, no_quants.data, no_quants.len, NULL,
                                                          &got, &err));
        assert_contains(err.message, "Quantization table");
        assert_code(LEAT_EDATA, leat__jpeg_coef_read(reader, no_quants.data, no_quants.len, NULL, &f, &err));
    }
    leat__planes_reset(&with);
    leat__planes_reset(&got);
    free(b.data);
    free(p.data);
    free(no_codes.data);
    free(no_quants.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decoding_forgets_the_image_before, make_images, free_images),
        cmocka_unit_test_setup_teardown(tiling_forgets_the_image_before, make_images, free_images),
        cmocka_unit_test_setup_teardown(missing_tables_are_never_another_files, open_tiles, close_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
