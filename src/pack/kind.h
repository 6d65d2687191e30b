/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind of pixels of an image, from the index: type of samples and number of channels. 8-bit images of
 * 1, 3 and 4 channels are one kind (0), as pipelines make three channels of all of them. The images of
 * a field are of one kind, because a batch is.
 */
#ifndef LEAT_PACK_KIND_H
#define LEAT_PACK_KIND_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/error.h"
#include "codec/codec.h"

typedef uint32_t leat__image_kind;

leat__image_kind leat__image_kind_of(const leat_pack_image *image);
leat__sample_type leat__kind_type(leat__image_kind kind);
uint32_t leat__kind_channels(leat__image_kind kind); /* 0 of kind 0 */

/* Flags of the index for samples of this type. */
uint8_t leat__kind_flags(leat__sample_type type);

/* "uint16 images with 5 channels" */
#define LEAT__KIND_TEXT 48
const char *leat__kind_text(leat__image_kind kind, char text[LEAT__KIND_TEXT]);

/* Bytes of a sample's key that messages about its kind show. */
#define LEAT__KIND_KEY 200

/* The kind of an image field: that of the first image in each pack. LEAT_EINVAL names the pack whose
 * images are of another kind than those of the packs before it. */
int leat__pack_image_kind(leat_pack *pack, uint32_t field, leat__image_kind *kind,
                          leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EFORMAT for a sample whose images are of another kind than those that were packed before it. */
int leat__packer_check_kinds(leat_packer *p, const leat_pack_sample *sample, leat_error *err) LEAT_MUST_CHECK;

#endif
