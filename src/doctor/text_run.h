/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict on a run over text: what limited leat filter, leat dedup or leat decontaminate, and what would
 * help, from the report.json that the run wrote.
 */
#ifndef LEAT_DOCTOR_TEXT_RUN_H
#define LEAT_DOCTOR_TEXT_RUN_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define LEAT__TEXT_REMEDIES 3

typedef struct leat__text_verdict {
    char sentence[256];
    const char *limit;                /* reading, cpus, writing, memory, none */
    bool warning;                     /* something other than the CPUs limits the run */
    double read, work, write, memory; /* shares of the time */
    double seconds, mb_per_s, mb_per_cpu_s;
    const char *remedy[LEAT__TEXT_REMEDIES];
    unsigned remedies;
} leat__text_verdict;

/* Judges a report. LEAT_EFORMAT when it is not the report of a run over text. */
int leat__text_run_judge(leat__text_verdict *v, const char *json, size_t len,
                         leat_error *err) LEAT_MUST_CHECK;
/* Write the verdict as text for people, and as one JSON object. */
void leat__text_run_page(const leat__text_verdict *v, leat__buf *out);
void leat__text_run_json(const leat__text_verdict *v, leat__buf *out);

#endif
