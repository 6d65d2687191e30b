/* SPDX-License-Identifier: Apache-2.0
 *
 * Copying samples from pack to pack as they are stored. Private to the module.
 */
#ifndef LEAT_PACK_COMPACT_H
#define LEAT_PACK_COMPACT_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/error.h"

/* The samples for which `select` says so, in their order, into a new pack at opts->output with this
 * provenance. The pack is opened by the caller. */
int leat__pack_copy(leat_pack *pack, const leat_pack_compact_opts *opts, const char *source,
                    bool (*select)(void *cookie, uint64_t sample), void *cookie, leat_packer_stats *stats,
                    leat_error *err) LEAT_MUST_CHECK;

#endif
