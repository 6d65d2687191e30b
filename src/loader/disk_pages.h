/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk cache of a loader: the place of each page in it, and which pages the loader's order never reads.
 */
#ifndef LEAT_LOADER_DISK_PAGES_H
#define LEAT_LOADER_DISK_PAGES_H

#include <stdbool.h>

#include <leat/loader.h>

#include "base/error.h"

/* Opens the disk cache of a remote pack, if the options name one. */
int leat__loader_disk(leat_loader *l, leat_error *err) LEAT_MUST_CHECK;

/* For leat__disk_opts; `env` is a leat__run_env. True for pages without a sample of the subset that is
 * loaded. One thread at a time. */
bool leat__disk_unwanted(void *env, uint64_t page, uint64_t *offset, uint64_t *len);

#endif
