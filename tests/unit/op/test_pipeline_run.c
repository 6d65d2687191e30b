/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include "op/targets.h"

#include "base/num.h"
#include "dsp/pixel.h"
#include "probe/cpu.h"

#include "golden_ops.h"

static const uint32_t masks[] = {LEAT__CPU_SSE42, LEAT__CPU_SSE42 | LEAT__CPU_AVX2, ~0u};

/* Every step of every golden recipe equals Pillow, on every instruction set. */
static void equals_pillow(void **state)
{
    leat__planes im = {0};
    fixture_raw raw;
    fixture_picture(&im, 73, 59, 3);
    for (size_t m = 0; m < LEAT_COUNT(masks); m++) {
        leat__cpu_mask(masks[m]);
        leat__pipeline_worker *w = NULL;
        assert_ok(leat__pipeline_worker_open(&w, NULL));
        for (size_t i = 0; i < LEAT_COUNT(goldens); i++) {
            const struct golden *g = &goldens[i];
            leat__pipeline *p = fixture_pipeline(g->text);
            const size_t bytes = leat__pipeline_output(p)->bytes;
            uint8_t *out = leat__alloc(LEAT__MEM_MISC, bytes);
            fixture_encode(&raw, &im, g->orientation);
            assert_ok(leat__pipeline_run(p, w, &raw.encoded, &(leat__draw_key){g->seed, 0, 0}, out, NULL));
            if (fixture_fnv(out, bytes) != g->hash) fail_msg("golden %zu, mask %zu: %s", i, m, g->text);
            fixture_reset(&raw);
            leat__free(out);
            leat__pipeline_close(&p);
        }
        leat__pipeline_worker_close(&w);
    }
    leat__cpu_mask(~0u);
    leat__planes_reset(&im);
    assert_no_leaks();
}

/* All element types and layouts have the values of the 8-bit planes, normalised. */
static void types_and_layouts(void **state)
{
    static const char *const dtypes[] = {"u8", "f16", "bf16", "f32"};
    const float mean[3] = {0.485f, 0.456f, 0.406f}, std[3] = {0.229f, 0.224f, 0.225f};
    leat__planes im = {0};
    fixture_raw raw;
    leat__pipeline_worker *w = NULL;
    const leat__draw_key key = {3, 1, 9};
    enum { SIDE = 37 };
    static uint8_t plain[3 * SIDE * SIDE], out[12 * SIDE * SIDE];
    fixture_picture(&im, 80, 61, 3);
    fixture_encode(&raw, &im, 1);
    for (size_t m = 0; m < LEAT_COUNT(masks); m++) {
        leat__cpu_mask(masks[m]);
        assert_ok(leat__pipeline_worker_open(&w, NULL));
        leat__pipeline *p = fixture_pipeline("RandomResizedCrop(37); RandomHorizontalFlip()");
        assert_ok(leat__pipeline_run(p, w, &raw.encoded, &key, plain, NULL));
        leat__pipeline_close(&p);
        for (int t = 0; t < 8; t++) {
            char text[256];
            const bool woven = t % 2 == 1, u8 = t / 2 == 0;
            snprintf(text, sizeof text,
                     "RandomResizedCrop(37); RandomHorizontalFlip(); %s ToDtype(%s); "
                     "ToLayout(%s)",
                     u8 ? "" : "Normalize((0.485,0.456,0.406),(0.229,0.224,0.225));", dtypes[t / 2],
                     woven ? "nhwc" : "nchw");
            p = fixture_pipeline(text);
            assert_ok(leat__pipeline_run(p, w, &raw.encoded, &key, out, NULL));
            for (size_t i = 0; i < 3 * SIDE * SIDE; i++) {
                const size_t c = i / (SIDE * SIDE), px = i % (SIDE * SIDE);
                const size_t at = woven ? 3 * px + c : i;
                const float want = ((float)plain[i] / 255.0f - mean[c]) / std[c];
                if (t / 2 == 0) assert_int_equal(out[at], plain[i]);
                if (t / 2 == 1) assert_int_equal(((uint16_t *)out)[at], leat__f16_of(want));
                if (t / 2 == 2) assert_int_equal(((uint16_t *)out)[at], leat__bf16_of(want));
                if (t / 2 == 3) assert_memory_equal((float *)out + at, &want, sizeof want);
            }
            leat__pipeline_close(&p);
        }
        leat__pipeline_worker_close(&w);
    }
    leat__cpu_mask(~0u);
    fixture_reset(&raw);
    leat__planes_reset(&im);
    assert_no_leaks();
}

/* One channel becomes three equal ones; four lose the alpha. */
static void grey_and_alpha(void **state)
{
    leat__planes rgb = {0}, other = {0};
    leat__pipeline_worker *w = NULL;
    const leat__draw_key key = {5, 0, 0};
    static const char *const texts[] = {
        "RandomResizedCrop(20)", "RandomResizedCrop(20); ColorJitter(0.5, 0.5, 0.5)",
        "RandomResizedCrop(20); ToLayout(nhwc)", "RandomCrop(20, padding=3, fill=(1,2,3))"};
    static uint8_t want[1200], got[1200];
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    for (uint32_t channels = 1; channels <= 4; channels += 3) {
        fixture_picture(&other, 50, 40, channels);
        assert_ok(leat__planes_resize(&rgb, 50, 40, 3, NULL));
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < 40; y++)
                memcpy(leat__planes_row(&rgb, c, y), leat__planes_row(&other, channels == 1 ? 0 : c, y), 50);
        for (size_t i = 0; i < LEAT_COUNT(texts); i++) {
            leat__pipeline *p = fixture_pipeline(texts[i]);
            fixture_raw a, b;
            fixture_encode(&a, &rgb, 1);
            fixture_encode(&b, &other, 1);
            assert_ok(leat__pipeline_run(p, w, &a.encoded, &key, want, NULL));
            assert_ok(leat__pipeline_run(p, w, &b.encoded, &key, got, NULL));
            assert_memory_equal(want, got, sizeof want);
            fixture_reset(&a);
            fixture_reset(&b);
            leat__pipeline_close(&p);
        }
    }
    leat__pipeline_worker_close(&w);
    leat__planes_reset(&rgb);
    leat__planes_reset(&other);
    assert_no_leaks();
}

/* Views decoded together equal views run one by one. */
static void views_together_and_apart(void **state)
{
    static const char *const texts[] = {"RandomResizedCrop(32, scale=(0.4, 1))",
                                        "RandomResizedCrop(32, scale=(0.4, 1)); ColorJitter(0.3)",
                                        "RandomResizedCrop(16, scale=(0.05, 0.2))"};
    leat__planes im = {0};
    fixture_raw raw;
    leat__pipeline *p[3];
    leat__pipeline_worker *w = NULL;
    static uint8_t together[3][3072], apart[3072];
    void *out[3] = {together[0], together[1], together[2]};
    fixture_picture(&im, 90, 70, 3);
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    for (uint32_t i = 0; i < 3; i++)
        assert_ok(leat__pipeline_open(&p[i], &(leat__pipeline_opts){.ops = texts[i], .view = i}, NULL));
    for (uint32_t orientation = 1; orientation <= 8; orientation++)
        for (uint64_t sample = 0; sample < 6; sample++) {
            const leat__draw_key key = {1, 2, sample};
            fixture_encode(&raw, &im, orientation);
            assert_ok(leat__pipeline_run_views((const leat__pipeline *const *)p, 3, w, &raw.encoded, &key,
                                               out, NULL));
            for (int i = 0; i < 3; i++) {
                assert_ok(leat__pipeline_run(p[i], w, &raw.encoded, &key, apart, NULL));
                assert_memory_equal(apart, together[i], leat__pipeline_output(p[i])->bytes);
            }
            fixture_reset(&raw);
        }
    for (int i = 0; i < 3; i++) leat__pipeline_close(&p[i]);
    leat__pipeline_worker_close(&w);
    leat__planes_reset(&im);
    assert_no_leaks();
}

/* A mask marks one rectangle and a box surrounds it: they stay aligned. */
static void masks_and_boxes_follow(void **state)
{
    leat__planes im = {0}, mask = {0};
    fixture_raw a, b;
    leat__pipeline_worker *w = NULL;
    leat__pipeline *p = fixture_pipeline("RandomResizedCrop(64, scale=(0.5, 1)); RandomHorizontalFlip();"
                                         "RandomVerticalFlip(); Pad(4); ColorJitter(0.5); CenterCrop(70)");
    static uint8_t mask_out[70 * 70];
    static leat__recipe recipe;
    fixture_picture(&im, 100, 80, 3);
    assert_ok(leat__planes_resize(&mask, 100, 80, 1, NULL));
    for (uint32_t y = 0; y < 80; y++) {
        memset(leat__planes_row(&mask, 0, y), 0, 100);
        if (y >= 30 && y < 50) memset(leat__planes_row(&mask, 0, y) + 40, 1, 25);
    }
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    fixture_encode(&a, &im, 1);
    fixture_encode(&b, &mask, 1);
    for (uint64_t sample = 0; sample < 20; sample++) {
        float box[4] = {40, 30, 65, 50};
        bool keep = false;
        const leat__draw_key key = {1, 0, sample};
        assert_ok(leat__pipeline_draw(p, &key, 100, 80, &recipe, NULL));
        assert_ok(leat__pipeline_run_mask(w, &recipe, &b.encoded, 0, mask_out, NULL));
        leat__recipe_boxes(&recipe, &(leat__box_rule){0}, box, &keep, 1);
        float x0 = 70, y0 = 70, x1 = 0, y1 = 0;
        for (int i = 0; i < 70 * 70; i++) {
            assert_in_range(mask_out[i], 0, 1);
            if (!mask_out[i]) continue;
            x0 = LEAT_MIN(x0, (float)(i % 70));
            x1 = LEAT_MAX(x1, (float)(i % 70 + 1));
            y0 = LEAT_MIN(y0, (float)(i / 70));
            y1 = LEAT_MAX(y1, (float)(i / 70 + 1));
        }
        assert_int_equal(keep, x0 < x1);
        if (!keep) continue;
        const float seen[4] = {x0, y0, x1, y1};
        for (int k = 0; k < 4; k++) assert_true(box[k] - seen[k] < 1.5f && seen[k] - box[k] < 1.5f);
    }
    fixture_reset(&b);
    fixture_picture(&mask, 50, 80, 1);
    fixture_encode(&b, &mask, 1);
    leat_error err = {0};
    assert_code(LEAT_EDATA, leat__pipeline_run_mask(w, &recipe, &b.encoded, 0, mask_out, &err));
    assert_contains(err.message, "50x80");
    assert_code(LEAT_EDATA, leat__pipeline_run_mask(w, &recipe, &a.encoded, 0, mask_out, &err));
    assert_contains(err.message, "3 channels");
    fixture_reset(&a);
    fixture_reset(&b);
    leat__planes_reset(&im);
    leat__planes_reset(&mask);
    leat__pipeline_close(&p);
    leat__pipeline_worker_close(&w);
    assert_no_leaks();
}

/* Erasing after Normalize writes the value to the normalised output. */
static void erasing_the_output(void **state)
{
    leat__planes im = {0};
    leat__pipeline_worker *w = NULL;
    static float out[3 * 32 * 32];
    leat__recipe recipe;
    const leat__draw_key key = {1, 1, 1};
    fixture_picture(&im, 40, 40, 3);
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    static const char *const texts[] = {
        "CenterCrop(32); Normalize(0.5, 0.5); RandomErasing(1, value=(1, -2, 3))",
        "CenterCrop(32); Normalize(0.5, 0.5); RandomErasing(1, value=(1, -2, 3)); "
        "ToLayout(nhwc)"};
    for (int t = 0; t < 2; t++) {
        leat__pipeline *p = fixture_pipeline(texts[t]);
        assert_ok(leat__pipeline_run_pixels(p, w, &im, &key, out, NULL));
        assert_ok(leat__pipeline_draw(p, &key, 40, 40, &recipe, NULL));
        const leat__step *s = &recipe.step[recipe.count - 1];
        assert_int_equal(s->kind, LEAT__STEP_ERASE_OUT);
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t i = 0; i < 32 * 32; i++) {
                const float v = out[t ? 3 * i + c : c * 1024 + i];
                const uint32_t x = i % 32, y = i / 32;
                const bool in = x >= (uint32_t)s->x && x < (uint32_t)s->x + s->width && y >= (uint32_t)s->y &&
                                y < (uint32_t)s->y + s->height;
                const float want =
                    in ? (c == 0   ? 1.0f
                          : c == 1 ? -2.0f
                                   : 3.0f)
                       : ((float)leat__planes_row(&im, c, y + 4)[x + 4] / 255.0f - 0.5f) / 0.5f;
                assert_true(v == want);
            }
        leat__pipeline_close(&p);
    }
    leat__pipeline_worker_close(&w);
    leat__planes_reset(&im);
    assert_no_leaks();
}

/* Each allocation fails in turn: always an error, and nothing leaks. */
static void survives_lack_of_memory(void **state)
{
    static const char *const text =
        "RandomResizedCrop(32); GaussianBlur(3); RandomRotation(20); "
        "RandomAdjustSharpness(2, p=1);"
        "ColorJitter(0.1, 0.1, 0.1, 0.1); Pad(2); Resize((16, 16)); Normalize(0, 1)";
    if (!leat__fault_available()) skip();
    leat__planes im = {0};
    fixture_raw raw;
    static float out[3 * 16 * 16];
    fixture_picture(&im, 60, 50, 3);
    fixture_encode(&raw, &im, 6);
    uint64_t failures = 0;
    for (uint64_t n = 1;; n++) {
        leat__pipeline *p = NULL;
        leat__pipeline_worker *w = NULL;
        leat_error err = {0};
        leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
        int rc = leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, &err);
        if (rc == 0) rc = leat__pipeline_worker_open(&w, &err);
        if (rc == 0) rc = leat__pipeline_run(p, w, &raw.encoded, &(leat__draw_key){0}, out, &err);
        const bool reached = leat__fault_count(LEAT__FAULT_ALLOC) >= n;
        leat__fault_disarm();
        leat__pipeline_worker_close(&w);
        leat__pipeline_close(&p);
        if (!reached) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, LEAT_ENOMEM);
        assert_int_equal(err.code, LEAT_ENOMEM);
        failures++;
    }
    assert_true(failures > 10);
    fixture_reset(&raw);
    leat__planes_reset(&im);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pillow),           cmocka_unit_test(types_and_layouts),
        cmocka_unit_test(grey_and_alpha),          cmocka_unit_test(views_together_and_apart),
        cmocka_unit_test(masks_and_boxes_follow),  cmocka_unit_test(erasing_the_output),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
