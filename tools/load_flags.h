/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags that define how a pack is loaded: one table for `leat load`, `leat doctor` and other code that
 * runs a loader. Commands with these tables set `.config`, so that cli_config.h reads --config.
 */
#ifndef LEAT_TOOLS_LOAD_FLAGS_H
#define LEAT_TOOLS_LOAD_FLAGS_H

#include <leat/loader.h>

#include "cli.h"

extern const leat__param cli_load_options[]; /* what is delivered: batch, crop, order, … */
extern const leat__param cli_load_machine[]; /* how: threads, memory, cache, rank, … */
extern const leat__param cli_mix_options[];  /* several packs: load_mix.h */

/* Loader options read from the command line and --config. It owns the lists; text belongs to the
 * command line. */
typedef struct load_flags {
    leat_loader_opts opts;
    leat__buf ops;     /* pipeline text */
    uint64_t *indices; /* samples of --keys */
    uint64_t epochs;
    double *bucket_edges;
    double step_s; /* step time of a simulated trainer */
} load_flags;

/* Returns the largest value of one of these flags. */
double load_flag_most(const char *name);

/* Reads the flags. LEAT_EINVAL names the wrong flag. */
int load_flags_read(load_flags *f, cli *c, leat_error *err);
/* Reads --keys: selects the samples with these keys in the packs given as arguments. */
int load_flags_keys(load_flags *f, cli *c, leat_error *err);
void load_flags_reset(load_flags *f);

/* Opens the packs of all arguments as one. */
int load_open_packs(leat_pack **pack, cli *c, leat_error *err);

/* Writes one of the usual pipelines: crop 0 = random resized crop and mirror, 1 = resize and centre
 * crop, 2 = resize only. */
void load_ops_write(leat__buf *out, int crop, int side, double flip, const char *like, const char *dtype,
                    const char *layout);

#endif
