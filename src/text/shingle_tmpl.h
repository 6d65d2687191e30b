/* SPDX-License-Identifier: Apache-2.0
 *
 * Shingles of a text: hashes of n consecutive words, or of n characters. Included after
 * scan_tmpl.h; the including file defines word_masks().
 */

/* Lowercases ASCII capitals in a word of letters and digits: sets bit 5 of every ASCII byte,
 * which letters and digits have or get. */
INLINE uint64_t lower8(uint64_t a)
{
    return a | ((~a & UINT64_C(0x8080808080808080)) >> 2);
}

INLINE uint64_t word_key(const uint8_t *p, uint32_t len)
{
    uint64_t h = LEAT__HW2;
    uint32_t left = len;
    for (; RARE(left > 16); p += 16, left -= 16)
        h = leat__fold(lower8(leat__load_u64(p)) ^ LEAT__HW0 ^ h, lower8(leat__load_u64(p + 8)) ^ LEAT__HW1);
    uint64_t a = leat__low_bytes(lower8(leat__load_u64(p)), left);
    uint64_t b = leat__low_bytes(lower8(leat__load_u64(p + 8)), left > 8 ? left - 8 : 0);
    return leat__fold(a ^ LEAT__HW0 ^ h, b ^ LEAT__HW1 ^ (uint64_t)len << 32);
}

/* Writes the bounds of sequences of letters and digits to s->bounds; returns their number. */
static uint32_t split_words(leat__sketcher *s, size_t len)
{
    uint32_t *bounds = s->bounds;
    uint64_t last = 1, over = 0;
    uint32_t blocks = (uint32_t)(len / 64 + 1);
    for (uint32_t i = 0; i < blocks; i++) {
        const uint8_t *p = s->text + 64 * (size_t)i;
        uint64_t nonascii, alnum;
        word_masks(p, &nonascii, &alnum);
        uint64_t gap = ~(alnum | nonascii) | over;
        over = 0;
        for (uint64_t m = nonascii; RARE(m); m &= m - 1) {
            uint32_t k = lowest(m), n;
            if ((p[k] & 0xc0) == 0x80) continue;
            if (leat__unicode_of(leat__utf8_decode(p + k, &n)) & LEAT__UNI_MARK) {
                uint64_t ones = (UINT64_C(1) << n) - 1;
                gap |= ones << k;
                if (k + n > 64) over |= ones >> (64 - k);
            }
        }
        bounds = put_bits(bounds, gap ^ (gap << 1 | last), i * 64, 24);
        last = gap >> 63;
    }
    return (uint32_t)(bounds - s->bounds) / 2;
}

INLINE uint64_t finish(uint64_t x)
{
    x ^= x >> 32;
    x *= LEAT__HW3;
    return x ^ x >> 29;
}

#ifndef HAS_SHINGLES_OF_5
/* Pairs are shared: three products each. */
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

/* n consecutive words; a shorter text is one shingle. */
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

/* n consecutive characters, at every character. The text is first rewritten: white space becomes
 * one blank, letters become lower case. */
static uint32_t char_shingles(leat__sketcher *s, size_t len)
{
    uint8_t *t = s->text;
    uint32_t n = 0, chars = 0, count = 0;
    for (uint32_t i = 0, step; i < len; i += step) {
        uint32_t code = leat__utf8_decode(t + i, &step);
        if (leat__unicode_of(code) & LEAT__UNI_SPACE) {
            if (n > 0 && t[n - 1] != ' ') {
                s->bounds[chars++] = n;
                t[n++] = ' ';
            }
            continue;
        }
        s->bounds[chars++] = n;
        if (step == 1) t[n++] = code >= 'A' && code <= 'Z' ? (uint8_t)(code | 32) : (uint8_t)code;
        else
            for (uint32_t k = 0; k < step; k++) t[n++] = t[i + k];
    }
    if (chars > 0 && t[n - 1] == ' ') {
        chars--;
        n--;
    }
    if (chars == 0) return 0;
    memset(t + n, 0, LEAT__TEXT_PAD);
    s->bounds[chars] = n;
    uint32_t width = LEAT_MIN(s->chars, chars);
    for (uint32_t i = 0; i + width <= chars; i++)
        s->shingle[count++] = leat__hash_run(t + s->bounds[i], s->bounds[i + width] - s->bounds[i], 0);
    return count;
}

static uint32_t shingle_text(leat__sketcher *s, size_t len)
{
    memset(s->text + len, ' ', LEAT__TEXT_PAD);
    if (s->words == 0) return char_shingles(s, len);
    uint32_t words = split_words(s, len);
    s->word_count = words;
    for (uint32_t i = 0; i < words; i++)
        s->word_hash[i] = word_key(s->text + s->bounds[2 * i], s->bounds[2 * i + 1] - s->bounds[2 * i]);
    return word_shingles(s, words);
}
