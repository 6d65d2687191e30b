/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiled samples and tables against any bytes. The first byte chooses: 0 tables; 1 a sample
 * unchanged; 2 a sample whose lengths are repaired first, so that hostile tiles are reached; 3
 * one tile, of a shape given by the second byte. Samples and tiles are decoded by the portable
 * kernels and by the best of the machine: both must agree.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "codec/tile/tile_format.h"
#include "fuzz_codec.h"
#include "probe/cpu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static leat__tile_tables *tables;
static leat__decoder *decoder;

static void open_once(void)
{
    leat__tile_trainer *trainer;
    leat__buf blob;
    if (decoder != NULL) return;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 20);
    if (leat__decoder_open(&decoder, NULL) != 0 || leat__tile_trainer_open(&trainer, NULL) != 0 ||
        leat__tile_trainer_finish(trainer, &blob, NULL) != 0 ||
        leat__tile_tables_open(&tables, blob.data, blob.len, NULL) != 0)
        abort();
    leat__tile_trainer_close(&trainer);
    leat__buf_reset(&blob);
}

typedef struct digest {
    uint64_t value;
    uint32_t width, channels, rows;
} digest;

static int take_rows(void *ctx, uint32_t y, uint32_t count, const uint8_t *const plane[4], size_t stride)
{
    digest *d = ctx;
    if (y != d->rows) abort(); /* rows in order, each once */
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < d->channels; c++)
            d->value = leat__hash64(plane[c] + i * stride, d->width, d->value);
    d->rows += count;
    return 0;
}

static int decode_at(uint32_t flags, const uint8_t *data, size_t len, bool crop, digest *d)
{
    leat__image_info info;
    leat__decode_request request = {.tables = tables, .limits = {.max_pixels = 1 << 20}};
    leat__row_sink sink = {take_rows, d};
    int rc = leat__codec_probe(LEAT__CODEC_TILE, data, len, &info, NULL);
    if (rc != 0) return rc;
    if (crop) {
        request.x = info.width / 3;
        request.y = info.height / 4;
        request.width = LEAT_MAX(info.width / 2, 1);
        request.height = LEAT_MAX(info.height / 2, 1);
    }
    *d = (digest){.width = crop ? request.width : info.width, .channels = info.channels};
    leat__cpu_mask(flags);
    rc = leat__codec_decode(decoder, &info, data, len, &request, &sink, NULL);
    leat__cpu_mask(~0u);
    if (rc == 0 && d->rows != (crop ? request.height : info.height)) abort();
    return rc;
}

/* Components of all sizes, by three sets of kernels. */
static void try_parts(const uint8_t *data, size_t len)
{
    static const uint32_t sets[] = {LEAT__CPU_SSE42, LEAT__CPU_SSE42 | LEAT__CPU_AVX2, ~0u};
    leat__image_info info;
    leat__decode_request request = {.tables = tables, .limits = {.max_pixels = 1 << 20}};
    if (leat__codec_probe(LEAT__CODEC_TILE, data, len, &info, NULL) != 0 || info.chroma_h == 0) return;
    for (uint32_t shrink = 0; shrink < LEAT__IDCT_SHRINKS; shrink++) {
        uint64_t seen[LEAT_COUNT(sets)];
        int rc[LEAT_COUNT(sets)];
        for (size_t i = 0; i < LEAT_COUNT(sets); i++) {
            leat__cpu_mask(sets[i]);
            rc[i] = fuzz_parts(decoder, &info, data, len, request, shrink, data[len / 2], data[len / 3],
                               &seen[i]);
            leat__cpu_mask(~0u);
            if (rc[i] != rc[0] || seen[i] != seen[0]) abort();
        }
    }
}

static void try_sample(const uint8_t *data, size_t len)
{
    leat__buf file;
    try_parts(data, len);
    for (int crop = 0; crop < 2; crop++) {
        digest a, b, c;
        int ra = decode_at(LEAT__CPU_SSE42, data, len, crop != 0, &a);
        int rb = decode_at(~0u, data, len, crop != 0, &b);
        int rc = decode_at(LEAT__CPU_SSE42 | LEAT__CPU_AVX2, data, len, crop != 0, &c);
        if (ra != rb || ra != rc) abort();
        if (ra == 0 && (a.value != b.value || a.value != c.value)) abort();
    }
    leat__buf_init(&file, LEAT__MEM_MISC, 1 << 22);
    int rc = leat__tile_restore(data, len, tables, &file, NULL);
    if (rc != 0 && file.status == 0 && rc != LEAT_EDATA && rc != LEAT_EFORMAT) abort();
    leat__buf_reset(&file);
}

/* Sets fields that would only be refused to what the length of the input allows. */
static void repair(uint8_t *data, size_t len)
{
    if (len < LEAT__TILE_FIXED) return;
    memcpy(data, LEAT__TILE_MAGIC, 4);
    data[5] &= LEAT__TILE_FLAGS & ~LEAT__TILE_FLAG_DICTIONARY;
    data[4] = (data[5] & LEAT__TILE_FLAG_EXACT) && (data[5] & LEAT__TILE_FLAG_PROGRESSIVE) ? 2 : 1;
    data[6] %= LEAT__TILE_SAMPLINGS;
    data[7] = (uint8_t)(1 + data[7] % 8);
    data[9] = data[11] = 0; /* at most 255 pixels */
    data[8] |= 1;
    data[10] |= 1;
    data[12] = 1;
    data[13] = 0;
    data[14] = data[15] = 0;
    leat__store_u32(data + 16, leat__tile_tables_id(tables));
    leat__tile_header h = {.width = data[8], .height = data[10], .sampling = (leat__tile_sampling)data[6]};
    leat__tile_geometry(&h);
    size_t tiles = (size_t)h.tiles_x * h.tiles_y, at = LEAT__TILE_FIXED + 64;
    size_t header = (at + 2 * tiles + 15) / 16 * 16;
    if (len < header + LEAT__TILE_GUARD) return;
    size_t left = len - header - LEAT__TILE_GUARD, sum = 0;
    for (size_t i = 0; i < tiles; i++) {
        uint16_t n = leat__load_u16(data + at + 2 * i);
        n = (uint16_t)LEAT_MIN(n, left - sum);
        leat__store_u16(data + at + 2 * i, n);
        sum += n;
    }
    leat__store_u32(data + 20, (uint32_t)sum);
    leat__store_u32(data + 24, (uint32_t)(left - sum));
}

static void try_tile(const uint8_t *data, size_t len, uint8_t form)
{
    static leat__tile_coefs a, b;
    leat__tile_header h = {.width = 1u + (form & 7u) * 9u,
                           .height = 1u + (form >> 3 & 7u) * 9u,
                           .sampling = (leat__tile_sampling)((form >> 5) % 6)};
    leat__tile_shape shape;
    leat__tile_entropy_dsp ref, best;
    leat__tile_geometry(&h);
    leat__tile_shape_at(&h, 0, 0, &shape);
    leat__tile_entropy_init(&ref, LEAT__CPU_SSE42);
    leat__tile_entropy_init(&best, leat__cpu_flags());
    for (int small = 0; small < 2; small++) {
        const leat__tile_codes *codes = small ? &tables->codes : NULL;
        leat__tile_damage da = ref.decode(&a, data, len, &shape, codes);
        leat__tile_damage db = best.decode(&b, data, len, &shape, codes);
        if (da != db) abort();
        if (da == LEAT__TILE_WHOLE && (memcmp(a.mask, b.mask, shape.blocks * sizeof a.mask[0]) != 0 ||
                                       memcmp(a.dc, b.dc, shape.blocks * sizeof a.dc[0]) != 0))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_once();
    if (size < 2) return 0;
    size_t len = size - 2;
    /* Exactly the promised padding, so that sanitizers see a longer read. */
    uint8_t *copy = malloc(len + LEAT__CODEC_PADDING);
    if (copy == NULL) return 0;
    memcpy(copy, data + 2, len);
    memset(copy + len, 0xee, LEAT__CODEC_PADDING);
    if (data[0] % 4 == 0) {
        leat__tile_tables *t;
        if (leat__tile_tables_open(&t, copy, len, NULL) == 0) leat__tile_tables_close(&t);
    } else if (data[0] % 4 == 3) {
        try_tile(copy, LEAT_MIN(len, UINT16_MAX), data[1]);
    } else {
        if (data[0] % 4 == 2) repair(copy, len);
        try_sample(copy, len);
    }
    free(copy);
    return 0;
}
