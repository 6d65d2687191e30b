/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries that exist, are missing, or lack a function.
 */
#include "codec/make_image.h"

#include "codec/library.h"

static void functions_are_found(void **state)
{
    double (*cosine)(double) = NULL;
    const leat__library_symbol symbols[] = {{"cos", &cosine}};
    assert_int_equal(leat__library_load("Test", "libm.so.6", "libc6", symbols, 1, NULL), 0);
    assert_true(cosine(0) == 1);
}

static void what_is_missing_is_named(void **state)
{
    void (*f)(void) = NULL;
    leat_error err = {0};
    const leat__library_symbol symbols[] = {{"no_such_function_", &f}};
    assert_int_equal(leat__library_load("Test", "libnosuch.so.9", "libnosuch9", symbols, 1, &err),
                     LEAT_ENOTSUP);
    assert_string_equal(err.message, "Test images need libnosuch.so.9, which is not installed (on "
                                     "Debian: apt install libnosuch9)");
    assert_int_equal(leat__library_load("Test", "libm.so.6", "libc6", symbols, 1, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "libm.so.6 lacks no_such_function_"));
    assert_null(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
