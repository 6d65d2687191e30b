/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory to decode an image, in addition to its sample and its row of the batch. It is computed from the
 * index alone, so that it can be charged before the sample is read. Ordinary images are covered by the memory
 * charged per worker (LEAT__WORKER_RAM). Any thread.
 */
#ifndef LEAT_LOADER_SCRATCH_H
#define LEAT_LOADER_SCRATCH_H

#include <stdbool.h>

#include <leat/pack.h>

#include "op/pipeline.h"

/* How an image field is used. */
typedef struct leat__scratch_use {
    uint32_t views;   /* number of images made from it */
    bool whole;       /* ops process the image before it is made smaller */
    bool in_place;    /* these ops need one image in memory, not two and a copy */
    uint32_t more;    /* bytes per pixel in addition to what most ops take */
    bool behind;      /* ops process the result of a crop or a resize */
    uint64_t between; /* pixels of an image between ops if it is larger than the output, independent of the
                         source; else 0 */
    const leat__pipeline *const
        *canvas; /* the pipelines, when one of them enlarges images as a whole; else NULL */
    uint32_t pipelines;
    const leat__pipeline *const *any_size; /* the views' pipelines, when their output depends on the image;
                                              else NULL */
} leat__scratch_use;

leat__scratch_use leat__scratch_use_of(const leat__pipeline *const *pipelines, uint32_t count);

/* Returns the most bytes for this image. Codecs that decode by rows need only a band of rows. A JPEG without
 * entry points may be progressive and a PNG interlaced, which the index does not tell, so they count as whole
 * images. */
uint64_t leat__scratch_bytes(const leat_pack_cell *cell, const leat__scratch_use *use);

#endif
