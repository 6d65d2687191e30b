/* SPDX-License-Identifier: Apache-2.0
 *
 * Load flags as remedies write them ("order=quasi_random,memory=4194304"), and the options they
 * stand for.
 */
#ifndef LEAT_DOCTOR_FLAGS_H
#define LEAT_DOCTOR_FLAGS_H

#include <leat/loader.h>

/* Returns `from` with the flags of `set` applied; keys that are not load flags are ignored. */
leat_loader_opts leat__doctor_apply(const leat_loader_opts *from, const char *set);

#endif
