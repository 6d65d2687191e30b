/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging of packs: which samples with equal keys are kept or renamed, and the class names, blobs and
 * provenance of the result. Samples are copied as they are stored (image_encode.h: `stored`).
 */
#ifndef LEAT_INGEST_MERGE_H
#define LEAT_INGEST_MERGE_H

#include "ingest/image_encode.h"
#include "ingest/source.h"
#include "ingest/where.h"

/* What to do with a sample whose key is the key of another one. Samples without a step are copied
 * unchanged. */
typedef struct leat__merge_step {
    uint64_t sample; /* number over all packs */
    uint64_t rename; /* 0 = omit it; N = rename it to KEY-N */
} leat__merge_step;

typedef struct leat__merge {
    leat__merge_step *steps; /* sorted by sample */
    uint64_t count, next;
} leat__merge;

/* Finds equal keys among the samples that match the condition (NULL = all). With LEAT_MERGE_ERROR,
 * LEAT_EEXIST names the key and both packs. */
int leat__merge_open(leat__merge *m, leat__source *packs, uint32_t keys, const leat__where *where,
                     leat_error *err) LEAT_MUST_CHECK;
void leat__merge_close(leat__merge *m);
/* Returns the step for this sample, or NULL. Samples must be requested in order. */
const leat__merge_step *leat__merge_step_of(leat__merge *m, uint64_t sample);

/* Adds -N to a key before its extension: the second "a/b.jpg" becomes "a/b-2.jpg". */
int leat__merge_rename(leat__buf *key, uint64_t n, leat_error *err) LEAT_MUST_CHECK;

/* Copies the blobs of the packs; of equal names, the first pack's. The result gets the first pack's
 * tile tables. */
int leat__merge_blobs(leat_packer *packer, leat__source *packs, leat_error *err) LEAT_MUST_CHECK;
/* Returns the class names that all packs have for an int field other than the label. Fails with LEAT_EINVAL
 * when a class has different names. */
int leat__merge_class_names(leat__source *packs, uint32_t field, const char *const **names, uint64_t *count,
                            leat_error *err) LEAT_MUST_CHECK;
/* Writes the provenance. If the packs differ only in the names of their sources, it is that of one
 * run over all sources. */
int leat__merge_provenance(leat__source *packs, const char *where, leat__buf *out,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
