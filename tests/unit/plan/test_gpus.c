/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

static void cards_are_known_by_their_device_names(void **state)
{
    static const char *const names[][2] = {
        {"NVIDIA A10G", "A10G"},
        {"NVIDIA A10", "A10"},
        {"Tesla T4", "T4"},
        {"a10g", "A10G"},
        {"NVIDIA H200", "H200"},
        {"NVIDIA A100-SXM4-80GB", "A100-80GB"},
        {"NVIDIA A100-SXM4-40GB", "A100"},
        {"Tesla V100-SXM2-32GB", "V100-32GB"},
        {"NVIDIA L40S", "L40S"},
        {"NVIDIA L4", "L4"},
        {"NVIDIA GeForce RTX 4090", "RTX-4090"},
        {"NVIDIA H100 80GB HBM3", "H100"},
        {"NVIDIA H100 PCIe", "H100-PCIe"},
        {"NVIDIA B200", "B200"},
        {"gb200", "GB200"},
        {"NVIDIA H20", "H20"},
        {"NVIDIA RTX A6000", "RTX-A6000"},
        {"4090", "RTX-4090"},
        {"NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"},
        {"rtx5090", "RTX-5090"},
        {"AMD Instinct MI300X OAM", "MI300X"},
        {"NVIDIA GH200 480GB", "GH200"},
        {"A100 80GB", "A100-80GB"},
        {"A100-80GB", "A100-80GB"},
        {"RTX-3090-Ti", "RTX-3090-Ti"},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        const plan_gpu *gpu = leat__plan_gpu_find(names[i][0]);
        assert_non_null(gpu);
        assert_string_equal(gpu->name, names[i][1]);
    }
    assert_null(leat__plan_gpu_find("Quadro"));
    assert_null(leat__plan_gpu_find(""));
}

/* A name that only begins like a known one, or names another amount of memory, is another
 * card. */
static void other_cards_are_refused_with_suggestions(void **state)
{
    static const char *const names[][2] = {
        {"A1000", "A10, A100"},  {"T400", "T4"},
        {"H1000", "H100"},       {"RTX 4090 Laptop GPU", "RTX-4090"},
        {"Quadro RTX 6000", ""}, {"A100-20GB", "A100"},
        {"B20", "B200"},         {"MI300", "MI300X"},
        {"NVIDIA", ""},          {"80GB", ""},
        {"zzzzzz", ""},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        leat_plan_facts f = guide_facts();
        leat_plan p;
        leat_error err = {0};
        assert_null(leat__plan_gpu_find(names[i][0]));
        snprintf(f.gpu, sizeof f.gpu, "%s", names[i][0]);
        f.vram_bytes = 0;
        assert_code(LEAT_EINVAL, leat_plan_make(&f, &p, sizeof p, &err));
        assert_contains(err.message, names[i][0]);
        if (names[i][1][0] != '\0') {
            assert_contains(err.message, "did you mean");
            assert_contains(err.message, names[i][1]);
        }
    }
}

/* Each row is found by its own name, and its figures are in the usual order. */
static void rows_have_a_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(plan_gpu_rows); i++) {
        const plan_gpu *row = &plan_gpu_rows[i], *found = leat__plan_gpu_find(row->name);
        assert_non_null(found);
        assert_string_equal(found->name, row->name);
        assert_in_range(row->vram_mib, 4096, 1 << 20);
        assert_true(row->fp32_tflops > 0 && row->half_tflops > row->fp32_tflops);
        assert_true(row->tf32_tflops == 0 || row->tf32_tflops >= row->fp32_tflops);
        assert_true(row->memory_gbs > 100 && row->h2d_gbs > 1 && row->h2d_gbs < row->memory_gbs);
        assert_true(row->bf16 <= 1 && row->sure <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_known_by_their_device_names),
        cmocka_unit_test(other_cards_are_refused_with_suggestions),
        cmocka_unit_test(rows_have_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
