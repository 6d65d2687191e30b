/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables for tiles while packing: those of the new pack and of its source packs. One thread opens and
 * closes them; in between, any number of threads read.
 */
#ifndef LEAT_INGEST_PACK_TABLES_H
#define LEAT_INGEST_PACK_TABLES_H

#include <leat/pack.h>

#include "codec/tile/tile.h"
#include "ingest/image_encode.h"
#include "ingest/source.h"

/* A zeroed struct is empty. */
typedef struct leat__pack_tables {
    leat__tile_tables *own;   /* tables of the new pack; NULL without tiles */
    leat__tile_tables **from; /* tables of the source packs, by origin; NULL for those without tiles */
    uint32_t from_count;
} leat__pack_tables;

/* Opens the tables of source packs that contain tiles. */
int leat__pack_tables_open(leat__pack_tables *t, leat__source *source, leat_error *err) LEAT_MUST_CHECK;
void leat__pack_tables_close(leat__pack_tables *t);

/* Returns the tables of a record's source pack, or NULL. */
const leat__tile_tables *leat__pack_tables_of(const leat__pack_tables *t, uint32_t origin);

/* Sets the plan's tables if the new pack stores tiles: those of the resumed run, those of the copied
 * tiles, or new ones trained on a part of the source. If no merged pack has tables, images are kept. */
int leat__pack_tables_prepare(leat__pack_tables *t, const leat_ingest_opts *opts, leat__source *source,
                              leat_packer *packer, leat__encode_plan *plan, leat_error *err) LEAT_MUST_CHECK;

#endif
