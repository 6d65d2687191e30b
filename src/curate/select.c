/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_select: options, plan, the run and its results.
 */
#include <leat/select.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "curate/neighbours.h"
#include "curate/select_run.h"
#include "io/file.h"
#include "io/url.h"
#include "pack/selection.h"

#define ROW_BYTES (1 + 8 + 16 + 16) /* state, weight, order and round, score and distance */
#define TELL 64                     /* rows chosen between calls of progress */

void leat_select_opts_init_sized(leat_select_opts *opts, uint32_t struct_size)
{
    (void)!leat__sized_init(opts, struct_size);
}

/* ---- options ---- */

static bool takes_columns(const leat_select_strategy *of)
{
    return of->kind == LEAT_SELECT_WEIGHTS || of->kind == LEAT_SELECT_BALANCE ||
           of->kind == LEAT_SELECT_THRESHOLD;
}

/* Fails for files that no strategy uses: giving them is a mistake. */
static int check_use(const leat_select_opts *o, leat_error *err)
{
    bool vectors = false, field = false, columns = o->where != NULL;
    for (uint32_t i = 0; i < o->strategy_count; i++) {
        const leat_select_strategy *of = &o->strategies[i];
        vectors = vectors || (leat__select_takes_vectors(of) && !of->vectors);
        field = field || (leat__select_takes_vectors(of) && !of->field);
        columns = columns || takes_columns(of);
    }
    if (o->vectors && !vectors)
        return leat__fail(err, LEAT_EINVAL, "%s: no strategy uses these embeddings", o->vectors);
    if (o->field && !field) return leat__fail(err, LEAT_EINVAL, "`field`: no strategy uses it");
    if (o->column_count > 0 && !columns)
        return leat__fail(err, LEAT_EINVAL, "%s: no strategy and no condition uses columns", o->columns[0]);
    for (uint32_t i = 0; i < o->column_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (leat__pack_spare_input(o->columns[i], o->columns[k], NULL) != 0)
                return leat__fail(err, LEAT_EINVAL, "%s: these columns are named twice", o->columns[i]);
    return 0;
}

static int check_strategy(leat__selecting *s, const leat_select_strategy *of, leat_error *err)
{
    const char *name = leat__select_kind_name(of->kind);
    if (!name) return leat__fail(err, LEAT_EINVAL, "%u is not a strategy", of->kind);
    const bool changes = of->kind == LEAT_SELECT_DIVERSITY || of->kind == LEAT_SELECT_BALANCE;
    if (!(of->strength >= -16 && of->strength <= 16) || (changes && of->strength < 0))
        return leat__fail(err, LEAT_EINVAL, "%s: a strength of %g is not between %d and 16", name,
                          of->strength, changes ? 0 : -16);
    if (!(of->least >= 0 && of->least <= LEAT__SELECT_FAR))
        return leat__fail(err, LEAT_EINVAL, "%s: a least distance of %g is not between 0 and 2", name,
                          of->least);
    if (leat__select_takes_vectors(of) && !leat__select_vectors_of(s, of))
        return leat__fail(err, LEAT_EINVAL, "%s needs embeddings: a pack of leat embed", name);
    if (of->kind == LEAT_SELECT_SIMILARITY && !of->query)
        return leat__fail(err, LEAT_EINVAL, "similarity needs a query: a pack with vectors");
    if ((of->kind == LEAT_SELECT_WEIGHTS || of->kind == LEAT_SELECT_BALANCE) && !of->column)
        return leat__fail(err, LEAT_EINVAL, "%s needs a column", name);
    if (of->kind == LEAT_SELECT_THRESHOLD && !of->where)
        return leat__fail(err, LEAT_EINVAL, "threshold needs a condition: `where`");
    if (of->neighbours > LEAT__NEIGHBOURS_MAX)
        return leat__fail(err, LEAT_EINVAL, "typicality: %u neighbours, at most %d are possible",
                          of->neighbours, LEAT__NEIGHBOURS_MAX);
    if (of->shares > LEAT_SHARES_TARGET)
        return leat__fail(err, LEAT_EINVAL, "balance: %u is not a distribution", of->shares);
    if (of->kind != LEAT_SELECT_DIVERSITY) return 0;
    if (s->diversity) return leat__fail(err, LEAT_EINVAL, "only one strategy may be diversity");
    s->diversity = of;
    return 0;
}

int leat__select_check(leat__selecting *s, leat_error *err)
{
    const leat_select_opts *o = &s->opts;
    bool exists = false;
    if (!o->pack || !o->pack[0]) return leat__fail(err, LEAT_EINVAL, "no pack was named");
    if (!o->output || !o->output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (leat__path_remote(o->output))
        return leat__fail(err, LEAT_EINVAL, "%s: columns are written to a local file", o->output);
    if (o->count > 0 && o->share > 0)
        return leat__fail(err, LEAT_EINVAL, "give either `count` or `share`, not both");
    if (!(o->share >= 0 && o->share <= 1))
        return leat__fail(err, LEAT_EINVAL, "`share`: %g is not between 0 and 1", o->share);
    if (o->strategy_count > LEAT__SELECT_STRATEGIES)
        return leat__fail(err, LEAT_ELIMIT, "more than %d strategies", LEAT__SELECT_STRATEGIES);
    if (o->strategy_count == 0 && !o->where)
        return leat__fail(err, LEAT_EINVAL, "there is nothing to select by: give `strategy` or `where`");
    for (uint32_t i = 0; i < o->strategy_count; i++) LEAT_TRY(check_strategy(s, &o->strategies[i], err));
    if (s->diversity && o->count == 0 && o->share <= 0 && s->diversity->least <= 0)
        return leat__fail(err, LEAT_EINVAL, "diversity needs a limit: `count`, `share` or a least distance");
    LEAT_TRY(leat__pack_spare_input(o->output, o->pack, err));
    LEAT_TRY(leat__pack_spare_input(o->output, o->previous, err));
    LEAT_TRY(leat__pack_spare_input(o->output, o->vectors, err));
    for (uint32_t i = 0; i < o->column_count; i++)
        LEAT_TRY(leat__pack_spare_input(o->output, o->columns[i], err));
    for (uint32_t i = 0; i < o->strategy_count; i++) {
        LEAT_TRY(leat__pack_spare_input(o->output, o->strategies[i].vectors, err));
        LEAT_TRY(leat__pack_spare_input(o->output, o->strategies[i].query, err));
    }
    LEAT_TRY(check_use(o, err));
    LEAT_TRY(leat__path_exists(o->output, &exists, err));
    return exists ? leat__file_only_pack(o->output, o->replace != 0, err) : 0;
}

/* ---- plan ---- */

static int vectors_size(const char *path, const char *name, uint64_t *rows, size_t *dim, leat_error *err)
{
    leat_pack *pack = NULL;
    uint32_t field = 0;
    LEAT_TRY(leat_pack_open(&pack, path, NULL, err));
    int rc = leat__vectors_field(pack, name, &field, err);
    *dim = rc == 0 ? leat__vectors_dim(pack, field) : 0;
    *rows = leat_pack_count(pack);
    leat_pack_close(&pack);
    return rc;
}

int leat__select_plan(leat__selecting *s, leat_error *err)
{
    const leat_select_opts *o = &s->opts;
    uint64_t need = s->rows * ROW_BYTES, vectors = 0, rows, previous = 0;
    size_t dim = 0, own = 0; /* own: numbers per vector of diversity */
    for (uint32_t i = 0; i < o->strategy_count; i++) {
        const leat_select_strategy *of = &o->strategies[i];
        uint64_t query = 0;
        need += of->kind == LEAT_SELECT_BALANCE ? s->rows * (8 + 4 + 16) : s->rows * 8;
        if (of->kind == LEAT_SELECT_TYPICALITY) need += s->rows; /* neighbours.c: rows without a vector */
        if (of->kind == LEAT_SELECT_SIMILARITY) {
            LEAT_TRY(vectors_size(of->query, leat__select_field_of(s, of), &rows, &dim, err));
            query = rows * dim * sizeof(float);
        }
        if (!leat__select_takes_vectors(of)) continue;
        LEAT_TRY(
            vectors_size(leat__select_vectors_of(s, of), leat__select_field_of(s, of), &rows, &dim, err));
        vectors = LEAT_MAX(vectors, rows * dim * sizeof(float) + query);
        if (of == s->diversity) own = dim;
    }
    if (o->previous) LEAT_TRY(leat_pack_select(s->sheets.pack[0], o->previous, NULL, 0, &previous, err));
    need += vectors + leat__greedy_bytes(s->rows, s->diversity ? s->count + previous : 0, own);
    s->stats.plan_memory = need;
    if (o->memory == 0 || need <= o->memory) return 0;
    return leat__fail(err, LEAT_EBUDGET, "%llu rows need %s of memory, more than the %s given (`memory`)",
                      (unsigned long long)s->rows, leat__as_size(need).text, leat__as_size(o->memory).text);
}

/* ---- run ---- */

static int take(void *cookie, uint64_t row, double score, double distance)
{
    leat__selecting *s = cookie;
    const leat_select_opts *o = &s->opts;
    s->order[row] = s->next_order++;
    s->round[row] = s->stats.round;
    s->score[row] = score;
    s->distance[row] = s->diversity ? distance : 0;
    s->stats.last_distance = s->distance[row];
    if (++s->stats.selected % TELL != 0 && s->stats.selected != s->count) return 0;
    return o->progress ? o->progress(o->cookie, s->stats.selected, s->count, 0, s->stats.selected) : 0;
}

static int choose(leat__selecting *s, leat_error *err)
{
    const leat_select_strategy *d = s->diversity;
    leat__greedy g = {.rows = s->rows,
                      .count = s->count,
                      .state = s->state,
                      .weight = s->weight,
                      .vectors = d ? &s->vectors : NULL,
                      .diversity = d && d->strength != 0 ? d->strength : 1,
                      .min_distance = d ? d->least : 0,
                      .balance = s->balance,
                      .balances = s->balances,
                      .crew = s->crew,
                      .take = take,
                      .cookie = s};
    LEAT_TRY(leat__saved_open(&s->saved, s->opts.output, err));
    if (d) g.saved = &s->saved;
    LEAT_TRY(leat__greedy_run(&g, err));
    s->stats.distances = g.distances;
    s->stats.resumed = g.resumed;
    /* If the count was reached first, not all rows were compared. Which ones depends on the number of
     * threads. Then a missing share is not the reason why a row was not chosen either. */
    const bool all = s->stats.selected < s->count;
    for (uint64_t i = 0; i < s->rows; i++) {
        if (s->state[i] != LEAT__ROW_NEAR && s->state[i] != LEAT__ROW_SHARELESS) continue;
        s->stats.near += all && s->state[i] == LEAT__ROW_NEAR;
        if (!all) s->state[i] = LEAT__ROW_OPEN;
    }
    return 0;
}

/* Fails when no row was selected: nothing can use an empty selection. */
static int refuse_empty(const leat__selecting *s, leat_error *err)
{
    const leat_select_stats *st = &s->stats;
    uint64_t shareless = 0;
    if (st->selected + st->previous > 0) return 0;
    if (st->samples == 0) return leat__fail(err, LEAT_EDATA, "%s: has no rows", s->opts.pack);
    if (st->excluded == st->samples)
        return leat__fail(err, LEAT_EDATA, "%s: no sample is selected: none of %llu meets the conditions",
                          s->opts.pack, (unsigned long long)st->samples);
    for (uint64_t i = 0; i < s->rows; i++) shareless += s->state[i] == LEAT__ROW_SHARELESS;
    return leat__fail(err, LEAT_EDATA,
                      "%s: no sample is selected: of %llu, %llu do not meet the conditions, %llu have no "
                      "finite number in a column, %llu have no vector and %llu have a value without a share",
                      s->opts.pack, (unsigned long long)st->samples, (unsigned long long)st->excluded,
                      (unsigned long long)st->unknown, (unsigned long long)st->without_vector,
                      (unsigned long long)shareless);
}

static int run(leat__selecting *s, leat_error *err)
{
    leat_select_opts *o = &s->opts;
    LEAT_TRY(leat__select_config_open(&s->config, o, err));
    LEAT_TRY(leat__select_check(s, err));
    LEAT_TRY(leat__column_packs_open(&s->sheets, o->pack, o->columns, o->column_count, err));
    s->rows = s->stats.samples = s->sheets.rows;
    s->stats.asked = o->count;
    if (o->share > 0) s->stats.asked = LEAT_MAX((uint64_t)(o->share * (double)s->rows + 0.5), 1);
    s->count = s->stats.asked > 0 ? LEAT_MIN(s->stats.asked, s->rows) : s->rows;
    LEAT_TRY(leat__select_plan(s, err));
    LEAT_TRY(leat__thread_team_open(&s->crew, o->threads, err));
    LEAT_TRY(leat__select_prepare(s, err));
    LEAT_TRY(choose(s, err));
    LEAT_TRY(refuse_empty(s, err));
    LEAT_TRY(leat__select_write(s, err));
    return leat__saved_drop(&s->saved, err);
}

int leat_select(const leat_select_opts *opts, leat_select_stats *stats, leat_error *err)
{
    if (!opts || opts->struct_size < sizeof opts->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    leat__selecting *s = LEAT_NEW(CURATE, leat__selecting);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a selection");
    memcpy(&s->opts, opts, LEAT_MIN(opts->struct_size, sizeof s->opts));
    s->stats.struct_size = sizeof s->stats;
    const uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(s, err);
    s->stats.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    s->stats.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (stats) (void)!leat__sized_copy(stats, &s->stats, sizeof s->stats);
    leat__saved_close(&s->saved);
    leat__select_forget(s);
    leat__free(s);
    return rc;
}

void leat__select_json(const leat_select_stats *st, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "samples", st->samples);
    leat__json_ku64(&j, "selected", st->selected);
    leat__json_ku64(&j, "asked", st->asked);
    leat__json_ku64(&j, "previous", st->previous);
    leat__json_ku64(&j, "round", st->round);
    leat__json_ku64(&j, "excluded", st->excluded);
    leat__json_ku64(&j, "near", st->near);
    leat__json_ku64(&j, "unknown", st->unknown);
    leat__json_ku64(&j, "without_vector", st->without_vector);
    leat__json_ku64(&j, "distances", st->distances);
    leat__json_ku64(&j, "resumed", st->resumed);
    leat__json_kdouble(&j, "last_distance", st->last_distance);
    leat__json_ku64(&j, "plan_memory", st->plan_memory);
    leat__json_kdouble(&j, "seconds", st->seconds);
    leat__json_kdouble(&j, "cpu_seconds", st->cpu_seconds);
    leat__json_end(&j);
}
