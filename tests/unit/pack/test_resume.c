/* SPDX-License-Identifier: Apache-2.0
 *
 * Interrupted writing: killed at random times, with incomplete journals, lost pages and missing files. A
 * resumed run always gives the same bytes as an undisturbed one, and no reader accepts an unfinished file.
 * LEAT_KILLS sets the number of kills.
 */
#include "packtest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/hash.h"
#include "pack/journal.h"
#include "pack/layout.h"
#include "pack/page.h"

#define SAMPLES 700
#define SCALE 4000

typedef struct file_set {
    char *dir, *path;
    leat_packer_opts opts;
    uint8_t *want[16];
    size_t size[16];
    int count;
} file_set;

static char *name_of(const file_set *w, const char *stem, int i)
{
    char name[64];
    snprintf(name, sizeof name, "%s.leat", stem);
    return i == 0 ? pt_path(w->dir, name) : pt_shard(w->dir, stem, (unsigned)i - 1);
}

/* Writes the undisturbed pack "good" and remembers its files. The set lists its shards by
 * name, so the disturbed runs use the same name in another folder. */
static void prepare(file_set *w, bool shards)
{
    leat_error err;
    memset(w, 0, sizeof *w);
    w->dir = pt_dir();
    w->opts = pt_opts();
    w->opts.shard_bytes = shards ? 1 << 20 : 0;
    assert_int_equal(pt_write(name_of(w, "x", 0), &w->opts, SAMPLES, SCALE, NULL, &err), 0);
    for (int i = 0; i < 16 && access(name_of(w, "x", i), F_OK) == 0; i++, w->count++) {
        w->want[i] = pt_load(name_of(w, "x", i), &w->size[i]);
        assert_int_equal(unlink(name_of(w, "x", i)), 0);
    }
    assert_true(shards ? w->count > 3 : w->count == 1);
    w->path = strdup(name_of(w, "x", 0));
    w->opts.resume = 1;
    w->opts.no_sync = 0;
}

static void check_and_remove(file_set *w)
{
    for (int i = 0; i < w->count; i++) {
        size_t n;
        uint8_t *data = pt_load(name_of(w, "x", i), &n);
        assert_int_equal(n, w->size[i]);
        assert_memory_equal(data, w->want[i], n);
        free(data);
        assert_int_equal(unlink(name_of(w, "x", i)), 0);
    }
}

static void assert_nothing_left(file_set *w)
{
    assert_int_equal(access(pt_path(w->dir, "x.leat.journal"), F_OK), -1);
    assert_int_equal(access(pt_path(w->dir, "x.leat.partial"), F_OK), -1);
}

static void forget(file_set *w)
{
    for (int i = 0; i < w->count; i++) free(w->want[i]);
    free(w->path);
    pt_rmdir(w->dir);
}

static void refuses_partials(file_set *w)
{
    leat_pack *p;
    leat_error err;
    bool there = access(w->path, F_OK) == 0;
    int rc = leat_pack_open(&p, w->path, NULL, &err);
    assert_int_equal(rc, there ? 0 : LEAT_ENOENT); /* exists under its name only when complete */
    if (rc == 0) leat_pack_close(&p);
    const char *partials[] = {"x.leat.partial", "x-00000.leat.partial", "x-00001.leat.partial"};
    for (int i = 0; i < 3; i++) {
        rc = leat_pack_open(&p, pt_path(w->dir, partials[i]), NULL, &err);
        if (rc == 0) { /* header written, not yet renamed: it must be complete */
            leat_pack_close(&p);
            rc = leat_pack_verify(pt_path(w->dir, partials[i]), NULL, NULL, &err);
            assert_int_equal(rc, 0);
        } else {
            assert_true(rc == LEAT_ENOENT || rc == LEAT_EFORMAT || rc == LEAT_EDATA);
        }
    }
}

static void kill_loop(bool shards)
{
    file_set w;
    prepare(&w, shards);
    const char *env = getenv("LEAT_KILLS");
    int want = env != NULL ? atoi(env) : 25, kills = 0, finished = 0;
    leat__rng r;
    leat__rng_init(&r, shards ? 7 : 8, 0, 0, 0);
    uint64_t most = 40 * LEAT_NS_PER_MS;
    while (kills < want) {
        pid_t pid = fork();
        if (pid == 0) {
            leat_error err;
            _exit(pt_write(w.path, &w.opts, SAMPLES, SCALE, NULL, &err) == 0 ? 0 : 1);
        }
        int status;
        uint64_t start = leat__clock_ns();
        leat__sleep_ns(leat__rng_below(&r, most));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status)) {
            kills++;
        } else {
            assert_int_equal(WEXITSTATUS(status), 0);
            most = LEAT_NS_PER_MS + leat__clock_ns() - start; /* kill earlier next time */
        }
        refuses_partials(&w);
        if (access(w.path, F_OK) == 0) { /* complete, though perhaps killed just afterwards */
            leat_error err;
            /* Sometimes the pack is removed while its journal still exists. */
            if (access(pt_path(w.dir, "x.leat.journal"), F_OK) == 0 && finished % 2 == 0)
                assert_int_equal(pt_write(w.path, &w.opts, SAMPLES, SCALE, NULL, &err), 0);
            check_and_remove(&w);
            if (finished % 2 == 0) assert_nothing_left(&w);
            finished++;
        }
    }
    leat_error err;
    assert_int_equal(pt_write(w.path, &w.opts, SAMPLES, SCALE, NULL, &err), 0);
    check_and_remove(&w);
    assert_nothing_left(&w);
    print_message("%d kills, %d packs finished on the way, all equal\n", kills, finished);
    forget(&w);
}

static void test_kill(void **state)
{
    kill_loop(false);
}

static void test_kill_shards(void **state)
{
    kill_loop(true);
}

/* Writes n samples, then stops without finish. */
static void write_some(file_set *w, uint64_t n)
{
    leat_packer *p;
    leat_error err;
    assert_int_equal(leat_packer_open(&p, w->path, &w->opts, &err), 0);
    uint64_t from = leat_packer_resumed(p, NULL);
    assert_int_equal(pt_blobs(p, &err), 0);
    assert_int_equal(pt_append(p, from, n, SCALE, &err), 0);
    leat_packer_close(&p);
}

static void finish_and_check(file_set *w)
{
    leat_error err;
    int rc = pt_write(w->path, &w->opts, SAMPLES, SCALE, NULL, &err);
    if (rc != 0) print_error("%s\n", err.message);
    assert_int_equal(rc, 0);
    check_and_remove(w);
    assert_nothing_left(w);
}

static void test_marks_and_blobs_come_back(void **state)
{
    file_set w;
    leat_packer *p;
    leat_error err;
    uint64_t marks[LEAT_PACKER_MARKS];
    const void *blob;
    size_t size;
    prepare(&w, false);
    write_some(&w, 400);
    assert_int_equal(leat_packer_open(&p, w.path, &w.opts, &err), 0);
    uint64_t n = leat_packer_resumed(p, marks);
    assert_in_range(n, 380, 400); /* samples of an unfinished page are not safe */
    assert_int_equal(marks[0], n);
    assert_int_equal(marks[1], (n - 1) / 2);
    assert_int_equal(marks[3], 77);
    assert_int_equal(leat_packer_blob_view(p, "tile-tables", &blob, &size), 0);
    assert_memory_equal(blob, "some tables", 11);
    leat_packer_close(&p);
    finish_and_check(&w);
    forget(&w);
}

static void test_torn_journal(void **state)
{
    file_set w;
    leat__rng r;
    leat__rng_init(&r, 3, 0, 0, 0);
    prepare(&w, true);
    for (int i = 0; i < 20; i++) {
        size_t size;
        write_some(&w, 650);
        char *journal = pt_path(w.dir, "x.leat.journal");
        free(pt_load(journal, &size));
        assert_int_equal(truncate(journal, (off_t)leat__rng_below(&r, size + 1)), 0);
        finish_and_check(&w);
    }
    forget(&w);
}

/* A power failure may keep the journal and lose pages that were never synced. */
static void test_lost_pages(void **state)
{
    file_set w;
    leat__rng r;
    leat__rng_init(&r, 4, 0, 0, 0);
    prepare(&w, false);
    for (int i = 0; i < 20; i++) {
        size_t size;
        write_some(&w, 300);
        char *partial = pt_path(w.dir, "x.leat.partial");
        free(pt_load(partial, &size));
        uint8_t zeros[5000] = {0};
        int fd = open(partial, O_WRONLY);
        assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)leat__rng_below(&r, size - 5000)),
                         sizeof zeros);
        close(fd);
        if (i % 3 == 0) assert_int_equal(truncate(partial, (off_t)(size / 2)), 0);
        finish_and_check(&w);
    }
    forget(&w);
}

/* Records in the journal that all pages are on stable storage; returns the end of the last
 * one. */
static uint64_t mark_synced(file_set *w)
{
    leat__journal j;
    leat__journal_record r;
    leat_error err;
    uint64_t at = leat__journal_first(), end = 0;
    assert_int_equal(leat__journal_hold(&j, pt_path(w->dir, "x.leat.journal"), &err), 0);
    while (leat__journal_read(&j, at, &r, &err) == 0) {
        if (r.kind == LEAT__RECORD_PAGE) end = r.page.offset + r.page.bytes;
        at = r.next;
    }
    j.end = at;
    assert_int_equal(leat__journal_put_mark(&j, LEAT__RECORD_SYNC, &err), 0);
    leat__journal_reset(&j);
    return end;
}

/* The block with the end of the synced pages is written again with later pages: a power failure
 * may damage it, so all pages that extend into it are verified again. */
static void test_spoiled_shared_block(void **state)
{
    file_set w;
    int inside = 0;
    prepare(&w, false);
    for (uint64_t n = 300; n < 340; n += 4) {
        uint8_t junk[LEAT__PACK_BLOCK];
        write_some(&w, n);
        uint64_t end = mark_synced(&w), from = end / sizeof junk * sizeof junk;
        memset(junk, 0xee, sizeof junk);
        int fd = open(pt_path(w.dir, "x.leat.partial"), O_WRONLY);
        assert_int_equal(pwrite(fd, junk, end - from, (off_t)from), end - from);
        close(fd);
        inside += end > from;
        leat_packer *p;
        leat_error err;
        assert_int_equal(leat_packer_open(&p, w.path, &w.opts, &err), 0);
        uint64_t kept = leat_packer_resumed(p, NULL);
        assert_in_range(kept, n / 2, n); /* pages before that block are trusted */
        leat_packer_close(&p);
        finish_and_check(&w);
    }
    assert_true(inside > 5);
    forget(&w);
}

static void flip(const char *path, uint64_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Synced pages are also read back: a damaged one is written again. */
static void test_damage_of_synced_pages(void **state)
{
    file_set w;
    leat_packer *p;
    leat_error err;
    prepare(&w, false);
    write_some(&w, 600);
    uint64_t end = mark_synced(&w);
    flip(pt_path(w.dir, "x.leat.partial"), end / 2);
    assert_int_equal(leat_packer_open(&p, w.path, &w.opts, &err), 0);
    assert_in_range(leat_packer_resumed(p, NULL), 200, 400);
    assert_non_null(strstr(leat__packer_damage(p), "x.leat.partial: page "));
    leat_packer_close(&p);
    finish_and_check(&w);
    forget(&w);
    prepare(&w, true); /* a file of a set that is complete */
    write_some(&w, 690);
    flip(pt_path(w.dir, "x-00001.leat.partial"), 500000);
    finish_and_check(&w);
    forget(&w);
}

/* Finish fails at every sync in turn, then a page is damaged. A file without its name is written
 * again; a partly published set is refused. */
static void test_damage_while_publishing(void **state)
{
    if (!leat__fault_available()) skip();
    for (int shards = 0; shards < 2; shards++) {
        file_set w;
        leat_error err;
        int again = 0, refused = 0;
        prepare(&w, shards);
        for (uint64_t nth = 1;; nth++) {
            leat__fault_arm(LEAT__FAULT_SYNC, nth, false);
            int rc = pt_write(w.path, &w.opts, SAMPLES, SCALE, NULL, &err);
            leat__fault_disarm();
            if (rc == 0) break;
            const char *last = shards ? "x-00002.leat.partial" : "x.leat.partial";
            if (access(pt_path(w.dir, last), F_OK) != 0) { /* published up to here */
                finish_and_check(&w);
                continue;
            }
            bool renamed = shards && access(pt_path(w.dir, "x-00000.leat.partial"), F_OK) != 0;
            flip(pt_path(w.dir, last), 300000);
            if (renamed) {
                assert_int_equal(leat_packer_open(&(leat_packer *){NULL}, w.path, &w.opts, &err), LEAT_EDATA);
                assert_non_null(strstr(err.message, "was damaged since it was written"));
                flip(pt_path(w.dir, last), 300000);
                refused++;
            }
            finish_and_check(&w);
            again += !renamed;
        }
        assert_true(again > 0 && (refused > 0) == (shards == 1));
        check_and_remove(&w);
        forget(&w);
    }
}

/* A journal of an earlier version of the format: its pages are at other offsets. */
static void test_another_format(void **state)
{
    file_set w;
    leat_packer *p;
    leat_error err;
    size_t size;
    prepare(&w, false);
    write_some(&w, 100);
    char *path = pt_path(w.dir, "x.leat.journal");
    uint8_t *journal = pt_load(path, &size);
    leat__store_u64(journal + 8, 1); /* the identity includes the format */
    leat__store_u64(journal + 24, leat__hash64(journal, 24, 0));
    pt_store(path, journal, size);
    free(journal);
    assert_int_equal(leat_packer_open(&p, w.path, &w.opts, &err), LEAT_ESTATE);
    assert_null(p);
    forget(&w);
}

static void test_missing_partial(void **state)
{
    file_set w;
    prepare(&w, true);
    write_some(&w, 600);
    for (int i = 1; i < 16; i++) { /* the file being written disappears */
        char name[64];
        snprintf(name, sizeof name, "x-%05d.leat.partial", i);
        char next[64];
        snprintf(next, sizeof next, "x-%05d.leat.partial", i + 1);
        if (access(pt_path(w.dir, name), F_OK) == 0 && access(pt_path(w.dir, next), F_OK) != 0)
            assert_int_equal(unlink(pt_path(w.dir, name)), 0);
    }
    finish_and_check(&w);
    forget(&w);
}

/* Finishing fails at every step in turn, and the file is removed if it already has its name. The remaining
 * journal does not block a new run. */
static void test_published_and_removed(void **state)
{
    if (!leat__fault_available()) skip();
    file_set w;
    leat_error err;
    int removed = 0, failed = 0;
    prepare(&w, false);
    for (uint64_t nth = 1;; nth++) {
        leat__fault_arm(LEAT__FAULT_SYNC, nth, false);
        int rc = pt_write(w.path, &w.opts, SAMPLES, SCALE, NULL, &err);
        leat__fault_disarm();
        if (rc == 0) break;
        failed++;
        if (access(w.path, F_OK) == 0) {
            assert_int_equal(access(pt_path(w.dir, "x.leat.journal"), F_OK), 0);
            assert_int_equal(unlink(w.path), 0);
            removed++;
        }
        finish_and_check(&w);
    }
    assert_true(removed > 0 && failed > removed);
    forget(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_kill_shards),
        cmocka_unit_test(test_marks_and_blobs_come_back),
        cmocka_unit_test(test_torn_journal),
        cmocka_unit_test(test_lost_pages),
        cmocka_unit_test(test_spoiled_shared_block),
        cmocka_unit_test(test_damage_of_synced_pages),
        cmocka_unit_test(test_damage_while_publishing),
        cmocka_unit_test(test_another_format),
        cmocka_unit_test(test_missing_partial),
        cmocka_unit_test(test_published_and_removed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
