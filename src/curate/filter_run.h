/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of a filter run, for the file beside the output and for the command.
 */
#ifndef LEAT_CURATE_FILTER_RUN_H
#define LEAT_CURATE_FILTER_RUN_H

#include <leat/text.h>

#include "curate/part_files.h"

/* One JSON object. */
void leat__filter_json(const leat_filter_stats *stats, leat__buf *out);

/* A step of a run in parts (part_files.h); `json` gets its answer. BEGIN: {"memory":…,"max_line":…,
 * "files":[…]}; JOIN: the copies; END: the report; WRITE: nothing, or see leat__part_answer. All steps have
 * the options that BEGIN had, `memory` as answered, and, after it, the files of the answer as inputs; WRITE
 * only those of its range. */
int leat__filter_part(const leat_filter_opts *opts, const leat__part *part, leat__buf *json,
                      leat_error *err) LEAT_MUST_CHECK;

/* A document of `look`: one JSON object and a line feed. */
void leat__filter_seen_json(const leat_filter_seen *doc, leat__buf *out);

#endif
