/* SPDX-License-Identifier: Apache-2.0
 *
 * MixUp, CutMix, Mosaic and CopyPaste on finished batches, and their labels: soft targets instead of the
 * label, or the partner's label and the weight in additional columns. Constant after opening; batches are
 * mixed by the worker that collates them.
 */
#ifndef LEAT_LOADER_MIXING_H
#define LEAT_LOADER_MIXING_H

#include "loader/batch.h"
#include "loader/follow.h"
#include "op/mix.h"
#include "op/pipeline.h"

/* One image column that is mixed. */
typedef struct leat__mixed_image {
    uint32_t column;
    const leat__pipeline *pipeline; /* not owned */
} leat__mixed_image;

typedef struct leat__mixing {
    leat__mixed_image *images; /* all image columns; NULL = nothing is mixed */
    uint32_t image_count;
    uint32_t label;           /* column of the labels, as soft targets when classes > 0 */
    uint32_t partner, lambda; /* columns of label pairs */
    uint32_t classes;
    bool labels;                /* there is a MixUp or CutMix, so labels are mixed */
    const leat__follow *follow; /* not owned: fields that follow a Mosaic or a CopyPaste */
    uint64_t seed;
    uint32_t rank, world;
} leat__mixing;

/* Reads the batch ops of the image columns and adapts the shape to them. The shape has room for
 * two more columns. LEAT_EINVAL: no label, unknown classes, columns whose ops differ, or options
 * without effect. */
int leat__mixing_open(leat__mixing *m, leat_pack *pack, const leat_loader_opts *opts, leat__shape *shape,
                      const leat__mixed_image *images, uint32_t count, const leat__follow *follow,
                      leat_error *err) LEAT_MUST_CHECK;
void leat__mixing_reset(leat__mixing *m);

/* Draws the parameters of batch op `k` for this frame; not for Mosaic and CopyPaste. */
void leat__mixing_draw(const leat__mixing *m, const leat__frame *f, uint32_t k, leat__mix *mix);
/* With pairs of labels: writes the partner's label and the weight of each row. */
void leat__mixing_pairs(const leat__mixing *m, const leat__mix *mix, leat__frame *f);
/* True for pipelines with a Mosaic or a CopyPaste, which only the host can apply. */
bool leat__mixing_on_host(const leat__mixing *m);

/* Mixes a frame whose rows are complete. Fails only with LEAT_ENOMEM. */
int leat__mixing_apply(const leat__mixing *m, leat__frame *f, leat_error *err) LEAT_MUST_CHECK;

#endif
