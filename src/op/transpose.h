/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows become columns: for images whose EXIF orientation turns them.
 */
#ifndef LEAT_OP_TRANSPOSE_H
#define LEAT_OP_TRANSPOSE_H

#include "op/image.h"

/* dst gets the shape of src turned; the two are different images. */
int leat__planes_transpose(const leat__planes *src, leat__planes *dst, leat_error *err) LEAT_MUST_CHECK;

#endif
