/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "dsp/resize.h"
#include "probe/cpu.h"

static int64_t sum_of(const leat__axis *a, uint32_t j)
{
    int64_t sum = 0;
    for (uint32_t t = 0; t < a->taps; t++) sum += a->weight[(size_t)t * a->stride + j];
    return sum;
}

/* The weights of an output sum up to one (within a rounding per tap), its taps are inside the input, and the
 * padding is zero. */
static void weights_are_sound(void **state)
{
    const leat__resize_dsp *dsp = leat__resize_dsp_for(LEAT__CPU_SSE42);
    leat__axis a = {0};
    for (int f = LEAT__FILTER_NEAREST; f < LEAT__FILTER_COUNT; f++)
        for (uint32_t in = 1; in < 400; in += 7)
            for (uint32_t out = 1; out < 300; out += 37) {
                const leat__axis_request q = {.in = in, .out = out, .filter = (leat__filter)f};
                assert_ok(leat__axis_build(&a, &q, dsp, in % 2 == 0, NULL));
                assert_int_equal(a.count, out);
                assert_true(a.stride >= out && a.stride % 16 == 0);
                assert_true(a.hi <= in && a.lo < a.hi);
                for (uint32_t j = 0; j < out; j++) {
                    assert_true(a.first[j] + a.taps_of[j] <= a.hi - a.lo);
                    const int64_t off = sum_of(&a, j) - (1 << LEAT__RESIZE_BITS);
                    assert_true(off <= a.taps && -off <= a.taps);
                    for (uint32_t t = a.taps_of[j]; t < ((a.taps + 3) & ~3u); t++)
                        assert_int_equal(a.weight[(size_t)t * a.stride + j], 0);
                }
            }
    leat__axis_reset(&a);
    assert_no_leaks();
}

/* Bilinear at half the size, computed by hand: taps 1/8 3/8 3/8 1/8. */
static void known_weights(void **state)
{
    leat__axis a = {0};
    const leat__axis_request q = {.in = 8, .out = 4, .filter = LEAT__FILTER_BILINEAR};
    assert_ok(leat__axis_build(&a, &q, leat__resize_dsp_for(LEAT__CPU_SSE42), false, NULL));
    static const int32_t want[4] = {1 << 19, 3 << 19, 3 << 19, 1 << 19};
    assert_int_equal(a.first[1], 1);
    assert_int_equal(a.taps_of[1], 4);
    for (uint32_t t = 0; t < 4; t++) assert_int_equal(a.weight[t * a.stride + 1], want[t]);
    assert_int_equal(a.taps_of[0], 3); /* cut at the border */
    leat__axis_reset(&a);
}

static void unchanged_lengths_are_copies(void **state)
{
    leat__axis a = {0};
    const leat__resize_dsp *dsp = leat__resize_dsp_for(LEAT__CPU_SSE42);
    leat__axis_request q = {.in = 30, .out = 30, .filter = LEAT__FILTER_LANCZOS};
    assert_ok(leat__axis_build(&a, &q, dsp, false, NULL));
    assert_true(a.copy && !a.reverse);
    q.mirror_in = true;
    q.from = 3;
    q.count = 10;
    assert_ok(leat__axis_build(&a, &q, dsp, false, NULL));
    assert_true(!a.copy && a.reverse);
    assert_int_equal(a.lo, 30 - 13);
    assert_int_equal(a.first[0], 9);
    q.mirror_out = true;
    assert_ok(leat__axis_build(&a, &q, dsp, false, NULL));
    assert_true(a.copy);
    leat__axis_reset(&a);
}

static void choice_follows_the_flags(void **state)
{
    assert_string_equal(leat__resize_dsp_for(0)->isa, "scalar");
    assert_string_equal(leat__resize_dsp_for(LEAT__CPU_SSE42)->isa, "scalar");
#ifdef LEAT_X86
    assert_string_equal(leat__resize_dsp_for(LEAT__CPU_AVX2)->isa, "avx2");
    assert_string_equal(leat__resize_dsp_for(LEAT__CPU_AVX2 | LEAT__CPU_AVX512)->isa, "avx2");
    assert_string_equal(leat__resize_dsp_for(LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL)->isa, "avx512");
#endif
}

static void bad_requests_and_lack_of_memory(void **state)
{
    leat__axis a = {0};
    const leat__resize_dsp *dsp = leat__resize_dsp_for(LEAT__CPU_SSE42);
    static const leat__axis_request bad[] = {
        {.in = 0, .out = 4},
        {.in = 4, .out = 0},
        {.in = LEAT__RESIZE_MAX + 1, .out = 4},
        {.in = 4, .out = 4, .from = 2, .count = 3},
        {.in = 4, .out = 4, .box_lo = 3, .box_hi = 2},
        {.in = 4, .out = 4, .box_hi = 5},
        {.in = 4, .out = 2, .filter = LEAT__FILTER_COUNT},
    };
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        leat_error err = {0};
        assert_code(LEAT_EINVAL, leat__axis_build(&a, &bad[i], dsp, false, &err));
        assert_true(err.message[0] != '\0');
    }
    if (leat__fault_available())
        for (uint64_t n = 1; n <= 4; n++) {
            const leat__axis_request q = {.in = 400, .out = 50, .filter = LEAT__FILTER_BICUBIC};
            leat__axis fresh = {0};
            leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
            assert_code(LEAT_ENOMEM, leat__axis_build(&fresh, &q, dsp, false, NULL));
            leat__fault_disarm();
            leat__axis_reset(&fresh);
        }
    leat__axis_reset(&a);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_sound),
        cmocka_unit_test(known_weights),
        cmocka_unit_test(unchanged_lengths_are_copies),
        cmocka_unit_test(choice_follows_the_flags),
        cmocka_unit_test(bad_requests_and_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
