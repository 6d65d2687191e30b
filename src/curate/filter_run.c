/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_filter_text: one pass over the files. Workers parse the lines of a chunk, then modify, score
 * and judge their texts. They write kept documents, reasons for dropped ones, and bad lines to
 * buffers of the chunk; the caller's thread writes the buffers in order.
 */
#include "curate/filter_run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "base/thread.h"
#include "curate/columns.h"
#include "curate/filter_report.h"
#include "curate/lang.h"
#include "curate/output_dir.h"
#include "curate/reasons.h"
#include "curate/report_page.h"
#include "io/file.h"
#include "curate/text_line.h"
#include "text/lid.h"
#include "text/modify.h"
#include "text/rule.h"

#define SHARD_DEFAULT (UINT64_C(1) << 30)
#define MAX_DOCUMENT (UINT64_C(128) << 20)
#define SCORES_BYTES 4096  /* upper bound for a line of scores */
#define LARGE (256u << 10) /* lines above this get separate memory */

enum { OUT_KEPT, OUT_REASONS, OUT_EXPLAIN, OUT_BAD };
enum { N_DOCUMENTS, N_KEPT, N_BAD, N_MODIFIED, N_LONE, N_TEXT, N_FIRST_BAD, N_FIRST_OFFSET };

typedef struct filter {
    const leat_filter_opts *opts;
    leat_filter_stats *stats;
    leat__text_files files;
    leat__line_names names;
    leat__rule_set rules;
    leat__columns columns; /* count 0 = lines are written unchanged */
    leat__lang lang;
    bool reporting;
    leat__filter_report report;
    leat__mutex lock; /* guards `report` while workers merge theirs into it */
    leat_budget *budget;
    uint64_t max_line;
    leat__output_lock output_lock;
    leat__shards out[LEAT__OUTS]; /* out[1]: reasons */
    bool writing;
    const leat__part *part; /* NULL = the whole run */
    bool any_kept;          /* JOIN: a part has kept documents */
} filter;

typedef struct worker {
    leat__scorer scorer;
    leat__modifiers modifiers;
    leat__lid_work lid;
    leat__filter_report report;
    leat__buf text; /* text of a modified document */
    uint8_t failed[LEAT__RULES_MAX];
} worker;

void leat_filter_opts_init_sized(leat_filter_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

/* ---- one document ---- */

static void put_explained(const filter *f, const worker *w, leat__text_chunk *c, const leat__line *line,
                          const leat__record_fields *r, const leat__counts *counts)
{
    leat__buf *out = &c->out[OUT_EXPLAIN];
    char name[64];
    leat__json j;
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(&f->names, c, line, r, out);
    leat__buf_puts(out, ",\"file\":");
    leat__json_text(out, f->files.path[c->file], strlen(f->files.path[c->file]));
    leat__buf_printf(out, ",\"line\":%llu", (unsigned long long)line->number);
    leat__reason_lang(counts, out);
    leat__buf_puts(out, ",\"rules\":");
    leat__json_init(&j, out, 0);
    leat__json_array(&j);
    for (unsigned i = 0; i < f->rules.count; i++) {
        const leat__rule *rule = &f->rules.rule[i];
        leat__json_object(&j);
        leat__json_kstr(&j, "rule", leat__rule_name(rule, name, sizeof name));
        leat__json_kstr(&j, "profile", rule->profile);
        leat__json_kdouble(&j, "score", leat__score_value(rule->score, counts));
        leat__json_kdouble(&j, "threshold", rule->on ? rule->threshold : NAN); /* null */
        leat__json_kbool(&j, "keeps", !w->failed[i]);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__buf_puts(out, "}\n");
}

/* True when a JSON string is this text, whatever its escapes are. The string needs LEAT__TEXT_PAD readable
 * bytes after it. */
static bool is_text(const leat__buf *json, const char *want)
{
    const leat__jsonl_field field = {.raw = (const uint8_t *)json->data + 1,
                                     .raw_len = json->len - 2,
                                     .kind = LEAT__JSONL_STRING,
                                     .escaped = true};
    uint64_t lone = 0;
    uint8_t *text = leat__alloc(LEAT__MEM_CURATE, json->len + LEAT__TEXT_PAD);
    size_t len = text ? leat__jsonl_text(&field, text, &lone) : 0;
    bool same = text && len == strlen(want) && memcmp(text, want, len) == 0;
    leat__free(text);
    return same;
}

/* True for the document that is to be explained. Its id is named as text or as JSON. */
static bool is_explained(const filter *f, const leat__text_chunk *c, const leat__line *line,
                         const leat__record_fields *r)
{
    const char *want = f->opts->explain;
    leat__buf id;
    if (!want) return false;
    leat__buf_init(&id, LEAT__MEM_CURATE, (size_t)1 << 33);
    leat__line_id_json(&f->names, c, line, r, &id);
    bool same = leat__str_eq(leat__buf_str(&id), want);
    if (!same && leat__buf_reserve(&id, LEAT__TEXT_PAD) == 0 && id.data[0] == '"') same = is_text(&id, want);
    leat__buf_reset(&id);
    return same;
}

static void put_scores(const filter *f, leat__text_chunk *c, const leat__line *line,
                       const leat__record_fields *r, const leat__counts *counts)
{
    leat__buf *out = &c->out[OUT_KEPT];
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(&f->names, c, line, r, out);
    for (unsigned i = 0; i < leat__score_total; i++) {
        leat__buf_puts(out, ",\"");
        leat__buf_puts(out, leat__scores[i].name);
        leat__buf_puts(out, "\":");
        leat__reason_score(i, counts, out);
    }
    leat__reason_lang(counts, out);
    leat__buf_puts(out, "}\n");
}

/* Copies the text of the document to w->scorer and modifies it. */
static int take_text(filter *f, worker *w, leat__text_chunk *c, const leat__jsonl_field *text, bool *changed,
                     size_t *len, leat_error *err)
{
    if (!text->into) LEAT_TRY(leat__scorer_reserve(&w->scorer, text->raw_len, err));
    *len = leat__jsonl_take(text, w->scorer.text, &c->count[N_LONE]);
    *changed = false;
    if (w->modifiers.count == 0) return 0;
    leat__buf_clear(&w->text);
    if (leat__buf_append(&w->text, w->scorer.text, *len) != 0)
        return leat__fail_nomem(err, *len, "a document");
    LEAT_TRY(leat__modifiers_run(&w->modifiers, &w->text, changed, err));
    if (!*changed) return 0;
    *len = w->text.len;
    LEAT_TRY(leat__scorer_reserve(&w->scorer, *len, err));
    memcpy(w->scorer.text, leat__buf_str(&w->text), *len);
    c->count[N_MODIFIED]++;
    return 0;
}

static int do_document(filter *f, worker *w, leat__text_chunk *c, const leat__line *line,
                       const leat__record_fields *r, leat_error *err)
{
    bool changed;
    size_t len;
    LEAT_TRY(take_text(f, w, c, &r->text, &changed, &len, err));
    LEAT_TRY(leat__scorer_run(&w->scorer, len, err));
    if (f->lang.lid) leat__lang_run(&f->lang, &w->lid, w->scorer.text, len, &w->scorer.counts);
    const leat__counts *counts = &w->scorer.counts;
    c->count[N_DOCUMENTS]++;
    c->count[N_TEXT] += len;
    int first = leat__rule_set_judge(&f->rules, counts, w->failed);
    const leat__rule_verdict verdict = {&f->rules, w->failed, first, counts};
    if (first >= 0) leat__reason_count(&verdict, c->extra);
    if (is_explained(f, c, line, r)) put_explained(f, w, c, line, r, counts);
    c->count[N_KEPT] += first < 0;
    if (f->reporting) {
        leat__judged doc = {
            &f->names,      c,        line,   r,
            w->scorer.text, len,      counts, f->lang.lid && counts->lang[0] ? (int)counts->lang_label : -1,
            first < 0,      w->failed};
        leat__filter_report_add(&w->report, &doc);
    }
    if (!f->writing) return 0;
    if (f->opts->score_only) {
        put_scores(f, c, line, r, counts);
    } else if (first >= 0) {
        leat__reason_put(&verdict, &f->names, c, line, r, &c->out[OUT_REASONS]);
    } else if (f->columns.count > 0) {
        leat__columns_put(&f->columns, line, r, changed ? leat__buf_str(&w->text) : NULL, w->text.len, counts,
                          &c->out[OUT_KEPT]);
    } else if (changed) {
        leat__line_put(&c->out[OUT_KEPT], line, &r->text, leat__buf_str(&w->text), w->text.len);
    } else {
        leat__buf_append(&c->out[OUT_KEPT], line->text, line->len);
        leat__buf_putc(&c->out[OUT_KEPT], '\n');
    }
    return 0;
}

/* ---- the pass ---- */

static int init_report(const filter *f, leat__filter_report *r, leat_error *err)
{
    const leat_filter_opts *o = f->opts;
    return leat__filter_report_init(r, &f->rules, f->lang.lid, o->report != NULL, o->look, o->seed, err);
}

static int setup(void *cookie, void **ctx, leat_error *err)
{
    filter *f = cookie;
    worker *w = LEAT_NEW(CURATE, worker);
    if (!w) return leat__fail_nomem(err, sizeof *w, "a worker");
    leat__buf_init(&w->text, LEAT__MEM_CURATE, (size_t)1 << 33);
    int rc = leat__scorer_init(&w->scorer, err);
    if (rc == 0) rc = leat__modifiers_init(&w->modifiers, f->opts->modify, err);
    if (rc == 0 && f->lang.lid) rc = leat__lid_work_init(&w->lid, f->lang.lid, err);
    if (rc == 0 && f->reporting) rc = init_report(f, &w->report, err);
    *ctx = w;
    return rc;
}

static void teardown(void *cookie, void *ctx)
{
    filter *f = cookie;
    worker *w = ctx;
    if (!w) return;
    if (w->report.kept) {
        leat__mutex_lock(&f->lock);
        leat__filter_report_merge(&f->report, &w->report);
        leat__mutex_unlock(&f->lock);
        leat__filter_report_reset(&w->report);
    }
    leat__scorer_reset(&w->scorer);
    leat__modifiers_reset(&w->modifiers);
    leat__lid_work_reset(&w->lid);
    leat__buf_reset(&w->text);
    leat__free(w);
}

static uint64_t need(void *cookie, uint64_t longest)
{
    const filter *f = cookie;
    uint64_t modified = f->opts->modify ? 4 * longest : 0;
    return longest > LARGE ? leat__scorer_need(longest) + modified : modified;
}

static void bad_line(filter *f, leat__text_chunk *c, uint64_t number, uint64_t offset, const char *why)
{
    if (c->count[N_BAD]++ == 0) {
        c->count[N_FIRST_BAD] = number;
        c->count[N_FIRST_OFFSET] = offset;
    }
    leat__line_bad_json(&f->names, c->file, number, offset, why, &c->out[OUT_BAD]);
}

static int work(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    filter *f = cookie;
    worker *w = ctx;
    leat__line line;
    size_t at = 0, where;
    c->extra = leat__zalloc_array(LEAT__MEM_CURATE, 2 * f->rules.count + 1, sizeof(uint64_t));
    if (!c->extra) return leat__fail_nomem(err, f->rules.count, "counts");
    if (c->too_long) bad_line(f, c, c->line, c->offset, LEAT__LINE_TOO_LONG);
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        bool small = line.len <= LARGE; /* its text is unescaped while the line is parsed */
        if (small) LEAT_TRY(leat__scorer_reserve(&w->scorer, line.len, err));
        const char *wrong = leat__line_read_into(&f->names, &line, small ? w->scorer.text : NULL, &r, &where);
        if (wrong) bad_line(f, c, line.number, line.offset + where, wrong);
        else LEAT_TRY(do_document(f, w, c, &line, &r, err));
    }
    if (c->longest > LARGE) { /* free the memory of a large document */
        leat__scorer_reset(&w->scorer);
        LEAT_TRY(leat__scorer_init(&w->scorer, err));
        leat__buf_reset(&w->text);
        leat__buf_reset(&w->modifiers.work);
    }
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++)
        if (c->out[i].status != 0) return leat__fail_nomem(err, c->out[i].len, "results");
    return leat__compress_buf(&c->out[OUT_KEPT], (leat__compress)f->opts->compress, err);
}

static int take_bad(filter *f, const leat__text_chunk *c, leat_error *err)
{
    if (c->count[N_BAD] == 0) return 0;
    f->stats->bad += c->count[N_BAD];
    if (!f->opts->fail_on_bad) return 0;
    const char *reason = strstr(leat__buf_str(&c->out[OUT_BAD]), "\"reason\":\"");
    size_t n = reason ? strcspn(reason + 10, "\"") : 0;
    leat__fail(err, LEAT_EDATA, "%s: line %llu, offset %llu: %.*s", f->files.path[c->file],
               (unsigned long long)c->count[N_FIRST_BAD], (unsigned long long)c->count[N_FIRST_OFFSET],
               (int)n, reason ? reason + 10 : "");
    leat__error_at(err, NULL, -1, (int64_t)c->count[N_FIRST_OFFSET]);
    return LEAT_EDATA;
}

static int take(void *cookie, leat__text_chunk *c, leat_error *err)
{
    filter *f = cookie;
    leat_filter_stats *st = f->stats;
    LEAT_TRY(take_bad(f, c, err));
    st->documents += c->count[N_DOCUMENTS];
    st->kept += c->count[N_KEPT];
    st->dropped += c->count[N_DOCUMENTS] - c->count[N_KEPT];
    st->modified += c->count[N_MODIFIED];
    st->lone_surrogates += c->count[N_LONE];
    st->text_bytes += c->count[N_TEXT];
    const uint64_t *counts = c->extra;
    for (unsigned i = 0; i < f->rules.count; i++) {
        st->rules[i].failed += counts[2 * i];
        st->rules[i].first += counts[2 * i + 1];
    }
    if (c->out[OUT_EXPLAIN].len > 0 && f->opts->explained)
        f->opts->explained(f->opts->cookie, leat__buf_str(&c->out[OUT_EXPLAIN]));
    if (!f->writing) return 0;
    const leat__buf *out = c->out;
    LEAT_TRY(leat__shards_put(&f->out[LEAT__OUT_KEPT], out[OUT_KEPT].data, out[OUT_KEPT].len, err));
    LEAT_TRY(leat__shards_put(&f->out[LEAT__OUT_BAD], out[OUT_BAD].data, out[OUT_BAD].len, err));
    if (f->opts->score_only) return 0;
    return leat__shards_put(&f->out[LEAT__OUT_SECOND], out[OUT_REASONS].data, out[OUT_REASONS].len, err);
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    const filter *f = cookie;
    const leat_filter_opts *o = f->opts;
    return o->progress ? o->progress(o->cookie, bytes, total, f->stats->documents, f->stats->dropped) : 0;
}

/* ---- the run ---- */

void leat__filter_json(const leat_filter_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "documents", st->documents);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "dropped", st->dropped);
    leat__json_ku64(&j, "bad", st->bad);
    leat__json_ku64(&j, "modified", st->modified);
    leat__json_ku64(&j, "lone_surrogates", st->lone_surrogates);
    leat__json_ku64(&j, "files", st->files);
    leat__json_ku64(&j, "bytes_in", st->bytes_in);
    leat__json_ku64(&j, "text_bytes", st->text_bytes);
    leat__json_ku64(&j, "shards", st->shards);
    leat__json_ku64(&j, "bytes_out", st->bytes_out);
    if (st->columns_missing[0]) leat__json_kstr(&j, "columns_missing", st->columns_missing);
    leat__reason_rules_json(st->rules, st->rule_count, &j);
    leat__text_load_json(&st->load, &j);
    leat__json_ku64(&j, "budget_peak_bytes", st->budget_peak_bytes);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_end(&j);
}

/* Fails when the folder has files that must not be replaced. Removes work files of earlier runs. */
static int check_output(const leat_filter_opts *o, leat_error *err)
{
    LEAT_TRY(leat__path_mkdir(o->output, err));
    LEAT_TRY(o->replace ? leat__output_ours(o->output, err) : leat__output_unused(o->output, err));
    return leat__part_clear(o->output, o->replace, err);
}

static uint64_t shard_bytes(const leat_filter_opts *o)
{
    return o->shard_bytes ? o->shard_bytes : SHARD_DEFAULT;
}

static int open_outputs(filter *f, leat_error *err)
{
    const leat_filter_opts *o = f->opts;
    leat__compress how = (leat__compress)o->compress;
    f->writing = true;
    if (f->part) return leat__part_open(f->part, f->out, how, NULL, err);
    LEAT_TRY(leat__output_lock_take(&f->output_lock, o->output, err));
    LEAT_TRY(check_output(o, err));
    LEAT_TRY(leat__shards_open(&f->out[LEAT__OUT_KEPT], o->output, o->score_only ? "scores" : "kept",
                               shard_bytes(o), how, err));
    LEAT_TRY(leat__shards_open(&f->out[LEAT__OUT_BAD], o->output, "bad", 0, LEAT__COMPRESS_NONE, err));
    return leat__shards_open(&f->out[LEAT__OUT_SECOND], o->output, "reasons", 0, LEAT__COMPRESS_NONE, err);
}

/* Writes the report: the page and its data. */
static int store_report(filter *f, leat_error *err)
{
    leat__buf html, json;
    leat__buf_init(&html, LEAT__MEM_CURATE, 64u << 20);
    leat__buf_init(&json, LEAT__MEM_CURATE, 64u << 20);
    leat__filter_report_page(&f->report, f->stats, &html);
    leat__filter_report_json(&f->report, f->stats, &json);
    int rc = leat__page_store(f->opts->report, &html, &json, err);
    leat__buf_reset(&html);
    leat__buf_reset(&json);
    return rc;
}

/* Writes the report page first: when the disk is full, the earlier output is kept. */
static int commit(filter *f, leat_error *err)
{
    const leat_filter_stats *st = f->stats;
    if (f->writing) LEAT_TRY(leat__output_refuse_empty(f->opts->output, st->documents, st->bad, "line", err));
    if (f->opts->report) LEAT_TRY(store_report(f, err));
    if (!f->writing) return 0;
    LEAT_TRY(leat__output_clear(f->opts->output, err));
    LEAT_TRY(leat__shards_commit(&f->out[LEAT__OUT_KEPT], err));
    LEAT_TRY(leat__shards_commit(&f->out[LEAT__OUT_BAD], err));
    if (!f->opts->score_only) LEAT_TRY(leat__shards_commit(&f->out[LEAT__OUT_SECOND], err));
    f->stats->shards = leat__shards_filled(&f->out[LEAT__OUT_KEPT]);
    f->stats->bytes_out = f->out[LEAT__OUT_KEPT].bytes;
    return 0;
}

static int write_report(filter *f, leat_error *err)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__filter_json(f->stats, &json);
    int rc = leat__output_report(f->opts->output, &json, err);
    leat__buf_reset(&json);
    return rc;
}

/* True when the options neither choose nor change documents. */
static bool is_idle(const filter *f)
{
    const leat_filter_opts *o = f->opts;
    return f->rules.count == 0 && !o->score_only && !o->modify && !o->columns && !f->reporting;
}

static int check_options(filter *f, leat_error *err)
{
    const leat_filter_opts *o = f->opts;
    leat__modifiers m;
    if (o->compress > LEAT_TEXT_ZSTD)
        return leat__fail(err, LEAT_EINVAL, "compress: %u is not valid", o->compress);
    int rc = leat__modifiers_init(&m, o->modify, err);
    leat__modifiers_reset(&m);
    if (rc != 0) return rc;
    LEAT_TRY(leat__lang_check(o, err));
    if (o->profile) LEAT_TRY(leat__rule_set_profile(&f->rules, o->profile, err));
    if (o->set) LEAT_TRY(leat__rule_set_change(&f->rules, o->set, err));
    if (o->columns && o->score_only)
        return leat__fail(err, LEAT_EINVAL, "`columns` is for kept documents: leave out `score_only`");
    if (o->columns)
        LEAT_TRY(leat__columns_parse(&f->columns, o->columns, o->text_field ? o->text_field : "text",
                                     o->id_field ? o->id_field : "id", err));
    LEAT_TRY(leat__lang_rules(o, &f->rules, &f->columns, err));
    f->reporting = o->report || o->look > 0;
    if (o->report) LEAT_TRY(leat__page_check(o->report, o->output, err));
    if (o->look > LEAT__LOOK_MAX)
        return leat__fail(err, LEAT_EINVAL, "`look`: %u is more than %d", o->look, LEAT__LOOK_MAX);
    if (is_idle(f) && !o->lid) /* a missing model is reported first */
        return leat__fail(err, LEAT_EINVAL, "no profile, rule, modifier or column was named");
    f->stats->rule_count = leat__reason_rules(&f->rules, f->stats->rules);
    return 0;
}

/* Lists columns that no document has, so that a misspelt name is noticed. */
static void note_missing(filter *f)
{
    char *const to = f->stats->columns_missing;
    const size_t room = sizeof f->stats->columns_missing;
    const char *name;
    if (!f->writing || f->stats->kept == 0) return;
    for (unsigned i = 0; (name = leat__columns_missing(&f->columns, &i)) != NULL;) {
        if (to[0]) strncat(to, ",", room - strlen(to) - 1);
        strncat(to, name, room - strlen(to) - 1);
    }
}

/* Checks options, reserves memory and opens files; fills in the pass. */
static int prepare(filter *f, leat__text_pass *pass, leat_error *err)
{
    const leat_filter_opts *o = f->opts;
    *pass = (leat__text_pass){.name = "score",
                              .cookie = f,
                              .setup = setup,
                              .teardown = teardown,
                              .ram = leat__scorer_need(LARGE),
                              .need = need,
                              .per_line = o->score_only ? SCORES_BYTES : LEAT__REASON_BYTES,
                              .work = work,
                              .take = take,
                              .tell = tell};
    LEAT_TRY(check_options(f, err));
    if (leat__columns_scored(&f->columns)) pass->per_line = SCORES_BYTES;
    LEAT_TRY(leat_budget_open(&f->budget, o->memory, err));
    if (o->lid) {
        LEAT_TRY(leat__lang_open(&f->lang, o, f->budget, err));
        if (is_idle(f))
            return leat__fail(err, LEAT_EINVAL,
                              "`lid` has no effect alone: give `lang`, `lang_min`, rules or `columns`");
        pass->ram += leat__lid_work_bytes(f->lang.lid);
    }
    if (f->reporting) {
        LEAT_TRY(init_report(f, &f->report, err));
        pass->ram += f->report.bytes;
    }
    f->max_line = o->max_document ? o->max_document : MAX_DOCUMENT;
    LEAT_TRY(leat__text_files_open(&f->files, o->inputs, o->input_count, f->max_line, err));
    LEAT_TRY(leat__text_output_check(o->output, o->inputs, o->input_count, NULL, err));
    LEAT_TRY(leat__text_files_check(&f->files, o->output, o->report, err));
    leat__text_files_warn(&f->files, &o->log);
    f->names = (leat__line_names){o->text_field ? o->text_field : "text",
                                  o->id_field ? o->id_field : "id",
                                  NULL,
                                  f->files.path,
                                  f->max_line,
                                  f->columns.wanted,
                                  f->columns.wanted_count,
                                  &f->files.numbers};
    f->stats->files = f->files.count;
    f->stats->bytes_in = f->files.total;
    return 0;
}

static int run(filter *f, leat_error *err)
{
    leat__text_pass pass;
    leat__text_meter meter = {0};
    LEAT_TRY(prepare(f, &pass, err));
    if (f->opts->output) LEAT_TRY(open_outputs(f, err));
    if (f->part) LEAT_TRY(leat__part_seek(&f->part->range, &f->files, 0, err));
    pass.meter = &meter;
    LEAT_TRY(leat__text_flow_run(&f->files, &pass, f->budget, f->opts->threads, &f->opts->log, err));
    note_missing(f);
    leat__text_meter_load(&meter, &f->stats->load);
    return f->part ? 0 : commit(f, err);
}

static int open_filter(filter **out, const leat_filter_opts *opts, leat_filter_opts *o, leat_error *err)
{
    if (!opts || opts->struct_size < sizeof o->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(o, 0, sizeof *o);
    memcpy(o, opts, LEAT_MIN(opts->struct_size, sizeof *o));
    filter *f = LEAT_NEW(CURATE, filter);
    leat_filter_stats *own = LEAT_NEW(CURATE, leat_filter_stats);
    if (!f || !own) {
        leat__free(f);
        leat__free(own);
        return leat__fail_nomem(err, sizeof *f, "a filter run");
    }
    own->struct_size = sizeof *own;
    f->opts = o;
    f->stats = own;
    leat__mutex_init(&f->lock);
    *out = f;
    return 0;
}

static void close_filter(filter *f)
{
    for (int i = 0; i < LEAT__OUTS; i++) leat__shards_reset(&f->out[i]);
    leat__output_lock_drop(&f->output_lock);
    leat__text_files_reset(&f->files);
    leat__columns_reset(&f->columns);
    leat__filter_report_reset(&f->report);
    leat__lang_close(&f->lang, f->budget);
    leat__mutex_destroy(&f->lock);
    leat_budget_close(&f->budget);
    leat__free(f->stats);
    leat__free(f);
}

/* Runs the pass and fills in the measurements. */
static int measured(filter *f, leat_error *err)
{
    leat_filter_stats *st = f->stats;
    uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(f, err);
    if (f->budget) {
        leat_budget_stats bs;
        leat_budget_read(f->budget, &bs);
        st->budget_peak_bytes = bs.peak;
    }
    st->seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    st->cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    return rc;
}

int leat_filter_text(const leat_filter_opts *opts, leat_filter_stats *stats, leat_error *err)
{
    leat_filter_opts o;
    filter *f = NULL;
    LEAT_TRY(open_filter(&f, opts, &o, err));
    int rc = measured(f, err);
    if (rc == 0 && o.look > 0 && o.looked) leat__filter_report_look(&f->report, o.looked, o.cookie);
    if (rc == 0 && f->writing) rc = write_report(f, err);
    if (stats) *stats = *f->stats;
    close_filter(f);
    return rc;
}

/* ---- in parts ---- */

static int begin_parts(filter *f, leat__buf *json, leat_error *err)
{
    leat__text_pass pass;
    leat_budget_stats bs;
    leat__json j;
    LEAT_TRY(prepare(f, &pass, err));
    LEAT_TRY(check_output(f->opts, err));
    LEAT_TRY(leat__path_mkdir(f->part->work, err));
    LEAT_TRY(leat__part_stamp(f->part, &f->files, err));
    leat_budget_read(f->budget, &bs);
    leat__json_init(&j, json, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "memory", bs.limit);
    leat__json_ku64(&j, "max_line", f->max_line);
    leat__json_key(&j, "files");
    leat__part_files(&f->files, &j);
    leat__json_end(&j);
    return json->status == 0 ? 0 : leat__fail_nomem(err, json->len, "the list of files");
}

static int write_part(filter *f, leat_error *err)
{
    leat__buf json;
    bool done;
    LEAT_TRY(leat__part_done(f->part, "part", &done, err));
    if (done) return 0;
    LEAT_TRY(measured(f, err));
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__filter_json(f->stats, &json);
    int rc = leat__part_finish(f->part, f->out, leat__buf_str(&json), err);
    leat__buf_reset(&json);
    return rc;
}

/* Keeps the names in `all` that are also in `mine`; both are separated by commas. */
static void common_names(char *all, const char *mine)
{
    char left[sizeof((leat_filter_stats *)0)->columns_missing] = "";
    char *rest = NULL;
    for (char *name = strtok_r(all, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        size_t len = strlen(name);
        for (const char *at = mine; (at = strstr(at, name)) != NULL; at += len) {
            if ((at > mine && at[-1] != ',') || (at[len] && at[len] != ',')) continue;
            if (left[0]) strncat(left, ",", sizeof left - strlen(left) - 1);
            strncat(left, name, sizeof left - strlen(left) - 1);
            break;
        }
    }
    memcpy(all, left, sizeof left);
}

static uint64_t number(const json_t *stats, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(stats, key));
}

static void add_part(void *cookie, const json_t *stats)
{
    filter *f = cookie;
    leat_filter_stats *st = f->stats;
    const json_t *rules = json_object_get(stats, "rules");
    const char *missing = json_string_value(json_object_get(stats, "columns_missing"));
    st->documents += number(stats, "documents");
    st->kept += number(stats, "kept");
    st->dropped += number(stats, "dropped");
    st->bad += number(stats, "bad");
    st->modified += number(stats, "modified");
    st->lone_surrogates += number(stats, "lone_surrogates");
    st->text_bytes += number(stats, "text_bytes");
    st->budget_peak_bytes = LEAT_MAX(st->budget_peak_bytes, number(stats, "budget_peak_bytes"));
    for (uint32_t i = 0; i < st->rule_count; i++) {
        st->rules[i].failed += number(json_array_get(rules, i), "failed");
        st->rules[i].first += number(json_array_get(rules, i), "first");
    }
    if (number(stats, "kept") == 0) return;
    if (f->any_kept) common_names(st->columns_missing, missing ? missing : "");
    else strncpy(st->columns_missing, missing ? missing : "", sizeof st->columns_missing - 1);
    f->any_kept = true;
}

static int end_parts(filter *f, leat__join *j, leat_error *err)
{
    leat_filter_stats *st = f->stats;
    leat__text_pass pass;
    LEAT_TRY(prepare(f, &pass, err));
    LEAT_TRY(leat__part_compare(f->part, &f->files, err)); /* some tasks may have read other lines */
    LEAT_TRY(leat__join_open(j, add_part, f, err));
    LEAT_TRY(leat__output_refuse_empty(f->opts->output, st->documents, st->bad, "line", err));
    LEAT_TRY(leat__output_clear(f->opts->output, err));
    LEAT_TRY(leat__join_end(j, err));
    st->shards = j->bytes > 0 ? j->shards : 0;
    st->bytes_out = j->bytes;
    st->seconds = f->part->seconds;
    st->cpu_seconds = f->part->cpu_seconds;
    leat__text_meter_load(&j->meter, &st->load);
    LEAT_TRY(write_report(f, err));
    return leat__part_remove(f->part->work, err);
}

static int run_step(filter *f, leat__buf *json, leat_error *err)
{
    const leat_filter_opts *o = f->opts;
    leat__join j = {.part = f->part,
                    .output = o->output,
                    .names = {o->score_only ? "scores" : "kept", o->score_only ? NULL : "reasons", "bad"},
                    .shard_bytes = shard_bytes(o),
                    .compress = (leat__compress)o->compress};
    int rc;
    if (!o->output || o->report || o->look || o->explain)
        return leat__fail(err, LEAT_EINVAL,
                          "a run in parts needs an output folder, without report, look and explain");
    switch (f->part->step) {
    case LEAT__PART_BEGIN: return begin_parts(f, json, err);
    case LEAT__PART_WRITE: return write_part(f, err);
    case LEAT__PART_JOIN:
        rc = leat__join_open(&j, add_part, f, err);
        if (rc == 0) rc = leat__join_list(&j, json, err);
        break;
    case LEAT__PART_END:
        rc = end_parts(f, &j, err);
        if (rc == 0) leat__filter_json(f->stats, json);
        break;
    default: return leat__fail(err, LEAT_EINVAL, "filters do not have step %d", (int)f->part->step);
    }
    leat__join_close(&j);
    return rc;
}

int leat__filter_part(const leat_filter_opts *opts, const leat__part *part, leat__buf *json, leat_error *err)
{
    leat_filter_opts o;
    filter *f = NULL;
    LEAT_TRY(open_filter(&f, opts, &o, err));
    f->part = part;
    int rc = leat__part_answer(&f->files, run_step(f, json, err), json);
    close_filter(f);
    return rc;
}
