/* SPDX-License-Identifier: Apache-2.0
 *
 * See neighbours.h. Rows are searched in groups that share tiles of other rows, which stay in the CPU
 * cache.
 */
#include "curate/neighbours.h"

#include <math.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "probe/cpu.h"

#define GROUP 16  /* rows searched together */
#define TILE 128  /* rows that a group is compared with at a time */
#define STEP 1024 /* rows per member between calls of tell */

typedef struct found {
    uint32_t count;
    leat__neighbour *near; /* a heap with the farthest on top */
} found;

typedef struct searching {
    const leat__neighbours *n;
    void (*compare)(const float *a, const float *b, size_t dim, size_t count, float *out);
    uint64_t first, end;     /* rows of the current step */
    leat__neighbour *memory; /* GROUP * k entries for each member */
    bool *blank;             /* rows without a vector */
} searching;

static bool farther(const leat__neighbour *a, const leat__neighbour *b)
{
    return a->distance != b->distance ? a->distance > b->distance : a->row > b->row;
}

static void sift_down(leat__neighbour *h, uint32_t count, uint32_t at)
{
    LEAT_ASSERT(at < count || count == 0);
    const leat__neighbour x = h[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && farther(&h[child + 1], &h[child])) child++;
        if (!farther(&h[child], &x)) break;
        h[at] = h[child];
        at = child;
    }
    h[at] = x;
}

static void sift_up(leat__neighbour *h, uint32_t at)
{
    const leat__neighbour x = h[at];
    while (at > 0 && farther(&x, &h[(at - 1) / 2])) {
        h[at] = h[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h[at] = x;
}

static void add(found *f, uint32_t k, uint32_t row, float distance)
{
    LEAT_ASSERT(f->count <= k);
    const leat__neighbour x = {distance, row};
    if (f->count < k) {
        f->near[f->count] = x;
        sift_up(f->near, f->count++);
    } else if (farther(&f->near[0], &x)) {
        f->near[0] = x;
        sift_down(f->near, f->count, 0);
    }
}

/* Sorts a heap to nearest first. */
static void sort(found *f)
{
    for (uint32_t n = f->count; n > 1;) {
        const leat__neighbour far = f->near[0];
        f->near[0] = f->near[--n];
        sift_down(f->near, n, 0);
        f->near[n] = far;
    }
}

static void search_group(const searching *s, uint64_t first, uint32_t rows, leat__neighbour *memory)
{
    LEAT_ASSERT(rows <= GROUP && first + rows <= s->n->vectors->count);
    const leat__vectors *v = s->n->vectors;
    found f[GROUP];
    float out[TILE];
    for (uint32_t i = 0; i < rows; i++) f[i] = (found){0, memory + (size_t)i * s->n->k};
    for (uint64_t at = 0; at < v->count; at += TILE) {
        const size_t n = (size_t)LEAT_MIN(v->count - at, TILE);
        for (uint32_t i = 0; i < rows; i++) {
            if (s->blank[first + i]) continue;
            s->compare(leat__vectors_at(v, first + i), leat__vectors_at(v, at), v->dim, n, out);
            const float worst = f[i].count == s->n->k ? f[i].near[0].distance : INFINITY;
            for (size_t k = 0; k < n; k++)
                if (out[k] <= worst && at + k != first + i && !s->blank[at + k])
                    add(&f[i], s->n->k, (uint32_t)(at + k), out[k]);
        }
    }
    for (uint32_t i = 0; i < rows; i++) {
        sort(&f[i]);
        s->n->take(s->n->cookie, first + i, f[i].near, f[i].count);
    }
}

static void search_rows(void *cookie, uint32_t member, uint32_t members)
{
    const searching *s = cookie;
    const uint64_t rows = s->end - s->first;
    const uint64_t end = s->first + rows * (member + 1) / members;
    leat__neighbour *memory = s->memory + (size_t)member * GROUP * s->n->k;
    for (uint64_t at = s->first + rows * member / members; at < end; at += GROUP)
        search_group(s, at, (uint32_t)LEAT_MIN(end - at, GROUP), memory);
}

int leat__neighbours_run(const leat__neighbours *n, leat_error *err)
{
    LEAT_ASSERT(n->take != NULL && n->vectors->count < UINT32_MAX);
    const uint32_t members = leat__thread_team_size(n->crew);
    const uint64_t total = n->vectors->count;
    searching s = {.n = n, .compare = leat__distance_dsp_for(leat__cpu_flags())->rows};
    int rc = 0;
    s.memory = LEAT_NEW_ARRAY(CURATE, leat__neighbour, (size_t)members * GROUP * LEAT_MAX(n->k, 1));
    s.blank = LEAT_NEW_ARRAY(CURATE, bool, LEAT_MAX(total, 1));
    if (!s.memory || !s.blank)
        rc = leat__fail_nomem(err, (uint64_t)members * GROUP * n->k * sizeof *s.memory + total, "neighbours");
    for (uint64_t i = 0; i < total && rc == 0; i++)
        s.blank[i] = leat__vectors_is_zero(leat__vectors_at(n->vectors, i), n->vectors->dim);
    for (uint64_t at = 0; at < total && rc == 0; at = s.end) {
        s.first = at;
        s.end = LEAT_MIN(at + (uint64_t)STEP * members, total);
        leat__thread_team_run(n->crew, search_rows, &s);
        if (n->tell && n->tell(n->cookie, s.end, total) != 0)
            rc = leat__fail(err, LEAT_ECANCELED, "the run was stopped");
    }
    leat__free(s.memory);
    leat__free(s.blank);
    return rc;
}
