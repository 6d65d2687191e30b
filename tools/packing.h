/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by `leat pack`, `leat append` and `leat merge`: sources from the command line, a progress bar, and
 * the messages about skipped samples.
 */
#ifndef LEAT_TOOLS_PACKING_H
#define LEAT_TOOLS_PACKING_H

#include <leat/images.h>
#include <leat/ingest.h>

#include "cli.h"

/* Packs the arguments of the command with the options `o`. `doing` is the label of the progress bar. */
/* With `check` (may be NULL) it also checks the images and stores the results in `found`. */
int cli_packing_run(cli *c, leat_ingest_opts *o, const leat_check_opts *check, const char *doing,
                    leat_ingest_stats *st, leat_check_stats *found, leat_error *err);
/* Prints the issues found by leat check, with two examples each. limits: the user set some. */
void cli_check_issues(cli *c, const char *output, const leat_check_stats *st, bool limits);
/* Prints why packing failed and which option helps: --resume or --force. Returns the exit code. */
int cli_packing_fail(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st, const leat_error *err);
/* True when the file is a set of other files. */
bool cli_packing_is_set(const char *pack);
/* Says which files the pack needs, if it became a set. */
void cli_packing_became_set(cli *c, const char *pack, bool was_set);
/* Warns about skipped samples; returns the exit code. */
int cli_packing_end(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st);

#endif
