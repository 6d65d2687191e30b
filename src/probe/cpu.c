/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU detection by CPUID and XGETBV. Owns the detected flags (written once) and the mask.
 * Compiled for the baseline only, so it runs on every machine. Any thread may call.
 */
#include "probe/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/thread.h"

#ifdef LEAT_X86
#include <cpuid.h>
#endif

/* Flags that are never masked. */
#define STICKY_BITS ((uint32_t)LEAT__CPU_SLOW_PDEP)

static struct {
    leat__once once;
    uint32_t detected;
    uint32_t env_keep;
    char model[49];
    uint32_t family;
    char bad_mask[32]; /* an invalid value of LEAT_CPU_MASK, or "" */
} cpu = {.once = LEAT__ONCE_INIT, .env_keep = ~UINT32_C(0)};

static _Atomic uint32_t api_keep = ~UINT32_C(0);

static const struct level {
    const char *name;
    uint32_t bit; /* the bit that this level adds to the previous one */
} levels[] = {
    {"scalar", LEAT__CPU_SSE42},
    {"avx2", LEAT__CPU_AVX2},
    {"avx512", LEAT__CPU_AVX512},
    {"avx512icl", LEAT__CPU_AVX512ICL},
};

/* Drops every level whose predecessor is missing. */
static uint32_t close_levels(uint32_t flags)
{
    uint32_t kept = flags & STICKY_BITS;
    for (size_t i = 0; i < LEAT_COUNT(levels) && (flags & levels[i].bit); i++) {
        kept |= levels[i].bit;
    }
    return kept;
}

static bool has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

#define BIT(n) (UINT32_C(1) << (n))

static uint32_t family(uint32_t leaf1_eax)
{
    uint32_t base = leaf1_eax >> 8 & 15;
    return base == 15 ? base + (leaf1_eax >> 20 & 255) : base;
}

uint32_t leat__cpu_decode(const leat__cpuid *id)
{
    enum { XMM_YMM = 0x06, XMM_YMM_ZMM = 0xe6 };
    uint32_t flags = 0;

    /* SSE3, SSSE3, CX16, SSE4.1, SSE4.2, POPCNT */
    if (has(id->leaf1_ecx, BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23))) {
        flags |= LEAT__CPU_SSE42;
    }
    /* FMA, AVX, F16C; BMI1, AVX2, BMI2; LZCNT */
    if ((id->xcr0 & XMM_YMM) == XMM_YMM && has(id->leaf1_ecx, BIT(12) | BIT(28) | BIT(29)) &&
        has(id->leaf7_ebx, BIT(3) | BIT(5) | BIT(8)) && has(id->ext1_ecx, BIT(5))) {
        flags |= LEAT__CPU_AVX2;
    }
    /* F, DQ, CD, BW, VL */
    if ((id->xcr0 & XMM_YMM_ZMM) == XMM_YMM_ZMM &&
        has(id->leaf7_ebx, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31))) {
        flags |= LEAT__CPU_AVX512;
        /* IFMA; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ */
        if (has(id->leaf7_ebx, BIT(21)) &&
            has(id->leaf7_ecx, BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14))) {
            flags |= LEAT__CPU_AVX512ICL;
        }
    }
    /* Zen 1 and 2 (and Hygon's Zen 1) run pdep in microcode, up to 290 cycles; Zen 3 is
     * family 0x19. */
    bool amd = strcmp(id->vendor, "AuthenticAMD") == 0 || strcmp(id->vendor, "HygonGenuine") == 0;
    if (amd && has(id->leaf7_ebx, BIT(8)) && family(id->leaf1_eax) < 0x19) {
        flags |= LEAT__CPU_SLOW_PDEP;
    }
    return close_levels(flags);
}

bool leat__cpu_mask_parse(const char *text, uint32_t *keep)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < LEAT_COUNT(levels); i++) {
        bits |= levels[i].bit;
        if (strcmp(text, levels[i].name) == 0) {
            *keep = bits;
            return true;
        }
    }
    if (leat__str_starts(text, "0x") || leat__str_starts(text, "0X")) text += 2;
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 8 || text[digits] != '\0') return false;
    *keep = (uint32_t)strtoul(text, NULL, 16);
    return true;
}

#ifdef LEAT_X86
static uint64_t read_xcr0(void)
{
    /* Inline assembly, because the intrinsic would need this file compiled with -mxsave. */
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static void read_cpuid(leat__cpuid *id)
{
    uint32_t a, b, c, d;
    memset(id, 0, sizeof *id);
    if (!__get_cpuid(0, &a, &b, &c, &d)) return;
    memcpy(id->vendor, &b, 4);
    memcpy(id->vendor + 4, &d, 4);
    memcpy(id->vendor + 8, &c, 4);
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        id->leaf1_eax = a;
        id->leaf1_ecx = c;
        if (c & BIT(27)) id->xcr0 = read_xcr0();
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        id->leaf7_ebx = b;
        id->leaf7_ecx = c;
    }
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) id->ext1_ecx = c;
}

/* The brand string is padded with blanks, on some Intel CPUs at the front. */
static void read_model(char model[49])
{
    char brand[49] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t r[4];
        if (!__get_cpuid(0x80000002u + i, &r[0], &r[1], &r[2], &r[3])) return;
        memcpy(brand + 16 * i, r, sizeof r);
    }
    const char *start = brand + strspn(brand, " ");
    size_t len = strlen(start);
    while (len > 0 && start[len - 1] == ' ') len--;
    memcpy(model, start, len);
    model[len] = '\0';
}
#endif

static void detect(void)
{
#ifdef LEAT_X86
    leat__cpuid id;
    read_cpuid(&id);
    cpu.detected = leat__cpu_decode(&id);
    read_model(cpu.model);
    cpu.family = family(id.leaf1_eax);
#endif
    const char *text = getenv("LEAT_CPU_MASK");
    if (!text || text[0] == '\0' || leat__cpu_mask_parse(text, &cpu.env_keep)) return;
    snprintf(cpu.bad_mask, sizeof cpu.bad_mask, "%s", text);
}

int leat__cpu_check(leat_error *err)
{
    leat__once_run(&cpu.once, detect);
    if (cpu.bad_mask[0] == '\0') return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "LEAT_CPU_MASK: \"%s\" is not scalar, avx2, avx512, "
                      "avx512icl or a hexadecimal mask",
                      cpu.bad_mask);
}

uint32_t leat__cpu_detected(void)
{
    leat__once_run(&cpu.once, detect);
    return cpu.detected;
}

uint32_t leat__cpu_flags(void)
{
    uint32_t detected = leat__cpu_detected();
    uint32_t keep = cpu.env_keep & atomic_load_explicit(&api_keep, memory_order_relaxed);
    /* Every file is compiled for the baseline, so it cannot be masked. */
    return close_levels(detected & (keep | STICKY_BITS | LEAT__CPU_SSE42));
}

void leat__cpu_mask(uint32_t keep)
{
    atomic_store_explicit(&api_keep, keep, memory_order_relaxed);
}

const char *leat__cpu_level(uint32_t flags)
{
    const char *name = levels[0].name;
    flags = close_levels(flags);
    for (size_t i = 0; i < LEAT_COUNT(levels); i++) {
        if (flags & levels[i].bit) name = levels[i].name;
    }
    return name;
}

const char *leat__cpu_model(void)
{
    leat__once_run(&cpu.once, detect);
    return cpu.model;
}

uint32_t leat__cpu_family(void)
{
    leat__once_run(&cpu.once, detect);
    return cpu.family;
}
