/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "plan/arch.h"

static uint64_t per_sample(bool mixed, bool fused)
{
    uint64_t saved[2];
    for (uint64_t i = 0; i < 2; i++) {
        leat__arch_shape shape = {.batch = 2 + i,
                                  .image = 224,
                                  .classes = 1000,
                                  .size = mixed ? 2 : 4,
                                  .mixed = mixed,
                                  .fused_attention = fused};
        leat__tape_sum sum;
        assert_ok(leat__arch_measure(leat__arch_find("vit_b"), &shape, &sum, NULL));
        saved[i] = sum.saved_bytes;
    }
    return saved[1] - saved[0];
}

/* Per token of width d and block, in bytes: the stream before each norm (4d, twice), the
 * norms' results (2d, twice), q, k, v (6d), the attention's result (2d), the MLP before and
 * after GELU (8d, twice): 36d with autocast, 64d in fp32. */
static void vit_b_matches_hand_count(void **state)
{
    uint64_t d = 768, n = 197;
    uint64_t rows = 12 * (2 * n * 8 + 12 * n * 4); /* statistics, log-sum-exp */
    uint64_t tail = n * d * 4 + n * 8;             /* the last norm */
    (void)state;
    assert_int_equal(per_sample(false, true), 12 * 64 * d * n + rows + tail + d * 4 + 4000);
    assert_int_equal(per_sample(true, true),
                     12 * 36 * d * n + rows + tail + d * 2 + 4000 + 3 * 224 * 224 * 2);
}

static void unfused_attention_pays_for_the_scores(void **state)
{
    uint64_t scores = 12 * 12 * 197 * 197;
    (void)state;
    assert_int_equal(per_sample(false, false) - per_sample(false, true), scores * 4 - 12 * 12 * 197 * 4);
    assert_int_equal(per_sample(true, false) - per_sample(true, true), scores * (4 + 2) - 12 * 12 * 197 * 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vit_b_matches_hand_count),
        cmocka_unit_test(unfused_attention_pays_for_the_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
