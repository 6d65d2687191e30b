/* SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#include "io/resident.h"

static void a_file_just_written_is_in_the_page_cache(void **state)
{
    char *dir = it_dir();
    leat_error err;
    uint64_t in = 7, size = 7;
    it_make(it_path(dir, "a"), 6 << 20); /* more than one question to the kernel */
    it_make(it_path(dir, "odd"), 5001);
    assert_int_equal(leat__file_resident(it_path(dir, "a"), &in, &size, &err), 0);
    assert_int_equal(in, 6 << 20);
    assert_int_equal(size, 6 << 20);
    assert_int_equal(leat__file_resident(it_path(dir, "odd"), &in, &size, &err), 0);
    assert_int_equal(in, 5001); /* the last page counts as far as the file reaches */
    assert_int_equal(size, 5001);
    it_rmdir(dir);
}

static void an_empty_file_has_no_pages_and_a_missing_one_is_an_error(void **state)
{
    char *dir = it_dir();
    leat_error err;
    uint64_t in = 7, size = 7;
    it_make(it_path(dir, "empty"), 0);
    assert_int_equal(leat__file_resident(it_path(dir, "empty"), &in, &size, &err), 0);
    assert_true(in == 0 && size == 0);
    assert_int_equal(leat__file_resident(it_path(dir, "none"), &in, &size, &err), LEAT_ENOENT);
    it_rmdir(dir);
}

static void refused_mappings_are_errors(void **state)
{
    char *dir = it_dir();
    leat_error err;
    uint64_t in, size;
    it_make(it_path(dir, "a"), 10000);
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; n <= 2; n++) { /* mmap, mincore */
        leat__fault_arm(LEAT__FAULT_MAP, n, true);
        assert_int_not_equal(leat__file_resident(it_path(dir, "a"), &in, &size, &err), 0);
        leat__fault_disarm();
    }
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_just_written_is_in_the_page_cache),
        cmocka_unit_test(an_empty_file_has_no_pages_and_a_missing_one_is_an_error),
        cmocka_unit_test(refused_mappings_are_errors),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
