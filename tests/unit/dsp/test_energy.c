/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/rng.h"
#include "dsp/energy.h"
#include "probe/cpu.h"

enum { BLOCKS = 23 };

static leat__tile_coefs coefs;
static int16_t plain[BLOCKS * 64];

static const leat__energy_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__energy_dsp_for(flags[i]);
}

/* Makes the same blocks in both forms: `share` of 64 coefficients, up to `most`. */
static void fill(uint64_t seed, uint32_t share, uint32_t most)
{
    leat__rng rng;
    uint32_t n = 0;
    leat__rng_init(&rng, seed, 0, 0, 0);
    memset(&coefs, 0, sizeof coefs);
    memset(plain, 0, sizeof plain);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        coefs.first[b] = n;
        for (uint32_t k = 0; k < 64; k++) {
            if (leat__rng_below(&rng, 64) >= share) continue;
            const int16_t v = (int16_t)((int32_t)leat__rng_below(&rng, 2 * most) - (int32_t)most);
            coefs.mask[b] |= UINT64_C(1) << k;
            coefs.value[n++] = v;
            plain[64 * b + leat__tile_order[k]] = v;
        }
    }
    for (int i = 0; i < 64; i++) coefs.value[n + (uint32_t)i] = 99; /* not theirs */
}

/* Rows of blocks of any length, with any number of coefficients, also if sums wrap around. */
static void sums_are_those_of_the_definition(void **state)
{
    static const uint32_t mosts[] = {4, 1024, 32768};
    for (uint64_t round = 0; round < 60; round++) {
        fill(round, (uint32_t)round % 66, mosts[round % 3]);
        const leat__idct_area area = {(uint32_t)round % 3, 1 + (uint32_t)round % 5, 1 + (uint32_t)round % 4,
                                      5};
        uint32_t want[64], found[64];
        for (int i = 0; i < 64; i++) want[i] = (uint32_t)i;
        for (uint32_t y = 0; y < area.high; y++)
            for (uint32_t x = 0; x < area.wide; x++)
                for (int k = 0; k < 64; k++) {
                    const int v = plain[64 * (area.first + y * area.pitch + x) + leat__tile_order[k]];
                    want[k] += (uint32_t)(v * v);
                }
        for (size_t k = 0; kernels(k) != NULL; k++) {
            for (int i = 0; i < 64; i++) found[i] = (uint32_t)i;
            kernels(k)->area(found, &coefs, &area);
            assert_memory_equal(found, want, sizeof want);
        }
        for (uint32_t count = 0; count <= BLOCKS; count++) {
            memset(want, 0, sizeof want);
            for (uint32_t i = 0; i < 64 * count; i++) want[i % 64] += (uint32_t)(plain[i] * plain[i]);
            for (size_t k = 0; kernels(k) != NULL; k++) {
                memset(found, 0, sizeof found);
                kernels(k)->plain(found, plain, count);
                assert_memory_equal(found, want, sizeof want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
