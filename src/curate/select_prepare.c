/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes everything that is known before the first row is chosen: see select_run.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/str.h"
#include "curate/neighbours.h"
#include "curate/select_run.h"
#include "pack/selection.h"
#include "probe/cpu.h"

#define NEIGHBOURS 20
#define FLOOR 0.001 /* lowest objective of a column: one number must not make a product 0 */
#define LEAST 1e-7  /* lowest similarity: smaller differences are lost in floats */
#define SHARE 1e-12 /* lowest share: what decimal shares of 1 leave by rounding is less */

const char *leat__select_where(const leat__selecting *s, uint32_t i)
{
    if (s->opts.where && i-- == 0) return s->opts.where;
    for (uint32_t k = 0; k < s->opts.strategy_count; k++)
        if (s->opts.strategies[k].kind == LEAT_SELECT_THRESHOLD && i-- == 0)
            return s->opts.strategies[k].where;
    return NULL;
}

bool leat__select_takes_vectors(const leat_select_strategy *of)
{
    return of->kind == LEAT_SELECT_DIVERSITY || of->kind == LEAT_SELECT_SIMILARITY ||
           of->kind == LEAT_SELECT_TYPICALITY;
}

const char *leat__select_vectors_of(const leat__selecting *s, const leat_select_strategy *of)
{
    return of->vectors ? of->vectors : s->opts.vectors;
}

const char *leat__select_field_of(const leat__selecting *s, const leat_select_strategy *of)
{
    return of->field ? of->field : s->opts.field;
}

/* ---- previous selection and thresholds ---- */

static int read_previous(leat__selecting *s, leat_pack *pack, leat_error *err)
{
    uint32_t field = 0;
    LEAT_TRY(leat__selection_field(pack, &field, err));
    LEAT_TRY(leat__pack_match_rows(pack, s->sheets.pack[0], err));
    const int order = leat_pack_field_find(pack, "order"), round = leat_pack_field_find(pack, "round");
    for (uint64_t i = 0; i < s->rows; i++) {
        int64_t on, at = -1, in = 0;
        LEAT_TRY(leat_pack_ints(pack, field, i, 1, &on, err));
        if (on == 0) continue;
        if (order >= 0 && leat_pack_field(pack, (uint32_t)order)->type == LEAT_FIELD_INT)
            LEAT_TRY(leat_pack_ints(pack, (uint32_t)order, i, 1, &at, err));
        if (round >= 0 && leat_pack_field(pack, (uint32_t)round)->type == LEAT_FIELD_INT)
            LEAT_TRY(leat_pack_ints(pack, (uint32_t)round, i, 1, &in, err));
        if (in < 0 || in >= UINT32_MAX || at < -1 || at >= INT64_MAX / 2)
            return leat__fail(err, LEAT_EDATA, "%s: row %llu has an invalid round (%lld) or order (%lld)",
                              leat_pack_path(pack), (unsigned long long)i, (long long)in, (long long)at);
        s->state[i] = LEAT__ROW_PREVIOUS;
        s->stats.previous++;
        s->round[i] = in;
        s->order[i] = at >= 0 ? at : s->next_order;
        s->next_order = LEAT_MAX(s->next_order, s->order[i] + 1);
        s->stats.round = LEAT_MAX(s->stats.round, (uint32_t)in + 1);
    }
    return 0;
}

static int open_previous(leat__selecting *s, leat_error *err)
{
    leat_pack *pack = NULL;
    if (!s->opts.previous) return 0;
    LEAT_TRY(leat_pack_open(&pack, s->opts.previous, NULL, err));
    int rc = read_previous(s, pack, err);
    leat_pack_close(&pack);
    return rc;
}

static int apply_thresholds(leat__selecting *s, leat_error *err)
{
    bool *meets = LEAT_NEW_ARRAY(CURATE, bool, LEAT_MAX(s->rows, 1));
    int rc = meets ? 0 : leat__fail_nomem(err, s->rows, "rows");
    for (uint32_t k = 0; rc == 0 && leat__select_where(s, k); k++) {
        memset(meets, true, (size_t)s->rows);
        rc = leat__column_packs_where(&s->sheets, leat__select_where(s, k), meets, err);
        for (uint64_t i = 0; i < s->rows && rc == 0; i++) {
            if (meets[i] || s->state[i] != LEAT__ROW_OPEN) continue;
            s->state[i] = (uint8_t)(LEAT__ROW_OUT + k);
            s->stats.excluded++;
        }
    }
    leat__free(meets);
    return rc;
}

/* ---- objectives that do not change ---- */

/* Adds an objective (above 0) to the weight of a row, as a logarithm. */
static void weigh(leat__selecting *s, const leat_select_strategy *of, uint64_t row, double objective)
{
    s->weight[row] += (of->strength != 0 ? of->strength : 1) * log2(objective);
}

static int add_weights(leat__selecting *s, const leat_select_strategy *of, double *value, leat_error *err)
{
    double low = INFINITY, high = -INFINITY;
    LEAT_TRY(leat__column_packs_numbers(&s->sheets, of->column, value, err));
    for (uint64_t i = 0; i < s->rows; i++) {
        if (s->state[i] != LEAT__ROW_OPEN || !isfinite(value[i])) continue;
        low = LEAT_MIN(low, value[i]);
        high = LEAT_MAX(high, value[i]);
    }
    const double by = isfinite(high - low) ? 1 : 0.5; /* the range itself may overflow a double */
    const double range = high * by - low * by;
    for (uint64_t i = 0; i < s->rows; i++) {
        if (s->state[i] != LEAT__ROW_OPEN) continue;
        if (isfinite(value[i])) {
            weigh(s, of, i, range > 0 ? FLOOR + (value[i] * by - low * by) / range : 1);
            continue;
        }
        s->state[i] = LEAT__ROW_UNKNOWN;
        s->stats.unknown++;
    }
    return 0;
}

static void add_random(leat__selecting *s, const leat_select_strategy *of, double *value)
{
    for (uint64_t i = 0; i < s->rows; i++) {
        leat__rng rng;
        leat__rng_init(&rng, of->seed, 0, i, 0);
        value[i] = 1 - leat__rng_double(&rng);
        weigh(s, of, i, value[i]);
    }
}

/* Leaves out rows that may be chosen but have no vector, such as images that cannot be read. */
static void drop_blank_rows(leat__selecting *s)
{
    for (uint64_t i = 0; i < s->rows; i++) {
        if (s->state[i] != LEAT__ROW_OPEN) continue;
        if (!leat__vectors_is_zero(leat__vectors_at(&s->vectors, i), s->vectors.dim)) continue;
        s->state[i] = LEAT__ROW_BLANK;
        s->stats.without_vector++;
    }
}

/* Reads the vectors of a strategy, unless they are those read last. */
static int want_vectors(leat__selecting *s, const leat_select_strategy *of, leat_error *err)
{
    leat_pack *pack = NULL;
    const char *path = leat__select_vectors_of(s, of), *field = leat__select_field_of(s, of);
    if (leat__str_eq(s->vectors_path, path) && leat__str_eq(s->vectors_field, field)) return 0;
    leat__vectors_reset(&s->vectors);
    s->vectors_path = NULL;
    LEAT_TRY(leat_pack_open(&pack, path, NULL, err));
    int rc = leat__pack_match_rows(pack, s->sheets.pack[0], err);
    if (rc == 0) rc = leat__vectors_read(&s->vectors, pack, field, err);
    if (rc == 0) {
        s->vectors_path = path;
        s->vectors_field = field;
        drop_blank_rows(s);
    }
    leat_pack_close(&pack);
    return rc;
}

typedef struct comparing {
    leat__selecting *s;
    const leat__vectors *query;
    double *value;
} comparing;

static void compare_rows(void *cookie, uint32_t member, uint32_t members)
{
    const comparing *c = cookie;
    const leat__vectors *v = &c->s->vectors, *q = c->query;
    const leat__distance_dsp *dsp = leat__distance_dsp_for(leat__cpu_flags());
    float out[64];
    for (uint64_t i = v->count * member / members; i < v->count * (member + 1) / members; i++) {
        float nearest = 4;
        for (uint64_t at = 0; at < q->count; at += 64) {
            const size_t n = (size_t)LEAT_MIN(q->count - at, 64);
            dsp->rows(leat__vectors_at(v, i), leat__vectors_at(q, at), v->dim, n, out);
            for (size_t k = 0; k < n; k++) nearest = LEAT_MIN(nearest, out[k]);
        }
        c->value[i] = 1 - (double)nearest / 4;
    }
}

/* Removes the rows without a vector. */
static void drop_blank_query(leat__vectors *q)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < q->count; i++) {
        const float *from = leat__vectors_at(q, i);
        if (leat__vectors_is_zero(from, q->dim)) continue;
        if (n < i) memcpy(q->row + n * q->dim, from, q->dim * sizeof *from);
        n++;
    }
    q->count = n;
}

static int add_similarity(leat__selecting *s, const leat_select_strategy *of, double *value, leat_error *err)
{
    leat_pack *pack = NULL;
    leat__vectors query = {0};
    LEAT_TRY(want_vectors(s, of, err));
    LEAT_TRY(leat_pack_open(&pack, of->query, NULL, err));
    int rc = leat__vectors_read(&query, pack, leat__select_field_of(s, of), err);
    leat_pack_close(&pack);
    if (rc == 0 && query.count == 0) rc = leat__fail(err, LEAT_EINVAL, "%s: has no rows", of->query);
    if (rc == 0) drop_blank_query(&query);
    if (rc == 0 && query.count == 0)
        rc = leat__fail(err, LEAT_EINVAL, "%s: all vectors are zeros or not finite", of->query);
    if (rc == 0 && query.length != s->vectors.length)
        rc = leat__fail(err, LEAT_EINVAL, "%s: has vectors of another length than %s", of->query,
                        s->vectors_path);
    if (rc == 0) {
        comparing c = {s, &query, value};
        leat__thread_team_run(s->crew, compare_rows, &c);
        for (uint64_t i = 0; i < s->rows; i++) weigh(s, of, i, LEAT_MAX(value[i], LEAST));
    }
    leat__vectors_reset(&query);
    return rc;
}

/* Stores the mean distance to the nearest rows. */
static void take_near(void *cookie, uint64_t row, const leat__neighbour *near, uint32_t count)
{
    const comparing *c = cookie;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += sqrt((double)near[i].distance);
    c->value[row] = count > 0 ? sum / count : LEAT__SELECT_FAR;
}

static int tell_near(void *cookie, uint64_t done, uint64_t total)
{
    const leat_select_opts *o = &((const comparing *)cookie)->s->opts;
    return o->progress ? o->progress(o->cookie, done, total, 0, 0) : 0;
}

/* Adds typicality: 1 / mean distance, scaled so that the most typical row has 1. */
static int add_typicality(leat__selecting *s, const leat_select_strategy *of, double *value, leat_error *err)
{
    double nearest = LEAT__SELECT_FAR;
    LEAT_TRY(want_vectors(s, of, err));
    comparing c = {s, NULL, value};
    const leat__neighbours n = {.vectors = &s->vectors,
                                .k = of->neighbours ? of->neighbours : NEIGHBOURS,
                                .crew = s->crew,
                                .take = take_near,
                                .tell = tell_near,
                                .cookie = &c};
    LEAT_TRY(leat__neighbours_run(&n, err));
    for (uint64_t i = 0; i < s->rows; i++) {
        value[i] = LEAT_MAX(value[i], FLOOR);
        nearest = LEAT_MIN(nearest, value[i]);
    }
    for (uint64_t i = 0; i < s->rows; i++) {
        value[i] = nearest / value[i];
        weigh(s, of, i, value[i]);
    }
    return 0;
}

/* ---- balance ---- */

static int by_code(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

static uint32_t group_of(const int64_t *codes, uint32_t groups, int64_t code)
{
    const int64_t *at = bsearch(&code, codes, groups, sizeof code, by_code);
    return at ? (uint32_t)(at - codes) : groups;
}

/* Sorts the codes and keeps each distinct one once; returns their number. */
static uint32_t distinct(int64_t *codes, uint64_t n)
{
    uint32_t groups = 0;
    if (n > 0) qsort(codes, (size_t)n, sizeof *codes, by_code);
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || codes[i] != codes[i - 1]) codes[groups++] = codes[i];
    return groups;
}

static int set_targets(leat__selecting *s, const leat_select_strategy *of, leat__balance *b,
                       const int64_t *codes, leat_error *err)
{
    enum { PRESENT = -1, ABSENT = -2 }; /* without a share; absent: no row that can be chosen has the code */
    double sum = 0;
    uint32_t others = 0, present = 0;
    for (uint32_t g = 0; g < b->groups; g++) {
        present += b->want[g] > 0;
        b->want[g] = b->want[g] > 0 ? PRESENT : ABSENT;
    }
    others = present;
    for (uint32_t i = 0; i < of->target_count; i++) {
        int64_t code;
        const double share = of->targets[i].share;
        LEAT_TRY(leat__column_packs_code_of(&s->sheets, of->column, of->targets[i].name, &code, err));
        if (!(share >= 0 && share <= 1))
            return leat__fail(err, LEAT_EINVAL, "balance: the share of %s is %g, not between 0 and 1",
                              of->targets[i].name, share);
        sum += share;
        const uint32_t g = group_of(codes, b->groups, code);
        if (g < b->groups && b->want[g] >= 0)
            return leat__fail(err, LEAT_EINVAL, "balance: %s has two shares", of->targets[i].name);
        if (g == b->groups) continue; /* no row has this code */
        others -= b->want[g] == PRESENT;
        b->want[g] = share;
    }
    if (sum > 1 + 1e-9)
        return leat__fail(err, LEAT_EINVAL, "balance: the shares add up to %g, more than 1", sum);
    if (present > 0 && others == 0 && sum == 0)
        return leat__fail(err, LEAT_EINVAL, "balance: all shares of %s are 0", of->column);
    for (uint32_t g = 0; g < b->groups; g++)
        if (b->want[g] < 0) b->want[g] = b->want[g] == PRESENT ? LEAT_MAX(1 - sum, 0) / others : 0;
    return 0;
}

static int fill_balance(leat__selecting *s, const leat_select_strategy *of, leat__balance *b, int64_t *value,
                        int64_t *codes, leat_error *err)
{
    LEAT_TRY(leat__column_packs_codes(&s->sheets, of->column, value, err));
    memcpy(codes, value, (size_t)s->rows * sizeof *codes);
    b->groups = distinct(codes, s->rows);
    b->want = LEAT_NEW_ARRAY(CURATE, double, LEAT_MAX(b->groups, 1));
    b->have = LEAT_NEW_ARRAY(CURATE, uint64_t, LEAT_MAX(b->groups, 1));
    if (!b->want || !b->have) return leat__fail_nomem(err, b->groups * 16, "groups");
    for (uint64_t i = 0; i < s->rows; i++) {
        b->of[i] = group_of(codes, b->groups, value[i]);
        if (s->state[i] != LEAT__ROW_OPEN) continue;
        if (of->shares == LEAT_SHARES_INPUT) b->want[b->of[i]] += 1;
        else b->want[b->of[i]] = 1;
    }
    return of->shares == LEAT_SHARES_TARGET ? set_targets(s, of, b, codes, err) : 0;
}

static int add_balance(leat__selecting *s, const leat_select_strategy *of, double *shown, leat_error *err)
{
    leat__balance *b = &s->balance[s->balances++];
    const uint64_t n = LEAT_MAX(s->rows, 1);
    int64_t *value = LEAT_NEW_ARRAY(CURATE, int64_t, n), *codes = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    b->of = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    b->strength = of->strength != 0 ? of->strength : 1;
    int rc = value && codes && b->of ? fill_balance(s, of, b, value, codes, err)
                                     : leat__fail_nomem(err, n * 16, "groups");
    for (uint32_t g = 0; rc == 0 && g < b->groups; g++) b->sum += b->want[g];
    for (uint64_t i = 0; rc == 0 && i < s->rows; i++) shown[i] = (double)value[i];
    leat__free(value);
    leat__free(codes);
    return rc;
}

/* Leaves out the rows of groups without a share. Called last: they count in the range of weights and in the
 * shares of other balances. */
static void drop_shareless(leat__selecting *s)
{
    for (uint32_t k = 0; k < s->balances; k++)
        for (uint64_t i = 0; i < s->rows; i++)
            if (s->state[i] == LEAT__ROW_OPEN && s->balance[k].want[s->balance[k].of[i]] < SHARE)
                s->state[i] = LEAT__ROW_SHARELESS;
}

/* ---- all of it ---- */

static int add_strategy(leat__selecting *s, uint32_t k, leat_error *err)
{
    const leat_select_strategy *of = &s->opts.strategies[k];
    if (of->kind == LEAT_SELECT_DIVERSITY || of->kind == LEAT_SELECT_THRESHOLD) return 0;
    s->shown[k] = LEAT_NEW_ARRAY(CURATE, double, LEAT_MAX(s->rows, 1));
    if (!s->shown[k]) return leat__fail_nomem(err, s->rows * 8, "a column");
    switch (of->kind) {
    case LEAT_SELECT_WEIGHTS: return add_weights(s, of, s->shown[k], err);
    case LEAT_SELECT_BALANCE: return add_balance(s, of, s->shown[k], err);
    case LEAT_SELECT_SIMILARITY: return add_similarity(s, of, s->shown[k], err);
    case LEAT_SELECT_TYPICALITY: return add_typicality(s, of, s->shown[k], err);
    default: add_random(s, of, s->shown[k]); return 0;
    }
}

int leat__select_prepare(leat__selecting *s, leat_error *err)
{
    const uint64_t n = LEAT_MAX(s->rows, 1);
    s->state = LEAT_NEW_ARRAY(CURATE, uint8_t, n);
    s->weight = LEAT_NEW_ARRAY(CURATE, double, n);
    s->order = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    s->round = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    s->score = LEAT_NEW_ARRAY(CURATE, double, n);
    s->distance = LEAT_NEW_ARRAY(CURATE, double, n);
    if (!s->state || !s->weight || !s->order || !s->round || !s->score || !s->distance)
        return leat__fail_nomem(err, n * 41, "rows");
    for (uint64_t i = 0; i < s->rows; i++) {
        s->weight[i] = 0;
        s->order[i] = s->round[i] = -1;
    }
    LEAT_TRY(open_previous(s, err));
    LEAT_TRY(apply_thresholds(s, err));
    /* Vectors and weights exclude rows, which the range of weights and balance then do not count. */
    for (uint32_t k = 0; k < s->opts.strategy_count; k++)
        if (leat__select_takes_vectors(&s->opts.strategies[k]))
            LEAT_TRY(want_vectors(s, &s->opts.strategies[k], err));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < s->opts.strategy_count; k++)
            if ((s->opts.strategies[k].kind == LEAT_SELECT_WEIGHTS) == (pass == 0))
                LEAT_TRY(add_strategy(s, k, err));
    drop_shareless(s);
    return s->diversity ? want_vectors(s, s->diversity, err) : 0;
}

void leat__select_forget(leat__selecting *s)
{
    leat__vectors_reset(&s->vectors);
    for (uint32_t i = 0; i < s->balances; i++) {
        leat__free(s->balance[i].of);
        leat__free(s->balance[i].want);
        leat__free(s->balance[i].have);
    }
    for (uint32_t k = 0; k < LEAT__SELECT_STRATEGIES; k++) leat__free(s->shown[k]);
    leat__free(s->state);
    leat__free(s->weight);
    leat__free(s->order);
    leat__free(s->round);
    leat__free(s->score);
    leat__free(s->distance);
    leat__column_packs_close(&s->sheets);
    leat__thread_team_close(&s->crew);
    leat__select_config_close(&s->config);
}
