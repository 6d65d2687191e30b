/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_decontaminate_text: reads the evaluation sets into a table of n-grams, then scans the
 * corpus and drops the documents that share n-grams with them, or cuts the shared spans out.
 *
 * The table is written by one thread and is read-only afterwards. N-grams are hashes of words as
 * in text/sketch.h, so case, punctuation and white space do not matter.
 */
#include "curate/decontaminate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/eval_table.h"
#include "curate/output_dir.h"
#include "curate/part_files.h"
#include "curate/shards.h"
#include "curate/text_flow.h"
#include "curate/text_line.h"
#include "text/sketch.h"

#define SHARD_DEFAULT (UINT64_C(1) << 30)
#define MAX_DOCUMENT (UINT64_C(128) << 20)
#define NGRAM 13
#define LARGE (256u << 10)
#define REPORT_BYTES 512 /* upper bound for the report about one line */

enum { OUT_KEPT, OUT_MATCHES, OUT_FOUND, OUT_BAD };
enum { N_DOCUMENTS, N_KEPT, N_HIT, N_SPANS, N_CUT, N_BAD, N_LONE, N_TEXT };

typedef struct cleaning {
    const leat_decontaminate_opts *opts;
    leat_decontaminate_stats *stats;
    leat__text_files files;
    leat__line_names names;
    leat__eval_table evals;
    leat_budget *budget;
    uint32_t *found; /* per evaluation text: documents that share an n-gram with it */
    leat__output_lock lock;
    leat__shards kept, matches, lists, bad;
} cleaning;

/* A range of bytes of the text to cut out. */
typedef struct span {
    uint32_t begin, end;
} span;

typedef struct worker {
    leat__sketcher sketcher;
    leat__buf spans, found, now; /* span, uint32_t, text */
} worker;

void leat_decontaminate_opts_init_sized(leat_decontaminate_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

/* ---- one document ---- */

/* Looks up the n-grams of the text and collects the spans and evaluation texts that match. Returns the number
 * of matches. */
static uint64_t find_matches(const cleaning *t, worker *w, uint32_t n)
{
    const leat__sketcher *s = &w->sketcher;
    uint64_t matches = 0;
    leat__buf_clear(&w->spans);
    leat__buf_clear(&w->found);
    if (s->word_count < t->opts->ngram) return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t eval = leat__eval_table_find(&t->evals, s->shingle[i]);
        if (eval == LEAT__EVAL_NONE) continue;
        span here = {s->bounds[2 * i], s->bounds[2 * (i + t->opts->ngram) - 1]};
        span *last = matches > 0 ? (span *)(void *)(w->spans.data + w->spans.len) - 1 : NULL;
        if (last && here.begin <= last->end) last->end = here.end;
        else leat__buf_append(&w->spans, &here, sizeof here);
        leat__buf_append(&w->found, &eval, sizeof eval);
        matches++;
    }
    return matches;
}

static int by_number(const void *x, const void *y)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    return a < b ? -1 : a > b;
}

/* Adds the evaluation texts of the document, each once, to the chunk. Returns the first match. */
static uint32_t put_found(worker *w, leat__text_chunk *c)
{
    uint32_t *eval = (uint32_t *)(void *)w->found.data, first = eval[0];
    size_t n = w->found.len / sizeof *eval;
    qsort(eval, n, sizeof *eval, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || eval[i] != eval[i - 1]) leat__buf_append(&c->out[OUT_FOUND], &eval[i], 4);
    return first;
}

/* Widens a span by the window, to whole characters. */
static span widen(const cleaning *t, const uint8_t *text, size_t len, span s)
{
    s.begin -= LEAT_MIN(s.begin, t->opts->window);
    s.end = (uint32_t)LEAT_MIN(len, (uint64_t)s.end + t->opts->window);
    while (s.begin > 0 && (text[s.begin] & 0xc0) == 0x80) s.begin--;
    while (s.end < len && (text[s.end] & 0xc0) == 0x80) s.end++;
    return s;
}

/* True when text[from, to) has a word or a part of one. *word: the first word that may be in it; ranges are
 * in the order of the text. */
static bool has_word(const leat__sketcher *s, uint32_t *word, size_t from, size_t to)
{
    while (*word < s->word_count && s->bounds[2 * *word + 1] <= from) ++*word;
    return *word < s->word_count && s->bounds[2 * *word] < to;
}

/* Writes the text to w->now with each span replaced by a newline. Returns true when a word is left. */
static bool cut_spans(const cleaning *t, worker *w, leat__text_chunk *c, size_t len)
{
    const uint8_t *text = w->sketcher.text;
    const span *s = (const span *)(const void *)w->spans.data;
    size_t n = w->spans.len / sizeof *s, at = 0;
    uint32_t word = 0;
    bool any = false;
    leat__buf_clear(&w->now);
    for (size_t i = 0; i <= n; i++) {
        span cut = i < n ? widen(t, text, len, s[i]) : (span){(uint32_t)len, (uint32_t)len};
        any = any || (cut.begin > at && has_word(&w->sketcher, &word, at, cut.begin));
        if (cut.begin > at) leat__buf_append(&w->now, text + at, cut.begin - at);
        if (i == n) break;
        c->count[N_CUT] += cut.end > at ? cut.end - LEAT_MAX(at, cut.begin) : 0;
        if (cut.begin >= at) {
            leat__buf_putc(&w->now, '\n');
            c->count[N_SPANS]++;
        }
        at = LEAT_MAX(at, cut.end);
    }
    return any;
}

static void put_match(const cleaning *t, worker *w, leat__text_chunk *c, const leat__line *line,
                      const leat__record_fields *r, uint64_t matches, bool keep)
{
    leat__buf *out = &c->out[OUT_MATCHES];
    const span *s = (const span *)(const void *)w->spans.data;
    uint32_t eval = put_found(w, c);
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(&t->names, c, line, r, out);
    leat__buf_puts(out, ",\"file\":");
    leat__json_text(out, t->files.path[c->file], strlen(t->files.path[c->file]));
    leat__buf_printf(out, ",\"line\":%llu,\"ngrams\":%llu,\"eval\":", (unsigned long long)line->number,
                     (unsigned long long)matches);
    leat__eval_table_id(&t->evals, eval, out);
    leat__buf_puts(out, ",\"span\":");
    leat__json_text(out, (const char *)w->sketcher.text + s->begin, s->end - s->begin);
    leat__buf_printf(out, ",\"kept\":%s}\n", keep ? "true" : "false");
}

static int do_document(const cleaning *t, worker *w, leat__text_chunk *c, const leat__line *line,
                       const leat__record_fields *r, leat_error *err)
{
    uint32_t n;
    bool keep = false;
    LEAT_TRY(leat__sketcher_reserve(&w->sketcher, r->text.raw_len, err));
    size_t len = leat__jsonl_text(&r->text, w->sketcher.text, &c->count[N_LONE]);
    LEAT_TRY(leat__sketcher_shingles(&w->sketcher, len, &n, err));
    uint64_t matches = find_matches(t, w, n);
    c->count[N_DOCUMENTS]++;
    c->count[N_TEXT] += len;
    if (matches < t->opts->min_matches) {
        leat__buf_append(&c->out[OUT_KEPT], line->text, line->len);
        leat__buf_putc(&c->out[OUT_KEPT], '\n');
        c->count[N_KEPT]++;
        return 0;
    }
    if (t->opts->by == LEAT_DECONTAMINATE_SPAN) keep = cut_spans(t, w, c, len);
    if (keep) leat__line_put(&c->out[OUT_KEPT], line, &r->text, leat__buf_str(&w->now), w->now.len);
    put_match(t, w, c, line, r, matches, keep);
    c->count[N_HIT]++;
    c->count[N_KEPT] += keep;
    return w->spans.status == 0 && w->found.status == 0 && w->now.status == 0
               ? 0
               : leat__fail_nomem(err, len, "a document");
}

/* ---- the pass ---- */

static int setup(void *cookie, void **ctx, leat_error *err)
{
    const cleaning *t = cookie;
    worker *w = LEAT_NEW(CURATE, worker);
    if (!w) return leat__fail_nomem(err, sizeof *w, "a worker");
    leat__buf_init(&w->spans, LEAT__MEM_CURATE, (size_t)1 << 34);
    leat__buf_init(&w->found, LEAT__MEM_CURATE, (size_t)1 << 34);
    leat__buf_init(&w->now, LEAT__MEM_CURATE, (size_t)1 << 34);
    *ctx = w;
    return leat__sketcher_init(&w->sketcher, t->opts->ngram, 0, err);
}

static void teardown(void *cookie, void *ctx)
{
    worker *w = ctx;
    if (!w) return;
    leat__sketcher_reset(&w->sketcher);
    leat__buf_reset(&w->spans);
    leat__buf_reset(&w->found);
    leat__buf_reset(&w->now);
    leat__free(w);
}

static uint64_t need(void *cookie, uint64_t longest)
{
    return longest > LARGE ? 20 * longest : 0;
}

static int bad_line(const cleaning *t, leat__text_chunk *c, uint64_t number, uint64_t offset, const char *why,
                    leat_error *err)
{
    if (t->opts->fail_on_bad)
        return leat__fail(err, LEAT_EDATA, "%s: line %llu, offset %llu: %s", t->files.path[c->file],
                          (unsigned long long)number, (unsigned long long)offset, why);
    c->count[N_BAD]++;
    leat__line_bad_json(&t->names, c->file, number, offset, why, &c->out[OUT_BAD]);
    return 0;
}

/* Frees the memory that a large document needed. */
static int shrink(const cleaning *t, worker *w, const leat__text_chunk *c, leat_error *err)
{
    if (c->longest <= LARGE) return 0;
    leat__sketcher_reset(&w->sketcher);
    leat__buf_reset(&w->spans);
    leat__buf_reset(&w->found);
    leat__buf_reset(&w->now);
    return leat__sketcher_init(&w->sketcher, t->opts->ngram, 0, err);
}

static int work(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    const cleaning *t = cookie;
    leat__line line;
    size_t at = 0, where = 0;
    if (c->too_long) LEAT_TRY(bad_line(t, c, c->line, c->offset, LEAT__LINE_TOO_LONG, err));
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        const char *wrong = leat__line_read(&t->names, &line, &r, &where);
        if (wrong) LEAT_TRY(bad_line(t, c, line.number, line.offset + where, wrong, err));
        else LEAT_TRY(do_document(t, ctx, c, &line, &r, err));
    }
    LEAT_TRY(shrink(t, ctx, c, err));
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++)
        if (c->out[i].status != 0) return leat__fail_nomem(err, c->out[i].len, "results");
    return leat__compress_buf(&c->out[OUT_KEPT], (leat__compress)t->opts->compress, err);
}

static int take(void *cookie, leat__text_chunk *c, leat_error *err)
{
    cleaning *t = cookie;
    leat_decontaminate_stats *st = t->stats;
    st->documents += c->count[N_DOCUMENTS];
    st->kept += c->count[N_KEPT];
    st->dropped += c->count[N_DOCUMENTS] - c->count[N_KEPT];
    st->contaminated += c->count[N_HIT];
    st->spans += c->count[N_SPANS];
    st->bytes_removed += c->count[N_CUT];
    st->bad += c->count[N_BAD];
    st->lone_surrogates += c->count[N_LONE];
    st->text_bytes += c->count[N_TEXT];
    for (size_t i = 0; i < c->out[OUT_FOUND].len / 4; i++) {
        uint32_t eval;
        memcpy(&eval, c->out[OUT_FOUND].data + 4 * i, 4);
        st->evals_found += t->found[eval]++ == 0;
    }
    LEAT_TRY(leat__shards_put(&t->kept, c->out[OUT_KEPT].data, c->out[OUT_KEPT].len, err));
    LEAT_TRY(leat__shards_put(&t->matches, c->out[OUT_MATCHES].data, c->out[OUT_MATCHES].len, err));
    return leat__shards_put(&t->bad, c->out[OUT_BAD].data, c->out[OUT_BAD].len, err);
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    const cleaning *t = cookie;
    const leat_decontaminate_opts *o = t->opts;
    return o->progress ? o->progress(o->cookie, bytes, total, t->stats->documents, t->stats->dropped) : 0;
}

/* ---- the run ---- */

void leat__decontaminate_json(const leat_decontaminate_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
#define PUT(name) leat__json_ku64(&j, #name, st->name);
    /* clang-format off */
    PUT(documents) PUT(kept) PUT(dropped) PUT(contaminated) PUT(spans) PUT(bytes_removed) PUT(bad)
    PUT(lone_surrogates) PUT(evals) PUT(evals_found) PUT(evals_short) PUT(evals_bad) PUT(eval_ngrams)
    PUT(files) PUT(bytes_in) PUT(text_bytes) PUT(shards) PUT(bytes_out) PUT(budget_peak_bytes)
    /* clang-format on */
#undef PUT
                leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__text_load_json(&st->load, &j);
    leat__json_end(&j);
}

static int check_options(leat_decontaminate_opts *o, leat_error *err)
{
    if (!o->output || !o->output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (o->eval_count == 0) return leat__fail(err, LEAT_EINVAL, "no evaluation set was named");
    if (o->by > LEAT_DECONTAMINATE_SPAN || o->compress > LEAT_TEXT_ZSTD)
        return leat__fail(err, LEAT_EINVAL, "by or compress is not valid");
    if (o->window > 0 && o->by != LEAT_DECONTAMINATE_SPAN)
        return leat__fail(err, LEAT_EINVAL, "`window` needs `by`=span");
    if (o->ngram == 0) o->ngram = NGRAM;
    if (o->ngram < 2 || o->ngram > 64)
        return leat__fail(err, LEAT_EINVAL, "`ngram`: %u is not between 2 and 64", o->ngram);
    if (o->min_matches == 0) o->min_matches = 1;
    if (!o->text_field) o->text_field = "text";
    if (!o->id_field) o->id_field = "id";
    if (!o->eval_fields) o->eval_fields = "text";
    if (!o->max_document) o->max_document = MAX_DOCUMENT;
    if (!o->shard_bytes) o->shard_bytes = SHARD_DEFAULT;
    return 0;
}

static int open_outputs(cleaning *t, leat_error *err)
{
    const leat_decontaminate_opts *o = t->opts;
    LEAT_TRY(leat__output_lock_take(&t->lock, o->output, err));
    LEAT_TRY(o->replace ? leat__output_ours(o->output, err) : leat__output_unused(o->output, err));
    LEAT_TRY(leat__part_clear(o->output, o->replace, err));
    LEAT_TRY(
        leat__shards_open(&t->kept, o->output, "kept", o->shard_bytes, (leat__compress)o->compress, err));
    LEAT_TRY(leat__shards_open(&t->matches, o->output, "matches", 0, LEAT__COMPRESS_NONE, err));
    LEAT_TRY(leat__shards_open(&t->lists, o->output, "evals", 0, LEAT__COMPRESS_NONE, err));
    return leat__shards_open(&t->bad, o->output, "bad", 0, LEAT__COMPRESS_NONE, err);
}

/* Writes a line for each evaluation text that was found. */
static int put_evals(cleaning *t, leat_error *err)
{
    leat__buf out;
    int rc = 0;
    leat__buf_init(&out, LEAT__MEM_CURATE, (size_t)1 << 33);
    for (uint32_t i = 0; i < t->evals.texts && rc == 0; i++) {
        if (t->found[i] == 0) continue;
        leat__buf_clear(&out);
        leat__buf_puts(&out, "{\"id\":");
        leat__eval_table_id(&t->evals, i, &out);
        leat__buf_printf(&out, ",\"documents\":%u}\n", t->found[i]);
        rc = out.status ? leat__fail_nomem(err, out.len, "a list")
                        : leat__shards_put(&t->lists, out.data, out.len, err);
    }
    leat__buf_reset(&out);
    return rc;
}

static int commit(cleaning *t, leat_error *err)
{
    LEAT_TRY(leat__output_refuse_empty(t->opts->output, t->stats->documents, t->stats->bad, "line", err));
    LEAT_TRY(put_evals(t, err));
    LEAT_TRY(leat__output_clear(t->opts->output, err));
    LEAT_TRY(leat__shards_commit(&t->kept, err));
    LEAT_TRY(leat__shards_commit(&t->matches, err));
    LEAT_TRY(leat__shards_commit(&t->lists, err));
    LEAT_TRY(leat__shards_commit(&t->bad, err));
    t->stats->shards = leat__shards_filled(&t->kept);
    t->stats->bytes_out = t->kept.bytes;
    return 0;
}

/* Facts about the pass over the corpus, from which its memory is computed. */
typedef struct corpus {
    const leat__text_files *files;
    const leat__text_pass *pass;
} corpus;

static uint64_t corpus_need(void *cookie, uint64_t line)
{
    const corpus *c = cookie;
    return leat__text_flow_need(c->files, c->pass, line);
}

static int read_evals(cleaning *t, const leat__text_pass *pass, uint64_t memory, leat_error *err)
{
    corpus of = {&t->files, pass};
    const leat_decontaminate_opts *o = t->opts;
    leat_decontaminate_stats *st = t->stats;
    const leat__eval_sets sets = {.inputs = o->evals,
                                  .count = o->eval_count,
                                  .ngram = o->ngram,
                                  .fields = o->eval_fields,
                                  .id_field = o->id_field,
                                  .memory = memory,
                                  .max_line = o->max_document,
                                  .fail_on_bad = o->fail_on_bad,
                                  .corpus_need = corpus_need,
                                  .cookie = &of};
    LEAT_TRY(leat__eval_table_read(&t->evals, &sets, err));
    st->evals = t->evals.texts;
    st->evals_short = t->evals.texts_short;
    st->evals_bad = t->evals.without;
    st->bad = t->evals.bad;
    st->eval_ngrams = t->evals.used;
    if (t->evals.used == 0)
        return leat__fail(err, LEAT_EDATA,
                          "%s: no text of %u words in the fields \"%s\" (see `eval_field`)%s", o->evals[0],
                          o->ngram, o->eval_fields, t->evals.bad > 0 ? "; lines could not be read" : "");
    if (t->evals.missing)
        leat__log(&o->log, LEAT_LOG_WARN, "no line of the evaluation sets has a string \"%s\"",
                  t->evals.missing);
    t->found = leat__zalloc_array(LEAT__MEM_CURATE, t->evals.texts + 1, sizeof *t->found);
    return t->found ? 0 : leat__fail_nomem(err, t->evals.texts * 4, "counts");
}

/* Fails with LEAT_EINVAL when the output would replace an evaluation set. */
static int check_evals(const leat_decontaminate_opts *o, leat_error *err)
{
    leat__text_files files;
    LEAT_TRY(leat__text_files_open(&files, o->evals, o->eval_count, 1u << 20, err));
    int rc = leat__text_files_check(&files, o->output, NULL, err);
    leat__text_files_warn(&files, &o->log);
    leat__text_files_reset(&files);
    return rc;
}

static int run(cleaning *t, leat_error *err)
{
    const leat_decontaminate_opts *o = t->opts;
    leat__text_pass pass = {.name = "match",
                            .cookie = t,
                            .setup = setup,
                            .teardown = teardown,
                            .ram = 4u << 20,
                            .need = need,
                            .per_line = REPORT_BYTES,
                            .work = work,
                            .take = take,
                            .tell = tell};
    leat__text_meter meter = {0};
    leat_budget_stats bs;
    pass.meter = &meter;
    LEAT_TRY(leat_budget_open(&t->budget, o->memory, err));
    leat_budget_read(t->budget, &bs);
    leat_budget_close(&t->budget);
    LEAT_TRY(leat__text_files_open(&t->files, o->inputs, o->input_count, o->max_document, err));
    LEAT_TRY(check_evals(o, err));
    LEAT_TRY(read_evals(t, &pass, bs.limit, err));
    LEAT_TRY(leat_budget_open(&t->budget, bs.limit - leat__eval_table_bytes(&t->evals), err));
    pass.memory = bs.limit;
    LEAT_TRY(leat__text_output_check(o->output, o->inputs, o->input_count, NULL, err));
    LEAT_TRY(leat__text_files_check(&t->files, o->output, NULL, err));
    leat__text_files_warn(&t->files, &o->log);
    t->names = (leat__line_names){o->text_field, o->id_field, NULL, t->files.path, o->max_document};
    t->stats->files = t->files.count;
    t->stats->bytes_in = t->files.total;
    LEAT_TRY(open_outputs(t, err));
    LEAT_TRY(leat__shards_put(&t->bad, t->evals.bad_list.data, t->evals.bad_list.len, err));
    LEAT_TRY(leat__text_flow_run(&t->files, &pass, t->budget, o->threads, &o->log, err));
    leat_budget_read(t->budget, &bs);
    t->stats->budget_peak_bytes = bs.peak + leat__eval_table_bytes(&t->evals);
    leat__text_meter_load(&meter, &t->stats->load);
    return commit(t, err);
}

static int write_report(const cleaning *t, leat_error *err)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__decontaminate_json(t->stats, &json);
    int rc = leat__output_report(t->opts->output, &json, err);
    leat__buf_reset(&json);
    return rc;
}

int leat_decontaminate_text(const leat_decontaminate_opts *opts, leat_decontaminate_stats *stats,
                            leat_error *err)
{
    leat_decontaminate_opts o;
    leat_decontaminate_stats own = {.struct_size = sizeof own};
    if (!opts || opts->struct_size < sizeof o.struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&o, 0, sizeof o);
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    LEAT_TRY(check_options(&o, err));
    cleaning t = {.opts = &o, .stats = &own};
    uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(&t, err);
    own.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    own.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (rc == 0) rc = write_report(&t, err);
    leat__shards_reset(&t.kept);
    leat__shards_reset(&t.matches);
    leat__shards_reset(&t.lists);
    leat__shards_reset(&t.bad);
    leat__output_lock_drop(&t.lock);
    leat__text_files_reset(&t.files);
    leat__eval_table_reset(&t.evals);
    leat_budget_close(&t.budget);
    leat__free(t.found);
    if (stats) *stats = own;
    return rc;
}
