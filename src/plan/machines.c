/* SPDX-License-Identifier: Apache-2.0
 *
 * Recommends a machine for a dataset: the guides' rows (data/plan/machines.txt), raised until they satisfy
 * the memory model, and for comparison the rule "4 GB of RAM and 2 GB of VRAM per vCPU".
 */
#include "plan/parts.h"

#include <stdio.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

static bool row_holds(uint64_t amount, uint64_t up_to, uint64_t inclusive)
{
    return up_to == 0 || amount < up_to || (inclusive && amount == up_to);
}

uint64_t leat_plan_frames(double hours, double fps)
{
    double frames = hours * 3600 * fps;
    return frames > 0 && frames < 1e18 ? (uint64_t)(frames + 0.5) : 0;
}

/* Turns the guide's row into a machine and checks it with the memory model. */
static int try_image_row(size_t row, const leat_plan_facts *facts, leat_plan_machine *m, leat_error *err)
{
    const plan_image_machine *r = &plan_image_machine_rows[row];
    leat_plan plan;
    leat_plan_facts f = *facts;
    f.cpus = (uint32_t)r->cpus;
    f.gpus = (uint32_t)r->gpus;
    f.nodes = 1;
    f.whole_machine = 1;
    f.ram_bytes = r->ram_gb * PLAN_GB;
    f.ram_used_bytes = f.shm_bytes = f.vram_bytes = f.limit_bytes = 0;
    snprintf(f.gpu, sizeof f.gpu, "%s", r->gpu);
    LEAT_TRY(leat_plan_make(&f, &plan, sizeof plan, err));
    snprintf(m->name, sizeof m->name, "%s", r->name);
    snprintf(m->gpu, sizeof m->gpu, "%s", r->gpu);
    m->row = (uint32_t)row;
    m->fits = plan.fits == 1;
    m->cpus = f.cpus;
    m->nodes_low = m->nodes_high = 1;
    m->gpus_low = m->gpus_high = f.gpus;
    m->ram_bytes = f.ram_bytes;
    m->ram_needed_bytes = plan.ram.with_validation;
    m->vram_bytes = plan.vram.limit;
    m->vram_needed_bytes = plan.vram.total;
    m->rule_ram_bytes = 4 * PLAN_GB * m->cpus;
    m->rule_vram_bytes = 2 * PLAN_GB * m->cpus;
    m->rate = plan.speed.rate;
    m->total_s = plan.speed.total_s;
    m->limit = plan.speed.limit;
    m->incomplete = plan.speed.incomplete;
    return 0;
}

/* Names the smallest card that can run the step, when no row of the guide can. */
static void name_larger_gpu(leat_plan_machine *m)
{
    const plan_gpu *best = NULL;
    for (size_t i = 0; i < LEAT_COUNT(plan_gpu_rows); i++) {
        const plan_gpu *g = &plan_gpu_rows[i];
        if ((double)(g->vram_mib << 20) * PLAN_ALIVE < (double)m->vram_needed_bytes) continue;
        if (best == NULL || g->vram_mib < best->vram_mib) best = g;
    }
    if (m->vram_needed_bytes <= m->vram_bytes)
        snprintf(m->note, sizeof m->note, "needs more memory than any row of the guide has");
    else if (best == NULL)
        snprintf(m->note, sizeof m->note, "no GPU known here holds this step: lower the batch");
    else
        snprintf(m->note, sizeof m->note, "needs a GPU with more memory: %s is the least that fits",
                 best->name);
}

static int recommend_images(uint64_t amount, const leat_plan_facts *facts, leat_plan_machine *m,
                            leat_error *err)
{
    const size_t rows = LEAT_COUNT(plan_image_machine_rows);
    leat_plan_facts f;
    if (facts != NULL) f = *facts;
    else leat_plan_facts_init(&f);
    f.samples = amount;
    size_t first = 0;
    while (first + 1 < rows &&
           !row_holds(amount, plan_image_machine_rows[first].up_to, plan_image_machine_rows[first].inclusive))
        first++;
    snprintf(m->source, sizeof m->source, "%s", PLAN_IMAGE_MACHINE_SOURCE);
    for (size_t row = first; row < rows; row++) {
        LEAT_TRY(try_image_row(row, &f, m, err));
        m->raised = (uint32_t)(row - first);
        if (m->fits) break;
    }
    if (!m->fits) { /* never recommend a machine that would fail */
        name_larger_gpu(m);
        m->name[0] = '\0';
    } else if (m->raised > 0)
        snprintf(m->note, sizeof m->note, "raised: the guide's row would run out of memory");
    else if (f.epochs > 1)
        snprintf(m->note, sizeof m->note, "for many epochs a V100 or A10 or better is worth it");
    return 0;
}

#define CLUSTER_FIELDS(m, r, row_, source_)                                                                  \
    do {                                                                                                     \
        (m)->row = (uint32_t)(row_);                                                                         \
        (m)->nodes_low = (uint32_t)(r)->nodes_low;                                                           \
        (m)->nodes_high = (uint32_t)(r)->nodes_high;                                                         \
        (m)->gpus_low = (uint32_t)(r)->gpus_low;                                                             \
        (m)->gpus_high = (uint32_t)(r)->gpus_high;                                                           \
        (m)->open_ended = (uint32_t)(r)->open_ended;                                                         \
        (m)->ram_bytes = (r)->ram_gb * PLAN_GB;                                                              \
        snprintf((m)->note, sizeof(m)->note, "%s", (r)->note);                                               \
        snprintf((m)->source, sizeof(m)->source, "%s", (source_));                                           \
    } while (0)

/* Recommends a cluster for text. Fuzzy deduplication needs the most memory: by the guide's own
 * formula, the memory of a row's nodes must hold at least one band at a time. */
static int recommend_text(uint64_t bytes, const leat_plan_facts *facts, leat_plan_machine *m, leat_error *err)
{
    const size_t rows = LEAT_COUNT(plan_text_cluster_rows);
    uint64_t gb = bytes / PLAN_GB + (bytes % PLAN_GB != 0); /* round up: 100 GB and one byte is
                                                             * more than 100 GB */
    uint64_t documents =
        facts != NULL && facts->samples > 0 ? facts->samples : bytes / 4000; /* about 4 KB per page */
    size_t first = 0;
    while (first + 1 < rows) {
        const plan_text_cluster *r = &plan_text_cluster_rows[first];
        bool below = r->inclusive ? row_holds(gb, r->up_to, 1) : bytes < r->up_to * PLAN_GB;
        if (r->up_to == 0 || below) break;
        first++;
    }
    for (size_t row = first; row < rows; row++) {
        const plan_text_cluster *r = &plan_text_cluster_rows[row];
        CLUSTER_FIELDS(m, r, row, PLAN_TEXT_CLUSTER_SOURCE);
        m->raised = (uint32_t)(row - first);
        m->fits = 1;
        if (documents == 0) break;
        leat_plan_minhash_facts mf = {
            .documents = documents, .dataset_bytes = bytes, .memory_bytes = m->ram_bytes * r->nodes_high};
        leat_plan_minhash mh;
        LEAT_TRY(leat_plan_minhash_make(&mf, &mh, err));
        m->ram_needed_bytes = mh.guide_bytes;
        m->fits = mh.guide_fits || r->open_ended; /* "or more": as many nodes as needed */
        if (r->open_ended && !mh.guide_fits) {
            uint64_t nodes = leat__ceil_div(mh.guide_bytes, m->ram_bytes);
            m->nodes_low = m->nodes_high = (uint32_t)LEAT_MIN(nodes, UINT64_C(1) << 30);
            snprintf(m->note, sizeof m->note, "large cluster: the band tables need %u nodes", m->nodes_low);
        }
        if (m->fits) break;
    }
    return 0;
}

static void recommend_video(uint64_t videos, leat_plan_machine *m)
{
    const size_t rows = LEAT_COUNT(plan_video_cluster_rows);
    size_t row = 0;
    while (row + 1 < rows &&
           !row_holds(videos, plan_video_cluster_rows[row].up_to, plan_video_cluster_rows[row].inclusive))
        row++;
    CLUSTER_FIELDS(m, &plan_video_cluster_rows[row], row, PLAN_VIDEO_CLUSTER_SOURCE);
    m->fits = 1;
}

int leat_plan_recommend(leat_plan_kind kind, uint64_t amount, const leat_plan_facts *facts,
                        leat_plan_machine *machine, leat_error *err)
{
    LEAT_REQUIRE(machine != NULL, err);
    *machine = (leat_plan_machine){0};
    if (amount > UINT64_C(1) << 58)
        return leat__fail(err, LEAT_EINVAL, "a dataset of %llu is out of range", (unsigned long long)amount);
    switch (kind) {
    case LEAT_PLAN_KIND_IMAGES: return recommend_images(amount, facts, machine, err);
    case LEAT_PLAN_KIND_TEXT: return recommend_text(amount, facts, machine, err);
    case LEAT_PLAN_KIND_VIDEO: recommend_video(amount, machine); return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "no such kind of dataset");
}
