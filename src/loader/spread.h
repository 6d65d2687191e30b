/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a padded batch: an image is decoded to the front of its row, then its lines are moved to their
 * places in the padded row, and the rest is filled.
 */
#ifndef LEAT_LOADER_SPREAD_H
#define LEAT_LOADER_SPREAD_H

#include "loader/batch.h"

/* Spreads all padded columns of a row that has been decoded and hashed. */
void leat__spread_row(leat__frame *f, uint32_t row);

#endif
