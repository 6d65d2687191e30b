/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests like=fast on whole pipelines: the JPEG, its tiles and every instruction set give the same bits,
 * near the exact pixels. Where it does not apply, the pixels are exact.
 */
#include "codec/make_tiles.h"
#include "op_fixture.h"

#include <math.h>

#include "base/fault.h"
#include "base/num.h"
#include "probe/cpu.h"

enum { SIDE = 40, BYTES = 3 * SIDE * SIDE };
static const uint32_t masks[] = {LEAT__CPU_SSE42, LEAT__CPU_SSE42 | LEAT__CPU_AVX2, ~0u};

static void run(const char *ops, leat__codec_id codec, bytes b, uint32_t orientation, uint64_t sample,
                uint8_t *out)
{
    leat__pipeline *p = fixture_pipeline(ops);
    leat__pipeline_worker *w = NULL;
    leat__image_info info;
    leat_error err = {0};
    assert_int_equal(leat__pipeline_output(p)->bytes, BYTES);
    assert_ok(leat__codec_probe(codec, b.data, b.len, &info, NULL));
    const leat__encoded e = {
        .info = &info, .data = b.data, .len = b.len, .tables = tables, .orientation = orientation};
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    if (leat__pipeline_run(p, w, &e, &(leat__draw_key){7, 0, sample}, out, &err) != 0)
        fail_msg("%s: %s", ops, err.message);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
}

#define EXACT "RandomResizedCrop(40); RandomHorizontalFlip()"
#define FAST "RandomResizedCrop(40, like=fast); RandomHorizontalFlip()"

/* Every kind that can be tiled, sizes with and without partial blocks, mirrored or not. */
static void same_bits_everywhere(void **state)
{
    static const uint32_t sizes[][2] = {{97, 75}, {160, 128}, {300, 250}, {41, 40},
                                        {1, 1},   {2, 3},     {9, 1},     {17, 8}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (size_t s = 0; s < LEAT_COUNT(sizes); s++) {
            const jpeg_kind *const kind = &jpeg_kinds[k];
            if (!can_be_tiled(kind) || kind->separate_scans) continue;
            bytes jpeg = make_jpeg(kind, sizes[s][0], sizes[s][1], 85, (uint32_t)(k + s));
            uint8_t want[BYTES], got[BYTES];
            leat__tile_kept kept;
            for (size_t m = 0; m < LEAT_COUNT(masks); m++) {
                leat__cpu_mask(masks[m]);
                run(FAST, LEAT__CODEC_JPEG, jpeg, 1 + s % 4, k, m == 0 ? want : got);
                if (m > 0) assert_memory_equal(want, got, BYTES);
                for (int d = 0; d < 2; d++) {
                    bytes tiled = tile_jpeg(jpeg, d ? LEAT__TILE_FAST : LEAT__TILE_SMALL, &kept);
                    assert_int_equal(kept, LEAT__TILE_KEPT_NONE);
                    run(FAST, LEAT__CODEC_TILE, tiled, 1 + s % 4, k, got);
                    if (memcmp(want, got, BYTES) != 0)
                        fail_msg("%s, size %zu, mask %zu: tiles differ", kind->name, s, m);
                    free(tiled.data);
                }
            }
            leat__cpu_mask(~0u);
            free(jpeg.data);
        }
}

typedef struct distance {
    double mean, psnr;
    int most;
} distance;

static distance between(const uint8_t *a, const uint8_t *b)
{
    distance d = {0};
    double squares = 0;
    for (int i = 0; i < BYTES; i++) {
        const int off = abs(a[i] - b[i]);
        d.mean += off / (double)BYTES;
        squares += off * off / (double)BYTES;
        d.most = LEAT_MAX(d.most, off);
    }
    d.psnr = 10 * log10(255 * 255 / (squares + 1e-9));
    return d;
}

/* Encodes a JPEG, 4:2:0, of the values of `at`. */
static bytes picture(uint32_t side, uint8_t (*at)(uint32_t x, uint32_t y, uint32_t c))
{
    leat__planes im = {0};
    leat__buf out;
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 24);
    assert_ok(leat__planes_resize(&im, side, side, 3, NULL));
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < side; y++)
            for (uint32_t x = 0; x < side; x++) leat__planes_row(&im, c, y)[x] = at(x, y, c);
    assert_ok(leat__codec_encode(LEAT__CODEC_JPEG, &im, NULL, &out, NULL));
    bytes b = {calloc(1, out.len + LEAT__CODEC_PADDING), out.len};
    assert_non_null(b.data);
    memcpy(b.data, out.data, out.len);
    leat__planes_reset(&im);
    leat__buf_reset(&out);
    return b;
}

static uint8_t gradient(uint32_t x, uint32_t y, uint32_t c)
{
    return (uint8_t)((x * (c + 1) + y * (3 - c)) / 2 % 1000 * 255 / 1000);
}

/* Red and blue squares: chroma edges are the worst case of resizing before conversion. */
static uint8_t squares(uint32_t x, uint32_t y, uint32_t c)
{
    return (x / 24 + y / 24) % 2 ? (c == 0 ? 255 : 0) : (c == 2 ? 255 : 0);
}

static void near_the_exact_pixels(void **state)
{
    static const struct {
        const char *name;
        uint8_t (*at)(uint32_t, uint32_t, uint32_t);
        double mean, psnr;
        int most;
    } cases[] = {{"gradient", gradient, 0.45, 51, 2}, {"squares", squares, 5, 28, 60}};
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        bytes b = picture(300, cases[i].at);
        for (uint64_t sample = 0; sample < 12; sample++) {
            uint8_t exact[BYTES], fast[BYTES];
            run(EXACT, LEAT__CODEC_JPEG, b, 1, sample, exact);
            run(FAST, LEAT__CODEC_JPEG, b, 1, sample, fast);
            const distance d = between(exact, fast);
            if (d.mean > cases[i].mean || d.psnr < cases[i].psnr || d.most > cases[i].most)
                fail_msg("%s: mean %.3f, PSNR %.2f dB, most %d", cases[i].name, d.mean, d.psnr, d.most);
        }
        free(b.data);
    }
}

/* Files, filters and rotations that fast does not support give the exact pixels. */
static void exact_where_it_does_not_apply(void **state)
{
    static const char *const pairs[][2] = {
        {EXACT, FAST},
        {"Resize((40, 40), interpolation=bicubic)", "Resize((40, 40), interpolation=bicubic, like=fast)"}};
    for (size_t k = 0; k < JPEG_KINDS; k++)
        for (int which = 0; which < 3; which++) {
            const jpeg_kind *const kind = &jpeg_kinds[k];
            const bool plain = can_be_tiled(kind) && !kind->progressive && !kind->separate_scans;
            if (which == 0 && plain) continue; /* not a refusal: tested above */
            bytes b = make_jpeg(kind, 120, 90, 85, (uint32_t)k);
            uint8_t exact[BYTES], fast[BYTES];
            const uint32_t orientation = which == 2 ? 6 : 1;
            run(pairs[which == 1][0], LEAT__CODEC_JPEG, b, orientation, k, exact);
            run(pairs[which == 1][1], LEAT__CODEC_JPEG, b, orientation, k, fast);
            if (memcmp(exact, fast, BYTES) != 0) fail_msg("%s: case %d", kind->name, which);
            free(b.data);
        }
}

/* Steps after the head get its pixels, and damage gives the same error as on the exact path. */
static void continues_after_the_head(void **state)
{
    bytes b = picture(200, gradient);
    uint8_t exact[BYTES], fast[BYTES];
    run("RandomResizedCrop(40); ColorJitter(0.4); RandomSolarize(128)", LEAT__CODEC_JPEG, b, 1, 3, exact);
    run("RandomResizedCrop(40, like=fast); ColorJitter(0.4); RandomSolarize(128)", LEAT__CODEC_JPEG, b, 1, 3,
        fast);
    assert_true(between(exact, fast).mean < 1.0);
    leat__pipeline *p = fixture_pipeline("Resize((40, 40), like=fast)");
    leat__pipeline_worker *w = NULL;
    leat__image_info info;
    leat_error err = {0};
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL));
    const leat__encoded cut = {.info = &info, .data = b.data, .len = b.len / 2};
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    assert_int_equal(leat__pipeline_run(p, w, &cut, &(leat__draw_key){0}, fast, &err), LEAT_EDATA);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    free(b.data);
}

/* Changes bytes anywhere in a JPEG or its tiles: the result is pixels or an error. */
static void damage_is_an_error_at_most(void **state)
{
    bytes jpeg = make_jpeg(&jpeg_kinds[2], 200, 150, 85, 5);
    leat__tile_kept kept;
    bytes tiled = tile_jpeg(jpeg, LEAT__TILE_SMALL, &kept);
    leat__pipeline *p = fixture_pipeline(FAST);
    leat__pipeline_worker *w = NULL;
    uint32_t dice_state = 11, refused = 0;
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    for (int round = 0; round < 600; round++) {
        const bytes from = round & 1 ? tiled : jpeg;
        const leat__codec_id codec = round & 1 ? LEAT__CODEC_TILE : LEAT__CODEC_JPEG;
        bytes b = {calloc(1, from.len + LEAT__CODEC_PADDING), from.len};
        uint8_t out[BYTES];
        leat__image_info info;
        assert_non_null(b.data);
        memcpy(b.data, from.data, from.len);
        for (uint32_t i = 0; i < 1 + dice_below(&dice_state, 4); i++)
            b.data[dice_below(&dice_state, (uint32_t)b.len)] = (uint8_t)dice(&dice_state);
        if (leat__codec_probe(codec, b.data, b.len, &info, NULL) == 0 && info.width < 4096 &&
            info.height < 4096) {
            const leat__encoded e = {.info = &info, .data = b.data, .len = b.len, .tables = tables};
            const leat__draw_key key = {1, 0, (uint64_t)round};
            refused += leat__pipeline_run(p, w, &e, &key, out, NULL) != 0;
        }
        free(b.data);
    }
    assert_true(refused > 50);
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    free(jpeg.data);
    free(tiled.data);
}

/* Each allocation fails in turn: the result is always LEAT_ENOMEM, never a crash. */
static void survives_lack_of_memory(void **state)
{
    if (!leat__fault_available()) skip();
    bytes b = picture(100, gradient);
    uint8_t out[BYTES];
    leat__image_info info;
    assert_ok(leat__codec_probe(LEAT__CODEC_JPEG, b.data, b.len, &info, NULL));
    const leat__encoded e = {.info = &info, .data = b.data, .len = b.len};
    leat__pipeline *p = fixture_pipeline(FAST);
    uint64_t failures = 0;
    for (int rc = LEAT_ENOMEM; rc != 0; failures++) {
        leat__pipeline_worker *w = NULL;
        leat__fault_arm(LEAT__FAULT_ALLOC, failures + 1, false);
        rc = leat__pipeline_worker_open(&w, NULL);
        if (rc == 0) rc = leat__pipeline_run(p, w, &e, &(leat__draw_key){0}, out, NULL);
        leat__fault_disarm();
        assert_true(rc == 0 || rc == LEAT_ENOMEM);
        leat__pipeline_worker_close(&w);
    }
    assert_true(failures > 10);
    leat__pipeline_close(&p);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_everywhere),          cmocka_unit_test(near_the_exact_pixels),
        cmocka_unit_test(exact_where_it_does_not_apply), cmocka_unit_test(continues_after_the_head),
        cmocka_unit_test(damage_is_an_error_at_most),    cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, open_tiles, close_tiles);
}
