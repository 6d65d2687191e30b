/* SPDX-License-Identifier: Apache-2.0
 *
 * All variants give the same values as plain C, also if the modulo needs its last step, which random
 * numbers do not reach.
 */
#include "leat_test.h"

#include "base/hash.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/sha1.h"
#include "probe/cpu.h"
#include "text/permute.h"

enum { COUNT = 112 };

typedef struct arrays {
    uint64_t a[COUNT + LEAT__PERMUTE_LANES], b[COUNT + LEAT__PERMUTE_LANES];
    uint64_t hash[LEAT__PERMUTE_MOST];
} arrays;

static void draw(arrays *t, uint64_t seed)
{
    leat__rng r;
    leat__rng_init(&r, seed, 0, 0, 0);
    memset(t, 0, sizeof *t);
    for (int i = 0; i < COUNT; i++) {
        t->a[i] = leat__rng_u64(&r) % LEAT__PERMUTE_PRIME | 1;
        t->b[i] = leat__rng_u64(&r) % LEAT__PERMUTE_PRIME;
    }
    for (int i = 0; i < LEAT__PERMUTE_MOST; i++) t->hash[i] = leat__rng_u64(&r);
}

/* Returns the hash whose product with permutation k is `v`. */
static uint64_t hash_for(const arrays *t, int k, uint64_t v)
{
    uint64_t a = t->a[k], inverse = a;
    for (int i = 0; i < 6; i++) inverse *= 2 - a * inverse;
    return (v - t->b[k]) * inverse;
}

static void check(const arrays *t, uint32_t count, uint32_t n, const leat__permute_dsp *dsp)
{
    uint64_t want[COUNT + LEAT__PERMUTE_LANES], got[COUNT + LEAT__PERMUTE_LANES];
    void (*const kernel[2][3])(const uint64_t *, const uint64_t *, uint32_t, const uint64_t *, uint32_t,
                               uint64_t *) = {
        {leat__permute_c.prime, leat__permute_c.prime_low, leat__permute_c.affine},
        {dsp->prime, dsp->prime_low, dsp->affine}};
    for (int k = 0; k < 3; k++) {
        memset(want, 0xff, sizeof want);
        memset(got, 0xff, sizeof got);
        for (int part = 0; part < 2; part++) { /* the second call improves the values of the first */
            kernel[0][k](t->a, t->b, count, t->hash + part * (n / 2), n - n / 2, want);
            kernel[1][k](t->a, t->b, count, t->hash + part * (n / 2), n - n / 2, got);
        }
        for (uint32_t i = 0; i < count; i++) assert_true(want[i] == got[i]);
    }
}

static void each_variant(void (*run)(const leat__permute_dsp *))
{
    const uint32_t keep[] = {0, LEAT__CPU_AVX2, UINT32_MAX};
    for (size_t i = 0; i < LEAT_COUNT(keep); i++) run(leat__permute_dsp_for(leat__cpu_detected() & keep[i]));
}

static void random_values(const leat__permute_dsp *dsp)
{
    static const uint32_t counts[] = {1, 4, 15, 16, 17, 31, 33, COUNT};
    arrays t;
    draw(&t, 1);
    for (size_t i = 0; i < LEAT_COUNT(counts); i++)
        for (uint32_t n = 1; n <= LEAT__PERMUTE_MOST; n = n * 3 + 1) check(&t, counts[i], n, dsp);
    check(&t, COUNT, LEAT__PERMUTE_MOST, dsp);
}

/* Products around every multiple of 2^61, and the smallest values. */
static void edge_values(const leat__permute_dsp *dsp)
{
    arrays t;
    draw(&t, 2);
    for (int q = 0; q < 8; q++)
        for (int64_t near = -20; near <= 20; near++) {
            uint64_t v = ((uint64_t)q << 61) + (uint64_t)near;
            for (int k = 0; k < COUNT; k += 37) {
                t.hash[5] = hash_for(&t, k, v);
                assert_true(t.hash[5] * t.a[k] + t.b[k] == v);
                check(&t, COUNT, 12, dsp);
                t.hash[6] = hash_for(&t, k, v + 3); /* another one near the least */
                check(&t, COUNT, 12, dsp);
            }
        }
}

/* Values close to the least of many hashes, and to 0, where most values are skipped. */
static void close_values(const leat__permute_dsp *dsp)
{
    arrays t;
    uint64_t least[COUNT + LEAT__PERMUTE_LANES];
    draw(&t, 3);
    memset(least, 0xff, sizeof least);
    leat__permute_c.prime(t.a, t.b, COUNT, t.hash, 100, least);
    for (int q = 0; q < 8; q++)
        for (int64_t near = -20; near <= 20; near++)
            for (int k = 0; k < COUNT; k += 37) {
                uint64_t top = (uint64_t)q << 61, old[2] = {t.hash[99], t.hash[103]};
                t.hash[99] = hash_for(&t, k, top + least[k] - (uint64_t)q + (uint64_t)near);
                t.hash[103] =
                    hash_for(&t, k, near % 2 ? top + (uint64_t)near : top + least[k] + (uint64_t)near);
                check(&t, COUNT, 201, dsp);
                t.hash[99] = old[0];
                t.hash[103] = old[1];
            }
}

static void sums(const leat__permute_dsp *dsp)
{
    static uint8_t bytes[4096];
    const uint8_t *text[LEAT__PERMUTE_MOST];
    uint32_t len[LEAT__PERMUTE_MOST];
    uint64_t out[LEAT__PERMUTE_MOST], want = 0, got = 0;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 131 + i / 256);
    for (uint32_t n = 1; n <= 400; n = n * 2 + 3) {
        want = got = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint8_t sum[LEAT__SHA1_BYTES];
            text[i] = bytes + i * 7 % 1000;
            len[i] = i % 151;
            leat__sha1_of(text[i], len[i], sum);
            uint32_t first;
            memcpy(&first, sum, 4);
            want += (uint64_t)first * first; /* the order may change */
        }
        dsp->sha1(text, len, n, out);
        for (uint32_t i = 0; i < n; i++) got += out[i] * out[i];
        assert_true(want == got);
        dsp->xxh64(text, len, n, out);
        for (uint32_t i = 0; i < n; i++) assert_true(out[i] == leat__xxh64(text[i], len[i]));
    }
}

static void random_agree(void **state)
{
    each_variant(random_values);
}

static void edges_agree(void **state)
{
    each_variant(close_values);
    each_variant(edge_values);
}

/* The caller may have set a mode in which denormals are zeros: it must be restored. */
static void denormals_are_kept(void **state)
{
#ifdef __SSE2__
    const unsigned mode = __builtin_ia32_stmxcsr(), zeros = mode | 0x8040;
    __builtin_ia32_ldmxcsr(zeros);
    each_variant(edge_values);
    const unsigned after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode);
    assert_int_equal(after & ~0x3fu, zeros & ~0x3fu); /* without the flags of exceptions */
#endif
}

static void sums_agree(void **state)
{
    each_variant(sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_agree), cmocka_unit_test(edges_agree),
                                       cmocka_unit_test(denormals_are_kept), cmocka_unit_test(sums_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
