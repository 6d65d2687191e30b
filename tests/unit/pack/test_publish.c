/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishing: replacing packs and sets, finishing twice, a disk that is full.
 */
#include "packtest.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/fault.h"

static void test_replace_a_set_by_a_smaller_one(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer_stats first, second;
    leat_error err;
    o.shard_bytes = 1 << 20;
    assert_int_equal(pt_write(path, &o, 900, 4000, &first, &err), 0);
    o.replace = 1;
    assert_int_equal(pt_write(path, &o, 300, 4000, &second, &err), 0);
    assert_true(second.shards < first.shards);
    pt_check(path, 300, 4000);
    for (unsigned i = 0; i < first.shards; i++) { /* no shard of the old set is left over */
        char name[64];
        snprintf(name, sizeof name, "a-%05u.leat", i);
        assert_int_equal(access(pt_path(dir, name), F_OK), i < second.shards ? 0 : -1);
    }
    o.shard_bytes = 0;
    assert_int_equal(pt_write(path, &o, 10, 100, NULL, &err), 0); /* a single file instead */
    pt_check(path, 10, 100);
    assert_int_equal(access(pt_path(dir, "a-00000.leat"), F_OK), -1);
    pt_rmdir(dir);
}

static int files_in(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Finishing a set fails at each sync and rename in turn: discard then leaves nothing, unless
 * the set was whole already. */
static void test_discard_a_set(void **state)
{
    if (!leat__fault_available()) skip();
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    bool between = false;
    o.shard_bytes = 1 << 20;
    int rc = -1;
    for (uint64_t nth = 1; rc != 0; nth++) {
        leat_packer *p;
        assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
        assert_int_equal(pt_append(p, 0, 400, 4000, &err), 0);
        leat__fault_arm(LEAT__FAULT_SYNC, nth, true);
        rc = leat_packer_finish(p, NULL, &err);
        leat__fault_disarm();
        leat_packer_close(&p);
        bool whole = access(path, F_OK) == 0;
        if (!whole && access(pt_path(dir, "a-00000.leat"), F_OK) == 0) between = true;
        assert_int_equal(leat_packer_discard(path, &err), 0);
        if (whole) {
            pt_check(path, 400, 4000);
            leat_pack *pack;
            leat_pack_info info;
            assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
            assert_int_equal(leat_pack_info_read(pack, &info, sizeof info), 0);
            leat_pack_close(&pack);
            assert_int_equal(files_in(dir), info.shards + 1);
            assert_int_equal(unlink(path), 0);
            for (unsigned i = 0; i < info.shards; i++) {
                char name[64];
                snprintf(name, sizeof name, "a-%05u.leat", i);
                assert_int_equal(unlink(pt_path(dir, name)), 0);
            }
        }
        assert_int_equal(files_in(dir), 0);
    }
    assert_true(between);
    pt_rmdir(dir);
}

static void test_twice(void **state)
{
    char *dir = pt_dir();
    leat_packer_opts o = pt_opts();
    leat_packer *p;
    leat_error err;
    assert_int_equal(leat_packer_open(&p, pt_path(dir, "a.leat"), &o, &err), 0);
    assert_int_equal(pt_append(p, 0, 3, 100, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), LEAT_ESTATE);
    assert_int_equal(pt_append(p, 3, 4, 100, &err), LEAT_ESTATE);
    leat_packer_close(&p);
    pt_rmdir(dir);
}

/* A file size limit stands for a full disk: the write fails in words, nothing appears under
 * the name, and with room again the rest follows. */
static void test_no_room(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat"), *other = pt_path(dir, "b.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    struct rlimit keep, small;
    size_t n1, n2;
    assert_int_equal(pt_write(other, &o, 500, 4000, NULL, &err), 0);
    getrlimit(RLIMIT_FSIZE, &keep);
    small = keep;
    small.rlim_cur = 1000000;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = pt_write(path, &o, 500, 4000, NULL, &err);
    setrlimit(RLIMIT_FSIZE, &keep);
    assert_true(rc < 0);
    assert_non_null(strstr(err.message, "a.leat.partial: cannot write"));
    assert_int_equal(access(path, F_OK), -1);
    o.resume = 1;
    assert_int_equal(pt_write(path, &o, 500, 4000, NULL, &err), 0);
    uint8_t *a = pt_load(path, &n1), *b = pt_load(other, &n2);
    assert_int_equal(n1, n2);
    assert_memory_equal(a, b, n1);
    free(a);
    free(b);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace_a_set_by_a_smaller_one),
        cmocka_unit_test(test_discard_a_set),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_no_room),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
