/* SPDX-License-Identifier: Apache-2.0
 *
 * The instruction sets of this CPU, and which of them kernels may use. Detection runs once, in a file
 * compiled for the baseline. Two masks can remove levels: the environment
 * (LEAT_CPU_MASK=scalar|avx2|avx512|avx512icl, or a hexadecimal mask of bits to keep) for the whole process,
 * and the API, for tests. An invalid value of the variable masks nothing, and leat__cpu_check reports it.
 * Levels build on each other: masking AVX2 also masks AVX-512. Any thread may call.
 */
#ifndef LEAT_PROBE_CPU_H
#define LEAT_PROBE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    LEAT__CPU_SSE42 = 1 << 0,      /* x86-64-v2: the baseline */
    LEAT__CPU_AVX2 = 1 << 1,       /* AVX2, BMI1, BMI2, LZCNT, FMA, F16C, OS support */
    LEAT__CPU_AVX512 = 1 << 2,     /* F, BW, DQ, VL, CD */
    LEAT__CPU_AVX512ICL = 1 << 3,  /* + VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ, IFMA */
    LEAT__CPU_SLOW_PDEP = 1 << 16, /* pdep/pext in microcode (AMD before Zen 3) */
};

uint32_t leat__cpu_detected(void); /* levels the CPU supports */
uint32_t leat__cpu_flags(void);    /* detected and not masked: kernels use these */

/* Keeps only these bits from now on ("present but slow" bits are always kept); ~0 restores all
 * that the environment allows. Function tables filled earlier do not change: see each kernel
 * family. */
void leat__cpu_mask(uint32_t keep);

/* LEAT_EINVAL when LEAT_CPU_MASK is invalid. Called when decoders are opened and by the command
 * line. */
int leat__cpu_check(leat_error *err) LEAT_MUST_CHECK;

/* Returns the highest level in these flags: "avx512icl", "avx512", "avx2" or "scalar". */
const char *leat__cpu_level(uint32_t flags);
const char *leat__cpu_model(void); /* brand string, "" when unknown */
uint32_t leat__cpu_family(void);   /* by CPUID, such as 26 for AMD's Zen 5; 0 when unknown */

/* For tests with simulated machines. Parses LEAT_CPU_MASK (a word or a number) into bits to keep,
 * false when invalid; turns CPUID results into flags. */
bool leat__cpu_mask_parse(const char *text, uint32_t *keep);

typedef struct leat__cpuid {
    char vendor[13];
    uint32_t leaf1_eax, leaf1_ecx;
    uint32_t leaf7_ebx, leaf7_ecx; /* sub-leaf 0; 0 when there is no leaf 7 */
    uint32_t ext1_ecx;             /* leaf 0x80000001 */
    uint64_t xcr0;                 /* register sets the kernel saves; 0 without OSXSAVE */
} leat__cpuid;
uint32_t leat__cpu_decode(const leat__cpuid *id);

#endif
