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

/* The end of the worker's lists, and rewinding to it. Claims after it are dropped. */
typedef struct leat__run_list_mark {
    leat__device_mark chunk;
    size_t images;
} leat__run_list_mark;
leat__run_list_mark leat__run_list_marked(const leat__run_worker *w);
void leat__run_list_rewind(const leat__run_env *env, leat__run_worker *w, leat__run_list_mark mark);

/* True when all images of a sample are on the device and nothing else of it is needed. */
bool leat__run_is_resident(const leat__run_env *env, uint64_t sample);
/* The header of such an image. */
const uint8_t *leat__run_header(const leat__run_env *env, const leat__image_group *g, uint64_t sample);

/* Lists all views of an image, or none: *taken false, the CPU decodes it. */
int leat__run_list(const leat__run *r, const leat__image_group *g, leat__run_worker *w,
                   const leat__encoded *image, const leat__draw_key *key, leat__device_id id, uint32_t row,
                   bool *taken, leat_error *err) LEAT_MUST_CHECK;

/* Moves the lists to the batch. */
int leat__run_list_end(leat__run *r, leat__run_worker *w, leat_error *err) LEAT_MUST_CHECK;

#endif
