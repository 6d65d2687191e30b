/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch ops: MixUp and CutMix. As torchvision's v2 MixUp and CutMix: one draw per batch, sample
 * i is mixed with sample i-1 (the first with the last). Drawn from (seed, epoch, position of the
 * batch), so equal on any number of threads. Pure functions; the loader calls them on finished
 * batches (src/loader/mixing.c).
 */
#ifndef LEAT_OP_MIX_H
#define LEAT_OP_MIX_H

#include "op/op.h"
#include "op/pipeline.h"

typedef struct leat__mix {
    bool active; /* false: the batch stays as it is */
    bool paste;  /* CutMix: the rectangle comes from the partner */
    uint32_t x, y, width, height;
    float lambda; /* weight of the sample itself; its partner has the rest */
} leat__mix;

/* Whether what the op draws depends on the size of the images. */
bool leat__mix_needs_size(const leat__op_spec *op);

/* True when it leaves batches alone that an op before it has mixed: of the draws, the first one counts. */
bool leat__mix_unmixed(const leat__op_spec *op);

/* The stream of random numbers of a batch op: see leat__mix_draw. */
void leat__mix_rng(leat__rng *rng, uint64_t seed, uint64_t epoch, uint64_t position, uint32_t index);

/* What this batch gets. `op` comes from leat__pipeline_batch_op; `index` is its position there;
 * `position` is that of the batch's first sample in the epoch, over all ranks. */
void leat__mix_draw(leat__mix *mix, const leat__op_spec *op, const leat__output_spec *spec, uint64_t seed,
                    uint64_t epoch, uint64_t position, uint32_t index);

/* Mixes `n` samples that lie `stride` bytes apart, in place. */
void leat__mix_pixels(const leat__mix *mix, const leat__output_spec *spec, void *batch, size_t n,
                      size_t stride);

/* The same for `n` rows of `classes` soft labels. */
void leat__mix_targets(const leat__mix *mix, float *rows, size_t n, uint32_t classes);

#endif
