/* SPDX-License-Identifier: Apache-2.0
 *
 * The primitives of the kernels on a CUDA device; warp_host.h has the same ones for the host. NVRTC compiles
 * this too and has no standard headers, so the types are declared here.
 */
#ifndef LEAT_GPU_KERNELS_WARP_CUDA_H
#define LEAT_GPU_KERNELS_WARP_CUDA_H

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
#else
#include <stdint.h>
#endif

#define DEVICE static __device__ __forceinline__
#define CONSTANT static __constant__ const

#define PER_LANE(type, name) type name
#define PER_LANE_ARRAY(type, name, count) type name[count]
#define AT(name) name
#define LANES for (int lane = (int)(threadIdx.x & 31), once_ = 1; once_; once_ = 0)
#define WARP_SYNC() __syncwarp()

/* Loads 32 bits from bit `bit` of the byte at p on, with two word loads. */
DEVICE uint32_t load_bits(const uint8_t *p, uint32_t bit)
{
    const uint64_t address = (uint64_t)p;
    const uint32_t *const word = (const uint32_t *)(address & ~(uint64_t)3);
    return __funnelshift_r(__ldg(word), __ldg(word + 1), 8 * (uint32_t)(address & 3) + bit);
}

/* Loads 64 bits from bit `bit` of the byte at p on. */
DEVICE uint64_t load_long(const uint8_t *p, uint32_t bit)
{
    const uint64_t address = (uint64_t)p;
    const uint32_t *const word = (const uint32_t *)(address & ~(uint64_t)3);
    const uint32_t shift = 8 * (uint32_t)(address & 3) + bit, middle = __ldg(word + 1);
    const uint32_t low = __funnelshift_r(__ldg(word), middle, shift);
    return (uint64_t)__funnelshift_r(middle, __ldg(word + 2), shift) << 32 | low;
}

/* Bits that one lane reads in sequence; the next one is bit `at` % 32 of `low`. */
typedef struct bit_reader {
    const uint32_t *word; /* the word that `high` came from */
    uint32_t low, high, at;
} bit_reader;

/* Starts reading at bit `pos` of the bytes at p. */
DEVICE bit_reader read_bits_from(const uint8_t *p, uint32_t pos)
{
    const uint64_t address = (uint64_t)(p + (pos >> 3));
    bit_reader r;
    r.word = (const uint32_t *)(address & ~(uint64_t)3) + 1;
    r.at = 8 * (uint32_t)(address & 3) + (pos & 7);
    r.low = __ldg(r.word - 1);
    r.high = __ldg(r.word);
    return r;
}

DEVICE uint32_t next_bits(const bit_reader *r) /* the next 32 bits */
{
    return __funnelshift_r(r->low, r->high, r->at);
}

DEVICE void skip_bits(bit_reader *r, uint32_t count) /* fewer than 32 */
{
    const uint32_t next = r->at + count;
    if ((next ^ r->at) & 32) {
        r->low = r->high;
        r->word++;
        r->high = __ldg(r->word);
    }
    r->at = next;
}

/* 16 bytes that are loaded and stored at once. */
typedef uint4 sixteen;

/* Loads from host memory, which is read once, without displacing other data in the caches. */
DEVICE sixteen load_host(const sixteen *p)
{
    return __ldcs(p);
}

/* Loads eight numbers from an address that is a multiple of 16. */
DEVICE void load_eight(const int16_t *p, int32_t v[8])
{
    const uint4 q = *(const uint4 *)p;
    const uint32_t two[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[2 * i] = (int16_t)two[i];
        v[2 * i + 1] = (int32_t)two[i] >> 16;
    }
}

/* Loads every second of sixteen numbers, from the first or the second on, from an address that is a multiple
 * of 16.
 */
DEVICE void load_halves(const int16_t *p, int second, int32_t v[8])
{
    const uint4 a = ((const uint4 *)p)[0], b = ((const uint4 *)p)[1];
    const uint32_t word[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    const uint32_t which = second ? 0xbb32 : 0x9910; /* two bytes, and twice the sign */
#pragma unroll
    for (int i = 0; i < 8; i++) asm("prmt.b32 %0, %1, 0, %2;" : "=r"(v[i]) : "r"(word[i]), "r"(which));
}

/* Loads four words from an address that is a multiple of 16. */
DEVICE void load_sixteen(const void *p, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    const uint4 q = *(const uint4 *)p;
    *a = q.x;
    *b = q.y;
    *c = q.z;
    *d = q.w;
}

/* Stores eight bytes to an address that is a multiple of 8. */
DEVICE void store_eight(uint8_t *p, uint32_t low, uint32_t high)
{
    *(uint2 *)p = make_uint2(low, high);
}

/* Packs four numbers, clamped to 0 to 255, into four bytes; a is the first. */
DEVICE uint32_t pack_four(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, all;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(d), "r"(c), "r"(0));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
    return all;
}

/* Stores two numbers, clamped to int16, to an address that is a multiple of 4. */
DEVICE void store_two(int16_t *p, int32_t a, int32_t b)
{
    uint32_t both;
    asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(both) : "r"(b), "r"(a));
    *(uint32_t *)p = both;
}

/* Packs four numbers, clamped to -128 to 127, plus 128, into four bytes; a is the first. */
DEVICE uint32_t pack_centred(int32_t a, int32_t b, int32_t c, int32_t d)
{
    uint32_t high, all;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(high) : "r"(d), "r"(c), "r"(0));
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
    return all ^ 0x80808080u;
}

#define bits_of_float(v) __float_as_uint(v)
#define float_of_bits(u) __uint_as_float(u)

/* The low 32 bits of high:low >> by. */
#define shift_right(low, high, by) __funnelshift_r(low, high, by)
/* Selects bytes of a (0 to 3) and b (4 to 7), one per hexadecimal digit of `which`. */
#define choose_bytes(a, b, which) __byte_perm(a, b, which)
/* Returns c plus the sum of the products of four unsigned bytes. */
#define dot_bytes(a, b, c) __dp4a((uint32_t)(a), (uint32_t)(b), (uint32_t)(c))

/* Like dot_bytes, with signed bytes in b. */
DEVICE uint32_t dot_signed(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

#define BLOCK_SYNC() __syncthreads()
#define ANY_OF_BLOCK(x) (__syncthreads_or(x) != 0)
DEVICE void add_shared_(uint32_t *to, uint32_t v)
{
    atomicAdd(to, v);
}
DEVICE void add_shared_(uint64_t *to, uint64_t v)
{
    atomicAdd((unsigned long long *)to, (unsigned long long)v);
}
#define ADD_SHARED(to, v) add_shared_(to, v) /* by any thread of the block */
#define READ_ONLY(p) __ldg(p)                /* nothing writes it while the kernel runs */
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")

#define POPC(x) ((uint32_t)__popc(x))
#define POPCLL(x) ((uint32_t)__popcll(x))
#define ALL_LANES 0xffffffffu

DEVICE uint32_t warp_sum_(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL_LANES, x);
#else
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(ALL_LANES, x, d);
    return x;
#endif
}
#define WARP_SUM(x) warp_sum_(x)

DEVICE uint32_t warp_scan_(uint32_t x)
{
    for (int d = 1; d < 32; d <<= 1) {
        uint32_t below = __shfl_up_sync(ALL_LANES, x, (unsigned)d);
        if ((int)(threadIdx.x & 31) >= d) x += below;
    }
    return x;
}
#define WARP_SCAN(x) ((x) = warp_scan_(x))
#define WARP_BALLOT(x) __ballot_sync(ALL_LANES, (x) != 0)
#define WARP_FROM(x, source) __shfl_sync(ALL_LANES, x, source)

#define REPORT(where, value) atomicMin(where, value)

#endif
