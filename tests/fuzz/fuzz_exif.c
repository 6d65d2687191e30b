/* SPDX-License-Identifier: Apache-2.0
 *
 * The EXIF reader against any bytes.
 */
#include <stdlib.h>

#include "codec/exif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t o = leat__exif_orientation(data, size);
    if (o < 1 || o > 8) abort();
    return 0;
}
