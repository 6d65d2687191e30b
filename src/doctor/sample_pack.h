/* SPDX-License-Identifier: Apache-2.0
 *
 * A few samples as a small separate pack, loaded by the real loader. Measures the cost of delivering one of
 * them: reading, verifying, decoding and delivery. Private to the module; one thread.
 */
#ifndef LEAT_DOCTOR_SAMPLE_PACK_H
#define LEAT_DOCTOR_SAMPLE_PACK_H

#include <leat/loader.h>

#include "doctor/variant.h"

typedef struct leat__sample_pack leat__sample_pack;

/* Writes the set into a pack in the temporary folder. Samples are repeated until they exceed the CPU's
 * caches, because cached samples would be read faster than those of the real pack. Writes at most
 * `most_bytes`, unless one copy of each sample is larger. */
int leat__sample_pack_open(leat__sample_pack **m, const leat__set *set, double most_bytes,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__sample_pack_close(leat__sample_pack **m); /* also removes the pack */

/* Opens a loader of that pack with these options (it sets order, subset, rank and memory itself). `ops`, one
 * text per image or NULL, replaces the ops of the options. */
typedef struct leat__sample_load leat__sample_load;
int leat__sample_load_open(leat__sample_load **run, const leat__sample_pack *m, const leat_loader_opts *opts,
                           const char *const *ops, uint32_t threads, leat_error *err) LEAT_MUST_CHECK;
void leat__sample_load_close(leat__sample_load **run);

/* Measures CPU seconds and wall-clock seconds per sample, over about `seconds` of loading. Nothing else may
 * run in this process meanwhile; other open runs are paused. The first call also pays for first-touch
 * memory. */
int leat__sample_load_cost(leat__sample_load *run, double seconds, double *cpu_s, double *clock_s,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
