/* SPDX-License-Identifier: Apache-2.0
 *
 * What instructions this CPU has, and which of them kernels may use. Detection runs once,
 * outside the files compiled for newer ISAs. Tests, the environment (LEAT_CPU_MASK=scalar|
 * avx2|avx512, or a hexadecimal mask of bits to keep) and the API can mask bits away.
 */
#ifndef LEAT_PROBE_CPU_H
#define LEAT_PROBE_CPU_H

#include <stdint.h>

enum {
    LEAT__CPU_SSE42 = 1 << 0,      /* x86-64-v2: the baseline */
    LEAT__CPU_AVX2 = 1 << 1,       /* AVX2, BMI1, BMI2, LZCNT, FMA, F16C, OS support */
    LEAT__CPU_AVX512 = 1 << 2,     /* F, BW, DQ, VL, CD */
    LEAT__CPU_AVX512ICL = 1 << 3,  /* + VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ, IFMA */
    LEAT__CPU_SLOW_PDEP = 1 << 16, /* pdep/pext in microcode (AMD before Zen 3) */
};

uint32_t leat__cpu_detected(void); /* what the machine has */
uint32_t leat__cpu_flags(void);    /* detected and not masked: what kernels look at */

/* Keeps only these bits from now on ("present but slow" bits cannot be masked away); ~0
 * restores. Function tables filled earlier are not changed: see each kernel family. */
void leat__cpu_mask(uint32_t keep);

/* "avx512icl", "avx512", "avx2" or "scalar": highest level of these flags. */
const char *leat__cpu_level(uint32_t flags);
const char *leat__cpu_model(void); /* brand string, "" when unknown */

#endif
