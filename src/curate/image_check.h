/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of leat_check_images that the command and the Python package share, and the first half of it, which
 * deduplication needs, too.
 */
#ifndef LEAT_CURATE_IMAGE_CHECK_H
#define LEAT_CURATE_IMAGE_CHECK_H

#include <leat/images.h>

#include "base/buf.h"

/* The statistics as JSON. Keys of the examples are read from the columns at `output`; NULL leaves them out.
 */
void leat__check_json(const leat_check_stats *stats, const char *output, leat__buf *out);

#endif
