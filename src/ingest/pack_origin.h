/* SPDX-License-Identifier: Apache-2.0
 *
 * The origin of a finished pack: settings, number of records, and a hash over their names, sizes and
 * dates. It is stored in a file beside the pack until the pack is in its bucket. A resumed upload is
 * refused when source or settings have changed.
 */
#ifndef LEAT_INGEST_PACK_ORIGIN_H
#define LEAT_INGEST_PACK_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct leat__origin {
    uint64_t identity; /* leat__ingest_identity: hash of settings and source names */
    uint64_t records;  /* number of records read from the source */
    uint64_t chain;    /* hash of the records */
} leat__origin;

int leat__origin_write(const char *path, const leat__origin *origin, leat_error *err) LEAT_MUST_CHECK;
bool leat__origin_read(const char *path, leat__origin *origin); /* false: missing or damaged */

#endif
