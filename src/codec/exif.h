/* SPDX-License-Identifier: Apache-2.0
 *
 * The orientation of an image: read from EXIF and XMP, written to EXIF. leat uses nothing else of them.
 */
#ifndef LEAT_CODEC_EXIF_H
#define LEAT_CODEC_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Orientation tags found while the segments or chunks of a file are read. As in Pillow's
 * exif_transpose, EXIF has priority over ImageMagick's raw profile, and XMP is used only where
 * neither has the tag. Zeroed: no tag found. */
typedef struct leat__exif_seen {
    uint32_t exif, profile; /* LEAT__EXIF_NONE: a block without the tag */
    uint32_t xmp;
    bool has_exif;
} leat__exif_seen;

/* The tag is missing. */
#define LEAT__EXIF_NONE 0

/* Returns the orientation in `data`, a TIFF structure ("II*\0" or "MM\0*") with or without "Exif\0\0" before
 * it. Returns 1..8; 1 also for an invalid value, NONE when the tag is missing. A broken EXIF block does not
 * make the image invalid. */
uint32_t leat__exif_orientation(const uint8_t *data, size_t len);

/* Returns the orientation in an XMP packet (tiff:Orientation), which is searched as text. */
uint32_t leat__xmp_orientation(const uint8_t *data, size_t len);

/* Returns the orientation in ImageMagick's "Raw profile type exif": three lines, then hexadecimal digits. */
uint32_t leat__profile_orientation(const uint8_t *text, size_t len);

/* Returns the one that has priority: 1..8. */
uint32_t leat__orientation_of(const leat__exif_seen *seen);

/* Writes a minimal EXIF block ("Exif\0\0" + TIFF) with this orientation; returns its length. */
#define LEAT__EXIF_MINIMAL 32
size_t leat__exif_minimal(uint32_t orientation, uint8_t out[LEAT__EXIF_MINIMAL]);

#endif
