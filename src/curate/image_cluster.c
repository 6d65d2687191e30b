/* SPDX-License-Identifier: Apache-2.0
 *
 * Clusters of duplicates: rows connected by pairs. The choice of the kept row does not depend on the
 * order of the pairs.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/image_dedup.h"

static uint32_t root_of(uint32_t *parent, uint32_t row)
{
    while (parent[row] != row) row = parent[row] = parent[parent[row]];
    return row;
}

/* A bit of the kept row at the root, for LEAT_KEEP_IMAGE_QUALITY: some row of the cluster has an
 * unknown quality, so quality is ignored for the whole cluster. Comparing it pair by pair would be
 * contradictory: a JPEG of quality 90 beats a larger one of quality 80, and a WebP file can be
 * between them in size. */
#define MIXED (UINT32_C(1) << 31)

/* True when row `a` is kept rather than `b`. The last rule is the order of the rows. */
static bool is_better(const leat__dedup_rows *rows, uint32_t keep, bool mixed, uint32_t a, uint32_t b)
{
    const leat__dedup_row *x = &rows->row[a], *y = &rows->row[b];
    if (keep == LEAT_KEEP_IMAGE_PACK && x->pack != y->pack) return x->pack < y->pack;
    if (keep == LEAT_KEEP_IMAGE_FIRST) return a < b;
    if (keep == LEAT_KEEP_IMAGE_QUALITY && !mixed && x->quality != y->quality) return x->quality > y->quality;
    if (x->size != y->size) return x->size > y->size;
    if (mixed && x->lossless != y->lossless) return x->lossless > y->lossless;
    if (x->bytes != y->bytes) return x->bytes > y->bytes;
    return a < b;
}

int leat__dedup_clusters(const leat__dedup_rows *rows, const leat__image_pairs *pairs, uint32_t keep,
                         uint32_t *kept, leat_error *err)
{
    uint32_t *parent = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(rows->count, 1));
    if (!parent) return leat__fail_nomem(err, 4 * (size_t)rows->count, "clusters");
    for (uint32_t i = 0; i < rows->count; i++) parent[i] = kept[i] = i;
    for (uint64_t i = 0; i < pairs->count; i++) {
        if (pairs->pair[i].probable) continue;
        const uint32_t a = root_of(parent, pairs->pair[i].a), b = root_of(parent, pairs->pair[i].b);
        if (a != b) parent[LEAT_MAX(a, b)] = LEAT_MIN(a, b);
    }
    for (uint32_t i = 0; i < rows->count && keep == LEAT_KEEP_IMAGE_QUALITY; i++)
        if (rows->row[i].quality <= 0) kept[root_of(parent, i)] |= MIXED;
    for (uint32_t i = 0; i < rows->count; i++) { /* kept[root] is the best row so far */
        const uint32_t root = root_of(parent, i), mixed = kept[root] & MIXED;
        if (is_better(rows, keep, mixed != 0, i, kept[root] & ~MIXED)) kept[root] = i | mixed;
    }
    for (uint32_t i = rows->count; i-- > 0;)
        kept[i] = kept[root_of(parent, i)] & ~MIXED; /* a root comes after its rows */
    leat__free(parent);
    return 0;
}
