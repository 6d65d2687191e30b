/* SPDX-License-Identifier: Apache-2.0
 *
 * Named blobs: sorted whatever the order of setting, replaced by name, limits.
 */
#include "packtest.h"

#include "pack/blobs.h"

static void test_sorted(void **state)
{
    leat__blobs b = {0};
    leat_error err;
    const char *const names[] = {"m", "z", "a", "classes/label", "b", "tile-tables", "m"};
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(leat__blobs_set(&b, names[i], "0123456", i, &err), 0);
    assert_int_equal(b.count, 6);
    for (size_t i = 1; i < b.count; i++)
        assert_true(strcmp(b.items[i - 1].name, b.items[i].name) < 0);
    assert_int_equal(leat__blobs_find(&b, "m")->size, 6); /* the last one set */
    assert_null(leat__blobs_find(&b, "nothing"));
    assert_int_equal(leat__blobs_set(&b, "", "", 0, &err), LEAT_EINVAL);
    assert_int_equal(leat__blobs_set(&b, "huge", "", (size_t)2 << 30, &err), LEAT_ELIMIT);
    leat__blobs_reset(&b);
    char *name = leat__blob_classes_name("label");
    assert_string_equal(name, "classes/label");
    leat__free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorted)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
