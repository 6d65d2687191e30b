/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_check_images. Limits adapt to all images, so they are known only at the end. The first pass
 * decodes images and writes their facts without issues to OUTPUT.scores. The second pass reads the
 * scores of all rows, sets the limits, and writes the rows with their issues. It holds one score of all
 * rows in memory at a time. An interrupted run is resumed from OUTPUT.scores.
 */
#include "curate/image_check.h"

#include <leat/version.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/image_csv.h"
#include "curate/image_flow.h"
#include "curate/image_spool.h"
#include "io/url.h"
#include "pack/selection.h"
#include "pack/kind.h"

typedef struct checking {
    const leat_check_opts *opts;
    leat_check_stats *stats;
    leat_ingest_opts ingest;
    leat__source *source;
    leat__issue_limits limits;
    leat__image_spool *spool; /* rows without issues */
    leat_packer *out;
    leat__buf provenance;
    leat__csv_out csv;
    double worst[LEAT__ISSUES][LEAT_CHECK_EXAMPLES]; /* scores of the examples */
    leat__check_counts counts;
    leat__image_spool *made; /* facts that the caller gives instead of a first pass */
} checking;

void leat_check_opts_init_sized(leat_check_opts *opts, uint32_t struct_size)
{
    (void)!leat__sized_init(opts, struct_size);
}

/* ---- first pass ---- */

void leat__check_count(leat__check_counts *counts, const leat__image_facts *facts)
{
    counts->samples++;
    counts->ok += facts->verdict == LEAT__VERDICT_OK;
    counts->bytes += facts->bytes;
    counts->early += facts->issues != 0;
}

static int take_facts(void *cookie, const char *key, size_t key_size, const leat__image_facts *facts,
                      uint64_t chain, leat_error *err)
{
    checking *c = cookie;
    leat__check_count(&c->counts, facts);
    c->counts.chain = chain;
    return leat__image_spool_put(c->spool, key, key_size, facts, &c->counts, err);
}

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    const checking *c = cookie;
    if (!c->opts->progress) return 0;
    return c->opts->progress(c->opts->cookie, done, c->source->total ? total : 0, c->counts.bytes,
                             c->counts.early);
}

static void describe_pack(leat__json *j, leat_pack *pack)
{
    leat_pack_info info = {.struct_size = sizeof info};
    char hex[24];
    (void)leat_pack_info_read(pack, &info, sizeof info);
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)info.fingerprint);
    leat__json_object(j);
    leat__json_kstr(j, "fingerprint", hex);
    leat__json_ku64(j, "samples", info.samples);
    leat__json_end(j);
}

/* {"kind":"leat check 1","source":…,"names":[…],"packs":[{"fingerprint":…,"samples":…}]} */
static int make_provenance(checking *c, leat_error *err)
{
    leat__json j;
    leat__json_init(&j, &c->provenance, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", LEAT__COLUMNS_KIND);
    leat__json_kstr(&j, "source", c->source->ops->kind);
    leat__json_key(&j, "names");
    leat__json_array(&j);
    for (uint32_t i = 0; i < c->opts->source_count; i++) {
        size_t len;
        const char *name = leat__path_name(c->opts->sources[i], &len);
        leat__json_strn(&j, name, len);
    }
    leat__json_end(&j);
    leat__json_key(&j, "packs");
    leat__json_array(&j);
    for (uint32_t i = 0; leat__source_pack_of(c->source, i); i++)
        describe_pack(&j, leat__source_pack_of(c->source, i));
    leat__json_end(&j);
    leat__json_end(&j);
    return leat__buf_status(&c->provenance) == 0 ? 0 : leat__fail_nomem(err, 0, "provenance");
}

/* Hashes everything that the facts depend on, except the records. */
static uint64_t spool_key(const checking *c)
{
    const uint64_t numbers[] = {LEAT_VERSION_NUMBER, sizeof(leat__image_facts), c->opts->max_pixels,
                                c->opts->strict};
    uint64_t key = leat__hash64(numbers, sizeof numbers, 0);
    key = leat__hash64(c->provenance.data, c->provenance.len, key); /* has the fingerprints of packs */
    for (uint32_t i = 0; i < c->opts->source_count; i++) key = leat__path_hash(c->opts->sources[i], key);
    return LEAT_MAX(key, 1);
}

static int open_spool(checking *c, leat_error *err)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_CURATE, 1u << 20);
    int rc = leat__buf_printf(&path, "%s.scores", c->opts->output) == 0
                 ? leat__image_spool_open(&c->spool, leat__buf_str(&path), spool_key(c), &c->counts, err)
                 : leat__fail_nomem(err, 0, "a path");
    leat__buf_reset(&path);
    return rc;
}

/* Starts over: the source changed since the interrupted run. */
static int look_again(checking *c, leat__image_pass *pass, leat_error *err)
{
    LEAT_TRY(leat__image_spool_clear(c->spool, err));
    memset(&c->counts, 0, sizeof c->counts);
    leat__source_close(&c->source);
    LEAT_TRY(leat__source_open(&c->source, &c->ingest, err));
    pass->source = c->source;
    pass->skip = (leat__chain){0, 0};
    return leat__image_flow_run(pass, err);
}

static int first_pass(checking *c, leat_error *err)
{
    LEAT_TRY(open_spool(c, err));
    leat__image_pass pass = {.opts = &c->ingest,
                             .source = c->source,
                             .take = take_facts,
                             .tell = tell,
                             .skip = {c->counts.chain, c->counts.samples},
                             .cookie = c};
    int rc = leat__image_flow_run(&pass, err);
    if (rc == 0 && pass.changed) rc = look_again(c, &pass, err);
    c->stats->budget_peak_bytes = pass.budget_peak;
    c->stats->resumed = pass.skip.records;
    c->stats->ignored = c->source ? c->source->ignored : 0;
    if (rc != 0) return rc;
    if (c->counts.samples == 0)
        return leat__fail(err, LEAT_EDATA, "%s: there are no images to check", c->opts->sources[0]);
    return leat__image_spool_finish(c->spool, err);
}

/* ---- second pass ---- */

static int adapt_limits(checking *c, leat_error *err)
{
    const uint64_t count = leat__image_spool_count(c->spool);
    double *scores = leat__alloc_array(LEAT__MEM_CURATE, count, sizeof *scores);
    int rc = 0;
    if (!scores) return leat__fail_nomem(err, count * sizeof *scores, "scores");
    for (int i = LEAT__ISSUE_SCORED; i < LEAT__ISSUES && rc == 0; i++) {
        size_t n = 0;
        rc = leat__image_spool_scores(c->spool, leat__issue_kinds[i].score, scores, &n, err);
        if (rc == 0) leat__issue_limits_adapt(&c->limits, (leat__issue)i, scores, n);
    }
    leat__free(scores);
    return rc;
}

/* Keeps the rows furthest beyond the limit as examples, or the first rows when the issue has no score. */
static void add_example(checking *c, int issue, uint64_t row, double score)
{
    leat_check_issue *s = &c->stats->issues[issue];
    double *worst = c->worst[issue];
    const int side = leat__issue_kinds[issue].side;
    uint32_t at = LEAT_MIN(s->examples, LEAT_CHECK_EXAMPLES);
    s->count++;
    while (at > 0 && side != 0 && (side < 0 ? score < worst[at - 1] : score > worst[at - 1])) at--;
    if (at == LEAT_CHECK_EXAMPLES) return;
    if (s->examples < LEAT_CHECK_EXAMPLES) s->examples++;
    const size_t behind = s->examples - 1 - at;
    memmove(worst + at + 1, worst + at, behind * sizeof *worst);
    memmove(s->example + at + 1, s->example + at, behind * sizeof *s->example);
    worst[at] = score;
    s->example[at] = row;
}

static int write_csv(checking *c, const char *key, size_t key_size, const leat__image_facts *f,
                     leat_error *err)
{
    char issues[512] = {0};
    if (!leat__csv_out_wanted(&c->csv)) return 0;
    for (int i = 0; i < LEAT__ISSUES; i++) {
        if (!(f->issues >> i & 1)) continue;
        if (issues[0]) strncat(issues, " ", sizeof issues - strlen(issues) - 1);
        strncat(issues, leat__issue_kinds[i].name, sizeof issues - strlen(issues) - 1);
    }
    leat__csv_out_field(&c->csv, key, key_size);
    leat__csv_out_text(&c->csv, leat__verdict_names[f->verdict]);
    leat__csv_out_text(&c->csv, issues);
    leat__csv_out_count(&c->csv, f->width);
    leat__csv_out_count(&c->csv, f->height);
    leat__csv_out_count(&c->csv, f->bytes);
    for (int i = 0; i < LEAT__LOOKS; i++)
        if (!isnan(f->score[i])) leat__csv_out_number(&c->csv, f->score[i]);
        else leat__csv_out_text(&c->csv, "");
    leat__csv_out_text(&c->csv, f->reason);
    return leat__csv_out_line(&c->csv, err);
}

static int begin_csv(checking *c, leat_error *err)
{
    static const char *const front[] = {"key", "verdict", "issues", "width", "height", "bytes"};
    LEAT_TRY(leat__csv_out_open(&c->csv, c->opts->csv, LEAT__CHECK_CSV, err));
    for (size_t i = 0; i < LEAT_COUNT(front); i++) leat__csv_out_text(&c->csv, front[i]);
    for (int i = 0; i < LEAT__LOOKS; i++) leat__csv_out_text(&c->csv, leat__look_names[i]);
    leat__csv_out_text(&c->csv, "reason");
    return leat__csv_out_line(&c->csv, err);
}

static int write_rows(checking *c, leat_error *err)
{
    const uint64_t count = leat__image_spool_count(c->spool);
    leat__image_facts f;
    for (uint64_t row = 0; row < count; row++) {
        const char *key;
        size_t size;
        LEAT_TRY(leat__image_spool_next(c->spool, &f, &key, &size, err));
        if (f.verdict == LEAT__VERDICT_OK) f.issues |= leat__issue_bits(&c->limits, f.score);
        for (int i = 0; i < LEAT__ISSUES; i++)
            if (f.issues >> i & 1) add_example(c, i, row, f.score[leat__issue_kinds[i].score]);
        c->stats->found += f.issues != 0;
        LEAT_TRY(leat__image_columns_append(c->out, key, size, &f, err));
        LEAT_TRY(write_csv(c, key, size, &f, err));
        if (row % 1024 == 0 && c->opts->progress &&
            c->opts->progress(c->opts->cookie, count, count, c->stats->bytes_in, c->stats->found) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    return 0;
}

static void describe_issues(checking *c)
{
    c->stats->issue_count = LEAT__ISSUES;
    for (int i = 0; i < LEAT__ISSUES; i++) {
        const leat__issue_kind *k = &leat__issue_kinds[i];
        leat_check_issue *s = &c->stats->issues[i];
        s->name = k->name;
        s->help = k->help;
        s->side = k->side;
        s->score = k->side ? leat__look_names[k->score] : NULL;
        s->limit = c->limits.limit[i];
        s->off = c->limits.off[i];
    }
}

/* Stores the names and limits of the issue bits, for readers of the columns. */
static int store_limits(checking *c, leat_error *err)
{
    leat__buf json;
    leat__json j;
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__json_init(&j, &json, 0);
    leat__json_array(&j);
    for (int i = 0; i < LEAT__ISSUES; i++) {
        leat__json_object(&j);
        leat__json_kstr(&j, "name", leat__issue_kinds[i].name);
        if (leat__issue_kinds[i].side) {
            leat__json_kstr(&j, "score", leat__look_names[leat__issue_kinds[i].score]);
            leat__json_kstr(&j, "is", leat__issue_kinds[i].side < 0 ? "below" : "above");
            leat__json_kdouble(&j, "limit", c->limits.limit[i]);
            leat__json_kbool(&j, "off", c->limits.off[i]);
        }
        leat__json_end(&j);
    }
    leat__json_end(&j);
    int rc = leat__buf_status(&json) == 0 ? leat_packer_blob(c->out, "issues", json.data, json.len, err)
                                          : leat__fail_nomem(err, 0, "limits");
    leat__buf_reset(&json);
    return rc;
}

static int second_pass(checking *c, leat_error *err)
{
    leat_packer_stats ps = {0};
    LEAT_TRY(adapt_limits(c, err));
    describe_issues(c);
    LEAT_TRY(store_limits(c, err));
    LEAT_TRY(write_rows(c, err));
    LEAT_TRY(leat_packer_finish(c->out, &ps, err));
    c->stats->bytes_out = ps.file_bytes;
    return leat__csv_out_finish(&c->csv, err);
}

/* ---- the run ---- */

/* Fails for packs of wide images: they cannot be scored, but are not damaged. */
static int refuse_wide(leat__source *s, leat_error *err)
{
    leat_pack *pack;
    for (uint32_t i = 0; s->image_field >= 0 && (pack = leat__source_pack_of(s, i)) != NULL; i++) {
        const char *name = s->fields[s->image_field].name;
        const int field = leat_pack_field_find(pack, name);
        char text[LEAT__KIND_TEXT];
        leat__image_kind kind = 0;
        if (field >= 0) LEAT_TRY(leat__pack_image_kind(pack, (uint32_t)field, &kind, err));
        if (kind != 0)
            return leat__fail(err, LEAT_ENOTSUP,
                              "%s: field '%s' has %s; only 8-bit images of 1, 3 or 4 channels can be checked",
                              leat_pack_path(pack), name, leat__kind_text(kind, text));
    }
    return 0;
}

static leat_ingest_opts ingest_of(const leat_check_opts *o)
{
    leat_ingest_opts in;
    leat_ingest_opts_init(&in);
    in.sources = o->sources;
    in.source_count = o->source_count;
    in.threads = o->threads;
    in.memory = o->memory;
    in.strict = o->strict;
    in.max_pixels = o->max_pixels;
    in.defaults = "*=-1"; /* samples of tar shards without a label are checked like all others */
    in.log = o->log;
    return in;
}

int leat__check_chain(const leat_check_opts *opts, leat__chain *chain, leat_error *err)
{
    const leat_ingest_opts in = ingest_of(opts);
    leat__source *source = NULL;
    leat__records_pool spare;
    LEAT_TRY(leat__source_open(&source, &in, err));
    leat__records_pool_init(&spare, source->field_count, 1);
    *chain = leat__chain_begin(&in);
    int rc = leat__chain_skip(chain, source, &spare, UINT64_MAX, NULL, err);
    leat__records_pool_reset(&spare);
    leat__source_close(&source);
    return rc;
}

uint64_t leat__check_enough(const leat_check_opts *opts)
{
    const leat_ingest_opts in = ingest_of(opts);
    return leat__image_flow_enough(&in);
}

static int run(checking *c, leat_error *err)
{
    const leat_check_opts *o = c->opts;
    LEAT_TRY(leat__issue_limits_parse(&c->limits, o->limits, err));
    c->ingest = ingest_of(o);
    LEAT_TRY(leat__source_open(&c->source, &c->ingest, err));
    LEAT_TRY(refuse_wide(c->source, err));
    LEAT_TRY(make_provenance(c, err));
    LEAT_TRY(leat__image_columns_create(&c->out, o->output, leat__buf_str(&c->provenance), o->replace != 0,
                                        o->no_sync != 0, err));
    LEAT_TRY(begin_csv(c, err));
    if (!c->spool) LEAT_TRY(first_pass(c, err));
    c->stats->samples = c->counts.samples;
    c->stats->ok = c->counts.ok;
    c->stats->bytes_in = c->counts.bytes;
    return second_pass(c, err);
}

static void tear_down(checking *c, int rc)
{
    const bool mine = c->out != NULL;
    leat_packer_close(&c->out);
    leat__csv_out_close(&c->csv);
    if (c->spool != c->made && rc == LEAT_ECANCELED) leat__image_spool_leave(&c->spool);
    if (c->spool != c->made) leat__image_spool_close(&c->spool);
    if (rc != 0 && mine) (void)!leat_packer_discard(c->opts->output, NULL);
    leat__source_close(&c->source);
    leat__buf_reset(&c->provenance);
}

static int check(const leat_check_opts *opts, leat__image_spool *made, const leat__check_counts *counts,
                 leat_check_stats *stats, leat_error *err)
{
    leat_check_opts o;
    leat_check_stats own = {.struct_size = sizeof own};
    if (!opts || opts->struct_size < sizeof o.struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&o, 0, sizeof o);
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    if (!o.output || !o.output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (leat__path_remote(o.output))
        return leat__fail(err, LEAT_EINVAL, "%s: columns are written to a local file", o.output);
    if (o.source_count == 0) return leat__fail(err, LEAT_EINVAL, "no source was named");
    LEAT_TRY(leat__pack_spare_result(o.output, o.csv, err));
    for (uint32_t i = 0; i < o.source_count; i++) {
        LEAT_TRY(leat__pack_spare_input(o.output, o.sources[i], err));
        LEAT_TRY(leat__pack_spare_input(o.csv, o.sources[i], err));
    }
    LEAT_TRY(leat__result_file_check(o.csv, LEAT__CHECK_CSV, o.replace != 0, false, err));
    const uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    checking *c = LEAT_NEW(CURATE, checking);
    if (!c) return leat__fail_nomem(err, sizeof *c, "a check");
    c->opts = &o;
    c->stats = &own;
    c->spool = c->made = made;
    if (made) c->counts = *counts;
    leat__buf_init(&c->provenance, LEAT__MEM_CURATE, 16u << 20);
    int rc = run(c, err);
    tear_down(c, rc);
    leat__free(c);
    own.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    own.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (stats) (void)!leat__sized_copy(stats, &own, sizeof own);
    return rc;
}

int leat_check_images(const leat_check_opts *opts, leat_check_stats *stats, leat_error *err)
{
    return check(opts, NULL, NULL, stats, err);
}

int leat__check_scored(const leat_check_opts *opts, leat__image_spool *spool,
                       const leat__check_counts *counts, leat_check_stats *stats, leat_error *err)
{
    return check(opts, spool, counts, stats, err);
}

/* ---- JSON ---- */

static void json_examples(leat__json *j, const leat_check_issue *s, leat_pack *pack)
{
    char key[1024];
    leat__json_key(j, "examples");
    leat__json_array(j);
    for (uint32_t i = 0; i < s->examples; i++) {
        size_t size = 0;
        if (leat_pack_key(pack, s->example[i], key, sizeof key, &size, NULL) == 0)
            leat__json_strn(j, key, size);
    }
    leat__json_end(j);
}

void leat__check_json(const leat_check_stats *st, const char *output, leat__buf *out)
{
    leat__json j;
    leat_pack *pack = NULL;
    if (output && leat_pack_open(&pack, output, NULL, NULL) != 0) pack = NULL;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "samples", st->samples);
    leat__json_ku64(&j, "ok", st->ok);
    leat__json_ku64(&j, "found", st->found);
    leat__json_key(&j, "issues");
    leat__json_object(&j);
    for (uint32_t i = 0; i < st->issue_count; i++) {
        const leat_check_issue *s = &st->issues[i];
        leat__json_key(&j, s->name);
        leat__json_object(&j);
        leat__json_ku64(&j, "count", s->count);
        if (s->score) {
            leat__json_kstr(&j, "score", s->score);
            leat__json_kstr(&j, "is", s->side < 0 ? "below" : "above");
            leat__json_kdouble(&j, "limit", s->limit);
            leat__json_kbool(&j, "off", s->off != 0);
        }
        if (pack) json_examples(&j, s, pack);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_ku64(&j, "ignored", st->ignored);
    leat__json_ku64(&j, "resumed", st->resumed);
    leat__json_ku64(&j, "bytes_in", st->bytes_in);
    leat__json_ku64(&j, "bytes_out", st->bytes_out);
    leat__json_ku64(&j, "budget_peak_bytes", st->budget_peak_bytes);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_kdouble(&j, "images_per_cpu_s",
                       st->cpu_seconds > 0 ? (double)(st->samples - st->resumed) / st->cpu_seconds : 0);
    leat__json_end(&j);
    leat_pack_close(&pack);
}
