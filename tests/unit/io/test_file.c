/* SPDX-License-Identifier: Apache-2.0
 *
 * Files: whole reads and writes, ends of files, direct reads of any alignment, names.
 */
#include "iotest.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/num.h"
#include "io/inject.h"

static void test_read(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    uint8_t buf[5000];
    uint64_t size;
    size_t got;
    it_make(it_path(dir, "a"), 10000);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, &err), 0);
    assert_int_equal(leat__file_size(f, &size, &err), 0);
    assert_int_equal(size, 10000);
    assert_int_equal(leat__file_pread(f, buf, 5000, 3, &err), 0);
    it_check(buf, 5000, 3);
    assert_int_equal(leat__file_pread(f, buf, 5000, 5001, &err), LEAT_EDATA);
    assert_int_equal(err.offset, 10000);
    assert_non_null(strstr(err.message, "10000"));
    assert_int_equal(leat__file_pread_some(f, buf, 5000, 9000, &got, &err), 0);
    assert_int_equal(got, 1000);
    it_check(buf, got, 9000);
    assert_int_equal(leat__file_pread_some(f, buf, 1, 20000, &got, &err), 0);
    assert_int_equal(got, 0);
    assert_int_equal(leat__file_pread(f, buf, 1, UINT64_MAX - 1, &err), LEAT_EOVERFLOW);
    leat__file_close(&f);
    leat__file_close(&f); /* a second close is allowed */
    it_rmdir(dir);
}

/* Freshly written data is in the page cache, unless the file system cannot tell. */
static void test_read_cached(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    uint8_t buf[5000];
    it_make(it_path(dir, "a"), 10000);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_READ, NULL), 0);
    size_t got = leat__file_pread_cached(f, buf, 5000, 3);
    assert_true(got == 5000 || got == 0);
    it_check(buf, got, 3);
    bool works = got > 0;
    assert_int_equal(leat__file_pread_cached(f, buf, 5000, 9000), works ? 1000 : 0);
    assert_int_equal(leat__file_pread_cached(f, buf, 1, 10000), 0);
    assert_int_equal(leat__file_pread_cached(f, buf, 1, UINT64_MAX), 0);
    leat__inject_rule rule = {.path = dir, .delay_ns = 1};
    assert_int_equal(leat__io_inject(&rule, NULL), 0);
    /* not served from the cache of a slow disk */
    assert_int_equal(leat__file_pread_cached(f, buf, 5000, 3), 0);
    leat__io_inject_clear();
    leat__file_close(&f);
    it_rmdir(dir);
}

/* A file in memory is read at once, whatever the kernel says about reads that do not wait. */
static void test_pread_cached_in_memory(void **state)
{
    leat__file *f;
    struct statfs fs;
    char path[64];
    uint8_t buf[5000];
    if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC || access("/dev/shm", W_OK) != 0) skip();
    snprintf(path, sizeof path, "/dev/shm/leat-test-file-%d", (int)getpid());
    it_make(path, 10000);
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_READ, NULL), 0);
    assert_int_equal(leat__file_pread_cached(f, buf, 5000, 3), 5000);
    it_check(buf, 5000, 3);
    assert_int_equal(leat__file_pread_cached(f, buf, 5000, 9000), 1000);
    leat__file_close(&f);
    unlink(path);
}

static void test_direct(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    size_t size = 100000;
    it_make(it_path(dir, "a"), size);
    uint8_t *buf = leat__alloc_aligned(LEAT__MEM_IO, 131072, LEAT__IO_ALIGN);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_DIRECT, &err), 0);
    /* aligned, unaligned, and the unaligned end: the same bytes */
    assert_int_equal(leat__file_pread(f, buf, 65536, 4096, &err), 0);
    it_check(buf, 65536, 4096);
    assert_int_equal(leat__file_pread(f, buf + 1, 7777, 123, &err), 0);
    it_check(buf + 1, 7777, 123);
    size_t got;
    assert_int_equal(leat__file_pread_some(f, buf, 65536, 65536, &got, &err), 0);
    assert_int_equal(got, size - 65536);
    it_check(buf, got, 65536);
    leat__file_close(&f);
    leat__free(buf);
    it_rmdir(dir);
}

static void test_write_and_names(void **state)
{
    char *dir = it_dir();
    leat__file *f, *g;
    leat_error err;
    char *data;
    size_t len;
    bool exists;
    const unsigned make = LEAT__FILE_WRITE | LEAT__FILE_CREATE;
    assert_int_equal(leat__path_mkdir(it_path(dir, "x/y/z"), &err), 0);
    assert_int_equal(leat__path_mkdir(it_path(dir, "x/y/z"), &err), 0);
    char *a = it_path(dir, "x/y/z/a"), *b = it_path(dir, "x/y/b");
    assert_int_equal(leat__file_open(&f, a, make | LEAT__FILE_LOCK, &err), 0);
    assert_int_equal(leat__file_open(&g, a, make | LEAT__FILE_EXCLUSIVE, &err), LEAT_EEXIST);
    assert_int_equal(leat__file_open(&g, a, make | LEAT__FILE_LOCK, &err), LEAT_ESTATE);
    assert_int_equal(leat__file_pwrite(f, "hello world", 11, 5, &err), 0);
    assert_int_equal(leat__file_truncate(f, 10, &err), 0);
    leat__file_flush_hint(f, 0, 10);
    assert_int_equal(leat__file_sync(f, &err), 0);
    leat__file_advise(f, 0, 0, LEAT__ADVICE_DONTNEED);
    leat__file_close(&f);
    assert_int_equal(leat__path_rename(a, b, &err), 0);
    assert_int_equal(leat__path_exists(a, &exists, &err), 0);
    assert_false(exists);
    assert_int_equal(leat__file_load(b, 100, 3, &data, &len, &err), 0);
    assert_int_equal(len, 10);
    assert_memory_equal(data, "\0\0\0\0\0hello\0\0\0", 13);
    leat__free(data);
    assert_int_equal(leat__file_load(b, 9, 0, &data, &len, &err), LEAT_ELIMIT);
    assert_int_equal(leat__path_unlink(b, &err), 0);
    assert_int_equal(leat__path_unlink(b, &err), 0);
    assert_int_equal(leat__file_open(&f, b, LEAT__FILE_READ, &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, b));
    assert_int_equal(leat__file_store(b, "abc", 3, &err), 0);
    assert_int_equal(leat__file_store(b, "defg", 4, &err), 0);
    assert_int_equal(leat__file_load(b, 100, 0, &data, &len, &err), 0);
    assert_int_equal(len, 4);
    assert_memory_equal(data, "defg", 4);
    leat__free(data);
    it_rmdir(dir);
}

static void test_only_regular_files(void **state)
{
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    char *fifo = it_path(dir, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(leat__file_open(&f, dir, LEAT__FILE_READ, &err), LEAT_EINVAL);
    assert_int_equal(leat__file_open(&f, fifo, LEAT__FILE_READ, &err), LEAT_EINVAL);
    it_rmdir(dir);
}

static mode_t kind_of(const char *path)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    return st.st_mode & S_IFMT;
}

static int files_in(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* An existing file that is not regular is written to or refused, and keeps its type. */
static void test_store_keeps_nodes(void **state)
{
    char *dir = it_dir(), got[8];
    leat_error err;
    char *fifo = it_path(dir, "fifo"), *folder = it_path(dir, "folder");
    char *node = it_path(dir, "node"), *sock = it_path(dir, "sock");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_true(leat__file_store(fifo, "abc", 3, &err) < 0); /* no reader: does not wait */
    assert_non_null(strstr(err.message, fifo));
    int fd = open(fifo, O_RDONLY | O_NONBLOCK);
    assert_int_equal(leat__file_store(fifo, "abc", 3, &err), 0);
    assert_int_equal(read(fd, got, sizeof got), 3);
    assert_memory_equal(got, "abc", 3);
    close(fd);
    assert_int_equal(kind_of(fifo), S_IFIFO);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(leat__file_store(folder, "abc", 3, &err), LEAT_EINVAL);
    assert_int_equal(kind_of(folder), S_IFDIR);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", sock);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (strlen(sock) < sizeof at.sun_path && bind(listener, (struct sockaddr *)&at, sizeof at) == 0) {
        assert_int_equal(leat__file_store(sock, "abc", 3, &err), LEAT_EINVAL);
        assert_int_equal(kind_of(sock), S_IFSOCK);
    }
    close(listener);
    if (mknod(node, S_IFCHR | 0600, makedev(1, 3)) == 0) { /* as root only: a copy of /dev/null */
        int rc = leat__file_store(node, "abc", 3, &err);   /* a nodev mount refuses to open it */
        assert_true(rc == 0 || rc == LEAT_EPERM);
        assert_int_equal(kind_of(node), S_IFCHR);
    }
    it_rmdir(dir);
}

/* Reports never overwrite a pack, however they are written. */
static void test_packs_are_not_overwritten(void **state)
{
    static const char pack[] = LEAT__PACK_MAGIC "and the rest";
    char *dir = it_dir(), *data;
    size_t len;
    leat_error err;
    leat__file *f = NULL;
    char *path = it_path(dir, "a.leat"), *link = it_path(dir, "link");
    assert_int_equal(leat__file_spare_pack(path, &err), 0); /* the file does not exist */
    assert_int_equal(leat__file_spare_pack("here.json", &err), 0);
    assert_int_equal(leat__file_spare_pack("/dev/null", &err), 0);
    assert_int_equal(leat__file_spare_pack("/nodir/x.html", &err), LEAT_ENOENT);
    assert_string_equal(err.message, "/nodir: no such folder");
    assert_int_equal(leat__file_store("/nodir/x.html", "abc", 3, &err), LEAT_ENOENT);
    assert_string_equal(err.message, "/nodir: no such folder");
    assert_int_not_equal(leat__file_spare_pack("/dev/null/x", &err), 0); /* not in a folder */
    assert_int_equal(leat__file_spare_pack("/", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "/: is a folder"));
    assert_int_equal(
        leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, &err), 0);
    assert_int_equal(leat__file_pwrite(f, pack, sizeof pack, 0, &err), 0);
    leat__file_close(&f);
    assert_int_equal(symlink("a.leat", link), 0);
    assert_int_equal(leat__file_store(path, "abc", 3, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "a.leat: is a pack"));
    assert_int_equal(leat__file_store(link, "abc", 3, &err), LEAT_EINVAL);
    assert_int_equal(leat__file_append(path, "abc", 3, &err), LEAT_EINVAL);
    assert_int_equal(leat__file_load(path, 100, 0, &data, &len, &err), 0);
    assert_int_equal(len, sizeof pack);
    assert_memory_equal(data, pack, len);
    leat__free(data);
    it_rmdir(dir);
}

/* A new pack takes the place of packs, also unfinished ones, and of files without anything in them. */
static void test_only_packs_are_replaced(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int rc;
    } cases[] = {
        {"", 0, 0},
        {LEAT__PACK_MAGIC "and the rest", 20, 0},
        {LEAT__PARTIAL_MAGIC "and the rest", 20, 0},
        {"\0\0\0\0\0\0\0\0\0", 9, 0},
        {"\x89LEAT", 5, LEAT_EINVAL},
        {"\x89PNG\r\n\x1a\n and the rest", 17, LEAT_EINVAL},
        {"x", 1, LEAT_EINVAL},
    };
    char *dir = it_dir();
    char *path = it_path(dir, "a.leat");
    leat_error err;
    for (size_t i = 0; i < LEAT_COUNT(cases); i++) {
        leat__file *f = NULL;
        assert_int_equal(
            leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, &err), 0);
        assert_int_equal(leat__file_pwrite(f, cases[i].bytes, cases[i].len, 0, &err), 0);
        leat__file_close(&f);
        assert_int_equal(leat__file_only_pack(path, true, &err), cases[i].rc);
        assert_int_equal(leat__file_only_pack(path, false, &err), cases[i].rc ? cases[i].rc : LEAT_EEXIST);
        if (cases[i].rc != 0) assert_non_null(strstr(err.message, "a.leat: is not a pack"));
    }
    it_rmdir(dir);
}

/* A link keeps pointing, also through another link and to a name that is not there yet. */
static void test_store_through_links(void **state)
{
    char *dir = it_dir(), *data;
    size_t len;
    struct stat st;
    leat_error err;
    char *a = it_path(dir, "a"), *to_a = it_path(dir, "to_a"), *far = it_path(dir, "far");
    char *dangling = it_path(dir, "dangling"), *loop = it_path(dir, "loop");
    assert_int_equal(leat__file_store(a, "old", 3, &err), 0);
    assert_int_equal(chmod(a, 0640), 0);
    assert_int_equal(symlink("a", to_a), 0);
    assert_int_equal(symlink(to_a, far), 0);
    assert_int_equal(symlink("new", dangling), 0);
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(leat__file_store(far, "newer", 5, &err), 0);
    assert_int_equal(kind_of(far), S_IFLNK);
    assert_int_equal(kind_of(to_a), S_IFLNK);
    assert_int_equal(leat__file_load(a, 100, 0, &data, &len, &err), 0);
    assert_int_equal(len, 5);
    leat__free(data);
    assert_int_equal(stat(a, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(leat__file_store(dangling, "x", 1, &err), 0);
    assert_int_equal(kind_of(dangling), S_IFLNK);
    assert_int_equal(kind_of(it_path(dir, "new")), S_IFREG);
    assert_true(leat__file_store(loop, "x", 1, &err) < 0);
    assert_int_equal(files_in(dir), 6); /* no temporary files are left */
    it_rmdir(dir);
}

/* Everything that writes files here refuses a bucket with the same words. */
static void test_buckets_are_refused(void **state)
{
    static const char text[] = "s3://b/k: must be a local path";
    leat_error err;
    (void)state;
    assert_int_equal(leat__path_local("s3:/b/k", "", &err), 0);
    assert_int_equal(leat__path_local("s3://b/k", "; hint", &err), LEAT_ENOTSUP);
    assert_string_equal(err.message, "s3://b/k: must be a local path; hint");
    assert_int_equal(leat__path_mkdir("s3://b/k", &err), LEAT_ENOTSUP);
    assert_string_equal(err.message, text);
    assert_int_equal(leat__file_store("s3://b/k", "x", 1, &err), LEAT_ENOTSUP);
    assert_string_equal(err.message, text);
}

static void test_faults(void **state)
{
    if (!leat__fault_available()) skip();
    char *dir = it_dir();
    leat__file *f;
    leat_error err;
    uint8_t b[8];
    it_make(it_path(dir, "a"), 100);
    assert_int_equal(leat__file_open(&f, it_path(dir, "a"), LEAT__FILE_WRITE, &err), 0);
    leat__fault_arm(LEAT__FAULT_READ, 1, true);
    assert_int_equal(leat__file_pread(f, b, 8, 0, &err), LEAT_EIO);
    leat__fault_arm(LEAT__FAULT_WRITE, 1, true);
    assert_int_equal(leat__file_pwrite(f, b, 8, 0, &err), LEAT_ENOSPC);
    leat__fault_arm(LEAT__FAULT_SYNC, 1, true);
    assert_int_equal(leat__file_sync(f, &err), LEAT_EIO);
    leat__fault_disarm();
    assert_int_equal(leat__file_pread(f, b, 8, 0, &err), 0);
    leat__file_close(&f);
    it_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_cached),
        cmocka_unit_test(test_pread_cached_in_memory),
        cmocka_unit_test(test_direct),
        cmocka_unit_test(test_write_and_names),
        cmocka_unit_test(test_only_regular_files),
        cmocka_unit_test(test_store_keeps_nodes),
        cmocka_unit_test(test_packs_are_not_overwritten),
        cmocka_unit_test(test_only_packs_are_replaced),
        cmocka_unit_test(test_store_through_links),
        cmocka_unit_test(test_buckets_are_refused),
        cmocka_unit_test(test_faults),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
