/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "op/targets.h"

static leat__pipeline *opened(const char *text)
{
    leat__pipeline *p = NULL;
    assert_ok(leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, NULL));
    return p;
}

static void refused(const char *text, const char *why)
{
    leat__pipeline *p = NULL;
    leat_error err = {0};
    assert_int_equal(leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, &err), LEAT_EINVAL);
    if (!strstr(err.message, why)) fail_msg("%s: %s", text, err.message);
}

/* Corners and centre, then the same of the mirrored image; for an encoded file and for pixels. */
static void ten_crops_of_one_image(void **state)
{
    enum { W = 33, H = 26, CW = 12, CH = 9 };
    static const uint32_t at[5][2] = {{0, 0}, {W - CW, 0}, {0, H - CH}, {W - CW, H - CH}, {10, 8}};
    leat__planes im = {0};
    fixture_raw raw = {0};
    leat__pipeline_worker *w = NULL;
    leat__pipeline *p = opened("TenCrop((9, 12)); ToLayout(nchw)");
    const leat__output_spec *o = leat__pipeline_output(p);
    static uint8_t out[2][10][3][CH][CW];
    const leat__draw_key key = {.seed = 1};
    assert_int_equal(o->crops, 10);
    assert_int_equal(o->bytes, sizeof out[0]);
    fixture_picture(&im, W, H, 3);
    fixture_encode(&raw, &im, 1);
    assert_ok(leat__pipeline_worker_open(&w, NULL));
    assert_ok(leat__pipeline_run(p, w, &raw.encoded, &key, out[0], NULL));
    assert_ok(leat__pipeline_run_pixels(p, w, &im, &key, out[1], NULL));
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    for (uint32_t k = 0; k < 10; k++)
        for (uint32_t c = 0; c < 3; c++)
            for (uint32_t y = 0; y < CH; y++)
                for (uint32_t x = 0; x < CW; x++) {
                    const uint32_t u = at[k % 5][0] + x, v = at[k % 5][1] + y;
                    assert_int_equal(out[0][k][c][y][x], leat__planes_row(&im, c, v)[k < 5 ? u : W - 1 - u]);
                }
    leat__pipeline_worker_close(&w);
    leat__pipeline_close(&p);
    leat__buf_reset(&raw.bytes);
    leat__planes_reset(&im);
}

static void wrong_crops_are_refused(void **state)
{
    leat__recipe r;
    leat_error err = {0};
    leat__pipeline *p = NULL;
    refused("FiveCrop((1, 2, 3))", "one number or (height, width)");
    refused("FiveCrop(9); TenCrop(5)", "only one op may make several crops");
    refused("FiveCrop(9); MixUp()", "cannot be mixed");
    refused("CenterCrop(9); RandomApply(FiveCrop(9))", "cannot be used inside");
    refused("RandomIoUCrop(0.9, 0.2); CenterCrop(9)", "min_scale: is above max_scale");
    refused("RandomIoUCrop(min_aspect_ratio=3); CenterCrop(9)", "is above max_aspect_ratio");
    refused("RandomIoUCrop()", "does not give all images one size");
    const leat__pipeline_opts any = {.ops = "FiveCrop(9)", .any_size = true};
    assert_int_equal(leat__pipeline_open(&p, &any, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "collate stack"));
    p = opened("FiveCrop(20)");
    assert_int_equal(leat__pipeline_draw(p, &(leat__draw_key){.seed = 1}, 19, 40, &r, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "a crop of 20x20 is larger than the image of 19x40"));
    leat__pipeline_close(&p);
}

static float overlap(const float b[4], const leat__step *s)
{
    const float w = fminf(b[2], (float)(s->x + (int)s->width)) - fmaxf(b[0], (float)s->x);
    const float h = fminf(b[3], (float)(s->y + (int)s->height)) - fmaxf(b[1], (float)s->y);
    const float both = fmaxf(w, 0) * fmaxf(h, 0);
    return both / ((b[2] - b[0]) * (b[3] - b[1]) + (float)s->width * (float)s->height - both);
}

/* Each crop contains the centre of a box, overlaps it as required, and has an allowed shape. */
static void crops_depend_on_boxes(void **state)
{
    const float boxes[8] = {10, 10, 60, 50, 120, 20, 180, 90};
    float moved[8];
    leat__pipeline *p = opened("RandomIoUCrop(sampler_options=(0.3, 1)); Resize((32, 32))");
    uint32_t cropped = 0;
    for (uint64_t i = 0; i < 400; i++) {
        leat__recipe r;
        const leat__draw_key key = {.seed = 5, .sample = i, .boxes = boxes, .moved = moved, .box_count = 2};
        assert_ok(leat__pipeline_draw(p, &key, 200, 100, &r, NULL));
        if (r.step[0].kind != LEAT__STEP_CROP) continue;
        const leat__step *const s = &r.step[0];
        const double ratio = (double)s->width / s->height;
        cropped++;
        assert_true(ratio >= 0.5 && ratio <= 2 && s->width >= 60 && s->height >= 30 && s->centers);
        assert_true(fmaxf(overlap(boxes, s), overlap(boxes + 4, s)) >= 0.3f);
    }
    assert_in_range(cropped, 150, 250); /* one option of two leaves the image as it is */
    leat__pipeline_close(&p);
}

/* Steps before the crop move the boxes that it depends on; boxes whose centre is outside are dropped. */
static void boxes_are_seen_where_they_are(void **state)
{
    const float boxes[8] = {0, 0, 20, 20, 150, 60, 200, 100};
    const leat__box_rule rule = {.format = LEAT__BOX_XYXY};
    float moved[8];
    leat__pipeline *p =
        opened("RandomHorizontalFlip(1); RandomIoUCrop(0.3, 0.5, sampler_options=(0)); Resize((10, 10))");
    for (uint64_t i = 0; i < 100; i++) {
        leat__recipe r;
        bool keep[2], inside = false;
        float after[8];
        const leat__draw_key key = {.seed = 5, .sample = i, .boxes = boxes, .moved = moved, .box_count = 2};
        assert_ok(leat__pipeline_draw(p, &key, 200, 100, &r, NULL));
        const leat__step *const s = &r.step[1];
        memcpy(after, boxes, sizeof after);
        leat__recipe_boxes(&r, &rule, after, keep, 2);
        for (int k = 0; k < 2; k++) {
            const float *const b = boxes + 4 * (size_t)k;
            const float x = 200 - (b[0] + b[2]) / 2, y = (b[1] + b[3]) / 2;
            const bool in = x > (float)s->x && y > (float)s->y && x < (float)(s->x + (int)s->width) &&
                            y < (float)(s->y + (int)s->height);
            assert_int_equal(keep[k], in);
            inside |= in;
        }
        assert_true(inside);
    }
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_crops_of_one_image),
        cmocka_unit_test(wrong_crops_are_refused),
        cmocka_unit_test(crops_depend_on_boxes),
        cmocka_unit_test(boxes_are_seen_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
