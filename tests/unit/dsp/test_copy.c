/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/rng.h"
#include "dsp/copy.h"
#include "probe/cpu.h"

enum { ROOM = 70000, EDGE = 64 };

static uint8_t from[ROOM + EDGE], to[ROOM + 3 * EDGE], want[sizeof to];

static const leat__copy_dsp *kernels(size_t i)
{
    static const uint32_t flags[] = {LEAT__CPU_SSE42, LEAT__CPU_AVX2, LEAT__CPU_AVX2 | LEAT__CPU_AVX512ICL};
    if (i >= 3 || (leat__cpu_detected() & flags[i]) != flags[i]) return NULL;
    return leat__copy_dsp_for(flags[i]);
}

/* All bytes are copied and no others change, for any length and any alignment of both sides. */
static void copies_are_those_of_memcpy(void **state)
{
    leat__rng rng;
    leat__rng_init(&rng, 5, 0, 0, 0);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)leat__rng_below(&rng, 256);
    for (size_t k = 0; kernels(k) != NULL; k++)
        for (uint32_t round = 0; round < 3000; round++) {
            const size_t bytes = leat__rng_below(&rng, round % 3 == 0 ? ROOM : round % 3 == 1 ? 2048 : 130);
            const size_t at = leat__rng_below(&rng, 2 * EDGE), source = leat__rng_below(&rng, EDGE);
            memset(to, 0xa5, sizeof to);
            memset(want, 0xa5, sizeof want);
            memcpy(want + at, from + source, bytes);
            kernels(k)->out(to + at, from + source, bytes);
            assert_memory_equal(to, want, sizeof to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_those_of_memcpy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
