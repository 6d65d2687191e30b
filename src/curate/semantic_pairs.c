/* SPDX-License-Identifier: Apache-2.0
 *
 * See semantic_dedup.h. A cluster is compared tile by tile, so its size is not limited by
 * memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/kmeans.h"
#include "curate/semantic_dedup.h"
#include "probe/cpu.h"

#define BLOCK 64 /* rows compared with one row at a time */

/* ---- clusters ---- */

static int sample_rows(leat__semantic *s, uint64_t sample, leat__vectors *v, leat_error *err)
{
    uint32_t *row = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(sample, 1));
    *v = (leat__vectors){.count = sample, .dim = s->store->dim};
    v->row = leat__alloc_array(LEAT__MEM_CURATE, LEAT_MAX(sample, 1), v->dim * sizeof(float));
    int rc = row && v->row ? 0 : leat__fail_nomem(err, sample * v->dim * sizeof(float), "a sample of rows");
    for (uint64_t i = 0; i < sample && rc == 0; i++) row[i] = (uint32_t)(i * s->store->count / sample);
    if (rc == 0) rc = leat__vector_store_get(s->store, row, 0, sample, v->row, err);
    leat__free(row);
    return rc;
}

typedef struct clustering {
    leat__semantic *s;
    leat__kmeans k;
    double *sum; /* of the rows of each centre */
    uint32_t *members;
} clustering;

enum { ASSIGN, MEASURE, PASSES };

/* Assigns a chunk of rows to clusters and adds them up; or measures their distance to the mean. */
static void take_chunk(clustering *c, int pass, const leat__vectors *v, uint64_t at)
{
    leat__semantic *s = c->s;
    if (pass == MEASURE) {
        leat__kmeans_measure(&c->k, v, s->cluster + at, s->distance + at, s->crew);
        return;
    }
    leat__kmeans_assign(&c->k, v, s->cluster + at, s->distance + at, s->crew);
    if (s->keep != LEAT_KEEP_SIMILAR_FIRST)
        leat__kmeans_add(&c->k, v, s->cluster + at, c->sum, c->members, s->crew);
}

/* The clusters are found on a sample; distances are those to the mean of all rows of a cluster, which only
 * some orders need. */
static int pass_rows(clustering *c, uint64_t chunk, leat_error *err)
{
    leat__semantic *s = c->s;
    const int passes = s->keep == LEAT_KEEP_SIMILAR_FIRST ? MEASURE : PASSES;
    leat__vectors v = {.dim = s->store->dim};
    v.row = leat__alloc_array(LEAT__MEM_CURATE, chunk, v.dim * sizeof(float));
    c->sum = leat__zalloc_array(LEAT__MEM_CURATE, c->k.count, v.dim * sizeof *c->sum);
    c->members = LEAT_NEW_ARRAY(CURATE, uint32_t, c->k.count);
    int rc = v.row && c->sum && c->members ? 0 : leat__fail_nomem(err, chunk * v.dim * sizeof(float), "rows");
    for (int pass = 0; rc == 0 && pass < passes; pass++) {
        for (uint64_t at = 0; rc == 0 && at < s->store->count; at += v.count) {
            v.count = LEAT_MIN(chunk, s->store->count - at);
            rc = leat__vector_store_get(s->store, NULL, at, v.count, v.row, err);
            if (rc == 0) take_chunk(c, pass, &v, at);
            if (rc == 0 && s->tell(s->cookie, (at + v.count) / 2, s->store->count) != 0)
                rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        }
        if (pass == ASSIGN) leat__kmeans_move(&c->k, c->sum);
    }
    leat__vectors_reset(&v);
    leat__free(c->sum);
    leat__free(c->members);
    return rc;
}

int leat__semantic_cluster(leat__semantic *s, uint64_t sample, uint64_t chunk, leat_error *err)
{
    leat__vectors v = {0};
    clustering c = {.s = s};
    int rc = sample_rows(s, LEAT_MIN(sample, s->store->count), &v, err);
    if (rc == 0) rc = leat__kmeans_train(&c.k, &v, s->clusters, s->crew, err);
    leat__vectors_reset(&v);
    if (rc == 0) s->clusters = c.k.count;
    if (rc == 0) rc = pass_rows(&c, chunk, err);
    leat__kmeans_reset(&c.k);
    return rc;
}

/* ---- inside a cluster ---- */

typedef struct part {
    const uint32_t *row;
    uint64_t n;
    float *vector;
} part;

typedef struct comparing {
    leat__semantic *s;
    void (*compare)(const float *a, const float *b, size_t dim, size_t count, float *out);
    part own, earlier;
    bool same; /* both are one part: only earlier rows of it count */
} comparing;

/* Members take every members-th row: later rows of a part have more to compare. */
static void compare_part(void *cookie, uint32_t member, uint32_t members)
{
    const comparing *c = cookie;
    leat__semantic *s = c->s;
    const size_t dim = s->store->dim;
    float out[BLOCK];
    for (uint64_t i = member; i < c->own.n; i += members) {
        const uint32_t row = c->own.row[i];
        const uint64_t end = c->same ? i : c->earlier.n;
        float nearest = s->similarity[row]; /* squared distance of the best so far */
        uint32_t of = s->of[row];
        for (uint64_t at = 0; at < end; at += BLOCK) {
            const size_t n = (size_t)LEAT_MIN(end - at, BLOCK);
            c->compare(c->own.vector + i * dim, c->earlier.vector + at * dim, dim, n, out);
            for (size_t k = 0; k < n; k++)
                if (out[k] < nearest) {
                    nearest = out[k];
                    of = c->earlier.row[at + k];
                }
        }
        s->of[row] = of;
        s->similarity[row] = nearest;
    }
}

static int compare_cluster(leat__semantic *s, const uint32_t *row, uint64_t n, float *memory, leat_error *err)
{
    comparing c = {.s = s, .compare = leat__distance_dsp_for(leat__cpu_flags())->rows};
    for (uint64_t at = 0; at < n; at += s->tile) {
        c.own = (part){row + at, LEAT_MIN(s->tile, n - at), memory};
        LEAT_TRY(leat__vector_store_get(s->store, c.own.row, 0, c.own.n, c.own.vector, err));
        for (uint64_t before = 0; before < at; before += s->tile) {
            c.same = false;
            c.earlier = (part){row + before, s->tile, memory + s->tile * s->store->dim};
            LEAT_TRY(leat__vector_store_get(s->store, c.earlier.row, 0, c.earlier.n, c.earlier.vector, err));
            leat__thread_team_run(s->crew, compare_part, &c);
        }
        c.same = true;
        c.earlier = c.own;
        leat__thread_team_run(s->crew, compare_part, &c);
    }
    s->pairs += n * (n - 1) / 2;
    s->largest = LEAT_MAX(s->largest, n);
    return 0;
}

typedef struct place {
    uint32_t cluster, row;
    float distance;
} place;

static int by_row(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->cluster != b->cluster) return a->cluster < b->cluster ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int by_outer(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->cluster != b->cluster) return a->cluster < b->cluster ? -1 : 1;
    if (a->distance != b->distance) return a->distance > b->distance ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static int by_central(const void *x, const void *y)
{
    const place *a = x, *b = y;
    if (a->cluster != b->cluster) return a->cluster < b->cluster ? -1 : 1;
    if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Rows cluster by cluster, in the order in which they are kept. */
static int order_rows(const leat__semantic *s, uint32_t *row, leat_error *err)
{
    static int (*const orders[])(const void *, const void *) = {by_row, by_outer, by_central};
    const uint64_t n = s->store->count;
    place *p = LEAT_NEW_ARRAY(CURATE, place, LEAT_MAX(n, 1));
    if (!p) return leat__fail_nomem(err, n * sizeof *p, "rows");
    for (uint64_t i = 0; i < n; i++) p[i] = (place){s->cluster[i], (uint32_t)i, s->distance[i]};
    if (n > 0) qsort(p, (size_t)n, sizeof *p, orders[s->keep]);
    for (uint64_t i = 0; i < n; i++) row[i] = p[i].row;
    leat__free(p);
    return 0;
}

int leat__semantic_compare(leat__semantic *s, leat_error *err)
{
    const uint64_t n = s->store->count;
    uint32_t *row = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(n, 1));
    float *memory = leat__alloc_array(LEAT__MEM_CURATE, 2 * s->tile, s->store->dim * sizeof(float));
    int rc = row && memory ? order_rows(s, row, err)
                           : leat__fail_nomem(err, 2 * s->tile * s->store->dim * sizeof(float), "rows");
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        s->similarity[i] = INFINITY;
        s->of[i] = LEAT__SEMANTIC_NONE;
    }
    for (uint64_t at = 0, end; at < n && rc == 0; at = end) {
        for (end = at + 1; end < n && s->cluster[row[end]] == s->cluster[row[at]];) end++;
        rc = compare_cluster(s, row + at, end - at, memory, err);
        if (rc == 0 && s->tell(s->cookie, n / 2 + end / 2, n) != 0)
            rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    for (uint64_t i = 0; i < n && rc == 0; i++) /* from squared distances of unit vectors */
        s->similarity[i] = s->of[i] == LEAT__SEMANTIC_NONE ? -1 : 1 - s->similarity[i] / 2;
    leat__free(row);
    leat__free(memory);
    return rc;
}
