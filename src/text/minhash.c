/* SPDX-License-Identifier: Apache-2.0
 *
 * Shingles, hashes and permutations of datatrove and datasketch.
 */
#include "text/minhash.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "text/fold.h"
#include "text/hash_words.h"
#include "text/permute.h"
#include "text/text_dsp.h"
#include "text/unicode.h"

#define BYTES_MAX (UINT32_C(1) << 29) /* limit of a text: offsets after folding fit 32 bits */

/* ---- Permutations: draws of numpy.random.RandomState(1).randint ---- */

enum { MT = 624, MT_HALF = 397 };

typedef struct twister {
    uint32_t state[MT];
    uint32_t at;
} twister;

static void twister_seed(twister *t, uint32_t seed)
{
    for (uint32_t i = 0; i < MT; i++) {
        t->state[i] = seed;
        seed = 1812433253u * (seed ^ seed >> 30) + i + 1;
    }
    t->at = MT;
}

static uint32_t twister_next(twister *t)
{
    if (t->at == MT) {
        for (uint32_t i = 0; i < MT; i++) {
            uint32_t y = (t->state[i] & 0x80000000u) | (t->state[(i + 1) % MT] & 0x7fffffffu);
            t->state[i] = t->state[(i + MT_HALF) % MT] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->state[t->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* Draws a number from low up to, but not including, 2^61 - 1. Too large ones are drawn again. */
static uint64_t draw(twister *t, uint64_t low)
{
    for (;;) {
        uint64_t high = twister_next(t), v = (high << 32 | twister_next(t)) & LEAT__PERMUTE_PRIME;
        if (v <= LEAT__PERMUTE_PRIME - 1 - low) return v + low;
    }
}

static void draw_all(leat__minhasher *m)
{
    twister t;
    twister_seed(&t, 1);
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->family == LEAT__MINHASH_DATASKETCH) m->a[i] = (twister_next(&t) & 0x7fffffffu) * 2 + 1;
        else m->a[i] = draw(&t, 1);
        if (m->family == LEAT__MINHASH_DATASKETCH_LEGACY) m->b[i] = draw(&t, 0); /* in pairs */
    }
    for (uint32_t i = 0; i < m->count && m->family != LEAT__MINHASH_DATASKETCH_LEGACY; i++)
        m->b[i] = m->family == LEAT__MINHASH_DATASKETCH ? twister_next(&t) : draw(&t, 0);
}

static void permute(const leat__minhasher *m, const leat__permute_dsp *dsp, const uint64_t *hash, uint32_t n,
                    uint64_t *values)
{
    if (m->family == LEAT__MINHASH_DATASKETCH) dsp->affine(m->a, m->b, m->count, hash, n, values);
    else if (m->family == LEAT__MINHASH_DATATROVE) dsp->prime(m->a, m->b, m->count, hash, n, values);
    else dsp->prime_low(m->a, m->b, m->count, hash, n, values);
}

/* ---- Shingles ---- */

/* Finds the start of each character of the joined words. Returns their number. */
static uint32_t find_chars(leat__minhasher *m, size_t len)
{
    uint32_t n = 0, bytes;
    for (size_t i = 0; i < len; i += bytes) {
        leat__utf8_decode(m->joined + i, &bytes);
        m->start[n++] = (uint32_t)i;
    }
    m->start[n] = (uint32_t)len;
    return n;
}

/* Finds the words or characters of the text: m->start, with one more entry at the end. Returns their
 * number. */
static uint32_t find_units(leat__minhasher *m, size_t len)
{
    const leat__text_dsp *dsp = leat__text_dsp_now();
    if (m->family == LEAT__MINHASH_DATATROVE) return dsp->join_english(m, len);
    uint32_t words = dsp->join_lower(m, len);
    if (m->words > 0 || words == 0) return words;
    return find_chars(m, m->start[words] - 1);
}

/* Hashes n shingles, starting with number `first`. */
static void hash_shingles(const leat__minhasher *m, const leat__permute_dsp *dsp, uint32_t first, uint32_t n,
                          uint32_t width, uint64_t *hash)
{
    LEAT_ASSERT(n > 0 && n <= LEAT__PERMUTE_MOST);
    const uint8_t *text[LEAT__PERMUTE_MOST];
    uint32_t len[LEAT__PERMUTE_MOST], gap = m->words > 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *start = m->start + first + i;
        text[i] = m->joined + start[0];
        len[i] = start[width] - gap - start[0];
    }
    if (m->family == LEAT__MINHASH_DATATROVE) dsp->xxh64(text, len, n, hash);
    else dsp->sha1(text, len, n, hash);
}

uint32_t leat__minhasher_sign(leat__minhasher *m, size_t len, uint64_t *values)
{
    LEAT_ASSERT(len <= m->text_capacity);
    uint64_t hash[LEAT__PERMUTE_MOST], least[LEAT__SKETCH_MAX];
    const leat__permute_dsp *dsp = leat__permute_dsp_now();
    uint32_t units = find_units(m, len), width = m->words ? m->words : m->chars, n;
    if (m->family != LEAT__MINHASH_DATATROVE && width > units) width = units;
    if (units == 0 || units < width) return 0;
    uint32_t shingles = units - width + 1;
    memset(least, 0xff, sizeof least);
    for (uint32_t i = 0; i < shingles; i += n) {
        n = LEAT_MIN(shingles - i, LEAT__PERMUTE_MOST);
        hash_shingles(m, dsp, i, n, width, hash);
        permute(m, dsp, hash, n, least);
    }
    memcpy(values, least, m->count * sizeof *values);
    return shingles;
}

/* ---- Memory ---- */

int leat__minhasher_init(leat__minhasher *m, uint32_t family, uint32_t words, uint32_t chars, uint32_t count,
                         leat_error *err)
{
    LEAT_ASSERT(count > 0 && count <= LEAT_COUNT(m->a));
    LEAT_ASSERT(words > 0 || chars > 0);
    memset(m, 0, sizeof *m);
    m->family = family;
    m->words = words;
    m->chars = chars;
    m->count = count;
    draw_all(m);
    return leat__minhasher_reserve(m, 64u << 10, err);
}

void leat__minhasher_reset(leat__minhasher *m)
{
    leat__free(m->slab);
    memset(m, 0, sizeof *m);
}

/* Memory for the text; the folded text; its words, with a blank after each; their starts. A word takes two
 * bytes of the text, but a contraction of three bytes may be three words. */
uint64_t leat__minhasher_need(uint64_t bytes)
{
    return (1 + LEAT__FOLD_GROWTH + (LEAT__FOLD_GROWTH + 1) + 4) * bytes + 5 * LEAT__TEXT_PAD;
}

int leat__minhasher_reserve(leat__minhasher *m, size_t bytes, leat_error *err)
{
    if (bytes > BYTES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "a text of %s is larger than %s", leat__as_size(bytes).text,
                          leat__as_size(BYTES_MAX).text);
    if (m->slab && bytes <= m->text_capacity) return 0;
    uint64_t need = leat__minhasher_need(bytes);
    leat__free(m->slab);
    m->text_capacity = 0;
    m->slab = leat__alloc_aligned(LEAT__MEM_CURATE, need, 64);
    if (!m->slab) return leat__fail_nomem(err, need, "the shingles of a document");
    m->start = m->slab; /* first, for its alignment */
    m->text = (uint8_t *)(m->start + bytes + LEAT__TEXT_PAD / 4);
    m->folded = m->text + bytes + LEAT__TEXT_PAD;
    m->joined = m->folded + LEAT__FOLD_GROWTH * bytes + LEAT__TEXT_PAD;
    m->text_capacity = bytes;
    return 0;
}

/* ---- Bands ---- */

uint64_t leat__minhash_band(const uint64_t *values, uint32_t rows)
{
    LEAT_ASSERT(rows > 0);
    uint64_t h = rows;
    for (uint32_t i = 0; i < rows; i++) h = leat__fold(h ^ LEAT__HW0, values[i] ^ LEAT__HW1);
    return h ^ h >> 31;
}

void leat__minhash_bytes(const uint64_t *values, uint32_t k, uint8_t *out)
{
    for (uint32_t i = 0; i < k; i++) out[i] = (uint8_t)(values[i] * LEAT__HW0 >> 56);
}
