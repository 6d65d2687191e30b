/* SPDX-License-Identifier: Apache-2.0
 *
 * The portable sums of squares (the reference), and the selection of a variant: see energy.h.
 */
#include "dsp/energy.h"

#include "dsp/x86/energy_x86.h"

static void plain_c(uint32_t sum[64], const int16_t *blocks, uint32_t count)
{
    for (uint32_t b = 0; b < count; b++, blocks += 64)
        for (int i = 0; i < 64; i++) sum[i] += (uint32_t)(blocks[i] * blocks[i]);
}

static void area_c(uint32_t sum[64], const leat__tile_coefs *coefs, const leat__idct_area *area)
{
    for (uint32_t y = 0; y < area->high; y++)
        for (uint32_t x = 0; x < area->wide; x++) {
            const uint32_t b = area->first + y * area->pitch + x;
            const int16_t *value = coefs->value + coefs->first[b];
            for (uint64_t mask = coefs->mask[b]; mask != 0; mask &= mask - 1, value++)
                sum[__builtin_ctzll(mask)] += (uint32_t)(*value * *value);
        }
}

static const leat__energy_dsp energy_c = {.isa = "scalar", .plain = plain_c, .area = area_c};

const leat__energy_dsp *leat__energy_dsp_for(uint32_t cpu_flags)
{
    const leat__energy_dsp *best = &energy_c;
#ifdef LEAT_X86
    if (cpu_flags & LEAT__CPU_AVX2) best = &leat__energy_avx2;
    if (cpu_flags & LEAT__CPU_AVX512ICL) best = &leat__energy_avx512;
#endif
    return best;
}
