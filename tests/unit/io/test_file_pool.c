/* SPDX-License-Identifier: Apache-2.0 */
#include "iotest.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>

#include "base/thread.h"
#include "io/file_pool.h"

#define FILES 200u
#define BYTES 8192u

static struct rlimit before;

static void limit_to(rlim_t descriptors)
{
    struct rlimit few = {descriptors, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static unsigned open_now(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

static char *name_of(const char *dir, unsigned i)
{
    char name[16];
    snprintf(name, sizeof name, "%u", i);
    return it_path(dir, name);
}

static void open_all(const char *dir, leat__file_pool *pool, unsigned flags, leat__file **f)
{
    leat_error err;
    for (unsigned i = 0; i < FILES; i++) {
        it_make(name_of(dir, i), BYTES);
        assert_int_equal(leat__file_open_pooled(&f[i], pool, name_of(dir, i), flags, &err), 0);
    }
}

static void close_all(leat__file_pool **pool, leat__file **f)
{
    for (unsigned i = 0; i < FILES; i++) leat__file_close(&f[i]);
    leat__file_pool_close(pool);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void read_one(const leat__file *f, unsigned i)
{
    uint8_t got[100];
    leat_error err;
    uint64_t at = i * 31 % (BYTES - sizeof got);
    assert_int_equal(leat__file_pread(f, got, sizeof got, at, &err), 0);
    for (unsigned k = 0; k < sizeof got; k++) assert_int_equal(got[k], it_byte(at + k));
}

static void many_files_share_few_descriptors(void **state)
{
    char *dir = it_dir();
    leat__file *f[FILES];
    for (int direct = 0; direct < 2; direct++) {
        leat__file_pool *pool;
        uint64_t bytes;
        unsigned others = open_now();
        limit_to(64);
        assert_int_equal(leat__file_pool_open(&pool, FILES, direct, NULL), 0);
        assert_non_null(pool);
        open_all(dir, pool, direct ? LEAT__FILE_DIRECT : LEAT__FILE_READ, f);
        assert_true(open_now() <= others + 16);
        for (unsigned i = 0; i < 3 * FILES; i++) read_one(f[i * 37 % FILES], i);
        leat__file_advise(f[0], 0, 0, LEAT__ADVICE_WILLNEED);
        assert_int_equal(leat__file_size(f[0], &bytes, NULL), 0);
        assert_int_equal(bytes, BYTES);
        assert_true(open_now() <= others + 16);
        close_all(&pool, f);
        assert_int_equal(open_now(), others);
    }
    it_rmdir(dir);
}

static void small_sets_need_no_pool(void **state)
{
    leat__file_pool *pool;
    limit_to(64);
    assert_int_equal(leat__file_pool_open(&pool, 16, false, NULL), 0);
    assert_null(pool);
    assert_int_equal(leat__file_pool_open(&pool, 9, true, NULL), 0);
    assert_non_null(pool);
    leat__file_pool_close(&pool);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Takers that cannot wait get half of the seats, and keep their descriptors while others read. */
static void held_descriptors_stay_valid(void **state)
{
    char *dir = it_dir(), byte;
    leat__file *f[FILES];
    leat__file_pool *pool;
    limit_to(64);
    assert_int_equal(leat__file_pool_open(&pool, FILES, false, NULL), 0);
    open_all(dir, pool, LEAT__FILE_READ, f);
    int fd[8];
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(leat__file_hold(f[i]), 0);
        fd[i] = leat__file_fd(f[i]);
    }
    assert_int_equal(leat__file_hold(f[8]), EAGAIN);
    for (unsigned i = 0; i < FILES; i++) read_one(f[i], i);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(leat__file_fd(f[i]), fd[i]);
        assert_int_equal(pread(fd[i], &byte, 1, 77), 1);
        assert_int_equal((uint8_t)byte, it_byte(77));
        leat__file_release(f[i]);
    }
    assert_int_equal(leat__file_hold(f[8]), 0);
    leat__file_release(f[8]);
    close_all(&pool, f);
    it_rmdir(dir);
}

static void another_file_at_the_path_is_stale(void **state)
{
    char *dir = it_dir(), byte;
    leat__file *f[FILES];
    leat__file_pool *pool;
    leat_error err;
    limit_to(64);
    assert_int_equal(leat__file_pool_open(&pool, FILES, false, NULL), 0);
    open_all(dir, pool, LEAT__FILE_READ, f);
    assert_int_equal(rename(name_of(dir, 1), name_of(dir, 0)), 0);
    assert_int_not_equal(leat__file_pread(f[0], &byte, 1, 0, &err), 0);
    assert_int_equal(err.sys_errno, ESTALE);
    assert_int_not_equal(leat__file_pread(f[1], &byte, 1, 0, &err), 0);
    assert_int_equal(err.sys_errno, ENOENT);
    read_one(f[2], 2);
    close_all(&pool, f);
    it_rmdir(dir);
}

static void reads_for_a_while(void *arg)
{
    leat__file **f = arg;
    for (unsigned i = 0; i < 2000; i++) read_one(f[i * 7919 % FILES], i);
}

static void threads_wait_for_each_other(void **state)
{
    char *dir = it_dir();
    leat__file *f[FILES];
    leat__file_pool *pool;
    leat__thread threads[7];
    limit_to(64);
    assert_int_equal(leat__file_pool_open(&pool, FILES, true, NULL), 0);
    open_all(dir, pool, LEAT__FILE_READ, f);
    limit_to(open_now()); /* at most one more: idle ones must be closed */
    memset(threads, 0, sizeof threads);
    for (int i = 0; i < 7; i++)
        assert_int_equal(leat__thread_start(&threads[i], "t", reads_for_a_while, f, NULL), 0);
    for (int i = 0; i < 7; i++) leat__thread_join(&threads[i]);
    close_all(&pool, f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_files_share_few_descriptors),
        cmocka_unit_test(small_sets_need_no_pool),
        cmocka_unit_test(held_descriptors_stay_valid),
        cmocka_unit_test(another_file_at_the_path_is_stale),
        cmocka_unit_test(threads_wait_for_each_other),
    };
    getrlimit(RLIMIT_NOFILE, &before);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
