/* SPDX-License-Identifier: Apache-2.0
 *
 * Compacting: the same bytes as one packing run, in place and to another path.
 */
#include "packtest.h"

#include <dirent.h>
#include <sys/wait.h>

#include "base/fault.h"

static void append(const char *path, uint64_t first, uint64_t last, size_t scale)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p;
    leat_error err;
    o.append = 1;
    o.no_sync = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    assert_int_equal(pt_append(p, first, last, scale, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
}

static void same_bytes(const char *a, const char *b)
{
    size_t n, m;
    uint8_t *x = pt_load(a, &n), *y = pt_load(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

static void test_same_bytes_as_one_packing_run(void **state)
{
    char *dir = pt_dir();
    char *at_once = pt_path(dir, "once.leat"), *path = pt_path(dir, "a.leat"), *to = pt_path(dir, "to.leat");
    leat_packer_opts o = pt_opts();
    leat_pack_compact_opts c = {.struct_size = sizeof c, .no_sync = 1, .output = to};
    leat_packer_stats st;
    leat_error err;
    assert_int_equal(pt_write(at_once, &o, 500, 1200, NULL, &err), 0);
    assert_int_equal(pt_write(path, &o, 123, 1200, NULL, &err), 0);
    append(path, 123, 124, 1200);
    append(path, 124, 400, 1200);
    append(path, 400, 500, 1200);
    assert_int_equal(leat_pack_compact(path, &c, &st, &err), 0);
    assert_int_equal(st.samples, 500);
    same_bytes(to, at_once);
    pt_check(path, 500, 1200); /* it is unchanged */
    assert_int_equal(leat_pack_compact(path, &c, &st, &err), LEAT_EEXIST);
    c.replace = 1;
    assert_int_equal(leat_pack_compact(path, &c, &st, &err), 0);
    c.output = NULL; /* in place */
    assert_int_equal(leat_pack_compact(path, &c, &st, &err), 0);
    same_bytes(path, at_once);
    assert_int_equal(leat_pack_compact(path, &c, &st, &err), 0); /* nothing to do */
    assert_int_equal(st.samples, 500);
    pt_rmdir(dir);
}

static int stop(void *cookie, uint64_t done, uint64_t total)
{
    return done * 2 > total;
}

static void test_stopped_and_missing(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_pack_compact_opts c = {.struct_size = sizeof c, .no_sync = 1, .progress = stop};
    leat_error err;
    assert_int_equal(leat_pack_compact(path, &c, NULL, &err), LEAT_ENOENT);
    assert_int_equal(pt_write(path, &o, 600, 100, NULL, &err), 0);
    append(path, 600, 1200, 100);
    assert_int_equal(leat_pack_compact(path, &c, NULL, &err), LEAT_ECANCELED);
    pt_check(path, 1200, 100);
    c.progress = NULL;
    c.shard_bytes = 1 << 20;
    assert_int_equal(leat_pack_compact(path, &c, NULL, &err), 0);
    pt_check(path, 1200, 100);
    pt_rmdir(dir);
}

/* ---- kills --------------------------------------------------------------------------------- */

static bool killed_while_compacting(const char *path, const char *to, leat__fault_kind kind, uint64_t nth)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        leat_pack_compact_opts c = {.struct_size = sizeof c, .output = to};
        leat_error err;
        c.no_sync = kind == LEAT__FAULT_WRITE;
        leat__fault_arm_kill(kind, nth);
        _exit(leat_pack_compact(path, &c, NULL, &err) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static uint32_t files_in(const char *dir)
{
    DIR *d = opendir(dir);
    uint32_t n = 0;
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A killed compaction blocks nothing: the next append works, and no files are left over. */
static void append_after_kills(leat__fault_kind kind)
{
    bool killed = true;
    for (uint64_t nth = 1; killed; nth++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_pack *pack;
        leat_pack_info info;
        leat_error err;
        assert_int_equal(pt_write(path, &o, 60, 1500, NULL, &err), 0);
        append(path, 60, 90, 1500);
        append(path, 90, 120, 1500);
        killed = killed_while_compacting(path, NULL, kind, nth);
        pt_check(path, 120, 1500);
        append(path, 120, 130, 1500);
        pt_check(path, 130, 1500);
        assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
        assert_int_equal(leat_pack_info_read(pack, &info, sizeof info), 0);
        leat_pack_close(&pack);
        assert_int_equal(files_in(dir), info.shards + 1);
        pt_rmdir(dir);
    }
}

static void test_append_after_a_kill(void **state)
{
    if (!leat__fault_available()) skip();
    append_after_kills(LEAT__FAULT_SYNC);
    append_after_kills(LEAT__FAULT_WRITE);
}

/* A compaction to another path may replace the leftovers of a killed one without asking. */
static void test_again_after_a_kill(void **state)
{
    if (!leat__fault_available()) skip();
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat"), *to = pt_path(dir, "to.leat");
    leat_packer_opts o = pt_opts();
    leat_pack_compact_opts c = {.struct_size = sizeof c, .no_sync = 1, .output = to};
    leat_error err;
    assert_int_equal(pt_write(path, &o, 120, 1500, NULL, &err), 0);
    assert_true(killed_while_compacting(path, to, LEAT__FAULT_SYNC, 1));
    assert_int_equal(files_in(dir), 3); /* a journal and a partial file */
    assert_int_equal(leat_pack_compact(path, &c, NULL, &err), 0);
    same_bytes(path, to);
    assert_int_equal(files_in(dir), 2);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes_as_one_packing_run),
        cmocka_unit_test(test_stopped_and_missing),
        cmocka_unit_test(test_append_after_a_kill),
        cmocka_unit_test(test_again_after_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
