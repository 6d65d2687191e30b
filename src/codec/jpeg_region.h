/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes regions of ordinary JPEGs without libjpeg: leat's own entropy decoder (jpeg_scan.h) and the pixel
 * stage of the tile decoder (raster.h). One per decoder, used by one thread at a time.
 */
#ifndef LEAT_CODEC_JPEG_REGION_H
#define LEAT_CODEC_JPEG_REGION_H

#include "codec/codec_ops.h"
#include "codec/jpeg_coef.h"
#include "codec/raster.h"

typedef struct leat__jpeg_region leat__jpeg_region;

int leat__jpeg_region_open(leat__jpeg_region **r, leat_error *err) LEAT_MUST_CHECK;
void leat__jpeg_region_close(leat__jpeg_region **r);

/* Describes a frame for the raster. False when the raster does not support it: only grey, and YCbCr of the
 * usual samplings. */
bool leat__jpeg_region_shape(const leat__jpeg_coefs *frame, leat__raster_shape *shape);

/* Decodes the region of the job, whose scale must be 1. *done: rows that the sink has received; they are
 * correct whatever follows. Returns 0 with *complete = false when the file is damaged or of a kind not
 * decoded here: libjpeg must then decode the rest and report errors. Errors are those of the sink and of
 * memory. */
int leat__jpeg_region_decode(leat__jpeg_region *r, const leat__decode_job *job, uint32_t *done,
                             bool *complete, leat_error *err) LEAT_MUST_CHECK;

#endif
