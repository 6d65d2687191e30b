/* SPDX-License-Identifier: Apache-2.0
 *
 * See view_vector.h. The axes of the map are computed from rows spread evenly over the pack, at most
 * SAMPLE_FLOATS numbers in total; every row is then projected onto them.
 */
#include "view/view_vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/rng.h"

#define SAMPLE_FLOATS ((uint64_t)2 << 20)
#define ITERATIONS 100
#define STILL 1e-5 /* change of a direction at which the iteration ends */
#define EXACT 4u   /* candidates per result that are compared exactly */

/* ---- directions ---- */

static double dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Makes the axes orthogonal and of length 1; an axis without length stays zero. */
static void straighten(double *axes, uint32_t dim)
{
    double *x = axes, *y = axes + dim;
    const double length = sqrt(dot(x, x, dim));
    for (uint32_t i = 0; i < dim && length > 0; i++) x[i] /= length;
    const double along = dot(x, y, dim);
    for (uint32_t i = 0; i < dim; i++) y[i] -= along * x[i];
    const double rest = sqrt(dot(y, y, dim));
    for (uint32_t i = 0; i < dim && rest > 0; i++) y[i] /= rest;
}

/* Computes the coordinates of a row on both axes, with four sums each so that compilers vectorise the
 * loop. */
static void measure_row(const float *row, const double *axes, uint32_t dim, double *x, double *y)
{
    const double *other = axes + dim;
    double a[4] = {0}, b[4] = {0};
    uint32_t i = 0;
    for (; i + 4 <= dim; i += 4)
        for (int k = 0; k < 4; k++) {
            a[k] += row[i + k] * axes[i + k];
            b[k] += row[i + k] * other[i + k];
        }
    for (; i < dim; i++) {
        a[0] += row[i] * axes[i];
        b[0] += row[i] * other[i];
    }
    *x = (a[0] + a[1]) + (a[2] + a[3]);
    *y = (b[0] + b[1]) + (b[2] + b[3]);
}

/* next = sum over rows of (row - mean) times the coordinates of (row - mean) on the axes. The coordinates
 * of all rows sum up to 0, so that the mean of the first factor vanishes. */
static void multiply(const float *rows, uint32_t count, uint32_t dim, const double *mean, const double *axes,
                     double *next)
{
    const double left = dot(mean, axes, dim), top = dot(mean, axes + dim, dim);
    memset(next, 0, 2 * (size_t)dim * sizeof *next);
    for (uint32_t r = 0; r < count; r++) {
        const float *row = rows + (size_t)r * dim;
        double x, y;
        measure_row(row, axes, dim, &x, &y);
        x -= left;
        y -= top;
        for (uint32_t i = 0; i < dim; i++) {
            next[i] += x * row[i];
            next[dim + i] += y * row[i];
        }
    }
}

static void iterate(const float *rows, uint32_t count, uint32_t dim, const double *mean, double *axes,
                    double *next)
{
    leat__rng rng;
    leat__rng_init(&rng, 1, 0, 0, 0);
    for (uint32_t i = 0; i < 2 * dim; i++) axes[i] = leat__rng_normal(&rng);
    straighten(axes, dim);
    for (int n = 0; n < ITERATIONS; n++) {
        double change = 0;
        multiply(rows, count, dim, mean, axes, next);
        straighten(next, dim);
        for (uint32_t i = 0; i < 2 * dim; i++) change = fmax(change, fabs(next[i] - axes[i]));
        memcpy(axes, next, 2 * (size_t)dim * sizeof *axes);
        if (change < STILL) break;
    }
}

int leat__view_pca(const float *rows, uint32_t count, uint32_t dim, float *mean, float *axes, leat_error *err)
{
    double *work = LEAT_NEW_ARRAY(MISC, double, 5 * (size_t)dim);
    if (!work) return leat__fail_nomem(err, 40ull * dim, "a map");
    double *centre = work, *wide = work + dim, *next = work + 3 * (size_t)dim;
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t i = 0; i < dim; i++) centre[i] += rows[(size_t)r * dim + i] / (double)count;
    iterate(rows, count, dim, centre, wide, next);
    for (int a = 0; a < 2; a++) {
        const double *axis = wide + (size_t)a * dim;
        uint32_t most = 0;
        for (uint32_t i = 1; i < dim; i++)
            if (fabs(axis[i]) > fabs(axis[most])) most = i;
        for (uint32_t i = 0; i < dim; i++)
            axes[(size_t)a * dim + i] = (float)(axis[most] < 0 ? -axis[i] : axis[i]);
    }
    for (uint32_t i = 0; i < dim; i++) mean[i] = (float)centre[i];
    leat__free(work);
    return 0;
}

/* ---- the map ---- */

static uint32_t take_sample(const leat__view_data *d, const leat__view_column *c, float *sample,
                            uint32_t most)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < most; i++) {
        const uint32_t row = (uint32_t)((uint64_t)i * d->rows / most);
        const int8_t *from = c->vector + (size_t)row * c->dim;
        if (c->norm[row] == 0) continue;
        float *to = sample + (size_t)taken++ * c->dim;
        for (uint32_t k = 0; k < c->dim; k++) to[k] = (float)from[k] / c->norm[row];
    }
    return taken;
}

static void project(const leat__view_data *d, const leat__view_column *c, const float *mean,
                    const float *axes, float *plane)
{
    float origin[2] = {0};
    for (uint32_t k = 0; k < c->dim; k++) {
        origin[0] += mean[k] * axes[k];
        origin[1] += mean[k] * axes[c->dim + k];
    }
    for (uint32_t row = 0; row < d->rows; row++) {
        const int8_t *v = c->vector + (size_t)row * c->dim;
        float x = 0, y = 0;
        for (uint32_t k = 0; k < c->dim; k++) {
            x += (float)v[k] * axes[k];
            y += (float)v[k] * axes[c->dim + k];
        }
        const bool there = c->norm[row] > 0;
        plane[2 * (size_t)row] = there ? x / c->norm[row] - origin[0] : NAN;
        plane[2 * (size_t)row + 1] = there ? y / c->norm[row] - origin[1] : NAN;
    }
}

int leat__view_load_plane(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    LEAT_TRY(leat__view_load(d, c, err));
    if (c->plane) return 0;
    const uint32_t most = (uint32_t)LEAT_MIN(d->rows, LEAT_MAX(SAMPLE_FLOATS / c->dim, 64));
    const uint64_t keep = 2 * (uint64_t)d->rows * sizeof(float),
                   work = ((uint64_t)most + 3) * c->dim * sizeof(float);
    LEAT_TRY(leat__view_charge(d, keep + work, c, err));
    float *plane = leat__alloc(LEAT__MEM_MISC, keep), *sample = leat__alloc(LEAT__MEM_MISC, work);
    int rc = plane && sample ? 0 : leat__fail_nomem(err, keep + work, "a map");
    if (rc == 0) {
        float *mean = sample + (size_t)most * c->dim, *axes = mean + c->dim;
        const uint32_t taken = take_sample(d, c, sample, most);
        rc = leat__view_pca(sample, taken, c->dim, mean, axes, err);
        if (rc == 0) project(d, c, mean, axes, plane);
    }
    leat__free(sample);
    leat__view_release(d, rc == 0 ? work : keep + work);
    if (rc != 0) {
        leat__free(plane);
        return rc;
    }
    c->plane = plane;
    c->held += keep;
    return 0;
}

/* ---- neighbours ---- */

static bool is_nearer(const leat__view_near *a, const leat__view_near *b)
{
    return a->cosine != b->cosine ? a->cosine > b->cosine : a->row < b->row;
}

/* Moves the entry at `at` down to its place in a heap with the farthest entry on top. */
static void sift(leat__view_near *heap, uint32_t count, uint32_t at)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_nearer(&heap[child], &heap[child + 1])) child++;
        if (is_nearer(&heap[child], &heap[at])) break;
        const leat__view_near swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void keep_nearest(leat__view_near *heap, uint32_t *count, uint32_t most, leat__view_near n)
{
    if (*count == most) {
        if (!is_nearer(&n, &heap[0])) return;
        heap[0] = n;
        sift(heap, most, 0);
        return;
    }
    uint32_t at = (*count)++;
    heap[at] = n;
    for (uint32_t up; at > 0 && is_nearer(&heap[up = (at - 1) / 2], &heap[at]); at = up) {
        const leat__view_near swap = heap[at];
        heap[at] = heap[up];
        heap[up] = swap;
    }
}

static int32_t dot_bytes(const int8_t *a, const int8_t *b, uint32_t n)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static int read_vector(leat__view_data *d, const leat__view_column *c, uint32_t row, float *out,
                       leat_error *err)
{
    leat_view v;
    const leat__view_source *s = &d->source[c->source];
    LEAT_TRY(leat_sample_read(s->sample, leat__view_row_of(d, c->source, row), err));
    LEAT_TRY(leat_sample_field(s->sample, c->field, &v, err));
    memset(out, 0, c->dim * sizeof *out);
    if (v.data && v.size == (size_t)c->dim * leat_dtype_size(c->dtype))
        (void)leat__view_floats(c->dtype, v.data, c->dim, out);
    return 0;
}

static float cosine(const float *a, const float *b, uint32_t n)
{
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < n; i++) {
        ab += (double)a[i] * b[i];
        aa += (double)a[i] * a[i];
        bb += (double)b[i] * b[i];
    }
    return aa > 0 && bb > 0 ? (float)(ab / sqrt(aa * bb)) : 0;
}

static int by_nearness(const void *x, const void *y)
{
    const leat__view_near *a = x, *b = y;
    return is_nearer(a, b) ? -1 : is_nearer(b, a);
}

static int find_similar(leat__view_data *d, leat__view_column *c, uint32_t row, leat__view_near *heap,
                        uint32_t room, uint32_t *count, float *vectors, leat_error *err)
{
    const int8_t *own = c->vector + (size_t)row * c->dim;
    for (uint32_t i = 0; i < d->rows; i++) {
        if (i == row || c->norm[i] == 0) continue;
        const int32_t sum = dot_bytes(own, c->vector + (size_t)i * c->dim, c->dim);
        keep_nearest(heap, count, room, (leat__view_near){i, (float)sum / c->norm[i] / c->norm[row]});
    }
    LEAT_TRY(read_vector(d, c, row, vectors, err));
    for (uint32_t i = 0; i < *count; i++) {
        LEAT_TRY(read_vector(d, c, heap[i].row, vectors + c->dim, err));
        heap[i].cosine = cosine(vectors, vectors + c->dim, c->dim);
    }
    qsort(heap, *count, sizeof *heap, by_nearness);
    return 0;
}

int leat__view_similar(leat__view_data *d, leat__view_column *c, uint32_t row, leat__view_near *near,
                       uint32_t most, uint32_t *count, leat_error *err)
{
    const uint32_t room = most * EXACT;
    uint32_t found = 0;
    *count = 0;
    LEAT_TRY(leat__view_load(d, c, err));
    if (c->norm[row] == 0)
        return leat__fail(err, LEAT_ENOENT, "row %u has no vector in \"%s\"", row, c->name);
    leat__view_near *heap = LEAT_NEW_ARRAY(MISC, leat__view_near, LEAT_MAX(room, 1u));
    float *vectors = LEAT_NEW_ARRAY(MISC, float, 2 * (size_t)c->dim);
    int rc = heap && vectors ? find_similar(d, c, row, heap, LEAT_MAX(room, 1u), &found, vectors, err)
                             : leat__fail_nomem(err, room * sizeof *heap, "neighbours");
    if (rc == 0) {
        *count = LEAT_MIN(found, most);
        memcpy(near, heap, *count * sizeof *near);
    }
    leat__free(heap);
    leat__free(vectors);
    return rc;
}
