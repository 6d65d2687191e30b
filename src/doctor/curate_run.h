/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict on a run of leat curate: which step took most of the time, what limited each step, and what
 * would help, from the run.json that the run wrote.
 */
#ifndef LEAT_DOCTOR_CURATE_RUN_H
#define LEAT_DOCTOR_CURATE_RUN_H

#include <stdbool.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct leat__curate_verdict {
    json_t *steps; /* steps of the run file: objects by name, in the order of the run */
    double seconds;
    const char *longest; /* a key of `steps`; NULL when no step has finished */
    bool warning;        /* something other than its own work limits the longest step */
} leat__curate_verdict;

/* Judges a run file. LEAT_EFORMAT when it is not a run file of leat curate. */
int leat__curate_run_judge(leat__curate_verdict *v, const char *json, size_t len,
                           leat_error *err) LEAT_MUST_CHECK;
/* Write the verdict as text for people, and as one JSON object. */
void leat__curate_run_page(const leat__curate_verdict *v, leat__buf *out);
void leat__curate_run_json(const leat__curate_verdict *v, leat__buf *out);
void leat__curate_run_reset(leat__curate_verdict *v);

#endif
