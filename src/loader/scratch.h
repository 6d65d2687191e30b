/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that decoding an image takes beyond its sample and its row of the batch, computed from
 * the index alone, so that it can be charged before the sample is read. Ordinary images are
 * covered by the memory charged per worker (LEAT__WORKER_RAM). Any thread.
 */
#ifndef LEAT_LOADER_SCRATCH_H
#define LEAT_LOADER_SCRATCH_H

#include <stdbool.h>

#include <leat/pack.h>

#include "op/pipeline.h"

/* How an image field is used. */
typedef struct leat__scratch_use {
    uint32_t views;                        /* images made of it */
    bool whole;                            /* ops work on the image before anything makes it smaller */
    bool in_place;                         /* they need one image in memory, not two and a copy */
    uint32_t more;                         /* bytes per pixel beyond what most ops take */
    bool behind;                           /* ops work on what a crop or a resize made of it */
    uint64_t between;                      /* pixels of an image between ops that is larger than the output,
                                              however large the source is; else 0 */
    const leat__pipeline *const *any_size; /* the views' pipelines, when their output depends on the image;
                                              else NULL */
} leat__scratch_use;

leat__scratch_use leat__scratch_use_of(const leat__pipeline *const *pipelines, uint32_t count);

/* Maximum bytes for this image. Codecs that decode by rows need a band of them; a JPEG without
 * entry points may be progressive and a PNG interlaced, which the index does not say. */
uint64_t leat__scratch_bytes(const leat_pack_cell *cell, const leat__scratch_use *use);

#endif
