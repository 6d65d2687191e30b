/* SPDX-License-Identifier: Apache-2.0
 *
 * What `leat pack`, `leat append` and `leat merge` share: sources from the command line, a progress bar,
 * and the messages about samples that were left out.
 */
#ifndef LEAT_TOOLS_PACKING_H
#define LEAT_TOOLS_PACKING_H

#include <leat/images.h>
#include <leat/ingest.h>

#include "cli.h"

/* Packs the arguments of the command as `o` says. `doing` is the word before the bar. */
/* `check`, which may be NULL: also checks the images; what was found goes to `found`. */
int cli_packing_run(cli *c, leat_ingest_opts *o, const leat_check_opts *check, const char *doing,
                    leat_ingest_stats *st, leat_check_stats *found, leat_error *err);
/* Prints the issues that leat check found, with two examples each. limits: the user gave some. */
void cli_check_issues(cli *c, const char *output, const leat_check_stats *st, bool limits);
/* Says why packing failed, and which option helps: --resume or --force. The command's exit code. */
int cli_packing_fail(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st, const leat_error *err);
/* Warns of samples that were left out; the command's exit code. */
int cli_packing_end(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st);

#endif
