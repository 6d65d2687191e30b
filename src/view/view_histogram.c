/* SPDX-License-Identifier: Apache-2.0
 *
 * The distribution of a column's values over rows.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "view/view_query.h"

#define BINS 64u
#define VALUES_SHOWN 100u

/* ---- numbers ---- */

static int number_bins(const leat__view_column *c, const leat__view_rows *rows, leat__json *j)
{
    double lo = INFINITY, hi = -INFINITY;
    uint64_t bins[BINS] = {0}, missing = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const double v = c->number[rows->row[i]];
        if (!isfinite(v)) continue;
        lo = fmin(lo, v);
        hi = fmax(hi, v);
    }
    uint32_t count = !(lo <= hi) ? 0 : BINS;
    /* Whole numbers in a small range get one bin each, so that all bins cover the same number of values. */
    if (count && c->whole && hi - lo < BINS) count = (uint32_t)(hi - lo) + 1;
    const double top = count && c->whole && hi - lo < BINS ? hi + 1 : hi, width = top - lo;
    for (uint32_t i = 0; i < rows->count; i++) {
        const double v = c->number[rows->row[i]];
        if (!isfinite(v)) missing++;
        else bins[width > 0 ? (uint32_t)LEAT_MIN((v - lo) / width * count, count - 1.0) : 0]++;
    }
    leat__json_object(j);
    if (count) leat__json_kdouble(j, "lo", lo);
    if (count) leat__json_kdouble(j, "hi", top);
    leat__json_key(j, "bins");
    leat__json_array(j);
    for (uint32_t i = 0; i < count; i++) leat__json_u64(j, bins[i]);
    leat__json_end(j);
    leat__json_ku64(j, "missing", missing);
    leat__json_end(j);
    return 0;
}

/* ---- values with names ---- */

/* Writes the most frequent values; one pass per shown value, since few are shown. */
static void put_values(const leat__view_column *c, uint64_t *counts, uint32_t n, const uint32_t *example,
                       uint64_t others, leat__json *j)
{
    leat__json_object(j);
    leat__json_key(j, "values");
    leat__json_array(j);
    for (uint32_t shown = 0; shown < VALUES_SHOWN; shown++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++)
            if (counts[i] > counts[best]) best = i;
        if (n == 0 || counts[best] == 0) break;
        leat__json_object(j);
        if (example) {
            const uint64_t at = c->start[example[best]];
            leat__json_key(j, "value");
            leat__json_strn(j, c->text + at, (size_t)(c->start[example[best] + 1] - at));
        } else {
            leat__json_ku64(j, "value", best);
            leat__json_kstr(j, "name", c->names[best]);
        }
        leat__json_ku64(j, "count", counts[best]);
        leat__json_end(j);
        counts[best] = 0;
    }
    for (uint32_t i = 0; i < n; i++) others += counts[i];
    leat__json_end(j);
    leat__json_ku64(j, "others", others);
    leat__json_end(j);
}

static int named_values(leat__view_data *d, const leat__view_column *c, const leat__view_rows *rows,
                        leat__json *j, leat_error *err)
{
    uint64_t others = 0, *counts = LEAT_NEW_ARRAY(MISC, uint64_t, c->name_count);
    (void)d;
    if (!counts) return leat__fail_nomem(err, 8ull * c->name_count, "counts");
    for (uint32_t i = 0; i < rows->count; i++) {
        const double v = c->number[rows->row[i]];
        if (c->bits) {
            const uint64_t bits = v >= 0 ? (uint64_t)v : 0;
            for (uint32_t b = 0; b < c->name_count; b++) counts[b] += bits >> b & 1;
        } else if (v >= 0 && v < c->name_count) {
            counts[(uint32_t)v]++;
        } else {
            others++;
        }
    }
    put_values(c, counts, c->name_count, NULL, others, j);
    leat__free(counts);
    return 0;
}

static int text_values(leat__view_data *d, const leat__view_column *c, const leat__view_rows *rows,
                       leat__json *j, leat_error *err)
{
    const uint64_t bytes = (uint64_t)c->ranks * (sizeof(uint64_t) + sizeof(uint32_t));
    LEAT_TRY(leat__view_charge(d, bytes, c, err));
    uint64_t *counts = LEAT_NEW_ARRAY(MISC, uint64_t, c->ranks);
    uint32_t *example = LEAT_NEW_ARRAY(MISC, uint32_t, c->ranks);
    int rc = counts && example ? 0 : leat__fail_nomem(err, bytes, "counts");
    for (uint32_t i = 0; i < rows->count && rc == 0; i++) {
        counts[c->rank[rows->row[i]]]++;
        example[c->rank[rows->row[i]]] = rows->row[i];
    }
    if (rc == 0) put_values(c, counts, c->ranks, example, 0, j);
    leat__free(counts);
    leat__free(example);
    leat__view_release(d, bytes);
    return rc;
}

int leat__view_histogram(leat__view_data *d, leat__view_column *c, const leat__view_rows *rows, leat__json *j,
                         leat_error *err)
{
    if (c->kind == LEAT__VIEW_VECTOR)
        return leat__fail(err, LEAT_EINVAL, "\"%s\": a column of vectors has no histogram", c->name);
    LEAT_TRY(leat__view_load_order(d, c, err));
    if (c->kind == LEAT__VIEW_TEXT) return text_values(d, c, rows, j, err);
    return c->names ? named_values(d, c, rows, j, err) : number_bins(c, rows, j);
}
