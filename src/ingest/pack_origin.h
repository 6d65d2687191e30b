/* SPDX-License-Identifier: Apache-2.0
 *
 * What a finished pack was made from: settings, number of records, and a hash over their names,
 * sizes and dates. A file beside the pack keeps it until the pack is in its bucket, so that a
 * resumed upload is refused when source or settings have changed.
 */
#ifndef LEAT_INGEST_PACK_ORIGIN_H
#define LEAT_INGEST_PACK_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__origin {
    uint64_t identity; /* leat__ingest_identity: settings and names of the sources */
    uint64_t records;  /* read from the source */
    uint64_t chain;    /* hash over the records */
} leat__origin;

int leat__origin_write(const char *path, const leat__origin *origin, leat_error *err) LEAT_MUST_CHECK;
bool leat__origin_read(const char *path, leat__origin *origin); /* false: none, or damaged */

#endif
