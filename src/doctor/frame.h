/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as JSON, and the file in which a run is recorded while it runs. Private to the module.
 *
 * A run file is lines of JSON:
 *     {"run":"5f0c…","part":0,"version":1,"pid":4711}      the first line
 *     {"frame":{"at_s":0.25,"samples_per_s":8700,…}}       every tick of the watch
 *     {"version":1,"verdict":"…",…,"facts":{…},"state":"running"}   every second; "ended" in the last one
 * A file that grows too large is started again as the next part of the same run.
 */
#ifndef LEAT_DOCTOR_FRAME_H
#define LEAT_DOCTOR_FRAME_H

#include <jansson.h>
#include <stdbool.h>

#include <leat/doctor.h>

#include "base/json.h"

extern const char *const leat__stage_names[LEAT_LOADER_STAGES];

void leat__frame_json(leat__json *j, const leat_doctor_frame *f);
/* Parses a frame; missing values are 0. LEAT_EDATA names a value that is not a number. */
int leat__frame_parse(const json_t *object, leat_doctor_frame *f, leat_error *err) LEAT_MUST_CHECK;

/* ---- Recording a run; one thread at a time ---- */

typedef struct leat__run_log leat__run_log;

/* Creates the file, or empties an existing one. */
int leat__run_log_open(leat__run_log **log, const char *path, leat_error *err) LEAT_MUST_CHECK;
int leat__run_log_frame(leat__run_log *log, const leat_doctor_frame *f, leat_error *err) LEAT_MUST_CHECK;
int leat__run_log_diagnosis(leat__run_log *log, const leat_doctor_diagnosis *d, bool ended,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__run_log_close(leat__run_log **log);

#endif
