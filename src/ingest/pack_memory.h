/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory packing may use: the budget of its flows, and the size above which an image is too
 * large for them. Such an image is processed alone, outside the flow, so that a source of huge images
 * needs memory for one of them at a time, not for one per thread. A budget set by the user is a hard
 * limit: no image then counts as large, and one that does not fit fails.
 */
#ifndef LEAT_INGEST_PACK_MEMORY_H
#define LEAT_INGEST_PACK_MEMORY_H

#include <leat/flow.h>
#include <leat/ingest.h>

#include "ingest/image_encode.h"
#include "ingest/source.h"

typedef struct leat__pack_memory {
    leat_budget *budget;
    uint64_t large;   /* images that need more are large */
    uint64_t ceiling; /* images that need more are refused */
    uint64_t most;    /* the limit for images in a flow with a small budget */
    uint64_t others;  /* bytes that such a flow needs besides the image */
    uint64_t alone;   /* peak of the flow's bytes and an image that is processed alone */
} leat__pack_memory;

/* Sets the limits. Default: 128 MiB per thread, at least 256 MiB, but never more than half of the
 * free memory. */
int leat__pack_memory_open(leat__pack_memory *a, const leat_ingest_opts *opts, uint32_t threads,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__pack_memory_close(leat__pack_memory *a);
/* Returns the peak of the bytes in use, with images that were processed alone. */
uint64_t leat__pack_memory_peak(const leat__pack_memory *a);

/* Returns the scratch memory that a flow declares for its decoding stage. `least`: minimum with any
 * budget; `in`, `out`: bytes of a task before and after that stage. A small budget set by the user is
 * declared completely. The flow then runs one task at a time, so an image that fits never depends on
 * other tasks. */
uint64_t leat__pack_memory_scratch(leat__pack_memory *a, uint64_t least, uint64_t in, uint64_t out);
/* Fails with LEAT_EBUDGET, naming a sufficient budget, when a task of that flow needs more than it
 * can get. */
int leat__pack_memory_fits(const leat__pack_memory *a, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;

/* Tasks that a flow over a source may hold at once. */
#define LEAT__PACK_WINDOW(threads) (2 + (threads))

/* Adds the memory of a record's images to run->decode and run->result. */
void leat__pack_memory_measure(const leat__encode_plan *plan, const leat__source *source, leat__records *run,
                               const leat__record *r);

/* Memory that a flow declares: for a task before and after the decoding stage, and the scratch memory
 * of that stage. */
typedef struct leat__pack_flow {
    uint64_t task; /* bytes of a task besides its run */
    uint64_t in, out, scratch;
    const leat__encode_plan *plan;
    bool encodes; /* encoded images are held besides their sources */
} leat__pack_flow;

/* Returns a sufficient budget for a flow over these sources. One task may be the only one that runs while
 * all others of the window hold what they have read and encoded, so it is the sum of the largest runs and
 * the memory to process the largest image. If samples larger than the list stage requests are read with the
 * list, all threads process the largest image, and the floor of the flow is added. A source of more than
 * 4,096 runs is sampled. Images in a bucket are not read for it. */
uint64_t leat__pack_memory_enough(const leat_ingest_opts *opts, const leat__pack_flow *flow);
/* Adds the sufficient budget to an error about a budget that is too small; returns rc. If the budget is not
 * known, because not all images were read, adds that packing without `memory` works with any image. */
int leat__pack_memory_explain(int rc, const leat_ingest_opts *opts, const leat__pack_flow *flow,
                              leat_error *err);

/* Fails with LEAT_EBUDGET when `bytes` is too much even for a single image in flight. Otherwise counts them
 * in the peak: the image is processed alone, outside the budget. Called by one thread. */
int leat__pack_memory_ask(leat__pack_memory *a, uint64_t bytes, leat_error *err) LEAT_MUST_CHECK;

#endif
