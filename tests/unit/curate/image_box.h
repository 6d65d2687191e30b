/* SPDX-License-Identifier: Apache-2.0
 *
 * Images for tests of curation: smooth random scenes that can be edited and encoded.
 */
#ifndef LEAT_TEST_IMAGE_BOX_H
#define LEAT_TEST_IMAGE_BOX_H

#include "leat_test.h"

#include "ingest/sandbox.h"

#include <math.h>

#include "codec/codec.h"

typedef struct scene {
    uint32_t seed;
    float zoom, left, top; /* of the part that is shown: 1, 0, 0 for all */
    float gain, offset;    /* of brightness: 1, 0 */
    uint32_t border;       /* black pixels around it */
    bool mirror, grey;
} scene;

static const scene plain_scene = {.seed = 1, .zoom = 1, .gain = 1};

/* Brightness of component c at (x, y) in 0..1: a sum of waves and a few discs. */
static inline float scene_at(const scene *s, int c, float x, float y)
{
    uint32_t r = s->seed * 2654435761u + 12345;
    float v = 100;
    for (int i = 0; i < 6; i++) {
        r = r * 1664525u + 1013904223u;
        const float fx = (float)(r >> 28) - 7, fy = (float)(r >> 24 & 15) - 7, p = (float)(r >> 16 & 255);
        v += (6 + (float)(r >> 12 & 7)) * sinf(fx * x + fy * y + p + (float)(c * i));
    }
    for (int i = 0; i < 5; i++) {
        r = r * 1664525u + 1013904223u;
        const float cx = (float)(r >> 24) / 256, cy = (float)(r >> 16 & 255) / 256,
                    size = 0.05f + (float)(r >> 11 & 31) / 160;
        if ((x - cx) * (x - cx) + (y - cy) * (y - cy) < size * size)
            v += (float)((int)(r >> (2 + c) & 127) - 63);
    }
    return v;
}

/* Encodes and frees planes. */
static inline leat__buf encode_planes(leat__planes *p, leat__codec_id codec, uint32_t quality)
{
    leat__buf out;
    leat__encode_opts o = {.quality = quality};
    leat__buf_init(&out, LEAT__MEM_MISC, 1u << 26);
    assert_int_equal(leat__codec_encode(codec, p, &o, &out, NULL), 0);
    leat__planes_reset(p);
    const size_t len = out.len;
    /* readable bytes after the image */
    assert_int_equal(leat__buf_zeros(&out, LEAT__CODEC_PADDING), 0);
    out.len = len;
    return out;
}

/* An icon in one grey: its shape (disc, cross, triangle, ring) is in alpha only. */
static inline leat__buf encode_icon(uint32_t shape, uint8_t grey, uint32_t side)
{
    leat__planes p = {0};
    assert_int_equal(leat__planes_resize(&p, side, side, 4, NULL), 0);
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) {
            const float u = 2 * ((float)x + 0.5f) / (float)side - 1,
                        v = 2 * ((float)y + 0.5f) / (float)side - 1;
            const float r = u * u + v * v;
            const bool in[4] = {r < 0.6f, fabsf(u) < 0.2f || fabsf(v) < 0.2f, fabsf(u) < (v + 0.9f) / 2,
                                r > 0.3f && r < 0.9f};
            for (uint32_t c = 0; c < 3; c++) p.plane[c][y * p.stride + x] = grey;
            p.plane[3][y * p.stride + x] = in[shape] ? 255 : 0;
        }
    return encode_planes(&p, LEAT__CODEC_PNG, 0);
}

static inline leat__buf encode_scene(const scene *s, leat__codec_id codec, uint32_t w, uint32_t h,
                                     uint32_t quality)
{
    leat__planes p = {0};
    assert_int_equal(leat__planes_resize(&p, w, h, s->grey ? 1 : 3, NULL), 0);
    for (uint32_t c = 0; c < p.channels; c++)
        for (uint32_t y = 0; y < h; y++)
            for (uint32_t x = 0; x < w; x++) {
                const uint32_t b = s->border;
                float v = 0;
                if (x >= b && y >= b && x + b < w && y + b < h) {
                    float u = ((float)(x - b) + 0.5f) / (float)(w - 2 * b),
                          t = ((float)(y - b) + 0.5f) / (float)(h - 2 * b);
                    if (s->mirror) u = 1 - u;
                    v = s->gain * scene_at(s, (int)c, s->left + u * s->zoom, s->top + t * s->zoom) +
                        s->offset;
                }
                p.plane[c][y * p.stride + x] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
            }
    return encode_planes(&p, codec, quality);
}

static inline void put_scene(const char *name, const scene *s, uint32_t w, uint32_t h, uint32_t quality)
{
    leat__buf b = encode_scene(s, strstr(name, ".png") ? LEAT__CODEC_PNG : LEAT__CODEC_JPEG, w, h, quality);
    put_file(name, b.data, b.len);
    leat__buf_reset(&b);
}

/* photos/good00.jpg and so on, and one that is dark. */
static inline void put_photos(uint32_t count)
{
    scene s = plain_scene;
    for (uint32_t i = 0; i < count; i++) {
        char name[64];
        s.seed = i;
        snprintf(name, sizeof name, "photos/good%02u.jpg", i);
        put_scene(name, &s, 120, 100, 90);
    }
    s.gain = 0.1f;
    put_scene("photos/night.jpg", &s, 120, 100, 90);
}

#endif
