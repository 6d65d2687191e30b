/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists have their names when they are complete, and replace only lists of their kind.
 */
#include "iotest.h"

#include <sys/stat.h>

#include "io/result_file.h"

#define HEAD "key,"

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void assert_text(const char *path, const char *text)
{
    char *data;
    size_t len;
    assert_int_equal(leat__file_load(path, 1u << 20, 1, &data, &len, NULL), 0);
    assert_string_equal(data, text);
    leat__free(data);
}

static void what_exists_is_spared(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "list.csv");
    leat_error err;
    assert_int_equal(leat__result_file_check(NULL, HEAD, false, false, &err), 0);
    assert_int_equal(leat__result_file_check(path, HEAD, false, false, &err), 0);
    assert_int_equal(leat__result_file_check("s3://bucket/list.csv", HEAD, true, false, &err), LEAT_ENOTSUP);
    assert_int_equal(leat__result_file_check(dir, HEAD, true, false, &err), LEAT_EINVAL);
    put(path, "key,a\n");
    assert_int_equal(leat__result_file_check(path, HEAD, false, false, &err), LEAT_EEXIST);
    assert_int_equal(leat__result_file_check(path, HEAD, true, false, &err), 0);
    put(path, "");
    assert_int_equal(leat__result_file_check(path, HEAD, false, false, &err), LEAT_EEXIST);
    assert_int_equal(leat__result_file_check(path, HEAD, true, false, &err), 0);
    put(path, "\x89PNG");
    assert_int_equal(leat__result_file_check(path, HEAD, false, false, &err), LEAT_EINVAL);
    assert_int_equal(leat__result_file_check(path, HEAD, true, false, &err), LEAT_EINVAL);
    put(path, LEAT__PACK_MAGIC);
    assert_int_equal(leat__result_file_check(path, HEAD, true, false, &err), LEAT_EINVAL);
    it_rmdir(dir);
}

static void it_has_its_name_at_the_end(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "list.csv"), *partial = it_path(dir, "list.csv.partial");
    leat__result_file r, other;
    struct stat st;
    put(path, "key,old\n");
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(leat__result_file_open(&r, path, HEAD, NULL), 0);
    assert_int_equal(leat__result_file_open(&other, path, HEAD, NULL), LEAT_ESTATE);
    assert_int_equal(leat__file_pwrite(r.file, "key,new\n", 8, 0, NULL), 0);
    assert_text(path, "key,old\n");
    leat__result_file_close(&r, false);
    assert_text(partial, "key,new\n");
    assert_int_equal(leat__result_file_check(path, HEAD, false, true, NULL), 0);
    assert_int_equal(leat__result_file_open(&r, path, HEAD, NULL), 0);
    assert_int_equal(leat__result_file_publish(&r, NULL), 0);
    leat__result_file_close(&r, true);
    assert_text(path, "key,new\n");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(partial, &st), -1);
    it_rmdir(dir);
}

static void an_unfinished_list_is_removed(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "list.csv"), *partial = it_path(dir, "list.csv.partial");
    leat__result_file r;
    struct stat st;
    assert_int_equal(leat__result_file_open(&r, NULL, HEAD, NULL), 0);
    assert_int_equal(leat__result_file_publish(&r, NULL), 0);
    leat__result_file_close(&r, true);
    assert_int_equal(leat__result_file_open(&r, path, HEAD, NULL), 0);
    leat__result_file_close(&r, true);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(stat(partial, &st), -1);
    put(partial, "another file");
    assert_int_equal(leat__result_file_open(&r, path, HEAD, NULL), LEAT_EINVAL);
    assert_text(partial, "another file");
    it_rmdir(dir);
}

static void a_link_is_kept(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "link.csv"), *target = it_path(dir, "target.csv");
    leat__result_file r;
    struct stat st;
    put(target, "key,old\n");
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(leat__result_file_open(&r, path, HEAD, NULL), 0);
    assert_int_equal(leat__file_truncate(r.file, 0, NULL), 0);
    assert_int_equal(leat__result_file_publish(&r, NULL), 0);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_text(target, "");
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_exists_is_spared),
        cmocka_unit_test(it_has_its_name_at_the_end),
        cmocka_unit_test(an_unfinished_list_is_removed),
        cmocka_unit_test(a_link_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
