/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels' words on a CUDA device; warp_host.h has the same for the host. Also compiled by NVRTC,
 * which has no standard headers: so the types are declared here.
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
#define AT(name) name
#define LANES for (int lane = (int)(threadIdx.x & 31), once_ = 1; once_; once_ = 0)
#define WARP_SYNC() __syncwarp()

/* 32 bits from bit `bit` of the byte at p on: two words that hold them. */
DEVICE uint32_t load_bits(const uint8_t *p, uint32_t bit)
{
    const uint64_t address = (uint64_t)p;
    const uint32_t *const word = (const uint32_t *)(address & ~(uint64_t)3);
    return __funnelshift_r(__ldg(word), __ldg(word + 1), 8 * (uint32_t)(address & 3) + bit);
}
#define UNROLL _Pragma("unroll")

#define POPC(x) ((uint32_t)__popc(x))
#define POPCLL(x) ((uint32_t)__popcll(x))
#define ALL_LANES 0xffffffffu

DEVICE uint32_t warp_sum_(uint32_t x)
{
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(ALL_LANES, x, d);
    return x;
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
