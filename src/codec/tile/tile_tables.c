/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of a pack: the Huffman codes of bitmaps, and the dictionary that shrinks the restore
 * part. Stored as code lengths and a map of contexts; rebuilt and checked when opened. Open
 * tables never change: any thread may read them.
 */
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"

enum {
    FIXED = 16,
    MAP_BYTES = 2 * 36,   /* for 1..8 used groups, one context per group */
    COMPRESSION_LEVEL = 5 /* level 12 takes twice the time to save 13 bytes per image */
};

static uint32_t lengths_bytes(uint32_t table)
{
    return (leat__tile_table_symbols(table) + 1) / 2;
}

static size_t blob_bytes_before_dictionary(void)
{
    size_t n = FIXED + MAP_BYTES;
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++) n += lengths_bytes(t);
    return n;
}

int leat__tile_tables_write(const leat__tile_lengths *lengths, const uint8_t *dictionary,
                            size_t dictionary_len, leat__buf *blob)
{
    uint8_t fixed[FIXED] = LEAT__TILE_TABLES_MAGIC;
    fixed[4] = LEAT__TILE_TABLES_VERSION;
    fixed[5] = LEAT__TILE_CODE_BITS;
    fixed[6] = LEAT__TILE_CONTEXTS;
    leat__store_u32(fixed + 8, (uint32_t)dictionary_len);
    leat__buf_append(blob, fixed, sizeof fixed);
    for (int kind = 0; kind < 2; kind++)
        for (int groups = 1; groups <= 8; groups++)
            leat__buf_append(blob, lengths->context[kind][groups], (size_t)groups);
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++)
        for (uint32_t i = 0; i < lengths_bytes(t); i++) {
            uint32_t low = lengths->length[t][2 * i], high = 0;
            if (2 * i + 1 < leat__tile_table_symbols(t)) high = lengths->length[t][2 * i + 1];
            leat__buf_putc(blob, (char)(low | high << 4));
        }
    leat__buf_append(blob, dictionary, dictionary_len);
    return leat__buf_status(blob);
}

static int bad(leat_error *err, size_t offset, const char *what)
{
    int rc = leat__fail(err, LEAT_EDATA, "tile tables: %s (at byte %zu)", what, offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return rc;
}

static int parse_lengths(leat__tile_lengths *lengths, const uint8_t *blob, leat_error *err)
{
    size_t at = FIXED;
    for (int kind = 0; kind < 2; kind++)
        for (int groups = 1; groups <= 8; groups++)
            for (int g = 0; g < groups; g++, at++) {
                if (blob[at] >= LEAT__TILE_CONTEXTS) return bad(err, at, "context out of range");
                lengths->context[kind][groups][g] = blob[at];
            }
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++) {
        uint32_t symbols = leat__tile_table_symbols(t), kraft = 0;
        for (uint32_t s = 0; s < symbols; s++) {
            uint32_t length = blob[at + s / 2] >> 4 * (s & 1) & 15;
            if (length < 1 || length > LEAT__TILE_CODE_BITS)
                return bad(err, at + s / 2, "code length out of range");
            lengths->length[t][s] = (uint8_t)length;
            kraft += 1u << (LEAT__TILE_CODE_BITS - length);
        }
        if (kraft != 1u << LEAT__TILE_CODE_BITS)
            return bad(err, at, "code lengths do not make a complete code");
        at += lengths_bytes(t);
    }
    return 0;
}

static uint32_t reverse_bits(uint32_t code, uint32_t length)
{
    uint32_t out = 0;
    for (uint32_t i = 0; i < length; i++) out |= (code >> i & 1) << (length - 1 - i);
    return out;
}

/* Builds canonical codes: shorter first, equal lengths in the order of symbols; stored with the first bit
 * lowest. The code is complete, so every entry is filled. */
static void build_codes(leat__tile_tables *t)
{
    memcpy(t->codes.context, t->lengths.context, sizeof t->codes.context);
    for (uint32_t k = 0; k < LEAT__TILE_TABLES; k++) {
        uint32_t symbols = leat__tile_table_symbols(k), code = 0;
        for (uint32_t length = 1; length <= LEAT__TILE_CODE_BITS; length++, code <<= 1)
            for (uint32_t s = 0; s < symbols; s++) {
                if (t->lengths.length[k][s] != length) continue;
                uint32_t bits = reverse_bits(code++, length);
                t->put[k][s] = (uint16_t)(bits << 4 | length);
                for (uint32_t i = bits; i < 1u << LEAT__TILE_CODE_BITS; i += 1u << length)
                    t->codes.entry[k][i] = (uint16_t)(length | s << 8);
            }
    }
}

static int open_dictionary(leat__tile_tables *t, const uint8_t *bytes, size_t len, leat_error *err)
{
    if (len == 0) return 0;
    t->dictionary = leat__alloc(LEAT__MEM_CODEC, len);
    if (t->dictionary == NULL) return leat__fail_nomem(err, len, "tile dictionary");
    memcpy(t->dictionary, bytes, len);
    t->dictionary_len = len;
    t->cdict = ZSTD_createCDict(t->dictionary, len, COMPRESSION_LEVEL);
    t->ddict = ZSTD_createDDict(t->dictionary, len);
    if (t->cdict == NULL || t->ddict == NULL)
        return bad(err, blob_bytes_before_dictionary(), "invalid dictionary");
    return 0;
}

int leat__tile_tables_open(leat__tile_tables **out, const void *blob, size_t len, leat_error *err)
{
    const uint8_t *bytes = blob;
    const size_t before = blob_bytes_before_dictionary();
    int rc = 0;
    *out = NULL;
    if (len < before || memcmp(bytes, LEAT__TILE_TABLES_MAGIC, 4) != 0) return bad(err, 0, "no tables");
    if (bytes[4] != LEAT__TILE_TABLES_VERSION)
        return leat__fail(err, LEAT_EFORMAT, "tile tables: version %u is not known", bytes[4]);
    if (bytes[5] != LEAT__TILE_CODE_BITS || bytes[6] != LEAT__TILE_CONTEXTS || bytes[7] != 0)
        return bad(err, 5, "unknown sizes");
    if (leat__load_u32(bytes + 12) != 0) return bad(err, 12, "reserved bytes are not 0");
    uint32_t dictionary = leat__load_u32(bytes + 8);
    if (dictionary > LEAT__TILE_DICTIONARY_MAX || dictionary != len - before)
        return bad(err, 8, "invalid length of the dictionary");

    leat__tile_tables *t = leat__alloc_aligned(LEAT__MEM_CODEC, sizeof *t, 64);
    if (t == NULL) return leat__fail_nomem(err, sizeof *t, "tile tables");
    memset(t, 0, sizeof *t);
    LEAT_GO(rc, out, parse_lengths(&t->lengths, bytes, err));
    build_codes(t);
    LEAT_GO(rc, out, open_dictionary(t, bytes + before, dictionary, err));
    t->id = (uint32_t)leat__hash64(blob, len, 0);
    if (t->id == 0) t->id = 1; /* 0 means that no tables are needed */
    *out = t;
    t = NULL;
out:
    leat__tile_tables_close(&t);
    return rc;
}

void leat__tile_tables_close(leat__tile_tables **t)
{
    if (*t == NULL) return;
    ZSTD_freeCDict((*t)->cdict);
    ZSTD_freeDDict((*t)->ddict);
    leat__free((*t)->dictionary);
    leat__free(*t);
    *t = NULL;
}

uint32_t leat__tile_tables_id(const leat__tile_tables *t)
{
    return t->id;
}
