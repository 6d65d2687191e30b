/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages of curation pipelines that run on GPUs: the guide's facts about each, and the time that an amount of
 * data takes. The figures are the guide's; none was measured here.
 */
#include "plan/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"
#include "base/str.h"

#define WORD_MAX 48

/* Writes the letters and digits of a name in lower case, the form of the aliases. */
static void plain(const char *name, char out[WORD_MAX])
{
    size_t n = 0;
    for (; *name != '\0' && n + 1 < WORD_MAX; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out[n++] = c;
    }
    out[n] = '\0';
}

static const plan_curation_stage *find(const char *name)
{
    char word[WORD_MAX];
    plain(name, word);
    for (size_t i = 0; i < LEAT_COUNT(plan_curation_stage_rows); i++) {
        const plan_curation_stage *row = &plan_curation_stage_rows[i];
        for (const char *at = row->aliases; *at != '\0';) {
            size_t n = strcspn(at, ",");
            if (n > 0 && strlen(word) == n && memcmp(word, at, n) == 0) return row;
            at += n + (at[n] == ',');
        }
    }
    return NULL;
}

static int unknown(const char *name, leat_error *err)
{
    char names[256] = "";
    for (size_t i = 0; i < LEAT_COUNT(plan_curation_stage_rows); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                 plan_curation_stage_rows[i].name);
    }
    return leat__fail(err, LEAT_EINVAL, "stage: '%s' is unknown; known are %s", name, names);
}

int leat_plan_stage_make(const char *name, uint64_t amount, const leat_plan_facts *facts,
                         leat_plan_stage *stage, leat_error *err)
{
    LEAT_REQUIRE(name != NULL && stage != NULL, err);
    const plan_curation_stage *row = find(name);
    *stage = (leat_plan_stage){.gpus = 1, .fits = 1};
    if (row == NULL) return unknown(name, err);
    const bool named = facts != NULL && facts->gpu[0] != '\0';
    const plan_gpu *gpu = named ? leat__plan_gpu_find(facts->gpu) : NULL;
    if (named && gpu == NULL && facts->vram_bytes == 0)
        return leat__plan_gpu_unknown(facts->gpu, "--vram", err);
    if (facts != NULL && facts->gpus > 0) stage->gpus = facts->gpus;
    if (facts != NULL && facts->vram_bytes > 0) stage->vram_limit = facts->vram_bytes;
    else if (gpu != NULL) stage->vram_limit = gpu->vram_mib << 20;
    snprintf(stage->name, sizeof stage->name, "%s", row->name);
    snprintf(stage->unit, sizeof stage->unit, "%s", row->unit);
    snprintf(stage->source, sizeof stage->source, "%s", PLAN_CURATION_STAGE_SOURCE);
    stage->batch = (uint32_t)row->batch;
    stage->vram_bytes = row->gpu_memory_gb * PLAN_GB;
    stage->fits = stage->vram_limit == 0 || stage->vram_bytes <= stage->vram_limit;
    stage->per_s = row->per_s * stage->gpus;
    stage->seconds = (double)amount / stage->per_s;
    return 0;
}
