/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the pure core share: rates from facts, and the parts of a diagnosis.
 * Private to the room. Nothing here does I/O or keeps state: any thread.
 */
#ifndef LEAT_DOCTOR_JUDGE_H
#define LEAT_DOCTOR_JUDGE_H

#include <stdbool.h>

#include <leat/doctor.h>

#include "base/buf.h"
#include "base/json.h"

/* The bands of input wait that the field uses. */
#define LEAT__LOST_WARNING 0.05
#define LEAT__LOST_CRITICAL 0.20
#define LEAT__STEPS_ENOUGH 20

static inline bool known(double fact)
{
    return fact >= 0;
}

static inline double or_else(double fact, double otherwise)
{
    return fact >= 0 ? fact : otherwise;
}

/* The size that a remedy for small batches would have. */
static inline double leat__larger_batch(double batch)
{
    return batch > 8 ? 4 * batch : 32;
}

/* One row per fact, in the order of the map. */
typedef struct leat__fact_row {
    const char *name;
    const char *meaning;
    size_t offset;
} leat__fact_row;
extern const leat__fact_row leat__fact_rows[];
extern const size_t leat__fact_row_count;
double leat__fact_at(const leat_doctor_facts *f, size_t row);

/* LEAT_EINVAL names what cannot be. */
int leat__facts_check(const leat_doctor_facts *f, leat_error *err) LEAT_MUST_CHECK;
/* All facts as keys of an object the caller opened; unknown ones are null. */
void leat__facts_json(leat__json *j, const leat_doctor_facts *f);
/* The controller's decisions, as keys of the same object. */
void leat__decisions_json(leat__json *j, const leat_doctor_facts *f);

/* What each part could deliver, samples/s, negative = not known; `memory` is set only while the
 * budget holds the flow back. */
typedef struct leat__doctor_rates {
    double part[LEAT_LIMITS]; /* by leat_doctor_limit; NONE is unused */
} leat__doctor_rates;
leat__doctor_rates leat__doctor_rates_of(const leat_doctor_facts *f);
/* The smallest known part of the loader (trainer not counted); NONE when nothing is known. */
uint32_t leat__doctor_smallest(const leat__doctor_rates *r, bool with_trainer, uint32_t *next);

/* Share of the step spent waiting, from clocks or else from rates; negative = not known. */
double leat__doctor_lost(const leat_doctor_facts *f);

/* With more reads in flight more would come: nobody moves bytes, everybody waits. */
bool leat__doctor_latency(const leat_doctor_facts *f);

/* The machine has memory for the pack, but this process may not use it. */
bool leat__doctor_memory_limit(const leat_doctor_facts *f);

/* Whether these load flags change only speed, or the order: nothing else that a trainer would see. */
bool leat__doctor_may_apply(const char *set);

/* Fills the remedies and what to apply; limit, rates and sentence are there already. */
void leat__doctor_remedies(leat_doctor_diagnosis *d);

/* Lines of the diagnosis in words. */
void leat__doctor_sentence(leat_doctor_diagnosis *d);
void leat__doctor_evidence(leat_doctor_diagnosis *d);
void leat__doctor_findings(leat_doctor_diagnosis *d);
void leat__doctor_line(char lines[][160], uint32_t *count, const char *fmt, ...)
    LEAT_PRINTF(3, 4);

/* "12 % of each step": texts that several files need. */
void leat__doctor_json(const leat_doctor_diagnosis *d, leat__buf *out);
void leat__doctor_json_fields(const leat_doctor_diagnosis *d, leat__json *j);
void leat__doctor_page(const leat_doctor_diagnosis *d, leat__buf *out, bool ascii);
void leat__doctor_yaml(const leat_doctor_diagnosis *d, leat__buf *out);

#endif
