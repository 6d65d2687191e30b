/* SPDX-License-Identifier: Apache-2.0
 *
 * The last phase: reads the text again and writes the kept documents, a line of clusters.jsonl
 * for each removed one, and the bad lines.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup_index.h"

#define REASONS_BLOCK (256u << 10)
#define CLUSTER_BYTES 192 /* upper bound for a line of clusters.jsonl without its ids */

enum { OUT_KEPT, OUT_CLUSTERS, OUT_BAD };
enum { N_KEPT, N_REMOVED, N_BELOW, N_BAD };

typedef struct writing {
    leat__dedup *d;
    leat__file *decisions;
    leat__dedup_ids ids;
    leat__file *dropped;          /* with rules: a byte per line */
    leat__shards out[LEAT__OUTS]; /* out[1]: clusters */
    uint8_t *has_duplicates;      /* one bit per kept line that counts as a cluster; NULL in a run in parts */
} writing;

static int setup(void *cookie, void **ctx, leat_error *err)
{
    leat__buf *b = LEAT_NEW(CURATE, leat__buf);
    if (!b) return leat__fail_nomem(err, sizeof *b, "a worker");
    leat__buf_init(b, LEAT__MEM_CURATE, (size_t)1 << 33);
    *ctx = b;
    return 0;
}

static void teardown(void *cookie, void *ctx)
{
    if (!ctx) return;
    leat__buf_reset(ctx);
    leat__free(ctx);
}

static uint64_t need(void *cookie, uint64_t longest)
{
    return 0;
}

int leat__dedup_put_id(const leat__dedup_ids *f, uint32_t line, leat__buf *out, leat_error *err)
{
    uint8_t ends[16] = {0};
    if (line > 0) LEAT_TRY(leat__file_pread(f->ends, ends, 16, ((uint64_t)line - 1) * 8, err));
    else LEAT_TRY(leat__file_pread(f->ends, ends + 8, 8, 0, err));
    uint64_t from = leat__load_u64(ends), to = leat__load_u64(ends + 8);
    if (to < from || to - from > 64u << 20) return leat__fail(err, LEAT_EDATA, "the list of ids is damaged");
    if (leat__buf_reserve(out, to - from) != 0) return leat__fail_nomem(err, to - from, "an id");
    LEAT_TRY(leat__file_pread(f->ids, out->data + out->len, to - from, from, err));
    out->len += to - from;
    out->data[out->len] = 0;
    return 0;
}

static int put_removed(const writing *w, leat__text_chunk *c, const leat__line *line,
                       const leat__record_fields *r, const leat__dedup_decision *d, leat_error *err)
{
    leat__buf *out = &c->out[OUT_CLUSTERS];
    double similarity = w->d->fuzzy ? leat__sketch_similarity(d->equal, w->d->sketch_bytes) : 1;
    leat__buf_puts(out, "{\"id\":");
    leat__line_id_json(&w->d->names, c, line, r, out);
    leat__buf_puts(out, ",\"kept\":");
    LEAT_TRY(leat__dedup_put_id(&w->ids, d->kept_for, out, err));
    leat__buf_printf(out, ",\"similarity\":%.4f}\n", similarity);
    c->count[N_REMOVED]++;
    c->count[N_BELOW] += d->equal < w->d->need_equal;
    return 0;
}

/* Decisions about the lines of a chunk, and the end offsets of their ids. The first offset is that of
 * the line before the chunk. */
typedef struct chunk_table {
    const leat__dedup_decision *decision;
    const uint64_t *end;
    const uint8_t *dropped; /* NULL = none */
} chunk_table;

static int load_table(const writing *w, const leat__text_chunk *c, leat__buf *memory, chunk_table *t,
                      leat_error *err)
{
    size_t bytes = c->lines * sizeof(leat__dedup_decision), ends = (c->lines + 1) * 8;
    uint64_t before = c->document > 0; /* the first line has no id end before it */
    leat__buf_clear(memory);
    if (leat__buf_reserve(memory, bytes + ends + c->lines) != 0)
        return leat__fail_nomem(err, bytes + ends, "decisions");
    uint64_t *end = (uint64_t *)memory->data;
    t->end = end;
    t->decision = (const leat__dedup_decision *)(memory->data + ends);
    end[0] = 0;
    LEAT_TRY(leat__file_pread(w->ids.ends, end + 1 - before, ends - 8 + 8 * before,
                              (c->document - before) * 8, err));
    LEAT_TRY(leat__file_pread(w->decisions, memory->data + ends, bytes,
                              c->document * sizeof(leat__dedup_decision), err));
    if (!w->dropped) return 0;
    t->dropped = (const uint8_t *)memory->data + ends + bytes;
    return leat__file_pread(w->dropped, memory->data + ends + bytes, c->lines, c->document, err);
}

/* Reports a line that is not kept: a bad line, or a removed document. */
static int put_other(const writing *w, leat__text_chunk *c, const leat__line *line,
                     const leat__dedup_decision *d, leat_error *err)
{
    leat__record_fields r;
    size_t where;
    const char *wrong = leat__line_read(&w->d->names, line, &r, &where);
    if (wrong) {
        c->count[N_BAD]++;
        leat__line_bad_json(&w->d->names, c->file, line->number, line->offset + where, wrong,
                            &c->out[OUT_BAD]);
        return 0;
    }
    c->changed |= d->kept_for == line->document; /* the line had no document in the first pass */
    if (c->changed) return 0;
    if (d->kept_for >= w->d->st.document) return leat__fail(err, LEAT_EDATA, "the decisions are damaged");
    ((uint32_t *)c->extra)[c->count[N_REMOVED]] = d->kept_for;
    return put_removed(w, c, line, &r, d, err);
}

/* Copies kept lines without parsing: the first pass has read them. */
static int work(void *cookie, void *ctx, leat__text_chunk *c, leat_error *err)
{
    writing *w = cookie;
    leat__line line;
    chunk_table t = {0};
    size_t at = 0;
    c->changed = c->document + c->lines > w->d->end;
    if (c->changed) return 0;
    LEAT_TRY(load_table(w, c, ctx, &t, err));
    c->extra = leat__alloc_array(LEAT__MEM_CURATE, c->lines + 1, 4); /* per line: the kept document */
    if (!c->extra) return leat__fail_nomem(err, c->lines * 4, "decisions");
    if (c->too_long) {
        c->count[N_BAD]++;
        leat__line_bad_json(&w->d->names, c->file, c->line, c->offset, LEAT__LINE_TOO_LONG, &c->out[OUT_BAD]);
    }
    while (leat__text_chunk_next(c, &at, &line)) {
        uint64_t i = line.document - c->document;
        if (t.dropped && t.dropped[i]) continue;
        if (t.decision[i].kept_for != line.document || t.end[i + 1] == t.end[i]) {
            LEAT_TRY(put_other(w, c, &line, &t.decision[i], err));
            continue;
        }
        leat__buf_append(&c->out[OUT_KEPT], line.text, line.len);
        leat__buf_putc(&c->out[OUT_KEPT], '\n');
        c->count[N_KEPT]++;
    }
    for (int i = 0; i < LEAT__CHUNK_OUTS; i++)
        if (c->out[i].status != 0) return leat__fail_nomem(err, c->out[i].len, "results");
    return leat__compress_buf(&c->out[OUT_KEPT], (leat__compress)w->d->opts->compress, err);
}

static int take(void *cookie, leat__text_chunk *c, leat_error *err)
{
    writing *w = cookie;
    leat_dedup_stats *st = w->d->stats;
    const uint32_t *removed_for = c->extra;
    st->kept += c->count[N_KEPT];
    st->removed += c->count[N_REMOVED];
    st->below_threshold += c->count[N_BELOW];
    st->bad += c->count[N_BAD];
    for (uint64_t i = 0; i < c->count[N_REMOVED]; i++) {
        uint32_t k = removed_for[i];
        st->removed_against += k < w->d->against;
        if (!w->has_duplicates) continue;
        st->clusters += !(w->has_duplicates[k / 8] >> k % 8 & 1);
        w->has_duplicates[k / 8] |= (uint8_t)(1u << k % 8);
    }
    const leat__buf *out = c->out;
    int rc = leat__shards_put(&w->out[LEAT__OUT_KEPT], out[OUT_KEPT].data, out[OUT_KEPT].len, err);
    /* the output has more bytes than RESOLVE counted, so this file has changed: the files before it were
     * compared at their ends */
    if (rc == LEAT_EDATA) return leat__text_files_changed(&w->d->files, c->file, err);
    if (rc != 0) return rc;
    LEAT_TRY(leat__shards_put(&w->out[LEAT__OUT_SECOND], out[OUT_CLUSTERS].data, out[OUT_CLUSTERS].len, err));
    return leat__shards_put(&w->out[LEAT__OUT_BAD], out[OUT_BAD].data, out[OUT_BAD].len, err);
}

static int tell(void *cookie, uint64_t bytes, uint64_t total)
{
    const writing *w = cookie;
    const leat__dedup *d = w->d;
    if (!d->opts->progress) return 0;
    return d->opts->progress(d->opts->cookie, LEAT_MIN(d->bytes_done + bytes, d->bytes_total), d->bytes_total,
                             d->st.documents, d->stats->removed);
}

static int open_all(writing *w, leat_error *err)
{
    leat__dedup *d = w->d;
    const leat_dedup_opts *o = d->opts;
    char path[4096];
    leat__compress how = (leat__compress)o->compress;
    uint64_t shard = o->shard_bytes ? o->shard_bytes : UINT64_C(1) << 30;
    LEAT_TRY(leat__file_open(&w->decisions, leat__dedup_path(d, "decisions", path), LEAT__FILE_READ, err));
    LEAT_TRY(leat__file_open(&w->ids.ids, leat__dedup_path(d, "side-1", path), LEAT__FILE_READ, err));
    LEAT_TRY(leat__file_open(&w->ids.ends, leat__dedup_path(d, "side-2", path), LEAT__FILE_READ, err));
    if (d->rules.count > 0)
        LEAT_TRY(leat__file_open(&w->dropped, leat__dedup_path(d, "side-5", path), LEAT__FILE_READ, err));
    if (d->part) return leat__part_open(d->part, w->out, how, d->place, err);
    w->has_duplicates = leat__zalloc(LEAT__MEM_CURATE, d->st.document / 8 + 1);
    if (!w->has_duplicates) return leat__fail_nomem(err, d->st.document / 8, "clusters");
    LEAT_TRY(leat__shards_open(&w->out[LEAT__OUT_KEPT], o->output, "kept", shard, how, err));
    LEAT_TRY(
        leat__shards_open(&w->out[LEAT__OUT_SECOND], o->output, "clusters", 0, LEAT__COMPRESS_NONE, err));
    return leat__shards_open(&w->out[LEAT__OUT_BAD], o->output, "bad", 0, LEAT__COMPRESS_NONE, err);
}

static int finish_part(writing *w, leat_error *err)
{
    leat__buf json;
    leat__buf_init(&json, LEAT__MEM_CURATE, 1u << 20);
    leat__text_meter_load(&w->d->meter, &w->d->stats->load);
    w->d->stats->seconds = (double)w->d->meter.elapsed_ns / (double)LEAT_NS_PER_S;
    leat__dedup_json(w->d->stats, &json);
    int rc = leat__part_finish(w->d->part, w->out, leat__buf_str(&json), err);
    leat__buf_reset(&json);
    return rc;
}

/* Writes reasons.jsonl. */
static int write_reasons(leat__dedup *d, leat_error *err)
{
    char path[4200];
    leat__file *in = NULL;
    leat__shards out = {0};
    uint64_t bytes = d->st.side_length[LEAT__SIDE_REASONS];
    uint8_t *block = NULL;
    int rc;
    if (d->rules.count == 0) return 0;
    LEAT_GO(rc, out, leat__file_open(&in, leat__dedup_path(d, "side-6", path), LEAT__FILE_READ, err));
    LEAT_GO(rc, out, leat__shards_open(&out, d->opts->output, "reasons", 0, LEAT__COMPRESS_NONE, err));
    block = leat__alloc(LEAT__MEM_CURATE, REASONS_BLOCK);
    if (!block) LEAT_GO(rc, out, leat__fail_nomem(err, REASONS_BLOCK, "reasons"));
    for (uint64_t at = 0; at < bytes; at += REASONS_BLOCK) {
        size_t n = (size_t)LEAT_MIN(REASONS_BLOCK, bytes - at);
        LEAT_GO(rc, out, leat__file_pread(in, block, n, at, err));
        LEAT_GO(rc, out, leat__shards_put(&out, block, n, err));
    }
    rc = leat__shards_commit(&out, err);
out:
    leat__file_close(&in);
    leat__shards_reset(&out);
    leat__free(block);
    return rc;
}

static int commit(writing *w, leat_error *err)
{
    leat_dedup_stats *st = w->d->stats;
    if (w->d->part) return finish_part(w, err);
    LEAT_TRY(leat__output_clear(w->d->opts->output, err));
    for (int i = 0; i < LEAT__OUTS; i++) LEAT_TRY(leat__shards_commit(&w->out[i], err));
    LEAT_TRY(write_reasons(w->d, err));
    if (w->d->opts->index) LEAT_TRY(leat__dedup_index_write(w->d, err));
    st->shards = leat__shards_filled(&w->out[LEAT__OUT_KEPT]);
    st->bytes_out = w->out[LEAT__OUT_KEPT].bytes;
    return 0;
}

static int seek(leat__dedup *d, leat_error *err)
{
    if (d->part) return leat__part_seek(&d->part->range, &d->files, d->base, err);
    d->base = d->against;
    d->end = d->st.document;
    return leat__text_files_seek(&d->files, 0, 0, 1, d->base, err);
}

int leat__dedup_write(leat__dedup *d, leat_error *err)
{
    writing w = {.d = d};
    leat_budget *budget = NULL;
    leat__text_pass pass = {.name = "write",
                            .cookie = &w,
                            .setup = setup,
                            .teardown = teardown,
                            .ram = 1u << 20,
                            .need = need,
                            .per_line = CLUSTER_BYTES,
                            .memory = d->memory,
                            .work = work,
                            .take = take,
                            .tell = tell,
                            .meter = &d->meter};
    int rc;
    LEAT_GO(rc, out, open_all(&w, err));
    LEAT_GO(rc, out, leat_budget_open(&budget, d->memory - d->memory / 8, err));
    LEAT_GO(rc, out, seek(d, err));
    LEAT_GO(rc, out, leat__text_files_begin(&d->files, true, err));
    LEAT_GO(rc, out, leat__text_flow_run(&d->files, &pass, budget, d->opts->threads, &d->opts->log, err));
    LEAT_GO(rc, out, leat__text_files_end(&d->files, err));
    if (!d->part) LEAT_GO(rc, out, leat__dedup_refuse_empty(d, err));
    /* the report comes first: when the disk is full, the earlier output is kept */
    if (d->opts->report && !d->part) LEAT_GO(rc, out, leat__dedup_report(d, w.decisions, &w.ids, err));
    rc = commit(&w, err);
out:
    leat_budget_close(&budget);
    leat__file_close(&w.decisions);
    leat__file_close(&w.dropped);
    leat__file_close(&w.ids.ids);
    leat__file_close(&w.ids.ends);
    for (int i = 0; i < LEAT__OUTS; i++) leat__shards_reset(&w.out[i]);
    leat__free(w.has_duplicates);
    return rc;
}
