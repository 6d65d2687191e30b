/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a padded batch: an image is decoded to the front of its row and spread there, each line
 * to its place in the batch's height and width, with the fill beside and below.
 */
#ifndef LEAT_LOADER_SPREAD_H
#define LEAT_LOADER_SPREAD_H

#include "loader/batch.h"

/* All padded columns of a row that has been decoded and hashed. */
void leat__spread_row(leat__frame *f, uint32_t row);

#endif
