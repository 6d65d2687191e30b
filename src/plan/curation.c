/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, spill and passes of fuzzy deduplication: the guide's formula, and leat's method (a
 * 64-bit digest per band and a 40-bit document id, sorted partition by partition within the
 * limit, joined by union-find on dense ids).
 */
#include "plan/parts.h"

#include "base/error.h"
#include "base/num.h"

#define DIGEST_BYTES 13 /* 8-byte digest of a band's hashes, 5-byte document id */
/* A partition is sorted in memory, with space for the second buffer of the sort. */
#define SORT_FACTOR 2

static uint64_t guide_bytes(const leat_plan_minhash_facts *f, uint32_t bands_at_once)
{
    double per_doc = 8.0 * f->hashes + f->overhead_bytes;
    return (uint64_t)((double)f->documents * per_doc * bands_at_once / f->bands + 0.5);
}

static void guide_bands(const leat_plan_minhash_facts *f, leat_plan_minhash *p)
{
    if (f->dataset_bytes == 0) return;
    for (size_t i = 0; i < LEAT_COUNT(plan_dedup_bands_rows); i++) {
        const plan_dedup_bands *r = &plan_dedup_bands_rows[i];
        uint64_t edge = r->up_to * PLAN_GB;
        if (r->up_to != 0 && f->dataset_bytes >= edge + (r->inclusive ? 1 : 0)) continue;
        p->guide_bands_low = (uint32_t)r->bands_low;
        p->guide_bands_high = (uint32_t)r->bands_high;
        return;
    }
}

int leat_plan_minhash_make(const leat_plan_minhash_facts *facts, leat_plan_minhash *plan, leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && plan != NULL, err);
    leat_plan_minhash_facts f = *facts;
    *plan = (leat_plan_minhash){0};
    if (f.hashes == 0) f.hashes = 260;
    if (f.bands == 0) f.bands = 20;
    if (f.overhead_bytes == 0) f.overhead_bytes = 16;
    if (f.documents > UINT64_C(1) << 40)
        return leat__fail(err, LEAT_EINVAL, "%llu documents do not fit 40-bit ids",
                          (unsigned long long)f.documents);
    if (f.bands > f.hashes || f.hashes > 65536)
        return leat__fail(err, LEAT_EINVAL, "%u bands of %u hashes", f.bands, f.hashes);
    if (f.bands_per_iteration > f.bands)
        return leat__fail(err, LEAT_EINVAL, "%u of %u bands per iteration", f.bands_per_iteration, f.bands);

    guide_bands(&f, plan);
    plan->guide_all_bytes = guide_bytes(&f, f.bands);
    plan->guide_fits = f.memory_bytes == 0 || guide_bytes(&f, 1) <= f.memory_bytes;
    uint32_t bands = f.bands_per_iteration;
    if (bands == 0)
        for (bands = f.bands; bands > 1 && f.memory_bytes > 0; bands--)
            if (guide_bytes(&f, bands) <= f.memory_bytes) break;
    plan->bands_per_iteration = bands;
    plan->passes = (uint32_t)leat__ceil_div(f.bands, bands);
    plan->guide_bytes = guide_bytes(&f, bands);

    plan->union_bytes = f.documents * (f.documents > UINT32_MAX ? 8 : 4);
    plan->spill_bytes = f.documents * f.bands * DIGEST_BYTES;
    plan->digest_bytes = f.documents * bands * DIGEST_BYTES;
    plan->partitions = 1;
    plan->fits = 1;
    if (f.memory_bytes == 0) return 0;
    plan->fits = plan->union_bytes < f.memory_bytes;
    if (plan->fits)
        plan->partitions = LEAT_MAX(
            leat__ceil_div(SORT_FACTOR * plan->spill_bytes, f.memory_bytes - plan->union_bytes), UINT64_C(1));
    return 0;
}
