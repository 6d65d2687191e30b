/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects facts about every image of a source: list -> read -> look (all threads) -> take (in
 * order).
 */
#ifndef LEAT_CURATE_IMAGE_FLOW_H
#define LEAT_CURATE_IMAGE_FLOW_H

#include <leat/images.h>
#include <leat/ingest.h>

#include "curate/image_columns.h"
#include "ingest/source.h"
#include "ingest/source_chain.h"

typedef struct leat__image_pass {
    const leat_ingest_opts *opts; /* sources, threads, memory, limits, log */
    leat__source *source;         /* open */
    /* Called on the caller's thread, in the order of the source. `chain` covers all records up to
     * this one. */
    int (*take)(void *cookie, const char *key, size_t key_size, const leat__image_facts *facts,
                uint64_t chain, leat_error *err);
    int (*tell)(void *cookie, uint64_t done, uint64_t total); /* non-zero stops; may be NULL */
    void *cookie;
    leat__chain skip;     /* records that an interrupted run has processed; may be empty */
    bool changed;         /* out: the source has other records than these; nothing was taken */
    uint64_t budget_peak; /* out */
} leat__image_pass;

int leat__image_flow_run(leat__image_pass *pass, leat_error *err) LEAT_MUST_CHECK;
/* Returns an amount of memory that is enough for a pass over these sources. */
uint64_t leat__image_flow_enough(const leat_ingest_opts *opts);

#endif
