/* SPDX-License-Identifier: Apache-2.0 */
#include "op_fixture.h"

#include <math.h>

#include "dsp/pixel.h"
#include "op/mix.h"

static const leat__op_spec *batch_op(leat__pipeline *p)
{
    assert_int_equal(leat__pipeline_batch_ops(p), 1);
    assert_null(leat__pipeline_batch_op(p, 1));
    return leat__pipeline_batch_op(p, 0);
}

static void draws_are_beta_and_repeatable(void **state)
{
    leat__pipeline *p = fixture_pipeline("CenterCrop(8); ToDtype(f32); MixUp(0.2, p=0.5)");
    leat__mix a, b;
    double sum = 0, spread = 0;
    int active = 0;
    for (uint64_t i = 0; i < 4000; i++) {
        leat__mix_draw(&a, batch_op(p), leat__pipeline_output(p), 1, 2, i, 0);
        leat__mix_draw(&b, batch_op(p), leat__pipeline_output(p), 1, 2, i, 0);
        assert_memory_equal(&a, &b, sizeof a);
        if (!a.active) {
            assert_true(a.lambda == 1.0f);
            continue;
        }
        active++;
        sum += (double)a.lambda;
        spread += pow((double)a.lambda - 0.5, 2);
    }
    assert_in_range(active, 1850, 2150);
    assert_true(fabs(sum / active - 0.5) < 0.03);
    assert_true(fabs(spread / active - 1 / (4 * 1.4)) < 0.02); /* variance of beta(0.2, 0.2) */
    leat__pipeline_close(&p);
}

/* Sample i gets 1 - lambda of sample i-1, the first of the last, like torch.roll. */
static void mixup_blends_with_the_one_before(void **state)
{
    static const char *const dtypes[] = {"u8", "f16", "bf16", "f32"};
    for (int t = 0; t < 4; t++) {
        char text[64];
        snprintf(text, sizeof text, "CenterCrop(2); ToDtype(%s); MixUp()", dtypes[t]);
        leat__pipeline *p = fixture_pipeline(text);
        const leat__output_spec *o = leat__pipeline_output(p);
        uint8_t batch[3][64];
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < 12; i++) {
                const float v = (float)(10 * s + i);
                if (t == 0) batch[s][i] = (uint8_t)v;
                if (t == 1) ((uint16_t *)batch[s])[i] = leat__f16_of(v);
                if (t == 2) ((uint16_t *)batch[s])[i] = leat__bf16_of(v);
                if (t == 3) ((float *)batch[s])[i] = v;
            }
        const leat__mix mix = {.active = true, .lambda = 0.75f};
        leat__mix_pixels(&mix, o, batch, 3, 64);
        for (int s = 0; s < 3; s++)
            for (int i = 0; i < 12; i++) {
                const float want = 0.75f * (float)(10 * s + i) + 0.25f * (float)(10 * ((s + 2) % 3) + i);
                float got = 0;
                if (t == 0) got = batch[s][i];
                if (t == 1) got = leat__f32_of_f16(((uint16_t *)batch[s])[i]);
                if (t == 2) got = leat__f32_of_bf16(((uint16_t *)batch[s])[i]);
                if (t == 3) got = ((float *)batch[s])[i];
                assert_true(fabsf(got - want) <= (t == 0 ? 0.5f : t == 2 ? 0.13f : 0.01f));
            }
        leat__pipeline_close(&p);
    }
    assert_no_leaks();
}

static void cutmix_pastes_a_rectangle(void **state)
{
    static const char *const texts[] = {"CenterCrop(16); CutMix()",
                                        "CenterCrop(16); ToLayout(nhwc); CutMix()"};
    for (int t = 0; t < 2; t++) {
        leat__pipeline *p = fixture_pipeline(texts[t]);
        static uint8_t batch[4][768];
        for (uint64_t b = 0; b < 50; b++) {
            leat__mix mix;
            leat__mix_draw(&mix, batch_op(p), leat__pipeline_output(p), 3, 0, b, 0);
            assert_true(mix.active && mix.paste);
            assert_true(mix.x + mix.width <= 16 && mix.y + mix.height <= 16);
            const double share = 1 - mix.width * mix.height / 256.0;
            assert_true(fabs((double)mix.lambda - share) < 1e-6);
            for (int s = 0; s < 4; s++) memset(batch[s], s, 768);
            leat__mix_pixels(&mix, leat__pipeline_output(p), batch, 4, 768);
            for (uint32_t s = 0; s < 4; s++)
                for (uint32_t i = 0; i < 768; i++) {
                    const uint32_t px = t ? i / 3 : i % 256, x = px % 16, y = px / 16;
                    const bool in =
                        x >= mix.x && x < mix.x + mix.width && y >= mix.y && y < mix.y + mix.height;
                    assert_int_equal(batch[s][i], in ? (s + 3) % 4 : s);
                }
        }
        leat__pipeline_close(&p);
    }
    assert_no_leaks();
}

static void targets_are_mixed_alike(void **state)
{
    float t[12] = {0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0};
    leat__mix_targets(&(leat__mix){.lambda = 0.1f}, t, 3, 4); /* not active */
    assert_true(t[2] == 1 && t[4] == 1 && t[10] == 1);
    leat__mix_targets(&(leat__mix){.active = true, .paste = true, .lambda = 0.75f}, t, 3, 4);
    const float want[12] = {0, 0, 1, 0, 0.75f, 0, 0.25f, 0, 0.25f, 0, 0.75f, 0};
    assert_memory_equal(t, want, sizeof want);
}

/* Samples are mixed in pieces of 4096 bytes: a larger sample must be mixed completely. */
static void large_samples_are_mixed_whole(void **state)
{
    enum { SIDE = 60, BYTES = SIDE * SIDE * 3 };
    leat__pipeline *p = fixture_pipeline("CenterCrop(60); MixUp()");
    static uint8_t batch[2][BYTES];
    memset(batch[0], 10, BYTES);
    memset(batch[1], 30, BYTES);
    const leat__mix mix = {.active = true, .lambda = 0.25f};
    leat__mix_pixels(&mix, leat__pipeline_output(p), batch, 2, BYTES);
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(batch[0][i], 25);
        assert_int_equal(batch[1][i], 15);
    }
    leat__pipeline_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_beta_and_repeatable), cmocka_unit_test(mixup_blends_with_the_one_before),
        cmocka_unit_test(cutmix_pastes_a_rectangle),     cmocka_unit_test(targets_are_mixed_alike),
        cmocka_unit_test(large_samples_are_mixed_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
