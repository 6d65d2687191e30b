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

/* ---- the sample ---- */

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

/* ---- the saved state ---- */

enum { PARTS = 8 };

/* Lists the arrays of the saved state: all that is known about the rows. Saved between chunks of rows
 * and between clusters. */
static void list_parts(leat__semantic *s, leat__saved_part parts[PARTS])
{
    const size_t rows = (size_t)s->store->count, numbers = (size_t)s->k.count * s->k.dim;
    parts[0] = (leat__saved_part){&s->at, sizeof s->at};
    parts[1] = (leat__saved_part){s->k.centre, numbers * sizeof *s->k.centre};
    parts[2] = (leat__saved_part){s->sum, numbers * sizeof *s->sum};
    parts[3] = (leat__saved_part){s->members, s->k.count * sizeof *s->members};
    parts[4] = (leat__saved_part){s->cluster, rows * sizeof *s->cluster};
    parts[5] = (leat__saved_part){s->distance, rows * sizeof *s->distance};
    parts[6] = (leat__saved_part){s->similarity, rows * sizeof *s->similarity};
    parts[7] = (leat__saved_part){s->of, rows * sizeof *s->of};
}

/* Reports progress, and saves the state when stopped or when some time has passed. If saving fails,
 * for example on a full disk, the run continues without it. */
static int tell(leat__semantic *s, uint64_t done, leat_error *err)
{
    leat__saved_part parts[PARTS];
    const int stop = s->tell(s->cookie, done, s->store->count);
    if (stop != 0 || leat__saved_due(s->saved)) {
        list_parts(s, parts);
        (void)!leat__saved_store(s->saved, parts, PARTS, NULL);
    }
    return stop != 0 ? leat__fail(err, LEAT_ECANCELED, "the run was stopped") : 0;
}

static bool is_sound(const leat__semantic *s)
{
    const uint64_t rows = s->store->count;
    if (s->at.phase > LEAT__SEMANTIC_COMPARE || s->at.row > rows) return false;
    for (uint64_t i = 0; i < rows; i++)
        if (s->cluster[i] >= s->k.count || (s->of[i] >= rows && s->of[i] != LEAT__SEMANTIC_NONE))
            return false;
    return true;
}

static void begin_rows(leat__semantic *s)
{
    memset(&s->at, 0, sizeof s->at);
    memset(s->sum, 0, (size_t)s->k.count * s->k.dim * sizeof *s->sum);
    memset(s->members, 0, s->k.count * sizeof *s->members);
    memset(s->cluster, 0, (size_t)s->store->count * sizeof *s->cluster);
    for (uint64_t i = 0; i < s->store->count; i++) {
        s->similarity[i] = INFINITY;
        s->of[i] = LEAT__SEMANTIC_NONE;
    }
}

/* Loads the centres from the saved state, or finds them on a sample of the rows. */
static int find_centres(leat__semantic *s, uint64_t sample, leat_error *err)
{
    leat__saved_part parts[PARTS];
    leat__vectors v = {0};
    bool found = false;
    list_parts(s, parts);
    LEAT_TRY(leat__saved_load(s->saved, parts, PARTS, &found, err));
    if (found && is_sound(s)) {
        s->resumed = s->at.phase == LEAT__SEMANTIC_COMPARE ? s->store->count : s->at.row;
        return 0;
    }
    begin_rows(s);
    leat__kmeans_reset(&s->k);
    int rc = sample_rows(s, LEAT_MIN(sample, s->store->count), &v, err);
    if (rc == 0) rc = leat__kmeans_train(&s->k, &v, s->clusters, s->crew, err);
    leat__vectors_reset(&v);
    return rc;
}

/* ---- clusters of all rows ---- */

/* Assigns a chunk of rows to clusters and sums them, or measures their distance to the mean. */
static void take_chunk(leat__semantic *s, const leat__vectors *v)
{
    const uint64_t at = s->at.row;
    if (s->at.phase == LEAT__SEMANTIC_MEASURE) {
        leat__kmeans_measure(&s->k, v, s->cluster + at, s->distance + at, s->crew);
        return;
    }
    leat__kmeans_assign(&s->k, v, s->cluster + at, s->distance + at, s->crew);
    if (s->keep != LEAT_KEEP_SIMILAR_FIRST)
        leat__kmeans_add(&s->k, v, s->cluster + at, s->sum, s->members, s->crew);
}

/* Processes all rows in chunks. Clusters come from a sample; distances are to the mean of all rows of
 * a cluster, which only some orders need. */
static int pass_rows(leat__semantic *s, uint64_t chunk, leat_error *err)
{
    leat__vectors v = {.dim = s->store->dim};
    v.row = leat__alloc_array(LEAT__MEM_CURATE, chunk, v.dim * sizeof(float));
    int rc = v.row ? 0 : leat__fail_nomem(err, chunk * v.dim * sizeof(float), "rows");
    while (rc == 0 && s->at.phase < LEAT__SEMANTIC_COMPARE) {
        while (rc == 0 && s->at.row < s->store->count) {
            v.count = LEAT_MIN(chunk, s->store->count - s->at.row);
            rc = leat__vector_store_get(s->store, NULL, s->at.row, v.count, v.row, err);
            if (rc != 0) break;
            take_chunk(s, &v);
            s->at.row += v.count;
            rc = tell(s, s->at.row / 2, err);
        }
        if (rc != 0) break;
        if (s->at.phase == LEAT__SEMANTIC_ASSIGN) leat__kmeans_move(&s->k, s->sum);
        s->at.row = 0;
        s->at.phase = s->at.phase == LEAT__SEMANTIC_ASSIGN && s->keep != LEAT_KEEP_SIMILAR_FIRST
                          ? LEAT__SEMANTIC_MEASURE
                          : LEAT__SEMANTIC_COMPARE;
    }
    leat__vectors_reset(&v);
    return rc;
}

int leat__semantic_cluster(leat__semantic *s, uint64_t sample, uint64_t chunk, leat_error *err)
{
    const size_t dim = s->store->dim;
    s->k = (leat__kmeans){.count = s->clusters, .dim = dim};
    s->k.centre = leat__zalloc_array(LEAT__MEM_CURATE, s->clusters, dim * sizeof(float));
    s->sum = leat__zalloc_array(LEAT__MEM_CURATE, s->clusters, dim * sizeof *s->sum);
    s->members = LEAT_NEW_ARRAY(CURATE, uint32_t, s->clusters);
    if (!s->k.centre || !s->sum || !s->members)
        return leat__fail_nomem(err, leat__kmeans_bytes(0, s->clusters, dim), "clusters");
    LEAT_TRY(find_centres(s, sample, err));
    return pass_rows(s, chunk, err);
}

void leat__semantic_reset(leat__semantic *s)
{
    leat__kmeans_reset(&s->k);
    leat__free(s->sum);
    leat__free(s->members);
    s->sum = NULL;
    s->members = NULL;
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
    bool same; /* both are the same tile: only its earlier rows count */
} comparing;

/* Each member takes every members-th row, since later rows have more to compare. */
static void compare_part(void *cookie, uint32_t member, uint32_t members)
{
    const comparing *c = cookie;
    leat__semantic *s = c->s;
    const size_t dim = s->store->dim;
    float out[BLOCK];
    for (uint64_t i = member; i < c->own.n; i += members) {
        const uint32_t row = c->own.row[i];
        const uint64_t end = c->same ? i : c->earlier.n;
        float nearest = s->similarity[row]; /* squared distance of the best row so far */
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
    s->at.pairs += n * (n - 1) / 2;
    s->at.largest = LEAT_MAX(s->at.largest, n);
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

/* Sorts rows by cluster, and within a cluster in the order in which they are kept. */
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
    while (rc == 0 && s->at.row < n) {
        uint64_t end = s->at.row + 1;
        while (end < n && s->cluster[row[end]] == s->cluster[row[s->at.row]]) end++;
        rc = compare_cluster(s, row + s->at.row, end - s->at.row, memory, err);
        if (rc != 0) break;
        s->at.row = end;
        rc = tell(s, n / 2 + end / 2, err);
    }
    for (uint64_t i = 0; i < n && rc == 0; i++) /* squared distances of unit vectors to similarities */
        s->similarity[i] = s->of[i] == LEAT__SEMANTIC_NONE ? -1 : 1 - s->similarity[i] / 2;
    leat__free(row);
    leat__free(memory);
    return rc;
}
