/* SPDX-License-Identifier: Apache-2.0
 *
 * One tile by one warp: bytes -> coefficients -> inverse DCT -> samples (docs/tile-format.md). The
 * arithmetic and the answers to damaged bytes are those of src/dsp/tile_entropy.c and src/dsp/idct.c.
 *
 * Values are decoded 32 at a time, one per lane. Lane l holds the next 32 bits of size plane l. A lane whose
 * bit is set in a plane finds its bit in the next plane by its rank among the set bits. The ranks of a
 * lane add up to the sizes of the lanes before it, which is where its extra bits begin. So a round of 32
 * values reads memory twice, whatever their sizes. Four blocks are transformed at once, eight lanes each.
 *
 * The time goes into issuing instructions, not into memory: what is constant per lane is kept in registers.
 *
 * Every read is held inside the tile: `len` bytes, with 12 readable bytes after them and 3 before.
 */

#define TILE_BLOCKS_MAX 192
#define TILE_PLANES_MAX 15
#define TILE_RING 512  /* values that wait for their block: 4 x 64 and a round of 32 */
#define BLOCK_PITCH 72 /* of 64 coefficients: keeps lanes of different blocks off the same bank */

/* Damage: as leat__tile_damage. */
#define TILE_WHOLE 0u
#define TILE_SHORT 1u
#define TILE_BAD_STREAM 2u
#define TILE_BAD_PLANES 3u
#define TILE_BAD_END 4u

/* Scratch of a warp, on a device in shared memory. What it does not take is cache for tiles and tables. */
typedef struct tile_scratch {
    union {
        struct {                           /* of the values */
            int16_t coef[4 * BLOCK_PITCH]; /* first, as it is read 16 bytes at a time */
            int16_t ring[TILE_RING];
        };
        uint8_t symbol[TILE_BLOCKS_MAX * 8]; /* of the bitmaps: which table, then what was read with it */
    };
    uint64_t mask[TILE_BLOCKS_MAX];
    uint8_t groups[TILE_BLOCKS_MAX];
} tile_scratch;

/* A tile as stored in the data. */
typedef struct tile_view {
    const uint8_t *in;
    uint32_t len;
    uint32_t components;
    uint32_t luma, chroma, blocks; /* of each component of the kind; of all */
    uint32_t values;               /* set when the bitmaps are known */
} tile_view;

DEVICE uint32_t blocks_of(const tile_view *t, uint32_t c)
{
    return c == 0 ? t->luma : t->chroma;
}

/* Where decoding of the values stands. Positions in bits. */
typedef struct value_reader {
    uint32_t done;              /* values decoded */
    uint32_t extra;             /* the next one's extra bits */
    PER_LANE(uint32_t, plane);  /* lane l: the next bit of size plane l, */
    PER_LANE(uint32_t, window); /* and 32 bits from there on, loaded before they are needed */
} value_reader;

/* Position in a block's bitmap -> row * 8 + column. */
CONSTANT uint8_t tile_order[64] = {
    0,  1,  2,  3,  8,  9,  10, 11, 16, 17, 18, 19, 24, 25, 26, 27, 4,  5,  6,  7,  12, 13,
    14, 15, 32, 33, 34, 35, 40, 41, 42, 43, 20, 21, 22, 23, 28, 29, 30, 31, 48, 49, 50, 51,
    56, 57, 58, 59, 36, 37, 38, 39, 44, 45, 46, 47, 52, 53, 54, 55, 60, 61, 62, 63,
};

DEVICE uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* 32 bits from bit `pos` on; from the end of the tile for positions past it. */
DEVICE uint32_t bits_at(const tile_view *t, uint32_t pos)
{
    return load_bits(t->in + least(pos >> 3, t->len), pos & 7);
}

DEVICE uint32_t low_bits(uint32_t count)
{
    return count >= 32 ? 0xffffffffu : (1u << count) - 1;
}

/* Blocks of one component of a tile. */
typedef struct tile_part {
    uint32_t gx, gy, wide, high; /* the first one in the image; how many */
} tile_part;

DEVICE tile_part part_of(const leat_job_image *im, const leat_job_tile *tile, uint32_t c)
{
    const uint32_t bx = c == 0 ? 8 : 8 / im->h, by = c == 0 ? 8 : 8 / im->v;
    const uint32_t grid_x = im->mcus_x * (c == 0 ? im->h : 1), grid_y = im->mcus_y * (c == 0 ? im->v : 1);
    tile_part p;
    p.gx = tile->tx * bx;
    p.gy = tile->ty * by;
    p.wide = least(bx, grid_x - p.gx);
    p.high = least(by, grid_y - p.gy);
    return p;
}

DEVICE void find_tile(tile_view *t, const leat_job_image *im, const leat_job_tile *tile)
{
    const tile_part luma = part_of(im, tile, 0), chroma = part_of(im, tile, 1);
    t->in = (const uint8_t *)(im->data + tile->data);
    t->len = tile->len;
    t->components = im->components;
    t->luma = luma.wide * luma.high;
    t->chroma = im->components > 1 ? chroma.wide * chroma.high : 0;
    t->blocks = t->luma + 2 * t->chroma;
}

/* ---- bitmaps ---- */

/* Plain: a nibble per block says how many nibbles of bitmap it has, less one. */
DEVICE uint32_t bitmaps_plain(tile_view *t, tile_scratch *s, uint32_t *used)
{
    const uint32_t counts = (t->blocks + 1) / 2;
    uint32_t at = counts * 2, values = 0; /* `at` in nibbles */
    if (t->len < counts + 1) return TILE_SHORT;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, nibbles);
        PER_LANE(uint32_t, end);
        PER_LANE(uint32_t, set);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(nibbles) = b < t->blocks ? 1 + ((uint32_t)t->in[b / 2] >> 4 * (b & 1) & 15) : 0;
            AT(end) = AT(nibbles);
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane, n = AT(nibbles);
            const uint32_t start = 4 * (at + AT(end) - n);
            uint64_t mask = 0;
            for (uint32_t i = 0; i < n; i += 6)
                mask |= (uint64_t)(bits_at(t, start + 4 * i) & 0xffffff) << 4 * i;
            if (n < 16) mask &= ((uint64_t)1 << 4 * n) - 1;
            AT(set) = POPCLL(mask);
            if (b < t->blocks) s->mask[b] = mask;
        }
        values += WARP_SUM(set);
        at += WARP_FROM(end, 31);
    }
    WARP_SYNC();
    *used = (at + 1) / 2;
    t->values = values;
    return *used <= t->len ? TILE_WHOLE : TILE_SHORT;
}

/* Symbols of four streams: symbol i from stream i % 4, with the table at its position. A code has at
 * most 11 bits, so one load serves five. */
#define READ_SYMBOLS(total)                                                                                  \
    LANES                                                                                                    \
    {                                                                                                        \
        for (uint32_t i = (uint32_t)lane; lane < 4 && i < (total);) {                                        \
            uint64_t bits = load_long(t->in + least(AT(pos) >> 3, t->len), AT(pos) & 7);                     \
            UNROLL                                                                                           \
            for (int k = 0; k < 5; k++) {                                                                    \
                if (i >= (total)) break;                                                                     \
                const uint32_t e = READ_ONLY(&codes->entry[s->symbol[i] & 15][(uint32_t)bits & 2047]);       \
                bits >>= e & 63;                                                                             \
                AT(pos) += e & 63;                                                                           \
                s->symbol[i] = (uint8_t)(e >> 8);                                                            \
                i += 4;                                                                                      \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    WARP_SYNC()

/* Counts of bitmap bytes from the pairs in s->symbol. */
DEVICE void unpair(const tile_view *t, tile_scratch *s)
{
    uint32_t block = 0, pair = 0;
    for (uint32_t c = 0; c < t->components; c++) {
        LANES
        {
            for (uint32_t i = (uint32_t)lane; i < blocks_of(t, c); i += 32) {
                const uint32_t v = s->symbol[pair + i / 2], high = v / 9;
                s->groups[block + i] = (uint8_t)least(i & 1 ? high : v - 9 * high, 8);
            }
        }
        block += blocks_of(t, c);
        pair += (blocks_of(t, c) + 1) / 2;
    }
    WARP_SYNC();
}

/* Tables of the bitmap bytes into s->symbol; their number. */
DEVICE uint32_t choose_tables(const tile_view *t, tile_scratch *s, const leat_job_codes *codes)
{
    uint32_t total = 0;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(end) = b < t->blocks ? s->groups[b] : 0;
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane, n = b < t->blocks ? s->groups[b] : 0;
            const uint64_t tables =
                READ_ONLY((const uint64_t *)(const void *)codes->context[b >= t->luma][n]);
            for (uint32_t g = 0; g < n; g++) s->symbol[total + AT(end) - n + g] = (uint8_t)(tables >> 8 * g);
        }
        total += WARP_FROM(end, 31);
    }
    WARP_SYNC();
    return total;
}

/* Bitmaps from the bytes in s->symbol; the number of bits that are set. */
DEVICE uint32_t join_bytes(const tile_view *t, tile_scratch *s)
{
    uint32_t total = 0, values = 0;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, end);
        PER_LANE(uint32_t, set);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(end) = b < t->blocks ? s->groups[b] : 0;
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane, n = b < t->blocks ? s->groups[b] : 0;
            uint64_t mask = 0;
            for (uint32_t g = 0; g < n; g++) mask |= (uint64_t)s->symbol[total + AT(end) - n + g] << 8 * g;
            AT(set) = POPCLL(mask);
            if (b < t->blocks) s->mask[b] = mask;
        }
        values += WARP_SUM(set);
        total += WARP_FROM(end, 31);
    }
    WARP_SYNC();
    return values;
}

/* Huffman-coded: four streams, one lane each. */
DEVICE uint32_t bitmaps_small(tile_view *t, tile_scratch *s, const leat_job_codes *codes, uint32_t *used)
{
    PER_LANE(uint32_t, pos);
    PER_LANE(uint32_t, ends);
    uint32_t start[5], pairs = 0;
    if (t->len < 6) return TILE_SHORT;
    start[0] = 6;
    for (int i = 1; i < 4; i++)
        start[i] = start[i - 1] + ((uint32_t)t->in[2 * i - 2] | (uint32_t)t->in[2 * i - 1] << 8);
    if (start[3] > t->len) return TILE_SHORT;
    LANES AT(pos) = 8 * (lane == 0 ? start[0] : lane == 1 ? start[1] : lane == 2 ? start[2] : start[3]);
    for (uint32_t c = 0; c < t->components; c++) {
        const uint32_t n = (blocks_of(t, c) + 1) / 2;
        LANES
        {
            for (uint32_t i = (uint32_t)lane; i < n; i += 32) s->symbol[pairs + i] = (uint8_t)(14 + (c > 0));
        }
        pairs += n;
    }
    WARP_SYNC();
    READ_SYMBOLS(pairs);
    unpair(t, s);
    const uint32_t bytes = choose_tables(t, s, codes);
    READ_SYMBOLS(bytes);
    LANES AT(ends) = (AT(pos) + 7) >> 3;
    start[4] = WARP_FROM(ends, 3);
    uint32_t wrong = start[4] > t->len;
    for (int i = 0; i < 4; i++) wrong |= WARP_FROM(ends, i) != start[i + 1];
    if (wrong) return TILE_BAD_STREAM;
    *used = start[4];
    t->values = join_bytes(t, s);
    return TILE_WHOLE;
}

/* ---- sizes and values ---- */

/* Where the size planes and the extra bits lie. */
DEVICE uint32_t find_planes(const tile_view *t, uint32_t at, value_reader *r)
{
    uint32_t left = t->values, planes = 0, extra_bits = 0;
    LANES AT(r->plane) = 0;
    while (left > 0) {
        const uint32_t bytes = (left + 7) / 8;
        PER_LANE(uint32_t, set);
        if (planes == TILE_PLANES_MAX || t->len - at < bytes) return TILE_BAD_PLANES;
        extra_bits += left;
        LANES
        {
            if ((uint32_t)lane == planes) AT(r->plane) = 8 * at;
            AT(set) = 0;
            for (uint32_t i = 32 * (uint32_t)lane; i < left; i += 32 * 32)
                AT(set) += POPC(bits_at(t, 8 * at + i) & low_bits(left - i));
        }
        left = WARP_SUM(set);
        at += bytes;
        planes++;
    }
    r->done = 0;
    r->extra = 8 * at;
    LANES AT(r->window) = bits_at(t, AT(r->plane));
    return t->len - at == (extra_bits + 7) / 8 ? TILE_WHOLE : TILE_BAD_END;
}

DEVICE int16_t amplitude(uint32_t bits, uint32_t size)
{
    const uint32_t ones = (1u << size) - 1, v = bits & ones;
    return (int16_t)(v >> (size - 1) ? v : v - ones);
}

/* The next 32 values into the ring. */
DEVICE void read_values(const tile_view *t, value_reader *r, tile_scratch *s)
{
    PER_LANE(uint32_t, mine); /* lane l: who has a bit in plane l */
    PER_LANE(uint32_t, bit);  /* of the lane in the last plane: whether it has one in the next */
    PER_LANE(uint32_t, size);
    PER_LANE(uint32_t, start); /* of its extra bits */
    PER_LANE(uint32_t, end);
    const uint32_t n = least(32, t->values - r->done);
    uint32_t more = low_bits(n); /* lanes that have a bit in the plane */
    const uint32_t first = WARP_FROM(r->window, 0);
    LANES
    { /* in the first plane every lane has one, so its rank is its number */
        AT(size) = more >> lane & 1;
        AT(start) = (uint32_t)lane;
        AT(bit) = AT(size) & first >> lane;
        AT(mine) = lane == 0 ? more : 0;
    }
    more = WARP_BALLOT(bit);
    for (int l = 1; more != 0 && l < TILE_PLANES_MAX; l++) {
        const uint32_t plane = WARP_FROM(r->window, l);
        LANES
        {
            const uint32_t rank = POPC(more & ((1u << lane) - 1));
            AT(size) += AT(bit);
            AT(start) += rank;
            AT(bit) &= plane >> rank;
            if (lane == l) AT(mine) = more;
        }
        more = WARP_BALLOT(bit);
    }
    LANES
    {
        AT(r->plane) += POPC(AT(mine)); /* counting is slow: once, not in every plane */
        AT(r->window) = bits_at(t, AT(r->plane));
        AT(end) = AT(start) + AT(size);
    }
    LANES
    {
        if ((uint32_t)lane < n)
            s->ring[(r->done + (uint32_t)lane) % TILE_RING] =
                amplitude(bits_at(t, r->extra + AT(start)), AT(size));
    }
    r->extra += WARP_FROM(end, n - 1);
    r->done += n;
}

/* ---- the inverse DCT ---- */

DEVICE int32_t clamp16(int32_t v)
{
    return v < -32768 ? -32768 : v > 32767 ? 32767 : v;
}

/* libjpeg's slow integer transform of eight values; sums modulo 2^32. */
DEVICE void idct_eight(int32_t v[8], int shift)
{
    const uint32_t round = 1u << (shift - 1);
    const uint32_t x0 = (uint32_t)v[0], x1 = (uint32_t)v[1], x2 = (uint32_t)v[2], x3 = (uint32_t)v[3];
    const uint32_t x4 = (uint32_t)v[4], x5 = (uint32_t)v[5], x6 = (uint32_t)v[6], x7 = (uint32_t)v[7];
    const uint32_t even2 = x2 * 4433u + x6 * (uint32_t)(4433 - 15137);
    const uint32_t even3 = x2 * (4433u + 6270u) + x6 * 4433u;
    const uint32_t even0 = (x0 + x4) * 8192u + round, even1 = (x0 - x4) * 8192u + round;
    const uint32_t a0 = even0 + even3, a3 = even0 - even3, a1 = even1 + even2, a2 = even1 - even2;
    const uint32_t z3 = (uint32_t)(int32_t)(int16_t)(x7 + x3), z4 = (uint32_t)(int32_t)(int16_t)(x5 + x1);
    const uint32_t y3 = z3 * (uint32_t)(9633 - 16069) + z4 * 9633u;
    const uint32_t y4 = z3 * 9633u + z4 * (uint32_t)(9633 - 3196);
    const uint32_t b0 = x7 * (uint32_t)(2446 - 7373) - x1 * 7373u + y3;
    const uint32_t b3 = x1 * (uint32_t)(12299 - 7373) - x7 * 7373u + y4;
    const uint32_t b1 = x5 * (uint32_t)(16819 - 20995) - x3 * 20995u + y4;
    const uint32_t b2 = x3 * (uint32_t)(25172 - 20995) - x5 * 20995u + y3;
    v[0] = (int32_t)(a0 + b3) >> shift;
    v[7] = (int32_t)(a0 - b3) >> shift;
    v[1] = (int32_t)(a1 + b2) >> shift;
    v[6] = (int32_t)(a1 - b2) >> shift;
    v[2] = (int32_t)(a2 + b1) >> shift;
    v[5] = (int32_t)(a2 - b1) >> shift;
    v[3] = (int32_t)(a3 + b0) >> shift;
    v[4] = (int32_t)(a3 - b0) >> shift;
}

/* What a lane does with each block of a component: it places two coefficients, column by column. */
typedef struct lane_part {
    PER_LANE(uint32_t, low);  /* place of bit `lane` of the bitmap, */
    PER_LANE(uint32_t, high); /* of bit 32 + lane, */
    PER_LANE(int32_t, low_step);
    PER_LANE(int32_t, high_step); /* and their quantisers */
} lane_part;

/* Up to four blocks side by side: which they are and what is wanted of them. */
typedef struct block_group {
    uint64_t mask[4];
    uint32_t first[4]; /* value of the tile that is its first */
    int32_t dc[4];
    uint32_t wanted; /* bit per block */
} block_group;

DEVICE void find_lane_part(lane_part *p, const uint16_t *quant)
{
    LANES
    {
        const uint32_t a = tile_order[lane], b = tile_order[32 + lane];
        AT(p->low) = (a & 7) * 8 + (a >> 3);
        AT(p->high) = (b & 7) * 8 + (b >> 3);
        AT(p->low_step) = quant[a];
        AT(p->high_step) = quant[b];
    }
}

DEVICE void expand_group(const block_group *g, const lane_part *p, tile_scratch *s)
{
    UNROLL
    for (int k = 0; k < 4; k++) {
        const uint32_t lo = (uint32_t)g->mask[k], hi = (uint32_t)(g->mask[k] >> 32);
        const uint32_t behind = g->first[k] + POPC(lo);
        LANES
        {
            const uint32_t below = (1u << lane) - 1;
            int16_t *const coef = s->coef + k * BLOCK_PITCH;
            int32_t a = 0, b = 0;
            if (lo >> lane & 1) a = s->ring[(g->first[k] + POPC(lo & below)) % TILE_RING];
            if (lane == 0) a = g->dc[k];
            coef[AT(p->low)] = (int16_t)(a * AT(p->low_step));
            if (hi != 0) { /* most have no high frequencies */
                if (hi >> lane & 1) b = s->ring[(behind + POPC(hi & below)) % TILE_RING];
                b *= AT(p->high_step);
            }
            coef[AT(p->high)] = (int16_t)b;
        }
    }
    WARP_SYNC();
}

/* Columns, then rows: eight lanes per block, whose samples go to `plane` and 8, 16 and 24 bytes behind.
 * Blocks that are not wanted lie perhaps outside of it. */
DEVICE void transform_group(const block_group *g, tile_scratch *s, uint8_t *plane, uint32_t pitch)
{
    PER_LANE_EIGHT(v);
    LANES
    {
        load_eight(s->coef + (lane >> 3) * BLOCK_PITCH + 8 * (lane & 7), AT(v));
        idct_eight(AT(v), 11);
    }
    WARP_SYNC();
    LANES
    {
        int16_t *const coef = s->coef + (lane >> 3) * BLOCK_PITCH + (lane & 7);
        UNROLL
        for (int i = 0; i < 8; i++) coef[8 * i] = (int16_t)clamp16(AT(v)[i]);
    }
    WARP_SYNC();
    LANES
    {
        const int k = lane >> 3;
        int32_t *const x = AT(v);
        load_eight(s->coef + k * BLOCK_PITCH + 8 * (lane & 7), x);
        idct_eight(x, 18);
        if (g->wanted >> k & 1) {
            store_eight(plane + (uint32_t)(8 * k) + (uint64_t)(uint32_t)(lane & 7) * pitch,
                        pack_four(x[0] + 128, x[1] + 128, x[2] + 128, x[3] + 128),
                        pack_four(x[4] + 128, x[5] + 128, x[6] + 128, x[7] + 128));
        }
    }
    WARP_SYNC();
}

/* Blocks `base` and on, up to four of a row. Their DC differences add to *dc; the first block's sum goes
 * to *head. */
DEVICE void find_group(const tile_view *t, uint32_t base, uint32_t count, value_reader *r, uint32_t *value,
                       tile_scratch *s, uint32_t *dc, uint32_t *head, block_group *g)
{
    uint32_t last = *value;
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        g->mask[k] = k < count ? s->mask[base + k] : 0;
        g->first[k] = last;
        last += POPCLL(g->mask[k]);
    }
    while (r->done < last) read_values(t, r, s);
    WARP_SYNC();
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        if (g->mask[k] & 1) *dc += (uint32_t)(int32_t)s->ring[g->first[k] % TILE_RING];
        if (k == 0) *head = *dc;
        g->dc[k] = (int16_t)*dc;
    }
    *value = last;
}

/* Clamps to 0 to `most`. */
DEVICE uint32_t held(int32_t v, int32_t most)
{
    return (uint32_t)(v < 0 ? 0 : v > most ? most : v);
}

/* All blocks of component c, the first of which is block `base` of the tile. */
DEVICE void component(const tile_view *t, uint32_t c, uint32_t base, value_reader *r, uint32_t *value,
                      tile_scratch *s, const leat_job_tile *tile, const leat_job_image *im,
                      const leat_job *job)
{
    const tile_part p = part_of(im, tile, c);
    const uint32_t wide = p.wide, pitch = im->pitch[c];
    /* blocks of the tile that are wanted; below the last of them there may be nothing */
    const int32_t x0 = (int32_t)(im->bx0[c] - p.gx), x1 = (int32_t)(im->bx1[c] - p.gx);
    const int32_t y0 = (int32_t)(im->by0[c] - p.gy), y1 = (int32_t)(im->by1[c] - p.gy);
    const uint32_t rows = c + 1 < t->components ? p.high : held(y1, (int32_t)p.high);
    uint32_t above = 0;
    uint8_t *plane = job->work + im->work + im->plane[c] - 8 * (int64_t)y0 * (int64_t)pitch - 8 * (int64_t)x0;
    lane_part part;
    find_lane_part(&part, (const uint16_t *)(const void *)(im->data + im->quant) + 64 * c);
    for (uint32_t y = 0; y < rows; y++, plane += 8 * (uint64_t)pitch, base += wide) {
        const bool row = (int32_t)y >= y0 && (int32_t)y < y1;
        uint32_t dc = above;
        for (uint32_t x = 0; x < wide; x += 4) {
            const uint32_t count = least(4, wide - x);
            uint32_t head;
            block_group g;
            find_group(t, base + x, count, r, value, s, &dc, &head, &g);
            if (x == 0) above = head;
            g.wanted = (1u << held(x1 - (int32_t)x, (int32_t)count)) - 1;
            g.wanted &= ~((1u << held(x0 - (int32_t)x, 4)) - 1);
            if (row && g.wanted != 0) {
                expand_group(&g, &part, s);
                transform_group(&g, s, plane + 8 * x, pitch);
            }
            WARP_SYNC(); /* the next values may take these places of the ring */
        }
    }
}

/* ---- a tile ---- */

DEVICE void decode_tile(const leat_job *job, uint32_t index, tile_scratch *s)
{
    const leat_job_tile *const tile = &job->tiles[index];
    const leat_job_image *const im = &job->images[tile->image];
    tile_view t;
    value_reader r;
    uint32_t used = 0, value = 0, base = 0;
    find_tile(&t, im, tile);
    uint32_t damage = im->small ? bitmaps_small(&t, s, job->codes, &used) : bitmaps_plain(&t, s, &used);
    if (damage == TILE_WHOLE) damage = find_planes(&t, used, &r);
    if (damage != TILE_WHOLE) {
        LANES
        {
            if (lane == 0) REPORT(&job->status[tile->image], tile->number << 4 | damage);
        }
        return;
    }
    for (uint32_t c = 0; c < t.components; base += blocks_of(&t, c), c++)
        component(&t, c, base, &r, &value, s, tile, im, job);
}
