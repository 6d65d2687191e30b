/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises formats whose library may be missing in a build or on a machine, so that the error can name
 * the format.
 */
#ifndef LEAT_CODEC_MAGIC_H
#define LEAT_CODEC_MAGIC_H

#include "codec/codec.h"

bool leat__magic_tiff(const uint8_t *data, size_t len);
bool leat__magic_avif(const uint8_t *data, size_t len);
bool leat__magic_jxl(const uint8_t *data, size_t len);
bool leat__magic_heif(const uint8_t *data, size_t len);

/* Recognises PNG, WebP and the formats above; LEAT__CODEC_NONE for all others. */
leat__codec_id leat__magic(const uint8_t *data, size_t len);

#endif
