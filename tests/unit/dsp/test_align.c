/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "dsp/align.h"
#include "probe/cpu.h"

enum { SIDE = LEAT__ALIGN_SIDE, COARSE = LEAT__ALIGN_COARSE };

static const leat__align_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__align_dsp_for(flags[i]);
}

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Makes a smooth picture with some noise. */
static void make_image(leat__align_image *out, float shift, uint32_t seed)
{
    uint8_t thumb[SIDE * SIDE + 1] = {0};
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const float v =
                128 + 60 * sinf(((float)x + shift) * 0.4f) + 50 * cosf((float)y * 0.3f + shift * 0.1f);
            thumb[y * SIDE + x] = (uint8_t)(v + (float)(draw(&seed) % 9));
        }
    kernels(0)->prepare(thumb, out);
}

static void products_are_sums(void **state)
{
    int8_t q[112], codes[9 * 112 + 1];
    int32_t out[10];
    uint32_t seed = 5;
    for (int i = 0; i < 112; i++) q[i] = (int8_t)draw(&seed);
    for (int i = 0; i < 9 * 112 + 1; i++) codes[i] = (int8_t)draw(&seed);
    q[3] = codes[4] = -128;
    for (size_t k = 0; kernels(k) != NULL; k++)
        for (int bytes = 48; bytes <= 112; bytes += 64)
            for (int n = 0; n < 9; n++) {
                out[n] = 7;
                kernels(k)->products(q, codes + 1, (size_t)bytes, (size_t)n, out);
                assert_int_equal(out[n], 7);
                for (int r = 0; r < n; r++) {
                    int32_t sum = 0;
                    for (int i = 0; i < bytes; i++) sum += q[i] * codes[1 + r * bytes + i];
                    assert_int_equal(out[r], sum);
                }
            }
}

static void groups_have_the_products_of_their_codes(void **state)
{
    enum { GROUPS = 7, CODES = GROUPS * LEAT__ALIGN_GROUP, BYTES = LEAT__ALIGN_CODE };
    int8_t q[BYTES], codes[CODES * BYTES];
    uint8_t groups[CODES * BYTES];
    int32_t out[CODES + 1], want[CODES];
    uint32_t seed = 6;
    for (int i = 0; i < BYTES; i++) q[i] = (int8_t)draw(&seed);
    for (int i = 0; i < CODES * BYTES; i++) {
        const int code = i / BYTES, group = code / LEAT__ALIGN_GROUP, byte = i % BYTES;
        codes[i] = code == 1 ? -128 : code == 2 ? 127 : (int8_t)draw(&seed);
        groups[group * LEAT__ALIGN_GROUP * BYTES +
               (byte / 4 * LEAT__ALIGN_GROUP + code % LEAT__ALIGN_GROUP) * 4 + byte % 4] =
            (uint8_t)(codes[i] + 128);
    }
    q[0] = -128;
    kernels(0)->products(q, codes, BYTES, CODES, want);
    for (size_t k = 0; kernels(k) != NULL; k++)
        for (size_t n = 0; n <= GROUPS; n++) {
            out[n * LEAT__ALIGN_GROUP] = 7;
            kernels(k)->group_products(q, groups, n, out);
            assert_memory_equal(out, want, n * LEAT__ALIGN_GROUP * sizeof *out);
            assert_int_equal(out[n * LEAT__ALIGN_GROUP], 7);
        }
}

static void nearer_ones_are_below_the_limit(void **state)
{
    enum { COUNT = 61 };
    int32_t product[COUNT];
    float scale[COUNT], distance[COUNT + 1];
    uint32_t at[COUNT + 1], seed = 9;
    for (int i = 0; i < COUNT; i++) {
        product[i] = (int32_t)(draw(&seed) % 40000);
        scale[i] = 1 / (150 + (float)(draw(&seed) % 100));
    }
    for (size_t k = 0; kernels(k) != NULL; k++)
        for (size_t n = 0; n <= COUNT; n++) {
            const float limit = n % 3 == 0 ? 0.6f : 1 - (float)product[7] * 0.004f * scale[7];
            size_t wanted = 0;
            at[n] = 7;
            distance[n] = 5;
            const size_t found = kernels(k)->nearer(product, scale, n, 0.004f, limit, at, distance);
            for (size_t i = 0; i < n; i++) {
                const float is = 1 - (float)product[i] * 0.004f * scale[i];
                assert_memory_equal(&distance[i], &is, sizeof is);
                if (is < limit) assert_int_equal(at[wanted++], i);
            }
            assert_int_equal(found, wanted);
            assert_true(at[n] == 7 && distance[n] == 5);
        }
}

static void shrinking_averages_pixels(void **state)
{
    leat__align_shrink half = {.n = COARSE, .taps = 2};
    leat__align_image image;
    int16_t out[COARSE * COARSE + COARSE], want[COARSE * COARSE + COARSE];
    double mean = 0;
    make_image(&image, 0, 1);
    for (int i = 0; i < COARSE; i++) {
        half.first[i] = 2 * i;
        half.weight[0][i] = half.weight[1][i] = 0.5f;
    }
    for (int i = 0; i < SIDE * SIDE; i++) mean += image.pixel[i] / (SIDE * SIDE);
    kernels(0)->shrink(&image, &half, want);
    for (int y = 0; y < COARSE; y++)
        for (int x = 0; x < COARSE; x++) {
            const float *p = image.pixel + 2 * y * SIDE + 2 * x;
            const double v = (p[0] + p[1] + p[SIDE] + p[SIDE + 1]) / 4.0 - mean;
            assert_true(fabs(want[y * COARSE + x] - v * LEAT__ALIGN_SCALE) < 0.51);
        }
    for (size_t k = 0; kernels(k) != NULL; k++) {
        int32_t slid[9], plain[9], energy = 0;
        const int32_t got = kernels(k)->shrink(&image, &half, out);
        assert_memory_equal(out, want, COARSE * COARSE * sizeof *out);
        for (int i = 0; i < COARSE * COARSE; i++) energy += out[i] * out[i];
        assert_int_equal(got, energy);
        for (int y = 0; y < COARSE; y++)
            for (int x = 14; x < COARSE; x++) out[y * COARSE + x] = 0;
        kernels(k)->slide(out, want, 14, 2, slid);
        for (int i = 0; i < 9; i++) {
            plain[i] = 0;
            for (int y = 0; y < 14; y++)
                for (int x = 0; x < 14; x++)
                    plain[i] += out[y * COARSE + x] * want[(y + i / 3) * COARSE + x + i % 3];
        }
        assert_memory_equal(slid, plain, sizeof slid);
    }
}

/* Outlines are correlated as in double, whatever is beside both parts. */
static void outlines_are_those_of_doubles(void **state)
{
    int16_t a[COARSE * COARSE + COARSE] = {0}, b[COARSE * COARSE + 2 * COARSE];
    uint32_t seed = 3;
    for (size_t i = 0; i < LEAT_COUNT(b); i++) b[i] = (int16_t)(draw(&seed) % 4081 - 2040);
    for (int n = COARSE; n >= 10; n--) {
        const int16_t *at = b + (COARSE - n) * (COARSE + 1);
        double aa = 200, bb = 200, ab = 0;
        memset(a, 0, sizeof a);
        for (int i = 0; i < n * COARSE; i++)
            if (i % COARSE < n) a[i] = (int16_t)(at[i] / 2 + (int)(draw(&seed) % 900));
        for (int i = 0; i < (n - 1) * COARSE; i++)
            for (int k = 0; k < 2 && i % COARSE < n - 1; k++) {
                const int step = k ? COARSE : 1;
                const double v = a[i + step] - a[i], w = at[i + step] - at[i];
                aa += fabs(v);
                bb += fabs(w);
                ab += copysign(sqrt(fabs(v * w)), v * w);
            }
        const float first = kernels(0)->outlines(a, at, n, 200);
        assert_true(fabs(first - ab / sqrt(aa * bb)) < 1e-4 && first > 0.3f);
        for (size_t k = 1; kernels(k) != NULL; k++) {
            const float got = kernels(k)->outlines(a, at, n, 200);
            assert_memory_equal(&got, &first, sizeof got);
        }
    }
}

/* A thumbnail compared with itself has no remaining difference, and the sums equal those in double. */
static void samples_and_sums_are_those_of_doubles(void **state)
{
    static leat__align_probes p;
    leat__align_image q, d;
    const leat__align_map same = {.p = {0, 1, 0, 0, 0, 1}, .gain = 1},
                          other = {.p = {1.3f, 0.9f, 0.05f, -2, 0.02f, 1.1f}, .gain = 1.2f, .offset = 3};
    float sums[LEAT__ALIGN_SUMS];
    int n;
    make_image(&q, 0, 1);
    make_image(&d, 2, 2);
    assert_true(kernels(0)->sample(&q, &q, &same, &p, &n) == 0 && n == 31 * 31);
    assert_true(kernels(0)->compare(&q, &q, &same, 0) > 0.9999f);
    kernels(0)->sample(&q, &d, &other, &p, &n);
    assert_in_range(n, 600, 1000);
    kernels(0)->sums(&p, 10, sums);
    double xy = 0, vr = 0, count = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double x = i % SIDE - 15.5, y = i / SIDE - 15.5, off = fabs(p.rest[i]);
        const uint32_t inside = p.inside[i / SIDE] >> i % SIDE & 1;
        const double w = inside * (off > 10 ? 100 / (off * off) : 1);
        xy += w * p.gx[i] * p.gy[i] * x * y;
        vr += w * p.value[i] * p.rest[i];
        count += inside;
    }
    assert_true(fabs(sums[LEAT__ALIGN_XY + 4] - xy) < 1e-3 * fabs(xy) + 1);
    assert_true(fabs(sums[LEAT__ALIGN_VR] - vr) < 1e-3 * fabs(vr) + 1);
    assert_true(count == n);
}

static void all_variants_give_the_same_bits(void **state)
{
    static leat__align_probes want, got;
    leat__align_image q, d;
    float sums[2][LEAT__ALIGN_SUMS];
    make_image(&q, 0, 1);
    make_image(&d, 2, 2);
    const float far[] = {0, 5, -40, NAN, 1e30f};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        const leat__align_map m = {
            .p = {far[i], 0.93f, 0.04f, -1.5f, i < 2 ? 0.03f : 0.4f, 1.07f}, .gain = 1.1f, .offset = 2};
        int n, count;
        const float off = kernels(0)->sample(&q, &d, &m, &want, &n);
        const float similarity = kernels(0)->compare(&q, &d, &m, 200);
        assert_true(n == 0 || kernels(0)->compare_sampled(&q, &want, &m, 200) == similarity);
        kernels(0)->sums(&want, 9, sums[0]);
        for (size_t k = 1; kernels(k) != NULL; k++) {
            const float sum = kernels(k)->sample(&q, &d, &m, &got, &count);
            assert_memory_equal(&sum, &off, sizeof off);
            assert_int_equal(count, n);
            assert_memory_equal(got.rest, want.rest, sizeof got.rest);
            assert_memory_equal(got.inside, want.inside, sizeof got.inside);
            if (n == 0) continue;
            kernels(k)->sums(&got, 9, sums[1]);
            assert_memory_equal(sums[1], sums[0], sizeof *sums);
            assert_true(kernels(k)->compare(&q, &d, &m, 200) == similarity);
            assert_true(kernels(k)->compare_sampled(&q, &got, &m, 200) == similarity);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_sums),
        cmocka_unit_test(groups_have_the_products_of_their_codes),
        cmocka_unit_test(nearer_ones_are_below_the_limit),
        cmocka_unit_test(shrinking_averages_pixels),
        cmocka_unit_test(outlines_are_those_of_doubles),
        cmocka_unit_test(samples_and_sums_are_those_of_doubles),
        cmocka_unit_test(all_variants_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
