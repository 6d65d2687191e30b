/* SPDX-License-Identifier: Apache-2.0
 *
 * Inspection of images while they are packed, for results beside the pack. The caller of
 * leat__ingest_inspected gets every image as it is stored, on the thread that encoded it, and then its
 * findings in the order of the pack. So `leat pack --check` reads the source only once.
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
    /* Opens and closes the looker of a thread. */
    int (*open)(void *cookie, void **looker, leat_error *err);
    void (*close)(void *cookie, void *looker);
    /* Returns the bytes that `look` needs besides those of decoding the image. */
    uint64_t (*bytes)(const leat__image_info *info);
    /* Receives the coefficients of an image that is tiled or kept, so that `look` need not decode its bytes:
     * grid_y rows of each component, in one call or several, from the top. NULL: the coefficients given so
     * far belong to an image that `look` will not get. May be NULL. */
    int (*coefs)(void *cookie, void *looker, const leat__jpeg_coefs *coefs, leat_error *err);
    /* Appends the findings about an image to `found`; data NULL: the sample has no image. Any thread.
     * `data` is followed by LEAT__CODEC_PADDING readable bytes. LEAT_ENOMEM ends the run; with
     * another error the sample cannot be packed. Faults of an image are findings, not errors. */
    int (*look)(void *cookie, void *looker, const char *key, const leat_pack_image *image,
                const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *found,
                leat_error *err);
    /* Called on the caller's thread, in order, when the sample has been packed. */
    int (*take)(void *cookie, const char *key, size_t key_size, const void *found, leat_error *err);
} leat__inspector;

/* Runs leat_ingest with an inspector of the first image field. Samples that were in the pack before a
 * resumed run (stats->resumed) are not inspected. */
int leat__ingest_inspected(const leat_ingest_opts *opts, const leat__inspector *inspector,
                           leat_ingest_stats *stats, leat_error *err) LEAT_MUST_CHECK;

/* Calls the inspector for an encoded record, or for each of its frames. `tables`: of the new pack. */
int leat__inspect_record(const leat__inspector *inspector, void *looker, leat__records *run, leat__record *r,
                         uint32_t field, const leat__tile_tables *tables, leat_error *err) LEAT_MUST_CHECK;

/* Writes the suffix of a frame's key, as in KEY#0012. */
#define LEAT__FRAME_SUFFIX 16
void leat__frame_suffix(char text[LEAT__FRAME_SUFFIX], uint32_t frame);

#endif
