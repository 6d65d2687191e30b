/* SPDX-License-Identifier: Apache-2.0
 *
 * What decoding and augmenting cost, alone: samples in memory, the user's own pipelines, one
 * thread and all of them. The same samples stored or delivered in other ways are measured the
 * same way, so that a remedy's price is a measurement.
 */
#ifndef LEAT_DOCTOR_WORK_H
#define LEAT_DOCTOR_WORK_H

#include <leat/doctor.h>
#include <leat/loader.h>

/* Fills cpu_all, cpu_one, augment_share, the facts about images, those about larger batches (where
 * f->loader is known), and the options; returns the CPU
 * seconds of one sample in *cpu_s. Spends about `seconds`. */
int leat__work_measure(const char *path, const uint64_t *samples, uint64_t count,
                       const leat_loader_opts *opts, uint32_t threads, double seconds,
                       leat_doctor_facts *f, double *cpu_s, leat_error *err) LEAT_MUST_CHECK;

/* The pipeline text without the ops that `keep` refuses; for tests too. */
typedef enum leat__ops_part {
    LEAT__OPS_CROP_ONLY, /* crops, resizes and what shapes the output: no augmentation */
    LEAT__OPS_PLAIN_U8   /* without Normalize and ToDtype: bytes */
} leat__ops_part;
struct leat__buf;
int leat__ops_strip(const char *ops, leat__ops_part part, struct leat__buf *out);

#endif
