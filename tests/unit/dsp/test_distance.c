/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "dsp/distance.h"
#include "probe/cpu.h"

enum { DIM = 48, ROWS = 7 };

static const leat__distance_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__distance_dsp_for(flags[i]);
}

static void fill(float *to, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
}

static void distances_are_those_of_doubles(void **state)
{
    float a[DIM], b[ROWS * DIM], out[ROWS];
    fill(a, DIM, 1);
    fill(b, ROWS * DIM, 2);
    memcpy(b + 3 * DIM, a, sizeof a);
    for (size_t k = 0; kernels(k) != NULL; k++) {
        kernels(k)->rows(a, b, DIM, ROWS, out);
        assert_true(out[3] == 0);
        for (int r = 0; r < ROWS; r++) {
            double sum = 0;
            for (int i = 0; i < DIM; i++)
                sum += ((double)a[i] - b[r * DIM + i]) * ((double)a[i] - b[r * DIM + i]);
            assert_true(sum - out[r] < 1e-5 && out[r] - sum < 1e-5);
        }
    }
}

/* The bits are the same for any number of rows, at any address, on any ISA. */
static void all_variants_give_the_same_bits(void **state)
{
    float a[DIM], b[ROWS * DIM + 1], want[ROWS], out[ROWS + 1];
    fill(a, DIM, 3);
    fill(b, ROWS * DIM + 1, 4);
    kernels(0)->rows(a, b + 1, DIM, ROWS, want);
    for (size_t k = 0; kernels(k) != NULL; k++)
        for (size_t n = 0; n <= ROWS; n++) {
            out[n] = -1;
            kernels(k)->rows(a, b + 1, DIM, n, out);
            assert_memory_equal(out, want, n * sizeof *out);
            assert_true(out[n] == -1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_those_of_doubles),
        cmocka_unit_test(all_variants_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
