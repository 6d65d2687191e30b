/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "dsp/kernel.h"
#include "probe/cpu.h"

/* Returns the rank of an ISA's name; "avx2 without pdep" is ranked by its first word. -1: unknown. */
static int rank_of(const char *isa)
{
    static const char *const names[] = {"scalar", "avx2", "avx512", "avx512icl"};
    const size_t len = strcspn(isa, " ");
    for (int i = 0; i < 4; i++)
        if (strlen(names[i]) == len && strncmp(names[i], isa, len) == 0) return i;
    return -1;
}

/* More flags never give an older variant, no flags give portable code, and no variant is newer than the
 * flags. */
static void variants_follow_the_flags(void **state)
{
    static const uint32_t levels[] = {
        0,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL,
    };
    const char *family, *isa;
    size_t n = 0;
    for (; leat__kernel_report(n, 0, &family, &isa); n++) {
        int before = 0;
        assert_true(family[0] != '\0');
        assert_string_equal(isa, "scalar");
        for (int level = 0; level < 4; level++) {
            assert_true(leat__kernel_report(n, levels[level], &family, &isa));
            const int rank = rank_of(isa);
            if (rank < before || rank > level) fail_msg("%s: '%s' for level %d", family, isa, level);
            before = rank;
        }
    }
    assert_true(n > 0);
    assert_false(leat__kernel_report(n, 0, &family, &isa));
}

static void names_are_unique(void **state)
{
    const char *a, *b, *isa;
    for (size_t i = 0; leat__kernel_report(i, 0, &a, &isa); i++)
        for (size_t k = 0; k < i && leat__kernel_report(k, 0, &b, &isa); k++) assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variants_follow_the_flags),
        cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
