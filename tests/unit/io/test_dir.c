/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "io/dir.h"

static char box[256];

static int open_box(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(box, sizeof box, "%s/leat-dir-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(box) ? 0 : -1;
}

static int close_box(void **state)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", box);
    int rc = system(command);
    assert_no_leaks();
    return rc;
}

static const char *at(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", box, name);
    return path;
}

static void make(const char *name, size_t size)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    for (size_t i = 0; i < size; i++) fputc('x', f);
    fclose(f);
}

static void kinds_sizes_and_order(void **state)
{
    make("b10", 3);
    make("b9", 5);
    assert_int_equal(mkdir(at("a folder"), 0777), 0);
    assert_int_equal(symlink("b9", at("link")), 0);
    assert_int_equal(symlink("missing", at("zbroken")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0666), 0);
    leat__dir d = {0};
    assert_ok(leat__dir_read(&d, box, false, NULL));
    leat__dir_sort(&d, leat__str_natural_cmp);
    static const char *const names[] = {"a folder", "b9", "b10", "link", "pipe", "zbroken"};
    static const leat__entry_kind kinds[] = {LEAT__ENTRY_FOLDER, LEAT__ENTRY_FILE,  LEAT__ENTRY_FILE,
                                             LEAT__ENTRY_FILE,   LEAT__ENTRY_OTHER, LEAT__ENTRY_BROKEN};
    assert_int_equal(d.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(leat__dir_name(&d, i), names[i]);
        assert_int_equal(d.entries[i].kind, kinds[i]);
    }
    assert_int_equal(d.entries[1].size, 5);
    assert_int_equal(d.entries[3].size, 5);
    struct stat st;
    assert_int_equal(stat(box, &st), 0);
    assert_int_equal(d.inode, st.st_ino);
    assert_ok(leat__dir_read(&d, box, true, NULL)); /* again, fast */
    assert_int_equal(d.count, 6);
    leat__dir_reset(&d);
}

static void failures_are_named(void **state)
{
    leat__dir d = {0};
    leat_error err = {0};
    leat__entry_kind kind;
    assert_code(LEAT_ENOENT, leat__dir_read(&d, at("nothing"), false, &err));
    assert_contains(err.message, "nothing");
    assert_code(LEAT_ENOENT, leat__path_kind(at("nothing"), &kind, &err));
    assert_ok(leat__path_kind(box, &kind, &err));
    assert_int_equal(kind, LEAT__ENTRY_FOLDER);
    if (leat__fault_available()) {
        leat__fault_arm(LEAT__FAULT_READ, 2, false);
        assert_code(LEAT_EIO, leat__dir_read(&d, box, false, &err));
        leat__fault_disarm();
        for (uint64_t n = 1; n < 4; n++) {
            leat__dir_reset(&d);
            leat__fault_arm(LEAT__FAULT_ALLOC, n, false);
            int rc = leat__dir_read(&d, box, false, &err);
            leat__fault_disarm();
            assert_true(rc == 0 || rc == LEAT_ENOMEM);
        }
    }
    leat__dir_reset(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_sizes_and_order),
        cmocka_unit_test(failures_are_named),
    };
    return cmocka_run_group_tests(tests, open_box, close_box);
}
