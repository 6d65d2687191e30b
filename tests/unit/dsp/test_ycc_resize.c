/* SPDX-License-Identifier: Apache-2.0
 *
 * 8-bit weights: near the exact ones they are derived from, with the correct sum, and refused if 8 bits are
 * not enough. Colours: near libjpeg's.
 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "dsp/ycc.h"
#include "dsp/ycc_resize.h"
#include "probe/cpu.h"

static bool build(leat__ycc_axis *a, const leat__axis_request *q)
{
    const uint32_t flags = leat__cpu_flags();
    bool fits = false;
    assert_ok(leat__ycc_axis_build(a, q, leat__ycc_resize_dsp_for(flags), flags, &fits, NULL));
    return fits;
}

/* Returns the weight of an input for output j, wherever its window starts. */
static double weight(const leat__ycc_axis *a, uint32_t j, uint32_t input)
{
    const uint32_t t = input - a->first[j];
    if (input < a->first[j] || t >= 2 * a->pairs) return 0;
    const uint16_t both = a->weight[(size_t)(t / 2) * a->stride + j];
    return (t % 2 ? both >> 8 : both & 255) / 256.0;
}

static void weights_are_near_the_exact_ones(void **state)
{
    const leat__resize_dsp *const exact_dsp = leat__resize_dsp_for(LEAT__CPU_SSE42);
    const leat__axis_request cases[] = {
        {.in = 300, .out = 224, .filter = LEAT__FILTER_BILINEAR},
        {.in = 150, .out = 224, .filter = LEAT__FILTER_BILINEAR, .mirror_in = true},
        {.in = 151, .out = 224, .box_lo = 0.5f, .box_hi = 150.5f, .filter = LEAT__FILTER_BILINEAR},
        {.in = 1000, .out = 100, .from = 20, .count = 50, .filter = LEAT__FILTER_HAMMING},
        {.in = 224, .out = 224, .filter = LEAT__FILTER_BILINEAR, .mirror_out = true},
        {.in = 400, .out = 130, .filter = LEAT__FILTER_BOX}};
    leat__ycc_axis a = {0};
    leat__axis e = {0};
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        assert_true(build(&a, &cases[i]));
        assert_ok(leat__axis_build(&e, &cases[i], exact_dsp, false, NULL));
        assert_int_equal(a.lo, e.lo);
        assert_int_equal(a.width, e.hi - e.lo);
        assert_int_equal(a.count, e.count);
        for (uint32_t j = 0; j < e.count; j++) {
            double sum = 0;
            for (uint32_t x = 0; x < a.width; x++) {
                const uint32_t t = x - e.first[j];
                const double want = x >= e.first[j] && t < e.taps_of[j] ? e.weight[(size_t)t * e.stride + j] /
                                                                              (double)(1 << LEAT__RESIZE_BITS)
                                                                        : 0;
                assert_true(fabs(weight(&a, j, x) - want) <= 1 / 256.0 + 1e-6);
                sum += weight(&a, j, x);
            }
            assert_true(sum == 1.0);
        }
    }
    leat__axis_reset(&e);
    leat__ycc_axis_reset(&a);
    assert_no_leaks();
}

static void says_what_is_not_for_8_bits(void **state)
{
    leat__ycc_axis a = {0};
    assert_false(build(&a, &(leat__axis_request){.in = 300, .out = 224, .filter = LEAT__FILTER_BICUBIC}));
    assert_false(build(&a, &(leat__axis_request){.in = 300, .out = 224, .filter = LEAT__FILTER_NEAREST}));
    assert_false(build(&a, &(leat__axis_request){.in = 9000, .out = 100, .filter = LEAT__FILTER_BILINEAR}));
    assert_false(build(&a, &(leat__axis_request){.in = 1, .out = 4, .filter = LEAT__FILTER_BILINEAR}));
    assert_true(build(&a, &(leat__axis_request){.in = 2, .out = 4, .filter = LEAT__FILTER_BILINEAR}));
    leat__ycc_axis_reset(&a);
    assert_no_leaks();
}

/* Flat rows of every colour on a coarse grid: at most one level from the exact conversion. */
static void colours_are_near_libjpegs(void **state)
{
    enum { N = 64 };
    const leat__ycc_resize_dsp *const dsp = leat__ycc_resize_dsp_for(leat__cpu_flags());
    const uint16_t half = 128 | 128 << 8;
    leat__ycc_dsp exact;
    leat__ycc_init(&exact, LEAT__CPU_SSE42);
    for (int v = 0; v < 16 * 16 * 16; v++) {
        const uint8_t level[3] = {(uint8_t)(v % 16 * 17), (uint8_t)(v / 16 % 16 * 17),
                                  (uint8_t)(v / 256 * 17)};
        _Alignas(64) int8_t row[3][N];
        _Alignas(64) uint8_t plain[3][N], want[3][N], got[3][N];
        leat__ycc_taps comp[3];
        uint8_t *const to[3] = {got[0], got[1], got[2]};
        for (int c = 0; c < 3; c++) {
            memset(row[c], level[c] - 128, N);
            memset(plain[c], level[c], N);
            comp[c] = (leat__ycc_taps){row[c], 0, &half, 1, 1}; /* the same row twice */
        }
        exact.rgb(want[0], want[1], want[2], plain[0], plain[1], plain[2], N);
        dsp->colour(comp, to, N);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < N; i++) assert_true(abs(want[c][i] - got[c][i]) <= 1);
        dsp->grey(comp, got[0], N);
        for (int i = 0; i < N; i++) assert_int_equal(got[0][i], level[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_near_the_exact_ones),
        cmocka_unit_test(says_what_is_not_for_8_bits),
        cmocka_unit_test(colours_are_near_libjpegs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
