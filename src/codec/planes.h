/* SPDX-License-Identifier: Apache-2.0
 *
 * A band of planar rows for a sink, and the conversion between interleaved and planar.
 * leat__planes itself is declared in codec.h.
 */
#ifndef LEAT_CODEC_PLANES_H
#define LEAT_CODEC_PLANES_H

#include "codec/codec.h"

/* Enough rows to make calls of the sink cheap, few enough to stay in the L2 cache. */
#define LEAT__BAND_ROWS 16

typedef struct leat__band {
    leat__planes rows;
    uint32_t count; /* rows filled */
} leat__band;

int leat__band_fit(leat__band *band, uint32_t width, uint32_t channels, leat_error *err) LEAT_MUST_CHECK;
void leat__band_reset(leat__band *band);

/* Returns the addresses of the next row; the caller then increments band->count. */
void leat__band_next(const leat__band *band, uint8_t *row[4]);
static inline bool leat__band_full(const leat__band *band)
{
    return band->count == LEAT__BAND_ROWS;
}

/* Passes the rows to the sink as rows y .. of the region; returns the sink's result. */
int leat__band_flush(leat__band *band, const leat__row_sink *sink, uint32_t y);

void leat__planar_split(const uint8_t *src, size_t width, uint32_t channels, uint8_t *const plane[4]);
void leat__planar_join(const uint8_t *const plane[4], size_t width, uint32_t channels, uint8_t *dst);

#endif
