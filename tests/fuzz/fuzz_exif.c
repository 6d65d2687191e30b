/* SPDX-License-Identifier: Apache-2.0
 *
 * The readers of EXIF, XMP and raw profiles against any bytes.
 */
#include <stdlib.h>

#include "codec/exif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (leat__exif_orientation(data, size) > 8) abort();
    if (leat__xmp_orientation(data, size) > 8) abort();
    if (leat__profile_orientation(data, size) > 8) abort();
    return 0;
}
