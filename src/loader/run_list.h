/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs decoded by a device: instead of decoding, the worker lists the tiles of each image and
 * puts their bytes into the arena of the batch. Called by leat__run_decode, on its worker.
 */
#ifndef LEAT_LOADER_RUN_LIST_H
#define LEAT_LOADER_RUN_LIST_H

#include "loader/loader_run.h"

/* Decides whether the device decodes this run (r->on_device). */
void leat__run_list_begin(leat__run *r, leat__run_worker *w);

/* A mark at the end of the worker's lists. Rewinding to it drops later claims. */
typedef struct leat__run_list_mark {
    leat__device_mark chunk;
    size_t images;
} leat__run_list_mark;
leat__run_list_mark leat__run_list_marked(const leat__run_worker *w);
void leat__run_list_rewind(const leat__run_env *env, leat__run_worker *w, leat__run_list_mark mark);

/* True when all images of a sample are on the device and nothing else of it is needed. */
bool leat__run_is_resident(const leat__run_env *env, uint64_t sample);
/* Returns the header of an image that is on the device. */
const uint8_t *leat__run_header(const leat__run_env *env, const leat__image_group *g, uint64_t sample);

/* An image to list. */
typedef struct leat__run_image {
    const leat__encoded *encoded;
    uint64_t mapped; /* address at which the device can read it; 0: none */
    leat__device_id id;
    uint32_t row;
} leat__run_image;

/* Lists all views of an image. *taken false: none was listed, and the CPU decodes it. */
int leat__run_list(leat__run *r, const leat__image_group *g, leat__run_worker *w,
                   const leat__run_image *image, const leat__draw_key *key, bool *taken,
                   leat_error *err) LEAT_MUST_CHECK;

/* Returns the address at which the device can read the sample's bytes; 0: none, or not for the device. */
uint64_t leat__run_list_mapped(const leat__run *r, const leat__run_worker *w, const leat__run_sample *s);
/* Ends the use of a sample's page, after its row was made. The page stays pinned if the device will read it,
 * that is, if ranges were added after `mark`. */
void leat__run_list_release(leat__run *r, leat__run_worker *w, leat__run_sample *s, leat__run_list_mark mark);

/* Moves the lists to the batch; drops them if `rc`, the result of the run, is not 0. */
int leat__run_list_end(leat__run *r, leat__run_worker *w, int rc, leat_error *err) LEAT_MUST_CHECK;

#endif
