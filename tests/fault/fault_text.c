/* SPDX-License-Identifier: Apache-2.0
 *
 * Text runs that end at any write, sync, rename or removal: killed, or with an error from the system. Run
 * again (with `resume` where it exists), they end in the same files as a run that was not interrupted.
 */
#include <dirent.h>
#include <sys/wait.h>

#include "fault.h"

#include "../unit/ingest/sandbox.h"

#include <leat/text.h>

enum { DONE, FAILED, NOT_HIT, ENDS }; /* exit codes of a child */
enum { KILL, FAIL, WAYS };
enum { INPUTS = 3 };

typedef struct scenario {
    const char *name;
    const char *input; /* files INPUT-0.jsonl … */
    int (*run)(const struct scenario *s, const char *output, bool again, leat_error *err);
    void (*set)(leat_dedup_opts *o);
    bool old;        /* the folder has the output of an earlier run, which is replaced */
    uint64_t writes; /* every how many writes one is tested */
} scenario;

/* ---- inputs ---- */

static FILE *begin_input(const char *name, int i)
{
    char file[64];
    snprintf(file, sizeof file, "%s-%d.jsonl", name, i);
    FILE *f = fopen(in_box(file), "wb");
    assert_non_null(f);
    return f;
}

/* Documents of numbered words; every third repeats an earlier one, except its last words. */
static void make_documents(void)
{
    for (int i = 0; i < INPUTS; i++) {
        FILE *f = begin_input("docs", i);
        for (int k = 0; k < 120; k++) {
            int number = i * 120 + k, seed = number % 3 == 2 ? number / 2 : number;
            fprintf(f, "{\"id\":\"d%d\",\"score\":%d,\"text\":\"", number, number % 17);
            for (int w = 0; w < 60; w++)
                fprintf(f, "%sw%dx%d", w ? " " : "", w < 55 || seed == number ? seed : number, w * 7 % 50);
            fprintf(f, "\"}\n");
        }
        fprintf(f, "{\"id\":7}\n");
        fclose(f);
    }
}

/* Many short pieces, so that a run with little memory marks them in several parts. `gap` separates them. */
static void make_pieces(const char *name, const char *gap, int documents, int pieces, int kinds)
{
    unsigned next = 1;
    for (int i = 0; i < INPUTS; i++) {
        FILE *f = begin_input(name, i);
        for (int k = 0; k < documents; k++) {
            fprintf(f, "{\"id\":%d,\"text\":\"", i * documents + k);
            for (int w = 0; w < pieces; w++) {
                next = next * 1664525u + 1013904223u;
                fprintf(f, "%s%x", w ? gap : "", (next >> 8) % (unsigned)kinds);
            }
            fprintf(f, "\"}\n");
        }
        fclose(f);
    }
}

/* ---- runs ---- */

static void list_inputs(const scenario *s, const char *inputs[INPUTS])
{
    for (int i = 0; i < INPUTS; i++) {
        char file[64];
        snprintf(file, sizeof file, "%s-%d.jsonl", s->input, i);
        inputs[i] = strdup(in_box(file)); /* freed with the child */
    }
}

static int run_dedup(const scenario *s, const char *output, bool again, leat_error *err)
{
    const char *inputs[INPUTS];
    leat_dedup_opts o;
    leat_dedup_opts_init(&o);
    list_inputs(s, inputs);
    o.inputs = inputs;
    o.input_count = INPUTS;
    o.output = output;
    o.threads = 2;
    o.memory = 60u << 20;
    o.checkpoint_bytes = 1;
    o.kind = LEAT_DEDUP_EXACT;
    s->set(&o);
    o.resume = again;
    o.replace = s->old && !again;
    return leat_dedup_text(&o, NULL, err);
}

static int run_filter(const scenario *s, const char *output, bool again, leat_error *err)
{
    const char *inputs[INPUTS];
    leat_filter_opts o;
    leat_filter_opts_init(&o);
    list_inputs(s, inputs);
    o.inputs = inputs;
    o.input_count = INPUTS;
    o.output = output;
    o.threads = 2;
    o.set = "words.min=60,digit_ratio.max=0.5";
    o.shard_bytes = 40000;
    o.replace = again || s->old;
    return leat_filter_text(&o, NULL, err);
}

static int run_decontaminate(const scenario *s, const char *output, bool again, leat_error *err)
{
    const char *inputs[INPUTS];
    leat_decontaminate_opts o;
    leat_decontaminate_opts_init(&o);
    list_inputs(s, inputs);
    o.inputs = inputs;
    o.input_count = INPUTS - 1;
    o.evals = inputs + INPUTS - 1;
    o.eval_count = 1;
    o.output = output;
    o.threads = 2;
    o.shard_bytes = 40000;
    o.replace = again || s->old;
    return leat_decontaminate_text(&o, NULL, err);
}

static void set_fuzzy(leat_dedup_opts *o)
{
    o->kind = LEAT_DEDUP_FUZZY;
    o->bands = 4;
}

static void set_passes(leat_dedup_opts *o)
{
    o->kind = LEAT_DEDUP_FUZZY;
    o->bands = 4;
    o->bands_per_iteration = 2;
    o->memory = 90u << 20;
    o->index = 1;
    o->set = "words.min=30,digit_ratio.max=0.5";
}

static void set_exact(leat_dedup_opts *o)
{
    o->shard_bytes = 40000;
}

static void set_longest(leat_dedup_opts *o)
{
    o->keep = LEAT_KEEP_LONGEST;
    o->normalize = 1;
}

static void set_lines(leat_dedup_opts *o)
{
    o->level = LEAT_LEVEL_LINE;
}

static void set_paragraphs(leat_dedup_opts *o)
{
    o->level = LEAT_LEVEL_PARAGRAPH;
}

static void set_substring(leat_dedup_opts *o)
{
    o->level = LEAT_LEVEL_SUBSTRING;
    o->shingle_words = 4;
    o->memory = 90u << 20;
}

/* Runs in a child. nth: the call of this kind that fails, or before which the process is killed. 0: none. */
static int attempt(const scenario *s, const char *output, bool again, leat__fault_kind kind, int way,
                   uint64_t nth)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        leat_error err;
        leat__error_reset(&err);
        if (nth > 0 && way == KILL) leat__fault_arm_kill(kind, nth);
        else if (nth > 0) leat__fault_arm(kind, nth, false);
        int rc = s->run(s, output, again, &err);
        if (rc != 0 && nth == 0) printf("%s: %s\n", s->name, err.message);
        if (nth > 0 && leat__fault_count(kind) < nth) _exit(NOT_HIT);
        fflush(stdout);
        _exit(rc == 0 ? DONE : FAILED);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

/* ---- comparing ---- */

static void path_in(char out[900], const char *folder, const char *name)
{
    snprintf(out, 900, "%s/%s", folder, name);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL) {
        char path[900];
        path_in(path, folder, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (strcmp(e->d_name, ".leat-work") == 0) remove_folder(path);
        else unlink(path);
    }
    if (dir) closedir(dir);
    rmdir(folder);
}

static bool same_file(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;
    bool same = leat__file_load(a, 1u << 28, 1, &x, &n, NULL) == 0 &&
                leat__file_load(b, 1u << 28, 1, &y, &m, NULL) == 0 && n == m && memcmp(x, y, n) == 0;
    leat__free(x);
    leat__free(y);
    return same;
}

/* True when every file of `a` is in `b` with the same bytes. Reports contain times. */
static bool has_all(const char *a, const char *b)
{
    DIR *dir = opendir(a);
    struct dirent *e;
    bool same = dir != NULL;
    while (same && (e = readdir(dir)) != NULL) {
        char x[900], y[900];
        path_in(x, a, e->d_name);
        path_in(y, b, e->d_name);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        same = strcmp(e->d_name, "report.json") == 0 ? access(y, F_OK) == 0 : same_file(x, y);
        if (!same) fprintf(stderr, "%s: differs or is missing\n", y);
    }
    if (dir) closedir(dir);
    return same;
}

/* Writes an output that is older than the run: another input, other numbers of files. */
static void put_old(const scenario *s, const char *output)
{
    scenario old = *s;
    old.input = "old";
    old.old = false;
    if (s->old) assert_int_equal(attempt(&old, output, false, LEAT__FAULT_SYNC, FAIL, 0), DONE);
}

/* Runs again. A run that replaces an old output and ended before it left its mark has not begun: the old
 * output is still complete, and is replaced again. */
static bool resume(const scenario *s, const char *output)
{
    char report[900];
    if (attempt(s, output, true, LEAT__FAULT_SYNC, FAIL, 0) == DONE) return true;
    path_in(report, output, "report.json");
    return s->old && access(report, F_OK) == 0 &&
           attempt(s, output, false, LEAT__FAULT_SYNC, FAIL, 0) == DONE;
}

static int interrupt_all(const scenario *s, leat__fault_kind kind, int way, uint64_t stride)
{
    char want[900], output[900], lock[900];
    uint64_t runs = 0;
    int wrong = 0, ended = DONE;
    snprintf(want, sizeof want, "%s", in_box("want"));
    snprintf(output, sizeof output, "%s", in_box("output"));
    path_in(lock, output, ".leat-lock");
    remove_folder(want);
    assert_int_equal(attempt(s, want, false, kind, way, 0), DONE);
    for (uint64_t nth = 1; ended != NOT_HIT; nth += stride, runs++) {
        remove_folder(output);
        put_old(s, output);
        ended = attempt(s, output, false, kind, way, nth);
        bool good = ended != FAILED || resume(s, output);
        unlink(lock); /* stays when only its removal failed */
        good = good && has_all(want, output) && has_all(output, want);
        if (good) continue;
        fprintf(stderr, "%s: fault %d at %" PRIu64 "%s: is not resumed\n", s->name, (int)kind, nth,
                way == KILL ? " (killed)" : "");
        wrong++;
    }
    printf("%s: kind %d%s: %" PRIu64 " runs, %d wrong\n", s->name, (int)kind, way == KILL ? " (killed)" : "",
           runs, wrong);
    return wrong;
}

static const scenario scenarios[] = {
    {"fuzzy", "docs", run_dedup, set_fuzzy, false, 5},
    {"fuzzy in passes", "docs", run_dedup, set_passes, false, 5},
    {"exact", "docs", run_dedup, set_exact, false, 3},
    {"exact over an old output", "docs", run_dedup, set_exact, true, 3},
    {"keep longest", "docs", run_dedup, set_longest, false, 3},
    {"lines", "lines", run_dedup, set_lines, false, 7},
    {"paragraphs", "paragraphs", run_dedup, set_paragraphs, true, 7},
    {"substring", "words", run_dedup, set_substring, false, 7},
    {"filter", "docs", run_filter, NULL, false, 3},
    {"filter over an old output", "docs", run_filter, NULL, true, 3},
    {"decontaminate", "docs", run_decontaminate, NULL, true, 3},
};

static void interrupted_runs_resume(void **state)
{
    const char *only = getenv("LEAT_FAULT_TEXT");
    int wrong = 0;
    if (!leat__fault_available()) skip();
    make_documents();
    make_pieces("old", " ", 40, 60, 5000);
    make_pieces("lines", "\\n", 30, 4000, 1 << 19);
    make_pieces("paragraphs", "\\n\\n", 30, 1000, 1 << 17);
    make_pieces("words", " ", 80, 2600, 1 << 8);
    for (size_t i = 0; i < LEAT_COUNT(scenarios); i++) {
        if (only && !strstr(scenarios[i].name, only)) continue;
        for (int way = 0; way < WAYS; way++) wrong += interrupt_all(&scenarios[i], LEAT__FAULT_SYNC, way, 1);
        wrong += interrupt_all(&scenarios[i], LEAT__FAULT_WRITE, KILL, scenarios[i].writes);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(interrupted_runs_resume)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
