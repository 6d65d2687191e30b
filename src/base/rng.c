/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2,
 * 3", 2011) and the distributions drawn from it. Pure: no state outside the generator.
 *
 * The 128-bit counter of a stream is laid out as
 *      word 0  block number      word 1  sample, low 32 bits
 *      word 2  sample, high 16 bits | op << 16      word 3  epoch
 */
#include "base/rng.h"

#include <math.h>

#include "base/check.h"

#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u
#define WEYL_1 0xBB67AE85u
#define ROUNDS 10

void leat__philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0;
        uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

void leat__rng_init(leat__rng *r, uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t op)
{
    *r = (leat__rng){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, (uint32_t)sample, (uint32_t)((sample >> 32) & 0xffff) | (uint32_t)(op & 0xffff) << 16,
                    (uint32_t)epoch},
        .used = 4,
    };
}

uint32_t leat__rng_u32(leat__rng *r)
{
    LEAT_ASSERT(r->used <= 4);
    if (r->used == 4) {
        leat__philox4x32(r->counter, r->key, r->block);
        r->counter[0]++;
        r->used = 0;
    }
    return r->block[r->used++];
}

uint64_t leat__rng_u64(leat__rng *r)
{
    uint64_t low = leat__rng_u32(r);
    return low | (uint64_t)leat__rng_u32(r) << 32;
}

double leat__rng_double(leat__rng *r)
{
    return (double)(leat__rng_u64(r) >> 11) * 0x1p-53;
}

float leat__rng_float(leat__rng *r)
{
    return (float)(leat__rng_u32(r) >> 8) * 0x1p-24f;
}

double leat__rng_range(leat__rng *r, double lo, double hi)
{
    LEAT_ASSERT(lo <= hi);
    double v = lo + (hi - lo) * leat__rng_double(r);
    return v < hi ? v : lo; /* rounding may reach hi */
}

/* Lemire's multiply-shift with rejection: unbiased, one multiplication in the usual case. */
uint64_t leat__rng_below(leat__rng *r, uint64_t n)
{
    LEAT_ASSERT(n > 0);
    unsigned __int128 m = (unsigned __int128)leat__rng_u64(r) * n;
    if ((uint64_t)m < n) {
        uint64_t threshold = (0 - n) % n;
        while ((uint64_t)m < threshold) m = (unsigned __int128)leat__rng_u64(r) * n;
    }
    return (uint64_t)(m >> 64);
}

double leat__rng_normal(leat__rng *r)
{
    /* Box-Muller; the second value is dropped so that draws never depend on earlier draws */
    double u = 1.0 - leat__rng_double(r); /* (0, 1] */
    double v = leat__rng_double(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Marsaglia and Tsang, with the usual boost for shapes below 1. */
static double gamma_draw(leat__rng *r, double shape)
{
    LEAT_ASSERT(shape > 0);
    if (shape < 1.0) {
        double u = 1.0 - leat__rng_double(r);
        return gamma_draw(r, shape + 1.0) * pow(u, 1.0 / shape);
    }
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = leat__rng_normal(r);
        double v = 1.0 + c * x;
        if (v <= 0.0) continue;
        v = v * v * v;
        double u = 1.0 - leat__rng_double(r);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
}

double leat__rng_beta(leat__rng *r, double a, double b)
{
    LEAT_ASSERT(a > 0 && b > 0);
    double x = gamma_draw(r, a), y = gamma_draw(r, b);
    return x + y > 0.0 ? x / (x + y) : 0.5;
}
