/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of the tile codec: entropy, packing, inverse DCT, upsampling, colour. Every variant
 * must equal the portable C bit for bit, on valid tiles, on extreme coefficients and on garbage.
 */
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "check.h"
#include "dsp/idct.h"
#include "dsp/tile_entropy.h"
#include "dsp/tile_pack.h"
#include "dsp/ycc.h"

/* ---- tiles from a small encoder of this test ---- */

typedef struct bits {
    uint8_t *at;
    uint64_t acc;
    uint32_t n;
} bits;

static void put(bits *b, uint32_t value, uint32_t n)
{
    b->acc |= (uint64_t)value << b->n;
    b->n += n;
    for (; b->n >= 8; b->n -= 8, b->acc >>= 8) *b->at++ = (uint8_t)b->acc;
}

static void flush(bits *b)
{
    if (b->n > 0) *b->at++ = (uint8_t)b->acc;
    b->acc = b->n = 0;
}

/* Flat codes: every symbol of a bitmap byte has 8 bits; pairs have 6 or 7. */
static void flat_codes(leat__tile_codes *codes)
{
    memset(codes, 0, sizeof *codes);
    for (uint32_t t = 0; t < LEAT__TILE_TABLES; t++)
        for (uint32_t i = 0; i < 1u << LEAT__TILE_CODE_BITS; i++) {
            uint32_t symbol = i & 255, length = 8;
            if (t >= LEAT__TILE_CONTEXTS) { /* 47 symbols of 6 bits, 34 of 7 */
                length = (i & 63) < 47 ? 6 : 7;
                symbol = length == 6 ? i & 63 : 47 + 2 * ((i & 63) - 47) + (i >> 6 & 1);
            }
            codes->entry[t][i] = (uint16_t)(length | symbol << 8);
        }
    for (uint32_t kind = 0; kind < 2; kind++)
        for (uint32_t g = 0; g < 9; g++)
            for (uint32_t k = 0; k < 8; k++)
                codes->context[kind][g][k] = (uint8_t)((kind * 7 + g + k) % LEAT__TILE_CONTEXTS);
}

static void put_pair(bits *b, uint32_t symbol)
{
    if (symbol < 47) put(b, symbol, 6);
    else put(b, (47 + (symbol - 47) / 2) | (symbol - 47) % 2 << 6, 7);
}

static void random_shape(check *c, leat__tile_shape *s)
{
    static const uint8_t factors[6][3] = {{1, 1, 1}, {3, 1, 1}, {3, 2, 1}, {3, 2, 2}, {3, 1, 2}, {3, 4, 1}};
    const uint8_t *f = factors[check_below(c, 6)];
    uint32_t mcus_x = 1 + check_below(c, 8u / f[1]), mcus_y = 1 + check_below(c, 8u / f[2]);
    if (check_below(c, 2)) {
        mcus_x = 8u / f[1];
        mcus_y = 8u / f[2];
    }
    s->components = f[0];
    s->blocks = 0;
    for (uint32_t k = 0; k < s->components; k++) {
        s->wide[k] = mcus_x * (k == 0 ? f[1] : 1);
        s->high[k] = mcus_y * (k == 0 ? f[2] : 1);
        s->count[k] = s->wide[k] * s->high[k];
        s->blocks += s->count[k];
    }
}

typedef struct tile {
    leat__tile_shape shape;
    uint64_t mask[LEAT__TILE_BLOCKS_MAX];
    int16_t value[LEAT__TILE_VALUES_MAX];
    uint32_t values;
} tile;

/* Masks and values: at most `most` bits per value, some blocks full, some empty. */
static void random_tile(check *c, tile *t)
{
    static const uint8_t mosts[] = {1, 2, 4, 7, 8, 9, 12, 15};
    uint32_t most = mosts[check_below(c, sizeof mosts)], thin = check_below(c, 5);
    random_shape(c, &t->shape);
    t->values = 0;
    for (uint32_t b = 0; b < t->shape.blocks; b++) {
        uint64_t mask = leat__rng_u64(&c->rng);
        for (uint32_t i = 0; i < thin; i++) mask &= leat__rng_u64(&c->rng);
        uint32_t kind = check_below(c, 12);
        if (kind == 0) mask = 0;
        if (kind == 1) mask = 1;
        if (kind == 2) mask = ~UINT64_C(0);
        if (kind >= 3 && kind < 7) mask &= LEAT__TILE_CORNER;
        if (kind == 7) mask &= 0xffffff;
        t->mask[b] = mask;
        for (; mask != 0; mask &= mask - 1) {
            uint32_t size = 1 + check_below(c, check_below(c, 4) ? (most + 1) / 2 : most);
            int32_t v = (int32_t)((1u << (size - 1)) | check_below(c, 1u << (size - 1)));
            t->value[t->values++] = (int16_t)(check_below(c, 2) ? v : -v);
        }
    }
}

static void put_streams(bits *b, const tile *t, const leat__tile_codes *codes)
{
    uint8_t symbol[LEAT__TILE_BLOCKS_MAX * 8], groups[LEAT__TILE_BLOCKS_MAX + 1] = {0};
    uint8_t pair[LEAT__TILE_BLOCKS_MAX], *header = b->at;
    uint32_t n = 0, pairs = 0, block = 0;
    for (uint32_t k = 0; k < t->shape.components; k++) {
        for (uint32_t i = 0; i < t->shape.count[k]; i++, block++) {
            uint64_t m = t->mask[block];
            groups[block] = m == 0 ? 0 : (uint8_t)((71 - __builtin_clzll(m)) / 8);
            for (uint32_t g = 0; g < groups[block]; g++) symbol[n++] = (uint8_t)(m >> 8 * g);
        }
        const uint8_t *g = groups + block - t->shape.count[k];
        for (uint32_t i = 0; i < t->shape.count[k]; i += 2)
            pair[pairs++] = (uint8_t)(g[i] + 9 * (i + 1 < t->shape.count[k] ? g[i + 1] : 0));
    }
    b->at += 6;
    for (uint32_t s = 0; s < 4; s++) {
        uint8_t *start = b->at;
        for (uint32_t i = s; i < pairs; i += 4) put_pair(b, pair[i]);
        for (uint32_t i = s; i < n; i += 4) put(b, symbol[i], 8);
        flush(b);
        uint16_t len = (uint16_t)(b->at - start);
        if (s < 3) memcpy(header + 2 * s, &len, 2);
    }
    (void)codes;
}

static size_t encode_tile(uint8_t *out, const tile *t, const leat__tile_codes *codes)
{
    bits b = {.at = out};
    if (codes != NULL) {
        put_streams(&b, t, codes);
    } else {
        uint32_t n[LEAT__TILE_BLOCKS_MAX];
        for (uint32_t i = 0; i < t->shape.blocks; i++) {
            n[i] = t->mask[i] == 0 ? 1 : (uint32_t)(67 - __builtin_clzll(t->mask[i])) / 4;
            put(&b, n[i] - 1, 4);
        }
        flush(&b);
        for (uint32_t i = 0; i < t->shape.blocks; i++)
            for (uint32_t k = 0; k < n[i]; k++) put(&b, t->mask[i] >> 4 * k & 15, 4);
        flush(&b);
    }
    uint32_t left = t->values;
    for (uint32_t l = 1; left > 0; l++) {
        left = 0;
        for (uint32_t i = 0; i < t->values; i++) {
            uint32_t size = 32 - (uint32_t)__builtin_clz((uint32_t)abs(t->value[i]));
            if (size < l) continue;
            put(&b, size > l, 1);
            left += size > l;
        }
        flush(&b);
    }
    for (uint32_t i = 0; i < t->values; i++) {
        uint32_t size = 32 - (uint32_t)__builtin_clz((uint32_t)abs(t->value[i]));
        int32_t v = t->value[i];
        put(&b, (uint32_t)(v < 0 ? v + (1 << size) - 1 : v), size);
    }
    flush(&b);
    return (size_t)(b.at - out);
}

/* ---- entropy ---- */

static leat__tile_codes codes;
static tile one_tile;
static uint8_t encoded[1 << 17];

static leat__tile_coefs *coefs_alloc(check *c)
{
    size_t size = (sizeof(leat__tile_coefs) + 63) / 64 * 64;
    leat__tile_coefs *out = (leat__tile_coefs *)(void *)check_alloc(c, size);
    memset(out, 0, sizeof *out);
    return out;
}

static bool same_coefs(const leat__tile_coefs *a, const leat__tile_coefs *b, const leat__tile_shape *s)
{
    uint32_t n = s->blocks + LEAT__TILE_BLOCKS_PAD, values = 0;
    if (memcmp(a->mask, b->mask, n * sizeof a->mask[0]) != 0 ||
        memcmp(a->first, b->first, n * sizeof a->first[0]) != 0 ||
        memcmp(a->dc, b->dc, n * sizeof a->dc[0]) != 0)
        return false;
    for (uint32_t i = 0; i < s->blocks; i++) values += (uint32_t)__builtin_popcountll(a->mask[i]);
    return memcmp(a->value, b->value, values * sizeof a->value[0]) == 0;
}

static void check_entropy(check *c)
{
    leat__tile_entropy_dsp ref, opt;
    leat__tile_entropy_init(&ref, CHECK_REFERENCE);
    leat__tile_entropy_init(&opt, c->flags);
    leat__tile_coefs *a = coefs_alloc(c), *b = coefs_alloc(c);
    uint8_t *in = check_alloc(c, 65536 + LEAT__TILE_OVERREAD);
    flat_codes(&codes);
    for (int round = 0; round < 600; round++) {
        const leat__tile_codes *use = round & 1 ? &codes : NULL;
        random_tile(c, &one_tile);
        size_t len = encode_tile(encoded, &one_tile, use);
        /* The tile ends exactly LEAT__TILE_OVERREAD bytes before the guard page. */
        uint8_t *tile_bytes = in + 65536 - len;
        memcpy(tile_bytes, encoded, len);
        leat__tile_damage da = ref.decode(a, tile_bytes, len, &one_tile.shape, use);
        leat__tile_damage db = opt.decode(b, tile_bytes, len, &one_tile.shape, use);
        CHECK(c, da == LEAT__TILE_WHOLE && db == LEAT__TILE_WHOLE, "round %d: %d %d", round, da, db);
        CHECK(c, memcmp(a->value, one_tile.value, one_tile.values * 2) == 0,
              "round %d: reference is not what was encoded", round);
        CHECK(c, same_coefs(a, b, &one_tile.shape), "round %d: coefficients", round);
        for (int k = 0; k < 6; k++) { /* the same result for damage */
            uint32_t hits = 1 + check_below(c, 4);
            memcpy(tile_bytes, encoded, len);
            for (uint32_t i = 0; i < hits && len > 0; i++) {
                uint32_t at = check_below(c, 3) ? check_below(c, (uint32_t)len)
                                                : check_below(c, len < 8 ? (uint32_t)len : 8);
                tile_bytes[at] = (uint8_t)leat__rng_u32(&c->rng);
            }
            size_t cut = check_below(c, 3) ? len : check_below(c, (uint32_t)len + 1);
            uint8_t *moved = tile_bytes + (len - cut);
            memmove(moved, tile_bytes, cut);
            da = ref.decode(a, moved, cut, &one_tile.shape, use);
            db = opt.decode(b, moved, cut, &one_tile.shape, use);
            CHECK(c, da == db, "round %d, damage: %d, not %d", round, db, da);
            if (da == LEAT__TILE_WHOLE && db == LEAT__TILE_WHOLE)
                CHECK(c, same_coefs(a, b, &one_tile.shape), "round %d: damaged", round);
        }
    }
}

/* Roughly the tile of a photograph: 4:2:0, a dozen small values per block. */
static void typical_tile(check *c)
{
    one_tile.shape = (leat__tile_shape){3, {8, 4, 4}, {8, 4, 4}, {64, 16, 16}, 96};
    one_tile.values = 0;
    for (uint32_t b = 0; b < 96; b++) {
        uint64_t mask = leat__rng_u64(&c->rng) & leat__rng_u64(&c->rng);
        mask &= b % 3 == 0 ? LEAT__TILE_CORNER : UINT64_C(0xffffffffff);
        one_tile.mask[b] = mask | 1;
        for (mask |= 1; mask != 0; mask &= mask - 1) {
            int32_t v = 1 + (int32_t)check_below(c, check_below(c, 4) ? 2 : 12);
            one_tile.value[one_tile.values++] = (int16_t)(check_below(c, 2) ? v : -v);
        }
    }
}

static void time_entropy(check *c)
{
    leat__tile_entropy_dsp dsp;
    leat__tile_entropy_init(&dsp, c->flags);
    leat__tile_coefs *coefs = coefs_alloc(c);
    flat_codes(&codes);
    typical_tile(c);
    size_t len = encode_tile(encoded, &one_tile, &codes);
    double bytes = (double)len + one_tile.values * 2.0;
    CHECK_TIME(c, "entropy, small", bytes, dsp.decode(coefs, encoded, len, &one_tile.shape, &codes));
    len = encode_tile(encoded, &one_tile, NULL);
    bytes = (double)len + one_tile.values * 2.0;
    CHECK_TIME(c, "entropy, fast", bytes, dsp.decode(coefs, encoded, len, &one_tile.shape, NULL));
}

/* ---- packing ---- */

/* Plain blocks: zeros, a few small ones, or any values. */
static void random_plain(check *c, int16_t *blocks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = check_below(c, 6), share = check_below(c, 64);
        for (uint32_t k = 0; k < 64; k++) {
            int16_t v = (int16_t)leat__rng_u32(&c->rng);
            if (kind < 4) v = (int16_t)(v >> (8 + kind));
            if (kind == 5) v = (int16_t)(v & 1 ? INT16_MIN : INT16_MAX);
            blocks[64 * i + k] = check_below(c, 64) < share ? v : 0;
        }
    }
}

static bool same_parts(const leat__tile_parts *a, const leat__tile_parts *b, uint32_t blocks)
{
    return a->values == b->values && memcmp(a->mask, b->mask, blocks * 8) == 0 &&
           memcmp(a->groups, b->groups, blocks) == 0 && memcmp(a->value, b->value, a->values * 2) == 0;
}

static leat__tile_parts *parts_alloc(check *c)
{
    return (leat__tile_parts *)(void *)check_alloc(c, (sizeof(leat__tile_parts) + 15) / 16 * 16);
}

static void check_take(check *c, const leat__tile_pack_dsp *ref, const leat__tile_pack_dsp *opt)
{
    leat__tile_parts *a = parts_alloc(c), *b = parts_alloc(c);
    int16_t *room = (int16_t *)(void *)check_alloc(c, 8 * 128);
    for (int round = 0; round < 400; round++) {
        uint32_t done = 0;
        a->values = b->values = 0;
        while (done < LEAT__TILE_BLOCKS_MAX) {
            uint32_t count = 1 + check_below(c, 8);
            count = count < LEAT__TILE_BLOCKS_MAX - done ? count : LEAT__TILE_BLOCKS_MAX - done;
            int16_t *blocks = room + 64 * (8 - count), guess = (int16_t)leat__rng_u32(&c->rng);
            random_plain(c, blocks, count);
            uint32_t x = ref->take(a, done, blocks, count, guess);
            uint32_t y = opt->take(b, done, blocks, count, guess);
            CHECK(c, x == y, "round %d: magnitudes %x, not %x", round, y, x);
            done += count;
        }
        CHECK(c, same_parts(a, b, LEAT__TILE_BLOCKS_MAX), "round %d: parts", round);
    }
}

/* The output equals that of the test's own encoder after the bitmaps. */
static void check_put_values(check *c, const leat__tile_pack_dsp *opt)
{
    leat__tile_parts *parts = parts_alloc(c);
    uint8_t *room = check_alloc(c, 65536 + LEAT__TILE_OVERWRITE);
    for (int round = 0; round < 400; round++) {
        random_tile(c, &one_tile);
        size_t len = encode_tile(encoded, &one_tile, NULL), nibbles = 0;
        for (uint32_t i = 0; i < one_tile.shape.blocks; i++) {
            uint64_t m = one_tile.mask[i];
            nibbles += m == 0 ? 1 : (uint32_t)(67 - __builtin_clzll(m)) / 4;
        }
        size_t bitmaps = (one_tile.shape.blocks + 1) / 2 + (nibbles + 1) / 2;
        uint8_t *out = room + 65536 - (len - bitmaps);
        memcpy(parts->value, one_tile.value, one_tile.values * 2);
        parts->values = one_tile.values;
        const uint8_t *end = opt->put_values(out, parts);
        CHECK(c, (size_t)(end - out) == len - bitmaps, "round %d: length", round);
        CHECK(c, memcmp(out, encoded + bitmaps, len - bitmaps) == 0, "round %d: values", round);
    }
}

static bool same_scan_block(const leat__scan_block *a, const leat__scan_block *b)
{
    if (a->ac != b->ac || a->dc != b->dc || a->plain != b->plain || a->symbols != b->symbols) return false;
    if (!a->plain)
        return memcmp(a->symbol, b->symbol, a->symbols + 1u) == 0 &&
               memcmp(a->extra, b->extra, (a->symbols + 1u) * 2) == 0;
    for (uint64_t mask = a->ac; mask != 0; mask &= mask - 1)
        if (a->at[__builtin_ctzll(mask)] != b->at[__builtin_ctzll(mask)]) return false;
    return true;
}

static void check_order(check *c, const leat__tile_pack_dsp *ref, const leat__tile_pack_dsp *opt)
{
    leat__tile_entropy_dsp entropy;
    leat__tile_coefs *coefs = coefs_alloc(c);
    leat__scan_block *a = (void *)check_alloc(c, LEAT__TILE_BLOCKS_MAX * sizeof *a);
    leat__scan_block *b = (void *)check_alloc(c, LEAT__TILE_BLOCKS_MAX * sizeof *b);
    leat__tile_entropy_init(&entropy, CHECK_REFERENCE);
    for (int round = 0; round < 400; round++) {
        random_tile(c, &one_tile);
        size_t len = encode_tile(encoded, &one_tile, NULL);
        uint32_t n = one_tile.shape.blocks, first = check_below(c, n);
        if (entropy.decode(coefs, encoded, len, &one_tile.shape, NULL) != LEAT__TILE_WHOLE)
            CHECK(c, false, "round %d: decode", round);
        check_random(c, b, n * sizeof *b); /* the old content does not matter */
        ref->order(a + first, coefs, first, n - first);
        opt->order(b + first, coefs, first, n - first);
        for (uint32_t i = first; i < n; i++)
            CHECK(c, same_scan_block(&a[i], &b[i]), "round %d: block %u", round, i);
    }
}

/* Blocks of a decoded tile unchanged, and with one coefficient changed. */
static void check_same(check *c, const leat__tile_pack_dsp *ref, const leat__tile_pack_dsp *opt)
{
    leat__tile_entropy_dsp entropy;
    leat__tile_coefs *coefs = coefs_alloc(c);
    int16_t *room = (int16_t *)(void *)check_alloc(c, LEAT__TILE_BLOCKS_MAX * 128);
    leat__tile_entropy_init(&entropy, CHECK_REFERENCE);
    for (int round = 0; round < 400; round++) {
        random_tile(c, &one_tile);
        size_t len = encode_tile(encoded, &one_tile, NULL);
        uint32_t n = one_tile.shape.blocks, first = check_below(c, n), count = n - first;
        if (entropy.decode(coefs, encoded, len, &one_tile.shape, NULL) != LEAT__TILE_WHOLE)
            CHECK(c, false, "round %d: decode", round);
        int16_t *blocks = room + 64 * (LEAT__TILE_BLOCKS_MAX - count);
        for (uint32_t b = 0; b < count; b++) leat__tile_block_expand(blocks + 64 * b, coefs, first + b);
        CHECK(c, ref->same(coefs, first, blocks, count), "round %d: same", round);
        CHECK(c, opt->same(coefs, first, blocks, count), "round %d: same", round);
        for (int i = 0; i < 20; i++) {
            uint32_t at = check_below(c, 64 * count);
            int16_t was = blocks[at];
            blocks[at] = (int16_t)(was ^ (1 << check_below(c, 16)));
            CHECK(c, !ref->same(coefs, first, blocks, count), "round %d: at %u", round, at);
            CHECK(c, !opt->same(coefs, first, blocks, count), "round %d: at %u", round, at);
            blocks[at] = was;
        }
    }
}

static void time_pack(check *c, const leat__tile_pack_dsp *dsp)
{
    leat__tile_entropy_dsp entropy;
    leat__tile_coefs *coefs = coefs_alloc(c);
    leat__tile_parts *parts = parts_alloc(c);
    static leat__scan_block blocks[96];
    static int16_t plain[96 * 64];
    leat__tile_entropy_init(&entropy, CHECK_REFERENCE);
    typical_tile(c);
    size_t len = encode_tile(encoded, &one_tile, NULL);
    if (entropy.decode(coefs, encoded, len, &one_tile.shape, NULL) != LEAT__TILE_WHOLE) return;
    for (uint32_t b = 0; b < 96; b++) leat__tile_block_expand(plain + 64 * b, coefs, b);
    CHECK_TIME(c, "take 96 blocks", sizeof plain + one_tile.values * 2.0, parts->values = 0;
               dsp->take(parts, 0, plain, 96, 0));
    CHECK_TIME(c, "put values", one_tile.values * 2.0 + (double)len, dsp->put_values(encoded, parts));
    CHECK_TIME(c, "order 96 blocks", sizeof blocks + one_tile.values * 2.0, dsp->order(blocks, coefs, 0, 96));
    CHECK_TIME(c, "same 96 blocks", sizeof plain + one_tile.values * 2.0, dsp->same(coefs, 0, plain, 96));
}

/* ---- inverse DCT ---- */

/* Sparse blocks of any coefficients, including those that overflow everything. */
static void random_blocks(check *c, leat__tile_coefs *coefs, uint32_t blocks)
{
    uint32_t first = 0, kind = check_below(c, 4);
    for (uint32_t b = 0; b < blocks + LEAT__TILE_BLOCKS_PAD; b++) {
        uint64_t mask = leat__rng_u64(&c->rng) & leat__rng_u64(&c->rng);
        uint32_t form = check_below(c, 6);
        if (form == 0 || b >= blocks) mask = 0;
        if (form == 1) mask &= 1;
        if (form == 2 || form == 3) mask &= LEAT__TILE_CORNER;
        coefs->mask[b] = mask;
        coefs->first[b] = first;
        for (; mask != 0; mask &= mask - 1) {
            int16_t v = (int16_t)leat__rng_u32(&c->rng);
            if (kind == 0) v = (int16_t)(v >> 10);
            if (kind == 1) v = (int16_t)(check_below(c, 2) ? INT16_MIN : INT16_MAX);
            if (kind == 2) v = (int16_t)(v >> (v & 15));
            coefs->value[first++] = v;
        }
        coefs->dc[b] = (int16_t)(b < blocks ? leat__rng_u32(&c->rng) >> (kind == 0 ? 21 : 0) : 0);
    }
}

static leat__idct_area random_area(check *c, uint32_t blocks)
{
    leat__idct_area area = {.wide = 1 + check_below(c, LEAT__IDCT_AREA_SIDE),
                            .high = 1 + check_below(c, LEAT__IDCT_AREA_SIDE)};
    area.pitch = area.wide + check_below(c, LEAT__IDCT_AREA_SIDE + 1 - area.wide);
    area.first = check_below(c, blocks + 1 - area.high * area.pitch);
    return area;
}

static void check_idct(check *c)
{
    enum { STRIDE = 96, ROWS = 8 * LEAT__IDCT_AREA_SIDE };
    leat__idct_dsp ref, opt;
    leat__idct_init(&ref, CHECK_REFERENCE);
    leat__idct_init(&opt, c->flags);
    leat__tile_coefs *coefs = coefs_alloc(c);
    uint16_t *quant = (uint16_t *)(void *)check_alloc(c, 130); /* not aligned */
    uint8_t *a = check_alloc(c, ROWS * STRIDE);
    for (int round = 0; round < 4000; round++) {
        const uint32_t blocks = LEAT__TILE_BLOCKS_MAX;
        const leat__idct_area area = random_area(c, blocks);
        const uint32_t rows = 8 * area.high, width = 8 * area.wide;
        const uint32_t room = (width + LEAT__IDCT_ROUND - 1) / LEAT__IDCT_ROUND * LEAT__IDCT_ROUND;
        uint8_t want[ROWS * STRIDE];
        random_blocks(c, coefs, blocks);
        for (int k = 0; k < 64; k++)
            quant[k] = (uint16_t)(round & 1 ? 1 + check_below(c, 99) : leat__rng_u32(&c->rng));
        memset(a, 0x5a, ROWS * STRIDE);
        ref.area(want, STRIDE, coefs, &area, quant);
        /* The last row ends at the guard page. */
        uint8_t *top = a + (ROWS - rows) * STRIDE, *dst = top + STRIDE - room;
        opt.area(dst, STRIDE, coefs, &area, quant);
        bool inside = true;
        for (uint32_t y = 0; y < rows; y++) {
            CHECK(c, memcmp(dst + y * STRIDE, want + y * STRIDE, width) == 0,
                  "round %d: row %u of %ux%u blocks", round, y, area.wide, area.high);
            for (uint32_t x = 0; x < STRIDE - room; x++) inside = inside && top[y * STRIDE + x] == 0x5a;
        }
        for (uint8_t *p = a; p < top; p++) inside = inside && *p == 0x5a;
        CHECK(c, inside, "round %d: wrote outside", round);
    }
}

/* The sparse blocks from above in plain layout; positions after the last used one are zero. */
static void plain_blocks(int16_t *out, uint8_t *last, const leat__tile_coefs *coefs, uint32_t first,
                         uint32_t count)
{
    static const uint8_t zigzag[64] = {0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42,
                                       3,  8,  12, 17, 25, 30, 41, 43, 9,  11, 18, 24, 31, 40, 44, 53,
                                       10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38, 46, 51, 55, 60,
                                       21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};
    for (uint32_t b = 0; b < count; b++, out += 64) {
        leat__tile_block_expand(out, coefs, first + b);
        last[b] = 0;
        for (int k = 0; k < 64; k++)
            if (out[k] != 0 && zigzag[k] > last[b]) last[b] = zigzag[k];
    }
}

static void check_idct_plain(check *c)
{
    enum { STRIDE = 256, BLOCKS = 24 };
    leat__idct_dsp ref, opt;
    leat__idct_init(&ref, CHECK_REFERENCE);
    leat__idct_init(&opt, c->flags);
    leat__tile_coefs *coefs = coefs_alloc(c);
    uint16_t *quant = (uint16_t *)(void *)check_alloc(c, 130); /* not aligned */
    uint8_t *a = check_alloc(c, 8 * STRIDE);
    /* Both end at guard pages, after the bytes that may be read. */
    int16_t *all = (int16_t *)(void *)check_alloc(c, (BLOCKS + LEAT__IDCT_BLOCKS_PAD) * 128);
    uint8_t *all_last = check_alloc(c, BLOCKS);
    memset(all, 0x33, (BLOCKS + LEAT__IDCT_BLOCKS_PAD) * 128);
    for (int round = 0; round < 4000; round++) {
        uint32_t count = 1 + check_below(c, BLOCKS);
        uint32_t room = (8 * count + LEAT__IDCT_ROUND - 1) / LEAT__IDCT_ROUND * LEAT__IDCT_ROUND;
        int16_t *blocks = all + (BLOCKS - count) * 64;
        uint8_t *last = all_last + (BLOCKS - count);
        uint8_t want[8 * STRIDE];
        random_blocks(c, coefs, BLOCKS);
        plain_blocks(blocks, last, coefs, 0, count);
        for (int k = 0; k < 64; k++)
            quant[k] = (uint16_t)(round & 1 ? 1 + check_below(c, 99) : leat__rng_u32(&c->rng));
        for (uint32_t b = 0; b < count; b += LEAT__IDCT_AREA_SIDE) { /* one reference for both */
            const leat__idct_area area = {b, LEAT_MIN(count - b, LEAT__IDCT_AREA_SIDE), 1, 1};
            ref.area(want + 8 * b, STRIDE, coefs, &area, quant);
        }
        uint8_t *dst = a + STRIDE - room;
        opt.plain(dst, STRIDE, blocks, last, count, quant);
        for (int y = 0; y < 8; y++)
            CHECK(c, memcmp(dst + y * STRIDE, want + y * STRIDE, 8 * count) == 0,
                  "round %d: row %d of %u plain blocks", round, y, count);
    }
}

static void time_idct(check *c)
{
    static const uint16_t ones[64] __attribute__((aligned(64))) = {[0 ... 63] = 3};
    leat__tile_entropy_dsp entropy;
    leat__idct_dsp dsp;
    leat__tile_entropy_init(&entropy, CHECK_REFERENCE);
    leat__idct_init(&dsp, c->flags);
    leat__tile_coefs *coefs = coefs_alloc(c);
    uint8_t *out = check_alloc(c, 64 * 128);
    typical_tile(c);
    size_t len = encode_tile(encoded, &one_tile, NULL);
    if (entropy.decode(coefs, encoded, len, &one_tile.shape, NULL) != LEAT__TILE_WHOLE) return;
    double bytes = one_tile.values * 2.0 * 64 / 96 + 64 * 64;
    CHECK_TIME(c, "idct, 64 blocks", bytes, dsp.area(out, 128, coefs, &(leat__idct_area){0, 8, 8, 8}, ones));
    static int16_t blocks[(64 + LEAT__IDCT_BLOCKS_PAD) * 64] __attribute__((aligned(64)));
    uint8_t last[64];
    plain_blocks(blocks, last, coefs, 0, 64);
    CHECK_TIME(c, "idct, 64 plain blocks", 64.0 * 128 + 64 * 64,
               for (uint32_t y = 0; y < 8; y++)
                   dsp.plain(out + y * 8 * 128, 128, blocks + 512 * y, last + 8 * y, 8, ones));
}

/* ---- upsampling and colour ---- */

typedef struct rows {
    uint8_t *in[3], *out[3]; /* out: room for `room` bytes, ending at a guard page */
    uint8_t want[3][1024];
} rows;

enum { WIDTH_MAX = 200, SIDE = 64 };

/* Inputs readable from one before to one past the rounded end, but no more. */
static void random_rows(check *c, rows *r, uint32_t n)
{
    uint32_t room = (n + LEAT__YCC_ROUND - 1) / LEAT__YCC_ROUND * LEAT__YCC_ROUND;
    for (int i = 0; i < 3; i++) {
        uint8_t *block = c->block[i].data;
        uint32_t kind = check_below(c, 3);
        r->in[i] = block + c->block[i].size - room - 1;
        check_random(c, r->in[i] - 1, room + 2);
        uint8_t *first = r->in[i] - 1;
        for (uint32_t k = 0; kind == 0 && k < room + 2; k++) first[k] = first[k] & 1 ? 255 : 0;
    }
}

static uint8_t *out_row(check *c, int i, uint32_t n)
{
    uint32_t room = (n + LEAT__YCC_ROUND - 1) / LEAT__YCC_ROUND * LEAT__YCC_ROUND;
    check_block *b = &c->block[3 + i];
    memset(b->data, 0x5a, b->size);
    return b->data + b->size - room;
}

static void compare_row(check *c, int i, const uint8_t *got, const uint8_t *want, uint32_t n,
                        const char *what)
{
    check_block *b = &c->block[3 + i];
    CHECK(c, memcmp(got, want, n) == 0, "%s: %u samples", what, n);
    for (const uint8_t *p = b->data; p < got; p++)
        if (*p != 0x5a) {
            CHECK(c, false, "%s: wrote before its output", what);
            return;
        }
}

static void alloc_rows(check *c)
{
    for (int i = 0; i < 6; i++) check_alloc(c, 1024);
}

static void check_upsample(check *c)
{
    leat__ycc_dsp ref, opt;
    rows r;
    leat__ycc_init(&ref, CHECK_REFERENCE);
    leat__ycc_init(&opt, c->flags);
    alloc_rows(c);
    for (uint32_t n = 1; n <= WIDTH_MAX; n++)
        for (uint32_t bias = 1; bias <= 2; bias++) {
            uint8_t *out;
            random_rows(c, &r, n);
            out = out_row(c, 0, 2 * n);
            ref.h2v1(r.want[0], r.in[0], n);
            opt.h2v1(out, r.in[0], n);
            compare_row(c, 0, out, r.want[0], 2 * n, "h2v1");
            out = out_row(c, 0, 2 * n);
            ref.h2v2(r.want[0], r.in[0], r.in[1], n);
            opt.h2v2(out, r.in[0], r.in[1], n);
            compare_row(c, 0, out, r.want[0], 2 * n, "h2v2");
            out = out_row(c, 0, n);
            ref.h1v2(r.want[0], r.in[0], r.in[1], n, bias);
            opt.h1v2(out, r.in[0], r.in[1], n, bias);
            compare_row(c, 0, out, r.want[0], n, "h1v2");
            out = out_row(c, 0, 2 * n);
            ref.repeat2(r.want[0], r.in[0], n);
            opt.repeat2(out, r.in[0], n);
            compare_row(c, 0, out, r.want[0], 2 * n, "repeat2");
            out = out_row(c, 0, 4 * n);
            ref.repeat4(r.want[0], r.in[0], n);
            opt.repeat4(out, r.in[0], n);
            compare_row(c, 0, out, r.want[0], 4 * n, "repeat4");
        }
    CHECK_TIME(c, "h2v1, 200 -> 400", 600, opt.h2v1(c->block[3].data, r.in[0], WIDTH_MAX));
    CHECK_TIME(c, "h2v2, 2 x 200 -> 400", 800, opt.h2v2(c->block[3].data, r.in[0], r.in[1], WIDTH_MAX));
    CHECK_TIME(c, "h1v2, 2 x 200 -> 200", 600, opt.h1v2(c->block[3].data, r.in[0], r.in[1], WIDTH_MAX, 1));
}

/* All 16.7 million combinations would take a minute in C: all of one plane against each value
 * of the others in steps, and random ones. */
static void check_colour(check *c)
{
    leat__ycc_dsp ref, opt;
    rows r;
    leat__ycc_init(&ref, CHECK_REFERENCE);
    leat__ycc_init(&opt, c->flags);
    alloc_rows(c);
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t n = 1 + check_below(c, WIDTH_MAX);
        uint8_t *out[3];
        random_rows(c, &r, n);
        for (int i = 0; i < 3; i++) out[i] = out_row(c, i, n);
        ref.rgb(r.want[0], r.want[1], r.want[2], r.in[0], r.in[1], r.in[2], n);
        opt.rgb(out[0], out[1], out[2], r.in[0], r.in[1], r.in[2], n);
        for (int i = 0; i < 3; i++) compare_row(c, i, out[i], r.want[i], n, "rgb");
    }
    for (uint32_t cb = 0; cb < 256; cb++)
        for (uint32_t y = 0; y < 256; y += 51) {
            uint8_t in[3][256 + SIDE], a[3][256], b[3][256];
            for (uint32_t i = 0; i < 256; i++) {
                in[0][i] = (uint8_t)y;
                in[1][i] = (uint8_t)cb;
                in[2][i] = (uint8_t)i;
            }
            ref.rgb(a[0], a[1], a[2], in[0], in[1], in[2], 256);
            opt.rgb(b[0], b[1], b[2], in[0], in[1], in[2], 256);
            CHECK(c, memcmp(a, b, sizeof a) == 0, "rgb: y %u, cb %u", y, cb);
        }
    random_rows(c, &r, WIDTH_MAX);
    CHECK_TIME(
        c, "rgb, 200 pixels", 1200,
        opt.rgb(c->block[3].data, c->block[4].data, c->block[5].data, r.in[0], r.in[1], r.in[2], WIDTH_MAX));
}

static void entropy(check *c)
{
    check_entropy(c);
    if (c->timing) time_entropy(c);
}

static void pack(check *c)
{
    leat__tile_pack_dsp ref, opt;
    leat__tile_pack_init(&ref, CHECK_REFERENCE);
    leat__tile_pack_init(&opt, c->flags);
    check_take(c, &ref, &opt);
    check_put_values(c, &opt);
    check_order(c, &ref, &opt);
    check_same(c, &ref, &opt);
    if (c->timing) time_pack(c, &opt);
}

static void idct(check *c)
{
    check_idct(c);
    check_idct_plain(c);
    if (c->timing) time_idct(c);
}

CHECK_MAIN({"entropy", entropy}, {"pack", pack}, {"idct", idct}, {"upsample", check_upsample},
           {"colour", check_colour})
