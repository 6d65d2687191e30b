/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_check_images shared by the command and the Python package, and its first half,
 * which deduplication also needs.
 */
#ifndef LEAT_CURATE_IMAGE_CHECK_H
#define LEAT_CURATE_IMAGE_CHECK_H

#include <leat/images.h>

#include "base/buf.h"

/* The statistics as JSON. Keys of the examples are read from the columns at `output`; NULL omits
 * them.
 */
void leat__check_json(const leat_check_stats *stats, const char *output, leat__buf *out);

#endif
