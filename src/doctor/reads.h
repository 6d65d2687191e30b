/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the read rate of a pack: cold (bypassing the page cache), by samples and by whole
 * pages, with few and with many reads in flight, and from memory. Only reads; drops nothing from
 * the cache.
 */
#ifndef LEAT_DOCTOR_READS_H
#define LEAT_DOCTOR_READS_H

#include <leat/doctor.h>
#include <leat/loader.h>

#include "doctor/time_limit.h"

/* Sets *cached to the share of the pack that is in the page cache now; negative for a remote pack. */
int leat__reads_resident(const char *path, double *cached, leat_error *err) LEAT_MUST_CHECK;

/* Drops the pack from the page cache, for a trial that needs it cold again. Only for packs that
 * were (nearly) absent from the cache before the doctor read them. */
int leat__reads_forget(const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Reads these samples once, to bring them into the page cache: as many, in order, as `seconds` allow.
 * Sets *count to their number. Fails like leat__reads_measure. */
int leat__reads_samples(const char *path, const uint64_t *samples, uint64_t *count, double seconds,
                        const leat__time_limit *limit, leat_error *err) LEAT_MUST_CHECK;

/* Measures a remote pack with few requests: the time of one small request, and the rate of `parts`
 * ranges of 1 MiB. 16 are in flight, and reading ends after a second. The rate is given for all, and
 * for the first half, which a late connection does not delay. */
int leat__reads_link(const char *path, uint32_t parts, double *latency_s, double *all_per_s,
                     double *half_per_s, leat_error *err) LEAT_MUST_CHECK;

/* Fills in io_cold, io_pages, io_deep, io_warm, read_ms and the byte counts from the index, in about
 * `seconds`. f->cached must be the share in memory before any read. `samples`: ids in reading order.
 * LEAT_ETIMEDOUT and LEAT_ECANCELED come from `limit`. */
int leat__reads_measure(const char *path, const uint64_t *samples, uint64_t count,
                        const leat_loader_opts *opts, double seconds, const leat__time_limit *limit,
                        leat_doctor_facts *f, leat_error *err) LEAT_MUST_CHECK;

#endif
