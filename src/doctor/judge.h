/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the pure core: rates from facts, and the parts of a diagnosis. Private to the
 * module. No I/O, no state: any thread.
 */
#ifndef LEAT_DOCTOR_JUDGE_H
#define LEAT_DOCTOR_JUDGE_H

#include <stdbool.h>

#include <leat/doctor.h>

#include "base/buf.h"
#include "base/json.h"

/* The usual thresholds for the share of time spent waiting for input. */
#define LEAT__LOST_WARNING 0.05
#define LEAT__LOST_CRITICAL 0.20
#define LEAT__STEPS_ENOUGH 20
#define LEAT__AGREES 0.15     /* a gain from measurements that disagree more is only an estimate */
#define LEAT__ALL_CACHED 0.99 /* minimum share of the pack in memory at which storage is not used */

static inline bool known(double fact)
{
    return fact >= 0;
}

static inline double or_else(double fact, double otherwise)
{
    return fact >= 0 ? fact : otherwise;
}

/* Returns the batch size that the remedy for small batches suggests. */
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

/* Fails with LEAT_EINVAL for an impossible value, which it names. */
int leat__facts_check(const leat_doctor_facts *f, leat_error *err) LEAT_MUST_CHECK;
/* Writes all facts as keys of an object that the caller opened; unknown ones are null. */
void leat__facts_json(leat__json *j, const leat_doctor_facts *f);
/* Writes the controller's decisions as keys of the same object. */
void leat__decisions_json(leat__json *j, const leat_doctor_facts *f);

/* The possible rate of each part in samples/s, negative = unknown. `memory` is set only while the
 * budget limits the flow. */
typedef struct leat__doctor_rates {
    double part[LEAT_LIMITS]; /* indexed by leat_doctor_limit; NONE is unused */
} leat__doctor_rates;
leat__doctor_rates leat__doctor_rates_of(const leat_doctor_facts *f);
/* Returns how many samples are delivered per sample read, when caches of the process or the device hold
 * nearly all samples. Returns 1 when more is read, because crops read only some tiles of a sample. */
double leat__doctor_samples_per_read(const leat_doctor_facts *f);
/* Returns the time per step in which the device copies or decodes; negative = unknown. */
double leat__doctor_device_ms(const leat_doctor_facts *f);
/* Returns the slowest known part of the loader (the trainer only if `with_trainer`); NONE when
 * nothing is known. */
uint32_t leat__doctor_smallest(const leat__doctor_rates *r, bool with_trainer, uint32_t *next);

/* Returns the share of the step spent waiting, from clocks or else from rates; negative = unknown. */
double leat__doctor_lost(const leat_doctor_facts *f);
/* Returns by how much two rates disagree: 0.1 = one is 10 % above the other. */
double leat__doctor_apart(double a, double b);

/* Returns the mean wait of a step, including the starts of epochs; data_ms must be known. */
double leat__doctor_wait_ms(const leat_doctor_facts *f);

/* Corrects the facts for a device that takes `device_ms` per step: the trainer is not faster than the device,
 * and waits of the host within that time count as training. */
void leat__doctor_hide_waits(leat_doctor_facts *f, double device_ms);
/* Returns the CPUs that other processes take from this one. Under a quota, CPUs that they use outside of the
 * quota do not count. */
double leat__doctor_others(const leat_doctor_facts *f);
/* Returns the share of the time that the starts of epochs take; negative = unknown. */
double leat__doctor_starts(const leat_doctor_facts *f);

/* Makes rates of parts unknown that the run disproves: a part alone is not slower than all parts
 * together, so its measurement was disturbed. Returns these parts as bits 1 << leat_doctor_limit. */
uint32_t leat__doctor_distrust(leat_doctor_facts *f);

/* True when more worker processes were tried and every trial was faster than all without them. */
bool leat__doctor_more_workers_help(const leat_doctor_facts *f);

/* True when more reads in flight would help: the storage is limited by latency, not by
 * bandwidth. */
bool leat__doctor_latency(const leat_doctor_facts *f);

/* Size of the large requests to a server, in bytes. */
#define LEAT__PART_LARGE (128u << 10)

/* True when 64 large requests in flight bring little more than 16, and the loader may have that many. */
bool leat__doctor_many_suffice(const leat_doctor_facts *f);

/* True when the link to a server is full: large answers come less often than small ones, and more of
 * them in flight bring little more. */
bool leat__doctor_line_full(const leat_doctor_facts *f);
/* Returns the MB/s of large requests with the most in flight that were measured. */
double leat__doctor_line_mbs(const leat_doctor_facts *f);

/* True for a loader that is not leat's: a DataLoader, or any other iterable. */
static inline bool leat__doctor_foreign(const leat_doctor_facts *f)
{
    return known(f->workers) || or_else(f->plain, 0) >= 1;
}

/* True when the code of another loader waits, but was not seen to read from a disk: it waits for a network,
 * a lock, a timer or another process. */
bool leat__doctor_waits(const leat_doctor_facts *f);

/* A kind of work in the workers of another loader, and the cause that names it. */
typedef struct leat__doctor_work {
    uint32_t cause;
    double share; /* of the workers' time */
} leat__doctor_work;
/* Returns the work that takes most of the workers' time; cause NONE when none does. */
leat__doctor_work leat__doctor_main_work(const leat_doctor_facts *f);

/* True when workers of another loader spend most of their time in collate_fn, and most of that time
 * waiting. */
bool leat__doctor_collate_waits(const leat_doctor_facts *f);

/* Returns the maximum samples/s of the storage; negative = unknown. */
double leat__doctor_storage(const leat_doctor_facts *f);

/* True when the machine has memory for the pack, but this process may not use it. */
bool leat__doctor_memory_limit(const leat_doctor_facts *f);

/* True when `set` has this flag ("memory=") and no other. */
bool leat__doctor_sets_only(const char *set, const char *flag);

/* True when these load flags change only the speed or the order of samples. */
bool leat__doctor_may_apply(const char *set);

/* Fills in the remedies and the flags to apply; limit, rates and sentence must be set. */
void leat__doctor_remedies(leat_doctor_diagnosis *d);

/* Fill in the text lines of the diagnosis. */
void leat__doctor_sentence(leat_doctor_diagnosis *d);
void leat__doctor_evidence(leat_doctor_diagnosis *d);
/* `distrusted`: result of leat__doctor_distrust. */
void leat__doctor_findings(leat_doctor_diagnosis *d, uint32_t distrusted);
void leat__doctor_line(char lines[][160], uint32_t *count, const char *fmt, ...) LEAT_PRINTF(3, 4);

/* Writes a speed such as "74.8 MB/s" or "12.5 GB/s". */
const char *leat__doctor_speed(double bytes_per_s, char *out, size_t size);

/* Write the diagnosis as JSON, as keys of an open JSON object, and as a page. */
void leat__doctor_json(const leat_doctor_diagnosis *d, leat__buf *out);
void leat__doctor_json_fields(const leat_doctor_diagnosis *d, leat__json *j);
void leat__doctor_page(const leat_doctor_diagnosis *d, leat__buf *out, bool ascii);

#endif
