/* SPDX-License-Identifier: Apache-2.0
 *
 * The second phase: buckets of documents with equal digests, band by band and part by part.
 *
 * The documents of a bucket are taken in order. The first is a leader. Each other one is compared
 * with the leaders: if it is similar to one, it gets an edge to it; otherwise it becomes a leader
 * too. So a bucket of m similar documents takes m comparisons, not m^2.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup.h"

#define LEADERS_MAX 16 /* per bucket; later documents are compared only with these */
#define DIGIT_BITS 11
#define DIGITS 3 /* of the digest used for sorting; the rest is compared */
#define BLOCK (1u << 20)

typedef struct grouping {
    leat__dedup *d;
    leat__band_record *a, *b; /* records of a part, and the second buffer of the sort */
    uint64_t room;            /* records each has room for */
    uint32_t *last;           /* the leader of a document's last edge, to avoid writing it
                               * again */
    uint8_t leader[LEADERS_MAX][LEAT__SKETCH_MAX];
    uint32_t leader_id[LEADERS_MAX];
} grouping;

/* Stable sort by 33 bits of the digest. The result is in *a. */
static void sort_records(leat__band_record **a, leat__band_record **b, uint64_t n)
{
    uint64_t count[DIGITS][1u << DIGIT_BITS];
    const uint64_t mask = (1u << DIGIT_BITS) - 1;
    memset(count, 0, sizeof count);
    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < DIGITS; k++) count[k][(*a)[i].digest >> (k * DIGIT_BITS) & mask]++;
    for (int k = 0; k < DIGITS; k++) {
        uint64_t sum = 0;
        for (uint32_t j = 0; j <= mask; j++) {
            uint64_t c = count[k][j];
            count[k][j] = sum;
            sum += c;
        }
        for (uint64_t i = 0; i < n; i++) {
            leat__band_record r = (*a)[i];
            (*b)[count[k][r.digest >> (k * DIGIT_BITS) & mask]++] = r;
        }
        leat__band_record *swap = *a;
        *a = *b;
        *b = swap;
    }
}

static int by_line(const void *x, const void *y)
{
    uint32_t a = ((const leat__band_record *)x)->line, b = ((const leat__band_record *)y)->line;
    return a < b ? -1 : a > b;
}

/* Sorts digests that agree in the sorted bits by the whole digest, stably. */
static void sort_run(leat__band_record *r, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        leat__band_record x = r[i];
        uint64_t j = i;
        for (; j > 0 && r[j - 1].digest > x.digest; j--) r[j] = r[j - 1];
        r[j] = x;
    }
}

static int put_edge(grouping *g, uint32_t later, uint32_t earlier, leat_error *err)
{
    leat__dedup *d = g->d;
    d->st.verified++;
    if (g->last[later] == earlier) return 0;
    g->last[later] = earlier;
    leat__dedup_edge e = {later, earlier};
    uint32_t part = (uint32_t)((uint64_t)later * d->st.edge_parts / d->st.document);
    return leat__spill_put(&d->edge, part, &e, sizeof e, err);
}

/* Handles the records of one bucket, in order. */
static int bucket(grouping *g, leat__band_record *r, uint64_t n, leat_error *err)
{
    leat__dedup *d = g->d;
    uint8_t sketch[LEAT__SKETCH_MAX];
    uint32_t leaders = 0;
    if (d->rank) {
        for (uint64_t i = 0; i < n; i++) r[i].line = d->rank[r[i].line];
        qsort(r, n, sizeof *r, by_line);
    }
    for (uint64_t i = 0; i < n; i++) {
        LEAT_TRY(leat__dedup_sketch_of(d, r[i].line, sketch, err));
        uint32_t k = 0;
        for (; k < leaders; k++) {
            d->st.candidates++;
            if (leat__sketch_equal(g->leader[k], sketch, d->sketch_bytes) >= d->need_equal) break;
        }
        if (k < leaders) {
            LEAT_TRY(put_edge(g, r[i].line, g->leader_id[k], err));
        } else if (leaders < LEADERS_MAX) {
            memcpy(g->leader[leaders], sketch, d->sketch_bytes);
            g->leader_id[leaders++] = r[i].line;
        }
    }
    return 0;
}

static int buckets(grouping *g, uint64_t n, leat_error *err)
{
    const uint64_t mask = (UINT64_C(1) << (DIGITS * DIGIT_BITS)) - 1;
    sort_records(&g->a, &g->b, n);
    leat__band_record *r = g->a;
    for (uint64_t i = 0; i < n;) {
        uint64_t j = i + 1;
        bool mixed = false;
        for (; j < n && ((r[j].digest ^ r[i].digest) & mask) == 0; j++) mixed |= r[j].digest != r[i].digest;
        if (mixed) sort_run(r + i, j - i);
        for (uint64_t k = i; k < j;) {
            uint64_t m = k + 1;
            while (m < j && r[m].digest == r[k].digest) m++;
            if (m - k > 1) LEAT_TRY(bucket(g, r + k, m - k, err));
            k = m;
        }
        i = j;
    }
    return 0;
}

/* Adds the records of a segment whose digests are in slice `slice` of `slices`. */
static int load_slice(grouping *g, const leat__band_segment *seg, uint32_t slice, uint32_t slices,
                      uint64_t *n, leat_error *err)
{
    uint8_t *block = leat__alloc(LEAT__MEM_CURATE, BLOCK);
    const uint64_t per_block = BLOCK / sizeof(leat__band_record);
    uint64_t records = seg->bytes / sizeof(leat__band_record);
    leat__file *f = NULL;
    int rc = block ? leat__file_open(&f, seg->path, LEAT__FILE_READ, err)
                   : leat__fail_nomem(err, BLOCK, "records");
    for (uint64_t at = 0; at < records && rc == 0; at += per_block) {
        uint64_t take = LEAT_MIN(per_block, records - at);
        rc = leat__file_pread(f, block, take * sizeof(leat__band_record),
                              seg->offset + at * sizeof(leat__band_record), err);
        const leat__band_record *r = (const leat__band_record *)block;
        for (uint64_t i = 0; i < take && rc == 0; i++) {
            if ((r[i].digest & UINT32_MAX) * slices >> 32 != slice) continue;
            const uint32_t line = r[i].line + seg->base;
            if (*n == g->room) rc = leat__fail(err, LEAT_EBUDGET, "a bucket does not fit the memory limit");
            else if (line >= g->d->st.document) rc = leat__fail(err, LEAT_EDATA, "%s: is damaged", seg->path);
            else g->a[(*n)++] = (leat__band_record){r[i].digest, line};
        }
    }
    leat__file_close(&f);
    leat__free(block);
    return rc;
}

/* Groups the records of a unit, which are in one or more segments in the order of their lines. */
static int group_unit(grouping *g, const leat__band_segment *seg, uint32_t segments, leat_error *err)
{
    uint64_t bytes = 0, n;
    for (uint32_t i = 0; i < segments; i++) bytes += seg[i].bytes;
    uint64_t records = bytes / sizeof(leat__band_record);
    /* slices differ in size: leave an eighth of the space free */
    uint32_t slices = (uint32_t)leat__ceil_div(records, LEAT_MAX(g->room - g->room / 8, 1));
    for (uint32_t s = 0; s < slices; s++) {
        n = 0;
        for (uint32_t i = 0; i < segments; i++)
            if (seg[i].bytes > 0) LEAT_TRY(load_slice(g, &seg[i], s, slices, &n, err));
        LEAT_TRY(buckets(g, n, err));
    }
    return 0;
}

static int group_part(grouping *g, uint32_t file, leat_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s-%u", g->d->band.name, file);
    leat__band_segment seg = {.path = path, .bytes = g->d->band.length[file]};
    return group_unit(g, &seg, 1, err);
}

static int save_part(leat__dedup *d, leat_error *err)
{
    LEAT_TRY(leat__spill_flush(&d->edge, true, err));
    leat__dedup_state_mark(&d->edge, d->st.edge_length, d->st.edge_sum);
    return leat__dedup_save(d, err);
}

/* Memory: 4 bytes per document, records (24 bytes each) and sketches share the rest. */
static int open_grouping(grouping *g, leat_error *err)
{
    leat__dedup *d = g->d;
    uint64_t fixed = d->st.document * 4 + (d->rank ? d->st.document * 8 : 0) + (8u << 20), largest = 0;
    if (fixed + (4u << 20) > d->memory)
        return leat__fail(err, LEAT_EBUDGET,
                          "%llu documents need at least %llu MiB of memory (raise `memory`)",
                          (unsigned long long)d->st.documents, (unsigned long long)(fixed >> 20) + 5);
    uint64_t rest = d->memory - fixed;
    for (uint32_t i = 0; i < d->st.band_files; i++) largest = LEAT_MAX(largest, d->st.band_length[i]);
    g->room = LEAT_MIN(rest / 2 / (2 * sizeof(leat__band_record)), largest / sizeof(leat__band_record) + 1);
    g->room = g->room + g->room / 8 + 1; /* one slice takes all */
    g->a = leat__alloc_array(LEAT__MEM_CURATE, g->room, sizeof *g->a);
    g->b = leat__alloc_array(LEAT__MEM_CURATE, g->room, sizeof *g->b);
    g->last = leat__alloc_array(LEAT__MEM_CURATE, d->st.document + 1, 4);
    if (!g->a || !g->b || !g->last) return leat__fail_nomem(err, g->room * 24, "records of a band");
    memset(g->last, 0xff, d->st.document * 4);
    return leat__dedup_sketches_open(d, rest / 3, err);
}

static int group_all(grouping *g, leat_error *err)
{
    leat__dedup *d = g->d;
    leat__dedup_state *st = &d->st;
    uint32_t bands = st->band_files / st->parts;
    LEAT_TRY(open_grouping(g, err));
    for (; st->band < bands; st->band++, st->part = 0) {
        while (st->part < st->parts) {
            LEAT_TRY(group_part(g, st->band * st->parts + st->part, err));
            st->part++;
            if (st->part < st->parts) LEAT_TRY(save_part(d, err));
        }
        if (st->band + 1 < bands) {
            st->band++;
            st->part = 0;
            LEAT_TRY(save_part(d, err));
            st->band--;
        }
        if (d->opts->progress &&
            d->opts->progress(d->opts->cookie, d->bytes_done, d->bytes_total, st->documents, 0) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    return 0;
}

/* Opens the files of edges. */
static int open_edges(leat__dedup *d, const char *folder, leat_error *err)
{
    leat__dedup_state *st = &d->st;
    if (!st->edge_length) { /* worst case: an edge per document and band */
        st->edge_parts =
            (uint32_t)LEAT_MIN(st->document * 8 * d->bands / (d->memory / 16) + 1, LEAT__EDGE_PARTS_MAX);
        LEAT_TRY(leat__dedup_state_edges(st, st->edge_parts, err));
    }
    return leat__spill_open(&d->edge, folder, "edge", st->edge_files,
                            LEAT_MIN(64u << 10, LEAT_MAX(d->memory / 16 / st->edge_files, LEAT__SPILL_BLOCK)),
                            st->edge_length, st->edge_sum, err);
}

static void close_grouping(grouping *g)
{
    leat__dedup_sketches_close(g->d);
    leat__spill_reset(&g->d->band);
    leat__spill_reset(&g->d->edge);
    leat__free(g->a);
    leat__free(g->b);
    leat__free(g->last);
    leat__free(g);
}

int leat__dedup_group(leat__dedup *d, leat_error *err)
{
    grouping *g = LEAT_NEW(CURATE, grouping);
    leat__dedup_state *st = &d->st;
    int rc;
    if (!g) return leat__fail_nomem(err, sizeof *g, "grouping");
    g->d = d;
    LEAT_GO(rc, out, open_edges(d, d->work, err));
    LEAT_GO(rc, out,
            leat__spill_open(&d->band, d->work, "band", st->band_files, 1, st->band_length, NULL, err));
    LEAT_GO(rc, out, group_all(g, err));
    st->iteration++;
    st->phase = st->iteration * st->bands_at_once < d->bands ? LEAT__PHASE_SKETCH : LEAT__PHASE_RESOLVE;
    st->file = 0;
    st->offset = st->line = st->band = st->part = 0;
    if (st->phase == LEAT__PHASE_SKETCH) st->document = 0;
    LEAT_GO(rc, out, save_part(d, err));
    LEAT_GO(rc, out, leat__spill_remove(&d->band, err));
out:
    close_grouping(g);
    return rc;
}

int leat__dedup_group_units(leat__dedup *d, const char *folder, leat__band_segment *segments, uint32_t n,
                            void (*fill)(void *cookie, uint32_t unit, leat__band_segment *segments),
                            void *cookie, leat_error *err)
{
    grouping *g = LEAT_NEW(CURATE, grouping);
    int rc;
    if (!g) return leat__fail_nomem(err, sizeof *g, "grouping");
    g->d = d;
    LEAT_GO(rc, out, open_edges(d, folder, err));
    LEAT_GO(rc, out, open_grouping(g, err));
    for (uint32_t u = d->part->from; u < d->part->to; u++) {
        fill(cookie, u, segments);
        LEAT_GO(rc, out, group_unit(g, segments, n, err));
    }
    LEAT_GO(rc, out, leat__spill_flush(&d->edge, false, err));
    leat__dedup_state_mark(&d->edge, d->st.edge_length, d->st.edge_sum);
out:
    close_grouping(g);
    return rc;
}
