/* SPDX-License-Identifier: Apache-2.0
 *
 * The output folder of a run over text. Only one run at a time writes to it, and its files are replaced
 * only on request. One thread.
 */
#ifndef LEAT_CURATE_OUTPUT_DIR_H
#define LEAT_CURATE_OUTPUT_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "io/file.h"

/* The lock of a folder: a locked file in it, which the kernel unlocks when the process ends. */
typedef struct leat__output_lock {
    leat__file *file;
    char *path;
} leat__output_lock;

/* Creates the folder and locks it. LEAT_ESTATE when another run is writing to it, LEAT_EEXIST when the lock
 * is a folder or a link. */
int leat__output_lock_take(leat__output_lock *l, const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Unlocks the folder; a zeroed lock is not held. */
void leat__output_lock_drop(leat__output_lock *l);

/* True for the names of files that runs write to their output folder. */
bool leat__output_name(const char *name);
/* True when the folder has a report of leat. */
bool leat__output_complete(const char *folder);
/* Returns the report of a folder as JSON (release it with json_decref); NULL without a report of leat. */
json_t *leat__output_load(const char *folder);
/* Fails with LEAT_EDATA when the folder has output files of a run that was killed, or still works, before it
 * wrote its report. Call it before such files are read. */
int leat__output_finished(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EEXIST when the folder has output files. */
int leat__output_unused(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EEXIST when an output file may be someone else's: no report of leat lists it, and no lock
 * says that a run was killed while writing it. Also fails when a folder has the name of an output file. */
int leat__output_ours(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EDATA when a run read `bad` lines but not one document, and the folder has the output of an
 * earlier run: most likely `text_field` is misspelt. Call it before anything is replaced. unit: "line" or
 * "row", for the message. */
int leat__output_refuse_empty(const char *folder, uint64_t documents, uint64_t bad, const char *unit,
                              leat_error *err) LEAT_MUST_CHECK;
/* Removes output files, the report first: without it the folder is incomplete. Then marks the lock, so that
 * new files count as leat's. Fails with LEAT_EEXIST, removing nothing, when report.json is not leat's or does
 * not list a file. */
int leat__output_clear(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Removes temporary files of output files (NAME.partial), which a killed run left. Call it before the run
 * opens its own. */
int leat__output_sweep(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Fails with LEAT_EDATA when the report is damaged, or a file that it lists is missing, is not a file or
 * has another size. */
int leat__output_intact(const char *folder, leat_error *err) LEAT_MUST_CHECK;
/* Writes the report: `counts` (a JSON object), names and sizes of the files that the run wrote, and a
 * checksum. Call it last: a folder with a report is complete. */
int leat__output_report(const char *folder, const leat__buf *counts, leat_error *err) LEAT_MUST_CHECK;

#endif
