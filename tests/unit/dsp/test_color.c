/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "dsp/color.h"
#include "probe/cpu.h"

static const leat__color_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__color_dsp_for(flags[i]);
}

static void tables_and_luma(void **state)
{
    const leat__color_dsp *d;
    uint8_t src[300], out[301], table[256], rgb[3][300];
    for (int v = 0; v < 256; v++) table[v] = (uint8_t)(v * 37 + 11);
    for (int i = 0; i < 300; i++) {
        src[i] = (uint8_t)(i * 3);
        for (int c = 0; c < 3; c++) rgb[c][i] = (uint8_t)(i * (c + 5) + 7 * c);
    }
    const uint8_t *const rows[3] = {rgb[0], rgb[1], rgb[2]};
    for (size_t k = 0; (d = kernels(k)); k++)
        for (size_t n = 0; n <= 300; n += 17) {
            out[n] = 0x5a;
            d->lut(src, out, n, table);
            assert_int_equal(out[n], 0x5a);
            for (size_t i = 0; i < n; i++) assert_int_equal(out[i], table[src[i]]);
            d->luma(rows, out, n);
            assert_int_equal(out[n], 0x5a);
            uint64_t sum = 0;
            for (size_t i = 0; i < n; i++) {
                const uint32_t want =
                    (19595u * rgb[0][i] + 38470u * rgb[1][i] + 7471u * rgb[2][i] + 32768) >> 16;
                assert_int_equal(out[i], want);
                sum += want;
            }
            assert_int_equal(d->luma_sum(rows, n), sum);
        }
}

static void blends_cut_and_clip(void **state)
{
    static const float alphas[] = {0, 0.3f, 1, 1.7f, 3, 0.5f};
    const leat__color_dsp *d;
    uint8_t a[256], b[256], out[256], table[256];
    for (int i = 0; i < 256; i++) {
        a[i] = 100;
        b[i] = (uint8_t)i;
    }
    for (size_t k = 0; (d = kernels(k)); k++)
        for (size_t i = 0; i < 6; i++) {
            d->blend(a, b, out, 256, alphas[i]);
            leat__blend_table(table, 100, alphas[i]);
            for (int v = 0; v < 256; v++) {
                const float x = 100.0f + alphas[i] * (float)(v - 100);
                const int want = x <= 0 ? 0 : x >= 255 ? 255 : (int)x;
                assert_int_equal(out[v], want);
                assert_int_equal(table[v], want);
            }
        }
}

/* A shift of zero loses at most the rounding of HSV; grey has no hue to shift. */
static void hue_keeps_value_and_grey(void **state)
{
    const leat__color_dsp *d;
    uint8_t c[3][256];
    uint8_t *const rows[3] = {c[0], c[1], c[2]};
    for (size_t k = 0; (d = kernels(k)); k++)
        for (int shift = 0; shift < 256; shift += 15) {
            for (int i = 0; i < 256; i++) c[0][i] = c[1][i] = c[2][i] = (uint8_t)i;
            d->hue(rows, 256, (uint8_t)shift);
            for (int i = 0; i < 256; i++) assert_true(c[0][i] == i && c[1][i] == i && c[2][i] == i);
            for (int i = 0; i < 256; i++) {
                c[0][i] = (uint8_t)i;
                c[1][i] = (uint8_t)(i / 2);
                c[2][i] = 0;
            }
            d->hue(rows, 251, (uint8_t)shift);
            for (int i = 0; i < 256; i++) {
                const int high = c[0][i] > c[1][i] ? (c[0][i] > c[2][i] ? c[0][i] : c[2][i])
                                                   : (c[1][i] > c[2][i] ? c[1][i] : c[2][i]);
                assert_int_equal(high, i); /* HSV's value is the largest channel */
            }
            assert_int_equal(c[1][255], 127); /* beyond n: untouched */
        }
}

static void sums_and_blurs(void **state)
{
    const leat__color_dsp *d;
    uint8_t px[80], out[80];
    float edge[3][64], middle[3][64], row[128] = {0}, blurred[64], kernel[5] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
    const float *const rows[5] = {row, row + 1, row + 2, row + 3, row + 4};
    for (int i = 0; i < 80; i++) px[i] = (uint8_t)(i * 11);
    for (int i = 0; i < 100; i++) row[i] = (float)(i * 2);
    for (size_t k = 0; (d = kernels(k)); k++) {
        for (int y = 0; y < 3; y++) d->smooth_sums(px + y, edge[y], middle[y], 60);
        out[60] = 0x77;
        d->smooth_join(edge[0], middle[1], edge[2], out, 60);
        assert_int_equal(out[60], 0x77);
        for (int i = 0; i < 60; i++) {
            int sum = 0;
            for (int y = 0; y < 3; y++)
                for (int x = 0; x < 3; x++) sum += px[y + i + x] * (y == 1 && x == 1 ? 5 : 1);
            assert_in_range(out[i] * 26 + 26, 2 * sum, 2 * sum + 52); /* (sum + 6.5) / 13, cut */
        }
        d->blur_row(row, blurred, 60, kernel, 5);
        d->blur_column(rows, out, 60, kernel, 5);
        for (int i = 0; i < 60; i++) {
            assert_true(fabsf(blurred[i] - (float)(2 * (i + 2))) < 1e-3f);
            assert_int_equal(out[i], 2 * (i + 2));
        }
    }
}

static void histograms_count_everything(void **state)
{
    const leat__color_dsp *d;
    uint8_t px[20 * 40];
    uint32_t counts[256];
    for (int i = 0; i < 800; i++) px[i] = (uint8_t)(i % 7 * 40);
    for (size_t k = 0; (d = kernels(k)); k++) {
        uint32_t want[256] = {0}, total = 0;
        for (int y = 0; y < 20; y++)
            for (int x = 0; x < 37; x++) want[px[40 * y + x]]++;
        d->histogram(px, 40, 37, 20, counts);
        assert_memory_equal(counts, want, sizeof counts);
        for (int v = 0; v < 256; v++) total += counts[v];
        assert_int_equal(total, 740);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_luma),
        cmocka_unit_test(blends_cut_and_clip),
        cmocka_unit_test(hue_keeps_value_and_grey),
        cmocka_unit_test(sums_and_blurs),
        cmocka_unit_test(histograms_count_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
