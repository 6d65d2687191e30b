/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/buf.h"

static void grows_and_ends_with_nul(void **state)
{
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 1 << 20);
    assert_string_equal(leat__buf_str(&b), "");
    for (int i = 0; i < 1000; i++) assert_ok(leat__buf_printf(&b, "%d,", i));
    assert_int_equal(b.len, 3890);
    assert_int_equal(strlen(b.data), b.len);
    assert_memory_equal(b.data, "0,1,2,3", 7);
    assert_ok(leat__buf_zeros(&b, 5));
    assert_int_equal(b.data[b.len - 1], 0);
    leat__buf_clear(&b);
    assert_string_equal(leat__buf_str(&b), "");
    leat__buf_reset(&b);
    assert_no_leaks();
}

static void maximum_is_enforced_and_remembered(void **state)
{
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 100);
    for (int i = 0; i < 10; i++) assert_ok(leat__buf_append(&b, "0123456789", 10));
    assert_code(LEAT_ELIMIT, leat__buf_putc(&b, 'x'));
    assert_int_equal(b.len, 100);
    assert_code(LEAT_ELIMIT, leat__buf_puts(&b, ""));
    assert_code(LEAT_ELIMIT, leat__buf_status(&b));
    leat__buf_clear(&b);
    assert_ok(leat__buf_putc(&b, 'x'));
    assert_code(LEAT_ELIMIT, leat__buf_reserve(&b, SIZE_MAX));
    leat__buf_reset(&b);
    assert_no_leaks();
}

static void take_moves_the_bytes(void **state)
{
    leat__buf b;
    size_t len;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 100);
    leat__buf_puts(&b, "hello");
    char *s = leat__buf_take(&b, &len);
    assert_string_equal(s, "hello");
    assert_int_equal(len, 5);
    assert_int_equal(b.len, 0);
    leat__free(s);
    s = leat__buf_take(&b, NULL);
    assert_string_equal(s, "");
    leat__free(s);
    assert_no_leaks();
}

static void out_of_memory_leaves_the_content(void **state)
{
    leat__buf b;
    (void)state;
    if (!leat__fault_available()) skip();
    leat__buf_init(&b, LEAT__MEM_MISC, 1 << 20);
    leat__buf_puts(&b, "kept");
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    assert_code(LEAT_ENOMEM, leat__buf_zeros(&b, 4096));
    leat__fault_disarm();
    assert_string_equal(leat__buf_str(&b), "kept");
    assert_code(LEAT_ENOMEM, leat__buf_printf(&b, "%d", 1));
    leat__buf_reset(&b);
    leat__fault_arm(LEAT__FAULT_ALLOC, 1, false);
    assert_null(leat__buf_take(&b, NULL));
    leat__fault_disarm();
    leat__buf_reset(&b);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_ends_with_nul),
        cmocka_unit_test(maximum_is_enforced_and_remembered),
        cmocka_unit_test(take_moves_the_bytes),
        cmocka_unit_test(out_of_memory_leaves_the_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
