/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges rows and columns: for images that EXIF rotates.
 */
#ifndef LEAT_OP_TRANSPOSE_H
#define LEAT_OP_TRANSPOSE_H

#include "op/image.h"

/* Transposes src into dst, which gets the transposed size. They must be different images. */
int leat__planes_transpose(const leat__planes *src, leat__planes *dst, leat_error *err) LEAT_MUST_CHECK;

#endif
