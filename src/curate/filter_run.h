/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a filter run as JSON, for the output folder and for the command.
 */
#ifndef LEAT_CURATE_FILTER_RUN_H
#define LEAT_CURATE_FILTER_RUN_H

#include <leat/text.h>

#include "curate/part_files.h"

/* Writes the stats as one JSON object. */
void leat__filter_json(const leat_filter_stats *stats, leat__buf *out);

/* Runs one step of a run in parts (part_files.h); its answer is appended to `json`. BEGIN answers
 * {"memory":…,"max_line":…,"files":[…]}, JOIN the copies, END the report, WRITE nothing (or see
 * leat__part_answer). All steps take the options of BEGIN and the `memory` of its answer. Later steps take
 * the files of the answer as inputs; WRITE takes only the files of its range. */
int leat__filter_part(const leat_filter_opts *opts, const leat__part *part, leat__buf *json,
                      leat_error *err) LEAT_MUST_CHECK;

/* Writes a document of `look` as one JSON object and a line feed. */
void leat__filter_seen_json(const leat_filter_seen *doc, leat__buf *out);

#endif
