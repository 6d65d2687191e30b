/* SPDX-License-Identifier: Apache-2.0
 *
 * The packs of `leat load`, and the flags that define how several are mixed.
 */
#ifndef LEAT_TOOLS_LOAD_MIX_H
#define LEAT_TOOLS_LOAD_MIX_H

#include "load_flags.h"

typedef struct load_mix {
    leat_loader_source *sources; /* one per argument */
    uint32_t count;
    leat_loader_default *defaults;
    uint32_t default_count;
    char *text; /* text that `defaults` points into */
} load_mix;

/* Sets the sources and their mixing in f->opts; these point into `m`. */
int load_mix_read(load_mix *m, load_flags *f, cli *c, leat_error *err);
void load_mix_reset(load_mix *m);

#endif
