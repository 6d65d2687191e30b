/* SPDX-License-Identifier: Apache-2.0
 *
 * Nothing in the folder redirects a file out of it: links to folders and files, hard links,
 * FIFOs.
 */
#include "leat_test.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/below.h"
#include "io/file.h"

static char box[64], folder[80];

static const char *at(const char *name)
{
    static char path[4][192];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", box, name);
    return p;
}

static int make_box(void **state)
{
    (void)state;
    snprintf(box, sizeof box, "/tmp/leat-below-XXXXXX");
    assert_non_null(mkdtemp(box));
    snprintf(folder, sizeof folder, "%s/in", box);
    assert_int_equal(mkdir(folder, 0777), 0);
    assert_int_equal(mkdir(at("out"), 0777), 0);
    return 0;
}

static int drop_box(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", box);
    return system(command);
}

static int put(const char *name, const char *text, bool replace, leat_error *err)
{
    return leat__below_write(folder, name, text, strlen(text), replace, err);
}

static void assert_holds(const char *name, const char *text)
{
    char *data;
    size_t len;
    assert_ok(leat__file_load(at(name), 1 << 20, 0, &data, &len, NULL));
    assert_int_equal(len, strlen(text));
    assert_memory_equal(data, text, len);
    leat__free(data);
}

static void missing_folders_are_created(void **state)
{
    char deep[300];
    leat_error err;
    (void)state;
    assert_ok(put("a/b/c.txt", "one", false, &err));
    assert_ok(put("a/b/d.txt", "", false, &err));
    assert_holds("in/a/b/c.txt", "one");
    assert_holds("in/a/b/d.txt", "");
    assert_int_equal(put("a/b/c.txt", "two", false, &err), LEAT_EEXIST);
    assert_contains(err.message, "in/a/b/c.txt: already exists");
    assert_holds("in/a/b/c.txt", "one");
    assert_ok(put("a/b/c.txt", "2", true, &err));
    assert_holds("in/a/b/c.txt", "2");
    assert_true(put("a/b/c.txt/d", "x", true, &err) != 0); /* a file where a folder is needed */
    assert_true(put("a/b", "x", true, &err) != 0);         /* a folder where a file is needed */
    memset(deep, 'n', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    assert_true(put(deep, "x", true, &err) != 0);
    assert_int_equal(err.sys_errno, ENAMETOOLONG);
    assert_no_leaks();
}

static void links_are_not_followed(void **state)
{
    leat_error err;
    (void)state;
    assert_int_equal(symlink("../out", at("in/dir")), 0);
    for (int replace = 0; replace < 2; replace++) {
        assert_int_equal(put("dir/x", "x", replace, &err), LEAT_EPERM);
        assert_contains(err.message, "\"dir\" on the way is a symbolic link");
        assert_int_equal(put("dir/sub/x", "x", replace, &err), LEAT_EPERM);
    }
    assert_int_equal(rmdir(at("out")), 0); /* nothing was written there */
    assert_int_equal(symlink("../target", at("in/file")), 0);
    assert_int_equal(put("file", "x", false, &err), LEAT_EEXIST); /* also a dangling link */
    assert_int_equal(access(at("target"), F_OK), -1);
    assert_ok(put("file", "mine", true, &err));
    assert_int_equal(access(at("target"), F_OK), -1);
    assert_holds("in/file", "mine");
}

static void hard_links_keep_their_bytes(void **state)
{
    leat_error err;
    (void)state;
    assert_ok(put("first", "first", false, &err));
    assert_int_equal(link(at("in/first"), at("out/other")), 0);
    assert_ok(put("first", "second", true, &err));
    assert_holds("in/first", "second");
    assert_holds("out/other", "first");
}

static void other_file_types_are_not_replaced(void **state)
{
    leat_error err;
    struct stat st;
    (void)state;
    assert_int_equal(mkfifo(at("in/pipe"), 0666), 0);
    for (int replace = 0; replace < 2; replace++) assert_true(put("pipe", "x", replace, &err) != 0);
    assert_contains(err.message, "not a regular file");
    assert_int_equal(lstat(at("in/pipe"), &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

/* Writes with a limit of 4 bytes per file: the disk is full in the middle of a file. */
static int put_on_a_full_disk(const char *name, const char *text, bool replace, leat_error *err)
{
    struct rlimit old, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit){4, old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int rc = put(name, text, replace, err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    return rc;
}

static void files_have_their_names_when_they_are_complete(void **state)
{
    leat_error err;
    (void)state;
    assert_true(put_on_a_full_disk("a/new", "too long", false, &err) != 0);
    assert_int_equal(err.sys_errno, EFBIG);
    assert_int_equal(rmdir(at("in/a")), 0); /* nothing is left in it */
    assert_ok(put("old", "old", false, &err));
    assert_true(put_on_a_full_disk("old", "too long", true, &err) != 0);
    assert_holds("in/old", "old");
    /* what a killed run left is replaced; a link is not followed */
    assert_ok(put("one.partial", "half", false, &err));
    assert_int_equal(symlink("../target", at("in/two.partial")), 0);
    for (int i = 0; i < 2; i++) assert_ok(put(i ? "two" : "one", "whole", false, &err));
    assert_holds("in/one", "whole");
    assert_holds("in/two", "whole");
    assert_int_equal(access(at("in/one.partial"), F_OK), -1);
    assert_int_equal(access(at("target"), F_OK), -1);
    assert_no_leaks();
}

static void the_longest_file_name_can_be_written(void **state)
{
    char name[NAME_MAX + 1];
    leat_error err;
    (void)state;
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    assert_ok(put(name, "x", false, &err));
    assert_int_equal(put(name, "x", false, &err), LEAT_EEXIST);
    assert_ok(put(name, "y", true, &err));
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(missing_folders_are_created, make_box, drop_box),
        cmocka_unit_test_setup_teardown(links_are_not_followed, make_box, drop_box),
        cmocka_unit_test_setup_teardown(hard_links_keep_their_bytes, make_box, drop_box),
        cmocka_unit_test_setup_teardown(other_file_types_are_not_replaced, make_box, drop_box),
        cmocka_unit_test_setup_teardown(files_have_their_names_when_they_are_complete, make_box, drop_box),
        cmocka_unit_test_setup_teardown(the_longest_file_name_can_be_written, make_box, drop_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
