/* SPDX-License-Identifier: Apache-2.0
 *
 * A few samples as a pack of their own, under the real loader: what it costs to deliver one of
 * them, reading, checking, decoding and hand-over together. Private to the room; one thread.
 */
#ifndef LEAT_DOCTOR_MINI_H
#define LEAT_DOCTOR_MINI_H

#include <leat/loader.h>

#include "doctor/variant.h"

typedef struct leat__mini leat__mini;

/* Writes the set into a pack in the folder for temporary files: its samples again and again, until they
 * no longer fit the CPU's caches. Few would stay in there and be read faster than the many they stand
 * for. No more than `most_bytes` unless each of them once is more. */
int leat__mini_open(leat__mini **m, const leat__set *set, double most_bytes,
                    leat_error *err) LEAT_MUST_CHECK;
void leat__mini_close(leat__mini **m); /* and removes it */

/* A loader of that pack with these options (order, subset, rank and memory are its own); `ops`
 * instead of theirs, a text for each of their images, or NULL. */
typedef struct leat__mini_run leat__mini_run;
int leat__mini_run_open(leat__mini_run **run, const leat__mini *m, const leat_loader_opts *opts,
                        const char *const *ops, uint32_t threads, leat_error *err) LEAT_MUST_CHECK;
void leat__mini_run_close(leat__mini_run **run);

/* CPU seconds of one sample, over about `seconds` of loading. Nothing else may work in this process
 * meanwhile; other runs that are open stand still. The first time pays for memory touched first. */
int leat__mini_run_cost(leat__mini_run *run, double seconds, double *cpu_s,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
