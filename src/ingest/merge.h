/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging packs: which samples of equal keys are kept or renamed, the class names of the result, its
 * blobs and its provenance. Samples are copied as they are stored (image_encode.h: `stored`).
 */
#ifndef LEAT_INGEST_MERGE_H
#define LEAT_INGEST_MERGE_H

#include "ingest/image_encode.h"
#include "ingest/source.h"
#include "ingest/where.h"

/* What is done with one sample whose key another one has. Samples that are not listed are
 * kept as they are. */
typedef struct leat__merge_step {
    uint64_t sample; /* among those of all packs */
    uint64_t rename; /* 0 = leave it out; N = rename it to KEY-N */
} leat__merge_step;

typedef struct leat__merge {
    leat__merge_step *steps; /* by sample */
    uint64_t count, next;
} leat__merge;

/* Finds equal keys among the samples that meet the condition (NULL = all). LEAT_EEXIST with
 * LEAT_MERGE_ERROR: names the key and both packs. */
int leat__merge_open(leat__merge *m, leat__source *packs, uint32_t keys, const leat__where *where,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__merge_close(leat__merge *m);
/* The step for this sample, NULL for none. Samples are asked for in order. */
const leat__merge_step *leat__merge_step_of(leat__merge *m, uint64_t sample);

/* KEY-N before the ending: "a/b.jpg" as its second copy is "a/b-2.jpg". */
int leat__merge_rename(leat__buf *key, uint64_t n, leat_error *err) LEAT_MUST_CHECK;

/* Blobs of the packs; of equal names the first pack's. Its tile tables are those of the result. */
int leat__merge_blobs(leat_packer *packer, leat__source *packs, leat_error *err) LEAT_MUST_CHECK;
/* Class names of int fields other than the label, which the source numbers itself. */
int leat__merge_classes(leat_packer *packer, leat__source *packs, leat_error *err) LEAT_MUST_CHECK;
/* As one run over all sources writes it, where the packs differ only in the names of their sources. */
int leat__merge_provenance(leat__source *packs, const char *where, leat__buf *out,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
