/* SPDX-License-Identifier: Apache-2.0
 *
 * Shingles of a text: hashes of n consecutive words, or of n characters. Included after
 * scan_tmpl.h; the including file defines word_masks(), and for characters fold_block(),
 * blank_leads(), char_starts(), high_bytes() and spread_words().
 */

/* Converts ASCII capitals in a word of letters and digits to lower case: sets bit 5 of every ASCII byte.
 * Digits and lower case letters already have it. */
INLINE uint64_t lower8(uint64_t a)
{
    return a | ((~a & UINT64_C(0x8080808080808080)) >> 2);
}

INLINE uint64_t key_block(const uint8_t *p, uint64_t h)
{
    return leat__fold(lower8(leat__load_u64(p)) ^ LEAT__HW0 ^ h, lower8(leat__load_u64(p + 8)) ^ LEAT__HW1);
}

/* Hashes the last 1 to 16 bytes of a word of `len` bytes. */
INLINE uint64_t key_end(const uint8_t *p, uint32_t left, uint32_t len, uint64_t h)
{
    const uint8_t *mask = leat__mask_of(left);
    uint64_t a = lower8(leat__load_u64(p)) & leat__load_u64(mask);
    uint64_t b = lower8(leat__load_u64(p + 8)) & leat__load_u64(mask + 8);
    return leat__fold(a ^ LEAT__HW0 ^ h, b ^ LEAT__HW1 ^ (uint64_t)len << 32);
}

static inline uint64_t word_key(const uint8_t *p, uint32_t len)
{
    uint64_t h = LEAT__HW2;
    uint32_t left = len;
    for (; RARE(left > 16); p += 16, left -= 16) h = key_block(p, h);
    return key_end(p, left, len, h);
}

/* Returns the key of a word without case, also beyond ASCII: that of the folded word. */
static NOINLINE uint64_t folded_key(const uint8_t *p, uint32_t len)
{
    uint8_t part[16 + 8];
    uint64_t h = LEAT__HW2;
    uint32_t held = 0, all = 0;
    for (uint32_t i = 0, n; i < len; i += n) {
        uint32_t made = leat__utf8_encode(leat__unicode_fold(leat__utf8_decode(p + i, &n)), part + held);
        held += made;
        all += made;
        if (held <= 16) continue;
        h = key_block(part, h);
        memcpy(part, part + 16, 8);
        held -= 16;
    }
    return key_end(part, held, all, h);
}

/* Corrects the keys of the words with cased letters beyond ASCII, at the `count` places in s->shingle. */
static NOINLINE void fold_words(leat__sketcher *s, uint32_t count)
{
    const uint32_t *b = s->bounds;
    for (uint32_t i = 0; i < count; b += 2) {
        if (s->shingle[i] >= b[1]) continue;
        s->word_hash[(b - s->bounds) / 2] = folded_key(s->text + b[0], b[1] - b[0]);
        while (i < count && s->shingle[i] < b[1]) i++;
    }
}

#ifndef HAS_WORD_KEYS
INLINE void word_keys(leat__sketcher *s, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        s->word_hash[i] = word_key(s->text + s->bounds[2 * i], s->bounds[2 * i + 1] - s->bounds[2 * i]);
}
#endif

/* Writes the boundaries of sequences of letters and digits to s->bounds; returns their number. Writes the
 * places of non-ASCII letters that fold_words() changes to s->shingle. */
static uint32_t split_words(leat__sketcher *s, size_t len, uint32_t *cased)
{
    uint32_t *bounds = s->bounds;
    uint64_t *place = s->shingle;
    uint64_t last = 1, over = 0;
    uint32_t blocks = (uint32_t)(len / 64 + 1);
    for (uint32_t i = 0; i < blocks; i++) {
        const uint8_t *p = s->text + 64 * (size_t)i;
        uint64_t nonascii, alnum;
        word_masks(p, &nonascii, &alnum);
        uint64_t gap = ~(alnum | nonascii) | over;
        over = 0;
        for (uint64_t m = nonascii ? nonascii & char_starts(p) : 0; RARE(m); m &= m - 1) {
            uint32_t k = lowest(m), n;
            uint32_t code = leat__utf8_decode(p + k, &n);
            if (leat__unicode_of(code) & LEAT__UNI_MARK) {
                uint64_t ones = (UINT64_C(1) << n) - 1;
                gap |= ones << k;
                if (k + n > 64) over |= ones >> (64 - k);
            } else if (leat__unicode_fold(code) != code) {
                *place++ = i * 64 + k;
            }
        }
        bounds = put_bits(bounds, gap ^ (gap << 1 | last), i * 64, 24);
        last = gap >> 63;
    }
    *cased = (uint32_t)(place - s->shingle);
    return (uint32_t)(bounds - s->bounds) / 2;
}

INLINE uint64_t finish(uint64_t x)
{
    x ^= x >> 32;
    x *= LEAT__HW3;
    return x ^ x >> 29;
}

#ifndef HAS_SHINGLES_OF_5
/* Pairs are shared: three products per shingle. */
INLINE void shingles_of_5(const uint64_t *w, uint32_t count, uint64_t *out)
{
    uint64_t p0 = w[0] * LEAT__HW0 + w[1], p1 = w[1] * LEAT__HW0 + w[2];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t p2 = w[i + 2] * LEAT__HW0 + w[i + 3];
        out[i] = finish((p0 * LEAT__HW1 + p2) * LEAT__HW1 + w[i + 4]);
        p0 = p1;
        p1 = p2;
    }
}
#endif

/* Hashes n consecutive words; a shorter text is one shingle. */
static uint32_t word_shingles(leat__sketcher *s, uint32_t words)
{
    const uint64_t *w = s->word_hash;
    uint32_t n = s->words;
    if (words == 0) return 0;
    if (words < n) n = words;
    if (n == 5) {
        shingles_of_5(w, words - 4, s->shingle);
        return words - 4;
    }
    for (uint32_t i = 0; i + n <= words; i++) {
        uint64_t h = n;
        for (uint32_t j = 0; j < n; j++) h = h * LEAT__HW1 + w[i + j];
        s->shingle[i] = finish(h);
    }
    return words - n + 1;
}

/* ---- shingles of characters ---- */

#ifndef HAS_KEEP_BYTES
/* Appends the bytes of the block whose bits are set. Up to 64 bytes past both ends are read and written. */
INLINE uint8_t *keep_bytes(uint8_t *out, const uint8_t *block, uint64_t keep)
{
    while (keep) {
        uint32_t from = lowest(keep), n = lowest_or_64(~(keep >> from));
        memcpy(out, block + from, 64);
        out += n;
        keep = from + n < 64 ? keep & ~UINT64_C(0) << (from + n) : 0;
    }
    return out;
}
#endif

/* Returns the bits of the bytes of white space beyond ASCII; *over has those of a character that ends in the
 * next block. */
static NOINLINE uint64_t wide_blanks(const uint8_t *p, uint64_t leads, uint64_t *over)
{
    uint64_t white = *over;
    *over = 0;
    for (; leads; leads &= leads - 1) {
        uint32_t k = lowest(leads), n;
        if (!(leat__unicode_of(leat__utf8_decode(p + k, &n)) & LEAT__UNI_SPACE)) continue;
        uint64_t ones = (UINT64_C(1) << n) - 1;
        white |= ones << k;
        if (k + n > 64) *over |= ones >> (64 - k);
    }
    return white;
}

/* Writes the text to s->folded with ASCII capitals in lower case. Each sequence of white space becomes one
 * blank, none at the ends. Returns the length. */
static uint32_t fold_text(leat__sketcher *s, size_t len, uint64_t *nonascii)
{
    uint8_t block[128] = {0};
    uint8_t *out = s->folded;
    uint64_t last = 1, over = 0, any = 0;
    for (size_t i = 0; i < len; i += 64) {
        const uint8_t *p = s->text + i;
        uint64_t high, white;
        fold_block(p, block, &high, &white);
        any |= high;
        if (RARE(high)) {
            uint64_t wide = wide_blanks(p, blank_leads(p), &over);
            for (uint64_t m = wide; RARE(m); m &= m - 1) block[lowest(m)] = ' ';
            white |= wide;
        }
        uint64_t keep = ~(white & (white << 1 | last));
        last = white >> 63;
        if (keep == ~UINT64_C(0)) {
            memcpy(out, block, 64);
            out += 64;
        } else {
            out = keep_bytes(out, block, keep);
        }
    }
    uint32_t n = (uint32_t)(out - s->folded);
    if (n > 0 && s->folded[n - 1] == ' ') n--;
    memset(s->folded + n, 0, LEAT__TEXT_PAD);
    *nonascii = any;
    return n;
}

/* Eight 64-bit numbers, as vectors of the instruction set. */
typedef uint64_t lanes __attribute__((vector_size(LANE_BYTES)));
/* The same, unaligned in memory. memcpy() of 64 bytes uses smaller vectors, so that a load waits for two
 * stores. */
typedef uint64_t lanes_at __attribute__((vector_size(LANE_BYTES), aligned(8), may_alias));
#define EIGHT (64 / LANE_BYTES)
#define EACH(i) _Pragma("GCC unroll 4") for (int i = 0; i < EIGHT; i++)

#define TURN(x, r) ((x) << (r) | (x) >> (-(r)&63))

/* Mixes the words at eight characters. The word at a character consists of it and the next seven, each
 * shifted by 8 bits more. For ASCII, these are 8 bytes of s->folded; for wide texts, s->shingle has them. */
INLINE void mix_words(const leat__sketcher *s, const bool wide, uint32_t at, uint32_t shift, lanes *out)
{
    lanes w[EIGHT];
    if (wide) EACH(i) w[i] = ((const lanes_at *)(s->shingle + at))[i];
    else spread_words(s->folded + at, w);
    EACH(i)
    {
        w[i] = (w[i] << shift) * LEAT__HW1;
        out[i] = w[i] ^ w[i] >> 29;
    }
}

INLINE void finish_windows(lanes *sum, uint64_t *out)
{
    EACH(i)
    {
        lanes x = (sum[i] ^ sum[i] >> 32) * LEAT__HW2;
        x = (x ^ x >> 29) * LEAT__HW3;
        ((lanes_at *)out)[i] = x ^ x >> 32;
    }
}

/* Hashes the windows of `width` characters at `count` consecutive characters to s->shingle, eight at once:
 * the arrays have room for 32 more. Each word of a window is mixed, rotated by 21 bits more than the previous
 * one, and added. The last word overlaps the previous one unless the width is a multiple of 8. */
INLINE void hash_windows(const leat__sketcher *s, const bool wide, uint32_t count, uint32_t width)
{
    const uint32_t shift = width < 8 ? 64 - 8 * width : 0;
    for (uint32_t i = 0; i < count; i += 8) {
        lanes sum[EIGHT] = {{0}}, c[EIGHT];
        EACH(e) sum[e] += width * LEAT__HW0;
        for (uint32_t k = 0, turn = 0; k < width; k += 8, turn = (turn + 21) & 63) {
            mix_words(s, wide, i + (width < 8 ? 0 : LEAT_MIN(k, width - 8)), shift, c);
            EACH(e) sum[e] += TURN(c[e], turn);
        }
        finish_windows(sum, s->shingle + i);
    }
}

/* Like hash_windows, for windows of 24 characters, which share their words: the second word is the first of
 * the window eight characters later. */
INLINE void hash_windows_24(const leat__sketcher *s, const bool wide, uint32_t count)
{
    lanes a[EIGHT], b[EIGHT], c[EIGHT], sum[EIGHT];
    mix_words(s, wide, 0, 0, a);
    mix_words(s, wide, 8, 0, b);
    for (uint32_t i = 0; i < count; i += 8) {
        mix_words(s, wide, i + 16, 0, c);
        EACH(e)
        {
            sum[e] = a[e] + TURN(b[e], 21) + TURN(c[e], 42) + 24 * LEAT__HW0;
            a[e] = b[e];
            b[e] = c[e];
        }
        finish_windows(sum, s->shingle + i);
    }
}

/* Writes the codes of the characters of s->folded without case to s->bounds: ASCII unchanged, 24 bits of
 * others. */
static uint32_t char_codes(leat__sketcher *s, uint32_t n)
{
    uint8_t starts[192];
    uint32_t *code = s->bounds;
    for (uint32_t i = 0; i < n; i += 64) {
        const uint8_t *p = s->folded + i;
        uint64_t start = char_starts(p), high = high_bytes(p);
        if (n - i < 64) start &= ~(~UINT64_C(0) << (n - i));
        const uint8_t *bytes = p;
        if (RARE(high)) {
            keep_bytes(starts, p, start);
            bytes = starts;
        }
        for (uint32_t k = 0; k < 64; k++) code[k] = bytes[k];
        for (uint64_t m = start & high; RARE(m); m &= m - 1) {
            uint32_t k = lowest(m), len;
            uint64_t wide = leat__unicode_fold(leat__utf8_decode(p + k, &len));
            if (wide >= 0x80) wide = wide * LEAT__HW0 >> 40;
            code[bits_of(start & ((m & (~m + 1)) - 1))] = (uint32_t)wide;
        }
        code += bits_of(start);
    }
    return (uint32_t)(code - s->bounds);
}

/* Writes the words at all characters, whose codes are in s->bounds, to s->shingle: words of two, then of
 * four, then of eight characters. Loads are ahead of the stores. */
INLINE void wide_words(leat__sketcher *s, uint32_t chars)
{
    const uint32_t *code = s->bounds;
    uint64_t *w = s->shingle;
    memset(s->bounds + chars, 0, 16 * sizeof *s->bounds);
    memset(w + chars, 0, 32 * sizeof *w);
    for (size_t i = 0; i < chars; i++) w[i] = code[i] + ((uint64_t)code[i + 1] << 8);
    for (size_t i = 0; i < chars; i++) w[i] += w[i + 2] << 16;
    for (size_t i = 0; i < chars; i++) w[i] += w[i + 4] << 32;
}

/* Makes the shingles of a text that is not ASCII. */
static NOINLINE uint32_t wide_shingles(leat__sketcher *s, uint32_t n)
{
    uint32_t chars = char_codes(s, n), width = LEAT_MIN(s->chars, chars), count = chars - width + 1;
    wide_words(s, chars);
    if (width == 24) hash_windows_24(s, true, count);
    else hash_windows(s, true, count, width);
    return count;
}

/* Hashes n consecutive characters, starting at every character; a shorter text is one shingle. */
static uint32_t char_shingles(leat__sketcher *s, size_t len)
{
    uint64_t nonascii;
    uint32_t n = fold_text(s, len, &nonascii);
    if (n == 0) return 0;
    if (nonascii) return wide_shingles(s, n);
    uint32_t width = LEAT_MIN(s->chars, n), count = n - width + 1;
    if (width == 24) hash_windows_24(s, false, count);
    else hash_windows(s, false, count, width);
    return count;
}

#ifndef HAS_KEEP_LOW
static uint32_t keep_low(const uint64_t *x, uint32_t n, uint32_t most, uint64_t *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[found] = x[i];
        found += (uint32_t)x[i] < most;
    }
    return found;
}
#endif

#ifndef HAS_KEEP_OPEN
static uint32_t keep_open(const uint64_t *x, uint32_t n, uint32_t k, const uint32_t *least, uint32_t most,
                          uint64_t *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        out[found] = x[i];
        found += least[(x[i] >> 32) * k >> 32] >= most;
    }
    return found;
}
#endif

static uint32_t shingle_text(leat__sketcher *s, size_t len)
{
    memset(s->text + len, ' ', LEAT__TEXT_PAD);
    if (s->words == 0) return char_shingles(s, len);
    uint32_t cased, words = split_words(s, len, &cased);
    s->word_count = words;
    word_keys(s, words);
    if (RARE(cased)) fold_words(s, cased);
    return word_shingles(s, words);
}
