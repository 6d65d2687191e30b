/* SPDX-License-Identifier: Apache-2.0
 *
 * leat doctor on the output folder of a finished run of leat filter, leat dedup or leat decontaminate, of
 * leat curate, or of leat train.
 */
#ifndef LEAT_TOOLS_DOCTOR_PAST_H
#define LEAT_TOOLS_DOCTOR_PAST_H

#include "cli.h"

typedef enum past_kind {
    PAST_NONE,
    PAST_TEXT,   /* report.json */
    PAST_CURATE, /* run.json */
    PAST_RECORD  /* run.jsonl, written by a loader: handled like --attach */
} past_kind;

/* Returns what the path is: the folder of such a run, or its file. Sets `file` (4096 bytes) to that file. */
past_kind doctor_past_find(const char *path, char *file);
/* Returns the name of a given option that has no effect on a finished run, or NULL. `record`: the run is a
 * PAST_RECORD. */
const char *doctor_past_given(const cli *c, bool record);
/* Prints the verdict on a run of PAST_TEXT or PAST_CURATE; returns an exit code. */
int doctor_past(cli *c, past_kind kind, const char *file);

#endif
