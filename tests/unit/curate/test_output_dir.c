/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <signal.h>
#include <sys/wait.h>

#include "curate/output_dir.h"

static bool there(const char *name)
{
    return access(in_box(name), F_OK) == 0;
}

static void put(const char *name)
{
    put_text(name, "");
}

static void one_run_at_a_time(void **state)
{
    leat__output_lock a, b;
    leat_error err = {0};
    char expected[64];
    assert_int_equal(leat__output_lock_take(&a, in_box("out"), NULL), 0);
    assert_int_equal(leat__output_lock_take(&b, in_box("out"), &err), LEAT_ESTATE);
    snprintf(expected, sizeof expected, "out: in use by another run (process %ld)", (long)getpid());
    if (!strstr(err.message, expected)) fail_msg("%s", err.message);
    assert_int_equal(leat__output_lock_take(&b, in_box("other"), NULL), 0);
    leat__output_lock_drop(&b);
    leat__output_lock_drop(&a);
    assert_false(there("out/.leat-lock"));
    assert_int_equal(leat__output_lock_take(&b, in_box("out"), NULL), 0);
    leat__output_lock_drop(&b);
}

static void a_killed_run_leaves_no_lock(void **state)
{
    leat__output_lock l;
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (leat__output_lock_take(&l, in_box("killed"), NULL) != 0) _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_true(there("killed/.leat-lock"));
    assert_int_equal(leat__output_lock_take(&l, in_box("killed"), NULL), 0);
    leat__output_lock_drop(&l);
}

static void a_lock_is_a_file(void **state)
{
    leat__output_lock l;
    leat_error err = {0};
    for (int link = 0; link < 2; link++) {
        put("odd/target");
        if (link) assert_int_equal(symlink("target", in_box("odd/.leat-lock")), 0);
        else assert_int_equal(mkdir(in_box("odd/.leat-lock"), 0777), 0);
        assert_int_equal(leat__output_lock_take(&l, in_box("odd"), &err), LEAT_EEXIST);
        if (!strstr(err.message, "odd/.leat-lock: is not a file: remove it first"))
            fail_msg("%s", err.message);
        assert_int_equal(remove(in_box("odd/.leat-lock")), 0);
    }
    assert_int_equal(leat__output_lock_take(&l, in_box("odd"), NULL), 0);
    leat__output_lock_drop(&l);
}

static void report(const char *folder)
{
    leat__buf counts;
    leat__buf_init(&counts, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_puts(&counts, "{\"documents\":3,\"kept\":2,\"bad\":0}");
    assert_int_equal(leat__output_report(in_box(folder), &counts, NULL), 0);
    leat__buf_reset(&counts);
}

/* A file that the earlier run did not write stays, whatever its name; nothing is removed then. */
static void only_files_of_the_report_are_replaced(void **state)
{
    static const char *const mine[] = {"few/kept-00000.jsonl", "few/kept-00001.jsonl.zst",
                                       "few/clusters.jsonl"};
    leat_error err = {0};
    assert_int_equal(mkdir(in_box("few"), 0777), 0);
    put("few/bad.jsonl");
    report("few"); /* of a run that kept nothing */
    for (size_t i = 0; i < LEAT_COUNT(mine); i++) {
        put(mine[i]);
        assert_int_equal(leat__output_ours(in_box("few"), &err), LEAT_EEXIST);
        if (!strstr(err.message, strchr(mine[i], '/') + 1)) fail_msg("%s", err.message);
        assert_int_equal(leat__output_clear(in_box("few"), NULL), LEAT_EEXIST);
        assert_true(there(mine[i]) && there("few/bad.jsonl") && there("few/report.json"));
        assert_int_equal(unlink(in_box(mine[i])), 0);
    }
    assert_int_equal(leat__output_clear(in_box("few"), NULL), 0);
    assert_false(there("few/bad.jsonl") || there("few/report.json"));
}

/* A folder cannot be replaced by a file, also when the report lists its name or the run was killed. */
static void folders_are_refused(void **state)
{
    static const char *const names[] = {"bad.jsonl", "report.json", "kept-00000.jsonl"};
    char path[64], expected[128];
    leat_error err = {0};
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        for (int killed = 0; killed < 2; killed++) {
            assert_int_equal(mkdir(in_box("dirs"), 0777), 0);
            put("dirs/bad.jsonl");
            put("dirs/kept-00000.jsonl");
            if (killed) put_text("dirs/.leat-lock", "1\nfiles of leat\n");
            else report("dirs");
            snprintf(path, sizeof path, "dirs/%s", names[i]);
            (void)!unlink(in_box(path));
            assert_int_equal(mkdir(in_box(path), 0777), 0);
            assert_int_equal(leat__output_ours(in_box("dirs"), &err), LEAT_EEXIST);
            snprintf(expected, sizeof expected, "%s: is a folder, not a file of an output", path);
            if (!strstr(err.message, expected)) fail_msg("%s", err.message);
            assert_int_equal(leat__output_unused(in_box("dirs"), NULL), LEAT_EEXIST);
            assert_int_equal(rmdir(in_box(path)), 0);
            (void)!unlink(in_box("dirs/bad.jsonl"));
            (void)!unlink(in_box("dirs/kept-00000.jsonl"));
            (void)!unlink(in_box("dirs/report.json"));
            (void)!unlink(in_box("dirs/.leat-lock"));
            assert_int_equal(rmdir(in_box("dirs")), 0);
        }
    }
}

static void files_are_not_replaced_unasked(void **state)
{
    static const char *const names[] = {
        "kept-00005.jsonl", "kept-00003.jsonl.zst", "scores-00000.jsonl.gz", "kept-00007.parquet",
        "bad.jsonl",        "clusters.jsonl",       "index.leat-dedup"};
    static const char *const others[] = {"kept-notes.jsonl", "kept-00000.jsonl.partial", "notes.txt",
                                         "kept-00000.csv"};
    char path[64];
    leat_error err = {0};
    assert_int_equal(mkdir(in_box("mine"), 0777), 0);
    for (size_t i = 0; i < LEAT_COUNT(others); i++) {
        snprintf(path, sizeof path, "mine/%s", others[i]);
        put(path);
    }
    assert_int_equal(leat__output_unused(in_box("mine"), NULL), 0);
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        snprintf(path, sizeof path, "mine/%s", names[i]);
        put(path);
        assert_int_equal(leat__output_unused(in_box("mine"), &err), LEAT_EEXIST);
        if (!strstr(err.message, names[i])) fail_msg("%s", err.message);
        assert_int_equal(unlink(in_box(path)), 0);
    }
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        snprintf(path, sizeof path, "mine/%s", names[i]);
        put(path);
    }
    assert_int_equal(leat__output_ours(in_box("mine"), &err), LEAT_EEXIST); /* with `force`, too */
    assert_non_null(strstr(err.message, "would replace: bad.jsonl, and no report of leat that names it"));
    put_text("mine/report.json", "{\"documents\": \"of the user\"}");
    assert_int_equal(leat__output_ours(in_box("mine"), NULL), LEAT_EEXIST);
    assert_int_equal(leat__output_clear(in_box("mine"), NULL), LEAT_EEXIST);
    assert_true(there("mine/report.json") && there("mine/bad.jsonl"));
    put_text("mine/report.json", "{\"documents\": 3, \"kept\": 2, \"bad\": 0}"); /* names no file */
    assert_int_equal(leat__output_ours(in_box("mine"), NULL), LEAT_EEXIST);
    assert_int_equal(unlink(in_box("mine/report.json")), 0);
    report("mine");
    assert_int_equal(leat__output_ours(in_box("mine"), NULL), 0);
    assert_int_equal(leat__output_unused(in_box("mine"), &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "has the output of an earlier run"));
    assert_int_equal(leat__output_clear(in_box("mine"), NULL), 0);
    assert_int_equal(leat__output_unused(in_box("mine"), NULL), 0);
    for (size_t i = 0; i < LEAT_COUNT(others); i++) {
        snprintf(path, sizeof path, "mine/%s", others[i]);
        assert_true(there(path));
    }
}

/* A run that was killed after it removed the old report, or before it wrote its first one. */
static void files_of_a_killed_run_can_be_replaced(void **state)
{
    leat__output_lock l;
    leat_error err = {0};
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (leat__output_lock_take(&l, in_box("torn"), NULL) != 0) _exit(1);
        if (leat__output_clear(in_box("torn"), NULL) != 0) _exit(1);
        put("torn/kept-00000.jsonl");
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    for (int i = 0; i < 2; i++) { /* a run that is refused does not forget it */
        assert_int_equal(leat__output_finished(in_box("torn"), &err), LEAT_EDATA);
        if (!strstr(err.message, "torn: incomplete output")) fail_msg("%s", err.message);
        assert_int_equal(leat__output_lock_take(&l, in_box("torn"), NULL), 0);
        assert_int_equal(leat__output_unused(in_box("torn"), NULL), LEAT_EEXIST);
        leat__output_lock_drop(&l);
    }
    assert_int_equal(leat__output_lock_take(&l, in_box("torn"), NULL), 0);
    assert_int_equal(leat__output_ours(in_box("torn"), NULL), 0);
    assert_int_equal(leat__output_clear(in_box("torn"), NULL), 0);
    leat__output_lock_drop(&l);
    assert_false(there("torn/.leat-lock") || there("torn/kept-00000.jsonl"));
    assert_int_equal(leat__output_finished(in_box("torn"), NULL), 0);
}

static void temporary_files_are_swept(void **state)
{
    assert_int_equal(mkdir(in_box("swept"), 0777), 0);
    put("swept/reasons.jsonl.partial");
    put("swept/kept-00003.jsonl.gz.partial");
    put("swept/mine.jsonl.partial");
    put("swept/reasons.jsonl");
    assert_int_equal(leat__output_sweep(in_box("swept"), NULL), 0);
    assert_false(there("swept/reasons.jsonl.partial"));
    assert_false(there("swept/kept-00003.jsonl.gz.partial"));
    assert_true(there("swept/mine.jsonl.partial"));
    assert_true(there("swept/reasons.jsonl"));
}

/* A run that was killed before it removed the old report, or after it wrote its own, left a whole output. A
 * mark that a longer number of a process was written over still counts. */
static void a_mark_beside_a_report_is_harmless(void **state)
{
    put("whole/kept-00000.jsonl");
    assert_int_equal(leat__output_finished(in_box("whole"), NULL), 0);
    put_text("whole/.leat-lock", "1\nfiles of leat\nt\n");
    assert_int_equal(leat__output_finished(in_box("whole"), NULL), LEAT_EDATA);
    report("whole");
    assert_int_equal(leat__output_finished(in_box("whole"), NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_run_at_a_time),
        cmocka_unit_test(a_killed_run_leaves_no_lock),
        cmocka_unit_test(a_lock_is_a_file),
        cmocka_unit_test(only_files_of_the_report_are_replaced),
        cmocka_unit_test(folders_are_refused),
        cmocka_unit_test(files_are_not_replaced_unasked),
        cmocka_unit_test(files_of_a_killed_run_can_be_replaced),
        cmocka_unit_test(temporary_files_are_swept),
        cmocka_unit_test(a_mark_beside_a_report_is_harmless),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
