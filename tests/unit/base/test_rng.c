/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/rng.h"

/* Known-answer vectors of Philox 4x32-10, as published with Random123. */
static void known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t out[4];
    (void)state;
    for (size_t i = 0; i < sizeof kat / sizeof kat[0]; i++) {
        leat__philox4x32(kat[i].counter, kat[i].key, out);
        assert_memory_equal(out, kat[i].out, sizeof out);
    }
}

static void stream_depends_only_on_its_ids(void **state)
{
    static const uint64_t names[][4] = {{1, 0, 5, 0},
                                        {2, 0, 5, 0},
                                        {1, 1, 5, 0},
                                        {1, 0, 6, 0},
                                        {1, 0, 5, 1},
                                        {1, 0, 5 + (UINT64_C(1) << 40), 0},
                                        {1 + (UINT64_C(1) << 40), 0, 5, 0}};
    uint64_t first[7];
    (void)state;
    for (size_t i = 0; i < 7; i++) {
        leat__rng a, b;
        leat__rng_init(&a, names[i][0], names[i][1], names[i][2], (uint32_t)names[i][3]);
        leat__rng_init(&b, names[i][0], names[i][1], names[i][2], (uint32_t)names[i][3]);
        for (int k = 0; k < 20; k++) assert_true(leat__rng_u64(&a) == leat__rng_u64(&b));
        leat__rng_init(&a, names[i][0], names[i][1], names[i][2], (uint32_t)names[i][3]);
        first[i] = leat__rng_u64(&a);
        for (size_t j = 0; j < i; j++) assert_true(first[i] != first[j]);
    }
}

static void below_is_uniform(void **state)
{
    enum { N = 7, DRAWS = 70000 };
    unsigned seen[N] = {0};
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 42, 0, 0, 0);
    for (int i = 0; i < DRAWS; i++) seen[leat__rng_below(&r, N)]++;
    double chi = 0;
    for (int i = 0; i < N; i++) chi += pow(seen[i] - DRAWS / (double)N, 2) / (DRAWS / (double)N);
    assert_true(chi < 22.5); /* 6 degrees of freedom, p = 0.001 */
    for (int i = 0; i < 100; i++) assert_int_equal(leat__rng_below(&r, 1), 0);
    /* a range that rejects often: more than half of 2^64 */
    for (int i = 0; i < 1000; i++)
        assert_true(leat__rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
}

static void distributions_have_their_moments(void **state)
{
    enum { DRAWS = 200000 };
    double sum = 0, square = 0, low = 1, high = 0, beta = 0, small = 0;
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 7, 1, 2, 3);
    for (int i = 0; i < DRAWS; i++) {
        double n = leat__rng_normal(&r), u = leat__rng_double(&r);
        sum += n;
        square += n * n;
        low = fmin(low, u);
        high = fmax(high, u);
        beta += leat__rng_beta(&r, 2, 5);
        small += leat__rng_beta(&r, 0.2, 0.2);
        float f = leat__rng_float(&r);
        assert_true(f >= 0 && f < 1);
        double x = leat__rng_range(&r, -3, 2);
        assert_true(x >= -3 && x < 2);
    }
    assert_true(fabs(sum / DRAWS) < 0.01);
    assert_true(fabs(square / DRAWS - 1) < 0.02);
    assert_true(low >= 0 && low < 1e-4 && high < 1 && high > 1 - 1e-4);
    assert_true(fabs(beta / DRAWS - 2.0 / 7) < 0.005);
    assert_true(fabs(small / DRAWS - 0.5) < 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(stream_depends_only_on_its_ids),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(distributions_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
