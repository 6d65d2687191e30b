/* SPDX-License-Identifier: Apache-2.0
 *
 * The JPEG decoder and the reader of coefficients against any bytes.
 */
#include "fuzz_codec.h"

#include "codec/jpeg_coef.h"

static void read_coefs(const uint8_t *data, size_t size)
{
    leat__jpeg_coef_reader *r = NULL;
    leat__jpeg_coefs coefs;
    leat__decode_limits limits = {.max_pixels = 1 << 22, .max_out_bytes = 1 << 24,
                                  .max_scans = 50, .max_seconds = 5};
    if (leat__jpeg_coef_reader_open(&r, NULL) != 0) return;
    if (leat__jpeg_coef_read(r, data, size, &limits, &coefs, NULL) == 0) {
        if (coefs.header_len + coefs.scan_len + coefs.tail_len != size) abort();
        for (uint32_t i = 0; i < coefs.components; i++) {
            const leat__jpeg_component *c = &coefs.component[i];
            volatile int16_t last = c->coefs[(size_t)c->grid_x * c->grid_y * 64 - 1];
            (void)last;
        }
    }
    leat__jpeg_coef_reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(LEAT__CODEC_JPEG, data, size);
    read_coefs(data, size);
    return 0;
}
