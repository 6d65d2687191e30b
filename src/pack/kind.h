/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind of pixels of an image, from the index: type of samples and number of channels. 8-bit images of
 * 1, 3 and 4 channels are one kind (0), because pipelines convert all of them to three channels. All images
 * of a field are of one kind, because a batch has only one.
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
uint32_t leat__kind_channels(leat__image_kind kind); /* 0 for kind 0 */

/* Returns the flags of the index for samples of this type. */
uint8_t leat__kind_flags(leat__sample_type type);

/* "uint16 images with 5 channels" */
#define LEAT__KIND_TEXT 48
const char *leat__kind_text(leat__image_kind kind, char text[LEAT__KIND_TEXT]);

/* Bytes of a sample's key that are shown in messages about its kind. */
#define LEAT__KIND_KEY 200

/* Finds the kind of an image field: that of the first image in each pack. LEAT_EINVAL names a pack whose
 * images are of another kind than those of the packs before it. */
int leat__pack_image_kind(leat_pack *pack, uint32_t field, leat__image_kind *kind,
                          leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EFORMAT when images of the sample are of another kind than those packed before it. */
int leat__packer_check_kinds(leat_packer *p, const leat_pack_sample *sample, leat_error *err) LEAT_MUST_CHECK;

#endif
