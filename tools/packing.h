/* SPDX-License-Identifier: Apache-2.0
 *
 * What `leat pack`, `leat append` and `leat merge` share: sources from the command line, a progress bar,
 * and what is said about samples that were left out.
 */
#ifndef LEAT_TOOLS_PACKING_H
#define LEAT_TOOLS_PACKING_H

#include <leat/ingest.h>

#include "cli.h"

/* Packs the arguments of the command as `o` says. `doing` is the word before the bar. */
int cli_packing_run(cli *c, leat_ingest_opts *o, const char *doing, leat_ingest_stats *st, leat_error *err);
/* Warns of samples that were left out; the command's exit code. */
int cli_packing_end(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st);

#endif
