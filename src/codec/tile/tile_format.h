/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a tiled sample's header and its geometry (docs/tile-format.md). Private to
 * codec/tile, tests and the code that feeds tiles to a GPU: the header alone gives the position
 * of each tile and what it needs.
 */
#ifndef LEAT_CODEC_TILE_TILE_FORMAT_H
#define LEAT_CODEC_TILE_TILE_FORMAT_H

#include "codec/tile/tile.h"
#include "dsp/tile_pack.h"

#define LEAT__TILE_MAGIC "LTIL"
#define LEAT__TILE_VERSION 2 /* the newest: 2 if a progressive file is restored, else 1 */
#define LEAT__TILE_FIXED 36  /* bytes before the quantisation tables */
#define LEAT__TILE_GUARD 16  /* zero bytes after the last tile */
#define LEAT__TILE_ALIGN 16  /* tile data begins on a multiple of this in the sample */

/* Limit of a quantised coefficient, so that a DC difference fits 15 bits. */
#define LEAT__TILE_COEF_MAX 16383

enum {
    LEAT__TILE_FLAG_SMALL = 1,       /* bitmaps are Huffman-coded */
    LEAT__TILE_FLAG_EXACT = 2,       /* restores byte for byte */
    LEAT__TILE_FLAG_PROGRESSIVE = 4, /* the source was progressive */
    LEAT__TILE_FLAG_PAD_ZERO = 8,    /* scans end in zero bits, not ones */
    LEAT__TILE_FLAG_DICTIONARY = 16, /* the restore part needs the tables' dictionary */
    LEAT__TILE_FLAGS = 31
};

/* These values are stored in tiles: do not change them. */
typedef enum leat__tile_sampling {
    LEAT__TILE_GREY = 0,
    LEAT__TILE_444 = 1,
    LEAT__TILE_422 = 2,
    LEAT__TILE_420 = 3,
    LEAT__TILE_440 = 4,
    LEAT__TILE_411 = 5,
    LEAT__TILE_SAMPLINGS
} leat__tile_sampling;

typedef struct leat__tile_header {
    uint32_t width, height;
    uint32_t flags;
    leat__tile_sampling sampling;
    uint32_t orientation;
    uint32_t components;     /* 1 or 3 */
    uint32_t h, v;           /* luma samples per chroma sample; 1, 1 for grey */
    uint32_t mcus_x, mcus_y; /* an MCU is h * v luma blocks and one of each chroma */
    uint32_t tiles_x, tiles_y;
    uint32_t tables_id;
    uint32_t tile_bytes;                                    /* all tiles */
    uint32_t restore_bytes;                                 /* compressed, at the end of the sample */
    uint32_t skeleton_bytes;                                /* uncompressed size of the restore part */
    uint32_t file_bytes;                                    /* restored file */
    uint32_t header_bytes;                                  /* start of the tiles */
    _Alignas(64) uint16_t quant[LEAT__TILE_COMPONENTS][64]; /* row by row */
    const uint8_t *lengths; /* tiles_x * tiles_y little-endian u16: view into the data */
} leat__tile_header;

/* Sets components, h, v, mcus and tiles from width, height and sampling. */
void leat__tile_geometry(leat__tile_header *h);

/* Parses and checks everything except the tiles. `data` must outlive `h`. */
int leat__tile_header_parse(leat__tile_header *h, const uint8_t *data, size_t len,
                            leat_error *err) LEAT_MUST_CHECK;

/* Appends the header, with zeros for values known only later: the length of each tile, to be stored from
 * *lengths in `out` on, and the fields of leat__tile_header_totals. Sets header_bytes. */
int leat__tile_header_write(leat__tile_header *h, leat__buf *out, size_t *lengths) LEAT_MUST_CHECK;
/* Stores version, flags, tile_bytes and file_bytes in a header at `sample`. */
void leat__tile_header_totals(const leat__tile_header *h, uint8_t *sample);

/* Computes the blocks of tile (tx, ty). */
void leat__tile_shape_at(const leat__tile_header *h, uint32_t tx, uint32_t ty, leat__tile_shape *shape);

/* Blocks of component c across and down, padded to whole MCUs. */
static inline uint32_t leat__tile_grid_x(const leat__tile_header *h, uint32_t c)
{
    return h->mcus_x * (c == 0 ? h->h : 1);
}

static inline uint32_t leat__tile_grid_y(const leat__tile_header *h, uint32_t c)
{
    return h->mcus_y * (c == 0 ? h->v : 1);
}

/* Blocks of component c in a whole tile, across and down. */
static inline uint32_t leat__tile_blocks_x(const leat__tile_header *h, uint32_t c)
{
    return LEAT__TILE_PIXELS / 8 / (c == 0 ? 1 : h->h);
}

static inline uint32_t leat__tile_blocks_y(const leat__tile_header *h, uint32_t c)
{
    return LEAT__TILE_PIXELS / 8 / (c == 0 ? 1 : h->v);
}

/* ---- tables ---- */

#define LEAT__TILE_TABLES_MAGIC "LTTB"
#define LEAT__TILE_TABLES_VERSION 1
#define LEAT__TILE_DICTIONARY_MAX (256 * 1024)

/* Code lengths and contexts: the stored form of the Huffman tables. */
typedef struct leat__tile_lengths {
    uint8_t length[LEAT__TILE_TABLES][256]; /* the last two use LEAT__TILE_PAIRS symbols */
    uint8_t context[2][9][8];
} leat__tile_lengths;

static inline uint32_t leat__tile_table_symbols(uint32_t table)
{
    return table < LEAT__TILE_CONTEXTS ? 256 : LEAT__TILE_PAIRS;
}

struct leat__tile_tables {
    leat__tile_codes codes;
    leat__tile_lengths lengths;
    uint16_t put[LEAT__TILE_TABLES][256]; /* for writing: code, lowest bit first, << 4 | length */
    uint32_t id;
    uint8_t *dictionary; /* for the restore part */
    size_t dictionary_len;
    void *cdict, *ddict; /* prepared by zstd; NULL when there is none */
};

int leat__tile_tables_write(const leat__tile_lengths *lengths, const uint8_t *dictionary,
                            size_t dictionary_len, leat__buf *blob) LEAT_MUST_CHECK;

/* ---- analysis of coefficients, shared by trainer and encoder ---- */

/* Fills the header from the coefficients, or returns why the image cannot be tiled. */
leat__tile_kept leat__tile_header_from(leat__tile_header *h, const leat__jpeg_coefs *coefs);
leat__tile_kept leat__tile_take_apart(const leat__tile_pack_dsp *dsp, leat__tile_parts *parts,
                                      const leat__tile_header *h, const leat__jpeg_coefs *coefs, uint32_t tx,
                                      uint32_t ty);

/* Returns symbol i of the pairs of counts of a component, which has n = (count + 1) / 2 of them. */
static inline uint32_t leat__tile_pair_symbol(const uint8_t *groups, uint32_t count, uint32_t i)
{
    return groups[2 * i] + 9u * (2 * i + 1 < count ? groups[2 * i + 1] : 0u);
}

/* ---- the file around the coefficients ---- */

/* Writes the file without the entropy-coded bytes of its scans. */
int leat__tile_skeleton_of(const uint8_t *jpeg, size_t len, leat__buf *out) LEAT_MUST_CHECK;

/* Restores files; keeps its scratch between files. One per thread. */
typedef struct leat__tile_restorer leat__tile_restorer;

int leat__tile_restorer_open(leat__tile_restorer **r, leat_error *err) LEAT_MUST_CHECK;
void leat__tile_restorer_close(leat__tile_restorer **r);

/* Checks whether restoring gives this file; stops at the first difference. LEAT_EDATA when it gives no file.
 * `usual`, or NULL: coefficients of the file, whose scan is `usual`, if the tiles are known to have them. The
 * bytes of the scan are then known too (tile_restore.c explains why), and are not written. */
int leat__tile_rebuilds(leat__tile_restorer *r, const leat__tile_header *h, const uint8_t *data,
                        const leat__tile_tables *tables, const uint8_t *file, size_t len,
                        const leat__jpeg_coefs *usual, bool *same, leat_error *err) LEAT_MUST_CHECK;

#endif
