/* SPDX-License-Identifier: Apache-2.0
 *
 * The last stage of wide images: see wide_ops.h. Pure functions.
 */
#include <string.h>

#include "base/rng.h"
#include "op/wide_ops.h"
#include "op/writer.h"

static float value_of(leat__sample_type type, const uint8_t *src)
{
    uint16_t u;
    float f;
    switch (type) {
    case LEAT__SAMPLE_U8: return src[0];
    case LEAT__SAMPLE_U16: memcpy(&u, src, sizeof u); return u;
    default: memcpy(&f, src, sizeof f); return f;
    }
}

/* Writes one channel of a row. Values are copied if the type stays and nothing is normalised, so NaNs keep
 * their bits. */
static void write_row(const leat__wide *im, const leat__wide_norm *norm, leat_dtype dtype, uint32_t y,
                      uint32_t c, uint8_t *out, size_t step)
{
    const size_t size = leat__sample_bytes(im->type), pixel = leat__wide_pixel(im);
    const uint8_t *src = leat__wide_row(im, y) + c * size;
    const float div = norm->div, mean = norm->mean[c], std = norm->std[c];
    const bool same = leat__output_whole(dtype) || (dtype == LEAT_DTYPE_F32 && im->type == LEAT__SAMPLE_F32 &&
                                                    div == 1 && mean == 0 && std == 1);
    for (uint32_t x = 0; x < im->width; x++, src += pixel) {
        if (same) memcpy(out + x * step * size, src, size);
        else leat__writer_put(dtype, out, x * step, (value_of(im->type, src) / div - mean) / std);
    }
}

void leat__wide_write(const leat__wide *im, const leat__wide_norm *norm, const leat__output_spec *spec,
                      void *out)
{
    const size_t size = leat_dtype_size(spec->dtype), row = (size_t)im->width * size;
    const bool woven = spec->layout == LEAT__LAYOUT_NHWC;
    for (uint32_t y = 0; y < im->height; y++)
        for (uint32_t c = 0; c < im->channels; c++) {
            uint8_t *const to = (uint8_t *)out + (woven ? y * row * im->channels + c * size
                                                        : ((size_t)c * im->height + y) * row);
            write_row(im, norm, spec->dtype, y, c, to, woven ? im->channels : 1);
        }
}

void leat__wide_erase_out(const leat__output_spec *o, const leat__step *s, void *out)
{
    const bool woven = o->layout == LEAT__LAYOUT_NHWC;
    leat__rng rng;
    leat__rng_init(&rng, s->noise_seed, 0, 0, 0);
    for (uint32_t c = 0; c < o->channels; c++)
        for (uint32_t y = (uint32_t)s->y; y < (uint32_t)s->y + s->height; y++)
            for (uint32_t x = (uint32_t)s->x; x < (uint32_t)s->x + s->width; x++) {
                const size_t at = (size_t)y * o->width + x;
                const size_t index = woven ? at * o->channels + c : (size_t)c * o->width * o->height + at;
                leat__writer_put(o->dtype, out, index, s->noise ? (float)leat__rng_normal(&rng) : s->fill[c]);
            }
}
