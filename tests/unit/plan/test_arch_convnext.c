/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_test.h"

#include "plan/arch.h"

static uint64_t per_sample(bool mixed)
{
    uint64_t saved[2];
    for (uint64_t i = 0; i < 2; i++) {
        leat__arch_shape shape = {
            .batch = 2 + i, .image = 224, .classes = 1000, .size = mixed ? 2 : 4, .mixed = mixed};
        leat__tape_sum sum;
        assert_ok(leat__arch_measure(leat__arch_find("convnext_t"), &shape, &sum, NULL));
        saved[i] = sum.saved_bytes;
    }
    return saved[1] - saved[0];
}

/* Per position of c channels and block: the input, the depthwise result, the norm's result,
 * the MLP before and after GELU and its result for the layer scale: 48c in fp32; with
 * autocast 26c (16-bit copies, the norm's input in 32 bits). Statistics: 8 bytes a position. */
static void convnext_t_matches_hand_count(void **state)
{
    static const uint64_t dims[] = {96, 192, 384, 768}, depths[] = {3, 3, 9, 3};
    uint64_t wide = 0, narrow = 0;
    (void)state;
    for (int s = 0; s < 4; s++) {
        uint64_t side = 56 >> s, positions = side * side, c = dims[s];
        wide += depths[s] * positions * (48 * c + 8);
        narrow += depths[s] * positions * (26 * c + 8);
        if (s == 3) continue;
        /* between stages: the norm's input (already kept nowhere else: the sum), statistics,
         * and the norm's result for the convolution */
        wide += positions * (4 * c + 8 + 4 * c);
        narrow += positions * (4 * c + 8 + 2 * c);
    }
    /* the stem's norm keeps the convolution's result, widened under autocast; the pooled map,
     * the last norm and its result, the log-softmax; the batch narrowed */
    uint64_t last = 7 * 7 * 768 * 4 + 8 + 4000;
    wide += 56 * 56 * (96 * 4 + 8) + last + 768 * 4 + 768 * 4;
    narrow += 56 * 56 * (96 * 4 + 8) + last + 768 * 4 + 768 * 2 + 3 * 224 * 224 * 2;
    assert_int_equal(per_sample(false), wide);
    assert_int_equal(per_sample(true), narrow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convnext_t_matches_hand_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
