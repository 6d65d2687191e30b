/* SPDX-License-Identifier: Apache-2.0
 *
 * A few samples in memory, and the same samples stored in another way. One thread.
 */
#ifndef LEAT_DOCTOR_VARIANT_H
#define LEAT_DOCTOR_VARIANT_H

#include <leat/pack.h>

#include "base/buf.h"
#include "codec/codec.h"
#include "codec/tile/tile.h"
#include "doctor/time_limit.h"

typedef struct leat__set_sample {
    uint64_t id;
    leat__image_info info;
    const uint8_t *data;    /* padded, in the set's memory */
    const uint8_t *entries; /* entry points of a JPEG, in the set's memory; NULL when there are none */
    size_t len, entries_len;
    size_t at; /* offset in that memory; entry points follow the padding */
} leat__set_sample;

/* A zeroed set is empty. */
typedef struct leat__set {
    leat__set_sample *sample;
    uint32_t count;
    leat__buf memory;
    leat__tile_tables *tables; /* tables of tiled images, and their stored form */
    leat__buf blob;
    const leat__time_limit *limit; /* checked between samples when they are encoded or loaded; may be NULL */
} leat__set;

/* Reads the first image field of up to `max` of these samples; skips those that cannot be read. Every leading
 * part of the set has large and small samples in the same proportion. LEAT_ETIMEDOUT after the limit, which
 * may be NULL and is kept in the set. */
int leat__set_load(leat__set *set, const char *path, const uint64_t *ids, uint64_t count, uint32_t max,
                   uint64_t max_bytes, const leat__time_limit *limit, leat_error *err) LEAT_MUST_CHECK;
void leat__set_reset(leat__set *set);
double leat__set_bytes(const leat__set *set); /* mean size of a sample's image */

enum {
    LEAT__VARIANT_TILED,   /* JPEGs as tiles */
    LEAT__VARIANT_RAW,     /* pixels */
    LEAT__VARIANT_MIX,     /* half of them as pixels */
    LEAT__VARIANT_SMALLER, /* JPEG, with the longer side about twice the side of the output */
    LEAT__VARIANT_QUALITY, /* JPEG of quality 75 */
    LEAT__VARIANTS
};

/* Returns how many leading samples of a set are stored in other ways, since encoding is slow. */
uint32_t leat__variant_part(const leat__set *set);

/* Makes another form of these samples, and its description. The set is empty when the form does not
 * apply (raw of raw) or cannot be made. */
int leat__variant_make(uint32_t variant, const leat__set *from, double out_pixels, leat__set *to,
                       char *action, size_t size, leat_error *err) LEAT_MUST_CHECK;

/* Computes the mean bytes of these samples as leat pack would re-encode them, as a share of their
 * current size. `max_side` and `quality`: its options, 0 = unchanged. The share is 0 when the samples
 * have too many pixels to encode quickly. */
int leat__variant_share(const leat__set *from, uint32_t max_side, uint32_t quality, double *share,
                        leat_error *err) LEAT_MUST_CHECK;

#endif
