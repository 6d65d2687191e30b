/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-1 (FIPS 180-4), for signatures that are equal to those of other tools. Not for security.
 */
#ifndef LEAT_BASE_SHA1_H
#define LEAT_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define LEAT__SHA1_BYTES 20

void leat__sha1_of(const void *data, size_t len, uint8_t out[LEAT__SHA1_BYTES]);

#endif
