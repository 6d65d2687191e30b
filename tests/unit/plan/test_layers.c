/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "plan/layers.h"

static leat__tape_sum run(leat__tape *t)
{
    leat__tape_sum sum;
    assert_ok(leat__tape_run(t, &sum));
    leat__tape_reset(t);
    assert_no_leaks();
    return sum;
}

static void convolution_counts_shape_weights_and_work(void **state)
{
    leat__tape t;
    (void)state;
    leat__tape_init(&t, 2, 4, false);
    leat__feature_map x = leat__layer_input(&t, 3, 224, 224);
    leat__feature_map y =
        leat__layer_conv(&t, x, (leat__conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    assert_int_equal(y.height, 112);
    assert_int_equal(y.channels, 64);
    leat__tape_sum sum = run(&t);
    assert_int_equal(sum.params, 64 * 3 * 7 * 7);
    assert_true(sum.macs == 2.0 * 64 * 112 * 112 * 147);
    assert_int_equal(sum.saved_bytes, 0); /* only the batch, which is counted elsewhere */
}

static void autocast_keeps_narrow_copies(void **state)
{
    leat__tape t;
    (void)state;
    leat__tape_init(&t, 2, 2, true);
    leat__feature_map x = leat__layer_input(&t, 8, 1, 1);
    leat__layer_conv(&t, x, (leat__conv){.channels = 4, .kernel = 1, .stride = 1});
    leat__tape_sum sum = run(&t);
    /* the batch in 16 bits and the weights in 16 bits */
    assert_int_equal(sum.saved_bytes, 2 * 8 * 2 + 8 * 4 * 2);
}

static void depthwise_divides_by_groups(void **state)
{
    leat__tape t;
    (void)state;
    leat__tape_init(&t, 1, 4, false);
    leat__feature_map x = leat__layer_input(&t, 96, 56, 56);
    leat__layer_conv(
        &t, x, (leat__conv){.channels = 96, .kernel = 7, .stride = 1, .pad = 3, .groups = 96, .bias = true});
    assert_int_equal(run(&t).params, 96 * 49 + 96);
}

static void norms_keep_input_and_statistics(void **state)
{
    leat__tape t;
    (void)state;
    leat__tape_init(&t, 4, 4, false);
    leat__feature_map x = leat__layer_input(&t, 16, 8, 8);
    x = leat__layer_conv(&t, x, (leat__conv){.channels = 16, .kernel = 1, .stride = 1});
    leat__layer_relu(&t, leat__layer_batch_norm(&t, x));
    /* conv's result for the norm, the norm's result for ReLU, mean and deviation per channel */
    assert_int_equal(run(&t).saved_bytes, 2 * 4 * 16 * 64 * 4 + 16 * 2 * 4);

    leat__tape_init(&t, 4, 2, true);
    x = leat__layer_input(&t, 16, 10, 1);
    x = leat__layer_linear(&t, x, 16);
    leat__layer_gelu(&t, leat__layer_layer_norm(&t, x));
    /* batch and weights in 16 bits; the norm's input widened to 32; statistics per row; GELU's
     * input, the norm's result in 32 bits */
    assert_int_equal(run(&t).saved_bytes,
                     4 * 160 * 2 + (16 * 16 + 16) * 2 + 4 * 160 * 4 + 4 * 10 * 8 + 4 * 160 * 4);
}

static void pooling_keeps_int64_indices(void **state)
{
    leat__tape t;
    (void)state;
    leat__tape_init(&t, 1, 2, false);
    leat__feature_map x = leat__layer_input(&t, 64, 112, 112);
    leat__feature_map y = leat__layer_max_pool(&t, x, 3, 2, 1);
    assert_int_equal(y.height, 56);
    assert_int_equal(run(&t).saved_bytes, 64 * 56 * 56 * 8);
}

static void fused_attention_never_stores_scores(void **state)
{
    uint64_t saved[2];
    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        leat__tape t;
        leat__tape_init(&t, 1, 4, false);
        leat__feature_map x = leat__layer_input(&t, 64, 197, 1);
        leat__feature_map qkv = leat__layer_linear(&t, x, 192);
        leat__layer_attention(&t, qkv, 4, fused != 0);
        leat__tape_sum sum = run(&t);
        saved[fused] = sum.saved_bytes;
        assert_true(sum.macs == 197.0 * 64 * 192 + 2.0 * 197 * 197 * 64);
    }
    uint64_t qkv = 197 * 192 * 4, out = 197 * 64 * 4;
    assert_int_equal(saved[1], qkv + out + 4 * 197 * 4);
    assert_int_equal(saved[0], qkv + 4 * 197 * 197 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolution_counts_shape_weights_and_work),
        cmocka_unit_test(autocast_keeps_narrow_copies),
        cmocka_unit_test(depthwise_divides_by_groups),
        cmocka_unit_test(norms_keep_input_and_statistics),
        cmocka_unit_test(pooling_keeps_int64_indices),
        cmocka_unit_test(fused_attention_never_stores_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
