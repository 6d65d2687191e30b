/* SPDX-License-Identifier: Apache-2.0
 *
 * leat's tiles (docs/tile-format.md): the quantised coefficients of a JPEG, coded again without loss in
 * squares of 64x64 pixels that decode independently and fast. Decoding goes through codec/codec.h with
 * LEAT__CODEC_TILE. This header has the rest: tables, training, encoding, restoring the original file.
 *
 *   packing   trainer_open, trainer_add for a sample of the images, trainer_finish -> the
 *             tables as bytes, stored once per pack; tables_open; then per thread an encoder
 *             and per image encode
 *   loading   tables_open once (shared by all threads), request.tables = tables
 *   export    restore
 */
#ifndef LEAT_CODEC_TILE_TILE_H
#define LEAT_CODEC_TILE_TILE_H

#include "base/buf.h"
#include "codec/codec.h"
#include "codec/jpeg_coef.h"

/* ---- tables of a pack: immutable once open, any thread ---- */

typedef struct leat__tile_tables leat__tile_tables;

/* Opens tables from `blob`, the output of trainer_finish, which need not stay. LEAT_EDATA: damaged.
 * LEAT_EFORMAT: from a later version. */
int leat__tile_tables_open(leat__tile_tables **t, const void *blob, size_t len,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__tile_tables_close(leat__tile_tables **t);
uint32_t leat__tile_tables_id(const leat__tile_tables *t); /* every image names its tables */

/* ---- training: one thread per trainer ---- */

typedef struct leat__tile_trainer leat__tile_trainer;

int leat__tile_trainer_open(leat__tile_trainer **t, leat_error *err) LEAT_MUST_CHECK;
void leat__tile_trainer_close(leat__tile_trainer **t);

/* Counts the symbols of one image; `jpeg` is the file of the coefficients. Images that cannot be tiled are
 * skipped. A tenth of a data set, or some hundred images, is enough. */
int leat__tile_trainer_add(leat__tile_trainer *t, const leat__jpeg_coefs *coefs, const uint8_t *jpeg,
                           size_t len, leat_error *err) LEAT_MUST_CHECK;
uint32_t leat__tile_trainer_images(const leat__tile_trainer *t); /* counted so far */

/* Adds the counts of `part` to those of `t`. Many threads may count images if their counts are joined in the
 * order of the images. */
int leat__tile_trainer_join(leat__tile_trainer *t, const leat__tile_trainer *part,
                            leat_error *err) LEAT_MUST_CHECK;

/* Appends the tables to `blob`. Also works without any image: then all symbols count as equally frequent. The
 * same images in the same order give the same bytes. */
int leat__tile_trainer_finish(leat__tile_trainer *t, leat__buf *blob, leat_error *err) LEAT_MUST_CHECK;

/* ---- encoding: one encoder per thread ---- */

typedef enum leat__tile_density {
    LEAT__TILE_SMALL = 0, /* Huffman-coded bitmaps: as small as the JPEG */
    LEAT__TILE_FAST = 1   /* plain bitmaps: 10 % larger, 25 % faster */
} leat__tile_density;

/* Why an image is not tiled: id, name in JSON, text. */
#define LEAT__TILE_KEPT_MAP(X)                                                                               \
    X(NONE, "tiled", "tiled")                                                                                \
    X(COLOUR, "colour", "colour space is not grey or YCbCr")                                                 \
    X(SAMPLING, "sampling", "unusual chroma sampling")                                                       \
    X(CODING, "coding", "arithmetic coding")                                                                 \
    X(RANGE, "range", "coefficients that no encoder makes")                                                  \
    X(SIZE, "size", "too large")                                                                             \
    X(PIXELS, "pixels", "decoded pixels differ from libjpeg-turbo's")                                        \
    X(RESTORE, "restore", "the restored file differs")                                                       \
    X(DAMAGED, "damaged", "damaged or truncated file")

typedef enum leat__tile_kept {
#define LEAT__TILE_KEPT_ENUM(id, name, text) LEAT__TILE_KEPT_##id,
    LEAT__TILE_KEPT_MAP(LEAT__TILE_KEPT_ENUM)
#undef LEAT__TILE_KEPT_ENUM
        LEAT__TILE_KEPT_COUNT
} leat__tile_kept;

const char *leat__tile_kept_name(leat__tile_kept kept); /* "sampling" */
const char *leat__tile_kept_text(leat__tile_kept kept);

typedef struct leat__tile_encode_opts {
    leat__tile_density density;
    bool trust; /* if the file is restored byte for byte, do not compare pixels as well */
} leat__tile_encode_opts;

typedef struct leat__tile_encoder leat__tile_encoder;

int leat__tile_encoder_open(leat__tile_encoder **e, const leat__tile_tables *tables,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__tile_encoder_close(leat__tile_encoder **e);

/* Tiles one image and replaces the content of `out`, whose maximum should be well above `len`. First proves
 * that the tiles decode to all of libjpeg-turbo's pixels, and that the file can be restored. With `trust`, a
 * file restored byte for byte is proof enough, because the tiles then have its coefficients. If coefs->usual
 * is set, the scan is not written for the proof: the coefficients, which the tiles were checked to restore,
 * determine it.
 *
 * Returns 0 and *kept = NONE with the sample in `out`; or 0 and the reason in *kept with `out` empty: the
 * caller then stores the file as it is. DAMAGED is never returned: it is for callers that could not read the
 * coefficients. Negative codes mean that nothing is known about the image (out of memory, `out` full).
 *
 * LEAT__CODEC_PADDING bytes follow `jpeg`. The reader coefs->pixels must have read no other file since. */
int leat__tile_encode(leat__tile_encoder *e, const leat__jpeg_coefs *coefs, const uint8_t *jpeg, size_t len,
                      const leat__tile_encode_opts *opts, leat__buf *out, leat__tile_kept *kept,
                      leat_error *err) LEAT_MUST_CHECK;

/* ---- inspecting and restoring ---- */

typedef struct leat__tile_facts {
    leat__tile_density density;
    bool exact;       /* restore gives the original file, byte for byte; false only in packs of old
                         writers, if the original was progressive */
    bool progressive; /* the original was progressive */
    uint32_t tiles;
    uint32_t tables_id;                               /* 0: needs no tables */
    uint64_t file_bytes;                              /* of the restored file */
    uint64_t tile_bytes, header_bytes, restore_bytes; /* parts of the sample */
} leat__tile_facts;

int leat__tile_describe(const uint8_t *data, size_t len, leat__tile_facts *facts,
                        leat_error *err) LEAT_MUST_CHECK;

/* Appends the original file to `out`. If facts.exact is false, appends a baseline JPEG with the same
 * coefficients, and so the same pixels. `tables` may be NULL when facts.tables_id is 0. */
int leat__tile_restore(const uint8_t *data, size_t len, const leat__tile_tables *tables, leat__buf *out,
                       leat_error *err) LEAT_MUST_CHECK;

#endif
