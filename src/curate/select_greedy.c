/* SPDX-License-Identifier: Apache-2.0
 *
 * See select_greedy.h. Each member of the team has a range of rows, with one heap per group, ordered by
 * the bound without the group's factor. For each row it is known with how many of the chosen rows it was
 * compared.
 */
#include "curate/select_greedy.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "probe/cpu.h"

#define BLOCK 32    /* chosen rows compared with a row at a time */
#define ALONE 20000 /* with fewer distances per choice the caller works alone */
#define NONE UINT64_MAX

typedef struct heap {
    uint32_t *row;
    uint64_t count;
} heap;

typedef struct best {
    uint64_t row;
    uint32_t group;
    double score; /* as a logarithm */
    uint64_t distances;
} best;

typedef struct pick {
    double score;
    uint64_t row;
} pick;

/* Numbers of the saved state. */
typedef struct progress {
    uint64_t chosen, distances;
} progress;

typedef struct greedy {
    leat__greedy *g;
    void (*compare)(const float *a, const float *b, size_t dim, size_t count, float *out);
    float *near;    /* squared distance to the nearest of the chosen rows it was compared with */
    uint32_t *seen; /* number of chosen rows it was compared with */
    double *bound;  /* logarithm of the upper bound of the score, without the factor of the group */
    float *centres; /* vectors of the chosen rows */
    uint64_t centre_count, centre_room;
    uint32_t groups; /* combined groups of all balances */
    uint32_t *of;    /* group of each row; NULL when there is only one */
    uint32_t *first; /* one row of each group, which gives its groups in the balances */
    double *factor;  /* logarithm of each group's factor, for the current choice */
    double base;     /* see base_of */
    uint32_t *rows;  /* memory of all heaps */
    heap *heaps;     /* by member, then group */
    best *found;     /* by member */
    uint32_t members;
    _Atomic uint64_t reached; /* highest exact score of this choice, in the bits of `ordered` */
    pick *picks;              /* the choices, for the saved state */
    progress at;
} greedy;

uint64_t leat__greedy_bytes(uint64_t rows, uint64_t centres, size_t dim)
{
    return rows * (4 + 4 + 8 + 4 + 4) + centres * dim * 4 * 3 / 2 + centres * sizeof(pick);
}

/* ---- scores ---- */

static double value_of(const greedy *s, uint32_t row)
{
    const leat__greedy *g = s->g;
    const double weight = g->weight ? g->weight[row] : 0;
    return g->vectors ? weight + g->diversity * 0.5 * log2((double)s->near[row]) : weight;
}

static double factor_of(const greedy *s, uint32_t group)
{
    const leat__greedy *g = s->g;
    double factor = 0;
    for (uint32_t b = 0; b < g->balances; b++) {
        const leat__balance *x = &g->balance[b];
        const uint32_t at = x->of[s->first[group]];
        factor += x->strength * log2(x->want[at] / ((double)x->have[at] + 0.5));
    }
    return factor;
}

/* Returns the logarithm of what all factors lack because `want` is not divided by its sum. */
static double base_of(const leat__greedy *g)
{
    double base = 0;
    for (uint32_t b = 0; b < g->balances; b++)
        if (g->balance[b].sum > 0) base -= g->balance[b].strength * log2(g->balance[b].sum);
    return base;
}

/* ---- heaps: the highest bound first, the lower row of equal ones ---- */

static bool above(const greedy *s, uint32_t a, uint32_t b)
{
    return s->bound[a] != s->bound[b] ? s->bound[a] > s->bound[b] : a < b;
}

static void sift_down(const greedy *s, heap *h, uint64_t at)
{
    const uint32_t row = h->row[at];
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= h->count) break;
        if (child + 1 < h->count && above(s, h->row[child + 1], h->row[child])) child++;
        if (above(s, row, h->row[child])) break;
        h->row[at] = h->row[child];
        at = child;
    }
    h->row[at] = row;
}

static void pop(const greedy *s, heap *h)
{
    h->row[0] = h->row[--h->count];
    if (h->count > 0) sift_down(s, h, 0);
}

/* ---- one choice ---- */

/* Compares the row with the chosen rows it was not yet compared with, until it is no longer the top
 * of its heap. Returns true when it was compared with all. */
static bool catch_up(const greedy *s, const heap *h, uint32_t row, double limit, uint64_t *distances)
{
    const leat__greedy *g = s->g;
    float out[BLOCK];
    if (!g->vectors) return true;
    while (s->seen[row] < s->centre_count) {
        const uint64_t n = LEAT_MIN(s->centre_count - s->seen[row], BLOCK);
        s->compare(leat__vectors_at(g->vectors, row), s->centres + s->seen[row] * g->vectors->dim,
                   g->vectors->dim, (size_t)n, out);
        for (uint64_t i = 0; i < n; i++)
            if (out[i] < s->near[row]) s->near[row] = out[i];
        s->seen[row] += (uint32_t)n;
        *distances += n;
        s->bound[row] = value_of(s, row);
        if (s->bound[row] < limit || sqrt((double)s->near[row]) < g->min_distance) break;
        if (h->count > 1 && above(s, h->row[1], row)) break;
        if (h->count > 2 && above(s, h->row[2], row)) break;
    }
    return s->seen[row] == s->centre_count;
}

#define SIGN (UINT64_C(1) << 63)

/* Maps doubles to integers in the same order. */
static uint64_t ordered(double score)
{
    uint64_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

static double unordered(uint64_t order)
{
    const uint64_t bits = order & SIGN ? order & ~SIGN : ~order;
    double score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

static double reached(const greedy *s)
{
    return unordered(atomic_load_explicit(&s->reached, memory_order_relaxed));
}

static void reach(greedy *s, double score)
{
    const uint64_t bits = ordered(score);
    uint64_t old = atomic_load_explicit(&s->reached, memory_order_relaxed);
    while (old < bits && !atomic_compare_exchange_weak(&s->reached, &old, bits)) {
    }
}

/* Finds the best row of a heap, and replaces *b when that row is better. */
static void search_heap(greedy *s, uint32_t member, uint32_t group, best *b)
{
    heap *h = &s->heaps[(uint64_t)member * s->groups + group];
    const double factor = s->factor[group];
    while (h->count > 0) {
        const uint32_t row = h->row[0];
        const double limit = reached(s);
        if (s->bound[row] + factor < limit) return;
        /* slightly less, for rounding; NaN, which no bound is below, when both are -infinity */
        const double least = limit - factor - 1e-12 * (fabs(limit) + fabs(factor));
        const bool whole = catch_up(s, h, row, least, &b->distances);
        if (s->g->vectors && sqrt((double)s->near[row]) < s->g->min_distance) {
            s->g->state[row] = LEAT__ROW_NEAR;
            pop(s, h);
            continue;
        }
        s->bound[row] = value_of(s, row);
        sift_down(s, h, 0);
        if (!whole || h->row[0] != row) continue;
        const double score = s->bound[row] + factor;
        if (b->row == NONE || score > b->score || (score == b->score && row < b->row)) {
            b->row = row;
            b->group = group;
            b->score = score;
        }
        reach(s, score);
        return;
    }
}

static void search_member(void *cookie, uint32_t member, uint32_t members)
{
    greedy *s = cookie;
    best *b = &s->found[member];
    (void)members;
    if (member >= s->members) return;
    *b = (best){.row = NONE};
    for (uint32_t group = 0; group < s->groups; group++) search_heap(s, member, group, b);
}

static int add_centre(greedy *s, uint64_t row, leat_error *err)
{
    const leat__vectors *v = s->g->vectors;
    /* A row of the previous selection may have no vector. */
    if (!v || leat__vectors_is_zero(leat__vectors_at(v, row), v->dim)) return 0;
    if (s->centre_count == s->centre_room) {
        const uint64_t more = s->centre_room ? s->centre_room + s->centre_room / 2 : 1024;
        float *grown = leat__realloc(LEAT__MEM_CURATE, s->centres, (size_t)more * v->dim * sizeof *grown);
        if (!grown) return leat__fail_nomem(err, more * v->dim * sizeof *grown, "chosen vectors");
        s->centres = grown;
        s->centre_room = more;
    }
    memcpy(s->centres + s->centre_count++ * v->dim, leat__vectors_at(v, row), v->dim * sizeof(float));
    return 0;
}

static int choose(greedy *s, uint64_t row, leat_error *err)
{
    for (uint32_t b = 0; b < s->g->balances; b++) s->g->balance[b].have[s->g->balance[b].of[row]]++;
    return add_centre(s, row, err);
}

/* Returns the score itself. 0 stays 0: the row equals a chosen one. */
static double product(double logarithm)
{
    if (logarithm == -INFINITY) return 0;
    return LEAT_MAX(LEAT_MIN(exp2(logarithm), DBL_MAX), DBL_MIN);
}

/* ---- the saved state ---- */

enum { PARTS = 5 };

/* Lists the arrays of the saved state. Old distances are upper bounds, so no others are needed to resume. */
static void list_parts(greedy *s, leat__saved_part parts[PARTS])
{
    const leat__greedy *g = s->g;
    parts[0] = (leat__saved_part){&s->at, sizeof s->at};
    parts[1] = (leat__saved_part){s->picks, (size_t)g->count * sizeof *s->picks};
    parts[2] = (leat__saved_part){g->state, (size_t)g->rows};
    parts[3] = (leat__saved_part){s->near, (size_t)g->rows * sizeof *s->near};
    parts[4] = (leat__saved_part){s->seen, (size_t)g->rows * sizeof *s->seen};
}

/* Hashes everything that the choice depends on. */
static int make_key(const leat__greedy *g, leat_error *err)
{
    const double numbers[] = {(double)g->rows, (double)g->count,    g->diversity,
                              g->min_distance, (double)g->balances, (double)g->vectors->dim};
    leat__hasher *h = leat__hasher_open(0);
    if (!h) return leat__fail_nomem(err, 0, "a hash");
    leat__hasher_update(h, numbers, sizeof numbers);
    leat__hasher_update(h, g->state, (size_t)g->rows);
    if (g->weight) leat__hasher_update(h, g->weight, (size_t)g->rows * sizeof *g->weight);
    for (uint32_t b = 0; b < g->balances; b++) {
        const leat__balance *x = &g->balance[b];
        leat__hasher_update(h, &x->strength, sizeof x->strength);
        leat__hasher_update(h, x->of, (size_t)g->rows * sizeof *x->of);
        leat__hasher_update(h, x->want, x->groups * sizeof *x->want);
        leat__hasher_update(h, x->have, x->groups * sizeof *x->have);
    }
    leat__hasher_update(h, g->vectors->row, (size_t)g->rows * g->vectors->dim * sizeof(float));
    g->saved->key = leat__hasher_value128(h);
    leat__hasher_close(&h);
    return 0;
}

/* Saves the state. If that fails, for example on a full disk, the run continues without it. */
static void save(greedy *s)
{
    leat__saved_part parts[PARTS];
    list_parts(s, parts);
    s->at.distances = s->g->distances;
    (void)!leat__saved_store(s->g->saved, parts, PARTS, NULL);
}

static bool is_sound(const greedy *s)
{
    const leat__greedy *g = s->g;
    if (s->at.chosen > g->count) return false;
    for (uint64_t i = 0; i < s->at.chosen; i++)
        if (s->picks[i].row >= g->rows || g->state[s->picks[i].row] != LEAT__ROW_CHOSEN) return false;
    return true;
}

static void begin_rows(greedy *s)
{
    memset(&s->at, 0, sizeof s->at);
    memset(s->seen, 0, (size_t)s->g->rows * sizeof *s->seen);
    for (uint64_t i = 0; i < s->g->rows; i++) s->near[i] = (float)(LEAT__SELECT_FAR * LEAT__SELECT_FAR);
}

/* Resumes the choice of an interrupted run. */
static int resume(greedy *s, leat_error *err)
{
    leat__greedy *g = s->g;
    leat__saved_part parts[PARTS];
    bool found = false;
    uint8_t *own = leat__alloc(LEAT__MEM_CURATE, LEAT_MAX(g->rows, 1));
    s->picks = LEAT_NEW_ARRAY(CURATE, pick, LEAT_MAX(g->count, 1));
    if (!own || !s->picks) {
        leat__free(own);
        return leat__fail_nomem(err, g->count * sizeof *s->picks, "choices");
    }
    memcpy(own, g->state, (size_t)g->rows);
    list_parts(s, parts);
    int rc = make_key(g, err);
    if (rc == 0) rc = leat__saved_load(g->saved, parts, PARTS, &found, err);
    if (!found || !is_sound(s)) {
        memcpy(g->state, own, (size_t)g->rows);
        begin_rows(s);
    }
    leat__free(own);
    return rc;
}

/* Passes the choices of the saved state to the caller. */
static int replay(greedy *s, leat_error *err)
{
    leat__greedy *g = s->g;
    g->resumed = s->at.chosen;
    g->distances = s->at.distances;
    for (uint64_t i = 0; i < s->at.chosen; i++) {
        const uint64_t row = s->picks[i].row;
        LEAT_TRY(choose(s, row, err));
        if (g->take(g->cookie, row, s->picks[i].score, sqrt((double)s->near[row])) != 0)
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    return 0;
}

/* ---- all choices ---- */

static int take_choice(greedy *s, uint64_t row, double score, leat_error *err)
{
    leat__greedy *g = s->g;
    const double distance = g->vectors ? sqrt((double)s->near[row]) : LEAT__SELECT_FAR;
    g->state[row] = LEAT__ROW_CHOSEN;
    if (s->picks) s->picks[s->at.chosen++] = (pick){score, row};
    LEAT_TRY(choose(s, row, err));
    const int stop = g->take(g->cookie, row, score, distance);
    if (s->picks && (stop != 0 || leat__saved_due(g->saved))) save(s);
    return stop != 0 ? leat__fail(err, LEAT_ECANCELED, "the run was stopped") : 0;
}

static int run_choices(greedy *s, leat_error *err)
{
    leat__greedy *g = s->g;
    uint64_t last = NONE; /* distances of the last choice */
    for (uint64_t n = s->at.chosen; n < g->count; n++) {
        best top = {.row = NONE};
        uint32_t from = 0;
        for (uint32_t i = 0; i < s->groups; i++) s->factor[i] = factor_of(s, i);
        atomic_store(&s->reached, ordered(-INFINITY));
        if (last >= ALONE) leat__thread_team_run(g->crew, search_member, s);
        for (uint32_t m = 0; m < s->members && last < ALONE; m++) search_member(s, m, s->members);
        last = 0;
        for (uint32_t m = 0; m < s->members; m++) {
            const best *b = &s->found[m];
            last += b->distances;
            if (b->row == NONE || (top.row != NONE && b->score <= top.score)) continue;
            top = *b; /* members have ascending rows: the first of equal scores is the lower row */
            from = m;
        }
        g->distances += last;
        if (top.row == NONE) return 0;
        pop(s, &s->heaps[(uint64_t)from * s->groups + top.group]);
        LEAT_TRY(take_choice(s, top.row, product(top.score + s->base), err));
    }
    return 0;
}

/* ---- set-up ---- */

/* Combines the groups of all balances: of[row] becomes old * count + next, then a dense number. */
typedef struct pair {
    uint64_t both;
    uint32_t row;
} pair;

static int by_pair(const void *x, const void *y)
{
    const pair *a = x, *b = y;
    if (a->both != b->both) return a->both < b->both ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int join_groups(greedy *s, leat_error *err)
{
    const leat__greedy *g = s->g;
    s->of = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(g->rows, 1));
    pair *p = LEAT_NEW_ARRAY(CURATE, pair, LEAT_MAX(g->rows, 1));
    if (!s->of || !p) {
        leat__free(p);
        return leat__fail_nomem(err, g->rows * sizeof *p, "groups");
    }
    for (uint32_t b = 0; b < g->balances; b++) {
        for (uint64_t i = 0; i < g->rows; i++)
            p[i] = (pair){(uint64_t)s->of[i] << 32 | g->balance[b].of[i], (uint32_t)i};
        qsort(p, (size_t)g->rows, sizeof *p, by_pair);
        s->groups = g->rows > 0;
        for (uint64_t i = 0; i < g->rows; i++) {
            s->groups += i > 0 && p[i].both != p[i - 1].both;
            s->of[p[i].row] = s->groups - 1;
        }
    }
    leat__free(p);
    return 0;
}

static uint32_t group_of(const greedy *s, uint64_t row)
{
    return s->of ? s->of[row] : 0;
}

/* Puts the open rows into the heaps of their members and groups. */
static int fill_heaps(greedy *s, leat_error *err)
{
    const leat__greedy *g = s->g;
    const uint64_t heaps = (uint64_t)s->members * s->groups;
    s->heaps = LEAT_NEW_ARRAY(CURATE, heap, LEAT_MAX(heaps, 1));
    s->rows = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(g->rows, 1));
    if (!s->heaps || !s->rows) return leat__fail_nomem(err, heaps * sizeof *s->heaps, "heaps");
    const uint64_t step = leat__ceil_div(LEAT_MAX(g->rows, 1), s->members);
    for (uint64_t i = 0; i < g->rows; i++)
        s->heaps[i / step * s->groups + group_of(s, i)].count += g->state[i] == LEAT__ROW_OPEN;
    uint32_t *at = s->rows;
    for (uint64_t h = 0; h < heaps; h++) {
        s->heaps[h].row = at;
        at += s->heaps[h].count;
        s->heaps[h].count = 0;
    }
    for (uint64_t i = 0; i < g->rows; i++) {
        heap *h = &s->heaps[i / step * s->groups + group_of(s, i)];
        if (g->state[i] == LEAT__ROW_OPEN) h->row[h->count++] = (uint32_t)i;
    }
    for (uint64_t h = 0; h < heaps; h++)
        for (uint64_t i = s->heaps[h].count / 2; i-- > 0;) sift_down(s, &s->heaps[h], i);
    return 0;
}

static int set_up(greedy *s, leat_error *err)
{
    const leat__greedy *g = s->g;
    const uint64_t n = LEAT_MAX(g->rows, 1);
    s->compare = leat__distance_dsp_for(leat__cpu_flags())->rows;
    s->members = (uint32_t)LEAT_MIN(leat__thread_team_size(g->crew), n);
    s->groups = 1;
    s->base = base_of(g);
    if (g->balances > 0) LEAT_TRY(join_groups(s, err));
    s->bound = LEAT_NEW_ARRAY(CURATE, double, n);
    s->near = LEAT_NEW_ARRAY(CURATE, float, n);
    s->seen = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    s->first = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(s->groups, 1));
    s->factor = LEAT_NEW_ARRAY(CURATE, double, LEAT_MAX(s->groups, 1));
    s->found = LEAT_NEW_ARRAY(CURATE, best, leat__thread_team_size(g->crew));
    if (!s->bound || !s->near || !s->seen || !s->first || !s->factor || !s->found)
        return leat__fail_nomem(err, n * 16, "scores");
    begin_rows(s);
    if (g->vectors && g->saved) LEAT_TRY(resume(s, err));
    for (uint64_t i = g->rows; i-- > 0;) {
        s->bound[i] = value_of(s, (uint32_t)i);
        s->first[group_of(s, i)] = (uint32_t)i;
    }
    for (uint64_t i = 0; i < g->rows; i++)
        if (g->state[i] == LEAT__ROW_PREVIOUS) LEAT_TRY(choose(s, i, err));
    LEAT_TRY(replay(s, err));
    return fill_heaps(s, err);
}

int leat__greedy_run(leat__greedy *g, leat_error *err)
{
    greedy s = {.g = g};
    int rc = set_up(&s, err);
    if (rc == 0) rc = run_choices(&s, err);
    leat__free(s.near);
    leat__free(s.seen);
    leat__free(s.bound);
    leat__free(s.centres);
    leat__free(s.of);
    leat__free(s.first);
    leat__free(s.factor);
    leat__free(s.rows);
    leat__free(s.heaps);
    leat__free(s.found);
    leat__free(s.picks);
    return rc;
}
