/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch ops: MixUp and CutMix, as in torchvision's v2. There is one draw per batch; sample i is mixed with
 * sample i-1 (the first with the last). Draws depend on (seed, epoch, position of the batch), so the result
 * is the same with any number of threads. Pure functions; the loader calls them on finished batches
 * (src/loader/mixing.c).
 */
#ifndef LEAT_OP_MIX_H
#define LEAT_OP_MIX_H

#include "op/op.h"
#include "op/pipeline.h"

typedef struct leat__mix {
    bool active; /* false: the batch stays as it is */
    bool paste;  /* CutMix: the rectangle comes from the partner */
    uint32_t x, y, width, height;
    float lambda; /* weight of the sample itself; its partner has 1 - lambda */
} leat__mix;

/* True when the op's draw depends on the size of the images. */
bool leat__mix_needs_size(const leat__op_spec *op);

/* True when the op skips batches that an earlier op has mixed. */
bool leat__mix_unmixed(const leat__op_spec *op);

/* Seeds the random stream of a batch op: see leat__mix_draw. */
void leat__mix_rng(leat__rng *rng, uint64_t seed, uint64_t epoch, uint64_t position, uint32_t index);

/* Draws how a batch is mixed. `op` comes from leat__pipeline_batch_op; `index` is its position there;
 * `position` is that of the batch's first sample in the epoch, over all ranks. */
void leat__mix_draw(leat__mix *mix, const leat__op_spec *op, const leat__output_spec *spec, uint64_t seed,
                    uint64_t epoch, uint64_t position, uint32_t index);

/* Mixes `n` samples in place; each begins `stride` bytes after the previous one. */
void leat__mix_pixels(const leat__mix *mix, const leat__output_spec *spec, void *batch, size_t n,
                      size_t stride);

/* Mixes `n` rows of `classes` soft labels in place. */
void leat__mix_targets(const leat__mix *mix, float *rows, size_t n, uint32_t classes);

#endif
