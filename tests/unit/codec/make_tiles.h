/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiled samples for the tests of codec/tile: tables trained on a few synthetic JPEGs, and an encoder ready
 * to use.
 */
#ifndef LEAT_TEST_MAKE_TILES_H
#define LEAT_TEST_MAKE_TILES_H

#include "codec/make_image.h"

#include "base/mem.h"
#include "codec/jpeg_coef.h"
#include "codec/tile/tile_format.h"

static leat__jpeg_coef_reader *reader;
static leat__tile_tables *tables;
static leat__tile_encoder *encoder;
static leat__decoder *decoder;

/* True for the kinds of make_image.h that can be tiled. */
static inline bool can_be_tiled(const jpeg_kind *kind)
{
    return (kind->file == JCS_YCbCr || kind->file == JCS_GRAYSCALE) && !kind->odd_chroma &&
           !(kind->h == 4 && kind->v == 2);
}

static inline void train_on_kinds(leat__tile_trainer *trainer)
{
    for (size_t k = 0; k < JPEG_KINDS; k++) {
        leat__jpeg_coefs coefs;
        bytes b = make_jpeg(&jpeg_kinds[k], 130, 70, 80, (uint32_t)k);
        assert_int_equal(leat__jpeg_coef_read(reader, b.data, b.len, NULL, &coefs, NULL), 0);
        assert_int_equal(leat__tile_trainer_add(trainer, &coefs, b.data, b.len, NULL), 0);
        free(b.data);
    }
}

static inline int open_tiles(void **state)
{
    leat__tile_trainer *trainer;
    leat__buf blob;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 20);
    assert_int_equal(leat__jpeg_coef_reader_open(&reader, NULL), 0);
    assert_int_equal(leat__decoder_open(&decoder, NULL), 0);
    assert_int_equal(leat__tile_trainer_open(&trainer, NULL), 0);
    train_on_kinds(trainer);
    assert_int_equal(leat__tile_trainer_finish(trainer, &blob, NULL), 0);
    assert_int_equal(leat__tile_tables_open(&tables, blob.data, blob.len, NULL), 0);
    assert_int_equal(leat__tile_encoder_open(&encoder, tables, NULL), 0);
    leat__tile_trainer_close(&trainer);
    leat__buf_reset(&blob);
    return 0;
}

static inline int close_tiles(void **state)
{
    leat__tile_encoder_close(&encoder);
    leat__tile_tables_close(&tables);
    leat__decoder_close(&decoder);
    leat__jpeg_coef_reader_close(&reader);
    assert_int_equal(leat__mem_blocks(), 0);
    return 0;
}

/* Returns the sample of a JPEG, or why there is none; the caller frees .data. */
static inline bytes tile_jpeg(bytes jpeg, leat__tile_density density, leat__tile_kept *kept)
{
    leat__jpeg_coefs coefs;
    leat__buf out;
    leat_error err = {0};
    leat__tile_encode_opts opts = {.density = density};
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 26);
    assert_int_equal(leat__jpeg_coef_read(reader, jpeg.data, jpeg.len, NULL, &coefs, &err), 0);
    if (leat__tile_encode(encoder, &coefs, jpeg.data, jpeg.len, &opts, &out, kept, &err) != 0)
        fail_msg("%s", err.message);
    bytes b = {calloc(1, out.len + LEAT__CODEC_PADDING), out.len};
    assert_non_null(b.data);
    if (out.len > 0) memcpy(b.data, out.data, out.len);
    leat__buf_reset(&out);
    return b;
}

static inline int decode_tiles(bytes sample, const leat__decode_request *request, leat__planes *out,
                               leat_error *err)
{
    leat__image_info info;
    int rc = leat__codec_probe(LEAT__CODEC_TILE, sample.data, sample.len, &info, err);
    if (rc != 0) return rc;
    return leat__codec_decode_planes(decoder, &info, sample.data, sample.len, request, out, err);
}

#endif
