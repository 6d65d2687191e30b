/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "plan/arch.h"

static leat__tape_sum measure(const char *name, uint64_t batch, bool mixed)
{
    leat__arch_shape shape = {.batch = batch,
                              .image = 224,
                              .classes = 1000,
                              .size = mixed ? 2 : 4,
                              .mixed = mixed,
                              .fused_attention = true};
    leat__tape_sum sum;
    leat_error err = {0};
    const leat__arch *arch = leat__arch_find(name);
    assert_non_null(arch);
    assert_ok(leat__arch_measure(arch, &shape, &sum, &err));
    return sum;
}

/* Parameters and multiply-adds that the model zoos publish for 1000 classes at 224 pixels. */
static void every_family_has_its_published_size(void **state)
{
    static const struct {
        const char *name;
        uint64_t params;
        double gmacs;
    } known[] = {
        {"resnet18", 11689512, 1.81},    {"resnet34", 21797672, 3.66},   {"resnet50", 25557032, 4.09},
        {"resnet101", 44549160, 7.80},   {"resnet152", 60192808, 11.51}, {"vit_s", 22050664, 4.60},
        {"vit_b", 86567656, 17.56},      {"vit_b_32", 88224232, 4.41},   {"vit_l", 304326632, 61.55},
        {"vit_l_32", 306535400, 15.38},  {"convnext_t", 28589128, 4.46}, {"convnext_s", 50223688, 8.68},
        {"convnext_b", 88591464, 15.36},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(known); i++) {
        leat__tape_sum sum = measure(known[i].name, 1, false);
        assert_int_equal(sum.params, known[i].params);
        assert_near(sum.macs / 1e9, known[i].gmacs, 0.006);
    }
    assert_no_leaks();
}

static void memory_is_linear_in_the_batch(void **state)
{
    (void)state;
    for (uint32_t i = 0; leat__arch_at(i)->kind != LEAT__ARCH_GENERIC; i++) {
        const char *name = leat__arch_at(i)->name;
        uint64_t a = measure(name, 8, true).saved_bytes, b = measure(name, 16, true).saved_bytes,
                 c = measure(name, 24, true).saved_bytes;
        assert_int_equal(b - a, c - b);
        assert_true(measure(name, 8, true).peak_bytes >= a);
        assert_true(measure(name, 16, false).saved_bytes - measure(name, 8, false).saved_bytes > b - a);
    }
}

static void names_are_found_as_people_write_them(void **state)
{
    static const char *const spelled[][2] = {
        {"ResNet-50", "resnet50"},
        {"resnet_50", "resnet50"},
        {"ViT-B/16", "vit_b"},
        {"vit_base_patch16", NULL},
        {"vit-l-32", "vit_l_32"},
        {"ConvNeXt-Tiny", "convnext_t"},
        {"convnext base", "convnext_b"},
        {"ViT-Small/16", "vit_s"},
        {"resnet", NULL},
        {"", NULL},
    };
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(spelled); i++) {
        const leat__arch *arch = leat__arch_find(spelled[i][0]);
        if (spelled[i][1] == NULL) assert_null(arch);
        else assert_string_equal(arch->name, spelled[i][1]);
    }
    assert_string_equal(leat__arch_nearest("resnet51"), "resnet50");
}

static void generic_takes_what_it_is_given(void **state)
{
    leat__arch_shape shape = {.batch = 10, .params = 1000, .activation_bytes = 5000, .macs = 3};
    leat__tape_sum sum;
    (void)state;
    assert_ok(leat__arch_measure(leat__arch_find("generic"), &shape, &sum, NULL));
    assert_int_equal(sum.params, 1000);
    assert_int_equal(sum.peak_bytes, 54000);
    shape.activation_bytes = UINT64_MAX / 2;
    assert_code(LEAT_EOVERFLOW, leat__arch_measure(leat__arch_find("generic"), &shape, &sum, NULL));
}

static void images_too_small_are_refused(void **state)
{
    leat__arch_shape shape = {.batch = 1, .image = 8, .classes = 10, .size = 4};
    leat__tape_sum sum;
    leat_error err = {0};
    (void)state;
    assert_code(LEAT_EINVAL, leat__arch_measure(leat__arch_find("vit_b"), &shape, &sum, &err));
    assert_contains(err.message, "ViT-B/16");
    assert_code(LEAT_EINVAL, leat__arch_measure(leat__arch_find("resnet18"), &shape, &sum, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_its_published_size),
        cmocka_unit_test(memory_is_linear_in_the_batch),
        cmocka_unit_test(names_are_found_as_people_write_them),
        cmocka_unit_test(generic_takes_what_it_is_given),
        cmocka_unit_test(images_too_small_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
