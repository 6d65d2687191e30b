/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, work files and passes of fuzzy deduplication: by the guide's formula, and for leat
 * (text_plan.c).
 */
#include "plan/parts.h"

#include "base/error.h"
#include "base/num.h"

#define DOCUMENTS_MAX (UINT64_C(4294967294)) /* maximum documents of a run of leat */

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
    leat__plan_dedup leat = {.documents = f.documents, .bands_at_once = f.bands_per_iteration};
    if (f.hashes != 0 || f.bands != 0) { /* given: leat uses the same */
        leat.bands = f.bands ? f.bands : 20;
        leat.rows = (f.hashes ? f.hashes : 260) / leat.bands;
    }
    if (f.hashes == 0) f.hashes = 260;
    if (f.bands == 0) f.bands = 20;
    if (f.overhead_bytes == 0) f.overhead_bytes = 16;
    if (f.documents > UINT64_C(1) << 40)
        return leat__fail(err, LEAT_EINVAL, "%llu documents do not fit 40-bit ids",
                          (unsigned long long)f.documents);
    if (f.bands > f.hashes || f.hashes > 65536)
        return leat__fail(err, LEAT_EINVAL,
                          "%u bands with %u hashes in total (`bands`, `hashes`): must be at most "
                          "65536 hashes, and at least one per band",
                          f.bands, f.hashes);
    if (f.bands_per_iteration > f.bands)
        return leat__fail(err, LEAT_EINVAL, "`bands_per_iteration` %u is more than the %u bands",
                          f.bands_per_iteration, f.bands);

    guide_bands(&f, plan);
    plan->guide_all_bytes = guide_bytes(&f, f.bands);
    plan->guide_fits = f.memory_bytes == 0 ? 2 : guide_bytes(&f, 1) <= f.memory_bytes;
    uint32_t bands = f.bands_per_iteration;
    if (bands == 0)
        for (bands = f.bands; bands > 1 && f.memory_bytes > 0; bands--)
            if (guide_bytes(&f, bands) <= f.memory_bytes) break;
    plan->bands_per_iteration = bands;
    plan->passes = (uint32_t)leat__ceil_div(f.bands, bands);
    plan->guide_bytes = guide_bytes(&f, bands);

    leat__plan_dedup_needs(&leat);
    plan->ram_bytes = leat.ram_bytes;
    plan->work_bytes = leat.work_bytes;
    plan->leat_passes = 1 + (uint32_t)leat__ceil_div(leat.bands, leat.bands_at_once);
    plan->fits = f.memory_bytes == 0 ? 2 : plan->ram_bytes <= f.memory_bytes;
    if (f.documents > DOCUMENTS_MAX) plan->fits = 0;
    return 0;
}
