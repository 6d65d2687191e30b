/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of ordinary JPEGs without libjpeg: leat's own entropy decoder (jpeg_scan.h) and the
 * pixel stage of the tile decoder (raster.h). One per decoder, used by one thread at a time.
 */
#ifndef LEAT_CODEC_JPEG_REGION_H
#define LEAT_CODEC_JPEG_REGION_H

#include "codec/codec_ops.h"
#include "codec/jpeg_coef.h"
#include "codec/raster.h"

typedef struct leat__jpeg_region leat__jpeg_region;

int leat__jpeg_region_open(leat__jpeg_region **r, leat_error *err) LEAT_MUST_CHECK;
void leat__jpeg_region_close(leat__jpeg_region **r);

/* What the raster makes of a frame; false when it is not among what it can do: grey, and YCbCr
 * of the usual samplings. */
bool leat__jpeg_region_shape(const leat__jpeg_coefs *frame, leat__raster_shape *shape);

/* Decodes the region of the job, whose scale must be 1. *done: rows that the sink has got,
 * which are right whatever comes after. *complete false (with 0): the rest, and the verdict on
 * the file, are libjpeg's: it is of a kind that is not decoded here, or damaged. Errors are
 * those of the sink and of memory. */
int leat__jpeg_region_decode(leat__jpeg_region *r, const leat__decode_job *job, uint32_t *done,
                             bool *complete, leat_error *err) LEAT_MUST_CHECK;

#endif
