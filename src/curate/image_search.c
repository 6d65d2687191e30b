/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for pairs. Equal content comes first. Then each row queries the index for earlier rows,
 * in each orientation, as a whole and without borders. Across packs it queries all rows of other packs
 * instead: each row finds its own nearest ones, so no pair is lost when a row of another pack has many
 * nearer ones. The nearest by the fine descriptor are compared by their thumbnails. All threads search
 * portions of rows, and results are taken in order, so the pairs do not depend on the number of threads.
 */
#include <leat/flow.h>

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/image_blocks.h"
#include "curate/image_match.h"

#define PORTION 128     /* rows per task */
#define FINE_SURE 0.12f /* candidates nearer than this are not compared: their similarity is 1 - distance */
#define UNEQUAL_MOST 0.999999f /* similarity; 1 means equal images, and six digits are printed */
#define NEED_MOST 0.6f         /* so that a higher threshold loses no pair */
#define CANDIDATES 16          /* candidates per row, and as many upright candidates */
#define ROW_MOST (1u << 30)    /* bytes of a row of columns */

typedef struct candidate {
    uint32_t row;
    uint8_t orientation;
    float rank; /* fine distance; for windows the coarse one */
    bool sure;
    bool first; /* the nearest of its row */
} candidate;

typedef struct portion {
    uint32_t first, end;
    uint64_t compared;
    leat__image_pairs pairs;
} portion;

typedef struct worker {
    void *scratch;  /* scratch memory of the index */
    leat__buf room; /* memory for a row of columns */
    /* Queries of some rows and their results; used only without blocks. */
    leat__dedup_question question[LEAT__NEAR_QUERIES];
    leat__near_heap heap[LEAT__NEAR_QUERIES];
    leat__near *near; /* LEAT__DEDUP_ROOM entries for each heap */
    leat__match_side own[LEAT__ORIENTATIONS], other;
    candidate found[LEAT__ORIENTATIONS * LEAT__DEDUP_ENTRIES_MAX * LEAT__DEDUP_ROOM];
} worker;

typedef struct searching {
    leat__dedup_search *s;
    leat__image_index *index;   /* NULL: the descriptors do not fit in memory */
    leat__dedup_blocks *blocks; /* used when `index` is NULL */
    leat_pack **packs;          /* packs of columns */
    uint32_t next, end;         /* the next row, and the end */
} searching;

/* ---- candidates ---- */

static bool may_pair(const searching *x, uint32_t row, uint32_t other)
{
    const leat__dedup_row *r = x->s->rows->row;
    if (r[row].content_hash == r[other].content_hash) return false; /* equal images are already pairs */
    return x->s->opts->across ? r[row].pack != r[other].pack : other < row;
}

static bool is_searched(const searching *x, uint32_t row)
{
    const leat__dedup_row *r = &x->s->rows->row[row];
    return r->entry != LEAT__DEDUP_NONE;
}

/* Queries as many rows from `first` on as fit in one batch of queries. Returns one past the last row. */
static uint32_t ask(const searching *x, worker *w, uint32_t first, uint32_t end)
{
    const leat__dedup_rows *r = x->s->rows;
    const leat__dedup_ask shared = {
        .rows = r, .index = x->index, .from = &r->entry, .across = x->s->opts->across != 0};
    uint32_t n = 0, row = first;
    for (; row < end; row++) {
        const leat__dedup_row *of = &r->row[row];
        if (!is_searched(x, row)) continue;
        if (n + of->entries * x->s->opts->orientations > LEAT__NEAR_QUERIES) break;
        for (uint32_t e = of->entry; e < of->entry + of->entries; e++)
            for (uint32_t o = 0; o < x->s->opts->orientations; o++)
                w->question[n++] = (leat__dedup_question){row, e, o};
    }
    for (uint32_t i = 0; i < n; i++)
        w->heap[i] =
            (leat__near_heap){.near = w->near + (size_t)i * LEAT__DEDUP_ROOM, .room = LEAT__DEDUP_ROOM};
    leat__dedup_ask_some(&shared, w->question, w->heap, n, w->scratch);
    return row;
}

/* Adds the results of a query of a row. */
static uint32_t take(const searching *x, worker *w, uint32_t row, const leat__near_heap *heap, bool window,
                     unsigned orientation, uint32_t n)
{
    leat__near_sort(heap->near, heap->count);
    for (uint32_t i = 0; i < heap->count; i++) {
        const leat__near *found = &heap->near[i];
        const uint32_t other = found->owner & ~LEAT__DEDUP_WINDOW;
        const bool windows = found->owner & LEAT__DEDUP_WINDOW;
        if (!may_pair(x, row, other) || (window && windows)) continue;
        w->found[n++] = (candidate){.row = other,
                                    .orientation = (uint8_t)orientation,
                                    .rank = found->rank,
                                    .sure = !window && !windows && found->rank < FINE_SURE};
    }
    return n;
}

static int by_row(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank ? 1 : (int)a->orientation - b->orientation;
}

static int by_rank(const void *x, const void *y)
{
    const candidate *a = x, *b = y;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    return (int)a->orientation - b->orientation;
}

/* Keeps of each row its nearest candidate and its nearest upright one. Returns how many are kept. */
static uint32_t keep_nearest(candidate *found, uint32_t n)
{
    uint32_t kept = 0;
    bool upright = false; /* the row has one */
    qsort(found, n, sizeof *found, by_row);
    for (uint32_t i = 0; i < n; i++) {
        candidate c = found[i];
        c.first = i == 0 || found[i - 1].row != c.row;
        if (c.first) upright = false;
        if (!c.first && (upright || c.orientation != 0)) continue;
        upright = upright || c.orientation == 0;
        found[kept++] = c;
    }
    return kept;
}

/* Finds the candidates of a row: the nearest rows, each in its nearest orientation, and the nearest
 * upright ones, so that more orientations lose no upright pair. `heap` has the results of its queries. */
static uint32_t find_candidates(const searching *x, worker *w, uint32_t row, const leat__near_heap *heap)
{
    const leat__dedup_rows *r = x->s->rows;
    const uint32_t orientations = x->s->opts->orientations;
    uint32_t n = 0, kept = 0, any = 0, upright = 0;
    for (uint32_t e = r->row[row].entry; e < r->row[row].entry + r->row[row].entries; e++)
        for (uint32_t o = 0; o < orientations; o++)
            n = take(x, w, row, heap++, r->entry.window[e - r->entry.first], o, n);
    n = keep_nearest(w->found, n);
    qsort(w->found, n, sizeof *w->found, by_rank);
    for (uint32_t i = 0; i < n; i++) {
        const candidate c = w->found[i];
        const bool among_any = c.first && any++ < CANDIDATES;
        const bool among_upright = c.orientation == 0 && upright++ < CANDIDATES;
        if (among_any || among_upright) w->found[kept++] = c;
    }
    return kept;
}

/* ---- comparing ---- */

static int thumb_of(const searching *x, worker *w, uint32_t row, uint8_t *thumb, leat_error *err)
{
    const leat__dedup_rows *r = x->s->rows;
    const uint32_t pack = r->row[row].pack;
    return leat__image_columns_thumb(x->packs[pack], row - r->first[pack], &w->room, thumb, err);
}

/* Prepares the row in one orientation for comparison, only once. */
static int make_own(const searching *x, worker *w, uint32_t row, unsigned orientation, uint8_t *ready,
                    leat_error *err)
{
    uint8_t thumb[LEAT__THUMB_BYTES];
    if (*ready >> orientation & 1) return 0;
    LEAT_TRY(thumb_of(x, w, row, thumb, err));
    leat__match_side_make(&w->own[orientation], thumb, orientation);
    *ready |= (uint8_t)(1 << orientation);
    return 0;
}

/* Decides which of two images is turned to the orientation of the other. The choice does not depend on their
 * order, because the similarities of both ways differ a little. */
static bool turns_own(const searching *x, uint32_t row, uint32_t other)
{
    const leat__dedup_row *r = x->s->rows->row;
    return r[row].content_hash < r[other].content_hash;
}

static int compare(const searching *x, worker *w, portion *p, uint32_t row, const candidate *c,
                   uint8_t *ready, leat_error *err)
{
    const leat_dedup_images_opts *o = x->s->opts;
    const bool turn_own = turns_own(x, row, c->row);
    const unsigned own = turn_own ? c->orientation : 0,
                   other = turn_own ? 0 : leat__orientation_inverse(c->orientation);
    const leat__match_need need = {LEAT_MIN((float)o->probable, NEED_MOST), c->rank};
    uint8_t thumb[LEAT__THUMB_BYTES];
    leat__image_pair pair = leat__image_pair_of(row, c->row, c->orientation, 1 - c->rank);
    LEAT_TRY(thumb_of(x, w, c->row, thumb, err));
    LEAT_TRY(make_own(x, w, row, own, ready, err));
    leat__match_turn(thumb, other, w->other.luma);
    if (!c->sure || leat__match_share_plain(w->own[own].luma, w->other.luma)) {
        leat__match_side_make(&w->other, thumb, other);
        pair.similarity = leat__match(&w->own[own], &w->other, o->windows != 0, &need);
        p->compared++;
    }
    pair.similarity = LEAT_MIN(pair.similarity, UNEQUAL_MOST);
    if (pair.similarity < o->probable) return 0;
    pair.probable = pair.similarity < o->threshold;
    return leat__image_pairs_add(&p->pairs, &pair, err);
}

static int search_rows(const searching *x, worker *w, portion *p, leat_error *err)
{
    const leat__near_heap *heap = NULL;
    uint32_t asked = p->first; /* rows before this one have been queried */
    for (uint32_t row = p->first; row < p->end; row++) {
        uint8_t ready = 0;
        const leat__dedup_row *r = &x->s->rows->row[row];
        if (!is_searched(x, row)) continue;
        if (x->blocks) {
            heap = leat__dedup_blocks_found(x->blocks, r->entry, 0);
        } else if (row >= asked) {
            asked = ask(x, w, row, p->end);
            heap = w->heap;
        }
        const uint32_t n = find_candidates(x, w, row, heap);
        for (uint32_t i = 0; i < n; i++) LEAT_TRY(compare(x, w, p, row, &w->found[i], &ready, err));
        heap += r->entries * x->s->opts->orientations;
    }
    return 0;
}

/* ---- the saved state ---- */

/* The progress of a search. The saved state begins with it; the pairs follow. */
typedef struct search_at {
    uint64_t next, candidates, pairs; /* next: the next row */
} search_at;

/* Saves the state. If that fails, for example on a full disk, the run continues without it. */
static void save(const leat__dedup_search *s, uint32_t next)
{
    search_at at = {next, s->candidates, s->pairs->count};
    const leat__saved_part parts[] = {{&at, sizeof at},
                                      {s->pairs->pair, (size_t)at.pairs * sizeof *s->pairs->pair}};
    (void)!leat__saved_store(s->saved, parts, LEAT_COUNT(parts), NULL);
}

static bool is_sound(const leat__dedup_search *s, const search_at *at, uint64_t pairs)
{
    const leat__image_pair *p = s->pairs->pair;
    if (at->next > s->rows->count || at->pairs != pairs) return false;
    for (uint64_t i = 0; i < pairs; i++)
        if (p[i].a >= p[i].b || p[i].b >= s->rows->count || p[i].orientation >= LEAT__ORIENTATIONS)
            return false;
    return true;
}

static int resume(leat__dedup_search *s, bool *found, leat_error *err)
{
    search_at at;
    uint64_t bytes = 0;
    *found = false;
    if (!s->saved) return 0;
    LEAT_TRY(leat__saved_size(s->saved, &bytes, err));
    if (bytes < sizeof at || (bytes - sizeof at) % sizeof *s->pairs->pair != 0) return 0;
    const uint64_t pairs = (bytes - sizeof at) / sizeof *s->pairs->pair;
    s->pairs->pair = leat__alloc_array(LEAT__MEM_CURATE, LEAT_MAX(pairs, 1), sizeof *s->pairs->pair);
    if (!s->pairs->pair) return leat__fail_nomem(err, (size_t)bytes, "pairs");
    s->pairs->room = LEAT_MAX(pairs, 1);
    const leat__saved_part parts[] = {{&at, sizeof at},
                                      {s->pairs->pair, (size_t)pairs * sizeof *s->pairs->pair}};
    LEAT_TRY(leat__saved_load(s->saved, parts, LEAT_COUNT(parts), found, err));
    if (*found) *found = is_sound(s, &at, pairs);
    if (!*found) return 0;
    s->pairs->count = pairs;
    s->candidates = at.candidates;
    s->from = (uint32_t)at.next;
    return 0;
}

/* ---- flow ---- */

static void release_portion(void *cookie, void *data)
{
    portion *p = data;
    (void)cookie;
    leat__free(p->pairs.pair);
    leat__free(p);
}

static int stage_rows(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    searching *x = cookie;
    if (x->next >= x->end) return LEAT_FLOW_END;
    portion *p = LEAT_NEW(CURATE, portion);
    if (!p) return leat__fail_nomem(err, sizeof *p, "rows");
    p->first = x->next;
    p->end = x->next = LEAT_MIN(p->first + PORTION, x->end);
    task->data = p;
    task->release = release_portion;
    task->bytes = sizeof *p;
    return 0;
}

static void teardown_search(void *cookie, void *ctx)
{
    worker *w = ctx;
    (void)cookie;
    leat__buf_reset(&w->room);
    leat__free(w->scratch);
    leat__free(w->near);
    leat__free(w);
}

static int setup_search(void *cookie, const leat_worker *worker_info, void **ctx, leat_error *err)
{
    searching *x = cookie;
    worker *w = LEAT_NEW(CURATE, worker);
    (void)worker_info;
    if (!w) return leat__fail_nomem(err, sizeof *w, "a search");
    leat__buf_init(&w->room, LEAT__MEM_CURATE, ROW_MOST);
    if (x->index) {
        w->scratch = leat__alloc_array(LEAT__MEM_CURATE, leat__image_index_scratch(x->index), 1);
        w->near = leat__alloc_array(LEAT__MEM_CURATE, LEAT__NEAR_QUERIES * LEAT__DEDUP_ROOM, sizeof *w->near);
    }
    if (x->index && (!w->scratch || !w->near)) {
        teardown_search(x, w);
        return leat__fail_nomem(err, 0, "a search");
    }
    *ctx = w;
    return 0;
}

static int stage_search(void *cookie, void *ctx, leat_task *task, leat_error *err)
{
    portion *p = task->data;
    LEAT_TRY(search_rows(cookie, ctx, p, err));
    task->bytes = sizeof *p + p->pairs.room * sizeof *p->pairs.pair;
    return 0;
}

static int take_all(searching *x, leat_flow *flow, leat_error *err)
{
    leat__dedup_search *s = x->s;
    for (;;) {
        leat_task *task = NULL;
        LEAT_TRY(leat_flow_next(flow, &task, -1, err));
        if (!task) return 0;
        portion *p = task->data;
        int rc = 0;
        s->candidates += p->compared;
        for (uint64_t i = 0; i < p->pairs.count && rc == 0; i++)
            rc = leat__image_pairs_add(s->pairs, &p->pairs.pair[i], err);
        const uint32_t done = p->end;
        leat_task_release(task);
        if (rc != 0) return rc;
        const bool stop = s->tell(s->cookie, done, s->rows->count, s->pairs->count) != 0;
        if (s->saved && (stop || leat__saved_due(s->saved))) save(s, done);
        if (stop) return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
}

static int add_stages(leat_flow *flow, searching *x, leat_error *err)
{
    leat_stage rows, search;
    leat_stage_init(&rows);
    rows.kind = LEAT_STAGE_SOURCE;
    rows.name = "rows";
    rows.bytes_out = sizeof(portion);
    rows.cookie = x;
    rows.process = stage_rows;
    LEAT_TRY(leat_flow_add(flow, &rows, err));
    leat_stage_init(&search);
    search.kind = LEAT_STAGE_MAP;
    search.name = "search";
    search.ram = sizeof(worker);
    search.bytes_out = sizeof(portion) + 4096;
    search.cookie = x;
    search.setup = setup_search;
    search.teardown = teardown_search;
    search.process = stage_search;
    return leat_flow_add(flow, &search, err);
}

static int search_near(searching *x, leat_error *err)
{
    const leat_dedup_images_opts *o = x->s->opts;
    leat_pool *pool = NULL;
    leat_flow *flow = NULL;
    leat_budget *budget = NULL;
    leat_pool_opts po;
    leat_flow_opts fo;
    int rc;
    leat_pool_opts_init(&po);
    po.threads = o->threads;
    LEAT_GO(rc, out, leat_pool_open(&pool, &po, err));
    LEAT_GO(rc, out, leat_budget_open(&budget, 0, err));
    leat_flow_opts_init(&fo);
    fo.name = "dedup";
    fo.pool = pool;
    fo.budget = budget;
    fo.threads = o->threads;
    fo.prefetch = 2 + leat_pool_threads(pool);
    fo.log = o->log;
    LEAT_GO(rc, out, leat_flow_open(&flow, &fo, err));
    LEAT_GO(rc, out, add_stages(flow, x, err));
    LEAT_GO(rc, out, leat_flow_start(flow, err));
    LEAT_GO(rc, out, take_all(x, flow, err));
out:
    leat_flow_close(&flow);
    leat_budget_close(&budget);
    leat_pool_close(&pool);
    return rc;
}

/* ---- equal content ---- */

typedef struct hashed {
    uint64_t hash;
    uint32_t row;
} hashed;

static int by_hash(const void *x, const void *y)
{
    const hashed *a = x, *b = y;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Pairs each row of a group of equal images with the first of the group. Across packs, rows of the
 * first one's pack are paired with the first row of another pack. */
static int pair_group(leat__dedup_search *s, const hashed *h, size_t n, leat_error *err)
{
    const leat__dedup_row *r = s->rows->row;
    size_t own = 1; /* rows of the first one's pack */
    while (s->opts->across && own < n && r[h[own].row].pack == r[h[0].row].pack) own++;
    if (s->opts->across && own == n) return 0;
    for (size_t i = 1; i < n; i++) {
        const leat__image_pair pair = leat__image_pair_of(h[i].row, h[i < own ? own : 0].row, 0, 1);
        LEAT_TRY(leat__image_pairs_add(s->pairs, &pair, err));
    }
    return 0;
}

static int search_equal(leat__dedup_search *s, leat_error *err)
{
    hashed *h = LEAT_NEW_ARRAY(CURATE, hashed, LEAT_MAX(s->rows->count, 1));
    size_t n = 0;
    int rc = 0;
    if (!h) return leat__fail_nomem(err, s->rows->count * sizeof *h, "hashes");
    for (uint32_t i = 0; i < s->rows->count; i++)
        if (s->rows->row[i].content_hash != 0) h[n++] = (hashed){s->rows->row[i].content_hash, i};
    qsort(h, n, sizeof *h, by_hash);
    for (size_t i = 0, end; i < n && rc == 0; i = end) {
        for (end = i + 1; end < n && h[end].hash == h[i].hash;) end++;
        rc = pair_group(s, h + i, end - i, err);
    }
    leat__free(h);
    return rc;
}

static int search_blocks(searching *x, leat_error *err)
{
    LEAT_TRY(leat__dedup_blocks_open(&x->blocks, x->s, err));
    int rc = 0;
    do {
        rc = leat__dedup_blocks_next(x->blocks, &x->next, &x->end, err);
        if (rc == LEAT_ECANCELED && x->s->saved) save(x->s, x->next);
        if (rc == 0 && x->next < x->end) rc = search_near(x, err);
    } while (rc == 0 && x->end < x->s->rows->count);
    leat__dedup_blocks_close(&x->blocks);
    return rc;
}

bool leat__dedup_search_stopped(void *search)
{
    const leat__dedup_search *s = search;
    return s->tell(s->cookie, s->from, s->rows->count, s->pairs->count) != 0;
}

static int open_index(searching *x, leat_error *err)
{
    leat__index_work work = {.stop = leat__dedup_search_stopped, .cookie = x->s};
    const leat__dedup_rows *r = x->s->rows;
    LEAT_TRY(leat__thread_team_open(&work.team, x->s->opts->threads, err));
    int rc = leat__image_index_open(&x->index, r->entry.coarse, r->entries, &work, err);
    leat__thread_team_close(&work.team);
    return rc;
}

static int search_memory(searching *x, leat_error *err)
{
    LEAT_TRY(open_index(x, err));
    x->next = x->s->from;
    x->end = x->s->rows->count;
    int rc = search_near(x, err);
    leat__image_index_close(&x->index);
    return rc;
}

/* Opens the columns for reading by all threads. */
static int open_packs(searching *x, leat_error *err)
{
    const uint32_t packs = x->s->rows->packs;
    int rc = 0;
    x->packs = LEAT_NEW_ARRAY(CURATE, leat_pack *, LEAT_MAX(packs, 1));
    if (!x->packs) return leat__fail_nomem(err, packs * sizeof *x->packs, "packs");
    for (uint32_t i = 0; i < packs && rc == 0; i++)
        rc = leat__image_columns_pack(&x->packs[i], x->s->columns[i],
                                      LEAT_MAX(LEAT__COLUMNS_CACHE / packs, 1), err);
    return rc;
}

static void close_packs(searching *x)
{
    for (uint32_t i = 0; x->packs && i < x->s->rows->packs; i++) leat_pack_close(&x->packs[i]);
    leat__free(x->packs);
}

int leat__dedup_search_run(leat__dedup_search *s, leat_error *err)
{
    searching x = {.s = s};
    bool resumed = false;
    int rc = 0;
    LEAT_TRY(resume(s, &resumed, err));
    if (!resumed) LEAT_TRY(search_equal(s, err));
    if (s->from < s->rows->count) {
        rc = open_packs(&x, err);
        if (rc == 0) rc = s->rows->spill ? search_blocks(&x, err) : search_memory(&x, err);
        close_packs(&x);
    }
    if (rc == 0 && s->saved) save(s, s->rows->count); /* writing takes a while, too */
    leat__image_pairs_sort(s->pairs);
    return rc;
}
