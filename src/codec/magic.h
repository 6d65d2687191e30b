/* SPDX-License-Identifier: Apache-2.0
 *
 * First bytes of formats that a build or a machine may lack the library for: they are recognised
 * all the same, so that the error names the format.
 */
#ifndef LEAT_CODEC_MAGIC_H
#define LEAT_CODEC_MAGIC_H

#include "codec/codec.h"

bool leat__magic_tiff(const uint8_t *data, size_t len);
bool leat__magic_avif(const uint8_t *data, size_t len);
bool leat__magic_jxl(const uint8_t *data, size_t len);
bool leat__magic_heif(const uint8_t *data, size_t len);

/* PNG, WebP and the formats above; LEAT__CODEC_NONE for all others. */
leat__codec_id leat__magic(const uint8_t *data, size_t len);

#endif
