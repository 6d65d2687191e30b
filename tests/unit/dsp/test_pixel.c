/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "dsp/pixel.h"
#include "probe/cpu.h"

static uint32_t bits(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static void half_floats_round_to_nearest_even(void **state)
{
    static const struct {
        float v;
        uint16_t f16, bf16;
    } cases[] = {
        {0.0f, 0x0000, 0x0000},
        {-0.0f, 0x8000, 0x8000},
        {1.0f, 0x3c00, 0x3f80},
        {-2.5f, 0xc100, 0xc020},
        {65504.0f, 0x7bff, 0x4780},
        {65520.0f, 0x7c00, 0x4780},
        {0x1p-24f, 0x0001, 0x3380},
        {0x1p-25f, 0x0000, 0x3300},
        {0x1.8p-25f, 0x0001, 0x3340},
        {1.0f + 0x1p-11f, 0x3c00, 0x3f80},
        {1.0f + 0x1.8p-10f, 0x3c02, 0x3f80},
        {1.0f + 0x1p-8f, 0x3c04, 0x3f80},
        {1.0f + 0x1.8p-7f, 0x3c0c, 0x3f82},
        {INFINITY, 0x7c00, 0x7f80},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(leat__f16_of(cases[i].v), cases[i].f16);
        assert_int_equal(leat__bf16_of(cases[i].v), cases[i].bf16);
    }
    assert_true(isnan(leat__f32_of_f16(leat__f16_of(NAN))));
    assert_true(isnan(leat__f32_of_bf16(leat__bf16_of(NAN))));
    /* every half is its own image */
    for (uint32_t h = 0; h < 65536; h++) {
        const float v = leat__f32_of_f16((uint16_t)h);
        if (!isnan(v)) assert_int_equal(leat__f16_of(v), h);
        const float w = leat__f32_of_bf16((uint16_t)h);
        if (!isnan(w)) assert_int_equal(leat__bf16_of(w), h);
    }
}

/* The formula with reciprocals equals the table, for common and unusual constants. */
static void normalisation_is_exact(void **state)
{
    static const float means[] = {0, 0.485f, 0.456f, 0.406f, 0.5f, 0.1307f, 0.48145466f, -3};
    static const float stds[] = {1, 0.229f, 0.224f, 0.225f, 0.5f, 0.3081f, 0.26862954f, 7};
    leat__norm n;
    for (size_t i = 0; i < 8; i++)
        for (int scale = 0; scale < 2; scale++) {
            leat__norm_init(&n, scale, means[i], stds[i]);
            assert_true(n.computable);
            for (int v = 0; v < 256; v++) {
                const float x = scale ? (float)v / 255.0f : (float)v;
                assert_int_equal(bits(n.f32[v]), bits((x - means[i]) / stds[i]));
                assert_int_equal(n.f16[v], leat__f16_of(n.f32[v]));
                assert_int_equal(n.bf16[v], leat__bf16_of(n.f32[v]));
            }
        }
}

static void rows_are_converted_and_woven(void **state)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    uint8_t src[3][200], woven[600 + 1], back[200];
    uint16_t half[200], brain[200], wide16[3][200], woven16[601];
    uint32_t wide32[3][200], woven32[601];
    float full[200];
    leat__norm n;
    leat__norm_init(&n, true, 0.4f, 0.25f);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 200; i++) {
            src[c][i] = (uint8_t)(i * 7 + c * 31);
            wide16[c][i] = (uint16_t)(i * 300 + c);
            wide32[c][i] = (uint32_t)i * 90000u + (uint32_t)c;
        }
    for (size_t f = 0; f < 3; f++) {
        if ((leat__cpu_detected() & flags[f]) != flags[f]) continue;
        const leat__pixel_dsp *d = leat__pixel_dsp_for(flags[f]);
        for (size_t count = 0; count <= 200; count += count < 70 ? 1 : 13) {
            const uint8_t *const rows[3] = {src[0], src[1], src[2]};
            const uint16_t *const rows16[3] = {wide16[0], wide16[1], wide16[2]};
            const uint32_t *const rows32[3] = {wide32[0], wide32[1], wide32[2]};
            woven[3 * count] = 0xee;
            woven16[3 * count] = 0xeeee;
            woven32[3 * count] = 0xeeeeeeee;
            d->to_f32(&n, src[0], full, count);
            d->to_f16(&n, src[0], half, count);
            d->to_bf16(&n, src[0], brain, count);
            d->interleave8(rows, woven, count);
            d->interleave16(rows16, woven16, count);
            d->interleave32(rows32, woven32, count);
            d->reverse(src[1], back, count);
            assert_int_equal(woven[3 * count], 0xee);
            assert_int_equal(woven16[3 * count], 0xeeee);
            assert_int_equal(woven32[3 * count], 0xeeeeeeee);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(bits(full[i]), bits(n.f32[src[0][i]]));
                assert_int_equal(half[i], n.f16[src[0][i]]);
                assert_int_equal(brain[i], n.bf16[src[0][i]]);
                assert_int_equal(back[i], src[1][count - 1 - i]);
                for (size_t c = 0; c < 3; c++) {
                    assert_int_equal(woven[3 * i + c], src[c][i]);
                    assert_int_equal(woven16[3 * i + c], wide16[c][i]);
                    assert_int_equal(woven32[3 * i + c], wide32[c][i]);
                }
            }
        }
    }
}

/* If the formula cannot give a table, the SIMD kernels look it up too. */
static void uncomputable_tables_are_looked_up(void **state)
{
    leat__norm n;
    uint8_t src[64];
    float out[64];
    leat__norm_init(&n, true, 0, 1);
    for (int i = 0; i < 64; i++) src[i] = (uint8_t)(4 * i);
    for (int v = 0; v < 256; v++) n.f32[v] = (float)(v * v);
    n.computable = false;
    leat__pixel_dsp_for(leat__cpu_detected())->to_f32(&n, src, out, 64);
    for (int i = 0; i < 64; i++) assert_true(out[i] == (float)(16 * i * i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_floats_round_to_nearest_even),
        cmocka_unit_test(normalisation_is_exact),
        cmocka_unit_test(rows_are_converted_and_woven),
        cmocka_unit_test(uncomputable_tables_are_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
