/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges the label of a row by its neighbours or predictions: see label_check.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/label_check.h"
#include "pack/selection.h"

/* ---- neighbours ---- */

typedef struct vote {
    uint32_t class;
    double weight;
} vote;

/* Sums votes per class; `near` has numbers of voters. Nearer ones count more: weights fall to 1 / e^2 at
 * the farthest one. */
static uint32_t count_votes(const leat__labels *l, const leat__neighbour *near, uint32_t count, vote *votes)
{
    const double far = count > 0 ? (double)near[count - 1].distance : 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t class = l->own[l->voter[near[i].row]];
        uint32_t at = 0;
        while (at < n && votes[at].class != class) at++;
        if (at == n) votes[n++] = (vote){class, 0};
        votes[at].weight += far > 0 ? exp(-2 * (double)near[i].distance / far) : 1;
    }
    return n;
}

static void take_near(void *cookie, uint64_t voter, const leat__neighbour *near, uint32_t count)
{
    const leat__labels *l = cookie;
    const uint32_t row = l->voter[voter];
    vote votes[LEAT__NEIGHBOURS_MAX];
    const uint32_t n = count_votes(l, near, count, votes);
    double sum = 0, own = 0, most = 0;
    l->other[row] = LEAT__LABEL_NONE;
    for (uint32_t i = 0; i < n; i++) {
        sum += votes[i].weight;
        if (votes[i].class == l->own[row]) own = votes[i].weight;
        else if (votes[i].weight > most || (votes[i].weight == most && votes[i].class < l->other[row])) {
            most = votes[i].weight;
            l->other[row] = votes[i].class;
        }
    }
    l->chance[row] = sum > 0 ? (float)(own / sum) : 0;
    l->rival[row] = sum > 0 ? (float)(most / sum) : 0;
}

static int tell(void *cookie, uint64_t done, uint64_t total)
{
    const leat_check_labels_opts *o = &((const leat__labels *)cookie)->opts;
    return o->progress ? o->progress(o->cookie, done, total, 0, 0) : 0;
}

int leat__labels_by_neighbours(leat__labels *l, leat_error *err)
{
    const leat__neighbours n = {.vectors = &l->vectors,
                                .k = l->opts.neighbours,
                                .crew = l->crew,
                                .take = take_near,
                                .tell = tell,
                                .cookie = l};
    return leat__neighbours_run(&n, err);
}

/* ---- predictions ---- */

/* Excludes a row whose scores are not finite: it is not judged. */
static void leave_out(leat__labels *l, uint64_t row)
{
    l->stats.without_scores += l->own[row] != LEAT__LABEL_NONE;
    l->own[row] = LEAT__LABEL_NONE;
}

/* Applies softmax to the scores of a row; the position of a score is its class. */
static void take_scores(leat__labels *l, uint64_t row, const float *score, size_t n)
{
    double top = -INFINITY, sum = 0, own = 0, most = 0;
    l->other[row] = LEAT__LABEL_NONE;
    for (size_t c = 0; c < n; c++) {
        if (!isfinite(score[c])) {
            leave_out(l, row);
            return;
        }
        top = LEAT_MAX(top, (double)score[c]);
    }
    for (size_t c = 0; c < n; c++) {
        const double x = exp((double)score[c] - top);
        sum += x;
        if ((int64_t)c == l->label[row]) own = x;
        else if (x > most) {
            most = x;
            l->other[row] = (uint32_t)c;
        }
    }
    l->chance[row] = (float)(own / sum);
    l->rival[row] = (float)(most / sum);
}

/* Converts positions of scores to class numbers; a class without rows has none. */
static void number_rivals(leat__labels *l)
{
    for (uint64_t i = 0; i < l->rows; i++) {
        if (l->other[i] != LEAT__LABEL_NONE) l->other[i] = leat__labels_class(l, l->other[i]);
    }
}

static int read_scores(leat__labels *l, leat_pack *pack, leat_sample *s, leat_error *err)
{
    const int field = leat_pack_field_find(pack, "logits");
    const leat_field *f = field >= 0 ? leat_pack_field(pack, (uint32_t)field) : NULL;
    if (!f || f->type != LEAT_FIELD_ARRAY || f->ndim != 1 || f->dtype != LEAT_DTYPE_F32)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: has no float32 field 'logits' (leat embed --logits writes it)",
                          leat_pack_path(pack));
    if (l->classes > 0 && l->code[l->classes - 1] >= (int64_t)f->shape[0])
        return leat__fail(err, LEAT_EINVAL, "%s: has scores of %llu classes, but there is a label %lld",
                          leat_pack_path(pack), (unsigned long long)f->shape[0],
                          (long long)l->code[l->classes - 1]);
    for (uint64_t i = 0; i < l->rows; i++) {
        leat_view view;
        LEAT_TRY(leat_sample_read(s, i, err));
        LEAT_TRY(leat_sample_field(s, (uint32_t)field, &view, err));
        if (!view.data || view.size != f->shape[0] * sizeof(float))
            return leat__fail(err, LEAT_EDATA, "%s: row %llu has no scores", leat_pack_path(pack),
                              (unsigned long long)i);
        take_scores(l, i, view.data, (size_t)f->shape[0]);
    }
    number_rivals(l);
    return 0;
}

int leat__labels_by_predictions(leat__labels *l, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_sample *s = NULL;
    LEAT_TRY(leat_pack_open(&pack, l->opts.predictions, NULL, err));
    int rc = leat__pack_match_rows(pack, l->sheets.pack[0], err);
    if (rc == 0) rc = leat_sample_open(&s, pack, err);
    if (rc == 0) rc = read_scores(l, pack, s, err);
    leat_sample_close(&s);
    leat_pack_close(&pack);
    return rc;
}

/* ---- outliers ---- */

static int by_value(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return a < b ? -1 : a > b;
}

/* Marks the rows of a class that are more than three interquartile ranges above the upper quartile. */
static void mark_class(leat__labels *l, const uint32_t *row, uint64_t n, float *values)
{
    if (n < 8) return; /* too few for quartiles */
    for (uint64_t i = 0; i < n; i++) values[i] = l->outlier[row[i]];
    qsort(values, (size_t)n, sizeof *values, by_value);
    const float low = values[n / 4], high = values[3 * n / 4], limit = high + 3 * (high - low);
    for (uint64_t i = 0; i < n && high > low; i++)
        if (l->outlier[row[i]] > limit) l->issues[row[i]] |= LEAT__LABEL_OUTLIER;
}

/* Sorts rows by class, then marks the outliers of each class. */
static int mark_outliers(leat__labels *l, leat_error *err)
{
    const uint64_t n = l->vectors.count;
    uint64_t *end = LEAT_NEW_ARRAY(CURATE, uint64_t, (size_t)l->classes + 1);
    uint32_t *row = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(n, 1));
    float *values = LEAT_NEW_ARRAY(CURATE, float, LEAT_MAX(n, 1));
    int rc = end && row && values ? 0 : leat__fail_nomem(err, n * 8, "classes");
    for (uint64_t i = 0; rc == 0 && i < n; i++) end[l->own[l->voter[i]] + 1]++;
    for (uint32_t c = 1; rc == 0 && c < l->classes; c++) end[c] += end[c - 1]; /* where classes begin */
    for (uint64_t i = 0; rc == 0 && i < n; i++) row[end[l->own[l->voter[i]]]++] = l->voter[i];
    for (uint32_t c = 0; rc == 0 && c < l->classes; c++) { /* now end[c] is the end of class c */
        const uint64_t first = c > 0 ? end[c - 1] : 0;
        mark_class(l, row + first, end[c] - first, values);
    }
    leat__free(end);
    leat__free(row);
    leat__free(values);
    return rc;
}

int leat__labels_outliers(leat__labels *l, leat_error *err)
{
    const size_t dim = l->vectors.dim;
    double *sum = leat__zalloc_array(LEAT__MEM_CURATE, LEAT_MAX(l->classes, 1), dim * sizeof *sum);
    int rc = sum ? 0 : leat__fail_nomem(err, l->classes * dim * sizeof *sum, "class centres");
    for (uint64_t i = 0; i < l->vectors.count && rc == 0; i++)
        for (size_t d = 0; d < dim; d++)
            sum[l->own[l->voter[i]] * dim + d] += (double)leat__vectors_at(&l->vectors, i)[d];
    for (uint32_t c = 0; c < l->classes && rc == 0; c++) {
        double length = 0;
        for (size_t d = 0; d < dim; d++) length += sum[c * dim + d] * sum[c * dim + d];
        for (size_t d = 0; d < dim && length > 0; d++) sum[c * dim + d] /= sqrt(length);
    }
    for (uint64_t i = 0; i < l->vectors.count && rc == 0; i++) {
        double cosine = 0;
        for (size_t d = 0; d < dim; d++)
            cosine += sum[l->own[l->voter[i]] * dim + d] * (double)leat__vectors_at(&l->vectors, i)[d];
        l->outlier[l->voter[i]] = (float)(1 - cosine);
    }
    leat__free(sum);
    return rc == 0 ? mark_outliers(l, err) : rc;
}
