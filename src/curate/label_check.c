/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_check_labels: options, labels and classes, the run, and the choice of suspicious labels.
 */
#include "curate/label_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "io/result_file.h"
#include "io/url.h"
#include "pack/selection.h"

#define NEIGHBOURS 20
#define ROW_BYTES 65

void leat_check_labels_opts_init_sized(leat_check_labels_opts *opts, uint32_t struct_size)
{
    (void)!leat__sized_init(opts, struct_size);
}

static int check_opts(leat_check_labels_opts *o, leat_error *err)
{
    bool exists = false;
    if (!o->pack || !o->pack[0]) return leat__fail(err, LEAT_EINVAL, "no pack was named");
    if (!o->output || !o->output[0]) return leat__fail(err, LEAT_EINVAL, "no output was named");
    if (leat__path_remote(o->output))
        return leat__fail(err, LEAT_EINVAL, "%s: columns are written to a local file", o->output);
    if (!o->vectors && !o->predictions)
        return leat__fail(err, LEAT_EINVAL, "labels need embeddings: a pack of leat embed, or predictions");
    if (o->neighbours > LEAT__NEIGHBOURS_MAX)
        return leat__fail(err, LEAT_EINVAL, "`neighbours`: %u is more than %d", o->neighbours,
                          LEAT__NEIGHBOURS_MAX);
    if (o->neighbours == 0) o->neighbours = NEIGHBOURS;
    if (!o->column) o->column = "label";
    LEAT_TRY(leat__pack_spare_result(o->output, o->csv, err));
    if (o->field && !o->vectors)
        return leat__fail(err, LEAT_EINVAL, "`field` has no effect without embeddings");
    const char *const results[] = {o->output, o->csv};
    for (size_t r = 0; r < LEAT_COUNT(results); r++) {
        LEAT_TRY(leat__pack_spare_input(results[r], o->pack, err));
        LEAT_TRY(leat__pack_spare_input(results[r], o->vectors, err));
        LEAT_TRY(leat__pack_spare_input(results[r], o->predictions, err));
        for (uint32_t i = 0; i < o->column_count; i++)
            LEAT_TRY(leat__pack_spare_input(results[r], o->columns[i], err));
    }
    LEAT_TRY(leat__result_file_check(o->csv, LEAT__LABELS_CSV, o->replace != 0, false, err));
    LEAT_TRY(leat__path_exists(o->output, &exists, err));
    return exists ? leat__file_only_pack(o->output, o->replace != 0, err) : 0;
}

/* ---- labels ---- */

static int by_code(const void *x, const void *y)
{
    const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

uint32_t leat__labels_class(const leat__labels *l, int64_t code)
{
    const int64_t *at = bsearch(&code, l->code, l->classes, sizeof code, by_code);
    return at ? (uint32_t)(at - l->code) : LEAT__LABEL_NONE;
}

static int read_labels(leat__labels *l, leat_error *err)
{
    uint64_t n = 0;
    LEAT_TRY(leat__column_packs_codes(&l->sheets, l->opts.column, l->label, err));
    for (uint64_t i = 0; i < l->rows; i++)
        if (l->label[i] >= 0) l->code[n++] = l->label[i];
    l->stats.labelled = n;
    if (n > 0) qsort(l->code, (size_t)n, sizeof *l->code, by_code);
    for (uint64_t i = 0; i < n; i++)
        if (i == 0 || l->code[i] != l->code[i - 1]) l->code[l->classes++] = l->code[i];
    for (uint64_t i = 0; i < l->rows; i++)
        l->own[i] = l->label[i] >= 0 ? leat__labels_class(l, l->label[i]) : LEAT__LABEL_NONE;
    l->stats.classes = l->classes;
    if (l->classes < 2)
        return leat__fail(err, LEAT_EINVAL, "column '%s' has %u classes: two or more are needed",
                          l->opts.column, l->classes);
    return 0;
}

/* Keeps the vectors of rows that have a label and a vector. Unreadable images have none. Without predictions,
 * nothing else can judge their labels. */
static void keep_voters(leat__labels *l)
{
    leat__vectors *v = &l->vectors;
    uint64_t n = 0;
    for (uint64_t i = 0; i < l->rows; i++) {
        const float *from = leat__vectors_at(v, i);
        const bool is_zero = leat__vectors_is_zero(from, v->dim);
        l->stats.without_vector += is_zero && l->own[i] != LEAT__LABEL_NONE;
        if (!l->opts.predictions && is_zero) l->own[i] = LEAT__LABEL_NONE;
        if (l->own[i] == LEAT__LABEL_NONE || is_zero) continue;
        if (n < i) memcpy(v->row + n * v->dim, from, v->dim * sizeof *from);
        l->voter[n++] = (uint32_t)i;
    }
    v->count = n;
}

static int read_vectors(leat__labels *l, leat_error *err)
{
    leat_pack *pack = NULL;
    uint32_t field = 0;
    if (!l->opts.vectors) return 0;
    LEAT_TRY(leat_pack_open(&pack, l->opts.vectors, NULL, err));
    int rc = leat__pack_match_rows(pack, l->sheets.pack[0], err);
    if (rc == 0) rc = leat__vectors_field(pack, l->opts.field, &field, err);
    const uint64_t need =
        rc == 0 ? l->rows * (ROW_BYTES + leat__vectors_dim(pack, field) * sizeof(float)) : 0;
    if (rc == 0 && l->opts.memory > 0 && need > l->opts.memory)
        rc = leat__fail(err, LEAT_EBUDGET, "%llu rows need %s of memory, more than the %s given (`memory`)",
                        (unsigned long long)l->rows, leat__as_size(need).text,
                        leat__as_size(l->opts.memory).text);
    if (rc == 0) rc = leat__vectors_read(&l->vectors, pack, l->opts.field, err);
    if (rc == 0) keep_voters(l);
    leat_pack_close(&pack);
    return rc;
}

/* ---- suspicious labels ---- */

typedef struct suspect {
    double suspicion;
    uint32_t row;
} suspect;

static int by_suspicion(const void *x, const void *y)
{
    const suspect *a = x, *b = y;
    if (a->suspicion != b->suspicion) return a->suspicion > b->suspicion ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Ranks suspicious labels: another class is likelier, and at least as likely as that class is on
 * average for its own rows. So a class that the model is never sure of does not make others
 * suspicious. */
static int rank_labels(leat__labels *l, leat_error *err)
{
    double *usual = LEAT_NEW_ARRAY(CURATE, double, LEAT_MAX(l->classes, 1));
    uint64_t *members = LEAT_NEW_ARRAY(CURATE, uint64_t, LEAT_MAX(l->classes, 1));
    suspect *found = LEAT_NEW_ARRAY(CURATE, suspect, LEAT_MAX(l->rows, 1));
    int rc = usual && members && found ? 0 : leat__fail_nomem(err, l->rows * sizeof *found, "labels");
    for (uint64_t i = 0; i < l->rows && rc == 0; i++) {
        if (l->own[i] == LEAT__LABEL_NONE) continue;
        usual[l->own[i]] += (double)l->chance[i];
        members[l->own[i]]++;
    }
    for (uint32_t c = 0; c < l->classes && rc == 0; c++) usual[c] /= (double)LEAT_MAX(members[c], 1);
    uint64_t n = 0;
    for (uint64_t i = 0; i < l->rows && rc == 0; i++) {
        l->rank[i] = -1;
        if (l->own[i] == LEAT__LABEL_NONE) continue;
        l->suspicion[i] = (1 + (double)l->rival[i] - (double)l->chance[i]) / 2;
        if (l->other[i] == LEAT__LABEL_NONE || l->rival[i] <= l->chance[i]) continue;
        if ((double)l->rival[i] < usual[l->other[i]]) continue;
        l->issues[i] |= LEAT__LABEL_WRONG;
        found[n++] = (suspect){l->suspicion[i], (uint32_t)i};
    }
    if (n > 0) qsort(found, (size_t)n, sizeof *found, by_suspicion);
    for (uint64_t i = 0; i < n; i++) {
        l->rank[found[i].row] = (int64_t)i;
        if (i < LEAT_CHECK_EXAMPLES) l->stats.example[i] = found[i].row;
    }
    l->stats.examples = (uint32_t)LEAT_MIN(n, LEAT_CHECK_EXAMPLES);
    l->stats.wrong = n;
    for (uint64_t i = 0; i < l->rows && rc == 0; i++) l->stats.outliers += l->issues[i] >> 1 & 1;
    leat__free(usual);
    leat__free(members);
    leat__free(found);
    return rc;
}

/* ---- the run ---- */

static int allocate(leat__labels *l, leat_error *err)
{
    const uint64_t n = LEAT_MAX(l->rows, 1);
    l->label = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    l->code = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    l->own = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    l->voter = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    l->other = LEAT_NEW_ARRAY(CURATE, uint32_t, n);
    l->chance = LEAT_NEW_ARRAY(CURATE, float, n);
    l->rival = LEAT_NEW_ARRAY(CURATE, float, n);
    l->outlier = LEAT_NEW_ARRAY(CURATE, float, n);
    l->suspicion = LEAT_NEW_ARRAY(CURATE, double, n);
    l->rank = LEAT_NEW_ARRAY(CURATE, int64_t, n);
    l->issues = LEAT_NEW_ARRAY(CURATE, uint8_t, n);
    for (uint64_t i = 0; l->outlier && l->suspicion && i < n;
         i++) { /* the values of rows that are not judged */
        l->outlier[i] = NAN;
        l->suspicion[i] = NAN;
    }
    const bool all = l->label && l->code && l->own && l->voter && l->other && l->chance && l->rival &&
                     l->outlier && l->suspicion && l->rank && l->issues;
    return all ? 0 : leat__fail_nomem(err, n * ROW_BYTES, "labels");
}

static int run(leat__labels *l, leat_error *err)
{
    leat_check_labels_opts *o = &l->opts;
    LEAT_TRY(check_opts(o, err));
    LEAT_TRY(leat__column_packs_open(&l->sheets, o->pack, o->columns, o->column_count, err));
    l->rows = l->stats.samples = l->sheets.rows;
    LEAT_TRY(leat__thread_team_open(&l->crew, o->threads, err));
    LEAT_TRY(allocate(l, err));
    LEAT_TRY(read_labels(l, err));
    if (o->predictions) LEAT_TRY(leat__labels_by_predictions(l, err)); /* excludes rows from the next steps */
    LEAT_TRY(read_vectors(l, err));
    if (!o->predictions) LEAT_TRY(leat__labels_by_neighbours(l, err));
    if (o->vectors) LEAT_TRY(leat__labels_outliers(l, err));
    LEAT_TRY(rank_labels(l, err));
    return leat__labels_write(l, err);
}

static void tear_down(leat__labels *l)
{
    leat__vectors_reset(&l->vectors);
    leat__column_packs_close(&l->sheets);
    leat__thread_team_close(&l->crew);
    leat__free(l->label);
    leat__free(l->code);
    leat__free(l->own);
    leat__free(l->voter);
    leat__free(l->other);
    leat__free(l->chance);
    leat__free(l->rival);
    leat__free(l->outlier);
    leat__free(l->suspicion);
    leat__free(l->rank);
    leat__free(l->issues);
}

int leat_check_labels(const leat_check_labels_opts *opts, leat_check_labels_stats *stats, leat_error *err)
{
    leat__labels l;
    if (!opts || opts->struct_size < sizeof opts->struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memset(&l, 0, sizeof l);
    memcpy(&l.opts, opts, LEAT_MIN(opts->struct_size, sizeof l.opts));
    l.stats.struct_size = sizeof l.stats;
    const uint64_t begin = leat__clock_ns(), cpu = leat__clock_process_ns();
    int rc = run(&l, err);
    tear_down(&l);
    l.stats.seconds = (double)(leat__clock_ns() - begin) / (double)LEAT_NS_PER_S;
    l.stats.cpu_seconds = (double)(leat__clock_process_ns() - cpu) / (double)LEAT_NS_PER_S;
    if (stats) (void)!leat__sized_copy(stats, &l.stats, sizeof l.stats);
    return rc;
}
