/* SPDX-License-Identifier: Apache-2.0
 *
 * Compacting: the same bytes as packing at once, in place and elsewhere.
 */
#include "packtest.h"

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

static void test_the_bytes_of_packing_at_once(void **state)
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
    pt_check(path, 500, 1200); /* it stays */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bytes_of_packing_at_once),
        cmocka_unit_test(test_stopped_and_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
