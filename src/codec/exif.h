/* SPDX-License-Identifier: Apache-2.0
 *
 * The one thing leat wants from EXIF: which way up the picture is.
 */
#ifndef LEAT_CODEC_EXIF_H
#define LEAT_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* `data` is a TIFF structure ("II*\0" or "MM\0*"), optionally behind "Exif\0\0". Gives 1..8;
 * 1 also when there is no orientation, or it makes no sense: a broken EXIF block does not
 * make a broken image. */
uint32_t leat__exif_orientation(const uint8_t *data, size_t len);

/* Writes a minimal EXIF block ("Exif\0\0" + TIFF) with this orientation; returns its length. */
#define LEAT__EXIF_MINIMAL 32
size_t leat__exif_minimal(uint32_t orientation, uint8_t out[LEAT__EXIF_MINIMAL]);

#endif
