/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishing: replacing packs and sets, finishing twice, a full disk.
 */
#include "packtest.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fault.h"

static int files_in(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

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
    assert_int_equal(files_in(dir), second.shards + 1); /* no shard of the old set is left over */
    o.shard_bytes = 0;
    assert_int_equal(pt_write(path, &o, 10, 100, NULL, &err), 0); /* a single file instead */
    pt_check(path, 10, 100);
    assert_int_equal(files_in(dir), 1);
    pt_rmdir(dir);
}

/* Finishing a set fails at each sync and rename in turn: discard then leaves nothing, unless the
 * set was already complete. */
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
        if (!whole && access(pt_shard(dir, "a", 0), F_OK) == 0) between = true;
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
            for (unsigned i = 0; i < info.shards; i++) assert_int_equal(unlink(pt_shard(dir, "a", i)), 0);
        }
        assert_int_equal(files_in(dir), 0);
    }
    assert_true(between);
    pt_rmdir(dir);
}

/* ---- a set replaced by another, killed at every step --------------------------------------- */

enum { OLD_SAMPLES = 420, OLD_SCALE = 3000, NEW_SAMPLES = 330, NEW_SCALE = 4000 };

/* Returns whether NAME is the new pack. Old or new, it must be complete, and alone in the folder when
 * `clean`. */
static bool is_new_and_whole(const char *dir, bool clean)
{
    leat_pack *p;
    leat_pack_info info;
    leat_error err;
    const char *path = pt_path(dir, "a.leat");
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_info_read(p, &info, sizeof info), 0);
    leat_pack_close(&p);
    bool new = info.samples == NEW_SAMPLES;
    pt_check(path, new ? NEW_SAMPLES : OLD_SAMPLES, new ? NEW_SCALE : OLD_SCALE);
    assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    if (clean) assert_int_equal(files_in(dir), info.shards > 1 ? info.shards + 1 : 1);
    return new;
}

/* Kills the child before the nth operation of `kind` during finish. False: there are fewer. */
static bool killed_while_replacing(const char *path, leat_packer_opts *o, leat__fault_kind kind, uint64_t nth)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        leat_packer *p;
        leat_error err;
        if (leat_packer_open(&p, path, o, &err) != 0) _exit(2);
        if (pt_blobs(p, &err) != 0) _exit(3);
        if (pt_append(p, 0, NEW_SAMPLES, NEW_SCALE, &err) != 0) _exit(4);
        leat__fault_arm_kill(kind, nth);
        _exit(leat_packer_finish(p, NULL, &err) == 0 ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static void recover(const char *dir, leat_packer_opts o, uint64_t way, bool was_new)
{
    char *path = pt_path(dir, "a.leat");
    leat_error err;
    if (way % 3 == 0) { /* resumed: the new pack, nothing of the old one */
        o.resume = 1;
        assert_int_equal(pt_write(path, &o, NEW_SAMPLES, NEW_SCALE, NULL, &err), 0);
        assert_true(is_new_and_whole(dir, true));
    } else if (way % 3 == 1) { /* discarded: only the pack that was at the name remains */
        assert_int_equal(leat_packer_discard(path, &err), 0);
        assert_int_equal(is_new_and_whole(dir, true), was_new);
    } else { /* started again */
        assert_int_equal(pt_write(path, &o, NEW_SAMPLES, NEW_SCALE, NULL, &err), 0);
        assert_true(is_new_and_whole(dir, true));
    }
}

static void kill_at_every_step(leat__fault_kind kind, uint64_t shard_bytes, uint64_t way)
{
    bool killed = true, before = false, after = false;
    for (uint64_t nth = 1; killed; nth++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_error err;
        o.shard_bytes = 1 << 20;
        assert_int_equal(pt_write(path, &o, OLD_SAMPLES, OLD_SCALE, NULL, &err), 0);
        o.shard_bytes = shard_bytes;
        o.replace = 1;
        killed = killed_while_replacing(path, &o, kind, nth);
        bool new = is_new_and_whole(dir, !killed);
        if (killed) *(new ? &after : &before) = true;
        if (killed) recover(dir, o, nth + way, new);
        else assert_true(new);
        pt_rmdir(dir);
    }
    assert_true(before);
    if (kind == LEAT__FAULT_SYNC) assert_true(after); /* old shards and journal were left */
}

static void test_kill_at_every_step(void **state)
{
    if (!leat__fault_available()) skip();
    kill_at_every_step(LEAT__FAULT_SYNC, 1 << 20, 0);
    kill_at_every_step(LEAT__FAULT_WRITE, 1 << 20, 2);
    kill_at_every_step(LEAT__FAULT_SYNC, 0, 1); /* a set by a single file */
}

/* A reader with the old set open can read it to its end. */
static void test_readers_keep_the_old_set(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_pack *p;
    leat_sample *s;
    leat_error err;
    o.shard_bytes = 1 << 20;
    assert_int_equal(pt_write(path, &o, OLD_SAMPLES, OLD_SCALE, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    o.replace = 1;
    assert_int_equal(pt_write(path, &o, NEW_SAMPLES, NEW_SCALE, NULL, &err), 0);
    assert_int_equal(leat_sample_open(&s, p, &err), 0);
    for (uint64_t i = 0; i < OLD_SAMPLES; i++) {
        pt_sample want;
        pt_make(&want, i, OLD_SCALE);
        assert_int_equal(leat_sample_read(s, i, &err), 0);
        for (uint32_t f = 0; f < PT_FIELDS; f++) pt_same(s, f, &want.values[f]);
        pt_free(&want);
    }
    leat_sample_close(&s);
    leat_pack_close(&p);
    /* The same content takes the same names: nothing is lost then either. */
    assert_int_equal(pt_write(path, &o, NEW_SAMPLES, NEW_SCALE, NULL, &err), 0);
    assert_true(is_new_and_whole(dir, true));
    pt_rmdir(dir);
}

/* A set whose shards have the names of earlier versions can be read, and replaced without
 * leftovers. */
static void test_replace_a_set_with_old_names(void **state)
{
    const char *data = getenv("LEAT_TEST_DATA");
    if (data == NULL) skip();
    char *dir = pt_dir(), cmd[1300];
    char *path = pt_path(dir, "pack-2.0-set.leat");
    leat_packer_opts o = pt_opts();
    leat_pack *p;
    leat_error err;
    snprintf(cmd, sizeof cmd, "cp '%s'/pack-2.0-set*.leat '%s'", data, dir);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(files_in(dir), 2);
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    leat_pack_close(&p);
    o.shard_bytes = 1 << 20;
    o.replace = 1;
    assert_int_equal(pt_write(path, &o, 10, 100, NULL, &err), 0);
    pt_check(path, 10, 100);
    assert_int_equal(files_in(dir), 2);
    assert_int_equal(access(pt_path(dir, "pack-2.0-set-00000.leat"), F_OK), -1);
    pt_rmdir(dir);
}

/* Links are kept; a file that is not regular is refused before anything is written. */
static void test_links_and_nodes(void **state)
{
    char *dir = pt_dir();
    char *link_path = pt_path(dir, "link.leat"), *fifo = pt_path(dir, "fifo");
    leat_packer_opts o = pt_opts();
    struct stat st;
    leat_error err;
    assert_int_equal(mkdir(pt_path(dir, "far"), 0700), 0);
    assert_int_equal(symlink("far/a.leat", link_path), 0);
    for (int i = 0; i < 2; i++) {
        o.shard_bytes = i == 0 ? 0 : 1 << 20;
        assert_int_equal(pt_write(link_path, &o, NEW_SAMPLES, NEW_SCALE, NULL, &err), 0);
        assert_int_equal(lstat(link_path, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        pt_check(link_path, NEW_SAMPLES, NEW_SCALE);
        assert_true(is_new_and_whole(pt_path(dir, "far"), true));
        o.replace = 1;
    }
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(pt_write(fifo, &o, 3, 100, NULL, &err), LEAT_EINVAL);
    assert_int_equal(pt_write(pt_path(dir, "far"), &o, 3, 100, NULL, &err), LEAT_EINVAL);
    assert_int_equal(lstat(fifo, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(files_in(dir), 3);
    pt_rmdir(dir);
}

/* ---- unfinished packs ----------------------------------------------------------------------- */

static void test_replace_an_unfinished_pack(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer *p, *other;
    leat_error err;
    o.shard_bytes = 1 << 20;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    assert_int_equal(pt_append(p, 0, 600, 4000, &err), 0);
    o.replace = 1; /* while it is alive no other run takes it over */
    assert_int_equal(leat_packer_open(&other, path, &o, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "in use by another process"));
    o.replace = 0;
    assert_int_equal(leat_packer_open(&other, path, &o, &err), LEAT_ESTATE);
    assert_non_null(strstr(err.message, "in use by another process"));
    assert_null(strstr(err.message, "remove"));
    leat_packer_close(&p);
    assert_int_equal(leat_packer_open(&other, path, &o, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "resume"));
    o.replace = 1;
    o.identity++; /* other settings too: resume would refuse them */
    o.shard_bytes = 0;
    assert_int_equal(pt_write(path, &o, 50, 400, NULL, &err), 0);
    pt_check(path, 50, 400);
    assert_int_equal(files_in(dir), 1);
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

/* A file size limit simulates a full disk: the write fails with a message, and nothing appears under the
 * name. With enough space, writing continues. */
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
        cmocka_unit_test(test_kill_at_every_step),
        cmocka_unit_test(test_readers_keep_the_old_set),
        cmocka_unit_test(test_replace_a_set_with_old_names),
        cmocka_unit_test(test_links_and_nodes),
        cmocka_unit_test(test_replace_an_unfinished_pack),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_no_room),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
