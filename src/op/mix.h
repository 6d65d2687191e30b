/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch ops: Mixup and CutMix with their labels. As torchvision's v2 MixUp and CutMix: one
 * draw per batch, sample i is mixed with sample i-1 (the first with the last). Drawn from
 * (seed, epoch, batch number), so equal on any number of threads.
 */
#ifndef LEAT_OP_MIX_H
#define LEAT_OP_MIX_H

#include "base/error.h"
#include "op/op.h"
#include "op/pipeline.h"

typedef struct leat__mix {
    bool active;          /* false: the batch stays as it is */
    bool paste;           /* CutMix: the rectangle comes from the partner */
    uint32_t x, y, width, height;
    float lambda;         /* weight of the sample itself; its partner has the rest */
} leat__mix;

/* What this batch gets. `op` comes from leat__pipeline_batch_op; `index` is its position. */
void leat__mix_draw(leat__mix *mix, const leat__op_spec *op, const leat__output_spec *spec,
                    uint64_t seed, uint64_t epoch, uint64_t batch, uint32_t index);

/* Mixes `n` samples that lie `stride` bytes apart, in place. */
int leat__mix_pixels(const leat__mix *mix, const leat__output_spec *spec, void *batch,
                     size_t n, size_t stride, leat_error *err) LEAT_MUST_CHECK;

/* Soft labels: targets[i * classes + c], from labels[n] in [0, classes). LEAT_EINVAL for a
 * label out of range. */
int leat__mix_labels(const leat__mix *mix, const int64_t *labels, size_t n, uint32_t classes,
                     float *targets, leat_error *err) LEAT_MUST_CHECK;

#endif
