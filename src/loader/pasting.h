/* SPDX-License-Identifier: Apache-2.0
 *
 * CopyPaste on finished batches: pixels, masks, boxes and their labels. A sample gets objects of the one
 * before it. Called by the worker that collates the batch.
 */
#ifndef LEAT_LOADER_PASTING_H
#define LEAT_LOADER_PASTING_H

#include "loader/mixing.h"

/* Applies CopyPaste, batch op `index` of the images. Fails only with LEAT_ENOMEM. */
int leat__paste_batch(const leat__mixing *m, const leat__op_spec *op, leat__frame *f, uint64_t position,
                      uint32_t index, leat_error *err) LEAT_MUST_CHECK;

/* Finds the first follower with this role; NULL = none. */
const leat__follower *leat__paste_follower(const leat__follow *follow, leat__role role);

#endif
