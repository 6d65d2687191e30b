/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "plan/arch.h"

static uint64_t saved(const char *name, uint64_t batch, bool mixed, uint64_t image)
{
    leat__arch_shape shape = {
        .batch = batch, .image = image, .classes = 1000, .size = mixed ? 2 : 4, .mixed = mixed};
    leat__tape_sum sum;
    assert_ok(leat__arch_measure(leat__arch_find(name), &shape, &sum, NULL));
    return sum.saved_bytes;
}

/* ResNet-50 at 224: 11,113,984 values leave its convolutions. Each is kept twice (for batch norm,
 * and after ReLU in place), except for the 1,505,280 after the norms of the shortcuts, which the
 * addition does not keep. Also the pooled map with its indices, the pooled vector and the
 * log-softmax. */
static void resnet50_matches_hand_count(void **state)
{
    uint64_t values = 2 * 11113984 - 1505280 + 200704 + 2048 + 1000;
    (void)state;
    assert_int_equal(saved("resnet50", 3, false, 224) - saved("resnet50", 2, false, 224),
                     values * 4 + 200704 * 8);
    /* 16 bits: half of it, indices and log-softmax unchanged, and the batch narrowed */
    assert_int_equal(saved("resnet50", 3, true, 224) - saved("resnet50", 2, true, 224),
                     (values - 1000) * 2 + 1000 * 4 + 200704 * 8 + 3 * 224 * 224 * 2);
}

static void basic_blocks_have_no_fourfold_width(void **state)
{
    (void)state;
    assert_true(saved("resnet34", 8, false, 224) < saved("resnet50", 8, false, 224) / 2);
    /* activations are proportional to the pixels: 448 has four times as many */
    double ratio = (double)(saved("resnet18", 2, false, 448) - saved("resnet18", 1, false, 448)) /
                   (double)(saved("resnet18", 2, false, 224) - saved("resnet18", 1, false, 224));
    assert_near(ratio, 4.0, 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet50_matches_hand_count),
        cmocka_unit_test(basic_blocks_have_no_fourfold_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
