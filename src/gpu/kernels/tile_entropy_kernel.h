/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes one tile by one warp: bytes -> coefficients -> inverse DCT -> samples (docs/tile-format.md).
 * Arithmetic and handling of damaged bytes are those of src/dsp/tile_entropy.c and src/dsp/idct.c.
 *
 * Values are decoded in rounds of up to 32 runs, one per lane. Each lane takes the bits of its run from each
 * size plane. How many bits the lanes before it have is a prefix sum of the set bits in the plane above. The
 * sum over all planes is the total size of the values before the run, which is where its extra bits begin.
 * Then each lane reads its values in sequence. Four blocks are transformed at once, by eight lanes each.
 *
 * The bottleneck is issuing instructions, not memory, so constants of a lane are kept in registers.
 *
 * Every read stays inside the tile: `len` bytes, with 12 readable bytes after them and 3 before. For values,
 * find_planes checks that their bits end where the tile ends.
 */

#define TILE_BLOCKS_MAX 192
#define TILE_PLANES_MAX 15
#define TILE_RUN 31     /* maximum values of a lane in a round; odd, which avoids bank conflicts */
#define TILE_READY 1248 /* values that wait for their block: less than 4 x 64 left over, plus one round */
#define BLOCK_PITCH 80  /* values from block to block of 64 coefficients; avoids bank conflicts */

/* Kinds of damage, as in leat__tile_damage. */
#define TILE_WHOLE 0u
#define TILE_SHORT 1u
#define TILE_BAD_STREAM 2u
#define TILE_BAD_PLANES 3u
#define TILE_BAD_END 4u

/* A tile as stored in the data. */
typedef struct tile_view {
    const uint8_t *in;
    uint32_t len;
    uint32_t components;
    uint32_t luma, chroma, blocks; /* blocks of the luma component, of one chroma component, and of all */
    uint32_t values;               /* number of values; set once the bitmaps are decoded */
} tile_view;

/* Scratch of a warp, in shared memory on a device. The rest of shared memory serves as cache for tiles and
 * tables. */
typedef struct tile_scratch {
    union {
        struct {                           /* for values */
            int16_t coef[4 * BLOCK_PITCH]; /* first member: read 16 bytes at a time; holds words between the
                                              passes */
            int16_t value[TILE_READY];
        };
        uint8_t symbol[TILE_BLOCKS_MAX * 8]; /* for bitmaps: table number, then the symbol read with it */
    };
    uint64_t mask[TILE_BLOCKS_MAX];
    tile_view tile;                      /* for read_values */
    uint32_t plane[TILE_PLANES_MAX];     /* position in the tile of the next bit of each size plane */
    uint32_t extra;                      /* position of the next extra bit */
    uint16_t first[TILE_BLOCKS_MAX + 8]; /* per block: bytes of its bitmap, later its first value */
} tile_scratch;

DEVICE uint32_t blocks_of(const tile_view *t, uint32_t c)
{
    return c == 0 ? t->luma : t->chroma;
}

/* The range of values that are decoded and in the scratch. */
typedef struct values_ready {
    uint32_t first, end; /* `first` is at the start of the scratch */
} values_ready;

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

/* Reads 32 bits from bit `pos` on; positions past the end of the tile read at its end. */
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
    uint32_t gx, gy, wide, high; /* position of the first one in the image's grid, and their number */
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

/* Sets s->first to the number of each block's first value. */
DEVICE void number_values(tile_view *t, tile_scratch *s)
{
    uint32_t values = 0;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, set);
        PER_LANE(uint32_t, end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(set) = b < t->blocks ? POPCLL(s->mask[b]) : 0;
            AT(end) = AT(set);
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            if (b < t->blocks) s->first[b] = (uint16_t)(values + AT(end) - AT(set));
        }
        values += WARP_FROM(end, 31);
    }
    LANES
    {
        if (lane == 0) s->first[t->blocks] = (uint16_t)values;
    }
    WARP_SYNC();
    t->values = values;
}

/* Reads plain bitmaps: a nibble per block holds its number of bitmap nibbles, minus one. */
DEVICE uint32_t bitmaps_plain(tile_view *t, tile_scratch *s, uint32_t *used)
{
    const uint32_t counts = (t->blocks + 1) / 2;
    uint32_t at = counts * 2; /* in nibbles */
    if (t->len < counts + 1) return TILE_SHORT;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, nibbles);
        PER_LANE(uint32_t, end);
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
            if (b < t->blocks) s->mask[b] = mask;
        }
        at += WARP_FROM(end, 31);
    }
    WARP_SYNC();
    *used = (at + 1) / 2;
    return *used <= t->len ? TILE_WHOLE : TILE_SHORT;
}

/* Reads symbols of four streams: symbol i comes from stream i % 4, with the table at its position. A code has
 * at most 11 bits, so one load serves five codes. */
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

/* Splits the pairs in s->symbol into counts of bitmap bytes per block. */
DEVICE void unpair(const tile_view *t, tile_scratch *s)
{
    uint32_t block = 0, pair = 0;
    for (uint32_t c = 0; c < t->components; c++) {
        LANES
        {
            for (uint32_t i = (uint32_t)lane; i < blocks_of(t, c); i += 32) {
                const uint32_t v = s->symbol[pair + i / 2], high = v / 9;
                s->first[block + i] = (uint16_t)least(i & 1 ? high : v - 9 * high, 8);
            }
        }
        block += blocks_of(t, c);
        pair += (blocks_of(t, c) + 1) / 2;
    }
    WARP_SYNC();
}

/* Writes the table of each bitmap byte to s->symbol; returns their number. */
DEVICE uint32_t choose_tables(const tile_view *t, tile_scratch *s, const leat_job_codes *codes)
{
    uint32_t total = 0;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(end) = b < t->blocks ? s->first[b] : 0;
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane, n = b < t->blocks ? s->first[b] : 0;
            const uint64_t tables =
                READ_ONLY((const uint64_t *)(const void *)codes->context[b >= t->luma][n]);
            for (uint32_t g = 0; g < n; g++) s->symbol[total + AT(end) - n + g] = (uint8_t)(tables >> 8 * g);
        }
        total += WARP_FROM(end, 31);
    }
    WARP_SYNC();
    return total;
}

/* Builds the bitmaps from the bytes in s->symbol. */
DEVICE void join_bytes(const tile_view *t, tile_scratch *s)
{
    uint32_t total = 0;
    for (uint32_t b0 = 0; b0 < t->blocks; b0 += 32) {
        PER_LANE(uint32_t, end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane;
            AT(end) = b < t->blocks ? s->first[b] : 0;
        }
        WARP_SCAN(end);
        LANES
        {
            const uint32_t b = b0 + (uint32_t)lane, n = b < t->blocks ? s->first[b] : 0;
            uint64_t mask = 0;
            for (uint32_t g = 0; g < n; g++) mask |= (uint64_t)s->symbol[total + AT(end) - n + g] << 8 * g;
            if (b < t->blocks) s->mask[b] = mask;
        }
        total += WARP_FROM(end, 31);
    }
    WARP_SYNC();
}

/* Reads Huffman-coded bitmaps: four streams, one lane each. */
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
    join_bytes(t, s);
    return TILE_WHOLE;
}

/* ---- sizes and values ---- */

/* Finds where the size planes and the extra bits begin. */
DEVICE uint32_t find_planes(const tile_view *t, uint32_t at, tile_scratch *s)
{
    uint32_t left = t->values, planes = 0, extra_bits = 0;
    while (left > 0) {
        const uint32_t bytes = (left + 7) / 8;
        PER_LANE(uint32_t, set);
        if (planes == TILE_PLANES_MAX || t->len - at < bytes) return TILE_BAD_PLANES;
        extra_bits += left;
        LANES
        {
            if (lane == 0) s->plane[planes] = 8 * at;
            AT(set) = 0;
            for (uint32_t i = 32 * (uint32_t)lane; i < left; i += 32 * 32)
                AT(set) += POPC(bits_at(t, 8 * at + i) & low_bits(left - i));
        }
        left = WARP_SUM(set);
        at += bytes;
        planes++;
    }
    LANES
    {
        if (lane == 0) s->extra = 8 * at;
    }
    WARP_SYNC();
    return t->len - at == (extra_bits + 7) / 8 ? TILE_WHOLE : TILE_BAD_END;
}

DEVICE int16_t amplitude(uint32_t bits, uint32_t size)
{
    const uint32_t ones = (1u << size) - 1, v = bits & ones;
    return (int16_t)(v >> (size - 1) ? v : v - ones);
}

/* The run of values of each lane: its bits of the size planes, and where its extra bits begin. */
typedef struct value_runs {
    PER_LANE_ARRAY(uint32_t, plane, TILE_PLANES_MAX);
    PER_LANE(uint32_t, count);
    PER_LANE(uint32_t, extra);
} value_runs;

/* Finds the runs of the next n values, `per` for each lane. Returns the number of planes that have bits of
 * them.
 */
DEVICE uint32_t find_runs(const tile_view *t, tile_scratch *s, uint32_t n, uint32_t per, value_runs *w)
{
    PER_LANE(uint32_t, before); /* bits of the plane in the lanes before this one */
    PER_LANE(uint32_t, bits);   /* bits in this lane */
    PER_LANE(uint32_t, end);    /* sum of both */
    uint32_t all = n, planes = 0, extra = s->extra;
    LANES
    {
        AT(before) = least((uint32_t)lane * per, n);
        AT(bits) = least(per, n - AT(before));
        AT(w->count) = AT(bits);
        AT(w->extra) = extra;
        UNROLL
        for (int l = 0; l < TILE_PLANES_MAX; l++) AT(w->plane)[l] = 0;
    }
    UNROLL
    for (int l = 0; l < TILE_PLANES_MAX; l++) {
        if (all == 0) break;
        const uint32_t at = s->plane[l];
        WARP_SYNC();
        LANES
        {
            const uint32_t mine = bits_at(t, at + AT(before)) & low_bits(AT(bits));
            AT(w->plane)[l] = mine;
            AT(w->extra) += AT(before);
            if (lane == 0) s->plane[l] = at + all;
            AT(bits) = POPC(mine);
            AT(end) = AT(bits);
        }
        extra += all;
        planes++;
        WARP_SCAN(end);
        LANES AT(before) = AT(end) - AT(bits);
        all = WARP_FROM(end, 31);
    }
    LANES
    {
        if (lane == 0) s->extra = extra;
    }
    return planes;
}

/* Decodes the runs into `to`. `planes` is a compile-time constant, at least the number of their planes. */
DEVICE void read_runs(const tile_view *t, value_runs *w, uint32_t per, int planes, int16_t *to)
{
    PER_LANE(bit_reader, extra);
    LANES AT(extra) = read_bits_from(t->in, AT(w->extra));
    for (uint32_t i = 0; i < per; i++) {
        LANES
        {
            uint32_t size = 1, bit = AT(w->plane)[0] & 1;
            AT(w->plane)[0] >>= 1;
            UNROLL
            for (int l = 1; l < planes;
                 l++) { /* a value has a bit in the plane if its bit in the plane above is set */
                const uint32_t next = AT(w->plane)[l] & bit;
                AT(w->plane)[l] >>= bit;
                size += bit;
                bit = next;
            }
            size += bit;
            if (i < AT(w->count)) to[(uint32_t)lane * per + i] = amplitude(next_bits(&AT(extra)), size);
            skip_bits(&AT(extra), size);
        }
    }
}

/* Decodes the next values, and keeps the ready ones from `unread` on in front of them. */
DEVICE values_ready read_values(values_ready ready, uint32_t unread, tile_scratch *s)
{
    const tile_view t = s->tile;
    const uint32_t n = least(32 * TILE_RUN, t.values - ready.end), per = (n + 31) / 32 | 1;
    const uint32_t rest = ready.end - unread, from = unread - ready.first;
    value_runs w;
    for (uint32_t i = 0; i < rest; i += 32) {
        PER_LANE(int16_t, v);
        LANES
        {
            if (i + (uint32_t)lane < rest) AT(v) = s->value[from + i + (uint32_t)lane];
        }
        WARP_SYNC();
        LANES
        {
            if (i + (uint32_t)lane < rest) s->value[i + (uint32_t)lane] = AT(v);
        }
        WARP_SYNC();
    }
    const uint32_t planes = find_runs(&t, s, n, per, &w);
    if (planes <= 6) read_runs(&t, &w, per, 6, s->value + rest);
    else if (planes <= 9) read_runs(&t, &w, per, 9, s->value + rest);
    else read_runs(&t, &w, per, TILE_PLANES_MAX, s->value + rest);
    WARP_SYNC();
    ready.first = unread;
    ready.end += n;
    return ready;
}

/* ---- the inverse DCT ---- */

/* Transforms eight values by libjpeg's slow integer method; sums are modulo 2^32. */
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

/* The work of a lane for each block of a component: it places two coefficients, column by column. */
typedef struct lane_part {
    PER_LANE(uint32_t, low);  /* place of the coefficient of bitmap bit `lane` */
    PER_LANE(uint32_t, high); /* place for bit 32 + lane */
    PER_LANE(int32_t, low_step);
    PER_LANE(int32_t, high_step); /* their quantisers: low_step, high_step */
} lane_part;

/* DC coefficients, in lane 0; the others hold 0. */
typedef struct dc_chain {
    PER_LANE(int32_t, last); /* DC of the previous block */
    PER_LANE(int32_t, head); /* DC of the first block of the group */
} dc_chain;

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

/* Expands the coefficients of up to four blocks of a row, from block `base` on. */
DEVICE void expand_group(uint32_t base, uint32_t count, uint32_t ready, const lane_part *p, dc_chain *dc,
                         tile_scratch *s)
{
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        const uint64_t mask = k < count ? s->mask[base + k] : 0;
        const uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32);
        const int16_t *const from = s->value + (s->first[base + k] - ready);
        LANES
        {
            const uint32_t below = (1u << lane) - 1;
            int16_t *const coef = s->coef + k * BLOCK_PITCH;
            int32_t a = 0, b = 0;
            if (lo >> lane & 1) a = from[POPC(lo & below)];
            a += AT(dc->last);
            AT(dc->last) = lane == 0 ? a : 0;
            if (k == 0) AT(dc->head) = AT(dc->last);
            coef[AT(p->low)] = (int16_t)(a * AT(p->low_step));
            if (hi != 0) { /* most blocks have no high frequencies */
                if (hi >> lane & 1) b = from[POPC(lo) + POPC(hi & below)];
                b *= AT(p->high_step);
            }
            coef[AT(p->high)] = (int16_t)b;
        }
    }
    WARP_SYNC();
}

/* Updates the DC chain for blocks that are not needed. */
DEVICE void skip_group(uint32_t base, uint32_t count, uint32_t ready, dc_chain *dc, const tile_scratch *s)
{
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        LANES
        {
            if (lane == 0 && k < count && (s->mask[base + k] & 1))
                AT(dc->last) += s->value[s->first[base + k] - ready];
            if (k == 0) AT(dc->head) = AT(dc->last);
        }
    }
}

/* Transforms columns, then rows, with eight lanes per block. The samples of the blocks go to `plane` and 8,
 * 16 and 24 bytes after it. Between the passes a word holds two rows of a column. `wanted` has a bit per
 * block; the other blocks may be outside the plane. */
DEVICE void transform_group(uint32_t wanted, tile_scratch *s, uint8_t *plane, uint32_t pitch)
{
    PER_LANE_ARRAY(int32_t, v, 8);
    LANES
    {
        load_eight(s->coef + (lane >> 3) * BLOCK_PITCH + 8 * (lane & 7), AT(v));
        idct_eight(AT(v), 11);
    }
    WARP_SYNC();
    LANES
    {
        int16_t *const pair = s->coef + (lane >> 3) * BLOCK_PITCH + 2 * (lane & 7);
        UNROLL
        for (int i = 0; i < 4; i++) store_two(pair + 16 * i, AT(v)[2 * i], AT(v)[2 * i + 1]);
    }
    WARP_SYNC();
    LANES
    {
        const int k = lane >> 3, y = lane & 7;
        int32_t *const x = AT(v);
        load_halves(s->coef + k * BLOCK_PITCH + 16 * (y >> 1), y & 1, x);
        idct_eight(x, 18);
        if (wanted >> k & 1)
            store_eight(plane + (uint32_t)(8 * k) + (uint64_t)(uint32_t)y * pitch,
                        pack_centred(x[0], x[1], x[2], x[3]), pack_centred(x[4], x[5], x[6], x[7]));
    }
    WARP_SYNC();
}

/* Clamps to 0 to `most`. */
DEVICE uint32_t held(int32_t v, int32_t most)
{
    return (uint32_t)(v < 0 ? 0 : v > most ? most : v);
}

/* Returns a mask of bits `first` to `end` - 1, limited to the first `count`. */
DEVICE uint32_t bits_between(int32_t first, int32_t end, uint32_t count)
{
    return low_bits(held(end, (int32_t)count)) & ~low_bits(held(first, (int32_t)count));
}

/* Decodes all blocks of component c; the first is block `base` of the tile. */
DEVICE void component(uint32_t c, uint32_t base, values_ready *ready, tile_scratch *s,
                      const leat_job_tile *tile, const leat_job_image *im, const leat_job *job)
{
    const tile_part p = part_of(im, tile, c);
    const uint32_t wide = p.wide, pitch = im->pitch[c];
    /* blocks of the tile that are needed; the plane may end below the last of them */
    const int32_t x0 = (int32_t)(im->bx0[c] - p.gx), y0 = (int32_t)(im->by0[c] - p.gy);
    const int32_t y1 = (int32_t)(im->by1[c] - p.gy);
    const uint32_t columns = bits_between(x0, (int32_t)(im->bx1[c] - p.gx), wide);
    const uint32_t rows = bits_between(y0, y1, p.high);
    const uint32_t high = c + 1 < im->components ? p.high : held(y1, (int32_t)p.high);
    uint8_t *plane = job->work + im->work + im->plane[c] - 8 * (int64_t)y0 * (int64_t)pitch - 8 * (int64_t)x0;
    PER_LANE(int32_t, above);
    lane_part part;
    find_lane_part(&part, (const uint16_t *)(const void *)(im->data + im->quant) + 64 * c);
    LANES AT(above) = 0;
    for (uint32_t y = 0; y < high; y++, plane += 8 * (uint64_t)pitch) {
        dc_chain dc;
        LANES AT(dc.last) = AT(above);
        for (uint32_t x = 0; x < wide; x += 4) {
            const uint32_t count = least(4, wide - x);
            const uint32_t wanted = rows >> y & 1 ? columns >> x & 15 : 0;
            if (ready->end < s->first[base + count]) *ready = read_values(*ready, s->first[base], s);
            if (wanted != 0) {
                expand_group(base, count, ready->first, &part, &dc, s);
                transform_group(wanted, s, plane + 8 * x, pitch);
            } else {
                skip_group(base, count, ready->first, &dc, s);
            }
            if (x == 0) LANES AT(above) = AT(dc.head);
            base += count;
            WARP_SYNC(); /* the next values may overwrite these */
        }
    }
}

/* ---- a tile ---- */

DEVICE void decode_tile(const leat_job *job, uint32_t index, tile_scratch *s)
{
    const leat_job_tile *const tile = &job->tiles[index];
    const leat_job_image *const im = &job->images[tile->image];
    tile_view t;
    values_ready ready = {0, 0};
    uint32_t used = 0, base = 0;
    find_tile(&t, im, tile);
    uint32_t damage = im->small ? bitmaps_small(&t, s, job->codes, &used) : bitmaps_plain(&t, s, &used);
    if (damage == TILE_WHOLE) {
        number_values(&t, s);
        damage = find_planes(&t, used, s);
    }
    if (damage != TILE_WHOLE) {
        LANES
        {
            if (lane == 0) REPORT(&job->status[tile->image], tile->number << 4 | damage);
        }
        return;
    }
    LANES
    {
        if (lane == 0) s->tile = t;
    }
    WARP_SYNC();
    for (uint32_t c = 0; c < t.components; base += blocks_of(&t, c), c++)
        component(c, base, &ready, s, tile, im, job);
}
