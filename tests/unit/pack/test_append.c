/* SPDX-License-Identifier: Apache-2.0
 *
 * Generations: appending, dropping and updating by key, kills at every step, two writers.
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

static leat_packer *begin(const char *path)
{
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_error err;
    o.append = 1;
    o.no_sync = 1;
    int rc = leat_packer_open(&p, path, &o, &err);
    if (rc != 0) fail_msg("%s", err.message);
    return p;
}

static void end(leat_packer *p)
{
    leat_error err;
    int rc = leat_packer_finish(p, NULL, &err);
    if (rc != 0) fail_msg("%s", err.message);
    leat_packer_close(&p);
}

static void append(const char *path, uint64_t first, uint64_t last, size_t scale)
{
    leat_error err;
    leat_packer *p = begin(path);
    assert_int_equal(pt_append(p, first, last, scale, &err), 0);
    end(p);
}

static uint64_t drop(leat_packer *p, uint64_t i)
{
    pt_sample s;
    uint64_t count = 99;
    leat_error err;
    pt_make(&s, i, 100);
    assert_int_equal(leat_packer_drop(p, s.key, strlen(s.key), &count, &err), 0);
    pt_free(&s);
    return count;
}

static leat_pack_info info_of(const char *path)
{
    leat_pack *p;
    leat_pack_info info;
    leat_error err;
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_info_read(p, &info, sizeof info), 0);
    leat_pack_close(&p);
    return info;
}

/* ---- appending ----------------------------------------------------------------------------- */

static void test_append(void **state)
{
    for (int sharded = 0; sharded < 2; sharded++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_error err;
        o.shard_bytes = sharded ? 1 << 20 : 0;
        assert_int_equal(pt_write(path, &o, 300, 4000, NULL, &err), 0);
        uint32_t shards = info_of(path).shards;
        append(path, 300, 320, 4000);
        pt_check(path, 320, 4000);
        append(path, 320, 321, 4000);
        append(path, 321, 700, 4000);
        pt_check(path, 700, 4000);
        leat_pack_info info = info_of(path);
        assert_int_equal(info.shards, shards + 3);
        assert_int_equal(info.version_major, 2); /* older versions can read it */
        assert_int_equal(info.dropped, 0);
        assert_int_equal(files_in(dir), info.shards + 1);
        assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
        pt_rmdir(dir);
    }
}

static void test_nothing_to_append(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    assert_int_equal(pt_write(path, &o, 30, 400, NULL, &err), 0);
    uint64_t before = info_of(path).fingerprint;
    leat_packer *p = begin(path);
    assert_int_equal(drop(p, 4711), 0);
    end(p);
    assert_true(info_of(path).fingerprint == before);
    assert_int_equal(files_in(dir), 1);
    pt_rmdir(dir);
}

static void test_what_is_refused(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer *p, *other;
    leat_error err;
    o.append = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_ENOENT);
    o.append = 0;
    assert_int_equal(pt_write(path, &o, 30, 400, NULL, &err), 0);
    o.append = 1;
    o.field_count = 3;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "other fields"));
    assert_int_equal(files_in(dir), 1); /* nothing is left of it */
    o.field_count = PT_FIELDS;
    o.resume = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EINVAL);
    o.resume = 0;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    /* one writer at a time, of any kind */
    assert_int_equal(leat_packer_open(&other, path, &o, &err), LEAT_ESTATE);
    assert_int_equal(leat_pack_compact(path, NULL, NULL, &err), 0); /* one file: nothing to do */
    /* blobs that samples need are kept; class names may be added after the others */
    const char *more[] = {"zero", "one", "two \"quoted\"", "drei", "四", "new"};
    assert_int_equal(leat_packer_blob(p, "tile-tables", "other", 5, &err), LEAT_EINVAL);
    assert_int_equal(leat_packer_classes(p, PT_LABEL, more + 1, 5, &err), LEAT_EINVAL);
    assert_int_equal(leat_packer_classes(p, PT_LABEL, more, 4, &err), LEAT_EINVAL);
    assert_int_equal(leat_packer_classes(p, PT_LABEL, more, 6, &err), 0);
    end(p);
    leat_pack *pack;
    const char *const *names;
    uint64_t count;
    assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
    assert_int_equal(leat_pack_classes(pack, PT_LABEL, &names, &count, &err), 0);
    assert_int_equal(count, 6);
    assert_string_equal(names[5], "new");
    leat_pack_close(&pack);
    o.append = 0;
    o.replace = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    assert_int_equal(leat_packer_drop(p, "x", 1, NULL, &err), LEAT_ESTATE);
    assert_int_equal(pt_append(p, 0, 100, 4000, &err), 0);
    leat_packer_close(&p);
    o.append = 1; /* an unfinished pack may still be resumed, so it is not discarded */
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EEXIST);
    pt_rmdir(dir);
}

/* A reader with the old generation open can read it to its end. */
static void test_readers_keep_the_old_generation(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_pack *old;
    leat_sample *s;
    leat_error err;
    assert_int_equal(pt_write(path, &o, 200, 400, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&old, path, NULL, &err), 0);
    append(path, 200, 300, 400);
    leat_packer *p = begin(path);
    for (uint64_t i = 0; i < 300; i++) assert_int_equal(drop(p, i), 1);
    end(p);
    assert_int_equal(info_of(path).samples, 0);
    assert_int_equal(leat_pack_compact(path, NULL, NULL, &err), 0);
    assert_int_equal(leat_sample_open(&s, old, &err), 0);
    for (uint64_t i = 0; i < 200; i++) {
        pt_sample want;
        pt_make(&want, i, 400);
        assert_int_equal(leat_sample_read(s, i, &err), 0);
        for (uint32_t f = 0; f < PT_FIELDS; f++) pt_same(s, f, &want.values[f]);
        pt_free(&want);
    }
    leat_sample_close(&s);
    leat_pack_close(&old);
    pt_rmdir(dir);
}

/* ---- dropping ------------------------------------------------------------------------------ */

/* Checks every call of a reader against the expected numbers, in order. */
static void check_numbers(const char *path, const uint64_t *want, uint64_t count, size_t scale)
{
    leat_pack *p;
    leat_sample *s;
    leat_error err;
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_count(p), count);
    leat_pack_row *rows = calloc(count + 1, sizeof *rows);
    leat_pack_cell *cells = calloc(count + 1, sizeof *cells);
    int64_t *labels = calloc(count + 1, sizeof *labels);
    double *weights = calloc(count + 1, sizeof *weights);
    assert_int_equal(leat_pack_rows(p, 0, count, rows, &err), 0);
    assert_int_equal(leat_pack_cells(p, PT_TEXT, 0, count, cells, &err), 0);
    assert_int_equal(leat_pack_ints(p, PT_LABEL, 0, count, labels, &err), 0);
    assert_int_equal(leat_pack_floats(p, PT_WEIGHT, 0, count, weights, &err), 0);
    assert_int_equal(leat_sample_open(&s, p, &err), 0);
    for (uint64_t i = 0; i < count; i++) {
        pt_sample w;
        uint64_t found;
        leat_pack_page page;
        pt_make(&w, want[i], scale);
        assert_int_equal(leat_sample_read(s, i, &err), 0);
        assert_string_equal(leat_sample_key(s, NULL), w.key);
        for (uint32_t f = 0; f < PT_FIELDS; f++) pt_same(s, f, &w.values[f]);
        assert_int_equal(leat_pack_find(p, w.key, strlen(w.key), &found, &err), 0);
        assert_int_equal(found, i);
        assert_int_equal(labels[i], w.values[PT_LABEL].i);
        assert_true(weights[i] == w.values[PT_WEIGHT].f);
        assert_int_equal(cells[i].length, w.values[PT_TEXT].size);
        assert_int_equal(leat_pack_page_info(p, rows[i].page, &page, &err), 0);
        assert_true(page.first <= i && i < page.first + page.samples);
        pt_free(&w);
    }
    uint64_t sum = 0;
    for (uint64_t g = 0; g < info_of(path).pages; g++) {
        leat_pack_page page;
        assert_int_equal(leat_pack_page_info(p, g, &page, &err), 0);
        assert_int_equal(page.first, sum);
        sum += page.samples;
    }
    assert_int_equal(sum, count);
    leat_sample_close(&s);
    leat_pack_close(&p);
    leat_pack_verify_stats st;
    assert_int_equal(leat_pack_verify(path, NULL, &st, &err), 0);
    assert_int_equal(st.samples, count);
    free(rows);
    free(cells);
    free(labels);
    free(weights);
}

/* Random generations of drops, updates and appends against a list of numbers. */
static void test_generations_against_a_model(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    uint64_t want[4000], count = 600, next = 600;
    leat__rng r;
    leat__rng_init(&r, 3, 0, 0, 0);
    for (uint64_t i = 0; i < count; i++) want[i] = i;
    assert_int_equal(pt_write(path, &o, count, 300, NULL, &err), 0);
    for (int generation = 0; generation < 8; generation++) {
        leat_packer *p = begin(path);
        uint64_t kept = 0, updated[40], updates = 0;
        for (uint64_t i = 0; i < count; i++) {
            uint32_t what = leat__rng_below(&r, generation == 5 ? 2 : 12);
            if (what > 1 || (what == 1 && updates == 40)) {
                want[kept++] = want[i];
                continue;
            }
            assert_int_equal(drop(p, want[i]), 1);
            /* a second drop has no effect */
            if (what == 1) assert_int_equal(drop(p, want[i]), 1);
            if (what == 1) updated[updates++] = want[i];
        }
        count = kept;
        for (uint64_t i = 0; i < updates; i++) {
            assert_int_equal(pt_append(p, updated[i], updated[i] + 1, 300, &err), 0);
            want[count++] = updated[i];
        }
        uint64_t fresh = leat__rng_below(&r, 3) * 20;
        assert_int_equal(pt_append(p, next, next + fresh, 300, &err), 0);
        for (uint64_t i = 0; i < fresh; i++) want[count++] = next++;
        end(p);
        check_numbers(path, want, count, 300);
        assert_int_equal(info_of(path).version_major, 3); /* readers without support for drops
                                                           * refuse it */
        assert_int_equal(files_in(dir), info_of(path).shards + 1);
    }
    assert_int_equal(leat_pack_compact(path, NULL, NULL, &err), 0);
    check_numbers(path, want, count, 300);
    assert_int_equal(info_of(path).version_major, 2);
    assert_int_equal(files_in(dir), 1);
    pt_rmdir(dir);
}

static void test_duplicate_and_odd_keys(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_field field = {.name = "n", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    const char *keys[] = {"a", "b", "a", "", "a", "\xff\x00z", "b"};
    const size_t sizes[] = {1, 1, 1, 0, 1, 3, 1};
    leat_packer *p;
    leat_pack *pack;
    leat_error err;
    uint64_t count, found;
    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    for (int i = 0; i < 7; i++) {
        leat_pack_value v = {.i = i};
        leat_pack_sample s = {.key = keys[i], .key_size = sizes[i], .values = &v};
        assert_int_equal(leat_packer_append(p, &s, &err), 0);
    }
    end(p);
    p = begin(path);
    assert_int_equal(leat_packer_drop(p, "a", 1, &count, &err), 0);
    assert_int_equal(count, 3); /* all that have it */
    assert_int_equal(leat_packer_drop(p, "", 0, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(leat_packer_drop(p, "\xff\x00z", 3, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(leat_packer_drop(p, "\xff", 1, &count, &err), 0);
    assert_int_equal(count, 0);
    end(p);
    assert_int_equal(leat_pack_open(&pack, path, NULL, &err), 0);
    assert_int_equal(leat_pack_count(pack), 2);
    assert_int_equal(leat_pack_find(pack, "b", 1, &found, &err), 0);
    assert_int_equal(found, 0);
    assert_int_equal(leat_pack_find(pack, "a", 1, &found, &err), LEAT_ENOENT);
    leat_pack_close(&pack);
    pt_rmdir(dir);
}

/* ---- kills --------------------------------------------------------------------------------- */

enum { BASE = 120, ADDED = 60, SCALE = 1500 };

static bool killed_while_appending(const char *path, leat__fault_kind kind, uint64_t nth)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
        leat_packer *p;
        leat_error err;
        o.append = 1;
        o.shard_bytes = 1 << 20;
        leat__fault_arm_kill(kind, nth);
        if (leat_packer_open(&p, path, &o, &err) != 0) _exit(2);
        if (pt_append(p, BASE, BASE + ADDED, SCALE, &err) != 0) _exit(3);
        if (leat_packer_drop(p, "class0/img_00000000.jpg", 23, NULL, &err) != 0) _exit(4);
        _exit(leat_packer_finish(p, NULL, &err) == 0 ? 0 : 5);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

/* Checks that the pack is the old or the new one, never a mixture; returns whether it is new. */
static bool whole(const char *path)
{
    uint64_t want[BASE + ADDED];
    leat_pack_info info = info_of(path);
    bool new = info.samples != BASE;
    for (uint64_t i = 0; i < BASE + ADDED; i++) want[i] = i + new;
    check_numbers(path, want, new ? BASE + ADDED - 1 : BASE, SCALE);
    return new;
}

static void kill_at_every_step(leat__fault_kind kind, uint64_t shard_bytes)
{
    bool killed = true, before = false, after = false;
    for (uint64_t nth = 1; killed; nth++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_error err;
        o.shard_bytes = shard_bytes;
        assert_int_equal(pt_write(path, &o, BASE, SCALE, NULL, &err), 0);
        killed = killed_while_appending(path, kind, nth);
        bool new = whole(path);
        if (killed) *(new ? &after : &before) = true;
        if (nth % 2 == 0) assert_int_equal(leat_packer_discard(path, &err), 0);
        uint64_t first = new ? BASE + ADDED : BASE;
        append(path, first, BASE + ADDED + 5, SCALE); /* the next one works and cleans up */
        uint64_t want[BASE + ADDED + 5];
        for (uint64_t i = 0; i < BASE + ADDED + 5; i++) want[i] = i + new;
        check_numbers(path, want, BASE + ADDED + 5 - new, SCALE);
        assert_int_equal(files_in(dir), info_of(path).shards + 1);
        pt_rmdir(dir);
    }
    assert_true(before);
    if (kind == LEAT__FAULT_SYNC) assert_true(after);
}

static void test_kill_at_every_step(void **state)
{
    if (!leat__fault_available()) skip();
    kill_at_every_step(LEAT__FAULT_SYNC, 0);
    kill_at_every_step(LEAT__FAULT_WRITE, 0);
    kill_at_every_step(LEAT__FAULT_SYNC, 1 << 20);
}

/* The files of a killed append have the numbers after those of the set. They are removed, even before the
 * first page. */
static void test_kill_after_other_generations(void **state)
{
    if (!leat__fault_available()) skip();
    bool killed = true;
    for (uint64_t nth = 1; killed; nth++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_pack_compact_opts c = {.struct_size = sizeof c, .no_sync = 1};
        leat_error err;
        assert_int_equal(pt_write(path, &o, BASE - 20, SCALE, NULL, &err), 0);
        append(path, BASE - 20, BASE - 10, SCALE);
        append(path, BASE - 10, BASE, SCALE);
        killed = killed_while_appending(path, LEAT__FAULT_WRITE, nth);
        (void)whole(path);
        assert_int_equal(leat_pack_compact(path, &c, NULL, &err), 0);
        (void)whole(path);
        assert_int_equal(files_in(dir), 1);
        pt_rmdir(dir);
    }
}

/* A file size limit simulates a full disk. */
static void test_no_room(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    struct rlimit keep, small;
    assert_int_equal(pt_write(path, &o, 50, 400, NULL, &err), 0);
    getrlimit(RLIMIT_FSIZE, &keep);
    small = keep;
    small.rlim_cur = 200000;
    signal(SIGXFSZ, SIG_IGN);
    leat_packer *p = begin(path);
    setrlimit(RLIMIT_FSIZE, &small);
    int rc = pt_append(p, 50, 400, 4000, &err);
    if (rc == 0) rc = leat_packer_finish(p, NULL, &err);
    setrlimit(RLIMIT_FSIZE, &keep);
    leat_packer_close(&p);
    assert_true(rc < 0);
    pt_check(path, 50, 400);
    append(path, 50, 80, 400);
    pt_check(path, 80, 400);
    assert_int_equal(files_in(dir), 3);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_nothing_to_append),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_readers_keep_the_old_generation),
        cmocka_unit_test(test_generations_against_a_model),
        cmocka_unit_test(test_duplicate_and_odd_keys),
        cmocka_unit_test(test_kill_at_every_step),
        cmocka_unit_test(test_kill_after_other_generations),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
