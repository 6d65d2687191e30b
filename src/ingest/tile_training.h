/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains tables for tiles on a part of the images, before packing begins.
 */
#ifndef LEAT_INGEST_TILE_TRAINING_H
#define LEAT_INGEST_TILE_TRAINING_H

#include <leat/ingest.h>

#include "base/buf.h"
#include "ingest/image_encode.h"

/* Appends the tables to `blob`. They depend only on source and settings, not on opts->threads. Images
 * that cannot be read are skipped: packing will report them. `from`: tables of the source packs, by
 * origin (NULL for a pack without tables); tiled images are restored to train on them. */
int leat__train_tables(const leat_ingest_opts *opts, const leat__encode_plan *plan,
                       leat__tile_tables *const *from, uint32_t from_count, leat__buf *blob,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
