/* SPDX-License-Identifier: Apache-2.0
 *
 * The second phase: buckets of documents with equal digests, band by band and part by part.
 *
 * The documents of a bucket are taken in order, and each is compared with the members of the bucket.
 *
 * Stars: if it is similar to a member, it gets an edge to that member; otherwise it becomes a member. So a
 * bucket of m similar documents takes m comparisons, not m^2.
 *
 * Components: every document becomes a member, unless its sketch is equal to that of one. Members that edges
 * connect are a group. A document is compared with each group until it is similar to a member, and the edge
 * joins it to the group. So the edges connect what the similar pairs of the bucket connect.
 *
 * Each thread groups a part of a band (a unit); the caller's thread writes their edges in order. A unit that
 * does not fit the memory is grouped in windows: ranges in the order of digests, then of documents. A bucket
 * may continue in the next window, with its members. So a bucket of any size fits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/dedup.h"
#include "curate/thread_team.h"

#define NONE UINT32_MAX
/* Sketches of the members of a bucket, per thread. Later documents are compared only with these. */
#define MEMBERS_BYTES (512u << 10)
#define DIGIT_BITS 11
#define DIGIT_MASK ((1u << DIGIT_BITS) - 1)
#define DIGITS 3 /* digits of the digest used for sorting; the other bits are compared */
#define SORTED_BITS (DIGITS * DIGIT_BITS)
#define BLOCK (1u << 20)

/* A place in the order of records: the digest as `key_of` turns it, then the document. */
typedef struct place {
    uint64_t key;
    uint32_t document;
} place;

/* The state of one thread, which groups a unit window by window. */
typedef struct sorter {
    leat__band_record *a, *b; /* records, and the second buffer of the sort */
    place from, to;           /* first and last place of the window */
    uint64_t width;           /* of the keys of a window, if it fits */
    bool more;                /* the unit has another window */
    uint64_t edges;           /* number of edges found; they replace the records in b */
    uint64_t candidates, crowded;
    leat__band_segment *segment; /* segments of the unit */
    char path[4096];             /* path of the unit's file, if it has one */
    uint64_t digest;             /* of the last bucket, which has these members */
    uint32_t members, members_most, groups;
    uint8_t *sketch; /* of each member */
    uint32_t *id;    /* document of each member */
    uint32_t *up;    /* forest of the members; a tree is a group */
    int rc;
    leat_error err;
} sorter;

typedef struct grouping {
    leat__dedup *d;
    leat__thread_team *team;
    sorter *sorter;
    uint32_t sorters;
    uint64_t room;     /* capacity of each sorter, in records */
    uint32_t segments; /* segments per unit */
    uint32_t *last;    /* the other end of each document's last edge, so that no edge is written twice */
    leat__band_segment *segment;
    leat__dedup_fill fill; /* NULL: a unit is a file of the spill set */
    void *cookie;
} grouping;

/* Returns the digest with the bits that are sorted above the others. */
static uint64_t key_of(uint64_t digest)
{
    return digest << (64 - SORTED_BITS) | digest >> SORTED_BITS;
}

static bool before(place a, place b)
{
    return a.key != b.key ? a.key < b.key : a.document < b.document;
}

static uint32_t digit_of(const leat__band_record *r, bool by_line, int k)
{
    return (uint32_t)((by_line ? r->line : r->digest) >> (k * DIGIT_BITS)) & DIGIT_MASK;
}

/* Stable sort by 33 bits of the digest, or by the line. The result is in *a. */
static void sort_digits(leat__band_record **a, leat__band_record **b, uint64_t n, bool by_line)
{
    uint64_t count[DIGITS][1u << DIGIT_BITS];
    memset(count, 0, sizeof count);
    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < DIGITS; k++) count[k][digit_of(*a + i, by_line, k)]++;
    for (int k = 0; k < DIGITS; k++) {
        uint64_t sum = 0;
        for (uint32_t j = 0; j <= DIGIT_MASK; j++) {
            uint64_t c = count[k][j];
            count[k][j] = sum;
            sum += c;
        }
        for (uint64_t i = 0; i < n; i++) (*b)[count[k][digit_of(*a + i, by_line, k)]++] = (*a)[i];
        leat__band_record *swap = *a;
        *a = *b;
        *b = swap;
    }
}

/* Sorts records that agree in the sorted bits by the whole digest, stably. */
static void sort_run(leat__band_record *r, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        leat__band_record x = r[i];
        uint64_t j = i;
        for (; j > 0 && r[j - 1].digest > x.digest; j--) r[j] = r[j - 1];
        r[j] = x;
    }
}

/* Sorts the records of a window by digest, then by document. They were read in the order of lines. */
static void sort_records(const leat__dedup *d, sorter *s, uint64_t n)
{
    if (d->rank) sort_digits(&s->a, &s->b, n, true);
    sort_digits(&s->a, &s->b, n, false);
    for (uint64_t i = 0, j; i < n; i = j) {
        bool mixed = false;
        for (j = i + 1; j < n && (s->a[j].digest ^ s->a[i].digest) << (64 - SORTED_BITS) == 0; j++)
            mixed |= s->a[j].digest != s->a[i].digest;
        if (mixed) sort_run(s->a + i, j - i);
    }
}

static int put_edge(grouping *g, leat__dedup_edge e, leat_error *err)
{
    leat__dedup *d = g->d;
    d->st.verified++;
    if (g->last[e.later] == e.earlier) return 0;
    g->last[e.later] = e.earlier;
    uint32_t part = (uint32_t)((uint64_t)e.later * d->st.edge_parts / d->st.document);
    return leat__spill_put(&d->edge, part, &e, sizeof e, err);
}

static void add_member(const leat__dedup *d, sorter *s, uint32_t document, const uint8_t *sketch,
                       uint32_t group)
{
    const uint32_t k = s->members;
    if (k == s->members_most) {
        s->crowded++;
        return;
    }
    memcpy(s->sketch + (size_t)k * d->sketch_bytes, sketch, d->sketch_bytes);
    s->id[k] = document;
    s->up[k] = group != NONE ? group : k;
    s->groups += group == NONE;
    s->members++;
}

/* Returns how many bytes of the sketch are equal to those of member k. */
static uint32_t compare(const leat__dedup *d, sorter *s, const uint8_t *sketch, uint32_t k)
{
    s->candidates++;
    return leat__sketch_equal(s->sketch + (size_t)k * d->sketch_bytes, sketch, d->sketch_bytes);
}

static void put_to_star(const leat__dedup *d, sorter *s, uint32_t document, const uint8_t *sketch)
{
    leat__dedup_edge *edge = (leat__dedup_edge *)s->b;
    uint32_t k = 0;
    while (k < s->members && compare(d, s, sketch, k) < d->need_equal) k++;
    if (k < s->members) edge[s->edges++] = (leat__dedup_edge){document, s->id[k]};
    else add_member(d, s, document, sketch, NONE);
}

static void put_to_component(const leat__dedup *d, sorter *s, uint32_t document, const uint8_t *sketch)
{
    leat__dedup_edge *edge = (leat__dedup_edge *)s->b;
    uint32_t mine = NONE;
    for (uint32_t k = 0; k < s->members && (mine == NONE || s->groups > 1); k++) {
        const uint32_t group = leat__dedup_root(s->up, k);
        if (group == mine) continue;
        const uint32_t equal = compare(d, s, sketch, k);
        if (equal < d->need_equal) continue;
        edge[s->edges++] = (leat__dedup_edge){document, s->id[k]};
        s->groups -= mine != NONE;
        s->up[group] = mine = mine != NONE ? mine : group;
        if (equal == d->sketch_bytes) return; /* what is similar to it was compared with that member */
    }
    add_member(d, s, document, sketch, mine);
}

/* Handles the records of a bucket that are in this window, in order. */
static int bucket(leat__dedup *d, sorter *s, const leat__band_record *r, uint64_t n, leat_error *err)
{
    uint8_t sketch[LEAT__SKETCH_MAX];
    if (r->digest != s->digest) s->members = s->groups = 0;
    s->digest = r->digest;
    for (uint64_t i = 0; i < n; i++) {
        LEAT_TRY(leat__dedup_sketch_of(d, r[i].line, sketch, err));
        if (d->opts->clusters == LEAT_CLUSTERS_STAR) put_to_star(d, s, r[i].line, sketch);
        else put_to_component(d, s, r[i].line, sketch);
    }
    return 0;
}

/* Handles the records of a window. A single record matters only if its bucket may be in the window before or
 * after this one. */
static int buckets(leat__dedup *d, sorter *s, uint64_t n, leat_error *err)
{
    sort_records(d, s, n);
    for (uint64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && s->a[j].digest == s->a[i].digest; j++) {
        }
        if (j - i > 1 || i == 0 || j == n) LEAT_TRY(bucket(d, s, s->a + i, j - i, err));
    }
    return 0;
}

/* Ends the window earlier, so that an eighth of its records are left for the next one. */
static uint64_t shrink_window(const grouping *g, sorter *s)
{
    const uint64_t n = g->room - LEAT_MAX(g->room / 8, 1);
    sort_records(g->d, s, g->room);
    s->to = (place){key_of(s->a[n - 1].digest), s->a[n - 1].line};
    return n;
}

/* Adds the records of a segment that are in the window. With ranks, these replace their lines. */
static int load_window(const grouping *g, sorter *s, const leat__band_segment *seg, uint64_t *n,
                       leat_error *err)
{
    const leat__dedup *d = g->d;
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
            const uint32_t line = r[i].line + seg->base;
            place p = {key_of(r[i].digest), line};
            if (p.key < s->from.key || p.key > s->to.key) continue;
            if (line >= d->st.document) rc = leat__fail(err, LEAT_EDATA, "%s: is damaged", seg->path);
            else if (d->rank) p.document = d->rank[line];
            if (rc == 0 && *n == g->room && !before(s->to, p)) *n = shrink_window(g, s);
            if (rc == 0 && !before(p, s->from) && !before(s->to, p))
                s->a[(*n)++] = (leat__band_record){r[i].digest, p.document};
        }
    }
    leat__file_close(&f);
    leat__free(block);
    return rc;
}

/* Groups the next window of a unit, whose segments are in the order of their lines. */
static void group_window(void *cookie, uint32_t member, uint32_t members)
{
    grouping *g = cookie;
    if (member >= g->sorters || !g->sorter[member].more) return;
    sorter *s = &g->sorter[member];
    uint64_t n = 0;
    s->to = (place){s->from.key + LEAT_MIN(s->width, UINT64_MAX - s->from.key), UINT32_MAX};
    for (uint32_t i = 0; i < g->segments && s->rc == 0; i++)
        if (s->segment[i].bytes > 0) s->rc = load_window(g, s, &s->segment[i], &n, &s->err);
    if (s->rc == 0) s->rc = buckets(g->d, s, n, &s->err);
    s->more = before(s->to, (place){UINT64_MAX, UINT32_MAX});
    s->from = (place){s->to.key, s->to.document + 1};
    if (s->from.document == 0) s->from.key++;
}

/* Writes the edges of a sorter on the caller's thread, so that the order of units does not depend on
 * the number of threads. */
static int take_edges(grouping *g, sorter *s, leat_error *err)
{
    const leat__dedup_edge *edge = (const leat__dedup_edge *)s->b;
    if (s->rc != 0) {
        if (err) *err = s->err;
        return s->rc;
    }
    for (uint64_t i = 0; i < s->edges; i++) LEAT_TRY(put_edge(g, edge[i], err));
    g->d->st.candidates += s->candidates;
    g->d->st.crowded += s->crowded;
    s->edges = s->candidates = s->crowded = 0;
    return 0;
}

static void set_unit(const grouping *g, sorter *s, uint32_t unit)
{
    uint64_t bytes = 0;
    if (g->fill) {
        g->fill(g->cookie, unit, s->segment);
    } else {
        snprintf(s->path, sizeof s->path, "%s-%u", g->d->band.name, unit);
        s->segment[0] = (leat__band_segment){.path = s->path, .bytes = g->d->band.length[unit]};
    }
    for (uint32_t i = 0; i < g->segments; i++) bytes += s->segment[i].bytes;
    /* windows differ in size: leave an eighth of the space free */
    uint64_t windows = leat__ceil_div(bytes / sizeof(leat__band_record), LEAT_MAX(g->room - g->room / 8, 1));
    s->more = windows > 0;
    s->width = UINT64_MAX / LEAT_MAX(windows, 1);
    s->from = (place){0};
    s->members = s->groups = 0;
}

/* Groups the next units, one per thread, and advances *unit. */
static int group_some(grouping *g, uint32_t *unit, uint32_t end, leat_error *err)
{
    for (uint32_t i = 0; i < g->sorters && *unit < end; i++) set_unit(g, &g->sorter[i], (*unit)++);
    for (bool more = true; more;) {
        leat__thread_team_run(g->team, group_window, g);
        more = false;
        for (uint32_t i = 0; i < g->sorters; i++) {
            LEAT_TRY(take_edges(g, &g->sorter[i], err));
            more |= g->sorter[i].more;
        }
    }
    return 0;
}

static int save_part(leat__dedup *d, leat_error *err)
{
    LEAT_TRY(leat__spill_flush(&d->edge, true, err));
    leat__dedup_state_mark(&d->edge, d->st.edge_length, d->st.edge_sum);
    return leat__dedup_save(d, err);
}

/* Opens several sorters, one per thread, if each has room for all records of a unit. */
static int open_sorters(grouping *g, uint64_t memory, leat_error *err)
{
    const leat__dedup_state *st = &g->d->st;
    const uint64_t each = 2 * sizeof(leat__band_record);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < st->band_files; i++) largest = LEAT_MAX(largest, st->band_length[i]);
    largest = largest / sizeof(leat__band_record) + 1;
    LEAT_TRY(leat__thread_team_open(&g->team, g->d->opts->threads, err));
    uint32_t most = LEAT_MIN(leat__thread_team_size(g->team), st->band_files);
    g->sorters = (uint32_t)LEAT_MAX(LEAT_MIN(memory / (each * (largest + largest / 8 + 1)), most), 1);
    g->room = LEAT_MIN(memory / each / g->sorters, largest);
    g->room = g->room + g->room / 8 + 1; /* enough for one window with all records */
    g->sorter = leat__zalloc_array(LEAT__MEM_CURATE, g->sorters, sizeof *g->sorter);
    g->segment = leat__zalloc_array(LEAT__MEM_CURATE, g->sorters * g->segments, sizeof *g->segment);
    if (!g->sorter || !g->segment) return leat__fail_nomem(err, g->sorters * sizeof *g->sorter, "grouping");
    for (uint32_t i = 0; i < g->sorters; i++) {
        sorter *s = &g->sorter[i];
        s->segment = g->segment + (size_t)i * g->segments;
        s->members_most = MEMBERS_BYTES / LEAT_MAX(g->d->sketch_bytes, 1);
        s->a = leat__alloc_array(LEAT__MEM_CURATE, g->room, sizeof *s->a);
        /* documents of a window may join all groups of the window before it */
        s->b = leat__alloc_array(LEAT__MEM_CURATE, g->room + s->members_most, sizeof *s->b);
        s->sketch = leat__alloc(LEAT__MEM_CURATE, MEMBERS_BYTES);
        s->id = leat__alloc_array(LEAT__MEM_CURATE, s->members_most, sizeof *s->id);
        s->up = leat__alloc_array(LEAT__MEM_CURATE, s->members_most, sizeof *s->up);
        if (!s->a || !s->b || !s->sketch || !s->id || !s->up)
            return leat__fail_nomem(err, g->room * each, "records of a band");
    }
    return 0;
}

/* Memory: 4 bytes per document. Records (24 bytes each) and sketches share the rest. */
static int open_grouping(grouping *g, leat_error *err)
{
    leat__dedup *d = g->d;
    uint64_t fixed = d->st.document * 4 + (d->rank ? d->st.document * 8 : 0) + (8u << 20);
    LEAT_TRY(leat__dedup_check_memory(d, fixed + (4u << 20), err));
    uint64_t rest = d->memory - fixed;
    g->last = leat__alloc_array(LEAT__MEM_CURATE, d->st.document + 1, 4);
    if (!g->last) return leat__fail_nomem(err, d->st.document * 4, "documents");
    memset(g->last, 0xff, d->st.document * 4);
    LEAT_TRY(open_sorters(g, rest / 2, err));
    return leat__dedup_sketches_open(d, rest / 3, err);
}

static int group_all(grouping *g, leat_error *err)
{
    leat__dedup *d = g->d;
    leat__dedup_state *st = &d->st;
    uint32_t unit = st->band * st->parts + st->part;
    LEAT_TRY(open_grouping(g, err));
    while (unit < st->band_files) {
        LEAT_TRY(group_some(g, &unit, st->band_files, err));
        st->band = unit / st->parts;
        st->part = unit % st->parts;
        if (unit < st->band_files) LEAT_TRY(save_part(d, err));
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
    if (!st->edge_length) { /* worst case: an edge per document and band; qsort may take a copy of a part */
        st->edge_parts =
            (uint32_t)LEAT_MIN(st->document * 8 * d->bands / (d->memory / 32) + 1, LEAT__EDGE_PARTS_MAX);
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
    leat__thread_team_close(&g->team);
    for (uint32_t i = 0; g->sorter && i < g->sorters; i++) {
        leat__free(g->sorter[i].a);
        leat__free(g->sorter[i].b);
        leat__free(g->sorter[i].sketch);
        leat__free(g->sorter[i].id);
        leat__free(g->sorter[i].up);
    }
    leat__free(g->sorter);
    leat__free(g->segment);
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
    g->segments = 1;
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

int leat__dedup_group_units(leat__dedup *d, const char *folder, uint32_t segments, leat__dedup_fill fill,
                            void *cookie, leat_error *err)
{
    grouping *g = LEAT_NEW(CURATE, grouping);
    int rc;
    if (!g) return leat__fail_nomem(err, sizeof *g, "grouping");
    g->d = d;
    g->segments = segments;
    g->fill = fill;
    g->cookie = cookie;
    LEAT_GO(rc, out, open_edges(d, folder, err));
    LEAT_GO(rc, out, open_grouping(g, err));
    for (uint32_t unit = d->part->from; unit < d->part->to;)
        LEAT_GO(rc, out, group_some(g, &unit, d->part->to, err));
    LEAT_GO(rc, out, leat__spill_flush(&d->edge, false, err));
    leat__dedup_state_mark(&d->edge, d->st.edge_length, d->st.edge_sum);
out:
    close_grouping(g);
    return rc;
}
