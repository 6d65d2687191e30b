/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at images while they are packed, for results beside the pack: the caller of leat__ingest_inspected
 * gets every image as it is stored, in the thread that made it, and what it found there in the order of the
 * pack. So `leat pack --check` reads the source once.
 */
#ifndef LEAT_INGEST_INSPECT_H
#define LEAT_INGEST_INSPECT_H

#include <leat/ingest.h>

#include "base/buf.h"
#include "codec/jpeg_coef.h"
#include "codec/tile/tile.h"
#include "ingest/record.h"

typedef struct leat__inspector {
    void *cookie;
    /* One looker per thread. */
    int (*open)(void *cookie, void **looker, leat_error *err);
    void (*close)(void *cookie, void *looker);
    /* The coefficients of an image that is tiled or kept, before `look` gets its bytes, which then need not
     * be decoded: grid_y rows of each component, all of them at once or from top to bottom in several calls.
     * NULL: those given before are of an image that `look` will not get. May be NULL. */
    int (*coefs)(void *cookie, void *looker, const leat__jpeg_coefs *coefs, leat_error *err);
    /* Appends to `found` what is known of an image; data NULL: the sample has none. Any thread. `data` is
     * followed by LEAT__CODEC_PADDING readable bytes. LEAT_ENOMEM ends the run;
     * with another error the sample cannot be packed. Faults of an image belong to the results. */
    int (*look)(void *cookie, void *looker, const char *key, const leat_pack_image *image,
                const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *found,
                leat_error *err);
    /* The sample was packed: the caller's thread, in order. */
    int (*take)(void *cookie, const char *key, size_t key_size, const void *found, leat_error *err);
} leat__inspector;

/* leat_ingest with an inspector of the first image field. Samples of a resumed run that were in the pack
 * already (stats->resumed) are not inspected. */
int leat__ingest_inspected(const leat_ingest_opts *opts, const leat__inspector *inspector,
                           leat_ingest_stats *stats, leat_error *err) LEAT_MUST_CHECK;

/* Calls the inspector for a record that was encoded, or for each of its frames. `tables`: of the new pack. */
int leat__inspect_record(const leat__inspector *inspector, void *looker, leat__records *run, leat__record *r,
                         uint32_t field, const leat__tile_tables *tables, leat_error *err) LEAT_MUST_CHECK;

/* The key of a frame: KEY#0012. */
#define LEAT__FRAME_SUFFIX 16
void leat__frame_suffix(char text[LEAT__FRAME_SUFFIX], uint32_t frame);

#endif
