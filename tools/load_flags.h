/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags that say how a pack is loaded: one table for `leat load`, `leat doctor` and
 * other code that runs a loader. Commands with these tables set `.config`, so that cli_config.h reads
 * --config.
 */
#ifndef LEAT_TOOLS_LOAD_FLAGS_H
#define LEAT_TOOLS_LOAD_FLAGS_H

#include <leat/loader.h>

#include "cli.h"

extern const leat__param cli_load_options[]; /* what is delivered: batch, crop, order, … */
extern const leat__param cli_load_machine[]; /* how: threads, memory, cache, rank, … */
extern const leat__param cli_mix_options[];  /* several packs: load_mix.h */

/* Loader options read from the command line and --config. Lists live in it, text in the command line. */
typedef struct load_flags {
    leat_loader_opts opts;
    leat__buf ops;     /* pipeline text */
    uint64_t *indices; /* of --keys */
    uint64_t epochs;
    double *bucket_edges;
    double step_s; /* simulated step of a trainer */
} load_flags;

/* Largest value of one of these flags. */
double load_flag_most(const char *name);

/* LEAT_EINVAL says which flag is wrong. */
int load_flags_read(load_flags *f, cli *c, leat_error *err);
/* --keys: the samples with these keys in the arguments, which are packs. */
int load_flags_keys(load_flags *f, cli *c, leat_error *err);
void load_flags_reset(load_flags *f);

/* The packs of all arguments as one. */
int load_open_packs(leat_pack **pack, cli *c, leat_error *err);

/* The usual pipelines as text: crop 0 = random resized crop and mirror, 1 = resize and centre
 * crop, 2 = resize only. */
void load_ops_write(leat__buf *out, int crop, int side, double flip, const char *like, const char *dtype,
                    const char *layout);

#endif
