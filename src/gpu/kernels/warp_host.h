/* SPDX-License-Identifier: Apache-2.0
 *
 * The primitives of the kernels as plain C, for tests: the lanes of a warp run in sequence. The code after a
 * LANES is one step of all lanes. Other lanes may read what a lane writes only in a later step, as on a
 * device with __syncwarp in between.
 */
#ifndef LEAT_GPU_KERNELS_WARP_HOST_H
#define LEAT_GPU_KERNELS_WARP_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DEVICE static inline
#define CONSTANT static const

#define PER_LANE(type, name) type name[32]
#define PER_LANE_ARRAY(type, name, count) type name[32][count]
#define AT(name) name[lane]
#define LANES for (int lane = 0; lane < 32; lane++)
#define WARP_SYNC() (void)0

/* Loads 32 bits from bit `bit` of the byte at p on. */
DEVICE uint32_t load_bits(const uint8_t *p, uint32_t bit)
{
    uint64_t word = 0;
    memcpy(&word, p, 5);
    return (uint32_t)(word >> bit);
}

/* Loads 64 bits from bit `bit` of the byte at p on. */
DEVICE uint64_t load_long(const uint8_t *p, uint32_t bit)
{
    return (uint64_t)load_bits(p + 4, bit) << 32 | load_bits(p, bit);
}

/* Bits that one lane reads in sequence. */
typedef struct bit_reader {
    const uint8_t *p;
    uint32_t at;
} bit_reader;

/* Starts reading at bit `pos` of the bytes at p. */
DEVICE bit_reader read_bits_from(const uint8_t *p, uint32_t pos)
{
    return (bit_reader){p, pos};
}

DEVICE uint32_t next_bits(const bit_reader *r) /* the next 32 bits */
{
    return load_bits(r->p + (r->at >> 3), r->at & 7);
}

DEVICE void skip_bits(bit_reader *r, uint32_t count) /* fewer than 32 */
{
    r->at += count;
}

/* 16 bytes that are loaded and stored at once. */
typedef struct sixteen {
    uint32_t word[4];
} sixteen;

DEVICE sixteen load_host(const sixteen *p)
{
    return *p;
}

/* Loads eight numbers from an address that is a multiple of 16. */
DEVICE void load_eight(const int16_t *p, int32_t v[8])
{
    for (int i = 0; i < 8; i++) v[i] = p[i];
}

/* Loads every second of sixteen numbers, from the first or the second on. */
DEVICE void load_halves(const int16_t *p, int second, int32_t v[8])
{
    for (int i = 0; i < 8; i++) v[i] = p[2 * i + second];
}

/* Loads four words from an address that is a multiple of 16. */
DEVICE void load_sixteen(const void *p, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    const uint32_t *const word = p;
    *a = word[0];
    *b = word[1];
    *c = word[2];
    *d = word[3];
}

/* Stores eight bytes to an address that is a multiple of 8. */
DEVICE void store_eight(uint8_t *p, uint32_t low, uint32_t high)
{
    memcpy(p, &low, 4);
    memcpy(p + 4, &high, 4);
}

/* Packs four numbers, clamped to 0 to 255, into four bytes; a is the first. */
DEVICE uint32_t pack_four(int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t v[4] = {a, b, c, d};
    uint32_t all = 0;
    for (int i = 0; i < 4; i++) all |= (uint32_t)(v[i] < 0 ? 0 : v[i] > 255 ? 255 : v[i]) << 8 * i;
    return all;
}

/* Stores two numbers, clamped to int16. */
DEVICE void store_two(int16_t *p, int32_t a, int32_t b)
{
    p[0] = (int16_t)(a < -32768 ? -32768 : a > 32767 ? 32767 : a);
    p[1] = (int16_t)(b < -32768 ? -32768 : b > 32767 ? 32767 : b);
}

/* Packs four numbers, clamped to -128 to 127, plus 128, into four bytes; a is the first. */
DEVICE uint32_t pack_centred(int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t v[4] = {a, b, c, d};
    uint32_t all = 0;
    for (int i = 0; i < 4; i++)
        all |= (uint32_t)((v[i] < -128 ? -128 : v[i] > 127 ? 127 : v[i]) + 128) << 8 * i;
    return all;
}

DEVICE uint32_t bits_of_float(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

DEVICE float float_of_bits(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* The low 32 bits of high:low >> by. */
DEVICE uint32_t shift_right(uint32_t low, uint32_t high, uint32_t by)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> by);
}

/* Selects bytes of a (0 to 3) and b (4 to 7), one per hexadecimal digit of `which`. */
DEVICE uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t which)
{
    const uint64_t both = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= (uint32_t)(both >> 8 * (which >> 4 * i & 7) & 255) << 8 * i;
    return out;
}

/* Returns c plus the sum of the products of four unsigned bytes. */
DEVICE uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t c)
{
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}

/* Like dot_bytes, with signed bytes in b. */
DEVICE uint32_t dot_signed(uint32_t a, uint32_t b, uint32_t c)
{
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (uint32_t)(int32_t)(int8_t)(b >> i & 255);
    return c;
}

#define BLOCK_SYNC() (void)0 /* the block has one thread */
#define ANY_OF_BLOCK(x) (x)
#define ADD_SHARED(to, v) (*(to) += (v))
#define READ_ONLY(p) (*(p))
#define UNROLL
#define NO_UNROLL

#define POPC(x) ((uint32_t)__builtin_popcount(x))
#define POPCLL(x) ((uint32_t)__builtin_popcountll(x))

DEVICE uint32_t warp_sum_(const uint32_t *x)
{
    uint32_t sum = 0;
    for (int i = 0; i < 32; i++) sum += x[i];
    return sum;
}
/* The sum over all lanes; the same in every lane. */
#define WARP_SUM(x) warp_sum_(x)

DEVICE void warp_scan_(uint32_t *x)
{
    for (int i = 1; i < 32; i++) x[i] += x[i - 1];
}
/* Inclusive prefix sum over the lanes. */
#define WARP_SCAN(x) warp_scan_(x)

DEVICE uint32_t warp_ballot_(const uint32_t *x)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(x[i] != 0) << i;
    return bits;
}
/* A bit per lane, set where the value is not 0. */
#define WARP_BALLOT(x) warp_ballot_(x)
/* The value of one lane. */
#define WARP_FROM(x, source) ((x)[source])

#define REPORT(where, value) (*(where) = *(where) < (value) ? *(where) : (value))

#endif
