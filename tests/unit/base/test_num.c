/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/bytes.h"
#include "base/num.h"

static void sums_and_products_check_overflow(void **state)
{
    uint64_t u;
    size_t z;
    (void)state;
    assert_true(leat__add_u64(UINT64_MAX - 1, 1, &u));
    assert_true(u == UINT64_MAX);
    assert_false(leat__add_u64(UINT64_MAX, 1, &u));
    assert_true(leat__mul_u64(1u << 31, 1u << 31, &u));
    assert_false(leat__mul_u64(UINT64_C(1) << 33, UINT64_C(1) << 31, &u));
    assert_false(leat__add_size(SIZE_MAX, 1, &z));
    assert_false(leat__mul_size(SIZE_MAX, 2, &z));
    assert_true(leat__mul_size(0, SIZE_MAX, &z));
}

static void alignment_and_narrowing(void **state)
{
    uint64_t u;
    uint32_t w;
    size_t z;
    (void)state;
    assert_true(leat__align_up_u64(4097, 4096, &u));
    assert_int_equal(u, 8192);
    assert_true(leat__align_up_u64(8192, 4096, &u));
    assert_int_equal(u, 8192);
    assert_false(leat__align_up_u64(UINT64_MAX - 10, 4096, &u));
    assert_true(leat__u64_to_u32(UINT32_MAX, &w));
    assert_false(leat__u64_to_u32(UINT64_C(1) << 32, &w));
    assert_true(leat__u64_to_size(123, &z));
    assert_true(leat__is_pow2(4096));
    assert_false(leat__is_pow2(0));
    assert_false(leat__is_pow2(4097));
    assert_int_equal(leat__ceil_div(10, 3), 4);
    assert_int_equal(leat__ceil_div(9, 3), 3);
    assert_true(leat__ceil_div(UINT64_MAX, 2) == UINT64_C(1) << 63);
}

static void ranges_do_not_wrap(void **state)
{
    (void)state;
    assert_true(leat__range_inside(0, 10, 10));
    assert_true(leat__range_inside(10, 0, 10));
    assert_false(leat__range_inside(1, 10, 10));
    assert_false(leat__range_inside(UINT64_MAX, 2, 10));
    assert_false(leat__range_inside(5, UINT64_MAX, 10));
}

static void bytes_are_little_endian(void **state)
{
    unsigned char raw[9] = {0};
    (void)state;
    leat__store_u32(raw + 1, 0x01020304);
    assert_int_equal(raw[1], 4);
    assert_int_equal(raw[4], 1);
    assert_int_equal(leat__load_u32(raw + 1), 0x01020304);
    leat__store_u64(raw + 1, UINT64_C(0x1122334455667788));
    assert_int_equal(raw[8], 0x11);
    assert_true(leat__load_u64(raw + 1) == UINT64_C(0x1122334455667788));
    leat__store_u16(raw, 0xabcd);
    assert_int_equal(leat__load_u16(raw), 0xabcd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_check_overflow),
        cmocka_unit_test(alignment_and_narrowing),
        cmocka_unit_test(ranges_do_not_wrap),
        cmocka_unit_test(bytes_are_little_endian),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
