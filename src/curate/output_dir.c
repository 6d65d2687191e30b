/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of an output folder, and its files.
 */
#include "curate/output_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/sealed.h"
#include "io/dir.h"

#define LOCK_NAME ".leat-lock"
#define REPORT_NAME "report.json"
#define PARTIAL ".partial" /* as in shards.c */
#define REPORT_MAX (16u << 20)
#define TRIES 8 /* attempts to take a lock while its holder removes it */
/* in the lock, after the process: the run writes, or wrote when it was killed */
#define OURS "files of leat\n"

/* ---- the lock ---- */

/* Returns the process that holds the lock, or 0 when it cannot be read. *ours: the lock says that
 * output files are leat's. */
static long read_lock(const char *path, bool *ours)
{
    char *data = NULL;
    size_t len;
    *ours = false;
    if (leat__file_load(path, 64, 1, &data, &len, NULL) != 0) return 0;
    long pid = strtol(data, NULL, 10);
    const char *line = strchr(data, '\n');
    *ours = line != NULL && leat__str_starts(line + 1, OURS);
    leat__free(data);
    return pid;
}

static int write_lock(leat__file *file, bool ours, leat_error *err)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%ld\n%s", (long)getpid(), ours ? OURS : "");
    /* Write before truncating, so that a kill does not erase the mark. */
    LEAT_TRY(leat__file_pwrite(file, text, (size_t)n, 0, err));
    return leat__file_truncate(file, (uint64_t)n, err);
}

static int in_use(const char *folder, const char *path, leat_error *err)
{
    bool ours;
    long pid = read_lock(path, &ours);
    if (pid > 0) return leat__fail(err, LEAT_ESTATE, "%s: in use by another run (process %ld)", folder, pid);
    return leat__fail(err, LEAT_ESTATE, "%s: in use by another run", folder);
}

/* Fails when something other than a file has the name of the lock. The target of a link is not leat's. */
static int check_lock(const char *path, leat_error *err)
{
    struct stat st;
    if (lstat(path, &st) != 0 || S_ISREG(st.st_mode)) return 0;
    return leat__fail(err, LEAT_EEXIST, "%s: is not a file: remove it first", path);
}

static int lock_file(leat__output_lock *l, const char *folder, leat_error *err)
{
    const unsigned flags = LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK;
    bool ours;
    int rc = LEAT_ESTATE;
    LEAT_TRY(check_lock(l->path, err));
    for (int i = 0; i < TRIES && rc == LEAT_ESTATE; i++) {
        bool there;
        rc = leat__file_open(&l->file, l->path, flags, err);
        if (rc != LEAT_ESTATE) break;
        LEAT_TRY(leat__path_exists(l->path, &there, err));
        if (there) return in_use(folder, l->path, err);
    }
    if (rc == LEAT_ESTATE) return in_use(folder, l->path, err);
    if (rc != 0) return rc;
    read_lock(l->path, &ours); /* left by a run that was killed */
    return write_lock(l->file, ours, err);
}

static int lock_path(leat__buf *path, const char *folder)
{
    leat__buf_init(path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(path, "%s/%s", folder, LOCK_NAME);
    return path->status;
}

int leat__output_lock_take(leat__output_lock *l, const char *folder, leat_error *err)
{
    leat__buf path;
    memset(l, 0, sizeof *l);
    LEAT_TRY(leat__path_mkdir(folder, err));
    (void)!lock_path(&path, folder);
    l->path = leat__buf_take(&path, NULL);
    int rc = l->path ? lock_file(l, folder, err) : leat__fail_nomem(err, strlen(folder), "a path");
    if (rc != 0) {
        leat__file_close(&l->file);
        leat__free(l->path);
        l->path = NULL;
    }
    return rc;
}

/* ---- files ---- */

bool leat__output_name(const char *name)
{
    static const char *const whole[] = {"reasons.jsonl", "bad.jsonl",   "clusters.jsonl", "changed.jsonl",
                                        "matches.jsonl", "evals.jsonl", REPORT_NAME,      "index.leat-dedup"};
    static const char *const ends[] = {".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"};
    for (size_t i = 0; i < LEAT_COUNT(whole); i++)
        if (leat__str_eq(name, whole[i])) return true;
    if (!leat__str_starts(name, "kept-") && !leat__str_starts(name, "scores-")) return false;
    name = strchr(name, '-') + 1;
    size_t digits = strspn(name, "0123456789");
    for (size_t i = 0; i < LEAT_COUNT(ends) && digits >= 5; i++)
        if (leat__str_eq(name + digits, ends[i])) return true;
    return false;
}

/* Accepts only reports of leat, which have the counts and the list of files. */
json_t *leat__output_load(const char *folder)
{
    static const char *const counts[] = {"documents", "kept", "bad"};
    leat__buf path;
    char *data = NULL;
    size_t len;
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&path, "%s/%s", folder, REPORT_NAME);
    bool ours =
        path.status == 0 && leat__file_load(leat__buf_str(&path), REPORT_MAX, 1, &data, &len, NULL) == 0;
    leat__buf_reset(&path);
    json_t *root = ours ? json_loadb(data, len, 0, NULL) : NULL;
    for (size_t i = 0; i < LEAT_COUNT(counts); i++)
        ours = ours && json_is_integer(json_object_get(root, counts[i]));
    leat__free(data);
    if (ours && json_is_array(json_object_get(root, "written"))) return root;
    json_decref(root);
    return NULL;
}

/* Returns the names listed in the report as keys of an object; NULL without a report of leat. */
static json_t *load_report(const char *folder)
{
    size_t at;
    json_t *name, *root = leat__output_load(folder), *names = root ? json_object() : NULL;
    if (names)
        json_array_foreach(json_object_get(root, "written"), at, name) if (json_is_string(name))
            json_object_set_new(names, json_string_value(name), json_true());
    json_decref(root);
    return names;
}

bool leat__output_complete(const char *folder)
{
    json_t *names = load_report(folder);
    json_decref(names);
    return names != NULL;
}

/* True when the output files are those of a run killed before it wrote its report. */
static bool was_killed(const char *folder)
{
    leat__buf path;
    bool ours = false;
    if (lock_path(&path, folder) == 0) read_lock(leat__buf_str(&path), &ours);
    leat__buf_reset(&path);
    return ours;
}

/* Marks the lock: from now on output files are leat's, even without a report. */
static int mark_ours(const char *folder, leat_error *err)
{
    leat__buf path;
    leat__file *file = NULL;
    bool locked = false;
    int rc = lock_path(&path, folder) == 0 ? 0 : leat__fail_nomem(err, path.len, "a path");
    if (rc == 0) rc = leat__path_exists(leat__buf_str(&path), &locked, err);
    if (rc == 0 && locked) rc = leat__file_open(&file, leat__buf_str(&path), LEAT__FILE_WRITE, err);
    if (rc == 0 && locked) rc = write_lock(file, true, err);
    leat__file_close(&file);
    leat__buf_reset(&path);
    return rc;
}

/* Finds the first file that a run would replace and returns its name as a new string; NULL when there
 * is none. With `names`, finds only files that this report does not list. */
static int find_output(const char *folder, const json_t *names, char **found, leat_error *err)
{
    leat__dir dir = {0};
    *found = NULL;
    int rc = leat__dir_read(&dir, folder, true, err);
    if (rc == 0) leat__dir_sort(&dir, strcmp);
    for (size_t i = 0; i < dir.count && rc == 0 && !*found; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (!leat__output_name(name)) continue;
        if (names && (leat__str_eq(name, REPORT_NAME) || json_object_get(names, name))) continue;
        *found = leat__strdup(LEAT__MEM_CURATE, name);
        if (!*found) rc = leat__fail_nomem(err, strlen(name), "a name");
    }
    leat__dir_reset(&dir);
    return rc;
}

/* True when a run was killed, or still works, between removing the old report and writing the new one, and
 * the folder has output files. */
static bool is_unfinished(const char *folder)
{
    char *found = NULL;
    bool unfinished = was_killed(folder) && !leat__output_complete(folder) &&
                      (find_output(folder, NULL, &found, NULL) != 0 || found != NULL);
    leat__free(found);
    return unfinished;
}

int leat__output_finished(const char *folder, leat_error *err)
{
    if (!is_unfinished(folder)) return 0;
    return leat__fail(
        err, LEAT_EDATA,
        "%s: incomplete output: a run was killed while it wrote these files, or is still writing "
        "them (run it again with `force`)",
        folder);
}

static int refuse_foreign(const char *folder, const char *name, leat_error *err)
{
    return leat__fail(err, LEAT_EEXIST,
                      "%s: has files that this run would replace: %s, and no report of leat that names it "
                      "(move it, or choose another folder)",
                      folder, name);
}

/* Fails when a folder has the name of an output file: the run would fail only at its end, after it removed
 * the earlier output. */
static int refuse_folders(const char *folder, leat_error *err)
{
    leat__dir dir = {0};
    int rc = leat__dir_read(&dir, folder, true, err);
    if (rc == 0) leat__dir_sort(&dir, strcmp);
    for (size_t i = 0; i < dir.count && rc == 0; i++)
        if (dir.entries[i].kind == LEAT__ENTRY_FOLDER && leat__output_name(leat__dir_name(&dir, i)))
            rc = leat__fail(err, LEAT_EEXIST, "%s/%s: is a folder, not a file of an output: remove it first",
                            folder, leat__dir_name(&dir, i));
    leat__dir_reset(&dir);
    return rc;
}

int leat__output_ours(const char *folder, leat_error *err)
{
    char *found = NULL;
    LEAT_TRY(refuse_folders(folder, err));
    json_t *names = load_report(folder);
    int rc = !names && was_killed(folder) ? 0 : find_output(folder, names, &found, err);
    json_decref(names);
    if (rc == 0 && found) rc = refuse_foreign(folder, found, err);
    leat__free(found);
    return rc;
}

int leat__output_unused(const char *folder, leat_error *err)
{
    char *found;
    LEAT_TRY(leat__output_ours(folder, err));
    LEAT_TRY(find_output(folder, NULL, &found, err));
    if (!found) return 0;
    leat__free(found);
    return leat__fail(err, LEAT_EEXIST, "%s: has the output of an earlier run (use `force` to replace it)",
                      folder);
}

int leat__output_refuse_empty(const char *folder, uint64_t documents, uint64_t bad, const char *unit,
                              leat_error *err)
{
    char *found;
    if (documents > 0 || bad == 0) return 0;
    LEAT_TRY(find_output(folder, NULL, &found, err));
    if (!found) return 0;
    leat__free(found);
    return leat__fail(err, LEAT_EDATA,
                      "no %s has a text that could be read (%llu %s%s): the earlier output in %s is kept "
                      "(check `text_field`, or choose another folder to list the %ss)",
                      unit, (unsigned long long)bad, unit, bad == 1 ? "" : "s", folder, unit);
}

static int remove_file(const char *folder, const char *name, leat_error *err)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_printf(&path, "%s/%s", folder, name);
    int rc = path.status == 0 ? leat__path_unlink(leat__buf_str(&path), err)
                              : leat__fail_nomem(err, path.len, "a path");
    leat__buf_reset(&path);
    return rc;
}

int leat__output_clear(const char *folder, leat_error *err)
{
    leat__dir dir = {0};
    json_t *names = load_report(folder);
    int rc = leat__dir_read(&dir, folder, true, err);
    for (size_t i = 0; i < dir.count && rc == 0; i++)
        if (leat__str_eq(leat__dir_name(&dir, i), REPORT_NAME) && !names)
            rc = refuse_foreign(folder, REPORT_NAME, err);
    if (rc == 0 && names) rc = leat__output_ours(folder, err);
    if (rc == 0) rc = mark_ours(folder, err);
    if (rc == 0) rc = remove_file(folder, REPORT_NAME, err);
    if (rc == 0) rc = leat__dir_read(&dir, folder, true, err);
    for (size_t i = 0; i < dir.count && rc == 0; i++)
        if (dir.entries[i].kind == LEAT__ENTRY_FILE && leat__output_name(leat__dir_name(&dir, i)))
            rc = remove_file(folder, leat__dir_name(&dir, i), err);
    leat__dir_reset(&dir);
    json_decref(names);
    return rc;
}

/* True for the temporary name of an output file, or of the report (see leat__file_store). */
static bool is_partial(const char *name)
{
    char whole[64];
    size_t n = strlen(name), end = strlen(PARTIAL);
    if (leat__file_store_temp(name, REPORT_NAME)) return true;
    if (n <= end || n - end >= sizeof whole || !leat__str_eq(name + n - end, PARTIAL)) return false;
    memcpy(whole, name, n - end);
    whole[n - end] = 0;
    return leat__output_name(whole);
}

int leat__output_sweep(const char *folder, leat_error *err)
{
    leat__dir dir = {0};
    int rc = leat__dir_read(&dir, folder, true, err);
    for (size_t i = 0; i < dir.count && rc == 0; i++)
        if (dir.entries[i].kind == LEAT__ENTRY_FILE && is_partial(leat__dir_name(&dir, i)))
            rc = remove_file(folder, leat__dir_name(&dir, i), err);
    leat__dir_reset(&dir);
    return rc;
}

static bool listed(const leat__dir *dir, size_t i)
{
    return leat__output_name(leat__dir_name(dir, i)) && !leat__str_eq(leat__dir_name(dir, i), REPORT_NAME);
}

/* Lists the names and the sizes of the output files in the folder as members of an object. */
static int list_output(const char *folder, leat__buf *out, leat_error *err)
{
    leat__dir dir = {0};
    leat__json j;
    LEAT_TRY(leat__dir_read(&dir, folder, false, err));
    leat__dir_sort(&dir, strcmp);
    leat__buf_puts(out, ",\"written\":");
    leat__json_init(&j, out, 0);
    leat__json_array(&j);
    for (size_t i = 0; i < dir.count; i++)
        if (listed(&dir, i)) leat__json_str(&j, leat__dir_name(&dir, i));
    leat__json_end(&j);
    leat__buf_puts(out, ",\"sizes\":");
    leat__json_init(&j, out, 0);
    leat__json_array(&j);
    for (size_t i = 0; i < dir.count; i++)
        if (listed(&dir, i)) leat__json_u64(&j, dir.entries[i].size);
    leat__json_end(&j);
    leat__dir_reset(&dir);
    return out->status == 0 ? 0 : leat__fail_nomem(err, out->len, "the report");
}

int leat__output_report(const char *folder, const leat__buf *counts, leat_error *err)
{
    leat__buf path, json;
    if (counts->status != 0) return leat__fail_nomem(err, counts->len, "the report");
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    leat__buf_init(&json, LEAT__MEM_CURATE, REPORT_MAX);
    leat__buf_printf(&path, "%s/%s", folder, REPORT_NAME);
    leat__buf_append(&json, counts->data, counts->len - 1); /* without the closing brace */
    int rc = list_output(folder, &json, err);
    leat__buf_puts(&json, "}");
    leat__sealed_end(&json);
    leat__buf_puts(&json, "\n");
    if (rc == 0 && (path.status || json.status)) rc = leat__fail_nomem(err, json.len, "the report");
    if (rc == 0) rc = leat__file_store(leat__buf_str(&path), json.data, json.len, err);
    leat__buf_reset(&path);
    leat__buf_reset(&json);
    return rc;
}

static int check_file(const leat__dir *dir, const char *folder, const char *name, const json_t *size,
                      leat_error *err)
{
    size_t i = 0;
    while (i < dir->count && !leat__str_eq(leat__dir_name(dir, i), name)) i++;
    if (i == dir->count)
        return leat__fail(err, LEAT_EDATA, "%s/%s: is missing (use `force` to start over)", folder, name);
    if (dir->entries[i].kind != LEAT__ENTRY_FILE)
        return leat__fail(err, LEAT_EDATA, "%s/%s: is not a file (remove it, then use `force` to start over)",
                          folder, name);
    if (dir->entries[i].size == (uint64_t)json_integer_value(size)) return 0;
    return leat__fail(err, LEAT_EDATA, "%s/%s: is %llu bytes, expected %llu (use `force` to start over)",
                      folder, name, (unsigned long long)dir->entries[i].size,
                      (unsigned long long)json_integer_value(size));
}

int leat__output_intact(const char *folder, leat_error *err)
{
    char path[4096];
    leat__dir dir = {0};
    json_t *report = NULL, *name;
    size_t at;
    snprintf(path, sizeof path, "%s/%s", folder, REPORT_NAME);
    LEAT_TRY(leat__sealed_load(path, REPORT_MAX, &report, err));
    const json_t *names = json_object_get(report, "written"), *sizes = json_object_get(report, "sizes");
    int rc = leat__dir_read(&dir, folder, false, err);
    json_array_foreach(names, at, name) if (rc == 0 && json_is_string(name)) rc =
        check_file(&dir, folder, json_string_value(name), json_array_get(sizes, at), err);
    json_decref(report);
    leat__dir_reset(&dir);
    return rc;
}

/* ---- unlocking ---- */

/* True when the lock must stay, because it marks files without a report as leat's. */
static bool still_needed(const char *lock)
{
    const char *slash = strrchr(lock, '/');
    char *folder = leat__strndup(LEAT__MEM_CURATE, lock, (size_t)(slash - lock));
    bool needed = folder == NULL || is_unfinished(folder);
    leat__free(folder);
    return needed;
}

void leat__output_lock_drop(leat__output_lock *l)
{
    if (l->file && !still_needed(l->path)) (void)!leat__path_unlink(l->path, NULL);
    leat__file_close(&l->file);
    leat__free(l->path);
    memset(l, 0, sizeof *l);
}
