/* SPDX-License-Identifier: Apache-2.0
 *
 * The first phase: digests of bands, sketches and ids of all documents.
 *
 * A worker writes for each line of its chunk: flag, keep value, bytes, digests of the bands of this
 * iteration, sketch, digests of all bands if an index is wanted, length of the id, id. The
 * caller's thread distributes them to the files.
 */
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup_index.h"
#include "curate/reasons.h"
#include "text/minhash.h"

#define LARGE LEAT__DEDUP_LARGE
#define ID_BYTES 64 /* for an id made from file and line; ids of the input count as text */

enum { N_DOCUMENTS, N_TEXT, N_LONE, N_EMPTY, N_BAD, N_FIRST_BAD, N_FIRST_OFFSET, N_DROPPED, N_UNSCORED };
enum { FLAG_NONE, FLAG_DOCUMENT, FLAG_EMPTY, FLAG_DROPPED };
enum { OUT_RECORDS, OUT_WHY, OUT_REASONS };

typedef struct worker {
    leat__sketcher sketcher;
    leat__minhasher *minhasher; /* used instead of the sketcher for signatures of other tools */
    uint32_t values[LEAT__SKETCH_MAX];
    uint64_t signature[LEAT__SKETCH_MAX];
    leat__scorer scorer; /* used with rules */
    uint8_t failed[LEAT__RULES_MAX];
} worker;

static uint32_t first_band(const leat__dedup *d)
{
    return d->st.iteration * d->st.bands_at_once;
}

static uint32_t bands_now(const leat__dedup *d)
{
    return LEAT_MIN(d->st.bands_at_once, d->bands - first_band(d));
}

static int open_shingles(const leat__dedup *d, worker *w, leat_error *err)
{
    const leat_dedup_opts *o = d->opts;
    if (d->rules.count > 0) LEAT_TRY(leat__scorer_init(&w->scorer, err));
    if (w->minhasher)
        return leat__minhasher_init(w->minhasher, o->compatible, o->shingle_words, o->shingle_chars,
                                    d->bands * d->rows, err);
    return leat__sketcher_init(&w->sketcher, d->fuzzy ? o->shingle_words : 1, d->fuzzy ? o->shingle_chars : 0,
                               err);
}

static void close_shingles(worker *w)
{
    leat__scorer_reset(&w->scorer);
    leat__sketcher_reset(&w->sketcher);
    if (w->minhasher) leat__minhasher_reset(w->minhasher);
}

static int setup(void *cookie, void **ctx, leat_error *err)
{
    leat__dedup *d = cookie;
    worker *w = LEAT_NEW(CURATE, worker);
    if (!w) return leat__fail_nomem(err, sizeof *w, "a worker");
    *ctx = w;
    if (d->opts->compatible) {
        w->minhasher = LEAT_NEW(CURATE, leat__minhasher);
        if (!w->minhasher) return leat__fail_nomem(err, sizeof *w->minhasher, "a worker");
    }
    return open_shingles(d, w, err);
}

static void teardown(void *cookie, void *ctx)
{
    worker *w = ctx;
    if (!w) return;
    close_shingles(w);
    leat__free(w->minhasher);
    leat__free(w);
}

static uint64_t need(void *cookie, uint64_t longest)
{
    const leat__dedup *d = cookie;
    leat__sketcher s = {.words = d->fuzzy ? d->opts->shingle_words : 1, .chars = d->opts->shingle_chars};
    if (longest <= LARGE) return 0;
    return (d->opts->compatible ? leat__minhasher_need(longest) : leat__sketcher_need(&s, longest)) +
           (d->rules.count > 0 ? leat__scorer_need(longest) : 0);
}

/* Computes the 16 bytes that equal texts share; `empty` when normalising leaves nothing. */
static int exact_sketch(leat__dedup *d, worker *w, size_t len, uint8_t *out, bool *empty, leat_error *err)
{
    leat__hash128 h;
    *empty = false;
    if (d->opts->normalize) {
        uint32_t n;
        LEAT_TRY(leat__sketcher_shingles(&w->sketcher, len, &n, err));
        *empty = n == 0;
        h = leat__hash128_of(w->sketcher.shingle, n * sizeof(uint64_t), 0);
    } else {
        h = leat__hash128_of(w->sketcher.text, len, 0);
    }
    leat__store_u64(out, h.low);
    leat__store_u64(out + 8, h.high);
    return 0;
}

/* True in the pass that writes all digests of a document for the index. */
static bool wants_digests(const leat__dedup *d)
{
    return d->opts->index && d->st.iteration == 0;
}

/* Computes the values of a text; `empty` when it has no shingles. */
static int make_values(const leat__dedup *d, worker *w, size_t len, bool *empty, leat_error *err)
{
    uint32_t n = 0;
    if (w->minhasher) n = leat__minhasher_sign(w->minhasher, len, w->signature);
    else LEAT_TRY(leat__sketcher_shingles(&w->sketcher, len, &n, err));
    *empty = n == 0;
    if (n > 0 && !w->minhasher) leat__sketch_fss(w->sketcher.shingle, n, d->bands * d->rows, w->values);
    return 0;
}

static void put_digests(const leat__dedup *d, const worker *w, uint32_t from, uint32_t bands, leat__buf *out)
{
    for (uint32_t b = from; b < from + bands; b++) {
        uint64_t digest = w->minhasher ? leat__minhash_band(w->signature + b * d->rows, d->rows)
                                       : leat__sketch_band(w->values + b * d->rows, d->rows);
        leat__buf_append(out, &digest, 8);
    }
}

/* Appends the digests and the sketch of the sketcher's text to `out`. */
static int put_sketch(leat__dedup *d, worker *w, size_t len, leat__buf *out, bool *empty, leat_error *err)
{
    uint8_t bytes[LEAT__SKETCH_MAX];
    uint32_t bands = bands_now(d);
    if (!d->fuzzy) {
        LEAT_TRY(exact_sketch(d, w, len, bytes, empty, err));
        leat__buf_append(out, bytes, 8);
        leat__buf_append(out, bytes, 16);
        if (wants_digests(d)) leat__buf_append(out, bytes, 8);
        return 0;
    }
    LEAT_TRY(make_values(d, w, len, empty, err));
    if (*empty) {
        leat__buf_zeros(out, 8 * bands + d->sketch_bytes + (wants_digests(d) ? 8 * d->bands : 0));
        return 0;
    }
    put_digests(d, w, first_band(d), bands, out);
    if (w->minhasher) leat__minhash_bytes(w->signature, d->sketch_bytes, bytes);
    else leat__sketch_bytes(w->values, d->sketch_bytes, bytes);
    leat__buf_append(out, bytes, d->sketch_bytes);
    if (wants_digests(d)) put_digests(d, w, 0, d->bands, out);
    return 0;
}

static uint8_t *text_of(const worker *w)
{
    return w->minhasher ? w->minhasher->text : w->sketcher.text;
}

static int reserve(worker *w, size_t bytes, leat_error *err)
{
    return w->minhasher ? leat__minhasher_reserve(w->minhasher, bytes, err)
                        : leat__sketcher_reserve(&w->sketcher, bytes, err);
}

/* Drops a document that violates a rule. Of several passes, only the first writes the reason. */
static int judge(const leat__dedup *d, worker *w, leat__text_chunk *c, const leat__line *line,
                 const leat__record_fields *r, size_t len, bool *dropped, leat_error *err)
{
    *dropped = false;
    if (d->rules.count == 0) return 0;
    LEAT_TRY(leat__scorer_reserve(&w->scorer, len, err));
    memcpy(w->scorer.text, text_of(w), len);
    LEAT_TRY(leat__scorer_run(&w->scorer, len, err));
    const leat__counts *counts = &w->scorer.counts;
    const leat__rule_verdict v = {&d->rules, w->failed, leat__rule_set_judge(&d->rules, counts, w->failed),
                                  counts};
    if (v.first < 0) return 0;
    *dropped = true;
    leat__buf_putc(&c->out[OUT_RECORDS], FLAG_DROPPED);
    if (d->st.iteration > 0) return 0;
    c->count[N_DROPPED]++;
    leat__reason_count(&v, c->extra);
    leat__reason_put(&v, &d->names, c, line, r, &c->out[OUT_REASONS]);
    return 0;
}

static leat__dedup_keep keep_of(const leat__dedup *d, const leat__record_fields *r, size_t len)
{
    int32_t rest;
    if (d->opts->keep != LEAT_KEEP_FIELD) return (leat__dedup_keep){.value = (double)len};
    if (!leat__jsonl_ordered(&r->keep)) return (leat__dedup_keep){-INFINITY, LEAT__KEEP_NONE};
    const double value = leat__jsonl_number(&r->keep, &rest);
    return (leat__dedup_keep){value, rest};
}

static int put_document(leat__dedup *d, worker *w, leat__text_chunk *c, const leat__line *line,
                        const leat__record_fields *r, leat_error *err)
{
    leat__buf *out = &c->out[OUT_RECORDS];
    size_t flag_at = out->len;
    bool empty = false, dropped;
    if (!r->text.into) LEAT_TRY(reserve(w, r->text.raw_len, err));
    size_t len = leat__jsonl_take(&r->text, text_of(w), &c->count[N_LONE]);
    c->count[N_DOCUMENTS]++;
    c->count[N_TEXT] += len;
    LEAT_TRY(judge(d, w, c, line, r, len, &dropped, err));
    if (dropped) return 0;
    leat__dedup_keep keep = keep_of(d, r, len);
    c->count[N_UNSCORED] += keep.rest == LEAT__KEEP_NONE;
    leat__buf_putc(out, FLAG_DOCUMENT);
    leat__buf_append(out, &keep, sizeof keep);
    uint64_t bytes = line->len + 1; /* including the newline */
    leat__buf_append(out, &bytes, 8);
    LEAT_TRY(put_sketch(d, w, len, out, &empty, err));
    if (out->status == 0 && empty) out->data[flag_at] = FLAG_EMPTY;
    size_t id_at = out->len;
    uint32_t id_len = 0;
    leat__buf_append(out, &id_len, 4);
    leat__line_id_json(&d->names, c, line, r, out);
    if (out->status == 0) {
        id_len = (uint32_t)(out->len - id_at - 4);
        memcpy(out->data + id_at, &id_len, 4);
    }
    c->count[N_EMPTY] += empty;
    return 0;
}

static void note_bad(leat__dedup *d, leat__text_chunk *c, uint64_t number, uint64_t offset, const char *why)
{
    if (d->opts->fail_on_bad) leat__line_numbers_want(&d->files.numbers, c->file);
    if (c->count[N_BAD]++ > 0) return;
    c->count[N_FIRST_BAD] = number;
    c->count[N_FIRST_OFFSET] = offset;
    leat__buf_puts(&c->out[OUT_WHY], why);
}

/* Writes a record for each line without a document before line `upto`. */
static void put_gaps(leat__text_chunk *c, uint64_t *next, uint64_t upto)
{
    for (; *next < upto; (*next)++) leat__buf_putc(&c->out[OUT_RECORDS], FLAG_NONE);
}

/* Returns the bytes of a document in the results. */
static uint64_t record_bytes(const leat__dedup *d)
{
    uint64_t digests = bands_now(d) + (wants_digests(d) ? d->bands : 0);
    uint64_t reason = d->rules.count > 0 ? LEAT__REASON_BYTES : 0;
    return 1 + sizeof(leat__dedup_keep) + 8 + 8 * digests + d->sketch_bytes + 4 + ID_BYTES + reason;
}

static int work(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    leat__dedup *d = cookie;
    worker *w = ctx;
    leat__line line;
    size_t at = 0, where;
    uint64_t next = c->document;
    if (d->rules.count > 0) {
        c->extra = leat__zalloc_array(LEAT__MEM_CURATE, 2 * d->rules.count, sizeof(uint64_t));
        if (!c->extra) return leat__fail_nomem(err, d->rules.count, "counts");
    }
    if (c->too_long) note_bad(d, c, c->line, c->offset, LEAT__LINE_TOO_LONG);
    while (leat__text_chunk_next(c, &at, &line)) {
        leat__record_fields r;
        put_gaps(c, &next, line.document);
        bool small = line.len <= LARGE; /* its text is unescaped while the line is parsed */
        if (small) LEAT_TRY(reserve(w, line.len, err));
        const char *wrong = leat__line_read_into(&d->names, &line, small ? text_of(w) : NULL, &r, &where);
        if (wrong) {
            note_bad(d, c, line.number, line.offset + where, wrong);
            continue;
        }
        LEAT_TRY(put_document(d, w, c, &line, &r, err));
        next++;
    }
    put_gaps(c, &next, c->document + c->lines);
    if (c->longest > LARGE) {
        close_shingles(w);
        LEAT_TRY(open_shingles(d, w, err));
    }
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++)
        if (c->out[i].status != 0) return leat__fail_nomem(err, c->out[i].len, "results");
    return 0;
}

/* Writes the results of one line of a chunk to the files; advances *p. */
static int deal_line(leat__dedup *d, uint64_t number, const uint8_t **p, leat_error *err)
{
    static const uint8_t
        zeros[LEAT__SKETCH_MAX > 8 * LEAT__BANDS_MAX ? LEAT__SKETCH_MAX : 8 * LEAT__BANDS_MAX];
    uint8_t flag = *(*p)++;
    uint32_t bands = bands_now(d);
    bool first = d->st.iteration == 0;
    leat__dedup_keep keep = {-INFINITY, LEAT__KEEP_NONE};
    uint64_t bytes = 0;
    const uint8_t *digests = NULL, *sketch = zeros, *all = zeros, *id = NULL;
    uint32_t id_len = 0;
    if (flag == FLAG_DOCUMENT || flag == FLAG_EMPTY) {
        memcpy(&keep, *p, sizeof keep);
        bytes = leat__load_u64(*p + sizeof keep);
        digests = *p + sizeof keep + 8;
        sketch = digests + 8 * bands;
        id = sketch + d->sketch_bytes;
        if (wants_digests(d)) {
            if (flag == FLAG_DOCUMENT) all = id;
            id += 8 * d->bands;
        }
        id_len = leat__load_u32(id);
        id += 4;
        *p = id + id_len;
    }
    for (uint32_t b = 0; b < bands && flag == FLAG_DOCUMENT; b++) {
        leat__band_record r = {leat__load_u64(digests + 8 * b), (uint32_t)number};
        uint32_t part = (uint32_t)((r.digest >> 32) * d->st.parts >> 32);
        LEAT_TRY(leat__spill_put(&d->band, b * d->st.parts + part, &r, sizeof r, err));
    }
    if (!first) return 0;
    const uint8_t dropped = flag == FLAG_DROPPED;
    if (d->rules.count > 0) LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_DROPPED, &dropped, 1, err));
    LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_SKETCH, sketch, d->sketch_bytes, err));
    if (id_len > 0) LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_IDS, id, id_len, err));
    d->st.ids_bytes += id_len;
    LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_ENDS, &d->st.ids_bytes, 8, err));
    if (d->opts->keep != LEAT_KEEP_FIRST)
        LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_KEEP, &keep, sizeof keep, err));
    if (d->part && !d->opts->compress) LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_BYTES, &bytes, 8, err));
    if (d->opts->index)
        LEAT_TRY(leat__spill_put(&d->side, LEAT__SIDE_DIGESTS, all, 8 * (size_t)d->bands, err));
    return 0;
}

static int save_state(leat__dedup *d, leat_error *err)
{
    LEAT_TRY(leat__spill_flush(&d->band, !d->part, err)); /* files of a part are joined, then synced */
    LEAT_TRY(leat__spill_flush(&d->side, true, err));
    leat__dedup_state_mark(&d->band, d->st.band_length, d->st.band_sum);
    leat__dedup_state_mark(&d->side, d->st.side_length, d->st.side_sum);
    d->since_save = 0;
    return leat__dedup_save(d, err);
}

static int refuse_bad(leat__dedup *d, const leat__text_chunk *c, leat_error *err)
{
    leat__fail(err, LEAT_EDATA, "%s: line %llu, offset %llu: %s", d->files.path[c->file],
               (unsigned long long)c->count[N_FIRST_BAD], (unsigned long long)c->count[N_FIRST_OFFSET],
               leat__buf_str(&c->out[OUT_WHY]));
    leat__error_at(err, NULL, -1, (int64_t)c->count[N_FIRST_OFFSET]);
    return LEAT_EDATA;
}

static int take_reasons(leat__dedup *d, const leat__text_chunk *c, leat_error *err)
{
    const uint64_t *counts = c->extra;
    const leat__buf *reasons = &c->out[OUT_REASONS];
    d->st.dropped += c->count[N_DROPPED];
    for (uint32_t i = 0; i < 2 * d->rules.count; i++) d->st.rule_counts[i] += counts[i];
    return reasons->len ? leat__spill_put(&d->side, LEAT__SIDE_REASONS, reasons->data, reasons->len, err) : 0;
}

static int take(void *cookie, leat__text_chunk *c, leat_error *err)
{
    leat__dedup *d = cookie;
    leat__dedup_state *st = &d->st;
    if (c->count[N_BAD] > 0 && d->opts->fail_on_bad) return refuse_bad(d, c, err);
    if (c->document + c->lines >= UINT32_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %u lines: deduplicate in several runs", UINT32_MAX);
    const uint8_t *p = (const uint8_t *)c->out[OUT_RECORDS].data;
    for (uint64_t i = 0; i < c->lines; i++) LEAT_TRY(deal_line(d, c->document + i, &p, err));
    if (st->iteration == 0) {
        st->documents += c->count[N_DOCUMENTS];
        st->text_bytes += c->count[N_TEXT];
        st->lone_surrogates += c->count[N_LONE];
        st->empty += c->count[N_EMPTY];
        st->unscored += c->count[N_UNSCORED];
        LEAT_TRY(take_reasons(d, c, err));
    }
    uint64_t bytes = c->len + c->too_long;
    st->file = c->file;
    st->offset = c->offset + bytes;
    st->line = c->line + c->lines;
    st->document = c->document + c->lines;
    d->since_save += bytes;
    return c->may_stop && d->since_save >= d->opts->checkpoint_bytes ? save_state(d, err) : 0;
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    leat__dedup *d = cookie;
    const leat_dedup_opts *o = d->opts;
    if (!o->progress) return 0;
    return o->progress(o->cookie, LEAT_MIN(d->bytes_done + bytes, d->bytes_total), d->bytes_total,
                       d->st.documents, 0);
}

static int open_spills(leat__dedup *d, bool resumed, leat_error *err)
{
    leat__dedup_state *st = &d->st;
    uint32_t n = bands_now(d) * st->parts;
    size_t buffer = (size_t)(d->memory / 16 / (n + LEAT__SIDES));
    buffer = LEAT_MIN(LEAT_MAX(buffer, 4096), 256u << 10);
    bool again = resumed && st->band_files == n;
    bool kept = again || st->iteration > 0;
    if (st->band_files != n) LEAT_TRY(leat__dedup_state_bands(st, n, err));
    LEAT_TRY(leat__spill_open(&d->band, d->work, "band", n, buffer, again ? st->band_length : NULL,
                              again ? st->band_sum : NULL, err));
    return leat__spill_open(&d->side, d->work, "side", LEAT__SIDES, buffer, kept ? st->side_length : NULL,
                            kept ? st->side_sum : NULL, err);
}

/* True for the first part of a run in parts: it has only the documents of the index. */
static bool takes_index(const leat__dedup *d)
{
    return d->against > 0 && (!d->part || d->part->number == 0);
}

static bool takes_text(const leat__dedup *d)
{
    return !d->part || !takes_index(d);
}

static int seek(leat__dedup *d, leat_error *err)
{
    const leat__dedup_state *st = &d->st;
    if (!takes_text(d)) return 0;
    if (d->part) return leat__part_seek(&d->part->range, &d->files, 0, err);
    return leat__text_files_seek(&d->files, st->file, st->offset, st->line, st->document, err);
}

int leat__dedup_sketch(leat__dedup *d, leat_error *err)
{
    leat_budget *budget = NULL;
    int rc;
    bool resumed = d->st.document > 0;
    uint64_t buffers = 0;
    d->pass = (leat__text_pass){.name = "sketch",
                                .cookie = d,
                                .setup = setup,
                                .teardown = teardown,
                                .ram = (4u << 20) + (d->rules.count > 0 ? LEAT__DEDUP_SCORER : 0),
                                .need = need,
                                .per_line = record_bytes(d),
                                .memory = d->memory,
                                .work = work,
                                .take = take,
                                .tell = tell,
                                .meter = &d->meter};
    LEAT_GO(rc, out, open_spills(d, resumed, err));
    buffers = (uint64_t)d->band.count * d->band.buffer_bytes + LEAT__SIDES * d->side.buffer_bytes;
    if (!resumed) LEAT_GO(rc, out, leat__text_files_begin(&d->files, d->st.iteration > 0, err));
    d->files.again = d->st.iteration > 0;
    if (takes_index(d) && !resumed) LEAT_GO(rc, out, leat__dedup_index_add(d, err));
    LEAT_GO(rc, out, leat_budget_open(&budget, d->memory - LEAT_MIN(buffers, d->memory / 2), err));
    LEAT_GO(rc, out, seek(d, err));
    if (takes_text(d))
        LEAT_GO(rc, out,
                leat__text_flow_run(&d->files, &d->pass, budget, d->opts->threads, &d->opts->log, err));
    LEAT_GO(rc, out, leat__text_files_end(&d->files, err));
    d->st.disk_peak = LEAT_MAX(d->st.disk_peak, leat__spill_bytes(&d->band) + leat__spill_bytes(&d->side) +
                                                    leat__spill_bytes(&d->edge));
    d->st.phase = LEAT__PHASE_GROUP;
    d->st.band = d->st.part = 0;
    LEAT_GO(rc, out, save_state(d, err));
out:
    if (budget) {
        leat_budget_stats bs;
        leat_budget_read(budget, &bs);
        d->stats->budget_peak_bytes = LEAT_MAX(d->stats->budget_peak_bytes, bs.peak + buffers);
    }
    leat_budget_close(&budget);
    leat__spill_reset(&d->band);
    leat__spill_reset(&d->side);
    return rc;
}
