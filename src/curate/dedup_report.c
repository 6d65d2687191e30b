/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a deduplication: sizes of clusters, similarities, the largest clusters; as a page
 * and as JSON. Cluster sizes are counted for a range of documents at a time, so that the counters
 * fit a sixteenth of the memory; the list of decisions is read once per range.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/dedup.h"
#include "curate/report_page.h"

#define BLOCK 4096u
#define LARGEST 20
#define SIZES 34        /* bins: sizes 2, 3, 4, then doubling ranges */
#define SIMILARITIES 50 /* bins from 0 to 1 */

typedef struct cluster {
    uint64_t size;
    uint32_t line;
} cluster;

typedef struct summary {
    uint64_t clusters[SIZES], documents[SIZES];
    uint64_t similarity[SIMILARITIES + 1];
    cluster largest[LARGEST];
    unsigned count;
} summary;

/* Returns the bin of a size of at least 2: 2, 3, 4, 5 to 8, 9 to 16, ... */
static unsigned bin_of(uint64_t size)
{
    unsigned bin = 3;
    if (size <= 4) return (unsigned)size - 2;
    while (bin + 1 < SIZES && size > UINT64_C(1) << bin) bin++;
    return bin;
}

static void bin_name(unsigned bin, char *out, size_t size)
{
    if (bin < 3) snprintf(out, size, "%u", bin + 2);
    else
        snprintf(out, size, "%llu to %llu", (unsigned long long)((UINT64_C(1) << (bin - 1)) + 1),
                 (unsigned long long)(UINT64_C(1) << bin));
}

static void add_cluster(summary *s, uint32_t line, uint64_t size)
{
    unsigned bin = bin_of(size), i = s->count;
    s->clusters[bin]++;
    s->documents[bin] += size;
    if (i == LARGEST && size <= s->largest[i - 1].size) return;
    if (i < LARGEST) s->count++;
    else i--;
    for (; i > 0 && s->largest[i - 1].size < size; i--) s->largest[i] = s->largest[i - 1];
    s->largest[i] = (cluster){size, line};
}

/* Counts the clusters whose kept document is in [from, from + span). */
static int count_range(leat__dedup *d, leat__file *decisions, uint64_t from, uint64_t span, uint32_t *removed,
                       leat__dedup_decision *block, summary *s, leat_error *err)
{
    uint64_t lines = d->st.document;
    memset(removed, 0, span * sizeof *removed);
    for (uint64_t at = 0; at < lines; at += BLOCK) {
        uint64_t n = LEAT_MIN(BLOCK, lines - at);
        LEAT_TRY(leat__file_pread(decisions, block, n * sizeof *block, at * sizeof *block, err));
        for (uint64_t i = 0; i < n; i++) {
            uint64_t kept = block[i].kept_for;
            if (kept == at + i) continue;
            if (kept >= from && kept - from < span) removed[kept - from]++;
            if (from > 0) continue;
            double x = d->fuzzy ? leat__sketch_similarity(block[i].equal, d->sketch_bytes) : 1;
            s->similarity[(unsigned)(LEAT_MIN(LEAT_MAX(x, 0), 1) * SIMILARITIES)]++;
        }
    }
    for (uint64_t i = 0; i < span; i++)
        if (removed[i] > 0) add_cluster(s, (uint32_t)(from + i), (uint64_t)removed[i] + 1);
    return 0;
}

static int count_clusters(leat__dedup *d, leat__file *decisions, summary *s, leat_error *err)
{
    uint64_t lines = d->st.document;
    uint64_t span = LEAT_MIN(LEAT_MAX(d->memory / 16 / sizeof(uint32_t), BLOCK), lines + 1);
    uint32_t *removed = leat__alloc_array(LEAT__MEM_CURATE, span, sizeof *removed);
    leat__dedup_decision *block = leat__alloc_array(LEAT__MEM_CURATE, BLOCK, sizeof *block);
    int rc = removed && block ? 0 : leat__fail_nomem(err, span * sizeof *removed, "cluster sizes");
    for (uint64_t from = 0; from < lines && rc == 0; from += span)
        rc = count_range(d, decisions, from, LEAT_MIN(span, lines - from), removed, block, s, err);
    leat__free(removed);
    leat__free(block);
    return rc;
}

/* Reads the id of a document, as JSON. */
static int id_of(const leat__dedup_ids *ids, uint32_t line, leat__buf *id, leat_error *err)
{
    leat__buf_clear(id);
    return leat__dedup_put_id(ids, line, id, err);
}

static int put_json(const leat__dedup *d, const summary *s, const leat__dedup_ids *ids, leat__buf *id,
                    leat__buf *out, leat_error *err)
{
    const leat_dedup_stats *st = d->stats;
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "report", "leat"); /* report_page.c recognises its files by this */
    leat__json_ku64(&j, "documents", d->st.documents);
    leat__json_ku64(&j, "kept", st->kept);
    leat__json_ku64(&j, "removed", st->removed);
    leat__json_ku64(&j, "dropped", d->st.dropped);
    leat__json_ku64(&j, "bad", st->bad);
    leat__json_ku64(&j, "clusters", st->clusters);
    leat__json_ku64(&j, "below_threshold", st->below_threshold);
    leat__json_key(&j, "sizes");
    leat__json_array(&j);
    for (unsigned b = 0; b < SIZES; b++) {
        if (s->clusters[b] == 0) continue;
        leat__json_object(&j);
        leat__json_ku64(&j, "from", b < 3 ? b + 2 : (UINT64_C(1) << (b - 1)) + 1);
        leat__json_ku64(&j, "to", b < 3 ? b + 2 : UINT64_C(1) << b);
        leat__json_ku64(&j, "clusters", s->clusters[b]);
        leat__json_ku64(&j, "documents", s->documents[b]);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_key(&j, "similarity");
    leat__json_array(&j);
    for (unsigned b = 0; b <= SIMILARITIES; b++) leat__json_u64(&j, s->similarity[b]);
    leat__json_end(&j);
    leat__json_key(&j, "largest");
    leat__json_array(&j);
    for (unsigned i = 0; i < s->count; i++) {
        LEAT_TRY(id_of(ids, s->largest[i].line, id, err));
        leat__json_object(&j);
        leat__json_key(&j, "kept");
        leat__json_raw(&j, leat__buf_str(id)); /* the id already is JSON */
        leat__json_ku64(&j, "documents", s->largest[i].size);
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_end(&j);
    leat__buf_putc(out, '\n');
    return 0;
}

static int put_page(const leat__dedup *d, const summary *s, const leat__dedup_ids *ids, leat__buf *id,
                    leat__buf *out, leat_error *err)
{
    const leat_dedup_stats *st = d->stats;
    char name[64], note[64];
    leat__page_begin(out, d->fuzzy ? "leat dedup fuzzy" : "leat dedup exact");
    leat__buf_printf(out, "<p>%llu document%s: ", (unsigned long long)d->st.documents,
                     leat__plural(d->st.documents));
    if (st->rule_count) leat__buf_printf(out, "%llu dropped by rules, ", (unsigned long long)d->st.dropped);
    leat__buf_printf(out, "%llu kept, %llu removed in %llu cluster%s", (unsigned long long)st->kept,
                     (unsigned long long)st->removed, (unsigned long long)st->clusters,
                     leat__plural(st->clusters));
    if (d->opts->clusters == LEAT_CLUSTERS_COMPONENTS)
        leat__buf_printf(out, " (%llu of them below the threshold to the kept one)",
                         (unsigned long long)st->below_threshold);
    leat__buf_printf(out, "; %llu bad line%s.</p>\n", (unsigned long long)st->bad, leat__plural(st->bad));
    leat__page_heading(out, "Cluster sizes");
    leat__page_bars_begin(out);
    for (unsigned b = 0; b < SIZES; b++) {
        if (s->clusters[b] == 0) continue;
        bin_name(b, name, sizeof name);
        snprintf(note, sizeof note, "%llu document%s", (unsigned long long)s->documents[b],
                 leat__plural(s->documents[b]));
        leat__page_bar(out, name, (double)s->clusters[b] / (double)LEAT_MAX(st->clusters, 1), s->clusters[b],
                       note);
    }
    leat__page_bars_end(out);
    if (d->fuzzy) {
        double mark = d->opts->threshold * SIMILARITIES;
        leat__page_plot p = {.title = "similarity to the kept document",
                             .left = "0",
                             .right = "1",
                             .first = s->similarity,
                             .bins = SIMILARITIES + 1,
                             .marks = &mark,
                             .mark_count = 1};
        leat__page_heading(out, "Removed documents");
        leat__page_histogram(out, &p);
    }
    leat__page_heading(out, "Largest clusters");
    leat__buf_puts(out, "<table><tr><th>kept document</th><th>documents</th></tr>\n");
    for (unsigned i = 0; i < s->count; i++) {
        LEAT_TRY(id_of(ids, s->largest[i].line, id, err));
        leat__buf_puts(out, "<tr><td>");
        leat__page_text(out, leat__buf_str(id), LEAT_MIN(id->len, 200));
        leat__buf_printf(out, "</td><td class=\"n\">%llu</td></tr>\n",
                         (unsigned long long)s->largest[i].size);
    }
    leat__buf_puts(out, "</table>\n");
    leat__page_end(out);
    return 0;
}

int leat__dedup_report(leat__dedup *d, leat__file *decisions, const leat__dedup_ids *ids, leat_error *err)
{
    leat__buf html, json, id;
    summary *s = LEAT_NEW(CURATE, summary);
    if (!s) return leat__fail_nomem(err, sizeof *s, "the report");
    leat__buf_init(&html, LEAT__MEM_CURATE, 16u << 20);
    leat__buf_init(&json, LEAT__MEM_CURATE, 16u << 20);
    leat__buf_init(&id, LEAT__MEM_CURATE, 64u << 20);
    int rc = count_clusters(d, decisions, s, err);
    if (rc == 0) rc = put_page(d, s, ids, &id, &html, err);
    if (rc == 0) rc = put_json(d, s, ids, &id, &json, err);
    if (rc == 0) rc = leat__page_store(d->opts->report, &html, &json, err);
    leat__buf_reset(&html);
    leat__buf_reset(&json);
    leat__buf_reset(&id);
    leat__free(s);
    return rc;
}
