/* SPDX-License-Identifier: Apache-2.0
 *
 * The bmp decoder against any bytes.
 */
#include "fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(LEAT__CODEC_BMP, data, size);
    return 0;
}
