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

/* Writes the set into a pack in the folder for temporary files. */
int leat__mini_open(leat__mini **m, const leat__set *set, leat_error *err) LEAT_MUST_CHECK;
void leat__mini_close(leat__mini **m); /* and removes it */

/* CPU seconds of one sample, over about `seconds` of loading with these options (order, subset,
 * rank and memory are its own). `ops` instead of theirs, or NULL. */
int leat__mini_cost(const leat__mini *m, const leat_loader_opts *opts, const char *ops, uint32_t threads,
                    double seconds, double *cpu_s, leat_error *err) LEAT_MUST_CHECK;

#endif
