/* SPDX-License-Identifier: Apache-2.0
 *
 * storm_tile: random corruption of valid tiles. Each must end in an error or in pixels, the same
 * for every instruction set, without touching other memory (the tile's padding ends at a guard
 * page). It must take at most twice as long as the valid tile, or as the median of valid tiles of
 * as many blocks: damage can turn an empty tile into an ordinary one.
 *
 *   storm_tile [CORRUPTIONS] [SEED] [--time]      --time: slowness fails, too; on a quiet machine
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/tile/tile_format.h"
#include "dsp/idct.h"
#include "probe/cpu.h"

enum { TILES_MAX = 4096, VARIANTS = 4, ROOM = 1 << 17, RETRIES = 100 };

typedef struct tile {
    uint8_t *bytes;
    uint32_t len;
    leat__tile_shape shape;
    bool small;
    double valid_ns[VARIANTS];
    double usual_ns[VARIANTS]; /* median of the tiles of this shape */
} tile;

static tile tiles[TILES_MAX];
static uint32_t tile_count;
static leat__tile_tables *tables;
static leat__tile_coefs *coefs[VARIANTS];
static leat__tile_entropy_dsp entropy[VARIANTS];
static leat__idct_dsp idct[VARIANTS];
static uint8_t *fence; /* the start of the guard page */
static leat__rng rng;
static uint32_t variants;

static void must(int rc)
{
    if (rc == 0) return;
    fprintf(stderr, "storm_tile: cannot make its tiles: %d\n", rc);
    exit(2);
}

/* ---- valid tiles of made-up pictures ---- */

static void paint(leat__planes *p, uint32_t kind)
{
    for (uint32_t c = 0; c < p->channels; c++)
        for (uint32_t y = 0; y < p->height; y++)
            for (uint32_t x = 0; x < p->width; x++) {
                uint32_t noise = (uint32_t)leat__rng_below(&rng, 1 + kind * 40);
                p->plane[c][y * p->stride + x] =
                    (uint8_t)((x * (c + 1) + y * 2) / 3 + ((x / 11 + y / 9) & 1) * 70 + noise);
            }
}

static void keep_tiles(const uint8_t *sample, size_t len)
{
    leat__tile_header h;
    must(leat__tile_header_parse(&h, sample, len, NULL));
    const uint8_t *at = sample + h.header_bytes;
    for (uint32_t i = 0; i < h.tiles_x * h.tiles_y && tile_count < TILES_MAX; i++) {
        tile *t = &tiles[tile_count++];
        t->len = h.lengths[2 * i] | (uint32_t)h.lengths[2 * i + 1] << 8;
        t->bytes = malloc(t->len + 1);
        t->small = (h.flags & LEAT__TILE_FLAG_SMALL) != 0;
        memcpy(t->bytes, at, t->len);
        leat__tile_shape_at(&h, i % h.tiles_x, i / h.tiles_x, &t->shape);
        at += t->len;
    }
}

static void make_pictures(leat__jpeg_coef_reader *reader, leat__tile_trainer *trainer,
                          leat__tile_encoder *encoder)
{
    static const uint32_t samplings[] = {420, 422, 444};
    leat__planes picture = {0};
    leat__buf jpeg, out;
    leat__buf_init(&jpeg, LEAT__MEM_MISC, 1 << 24);
    leat__buf_init(&out, LEAT__MEM_MISC, 1 << 24);
    leat__rng_init(&rng, 77, 0, 0, 0);
    for (uint32_t i = 0; i < 24; i++) {
        leat__encode_opts opts = {.quality = 50 + i * 2, .subsampling = samplings[i % 3]};
        leat__tile_encode_opts how = {.density = i & 1 ? LEAT__TILE_FAST : LEAT__TILE_SMALL};
        leat__jpeg_coefs c;
        leat__tile_kept kept;
        must(leat__planes_resize(&picture, 100 + i * 9, 90 + i * 3, i % 7 == 6 ? 1 : 3, NULL));
        paint(&picture, i % 4);
        leat__buf_clear(&jpeg);
        must(leat__codec_encode(LEAT__CODEC_JPEG, &picture, &opts, &jpeg, NULL));
        must(leat__buf_reserve(&jpeg, LEAT__CODEC_PADDING));
        const uint8_t *data = (const uint8_t *)jpeg.data;
        must(leat__jpeg_coef_read(reader, data, jpeg.len, NULL, &c, NULL));
        if (trainer != NULL) {
            must(leat__tile_trainer_add(trainer, &c, data, jpeg.len, NULL));
            continue;
        }
        must(leat__tile_encode(encoder, &c, data, jpeg.len, &how, &out, &kept, NULL));
        must(kept != LEAT__TILE_KEPT_NONE);
        keep_tiles((const uint8_t *)out.data, out.len);
    }
    leat__planes_reset(&picture);
    leat__buf_reset(&jpeg);
    leat__buf_reset(&out);
}

static void make_tiles(void)
{
    leat__jpeg_coef_reader *reader;
    leat__tile_trainer *trainer;
    leat__tile_encoder *encoder;
    leat__buf blob;
    leat__buf_init(&blob, LEAT__MEM_MISC, 1 << 20);
    must(leat__jpeg_coef_reader_open(&reader, NULL));
    must(leat__tile_trainer_open(&trainer, NULL));
    make_pictures(reader, trainer, NULL);
    must(leat__tile_trainer_finish(trainer, &blob, NULL));
    must(leat__tile_tables_open(&tables, blob.data, blob.len, NULL));
    must(leat__tile_encoder_open(&encoder, tables, NULL));
    make_pictures(reader, NULL, encoder);
    leat__tile_encoder_close(&encoder);
    leat__tile_trainer_close(&trainer);
    leat__jpeg_coef_reader_close(&reader);
    leat__buf_reset(&blob);
}

/* ---- decoding ---- */

static uint8_t pixels[VARIANTS][LEAT__TILE_BLOCKS_MAX * 64 + 1024];

/* Entropy and inverse DCT of all blocks. */
static leat__tile_damage decode(uint32_t v, const tile *t, const uint8_t *bytes, uint32_t len)
{
    static const uint16_t quant[64] __attribute__((aligned(64))) = {[0 ... 63] = 7};
    leat__tile_damage damage =
        entropy[v].decode(coefs[v], bytes, len, &t->shape, t->small ? &tables->codes : NULL);
    if (damage != LEAT__TILE_WHOLE) return damage;
    uint8_t *out = pixels[v];
    for (uint32_t b = 0; b < t->shape.blocks; b += 4, out += 256) {
        const leat__idct_area area = {b, LEAT_MIN(4, t->shape.blocks - b), 1, 4};
        idct[v].area(out, 32, coefs[v], &area, quant);
    }
    return damage;
}

static double time_decode(uint32_t v, const tile *t, const uint8_t *bytes, uint32_t len, int tries)
{
    double best = 1e18;
    for (int i = 0; i < tries; i++) {
        uint64_t start = leat__clock_ns();
        (void)decode(v, t, bytes, len);
        double ns = (double)(leat__clock_ns() - start);
        best = LEAT_MIN(best, ns);
    }
    return best;
}

static bool same_pixels(const tile *t, uint32_t a, uint32_t b)
{
    for (uint32_t block = 0; block < t->shape.blocks; block++)
        for (uint32_t y = 0; y < 8; y++) {
            size_t at = block / 4 * 256 + y * 32 + block % 4 * 8;
            if (memcmp(pixels[a] + at, pixels[b] + at, 8) != 0) return false;
        }
    return true;
}

static void open_variants(void)
{
    static const uint32_t flags[VARIANTS] = {
        LEAT__CPU_SSE42,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_SLOW_PDEP,
        LEAT__CPU_SSE42 | LEAT__CPU_AVX2 | LEAT__CPU_AVX512 | LEAT__CPU_AVX512ICL,
    };
    uint32_t have = leat__cpu_detected() | (uint32_t)LEAT__CPU_SLOW_PDEP;
    for (uint32_t v = 0; v < VARIANTS; v++) {
        if ((flags[v] & ~have) != 0) continue;
        leat__tile_entropy_init(&entropy[variants], flags[v]);
        leat__idct_init(&idct[variants], flags[v]);
        coefs[variants] = leat__alloc_aligned(LEAT__MEM_MISC, sizeof *coefs[0], 64);
        must(coefs[variants] == NULL);
        memset(coefs[variants], 0, sizeof *coefs[0]);
        variants++;
    }
    uint8_t *map = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(map == MAP_FAILED || mprotect(map + ROOM, 4096, PROT_NONE) != 0);
    fence = map + ROOM;
}

typedef struct tally {
    uint64_t refused, accepted, disagreed, slow;
    double worst, worst_of_own;
} tally;

/* One corrupted copy, placed before the guard page. */
static uint8_t *corrupt(const tile *t, uint32_t *len)
{
    *len = t->len;
    if (leat__rng_below(&rng, 16) == 0) *len = (uint32_t)leat__rng_below(&rng, t->len + 1);
    uint8_t *bytes = fence - LEAT__TILE_OVERREAD - *len;
    memcpy(bytes, t->bytes, *len);
    uint32_t hits = 1 + (uint32_t)leat__rng_below(&rng, 4);
    for (uint32_t i = 0; i<hits && * len> 0; i++) {
        bool head = leat__rng_below(&rng, 3) == 0;
        uint32_t at = (uint32_t)leat__rng_below(&rng, head ? LEAT_MIN(*len, 16u) : *len);
        if (leat__rng_below(&rng, 2)) bytes[at] ^= (uint8_t)(1u << leat__rng_below(&rng, 8));
        else bytes[at] = (uint8_t)leat__rng_u32(&rng);
    }
    return bytes;
}

static void one(tally *sum)
{
    tile *t = &tiles[leat__rng_below(&rng, tile_count)];
    uint32_t len;
    const uint8_t *bytes = corrupt(t, &len);
    leat__tile_damage first = LEAT__TILE_WHOLE;
    for (uint32_t v = 0; v < variants; v++) {
        uint64_t start = leat__clock_ns();
        leat__tile_damage damage = decode(v, t, bytes, len);
        double ns = (double)(leat__clock_ns() - start);
        if (v == 0) first = damage;
        sum->disagreed += damage != first || (damage == LEAT__TILE_WHOLE && !same_pixels(t, 0, v));
        /* A slow one is timed again: a busy machine has delays. */
        if (ns > 1.5 * t->valid_ns[v]) {
            double valid = time_decode(v, t, t->bytes, t->len, RETRIES);
            t->valid_ns[v] = LEAT_MAX(valid, t->valid_ns[v]);
            ns = time_decode(v, t, bytes, len, RETRIES);
        }
        double ratio = ns / LEAT_MAX(t->valid_ns[v], t->usual_ns[v]);
        sum->slow += ratio > 2;
        sum->worst = LEAT_MAX(sum->worst, ratio);
        sum->worst_of_own = LEAT_MAX(sum->worst_of_own, ns / t->valid_ns[v]);
    }
    sum->refused += first != LEAT__TILE_WHOLE;
    sum->accepted += first == LEAT__TILE_WHOLE;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void find_usual(uint32_t v)
{
    double same[TILES_MAX];
    for (uint32_t i = 0; i < tile_count; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < tile_count; k++)
            if (tiles[k].shape.blocks == tiles[i].shape.blocks && tiles[k].small == tiles[i].small)
                same[n++] = tiles[k].valid_ns[v];
        qsort(same, n, sizeof same[0], by_value);
        tiles[i].usual_ns[v] = same[n / 2];
    }
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    tally sum = {0};
    make_tiles();
    open_variants();
    for (uint32_t i = 0; i < tile_count; i++)
        for (uint32_t v = 0; v < variants; v++) {
            /* Valid tiles need their padding, too. */
            tile *t = &tiles[i];
            uint8_t *padded = calloc(1, t->len + LEAT__TILE_OVERREAD);
            must(padded == NULL);
            memcpy(padded, t->bytes, t->len);
            free(t->bytes);
            t->bytes = padded;
            must(decode(v, t, t->bytes, t->len) != LEAT__TILE_WHOLE);
            t->valid_ns[v] = time_decode(v, t, t->bytes, t->len, 5);
        }
    for (uint32_t v = 0; v < variants; v++) find_usual(v);
    leat__rng_init(&rng, seed, 0, 0, 0);
    for (uint64_t i = 0; i < n; i++) one(&sum);
    printf("{\"corruptions\": %llu, \"tiles\": %u, \"variants\": %u, \"refused\": %llu, "
           "\"accepted\": %llu, \"disagreed\": %llu, \"slower_than_2x\": %llu, "
           "\"worst_ratio\": %.2f, \"worst_ratio_to_own\": %.2f}\n",
           (unsigned long long)n, tile_count, variants, (unsigned long long)sum.refused,
           (unsigned long long)sum.accepted, (unsigned long long)sum.disagreed, (unsigned long long)sum.slow,
           sum.worst, sum.worst_of_own);
    bool judge_time = argc > 3 && strcmp(argv[3], "--time") == 0;
    return sum.disagreed > 0 || (judge_time && sum.slow > 0);
}
