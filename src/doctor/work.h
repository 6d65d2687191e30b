/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the cost of decoding and augmenting alone: samples in memory, the user's own pipelines, one thread
 * and all threads. The same samples stored or delivered in other ways are measured in the same way, so that
 * a remedy's gain is a measurement.
 */
#ifndef LEAT_DOCTOR_WORK_H
#define LEAT_DOCTOR_WORK_H

#include <leat/doctor.h>
#include <leat/loader.h>

#include "doctor/time_limit.h"

/* Fills in cpu_all, cpu_one, augment_share, the facts about images, those about larger batches (if
 * f->loader is known), and the options; sets *cpu_s to the CPU seconds per sample. Takes about
 * `seconds`. Costs that cannot be measured in time are counted in f->skipped. LEAT_ECANCELED comes
 * from the limit. */
int leat__work_measure(const char *path, const uint64_t *samples, uint64_t count,
                       const leat_loader_opts *opts, uint32_t threads, double seconds,
                       const leat__time_limit *limit, leat_doctor_facts *f, double *cpu_s,
                       leat_error *err) LEAT_MUST_CHECK;

/* Estimates the CPU seconds to decode and augment one sample by decoding one or two. Negative
 * when there is no image. */
int leat__work_estimate(const char *path, const uint64_t *samples, uint64_t count,
                        const leat_loader_opts *opts, const leat__time_limit *limit, double *cpu_s,
                        leat_error *err) LEAT_MUST_CHECK;

/* Returns the share of a sample's CPU time spent on augmentation, from the times of the whole
 * pipeline and of its crops alone; negative when one of them was not measured. */
double leat__augment_share(double whole_s, double crop_s);

/* The ops to keep in a pipeline text (leat__ops_strip). */
typedef enum leat__ops_part {
    LEAT__OPS_CROP_ONLY, /* crops, resizes and other ops that shape the output: no augmentation */
    LEAT__OPS_PLAIN_U8   /* without Normalize and ToDtype: 8-bit output */
} leat__ops_part;
struct leat__buf;
int leat__ops_strip(const char *ops, leat__ops_part part, struct leat__buf *out);

#endif
