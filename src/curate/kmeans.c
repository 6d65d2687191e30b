/* SPDX-License-Identifier: Apache-2.0
 *
 * See kmeans.h.
 */
#include "curate/kmeans.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "probe/cpu.h"

#define ROUNDS 10
#define TILE 64 /* centres compared at a time */

typedef struct assigning {
    const leat__kmeans *k;
    const leat__vectors *v;
    void (*compare)(const float *a, const float *b, size_t dim, size_t count, float *out);
    uint32_t *to;
    float *distance;
} assigning;

typedef struct moving {
    leat__kmeans *k;
    const leat__vectors *v;
    const uint32_t *to;
    double *sum; /* count * dim */
    uint32_t *members;
} moving;

uint64_t leat__kmeans_bytes(uint64_t rows, uint32_t count, size_t dim)
{
    return (uint64_t)count * (dim * (sizeof(float) + sizeof(double)) + 4) + rows * 8;
}

static void assign_rows(void *cookie, uint32_t member, uint32_t members)
{
    const assigning *a = cookie;
    const leat__kmeans *k = a->k;
    float out[TILE];
    const uint64_t end = a->v->count * (member + 1) / members;
    for (uint64_t i = a->v->count * member / members; i < end; i++) {
        float best = INFINITY;
        uint32_t at = 0;
        for (uint32_t c = 0; c < k->count; c += TILE) {
            const uint32_t n = LEAT_MIN(k->count - c, TILE);
            a->compare(leat__vectors_at(a->v, i), k->centre + (size_t)c * k->dim, k->dim, n, out);
            for (uint32_t j = 0; j < n; j++)
                if (out[j] < best) {
                    best = out[j];
                    at = c + j;
                }
        }
        a->to[i] = at;
        LEAT_ASSERT(at < k->count);
        a->distance[i] = best;
    }
}

void leat__kmeans_assign(const leat__kmeans *k, const leat__vectors *v, uint32_t *to, float *distance,
                         leat__thread_team *crew)
{
    LEAT_ASSERT(k->dim == v->dim && k->count > 0);
    assigning a = {k, v, leat__distance_dsp_for(leat__cpu_flags())->rows, to, distance};
    leat__thread_team_run(crew, assign_rows, &a);
}

/* Sums the rows of each centre; each member has its own centres. */
static void add_rows(void *cookie, uint32_t member, uint32_t members)
{
    const moving *m = cookie;
    const leat__kmeans *k = m->k;
    const uint32_t first = (uint32_t)((uint64_t)k->count * member / members);
    const uint32_t end = (uint32_t)((uint64_t)k->count * (member + 1) / members);
    for (uint64_t i = 0; i < m->v->count; i++) {
        const uint32_t c = m->to[i];
        LEAT_ASSERT(c < k->count);
        if (c < first || c >= end) continue;
        const float *x = leat__vectors_at(m->v, i);
        double *sum = m->sum + (size_t)c * k->dim;
        m->members[c]++;
        for (size_t d = 0; d < k->dim; d++) sum[d] += (double)x[d];
    }
}

void leat__kmeans_add(leat__kmeans *k, const leat__vectors *v, const uint32_t *to, double *sum,
                      uint32_t *members, leat__thread_team *crew)
{
    LEAT_ASSERT(k->dim == v->dim);
    moving m = {k, v, to, sum, members};
    leat__thread_team_run(crew, add_rows, &m);
}

void leat__kmeans_move(leat__kmeans *k, const double *sums)
{
    for (uint32_t c = 0; c < k->count; c++) {
        const double *sum = sums + (size_t)c * k->dim;
        double length = 0;
        for (size_t d = 0; d < k->dim; d++) length += sum[d] * sum[d];
        if (length <= 0) continue; /* a centre without rows stays */
        length = 1 / sqrt(length);
        for (size_t d = 0; d < k->dim; d++) k->centre[(size_t)c * k->dim + d] = (float)(sum[d] * length);
    }
}

static void measure_rows(void *cookie, uint32_t member, uint32_t members)
{
    const assigning *a = cookie;
    const uint64_t end = a->v->count * (member + 1) / members;
    for (uint64_t i = a->v->count * member / members; i < end; i++)
        a->compare(leat__vectors_at(a->v, i), a->k->centre + (size_t)a->to[i] * a->k->dim, a->k->dim, 1,
                   &a->distance[i]);
}

void leat__kmeans_measure(const leat__kmeans *k, const leat__vectors *v, uint32_t *to, float *distance,
                          leat__thread_team *crew)
{
    LEAT_ASSERT(k->dim == v->dim);
    assigning a = {k, v, leat__distance_dsp_for(leat__cpu_flags())->rows, to, distance};
    leat__thread_team_run(crew, measure_rows, &a);
}

/* Moves each centre without rows to the row farthest from its own centre. */
static void fill_empty(leat__kmeans *k, const moving *m, float *distance)
{
    for (uint32_t c = 0; c < k->count; c++) {
        uint64_t far = 0;
        if (m->members[c] > 0) continue;
        for (uint64_t i = 1; i < m->v->count; i++)
            if (distance[i] > distance[far]) far = i;
        memcpy(k->centre + (size_t)c * k->dim, leat__vectors_at(m->v, far), k->dim * sizeof(float));
        distance[far] = 0;
    }
}

int leat__kmeans_train(leat__kmeans *k, const leat__vectors *v, uint32_t count, leat__thread_team *crew,
                       leat_error *err)
{
    memset(k, 0, sizeof *k);
    k->count = (uint32_t)LEAT_MIN((uint64_t)LEAT_MAX(count, 1), LEAT_MAX(v->count, 1));
    k->dim = v->dim;
    k->centre = leat__zalloc_array(LEAT__MEM_CURATE, k->count, v->dim * sizeof(float));
    double *sum = leat__zalloc_array(LEAT__MEM_CURATE, k->count, v->dim * sizeof(double));
    uint32_t *members = LEAT_NEW_ARRAY(CURATE, uint32_t, k->count);
    uint32_t *to = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(v->count, 1));
    float *distance = LEAT_NEW_ARRAY(CURATE, float, LEAT_MAX(v->count, 1));
    int rc = 0;
    if (!k->centre || !sum || !members || !to || !distance)
        rc = leat__fail_nomem(err, leat__kmeans_bytes(v->count, k->count, v->dim), "clusters");
    for (uint32_t c = 0; rc == 0 && c < k->count && v->count > 0; c++) /* start from evenly spaced rows */
        memcpy(k->centre + (size_t)c * k->dim, leat__vectors_at(v, (uint64_t)c * v->count / k->count),
               k->dim * sizeof(float));
    moving m = {k, v, to, sum, members};
    for (int round = 0; rc == 0 && round < ROUNDS && k->count > 1; round++) {
        leat__kmeans_assign(k, v, to, distance, crew);
        memset(sum, 0, (size_t)k->count * k->dim * sizeof *sum);
        memset(members, 0, k->count * sizeof *members);
        leat__kmeans_add(k, v, to, sum, members, crew);
        leat__kmeans_move(k, sum);
        fill_empty(k, &m, distance);
    }
    leat__free(sum);
    leat__free(members);
    leat__free(to);
    leat__free(distance);
    if (rc != 0) leat__kmeans_reset(k);
    return rc;
}

void leat__kmeans_reset(leat__kmeans *k)
{
    leat__free(k->centre);
    memset(k, 0, sizeof *k);
}
