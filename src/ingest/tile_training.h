/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for tiles, learned from a part of the images before the packing begins.
 */
#ifndef LEAT_INGEST_TILE_TRAINING_H
#define LEAT_INGEST_TILE_TRAINING_H

#include <leat/ingest.h>

#include "base/buf.h"
#include "ingest/image_encode.h"

/* Appends the tables to `blob`. A pure function of source and settings, not of opts->threads.
 * Images that cannot be read are passed over: the packing itself will report them. `from` are the
 * tables of the packs that are read, by origin (NULL where a pack has none); tiles are learned
 * from as the files they restore to. */
int leat__train_tables(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                       leat__tile_tables *const *from, uint32_t from_count, leat__buf *blob,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
