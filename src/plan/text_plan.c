/* SPDX-License-Identifier: Apache-2.0
 *
 * Hours, memory and disk of text curation: rates from data/plan/costs.txt, and what the phases of src/curate
 * hold and write for each document. docs/text-scale.md explains the model.
 */
#include "plan/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"

#define DOCUMENT_BYTES 4000
#define DISK_BYTES_PER_S 2.5e9
#define FLOOR_BYTES (UINT64_C(48) << 20)  /* chunks, workers, buffers of spilled files */
#define CLUSTER_BYTES 12                  /* per document while clusters are made, */
#define CLUSTER_FLOOR (UINT64_C(8) << 20) /* plus this, */
#define CLUSTER_EDGES 15                  /* and plus 1/15 of both for edges */
#define RECORD_BYTES 12                   /* per document and band */
#define SIDE_BYTES 48                     /* per document: its id (24), its end, decision and edges */
#define BANDS 14
#define ROWS 8
#define DOCUMENTS_MAX (UINT64_C(4294967294))
/* 32 CPUs do the work of 25. An assumption: only two were measured. */
#define CPU_SHARE (24.0 / 31)
/* Each further pass makes sketches again: 0.54 to 0.58 of the CPU time of a run with one pass,
 * measured on 6,701 documents. */
#define SKETCH_SHARE 0.56

void leat__plan_dedup_needs(leat__plan_dedup *d)
{
    if (d->bands == 0) d->bands = BANDS;
    if (d->rows == 0) d->rows = ROWS;
    if (d->bands_at_once == 0 || d->bands_at_once > d->bands) d->bands_at_once = d->bands;
    uint64_t clusters = d->documents * CLUSTER_BYTES + CLUSTER_FLOOR;
    uint64_t each = (uint64_t)d->bands_at_once * RECORD_BYTES + (uint64_t)d->bands * d->rows + SIDE_BYTES;
    d->ram_bytes = LEAT_MAX(FLOOR_BYTES, clusters + leat__ceil_div(clusters, CLUSTER_EDGES));
    d->work_bytes = d->documents * each;
}

static const plan_text_cost *cost_of(const char *stage)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_text_cost_rows); i++)
        if (strcmp(plan_text_cost_rows[i].stage, stage) == 0) return &plan_text_cost_rows[i];
    return NULL;
}

static void finish(const leat_plan_text_facts *f, leat_plan_text_stage *s)
{
    double both = LEAT_MAX(s->cpu_seconds, s->disk_seconds);
    s->limit = s->disk_seconds > s->cpu_seconds ? LEAT_PLAN_IO : LEAT_PLAN_CPU;
    if (s->serial_seconds > both) s->limit = LEAT_PLAN_CPU;
    s->seconds = both + s->serial_seconds;
    s->fits = f->memory_bytes == 0 ? 2 : s->ram_bytes <= f->memory_bytes;
}

/* Plans a filter run. Files are independent, so machines share them. */
static void plan_filter(const leat_plan_text_facts *f, double cores, leat_plan_text_stage *s)
{
    const plan_text_cost *cost = cost_of("filter");
    double text = (double)f->text_bytes;
    *s = (leat_plan_text_stage){.ram_bytes = FLOOR_BYTES, .passes = 1, .nodes = f->nodes};
    s->cpu_seconds = text / (cost->mb_per_cpu_s * 1e6) / cores / f->nodes;
    s->disk_seconds = text * (1 + cost->kept) / f->disk_bytes_per_s / f->nodes;
    s->output_bytes = (uint64_t)(text * cost->kept);
    finish(f, s);
}

/* Plans a deduplication. The text is read once for each group of bands and once to write; work files
 * are written once and read twice. */
static void plan_dedup(const leat_plan_text_facts *f, uint64_t documents, double cores,
                       leat_plan_text_stage *s)
{
    const plan_text_cost *cost = cost_of("dedup");
    double text = (double)f->text_bytes, n = (double)documents;
    uint32_t groups = (uint32_t)leat__ceil_div(f->bands, f->bands_per_iteration);
    double all = (double)f->bands * RECORD_BYTES + f->bands * f->rows + SIDE_BYTES;
    *s = (leat_plan_text_stage){.passes = groups + 1, .nodes = 1};
    s->cpu_seconds = text / (cost->mb_per_cpu_s * 1e6) / cores * (1 + SKETCH_SHARE * (groups - 1));
    s->disk_seconds = (text * (groups + 1 + cost->kept) + 3 * all * n) / f->disk_bytes_per_s;
    s->serial_seconds = n * cost->serial_us * 1e-6;
    leat__plan_dedup needs = {documents, f->bands, f->rows, f->bands_per_iteration, 0, 0};
    leat__plan_dedup_needs(&needs);
    s->ram_bytes = needs.ram_bytes;
    s->work_bytes = needs.work_bytes;
    s->output_bytes = (uint64_t)(text * cost->kept);
    finish(f, s);
    if (documents > DOCUMENTS_MAX) s->fits = 0;
}

int leat_plan_text_make(const leat_plan_text_facts *facts, leat_plan_text *plan, leat_error *err)
{
    LEAT_REQUIRE(facts != NULL && plan != NULL, err);
    leat_plan_text_facts f = *facts;
    *plan = (leat_plan_text){0};
    if (f.text_bytes == 0) return leat__fail(err, LEAT_EINVAL, "the bytes of text are not given");
    if (!(f.disk_bytes_per_s >= 0))
        return leat__fail(err, LEAT_EINVAL, "disk: %g bytes per second", f.disk_bytes_per_s);
    if (f.disk_bytes_per_s == 0) f.disk_bytes_per_s = DISK_BYTES_PER_S;
    if (f.cpus == 0) f.cpus = 1;
    if (f.nodes == 0) f.nodes = 1;
    if (f.bands == 0) f.bands = BANDS;
    if (f.rows == 0) f.rows = ROWS;
    if (f.bands_per_iteration == 0) f.bands_per_iteration = f.bands;
    if (f.bands > 256 || f.rows > 1024 || f.bands * f.rows > 1024)
        return leat__fail(err, LEAT_EINVAL,
                          "%u bands of %u hashes each: leat has at most 256 bands and 1024 "
                          "hashes in all (`bands`, `hashes`)",
                          f.bands, f.rows);
    if (f.bands_per_iteration > f.bands)
        return leat__fail(err, LEAT_EINVAL, "`bands_per_iteration` %u is more than the %u bands",
                          f.bands_per_iteration, f.bands);
    uint64_t documents = f.documents ? f.documents : leat__ceil_div(f.text_bytes, DOCUMENT_BYTES);
    double cores = leat__plan_cpus(1 + CPU_SHARE * (f.cpus - 1), f.cpu_quota);
    plan->documents = documents;
    plan_filter(&f, cores, &plan->filter);
    plan_dedup(&f, documents, cores, &plan->dedup);
    snprintf(plan->source, sizeof plan->source, "%s", PLAN_TEXT_COST_SOURCE);
    return 0;
}
