/* SPDX-License-Identifier: Apache-2.0
 *
 * Shingles, hashes and permutations of other tools.
 */
#include "text/minhash.h"

#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "text/english_words.h"
#include "text/fold.h"
#include "text/hash_words.h"
#include "text/unicode.h"

#define PRIME ((UINT64_C(1) << 61) - 1)
#define BYTES_MAX (UINT32_C(1) << 29) /* of a text: offsets after folding fit 32 bits */
#define AT_ONCE 256                   /* shingles that are permuted together */

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

/* A number from low up to, but without, 2^61 - 1. Too large ones are drawn again. */
static uint64_t draw(twister *t, uint64_t low)
{
    for (;;) {
        uint64_t high = twister_next(t), v = (high << 32 | twister_next(t)) & PRIME;
        if (v <= PRIME - 1 - low) return v + low;
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

/* The product wraps at 2^64, as in numpy. */
static void permute_prime(const leat__minhasher *m, const uint64_t *hash, uint32_t n, uint64_t mask,
                          uint64_t *values)
{
    for (uint32_t k = 0; k < m->count; k++) {
        uint64_t a = m->a[k], b = m->b[k], least = values[k];
        for (uint32_t i = 0; i < n; i++) {
            uint64_t v = hash[i] * a + b;
            v = (v & PRIME) + (v >> 61);
            v = (v >= PRIME ? v - PRIME : v) & mask;
            least = v < least ? v : least;
        }
        values[k] = least;
    }
}

/* The hash is first mixed by the last step of MurmurHash3. */
static void permute_32(const leat__minhasher *m, const uint64_t *hash, uint32_t n, uint64_t *values)
{
    uint32_t mixed[AT_ONCE];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t h = (uint32_t)hash[i];
        h = (h ^ h >> 16) * 0x85ebca6bu;
        h = (h ^ h >> 13) * 0xc2b2ae35u;
        mixed[i] = h ^ h >> 16;
    }
    for (uint32_t k = 0; k < m->count; k++) {
        uint32_t a = (uint32_t)m->a[k], b = (uint32_t)m->b[k], least = (uint32_t)values[k];
        for (uint32_t i = 0; i < n; i++) {
            uint32_t v = mixed[i] * a + b;
            least = v < least ? v : least;
        }
        values[k] = least;
    }
}

static void permute(const leat__minhasher *m, const uint64_t *hash, uint32_t n, uint64_t *values)
{
    if (m->family == LEAT__MINHASH_DATASKETCH) permute_32(m, hash, n, values);
    else permute_prime(m, hash, n, m->family == LEAT__MINHASH_DATATROVE ? UINT64_MAX : UINT32_MAX, values);
}

/* ---- Shingles ---- */

static uint64_t hash_of(const leat__minhasher *m, const uint8_t *p, size_t len)
{
    uint8_t sum[LEAT__SHA1_BYTES];
    if (m->family == LEAT__MINHASH_DATATROVE) return leat__xxh64(p, len);
    leat__sha1_of(p, len, sum);
    return leat__load_u32(sum);
}

/* Where each word, or each character, of the folded text begins. Returns their number. */
static uint32_t find_starts(leat__minhasher *m, size_t len)
{
    uint32_t n = 0, bytes;
    for (size_t i = 0; i < len; i += bytes) {
        leat__utf8_decode(m->folded + i, &bytes);
        if (m->words == 0 || i == 0 || m->folded[i - 1] == ' ') m->start[n++] = (uint32_t)i;
    }
    m->start[n] = (uint32_t)(len + (m->words > 0));
    return n;
}

uint32_t leat__minhasher_sign(leat__minhasher *m, size_t len, uint64_t *values)
{
    uint64_t hash[AT_ONCE];
    const uint8_t *p = m->folded;
    uint32_t units, width = m->words ? m->words : m->chars, gap = m->words > 0, filled = 0, count = 0;
    if (m->family == LEAT__MINHASH_DATATROVE) {
        size_t n = leat__fold_simplify(m->text, len, m->folded);
        units = leat__english_words(m->folded, n, m->joined, m->start);
        p = m->joined;
    } else {
        units = find_starts(m, leat__fold_lower(m->text, len, m->folded));
        if (width > units) width = units;
    }
    if (units == 0 || units < width) return 0;
    for (uint32_t k = 0; k < m->count; k++) values[k] = UINT64_MAX;
    for (uint32_t i = 0; i + width <= units; i++, count++) {
        hash[filled++] = hash_of(m, p + m->start[i], m->start[i + width] - gap - m->start[i]);
        if (filled < AT_ONCE && i + width < units) continue;
        permute(m, hash, filled, values);
        filled = 0;
    }
    return count;
}

/* ---- Memory ---- */

int leat__minhasher_init(leat__minhasher *m, uint32_t family, uint32_t words, uint32_t chars, uint32_t count,
                         leat_error *err)
{
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

/* The text; folded; its words, with a blank after each; their starts. A word takes two bytes of
 * the text, but a contraction of three may be three words. */
uint64_t leat__minhasher_need(uint64_t bytes)
{
    return (1 + LEAT__FOLD_GROWTH + (LEAT__FOLD_GROWTH + 1) + 4) * bytes + 5 * LEAT__TEXT_PAD;
}

int leat__minhasher_reserve(leat__minhasher *m, size_t bytes, leat_error *err)
{
    if (bytes > BYTES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "a text of %zu bytes is larger than %u", bytes, BYTES_MAX);
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
    uint64_t h = rows;
    for (uint32_t i = 0; i < rows; i++) h = leat__fold(h ^ LEAT__HW0, values[i] ^ LEAT__HW1);
    return h ^ h >> 31;
}

void leat__minhash_bytes(const uint64_t *values, uint32_t k, uint8_t *out)
{
    for (uint32_t i = 0; i < k; i++) out[i] = (uint8_t)(values[i] * LEAT__HW0 >> 56);
}
