/* SPDX-License-Identifier: Apache-2.0
 *
 * The third phase: turns edges into decisions. Documents are visited in order, so that decisions
 * about earlier ones are known.
 *
 * Stars: a document is removed for an earlier kept one that it is similar to. Its edges lead to
 * leaders of buckets. If such a leader was itself removed, the document it was removed for is
 * tried, and then the kept documents that had an edge to the same leader. Components: all
 * documents connected by edges are one cluster; its first is kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup.h"

#define NONE UINT32_MAX
#define NEIGHBOURS_MAX 32 /* maximum kept documents with an edge to the same leader that are tried */
#define BLOCK 8192

typedef struct resolving {
    leat__dedup *d;
    uint32_t n;          /* number of documents, or ranks */
    uint32_t *kept_for;  /* the document kept for each; itself when kept */
    uint32_t *neighbour; /* stars: the first of the kept documents with an edge to this one */
    uint32_t *next_neighbour;
    leat__dedup_edge *edge;
    uint64_t edges;
} resolving;

static int by_place(const void *x, const void *y)
{
    const leat__dedup_edge *a = x, *b = y;
    if (a->later != b->later) return a->later < b->later ? -1 : 1;
    return a->earlier < b->earlier ? -1 : a->earlier > b->earlier;
}

static int similar(leat__dedup *d, uint32_t a, uint32_t b, bool *yes, leat_error *err)
{
    uint8_t x[LEAT__SKETCH_MAX], y[LEAT__SKETCH_MAX];
    LEAT_TRY(leat__dedup_sketch_of(d, a, x, err));
    LEAT_TRY(leat__dedup_sketch_of(d, b, y, err));
    *yes = leat__sketch_equal(x, y, d->sketch_bytes) >= d->need_equal;
    return 0;
}

/* Finds the kept document for which the document with these edges is removed, or NONE. */
static int find_star(resolving *r, const leat__dedup_edge *e, uint64_t n, uint32_t *found, leat_error *err)
{
    uint32_t me = e[0].later;
    bool yes;
    *found = NONE;
    for (uint64_t i = 0; i < n; i++)
        if (r->kept_for[e[i].earlier] == e[i].earlier) {
            *found = e[i].earlier;
            return 0;
        }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t other = r->kept_for[e[i].earlier];
        LEAT_TRY(similar(r->d, me, other, &yes, err));
        if (yes) {
            *found = other;
            return 0;
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        uint32_t k = r->neighbour[e[i].earlier];
        for (int tries = 0; k != NONE && tries < NEIGHBOURS_MAX; tries++, k = r->next_neighbour[k]) {
            LEAT_TRY(similar(r->d, me, k, &yes, err));
            if (!yes) continue;
            *found = k;
            return 0;
        }
    }
    return 0;
}

static int resolve_star(resolving *r, const leat__dedup_edge *e, uint64_t n, leat_error *err)
{
    uint32_t found, me = e[0].later;
    LEAT_TRY(find_star(r, e, n, &found, err));
    if (found != NONE) {
        r->kept_for[me] = found;
        return 0;
    }
    r->next_neighbour[me] = r->neighbour[e[0].earlier]; /* a document is in only one list */
    r->neighbour[e[0].earlier] = me;
    return 0;
}

static void join(uint32_t *up, uint32_t a, uint32_t b)
{
    a = leat__dedup_root(up, a);
    b = leat__dedup_root(up, b);
    if (a < b) up[b] = a;
    else up[a] = b;
}

static int load_edges(resolving *r, uint32_t part, leat_error *err)
{
    leat__file *f = NULL;
    LEAT_TRY(leat__spill_file(&r->d->edge, part, &f, err));
    uint64_t bytes = leat__file_size_at_open(f);
    r->edges = bytes / sizeof(leat__dedup_edge);
    r->edge = leat__alloc_array(LEAT__MEM_CURATE, r->edges + 1, sizeof *r->edge);
    int rc = r->edge ? leat__file_pread(f, r->edge, r->edges * sizeof *r->edge, 0, err)
                     : leat__fail_nomem(err, bytes, "edges");
    for (uint64_t i = 0; i < r->edges && rc == 0; i++)
        if (r->edge[i].later >= r->n || r->edge[i].earlier >= r->n)
            rc =
                leat__fail(err, LEAT_EDATA, "%s: is damaged (use `force` to start over)", leat__file_path(f));
    leat__file_close(&f);
    return rc;
}

static int resolve_part(resolving *r, uint32_t part, leat_error *err)
{
    int rc = load_edges(r, part, err);
    if (rc == 0) qsort(r->edge, r->edges, sizeof *r->edge, by_place);
    for (uint64_t i = 0; i < r->edges && rc == 0;) {
        uint64_t j = i + 1, n = 1;
        for (; j < r->edges && r->edge[j].later == r->edge[i].later; j++)
            if (r->edge[j].earlier != r->edge[i + n - 1].earlier) r->edge[i + n++] = r->edge[j];
        if (r->edge[i].later < r->d->against) n = 0; /* documents of an index are always kept */
        if (n > 0 && r->d->opts->clusters == LEAT_CLUSTERS_STAR) rc = resolve_star(r, r->edge + i, n, err);
        else
            for (uint64_t k = 0; k < n; k++) join(r->kept_for, r->edge[i + k].later, r->edge[i + k].earlier);
        i = j;
    }
    leat__free(r->edge);
    r->edge = NULL;
    return rc;
}

/* Makes the decision about one line. */
static int decide(resolving *r, uint32_t line, leat__dedup_decision *out, leat_error *err)
{
    leat__dedup *d = r->d;
    uint32_t me = d->rank ? d->rank[line] : line, other = leat__dedup_root(r->kept_for, me);
    uint8_t x[LEAT__SKETCH_MAX], y[LEAT__SKETCH_MAX];
    *out = (leat__dedup_decision){line, d->sketch_bytes};
    if (other == me || line < d->against) return 0; /* a new document may connect two of the index */
    LEAT_TRY(leat__dedup_sketch_of(d, me, x, err));
    LEAT_TRY(leat__dedup_sketch_of(d, other, y, err));
    out->kept_for = d->rank ? d->order[other] : other;
    out->equal = leat__sketch_equal(x, y, d->sketch_bytes);
    return 0;
}

static int write_decisions(resolving *r, leat_error *err)
{
    leat__dedup *d = r->d;
    char path[4096], temp[4096], name[128];
    leat__dedup_decision block[BLOCK];
    leat__file *f = NULL;
    uint64_t sum = 0;
    snprintf(name, sizeof name, "decisions.%.100s", d->part ? d->part->token : "partial");
    int rc = leat__file_open(&f, leat__dedup_path(d, name, temp),
                             LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err);
    for (uint32_t at = 0; at < r->n && rc == 0; at += BLOCK) {
        uint32_t n = LEAT_MIN(BLOCK, r->n - at);
        for (uint32_t i = 0; i < n && rc == 0; i++) rc = decide(r, at + i, &block[i], err);
        if (rc == 0) rc = leat__file_pwrite(f, block, n * sizeof *block, (uint64_t)at * sizeof *block, err);
        if (rc == 0) sum += leat__spill_sum_of(block, n * sizeof *block, (uint64_t)at * sizeof *block);
    }
    if (rc == 0) rc = leat__file_sync(f, err);
    leat__file_close(&f);
    d->st.decisions_sum = sum & (UINT64_MAX >> 1);
    return rc == 0 ? leat__path_rename(temp, leat__dedup_path(d, "decisions", path), err) : rc;
}

static int resolve_all(resolving *r, leat_error *err)
{
    leat__dedup *d = r->d;
    uint64_t fixed = (uint64_t)r->n * (d->rank ? 20 : 12) + (8u << 20), most = 0;
    for (uint32_t i = 0; i < d->st.edge_files; i++) most = LEAT_MAX(most, d->st.edge_length[i]);
    LEAT_TRY(leat__dedup_check_memory(d, fixed + 2 * most, err)); /* qsort may take a copy */
    r->kept_for = leat__alloc_array(LEAT__MEM_CURATE, r->n + 1, 4);
    r->neighbour = leat__alloc_array(LEAT__MEM_CURATE, r->n + 1, 4);
    r->next_neighbour = leat__alloc_array(LEAT__MEM_CURATE, r->n + 1, 4);
    if (!r->kept_for || !r->neighbour || !r->next_neighbour)
        return leat__fail_nomem(err, (uint64_t)r->n * 12, "decisions");
    for (uint32_t i = 0; i < r->n; i++) {
        r->kept_for[i] = i;
        r->neighbour[i] = r->next_neighbour[i] = NONE;
    }
    LEAT_TRY(leat__dedup_sketches_open(d, d->memory - fixed - 2 * most, err));
    LEAT_TRY(leat__spill_open(&d->edge, d->work, "edge", d->st.edge_files, 1, d->st.edge_length, NULL, err));
    for (uint32_t i = 0; i < d->st.edge_files; i++) LEAT_TRY(resolve_part(r, i, err));
    return write_decisions(r, err);
}

int leat__dedup_resolve(leat__dedup *d, leat_error *err)
{
    resolving r = {.d = d, .n = (uint32_t)d->st.document};
    int rc = resolve_all(&r, err);
    if (rc == 0) {
        d->st.phase = LEAT__PHASE_WRITE;
        if (!d->part) rc = leat__dedup_save(d, err); /* a run in parts saves the state last */
    }
    leat__dedup_sketches_close(d);
    leat__spill_reset(&d->edge);
    leat__free(r.kept_for);
    leat__free(r.neighbour);
    leat__free(r.next_neighbour);
    return rc;
}
