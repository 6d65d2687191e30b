/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishing: replacing packs and sets, finishing twice, a disk that is full.
 */
#include "packtest.h"

#include <signal.h>
#include <sys/resource.h>

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
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_no_room),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
