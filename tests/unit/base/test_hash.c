/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/hash.h"

/* Known values of XXH3 (seed 0) from its published test vectors. */
static void known_values(void **state)
{
    (void)state;
    assert_true(leat__hash64("", 0, 0) == UINT64_C(0x2d06800538d394c2));
    leat__hash128 h = leat__hash128_of("", 0, 0);
    assert_true(h.low == UINT64_C(0x6001c324468d497f) && h.high == UINT64_C(0x99aa06d3014798d8));
}

static void streaming_equals_one_call(void **state)
{
    unsigned char data[5000];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 131 >> 3);
    leat__hasher *h = leat__hasher_open(9);
    assert_non_null(h);
    for (size_t len = 0; len < sizeof data; len += 311) {
        leat__hasher_restart(h, 7);
        for (size_t at = 0; at < len;) {
            size_t step = 1 + at % 97;
            if (step > len - at) step = len - at;
            leat__hasher_update(h, data + at, step);
            at += step;
        }
        leat__hash128 whole = leat__hash128_of(data, len, 7), parts = leat__hasher_value128(h);
        assert_true(whole.low == parts.low && whole.high == parts.high);
        assert_true(leat__hasher_value64(h) == leat__hash64(data, len, 7));
    }
    leat__hasher_close(&h);
    assert_null(h);
    assert_no_leaks();
}

static void mixing_is_a_bijection_on_a_sample(void **state)
{
    (void)state;
    uint64_t changed = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(leat__mix64(i) != leat__mix64(i + 1));
        changed += (uint64_t)__builtin_popcountll(leat__mix64(i) ^ leat__mix64(i ^ 1));
    }
    /* half of 64 bits flip on average */
    assert_in_range(changed, 31000, 33000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(streaming_equals_one_call),
        cmocka_unit_test(mixing_is_a_bijection_on_a_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
