/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a pack's bytes come: cold (past the page cache), by samples and by whole pages, with
 * few and with many reads in flight, and from memory. Reads only; drops nothing from the cache.
 */
#ifndef LEAT_DOCTOR_READS_H
#define LEAT_DOCTOR_READS_H

#include <leat/doctor.h>
#include <leat/loader.h>

#include "doctor/time_limit.h"

/* Share of the pack that is in the page cache now; negative for a remote pack. */
int leat__reads_resident(const char *path, double *cached, leat_error *err) LEAT_MUST_CHECK;

/* Drops the pack from the page cache, for a trial that must find it cold again. Only for packs of
 * which (nearly) nothing was there before the doctor read them. */
int leat__reads_forget(const char *path, leat_error *err) LEAT_MUST_CHECK;

/* Reads these samples once, so that they are in the page cache: as many of them, from the first on, as
 * `seconds` allow; *count becomes their number. As leat__reads_measure. */
int leat__reads_samples(const char *path, const uint64_t *samples, uint64_t *count, double seconds,
                        const leat__time_limit *limit, leat_error *err) LEAT_MUST_CHECK;

/* Fills io_cold, io_pages, io_deep, io_warm, read_ms and what the index says about bytes,
 * spending about `seconds`. f->cached says how much was in memory before anyone read. `samples`
 * are ids in the order they will be read. LEAT_ETIMEDOUT and LEAT_ECANCELED as `limit` says. */
int leat__reads_measure(const char *path, const uint64_t *samples, uint64_t count,
                        const leat_loader_opts *opts, double seconds, const leat__time_limit *limit,
                        leat_doctor_facts *f, leat_error *err) LEAT_MUST_CHECK;

#endif
