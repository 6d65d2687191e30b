/* SPDX-License-Identifier: Apache-2.0
 *
 * One image decoder, FUZZ_CODEC, against any bytes.
 */
#include "fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(FUZZ_CODEC, data, size);
    return 0;
}
