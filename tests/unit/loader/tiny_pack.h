/* SPDX-License-Identifier: Apache-2.0
 *
 * Small packs for the loader's tests: procedural JPEGs of different sizes, a label, a caption of
 * different length, and, where asked, samples whose image is damaged.
 */
#ifndef LEAT_TESTS_TINY_PACK_H
#define LEAT_TESTS_TINY_PACK_H

#include "leat_test.h"

#include <unistd.h>

#include <leat/pack.h>

#include "base/buf.h"
#include "codec/codec.h"
#include "codec/jpeg_encode.h"

typedef struct tiny_opts {
    uint32_t samples, classes;
    uint32_t bad_every; /* every n-th sample has a broken image; 0 = none */
    bool captions;
} tiny_opts;

static inline void tiny_image(uint32_t i, leat__buf *out)
{
    uint32_t width = 40 + i % 37, height = 33 + i % 29;
    leat__planes image = {0};
    assert_ok(leat__planes_resize(&image, width, height, 3, NULL));
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t y = 0; y < height; y++) {
            for (uint32_t x = 0; x < width; x++)
                image.plane[c][y * image.stride + x] = (uint8_t)(x * (c + 2) + y * 3 + i * 17);
        }
    }
    leat__encode_opts opts = {.quality = 85};
    assert_ok(leat__jpeg_encode(&image, &opts, out, NULL));
    leat__planes_reset(&image);
}

static inline void tiny_pack(const char *path, const tiny_opts *t)
{
    const leat_field fields[] = {{.name = "image", .type = LEAT_FIELD_IMAGE},
                                 {.name = "label", .type = LEAT_FIELD_INT},
                                 {.name = "caption", .type = LEAT_FIELD_TEXT}};
    leat_packer_opts opts = LEAT_PACKER_OPTS_INIT;
    leat_packer_stats stats;
    leat_packer *p;
    leat__buf jpeg;

    opts.fields = fields;
    opts.field_count = t->captions ? 3 : 2;
    opts.page_bytes = 65536;
    opts.no_sync = 1;
    opts.replace = 1;
    assert_ok(leat_packer_open(&p, path, &opts, NULL));
    leat__buf_init(&jpeg, LEAT__MEM_MISC, 1 << 20);
    for (uint32_t i = 0; i < t->samples; i++) {
        char key[32], caption[64];
        leat_pack_value v[3] = {0};
        leat_pack_sample s = {.key = key, .values = v};
        leat__buf_clear(&jpeg);
        tiny_image(i, &jpeg);
        if (t->bad_every > 0 && i % t->bad_every == t->bad_every / 2)
            memset(jpeg.data + jpeg.len / 2, 0xff, jpeg.len / 2);
        v[0] = (leat_pack_value){.data = jpeg.data,
                                 .size = jpeg.len,
                                 .image = {.width = 40 + i % 37,
                                           .height = 33 + i % 29,
                                           .codec = LEAT__CODEC_JPEG,
                                           .channels = 3,
                                           .orientation = 1}};
        v[1].i = i * t->classes / t->samples;
        v[2].data = caption;
        v[2].size = (size_t)snprintf(caption, sizeof caption, "%.*s", (int)(i % 17), "a picture of water");
        s.key_size = (size_t)snprintf(key, sizeof key, "c%u/%u.jpg", (unsigned)v[1].i, i);
        assert_ok(leat_packer_append(p, &s, NULL));
    }
    leat__buf_reset(&jpeg);
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

#endif
