/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a filter run, for the file beside the output and for the command.
 */
#ifndef LEAT_CURATE_FILTER_RUN_H
#define LEAT_CURATE_FILTER_RUN_H

#include <leat/text.h>

#include "base/buf.h"

/* One JSON object. */
void leat__filter_json(const leat_filter_stats *stats, leat__buf *out);

/* A document of `look`: one JSON object and a line feed. */
void leat__filter_seen_json(const leat_filter_seen *doc, leat__buf *out);

#endif
