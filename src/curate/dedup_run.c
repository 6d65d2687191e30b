/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_dedup_text: options, the order of the phases, and the final cleanup.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/dedup_index.h"
#include "curate/dedup_lines.h"
#include "curate/part_files.h"
#include "curate/reasons.h"
#include "curate/report_page.h"

#define MAX_DOCUMENT (UINT64_C(128) << 20)
#define CHECKPOINT (UINT64_C(512) << 20)
#define EXACT_BYTES 16
#define SUBSTRING_WORDS 50
#define SUBSTRING_MAX 4096

void leat_dedup_opts_init_sized(leat_dedup_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

static int check_compatible(leat_dedup_opts *o, leat_error *err)
{
    if (o->compatible > LEAT_COMPATIBLE_DATATROVE)
        return leat__fail(err, LEAT_EINVAL, "`compatible`: %u is not valid", o->compatible);
    if (o->compatible == LEAT_COMPATIBLE_DATATROVE && o->shingle_chars > 0)
        return leat__fail(err, LEAT_EINVAL, "datatrove has shingles of words, not of characters");
    if (o->compatible && o->threshold == 0) o->clusters = LEAT_CLUSTERS_COMPONENTS;
    return 0;
}

static int check_fuzzy(leat_dedup_opts *o, leat_error *err)
{
    if (o->shingle_words == 0 && o->shingle_chars == 0) o->shingle_words = 5;
    if (o->shingle_words > 0 && o->shingle_chars > 0)
        return leat__fail(err, LEAT_EINVAL, "shingles are of words or of characters, not both");
    if (o->shingle_words > 64 || o->shingle_chars > 1024)
        return leat__fail(err, LEAT_EINVAL, "shingles have at most 64 words or 1024 characters");
    if (o->bands == 0) o->bands = 14;
    if (o->rows == 0) o->rows = 8;
    if (o->bands > LEAT__BANDS_MAX || o->bands * o->rows > LEAT__SKETCH_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u bands of %u rows: at most %d bands and %d values in all",
                          o->bands, o->rows, LEAT__BANDS_MAX, LEAT__SKETCH_MAX);
    LEAT_TRY(check_compatible(o, err));
    if (o->threshold == 0 && !o->compatible) o->threshold = 0.7;
    if (!(o->threshold >= 0 && o->threshold <= 1))
        return leat__fail(err, LEAT_EINVAL, "`threshold`: %g is not between 0 and 1", o->threshold);
    return 0;
}

static int check_level(const leat_dedup_opts *o, leat_error *err)
{
    static const char *const levels[] = {"documents", "lines", "paragraphs", "substrings"};
    if (o->level == LEAT_LEVEL_DOCUMENT) return 0;
    if (o->level > LEAT_LEVEL_SUBSTRING)
        return leat__fail(err, LEAT_EINVAL, "`level`: %u is not valid", o->level);
    if (o->kind != LEAT_DEDUP_EXACT)
        return leat__fail(err, LEAT_EINVAL,
                          "`level`: lines and paragraphs are found by exact, not by fuzzy deduplication");
    if (o->profile || o->set)
        return leat__fail(err, LEAT_EINVAL, "`%s` works on whole documents only (run leat filter first)",
                          o->profile ? "profile" : "set");
    if (o->keep != LEAT_KEEP_FIRST || o->index || o->against)
        return leat__fail(err, LEAT_EINVAL,
                          "%s are cut out of the texts: `%s` is only for runs that remove whole documents",
                          levels[o->level],
                          o->index     ? "index"
                          : o->against ? "against"
                                       : "keep");
    if (o->level == LEAT_LEVEL_SUBSTRING && o->normalize)
        return leat__fail(err, LEAT_EINVAL, "substrings always compare words only: leave out `normalize`");
    return 0;
}

static int check_exact(leat_dedup_opts *o, leat_error *err)
{
    bool substring = o->level == LEAT_LEVEL_SUBSTRING;
    if (o->shingle_words && !substring)
        return leat__fail(err, LEAT_EINVAL, "`words` is only for fuzzy and substring deduplication");
    const struct {
        bool given;
        const char *name;
    } fuzzy[] = {{o->shingle_chars, "chars"},
                 {o->bands, "bands"},
                 {o->rows, "rows"},
                 {o->threshold != 0, "threshold"},
                 {o->clusters != LEAT_CLUSTERS_STAR, "clusters"},
                 {o->compatible, "compatible"},
                 {o->bands_per_iteration, "bands_per_iteration"}};
    for (size_t i = 0; i < LEAT_COUNT(fuzzy); i++)
        if (fuzzy[i].given)
            return leat__fail(err, LEAT_EINVAL, "`%s` is only for fuzzy deduplication", fuzzy[i].name);
    o->bands = 1;
    if (substring && o->shingle_words == 0) o->shingle_words = SUBSTRING_WORDS;
    if (o->shingle_words > SUBSTRING_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u words: substrings have at most %d", o->shingle_words,
                          SUBSTRING_MAX);
    return 0;
}

/* Fills in defaults. LEAT_EINVAL names a wrong option. */
static int check_options(leat_dedup_opts *o, leat_error *err)
{
    if (o->output ? !o->output[0] : !o->plan_only) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (o->kind != LEAT_DEDUP_EXACT && o->kind != LEAT_DEDUP_FUZZY)
        return leat__fail(err, LEAT_EINVAL, "kind: %u is not valid", o->kind);
    if (o->clusters > LEAT_CLUSTERS_COMPONENTS || o->keep > LEAT_KEEP_FIELD || o->compress > LEAT_TEXT_ZSTD)
        return leat__fail(err, LEAT_EINVAL, "clusters, keep or compress is not valid");
    LEAT_TRY(check_level(o, err));
    if (o->report) LEAT_TRY(leat__page_check(o->report, o->output, err));
    if (o->keep == LEAT_KEEP_FIELD && !o->keep_field)
        return leat__fail(err, LEAT_EINVAL, "`keep` field needs the name of a key in `keep_field`");
    if (o->keep != LEAT_KEEP_FIELD && o->keep_field)
        return leat__fail(err, LEAT_EINVAL, "`keep_field` is only for `keep` field");
    if (o->kind == LEAT_DEDUP_FUZZY) {
        if (o->normalize) return leat__fail(err, LEAT_EINVAL, "`normalize` is only for exact deduplication");
        LEAT_TRY(check_fuzzy(o, err));
    } else {
        LEAT_TRY(check_exact(o, err));
    }
    if (o->bands_per_iteration > o->bands)
        return leat__fail(err, LEAT_EINVAL, "`bands_per_iteration`: %u is more than the %u bands",
                          o->bands_per_iteration, o->bands);
    if (!o->max_document) o->max_document = MAX_DOCUMENT;
    if (!o->checkpoint_bytes) o->checkpoint_bytes = CHECKPOINT;
    if (!o->text_field) o->text_field = "text";
    if (!o->id_field) o->id_field = "id";
    return 0;
}

/* Sets up the rules that drop documents before they are compared. */
static int prepare_rules(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    if (o->profile) LEAT_TRY(leat__rule_set_profile(&d->rules, o->profile, err));
    if (o->set) LEAT_TRY(leat__rule_set_change(&d->rules, o->set, err));
    if (leat__rule_set_lang(&d->rules))
        return leat__fail(err, LEAT_EINVAL,
                          "rules on the language work in leat filter only, which reads a model");
    d->stats->rule_count = leat__reason_rules(&d->rules, d->stats->rules);
    return 0;
}

static int prepare(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    leat_budget *budget = NULL;
    leat_budget_stats bs;
    LEAT_TRY(prepare_rules(d, err));
    LEAT_TRY(leat_budget_open(&budget, o->memory, err));
    leat_budget_read(budget, &bs);
    leat_budget_close(&budget);
    d->memory = bs.limit;
    d->fuzzy = o->kind == LEAT_DEDUP_FUZZY;
    d->bands = o->bands;
    d->rows = o->rows;
    d->sketch_bytes = d->fuzzy ? d->bands * d->rows : EXACT_BYTES;
    /* 1 of 256 bytes agrees by chance */
    d->need_equal =
        d->fuzzy ? (uint32_t)ceil((o->threshold * 255 + 1) / 256 * d->sketch_bytes - 1e-9) : EXACT_BYTES;
    if (d->fuzzy && o->threshold == 0) d->need_equal = 0; /* sharing a band is enough */
    d->st.bands_at_once = o->bands_per_iteration ? o->bands_per_iteration : d->bands;
    LEAT_TRY(leat__text_files_open(&d->files, o->inputs, o->input_count, o->max_document, err));
    LEAT_TRY(leat__text_output_check(o->output, o->inputs, o->input_count, o->against, err));
    LEAT_TRY(leat__text_files_check(&d->files, o->output, o->report, err));
    leat__text_files_warn(&d->files, &o->log);
    d->names = (leat__line_names){o->text_field, o->id_field,     o->keep_field,
                                  d->files.path, o->max_document, .numbers = &d->files.numbers};
    d->stats->files = d->files.count;
    d->stats->bytes_in = d->files.total;
    d->stats->bands = d->bands;
    d->stats->rows = d->rows;
    d->stats->passes = (uint32_t)leat__ceil_div(d->bands, d->st.bands_at_once);
    d->bytes_total = d->files.total * (d->stats->passes + 1);
    leat__buf work;
    leat__buf_init(&work, LEAT__MEM_CURATE, 4000);
    const char *output = o->output ? o->output : ""; /* a plan needs no output */
    leat__buf_printf(&work, "%s%s", d->part ? d->part->work : output, d->part ? "" : "/" LEAT__WORK_NAME);
    d->work = leat__buf_take(&work, NULL);
    if (!d->work) return leat__fail(err, LEAT_EINVAL, "%s: the path is too long", output);
    if (o->against) LEAT_TRY(leat__dedup_index_open(d, o->against, err));
    if (!d->part || d->part->step == LEAT__PART_BEGIN) return leat__dedup_settings(d, err);
    snprintf(d->settings, sizeof d->settings, "%s", d->part->settings);
    return 0;
}

/* The counts of a report. */
/* clang-format off */
#define COUNTS(X)                                                                                        \
    X(documents) X(kept) X(removed) X(clusters) X(bad) X(lone_surrogates) X(empty)                       \
    X(candidates) X(verified) X(below_threshold) X(bands) X(rows) X(passes) X(files)                     \
    X(bytes_in) X(text_bytes) X(shards) X(bytes_out) X(plan_documents) X(plan_memory)                    \
    X(plan_disk) X(disk_bytes) X(budget_peak_bytes) X(resumed) X(against)                                \
    X(removed_against) X(index_bytes) X(pieces) X(pieces_removed) X(bytes_removed)                       \
    X(changed) X(unscored) X(crowded)
/* clang-format on */

static uint64_t count(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void take_counts(leat_dedup_stats *st, const json_t *report)
{
    const json_t *rules = json_object_get(report, "rules");
#define TAKE(name) st->name = (__typeof__(st->name))count(report, #name);
    COUNTS(TAKE)
#undef TAKE
    st->dropped = count(report, "dropped");
    for (uint32_t i = 0; i < st->rule_count; i++) {
        st->rules[i].failed = count(json_array_get(rules, i), "failed");
        st->rules[i].first = count(json_array_get(rules, i), "first");
    }
    st->already_complete = 1;
}

/* Copies the counts of the report when the folder has the complete output of this run. Fails when it has
 * the output of another run, or when a file is not as this run wrote it. */
static int take_complete(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    json_t *report = leat__output_load(o->output);
    const char *key = json_string_value(json_object_get(report, "run"));
    int rc = key ? leat__output_intact(o->output, err) : 0;
    if (rc == 0 && !(key && leat__str_eq(key, d->run_key)))
        rc = leat__fail(err, LEAT_EEXIST,
                        "%s: the complete output was made with other options or another input (use `force` "
                        "to replace it)",
                        o->output);
    if (rc == 0 && o->report) rc = leat__page_exists(o->report, err);
    if (rc == 0) take_counts(d->stats, report);
    json_decref(report);
    return rc;
}

/* Looks for the mark of a run that began. *same: its options and inputs were those of this run. */
static int find_begun(leat__dedup *d, bool *begun, bool *same, leat_error *err)
{
    char path[4096], *key = NULL;
    size_t len = 0;
    *same = false;
    LEAT_TRY(leat__path_exists(leat__dedup_path(d, LEAT__WORK_BEGUN, path), begun, err));
    if (!*begun) return 0;
    LEAT_TRY(leat__file_load(path, 4096, 1, &key, &len, err));
    key[len] = '\0';
    *same = strcmp(key, d->run_key) == 0;
    leat__free(key);
    return 0;
}

/* Fails when the folder has an interrupted run or files that must not be replaced. A run that began with
 * `force` and was stopped or killed before it saved a state starts over with `resume` and the same options
 * and inputs: the output is of an earlier run. */
static int check_output(leat__dedup *d, bool state, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    bool begun, same;
    LEAT_TRY(find_begun(d, &begun, &same, err));
    if (o->replace || ((state || same) && o->resume)) return leat__output_ours(o->output, err);
    if (state)
        return leat__fail(err, LEAT_EEXIST,
                          "%s: has an interrupted run (use `resume` to resume it, `force` to start over)",
                          o->output);
    int rc = leat__output_unused(o->output, err);
    bool in_use = rc == LEAT_EEXIST;
    if (in_use && o->resume && leat__output_complete(o->output)) rc = take_complete(d, err);
    if (d->stats->already_complete) return 0;
    if (in_use && !begun) (void)!leat__part_remove(d->work, NULL); /* left by a run killed at its very end */
    return rc;
}

static int mark_begun(leat__dedup *d, leat_error *err)
{
    char path[4096];
    LEAT_TRY(leat__path_mkdir(d->work, err));
    return leat__file_store(leat__dedup_path(d, LEAT__WORK_BEGUN, path), d->run_key, strlen(d->run_key), err);
}

static int begin(leat__dedup *d, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    char path[4096];
    bool state, plan;
    if (o->plan_only) return leat__dedup_plan(d, err);
    LEAT_TRY(leat__part_own(d->work, err));
    LEAT_TRY(leat__output_lock_take(&d->lock, o->output, err));
    LEAT_TRY(leat__path_exists(leat__dedup_path(d, LEAT__WORK_STATE, path), &state, err));
    LEAT_TRY(leat__path_exists(leat__dedup_path(d, LEAT__PART_PLAN, path), &plan, err));
    if (plan && !o->replace)
        return leat__fail(err, LEAT_EEXIST,
                          "%s: has an interrupted run on a cluster (resume it there, or use `force`)",
                          o->output);
    LEAT_TRY(leat__dedup_key(d, err));
    LEAT_TRY(check_output(d, state, err));
    if (d->stats->already_complete) return 0;
    LEAT_TRY(leat__dedup_plan(d, err));
    if (o->replace && !o->resume) LEAT_TRY(leat__part_remove(d->work, err));
    if (!o->resume) state = false;
    if (state) LEAT_TRY(leat__dedup_load(d, &state, err));
    d->stats->resumed = state;
    LEAT_TRY(leat__dedup_check_disk(d, err));
    LEAT_TRY(leat__output_sweep(o->output, err));
    return mark_begun(d, err);
}

typedef struct ranked {
    double keep;
    int32_t rest;
    uint32_t line;
} ranked;

static int by_keep(const void *x, const void *y)
{
    const ranked *a = x, *b = y;
    if (a->keep != b->keep) return a->keep > b->keep ? -1 : 1;
    if (a->rest != b->rest) return a->rest > b->rest ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* Computes the order of preference: d->order[rank] is the line, d->rank[line] the rank. */
int leat__dedup_rank(leat__dedup *d, leat_error *err)
{
    uint64_t n = d->st.document;
    char path[4096];
    leat__file *f = NULL;
    leat__dedup_keep value[512];
    if (d->opts->keep == LEAT_KEEP_FIRST || d->order) return 0;
    LEAT_TRY(leat__dedup_check_memory(d, n * 2 * sizeof(ranked) + (8u << 20), err));
    ranked *r = leat__alloc_array(LEAT__MEM_CURATE, n + 1, sizeof *r);
    int rc = r ? leat__file_open(&f, leat__dedup_path(d, "side-3", path), LEAT__FILE_READ, err)
               : leat__fail_nomem(err, n * sizeof *r, "ranks");
    for (uint64_t at = 0; at < n && rc == 0; at += LEAT_COUNT(value)) {
        uint64_t take = LEAT_MIN(n - at, LEAT_COUNT(value));
        rc = leat__file_pread(f, value, take * sizeof *value, at * sizeof *value, err);
        for (uint64_t i = 0; i < take && rc == 0; i++)
            r[at + i] = (ranked){value[i].value, value[i].rest, (uint32_t)(at + i)};
    }
    /* a misspelt key would keep the first documents */
    if (rc == 0 && d->st.unscored > 0 && d->st.unscored == d->st.documents - d->st.dropped)
        rc = leat__fail(err, LEAT_EDATA, "no document has a number in \"%s\", the key of keep-field",
                        d->opts->keep_field);
    if (rc == 0) {
        qsort(r, n, sizeof *r, by_keep); /* may take a copy, so the others are allocated after it */
        d->order = leat__alloc_array(LEAT__MEM_CURATE, n + 1, 4);
        d->rank = leat__alloc_array(LEAT__MEM_CURATE, n + 1, 4);
        if (!d->order || !d->rank) rc = leat__fail_nomem(err, n * 8, "ranks");
    }
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        d->order[i] = r[i].line;
        d->rank[r[i].line] = (uint32_t)i;
    }
    leat__file_close(&f);
    leat__free(r);
    return rc;
}

int leat__dedup_refuse_empty(leat__dedup *d, leat_error *err)
{
    int rc = leat__output_refuse_empty(d->opts->output, d->st.documents, d->stats->bad, "line", err);
    if (rc == LEAT_EDATA) (void)!leat__part_remove(d->work, NULL);
    return rc;
}

static int run_phases(leat__dedup *d, leat_error *err)
{
    if (d->opts->level != LEAT_LEVEL_DOCUMENT) return leat__dedup_lines(d, err);
    for (;;) {
        d->bytes_done = d->files.total * LEAT_MIN(d->st.iteration, d->stats->passes);
        switch (d->st.phase) {
        case LEAT__PHASE_SKETCH: LEAT_TRY(leat__dedup_sketch(d, err)); break;
        case LEAT__PHASE_GROUP:
            LEAT_TRY(leat__dedup_rank(d, err));
            LEAT_TRY(leat__dedup_group(d, err));
            break;
        case LEAT__PHASE_RESOLVE:
            LEAT_TRY(leat__dedup_rank(d, err));
            LEAT_TRY(leat__dedup_resolve(d, err));
            break;
        default: return leat__dedup_write(d, err);
        }
    }
}

void leat__dedup_json(const leat_dedup_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
#define PUT(name) leat__json_ku64(&j, #name, st->name);
    COUNTS(PUT)
#undef PUT
    if (st->already_complete) leat__json_kbool(&j, "already_complete", true);
    if (st->rule_count > 0) {
        leat__json_ku64(&j, "dropped", st->dropped);
        leat__reason_rules_json(st->rules, st->rule_count, &j);
    }
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__text_load_json(&st->load, &j);
    leat__json_end(&j);
}

int leat__dedup_write_report(const leat__dedup *d, leat_error *err)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__dedup_json(d->stats, &json);
    if (d->run_key[0] && json.status == 0) {
        json.len--; /* the closing brace */
        leat__buf_printf(&json, ",\"run\":\"%s\"}", d->run_key);
    }
    int rc = leat__output_report(d->opts->output, &json, err);
    leat__buf_reset(&json);
    return rc;
}

void leat__dedup_copy_state(leat__dedup *d)
{
    leat_dedup_stats *st = d->stats;
    st->documents = d->st.documents;
    st->text_bytes = d->st.text_bytes;
    st->lone_surrogates = d->st.lone_surrogates;
    st->empty = d->st.empty;
    st->unscored = d->st.unscored;
    st->candidates = d->st.candidates;
    st->verified = d->st.verified;
    st->crowded = d->st.crowded;
    st->disk_bytes = d->st.disk_peak;
    st->dropped = d->st.dropped;
    for (uint32_t i = 0; i < st->rule_count; i++) {
        st->rules[i].failed = d->st.rule_counts[2 * i];
        st->rules[i].first = d->st.rule_counts[2 * i + 1];
    }
    leat__text_meter_load(&d->meter, &st->load);
}

/* Called after a failure: returns true when a state is saved, otherwise removes the work files. Keeps the
 * mark beside output files of an earlier run, so that `resume` does not take them for those of this run. */
static bool drop_unsaved(leat__dedup *d)
{
    char path[4096];
    bool saved;
    if (leat__path_exists(leat__dedup_path(d, LEAT__WORK_STATE, path), &saved, NULL) != 0) return false;
    if (saved || leat__part_remove(d->work, NULL) != 0) return true;
    if (leat__output_unused(d->opts->output, NULL) == LEAT_EEXIST) (void)!mark_begun(d, NULL);
    return false;
}

static int run(leat__dedup *d, leat_error *err)
{
    LEAT_TRY(prepare(d, err));
    LEAT_TRY(begin(d, err));
    if (d->opts->plan_only || d->stats->already_complete) return 0;
    int rc = run_phases(d, err);
    leat__dedup_copy_state(d);
    if (rc != 0) d->stats->resumable = drop_unsaved(d);
    return rc;
}

/* Copies and checks the options, and creates a run with them in *out. */
static int open_run(leat__dedup **out, const leat_dedup_opts *opts, leat_dedup_opts *o,
                    leat_dedup_stats *stats, leat_error *err)
{
    if (!opts || opts->struct_size < sizeof o->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(o, 0, sizeof *o);
    memcpy(o, opts, LEAT_MIN(opts->struct_size, sizeof *o));
    LEAT_TRY(check_options(o, err));
    leat__dedup *d = LEAT_NEW(CURATE, leat__dedup);
    if (!d) return leat__fail_nomem(err, sizeof *d, "a run");
    d->opts = o;
    d->stats = stats;
    *out = d;
    return 0;
}

static void close_run(leat__dedup *d)
{
    leat__dedup_state_reset(&d->st);
    leat__text_files_reset(&d->files);
    leat__dedup_index_close(d);
    leat__output_lock_drop(&d->lock);
    leat__free(d->work);
    leat__free(d->input_name);
    leat__free(d->input_head);
    leat__free(d->order);
    leat__free(d->rank);
    leat__free(d);
}

int leat_dedup_text(const leat_dedup_opts *opts, leat_dedup_stats *stats, leat_error *err)
{
    leat_dedup_opts o;
    leat_dedup_stats own = {.struct_size = sizeof own};
    leat_error local = {0};
    leat__dedup *d = NULL;
    if (!err) err = &local;
    LEAT_TRY(open_run(&d, opts, &o, &own, err));
    uint64_t start = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(d, err);
    own.seconds = (double)(leat__clock_ns() - start) / (double)LEAT_NS_PER_S;
    own.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (rc == 0 && !o.plan_only && !own.already_complete) rc = leat__dedup_write_report(d, err);
    if (rc == 0 && !o.plan_only) rc = leat__part_remove(d->work, err);
    close_run(d);
    if (stats) *stats = own;
    return rc;
}

int leat__dedup_part(const leat_dedup_opts *opts, const leat__part *part, leat__buf *json, leat_error *err)
{
    leat_dedup_opts o;
    leat_dedup_stats own = {.struct_size = sizeof own};
    leat__dedup *d = NULL;
    LEAT_TRY(open_run(&d, opts, &o, &own, err));
    d->part = part;
    o.checkpoint_bytes = UINT64_MAX; /* a task that is killed starts over */
    int rc = o.level || o.plan_only || o.bands_per_iteration || o.profile || o.set
                 ? leat__fail(
                       err, LEAT_EINVAL,
                       "`level`, `plan`, `bands_per_iteration`, `profile` and `set`: not for a run in parts")
                 : prepare(d, err);
    if (rc == 0) rc = leat__part_answer(&d->files, leat__dedup_step(d, json, err), json);
    close_run(d);
    return rc;
}
