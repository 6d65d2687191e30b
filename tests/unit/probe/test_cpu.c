/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of src/probe/cpu.c: simulated machines through the decoder, masks, and this machine
 * against /proc/cpuinfo.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/cpu.h"

#define BIT(n) (UINT32_C(1) << (n))

enum { REFUSED = 200 }; /* exit code of --print-flags */
enum { ALL_LEVELS = LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL };

/* Ice Lake, with everything. */
static leat__cpuid full_machine(void)
{
    return (leat__cpuid){
        .vendor = "GenuineIntel",
        .leaf1_eax = 0x606a6,
        .leaf1_ecx =
            BIT(0) | BIT(9) | BIT(12) | BIT(13) | BIT(19) | BIT(20) | BIT(23) | BIT(27) | BIT(28) | BIT(29),
        .leaf7_ebx = BIT(3) | BIT(5) | BIT(8) | BIT(16) | BIT(17) | BIT(21) | BIT(28) | BIT(30) | BIT(31),
        .leaf7_ecx = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14),
        .ext1_ecx = BIT(5),
        .xcr0 = 0xe7,
    };
}

static void test_decode_levels(void **state)
{
    leat__cpuid id = full_machine();
    assert_int_equal(leat__cpu_decode(&id), ALL_LEVELS);

    id.leaf7_ecx &= ~BIT(6); /* no VBMI2: Cannon Lake */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512);
    id = full_machine();
    id.leaf7_ebx &= ~BIT(30); /* no BW: Knights Landing */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42 | LEAT__CPU_AVX2);
    id = full_machine();
    id.leaf7_ebx &= ~BIT(5); /* AVX-512 without AVX2 is not a level */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42);
    id = full_machine();
    id.ext1_ecx = 0; /* a hypervisor that hides LZCNT */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42);
    memset(&id, 0, sizeof id);
    assert_int_equal(leat__cpu_decode(&id), 0);
}

static void test_decode_needs_the_kernel(void **state)
{
    leat__cpuid id = full_machine();
    id.xcr0 = 0x07; /* saves YMM, not ZMM */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42 | LEAT__CPU_AVX2);
    id.xcr0 = 0x03;
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42);
    id.xcr0 = 0;
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42);
}

static void test_decode_slow_pdep(void **state)
{
    leat__cpuid id = full_machine();
    id.leaf1_eax = 0x00830f10;                                 /* Zen 2: family 0xf + 0x8 */
    assert_false(leat__cpu_decode(&id) & LEAT__CPU_SLOW_PDEP); /* still Intel */
    strcpy(id.vendor, "AuthenticAMD");
    assert_true(leat__cpu_decode(&id) & LEAT__CPU_SLOW_PDEP);
    id.leaf1_eax = 0x00a20f10; /* Zen 3: family 0x19 */
    assert_false(leat__cpu_decode(&id) & LEAT__CPU_SLOW_PDEP);
    strcpy(id.vendor, "HygonGenuine");
    id.leaf1_eax = 0x00900f02; /* family 0x18 */
    assert_true(leat__cpu_decode(&id) & LEAT__CPU_SLOW_PDEP);
    id.leaf7_ebx &= ~BIT(8); /* no BMI2, so it cannot be slow */
    assert_int_equal(leat__cpu_decode(&id), LEAT__CPU_SSE42);
}

static void test_mask_parse(void **state)
{
    static const struct {
        const char *text;
        uint32_t keep;
    } good[] = {
        {"scalar", LEAT__CPU_SSE42},
        {"avx2", LEAT__CPU_SSE42 | LEAT__CPU_AVX2},
        {"avx512", LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512},
        {"avx512icl", ALL_LEVELS},
        {"0x3", 3},
        {"0XfF", 0xff},
        {"ffffffff", 0xffffffff},
        {"0", 0},
    };
    static const char *const bad[] = {"", "0x", "avx", "AVX2", "fffffffff", "-1", "3 ", "avx2,"};
    uint32_t keep;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(leat__cpu_mask_parse(good[i].text, &keep));
        assert_int_equal(keep, good[i].keep);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(leat__cpu_mask_parse(bad[i], &keep));
    }
}

static void test_level_names(void **state)
{
    assert_string_equal(leat__cpu_level(0), "scalar");
    assert_string_equal(leat__cpu_level(LEAT__CPU_SSE42), "scalar");
    assert_string_equal(leat__cpu_level(3), "avx2");
    assert_string_equal(leat__cpu_level(7), "avx512");
    assert_string_equal(leat__cpu_level(15), "avx512icl");
    assert_string_equal(leat__cpu_level(15 | LEAT__CPU_SLOW_PDEP), "avx512icl");
    assert_string_equal(leat__cpu_level(LEAT__CPU_AVX512), "scalar"); /* a missing level below */
}

static void test_api_mask(void **state)
{
    uint32_t all = leat__cpu_detected();
    uint32_t before = leat__cpu_flags();
    assert_int_equal(before & ~all, 0);

    leat__cpu_mask(0);
    assert_int_equal(leat__cpu_flags(),
                     /* facts and baseline are kept */
                     all & (LEAT__CPU_SSE42 | LEAT__CPU_SLOW_PDEP));
    leat__cpu_mask(LEAT__CPU_SSE42 | LEAT__CPU_AVX512); /* a missing level: AVX-512 goes too */
    assert_string_equal(leat__cpu_level(leat__cpu_flags()), "scalar");
    leat__cpu_mask(LEAT__CPU_SSE42 | LEAT__CPU_AVX2);
    assert_int_equal(leat__cpu_flags() & (LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL), 0);
    leat__cpu_mask(~UINT32_C(0));
    assert_int_equal(leat__cpu_flags(), before);
    assert_int_equal(leat__cpu_detected(), all);
}

/* The environment is read once, so each value gets a fresh process: this program again. */
static int flags_under(const char *mask)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("LEAT_CPU_MASK", mask, 1);
        execl("/proc/self/exe", "test_cpu", "--print-flags", (char *)NULL);
        _exit(255);
    }
    int status = 0;
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_env_mask(void **state)
{
    uint32_t all = leat__cpu_detected() & ALL_LEVELS;
    assert_int_equal(flags_under("scalar"), all & 1);
    assert_int_equal(flags_under("avx2"), all & 3);
    assert_int_equal(flags_under("avx512"), all & 7);
    assert_int_equal(flags_under("0x3"), all & 3);
    assert_int_equal(flags_under(""), all);
    assert_int_equal(flags_under("nonsense"), REFUSED);
    assert_int_equal(flags_under("sse42"), REFUSED);
    assert_int_equal(flags_under("AVX2"), REFUSED);
}

static bool cpuinfo_has(const char *line, const char *flag)
{
    char padded[32];
    snprintf(padded, sizeof padded, " %s ", flag);
    return strstr(line, padded) != NULL;
}

static void test_agrees_with_the_kernel(void **state)
{
    static char line[16384];
    FILE *f = fopen("/proc/cpuinfo", "r");
    bool found = false;
    while (f && fgets(line, sizeof line - 2, f)) {
        if (strncmp(line, "flags", 5) == 0) {
            line[strcspn(line, "\n")] = ' ';
            found = true;
            break;
        }
    }
    if (f) fclose(f);
    if (!found) skip(); /* not x86, or no /proc */

    uint32_t got = leat__cpu_detected();
    bool avx2 = cpuinfo_has(line, "avx2") && cpuinfo_has(line, "bmi2") && cpuinfo_has(line, "fma") &&
                cpuinfo_has(line, "f16c") && cpuinfo_has(line, "abm") && cpuinfo_has(line, "bmi1");
    bool avx512 = avx2 && cpuinfo_has(line, "avx512f") && cpuinfo_has(line, "avx512bw") &&
                  cpuinfo_has(line, "avx512vl") && cpuinfo_has(line, "avx512dq") &&
                  cpuinfo_has(line, "avx512cd");
    bool icl = avx512 && cpuinfo_has(line, "avx512_vbmi2") && cpuinfo_has(line, "avx512vbmi") &&
               cpuinfo_has(line, "avx512_vnni") && cpuinfo_has(line, "avx512_bitalg") &&
               cpuinfo_has(line, "avx512_vpopcntdq") && cpuinfo_has(line, "avx512ifma");
    assert_int_equal((got & LEAT__CPU_SSE42) != 0, cpuinfo_has(line, "sse4_2"));
    assert_int_equal((got & LEAT__CPU_AVX2) != 0, avx2);
    assert_int_equal((got & LEAT__CPU_AVX512) != 0, avx512);
    assert_int_equal((got & LEAT__CPU_AVX512ICL) != 0, icl);
}

static void test_model(void **state)
{
    const char *model = leat__cpu_model();
    assert_non_null(model);
    size_t len = strlen(model);
    assert_true(len < 49);
    if (len > 0) {
        assert_true(model[0] != ' ');
        assert_true(model[len - 1] != ' ');
    }
}

/* The family is the one that the kernel names. */
static void test_family(void **state)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[4096];
    unsigned family = 0;
    while (f && family == 0 && fgets(line, sizeof line, f)) (void)sscanf(line, "cpu family : %u", &family);
    if (f) fclose(f);
    if (family > 0) assert_int_equal(leat__cpu_family(), family);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print-flags") == 0) {
        leat_error err = {0};
        if (leat__cpu_check(&err) != 0) return strstr(err.message, "LEAT_CPU_MASK") ? REFUSED : 1;
        return (int)(leat__cpu_flags() & ALL_LEVELS);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_levels),
        cmocka_unit_test(test_decode_needs_the_kernel),
        cmocka_unit_test(test_decode_slow_pdep),
        cmocka_unit_test(test_mask_parse),
        cmocka_unit_test(test_level_names),
        cmocka_unit_test(test_api_mask),
        cmocka_unit_test(test_env_mask),
        cmocka_unit_test(test_agrees_with_the_kernel),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
