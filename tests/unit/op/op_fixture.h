/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the tests of the op module: deterministic pictures, a raw-coded image to decode, and a function
 * that runs a pipeline on it.
 */
#ifndef LEAT_TEST_OP_FIXTURE_H
#define LEAT_TEST_OP_FIXTURE_H

#include "leat_test.h"

#include "base/buf.h"
#include "codec/raw.h"
#include "op/image.h"
#include "op/pipeline.h"

/* Returns the top byte of a 64-bit congruential generator, the same as in tests/oracle/make_golden.py. */
static inline uint8_t fixture_byte(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint8_t)(*state >> 56);
}

static inline uint64_t fixture_fnv(const uint8_t *p, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* Fills a picture with a gradient and noise, like make_golden_ops.py. */
static inline void fixture_picture(leat__planes *im, uint32_t w, uint32_t h, uint32_t channels)
{
    assert_ok(leat__planes_resize(im, w, h, channels, NULL));
    for (uint32_t c = 0; c < channels; c++) {
        uint64_t state = c + 1;
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++)
                leat__planes_row(im, c, y)[x] = (uint8_t)(fixture_byte(&state) / 4 + x + y);
    }
}

/* An image in the form of the raw codec. */
typedef struct fixture_raw {
    leat__buf bytes;
    size_t len;
    leat__image_info info;
    leat__encoded encoded;
} fixture_raw;

static inline void fixture_encode(fixture_raw *f, const leat__planes *im, uint32_t orientation)
{
    leat__buf_init(&f->bytes, LEAT__MEM_MISC, SIZE_MAX);
    assert_ok(leat__raw_encode(im, &(leat__encode_opts){0}, &f->bytes, NULL));
    f->len = f->bytes.len;
    assert_ok(leat__buf_zeros(&f->bytes, LEAT__CODEC_PADDING));
    const uint8_t *const data = (const uint8_t *)f->bytes.data;
    assert_ok(leat__codec_probe(LEAT__CODEC_RAW, data, f->len, &f->info, NULL));
    f->encoded = (leat__encoded){.info = &f->info, .data = data, .len = f->len, .orientation = orientation};
}

static inline void fixture_reset(fixture_raw *f)
{
    leat__buf_reset(&f->bytes);
}

static inline leat__pipeline *fixture_pipeline(const char *text)
{
    leat__pipeline *p = NULL;
    leat_error err = {0};
    if (leat__pipeline_open(&p, &(leat__pipeline_opts){.ops = text}, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return p;
}

#endif
