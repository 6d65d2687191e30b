/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects, merges and writes the data of a filter report as JSON.
 */
#include "curate/filter_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/filter_run.h"

#define OCTAVE 3        /* bins per doubling of a count */
#define BORDER 0.1      /* relative distance from the threshold within which a document is borderline */
#define ID_RAW_MAX 1024 /* longer ids are shown as FILE:LINE */

static const char *const look_names[LEAT__LOOKS] = {"kept", "dropped", "borderline"};

int leat__filter_report_init(leat__filter_report *r, const leat__rule_set *rules, const leat__lid *lid,
                             bool near, uint32_t look, uint64_t seed, leat_error *err)
{
    uint32_t sides = near ? 2 * rules->count : 0;
    uint32_t labels = lid ? leat__lid_labels(lid) : 0;
    uint64_t examples = (uint64_t)sides * LEAT__REPORT_NEAR + (uint64_t)LEAT__LOOKS * look;
    memset(r, 0, sizeof *r);
    r->rules = rules;
    r->lid = lid;
    r->seed = seed;
    r->scores = near ? leat__score_total + 2 : 0;
    uint64_t bins = (uint64_t)r->scores * LEAT__REPORT_BINS;
    r->bytes =
        2 * (bins + labels) * sizeof(uint64_t) + sides * sizeof *r->near + examples * sizeof *r->examples;
    r->kept = leat__zalloc_array(LEAT__MEM_CURATE, 2 * (bins + labels) + 1, sizeof(uint64_t));
    r->near = leat__zalloc_array(LEAT__MEM_CURATE, sides + 1, sizeof *r->near);
    r->examples = leat__alloc_array(LEAT__MEM_CURATE, examples + 1, sizeof *r->examples);
    if (!r->kept || !r->near || !r->examples) {
        leat__filter_report_reset(r);
        return leat__fail_nomem(err, r->bytes, "the report");
    }
    r->dropped = r->kept + bins;
    r->lang_kept = r->dropped + bins;
    r->lang_dropped = r->lang_kept + labels;
    leat__example *at = r->examples;
    for (uint32_t i = 0; i < sides; i++, at += LEAT__REPORT_NEAR)
        r->near[i] = (leat__top){.max = LEAT__REPORT_NEAR, .at = at};
    for (int i = 0; i < LEAT__LOOKS; i++, at += look) r->look[i] = (leat__top){.max = look, .at = at};
    return 0;
}

void leat__filter_report_reset(leat__filter_report *r)
{
    leat__free(r->kept);
    leat__free(r->near);
    leat__free(r->examples);
    memset(r, 0, sizeof *r);
}

/* ---- bins ---- */

/* True for scores that are shares: their bins have equal size from 0 to 1. Other scores have growing bins. */
static bool is_share(unsigned score)
{
    return leat__str_ends(leat__scores[score].name, "_ratio") || score == leat__score_lang;
}

double leat__report_place(unsigned score, double value)
{
    if (!(value > 0)) return 0;
    if (is_share(score)) return LEAT_MIN(value * (LEAT__REPORT_BINS - 1), LEAT__REPORT_BINS - 1);
    if (value < 1) return value;
    return LEAT_MIN(1 + OCTAVE * log2(value), LEAT__REPORT_BINS - 1);
}

void leat__report_bin(unsigned score, unsigned bin, double *from, double *to)
{
    bool last = bin + 1 == LEAT__REPORT_BINS;
    if (is_share(score)) {
        *from = (double)bin / (LEAT__REPORT_BINS - 1);
        *to = last ? INFINITY : (bin + 1.0) / (LEAT__REPORT_BINS - 1);
    } else {
        *from = bin == 0 ? 0 : exp2((bin - 1.0) / OCTAVE);
        *to = last ? INFINITY : exp2((double)bin / OCTAVE);
    }
}

/* ---- documents ---- */

/* Makes a free slot at its place in the sorted list, or returns NULL when the document is not among
 * the best. */
static leat__example *place(leat__top *t, double order, uint64_t document)
{
    uint32_t i = t->count;
    if (t->max == 0) return NULL;
    if (i == t->max) {
        const leat__example *last = &t->at[i - 1];
        if (order > last->order || (order == last->order && document > last->document)) return NULL;
        i--;
    } else {
        t->count++;
    }
    for (; i > 0; i--) {
        const leat__example *before = &t->at[i - 1];
        if (before->order < order || (before->order == order && before->document < document)) break;
        t->at[i] = *before;
    }
    return &t->at[i];
}

/* Copies text, truncated between code points. */
static void cut(char *out, size_t size, const uint8_t *text, size_t len)
{
    size_t n = LEAT_MIN(len, size - 1);
    while (n > 0 && n < len && (text[n] & 0xc0) == 0x80) n--;
    memcpy(out, text, n);
    out[n] = 0;
    for (size_t i = 0; i < n; i++)
        if (out[i] == 0) out[i] = ' ';
}

static void put_id(leat__example *e, const leat__judged *d)
{
    const leat__jsonl_field *id = &d->fields->id;
    uint8_t plain[ID_RAW_MAX + LEAT__TEXT_PAD];
    uint64_t lone = 0;
    if (id->kind == LEAT__JSONL_STRING && id->raw_len <= ID_RAW_MAX)
        cut(e->id, sizeof e->id, plain, leat__jsonl_text(id, plain, &lone));
    else if (id->kind == LEAT__JSONL_NUMBER) cut(e->id, sizeof e->id, id->raw, id->raw_len);
    else
        snprintf(e->id, sizeof e->id, "%s:%llu", d->names->path[d->chunk->file],
                 (unsigned long long)d->line->number);
}

/* Returns the distance of a score from the threshold, as a share of the threshold. */
static double margin(const leat__rule *r, double score)
{
    double t = fabs(r->threshold);
    if (r->score == leat__score_lang_match) return 1;
    return t > 0 ? fabs(score - r->threshold) / t : fabs(score);
}

/* Chooses the most telling rules for a document: violated ones first, then those nearest to their
 * threshold. */
static void put_rules(leat__example *e, const leat__filter_report *r, const leat__judged *d)
{
    double order[LEAT_FILTER_SEEN_RULES];
    e->rule_count = 0;
    for (unsigned i = 0; i < r->rules->count; i++) {
        const leat__rule *rule = &r->rules->rule[i];
        if (!rule->on) continue;
        double score = leat__score_value(rule->score, d->counts);
        double now = margin(rule, score) + (d->failed[i] ? 0 : 1e9);
        uint32_t k = e->rule_count;
        if (k < LEAT_FILTER_SEEN_RULES) e->rule_count++;
        else if (now >= order[--k]) continue;
        for (; k > 0 && now < order[k - 1]; k--) {
            order[k] = order[k - 1];
            e->rule[k] = e->rule[k - 1];
            e->rule_score[k] = e->rule_score[k - 1];
        }
        order[k] = now;
        e->rule[k] = (uint16_t)i;
        e->rule_score[k] = score;
    }
}

static void fill(const leat__filter_report *r, leat__example *e, double order, double score,
                 const leat__judged *d)
{
    e->order = order;
    e->document = d->line->document;
    e->score = score;
    e->kept = d->kept;
    e->lang_score = d->counts->lang_score;
    snprintf(e->lang, sizeof e->lang, "%s", d->counts->lang ? d->counts->lang : "");
    put_id(e, d);
    put_rules(e, r, d);
    cut(e->text, sizeof e->text, d->text, d->len);
}

/* True when thresholds that are a tenth stricter (or, for a dropped document, looser) would change
 * the verdict. */
static bool is_borderline(const leat__filter_report *r, const leat__judged *d)
{
    for (unsigned i = 0; i < r->rules->count; i++) {
        leat__rule rule = r->rules->rule[i];
        if (!rule.on || (!d->kept && !d->failed[i])) continue;
        bool least = rule.bound == LEAT__BOUND_MIN || rule.bound == LEAT__BOUND_ABOVE;
        double step = BORDER * fabs(rule.threshold);
        /* a language either matches or not: it is never borderline */
        if (rule.score != leat__score_lang_match) rule.threshold += least == d->kept ? step : -step;
        bool keeps = leat__rule_keeps(&rule, leat__score_value(rule.score, d->counts));
        if (d->kept && !keeps) return true;
        if (!d->kept && !keeps) return false;
    }
    return !d->kept;
}

static void add_look(leat__filter_report *r, int kind, const leat__judged *d)
{
    uint64_t h = leat__mix64(d->line->document + leat__mix64(r->seed));
    double order = (double)(h >> 11);
    leat__example *e = place(&r->look[kind], order, d->line->document);
    if (e) fill(r, e, order, 0, d);
}

void leat__filter_report_add(leat__filter_report *r, const leat__judged *d)
{
    for (unsigned i = 0; i < r->scores; i++) {
        unsigned bin = (unsigned)leat__report_place(i, leat__score_value(i, d->counts));
        (d->kept ? r->kept : r->dropped)[i * LEAT__REPORT_BINS + bin]++;
    }
    if (r->lid && d->label >= 0) (d->kept ? r->lang_kept : r->lang_dropped)[d->label]++;
    for (unsigned i = 0; i < r->rules->count && r->scores > 0; i++) {
        const leat__rule *rule = &r->rules->rule[i];
        if (!rule->on) continue;
        double score = leat__score_value(rule->score, d->counts), order = fabs(score - rule->threshold);
        leat__example *e = place(&r->near[2 * i + d->failed[i]], order, d->line->document);
        if (e) fill(r, e, order, score, d);
    }
    if (r->look[0].max == 0) return;
    add_look(r, d->kept ? LEAT__LOOK_KEPT : LEAT__LOOK_DROPPED, d);
    if (is_borderline(r, d)) add_look(r, LEAT__LOOK_BORDERLINE, d);
}

static void merge_top(leat__top *into, const leat__top *from)
{
    for (uint32_t i = 0; i < from->count; i++) {
        leat__example *e = place(into, from->at[i].order, from->at[i].document);
        if (e) *e = from->at[i];
    }
}

void leat__filter_report_merge(leat__filter_report *into, const leat__filter_report *from)
{
    uint64_t labels = into->lid ? leat__lid_labels(into->lid) : 0;
    uint64_t n = 2 * ((uint64_t)into->scores * LEAT__REPORT_BINS + labels);
    for (uint64_t i = 0; i < n; i++) into->kept[i] += from->kept[i]; /* all four arrays: they are adjacent */
    for (unsigned i = 0; i < 2 * into->rules->count && into->scores > 0; i++)
        merge_top(&into->near[i], &from->near[i]);
    for (int i = 0; i < LEAT__LOOKS; i++) merge_top(&into->look[i], &from->look[i]);
}

/* ---- JSON ---- */

static void put_funnel(leat__json *j, const leat_filter_stats *st)
{
    uint64_t left = st->documents;
    leat__json_key(j, "funnel");
    leat__json_array(j);
    for (uint32_t i = 0; i <= st->rule_count; i++) {
        if (i > 0 && st->rules[i - 1].first == 0) continue;
        if (i > 0) left -= st->rules[i - 1].first;
        leat__json_object(j);
        leat__json_kstr(j, "after", i > 0 ? st->rules[i - 1].name : "");
        leat__json_ku64(j, "documents", left);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static void put_counts(leat__json *j, const char *name, const uint64_t *counts, unsigned bins)
{
    leat__json_key(j, name);
    leat__json_array(j);
    for (unsigned b = 0; b < bins; b++) leat__json_u64(j, counts[b]);
    leat__json_end(j);
}

/* Writes the bins up to the last one that is not empty. */
static void put_histograms(leat__json *j, const leat__filter_report *r)
{
    leat__json_key(j, "histograms");
    leat__json_array(j);
    for (unsigned i = 0; i < r->scores; i++) {
        const uint64_t *kept = r->kept + i * LEAT__REPORT_BINS, *dropped = r->dropped + i * LEAT__REPORT_BINS;
        unsigned bins = LEAT__REPORT_BINS;
        while (bins > 1 && kept[bins - 1] + dropped[bins - 1] == 0) bins--;
        if (i >= leat__score_total && !r->lid) continue;
        leat__json_object(j);
        leat__json_kstr(j, "score", leat__scores[i].name);
        leat__json_key(j, "from");
        leat__json_array(j);
        for (unsigned b = 0; b < bins; b++) {
            double from, to;
            leat__report_bin(i, b, &from, &to);
            leat__json_double(j, from);
        }
        leat__json_end(j);
        put_counts(j, "kept", kept, bins);
        put_counts(j, "dropped", dropped, bins);
        leat__json_end(j);
    }
    leat__json_end(j);
}

static void put_examples(leat__json *j, const leat__filter_report *r, const leat_filter_stats *st)
{
    leat__json_key(j, "examples");
    leat__json_array(j);
    for (unsigned i = 0; i < 2 * r->rules->count && r->scores > 0; i++) {
        for (uint32_t k = 0; k < r->near[i].count; k++) {
            const leat__example *e = &r->near[i].at[k];
            leat__json_object(j);
            leat__json_kstr(j, "rule", st->rules[i / 2].name);
            leat__json_kbool(j, "passes", i % 2 == 0);
            leat__json_kstr(j, "id", e->id);
            leat__json_kdouble(j, "score", e->score);
            leat__json_kbool(j, "kept", e->kept);
            leat__json_kstr(j, "text", e->text);
            leat__json_end(j);
        }
    }
    leat__json_end(j);
}

static void put_languages(leat__json *j, const leat__filter_report *r)
{
    leat__json_key(j, "languages");
    leat__json_array(j);
    for (uint32_t i = 0; r->lid && i < leat__lid_labels(r->lid); i++) {
        if (r->lang_kept[i] + r->lang_dropped[i] == 0) continue;
        leat__json_object(j);
        leat__json_kstr(j, "lang", leat__lid_label(r->lid, i));
        leat__json_ku64(j, "kept", r->lang_kept[i]);
        leat__json_ku64(j, "dropped", r->lang_dropped[i]);
        leat__json_end(j);
    }
    leat__json_end(j);
}

void leat__filter_report_json(const leat__filter_report *r, const leat_filter_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "report", "leat"); /* report_page.c recognises its files by this */
    leat__json_ku64(&j, "documents", st->documents);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "dropped", st->dropped);
    leat__json_ku64(&j, "bad", st->bad);
    leat__json_key(&j, "rules");
    leat__json_array(&j);
    for (uint32_t i = 0; i < st->rule_count; i++) {
        leat__json_object(&j);
        leat__json_kstr(&j, "rule", st->rules[i].name);
        leat__json_kstr(&j, "profile", st->rules[i].profile);
        leat__json_kdouble(&j, "threshold", st->rules[i].threshold);
        leat__json_ku64(&j, "failed", st->rules[i].failed);
        leat__json_ku64(&j, "first", st->rules[i].first);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    put_funnel(&j, st);
    put_languages(&j, r);
    put_histograms(&j, r);
    put_examples(&j, r, st);
    leat__json_end(&j);
    leat__buf_putc(out, '\n');
}

void leat__filter_report_look(const leat__filter_report *r,
                              void (*seen)(void *cookie, const leat_filter_seen *doc), void *cookie)
{
    for (int kind = 0; kind < LEAT__LOOKS; kind++) {
        for (uint32_t i = 0; i < r->look[kind].count; i++) {
            const leat__example *e = &r->look[kind].at[i];
            leat_filter_seen doc = {.struct_size = sizeof doc,
                                    .kind = look_names[kind],
                                    .kept = e->kept,
                                    .id = e->id,
                                    .text = e->text,
                                    .lang = e->lang,
                                    .lang_score = (double)e->lang_score,
                                    .rule_count = e->rule_count};
            for (uint32_t k = 0; k < e->rule_count; k++) {
                const leat__rule *rule = &r->rules->rule[e->rule[k]];
                leat__rule_name(rule, doc.rules[k].name, sizeof doc.rules[k].name);
                doc.rules[k].score = e->rule_score[k];
                doc.rules[k].threshold = rule->threshold;
                doc.rules[k].keeps = leat__rule_keeps(rule, e->rule_score[k]);
            }
            seen(cookie, &doc);
        }
    }
}

void leat__filter_seen_json(const leat_filter_seen *d, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "kind", d->kind);
    leat__json_kstr(&j, "id", d->id);
    leat__json_kbool(&j, "kept", d->kept);
    if (d->lang[0]) leat__json_kstr(&j, "lang", d->lang);
    leat__json_key(&j, "rules");
    leat__json_array(&j);
    for (uint32_t i = 0; i < d->rule_count; i++) {
        leat__json_object(&j);
        leat__json_kstr(&j, "rule", d->rules[i].name);
        leat__json_kdouble(&j, "score", d->rules[i].score);
        leat__json_kdouble(&j, "threshold", d->rules[i].threshold);
        leat__json_kbool(&j, "keeps", d->rules[i].keeps);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_kstr(&j, "text", d->text);
    leat__json_end(&j);
    leat__buf_putc(out, '\n');
}
