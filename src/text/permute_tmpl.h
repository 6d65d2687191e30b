/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of MinHash signatures for vectors. The including file defines V, the type of a vector,
 * VECTORS, the number of vectors of permutations held in registers at once, and operations on V.
 *
 * `prime` avoids the last step of the modulo, s >= P ? s - P : s. It adds 8 to every product first. A
 * product that would need that step then overflows its 61 bits and gives a value below 16. If the least
 * value is below 16, which has a probability of 2^-57 per shingle, plain C computes all of them again. The
 * other values are 8 too large.
 *
 * Most values are not computed. With the 64 bits of a hash as two halves, two fused multiply-adds of
 * doubles give its value as a fraction of 2^61. A constant is added that leaves room for 16 bits after the
 * binary point; they are the last 16 bits of the sum. Rounding changes them by less than 4 in either
 * direction, and 4 is added. A value can only be the least if its 16 bits are at most 8 above those of the
 * least so far.
 */
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/sha1.h"
#include "text/permute.h"

#define INLINE static inline __attribute__((always_inline))
#define AHEAD 8
#define UNSURE 16
#define LANES64 (sizeof(V) / 8)
#define LANES32 (sizeof(V) / 4)
#define GROUP (VECTORS * LANES64)
#define MARKS (GROUP / 8)
#define MARK_BITS (ROWS == 2 ? UINT32_C(0x55555555) : UINT32_C(0x11111111))
#define FRACTION_BITS ((double)(UINT64_C(3) << 35)) /* a sum of this size ends with 16 fraction bits */
#define SLACK 4
#ifndef FIRST
#define FIRST 64
#endif

/* ---- modulo 2^61 - 1 ---- */

INLINE V fold61(V v)
{
    return add64(and_(v, all64(LEAT__PERMUTE_PRIME)), shift_right61(v));
}

/* Finds the least values of VECTORS vectors of permutations, with 8 added. */
INLINE void least_prime(const uint64_t *a, const uint64_t *b, const uint64_t *hash, uint32_t n, uint64_t *out)
{
    V factor[VECTORS], high[VECTORS], plus[VECTORS], least[VECTORS];
    /* unrolled, so that the arrays are in registers */
#pragma GCC unroll 8
    for (uint32_t j = 0; j < VECTORS; j++) {
        factor[j] = load(a + j * LANES64);
        high[j] = shift_right32(factor[j]);
        plus[j] = add64(load(b + j * LANES64), all64(AHEAD));
        least[j] = all64(UINT64_C(1) << 62);
    }
    for (uint32_t i = 0; i < n; i++) {
        V h = all64(hash[i]), top = all64(hash[i] >> 32);
#pragma GCC unroll 8
        for (uint32_t j = 0; j < VECTORS; j++)
            least[j] = min64(least[j], fold61(multiply_add(factor[j], high[j], h, top, plus[j])));
    }
#pragma GCC unroll 8
    for (uint32_t j = 0; j < VECTORS; j++) store(out + j * LANES64, least[j]);
}

static __attribute__((noinline)) uint64_t least_exactly(uint64_t a, uint64_t b, const uint64_t *hash,
                                                        uint32_t n)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t v = leat__permute_one(hash[i], a, b);
        least = v < least ? v : least;
    }
    return least;
}

/* Updates `values` with all of the hashes. */
INLINE void lower_all(const uint64_t *a, const uint64_t *b, const uint64_t *hash, uint32_t n,
                      uint64_t *values)
{
    uint64_t least[GROUP];
    least_prime(a, b, hash, n, least);
    for (uint32_t j = 0; j < GROUP; j++) {
        uint64_t v =
            __builtin_expect(least[j] < UNSURE, 0) ? least_exactly(a[j], b[j], hash, n) : least[j] - AHEAD;
        values[j] = v < values[j] ? v : values[j];
    }
}

/* Constants of GROUP permutations for `mark_small`. */
typedef struct fractions {
    double factor[GROUP], factor_high[GROUP], plus[GROUP];
    uint64_t limit[GROUP];
} fractions;

static void fractions_of(fractions *f, const uint64_t *a, const uint64_t *b)
{
    const double unit = 1.0 / (double)(UINT64_C(1) << 61);
    for (uint32_t k = 0; k < GROUP; k++) {
        uint32_t j = PLACE(k);
        f->factor[j] = (double)(int64_t)a[k] * unit;
        f->factor_high[j] = (double)(int64_t)(a[k] << 32 & LEAT__PERMUTE_PRIME) * unit;
        f->plus[j] = FRACTION_BITS +
                     ((double)(int64_t)((b[k] + AHEAD) & LEAT__PERMUTE_PRIME) * unit + 0.5 + SLACK / 65536.0);
    }
}

/* Computes limits for the 16 fraction bits, which have 0x8000 added. False if one is above a quarter of the
 * range: too many values would be below it. */
INLINE bool find_limits(fractions *f, const uint64_t *values)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < GROUP; j++) {
        most = values[j] > most ? values[j] : most;
        f->limit[PLACE(j)] = ((values[j] + AHEAD) >> 45) + 2 * SLACK + 1 - 0x8000;
    }
    return most < UINT64_C(1) << 59;
}

/* Marks the values that may be below `values`: mark[i / ROWS * MARKS + j / 8] has bit 4 * (j % 8) + 2 * (i %
 * ROWS) for hash i and permutation j. */
INLINE void mark_small(const fractions *f, const double *low, const double *high, uint32_t n, uint32_t *mark)
{
    V factor[VECTORS], factor_high[VECTORS], plus[VECTORS], t[ROWS][VECTORS];
#pragma GCC unroll 8
    for (uint32_t j = 0; j < VECTORS; j++) {
        factor[j] = load(f->factor + j * LANES64);
        factor_high[j] = load(f->factor_high + j * LANES64);
        plus[j] = load(f->plus + j * LANES64);
    }
    const limits limit = load_limits(f->limit);
    for (uint32_t i = 0; i < n; i += ROWS, mark += MARKS) {
#pragma GCC unroll 2
        for (uint32_t r = 0; r < ROWS; r++) {
            V h = all_double(low + i + r), top = all_double(high + i + r);
#pragma GCC unroll 8
            for (uint32_t j = 0; j < VECTORS; j++)
                t[r][j] = fused(h, factor[j], fused(top, factor_high[j], plus[j]));
        }
        mark_below(t, limit, mark);
    }
    if (n % ROWS) mark[-1] &= UINT32_C(0x11111111); /* there is no second hash */
}

/* Bit k is set if mark[k] has marks. */
INLINE uint64_t find_marks(const uint32_t *mark)
{
    uint64_t found = 0;
#pragma GCC unroll 8
    for (uint32_t k = 0; k < 64; k += LANES32) found |= (uint64_t)any_marks(mark + k) << k;
    return found;
}

/* Updates `values` with the marked ones. Few marks have two bits. */
INLINE void lower_marked(const uint32_t *mark, uint32_t count, const uint64_t *a, const uint64_t *b,
                         const uint64_t *hash, uint64_t *values)
{
    for (uint32_t k = 0; k < count; k += 64) {
        for (uint64_t found = find_marks(mark + k); found; found &= found - 1) {
            uint32_t at = k + (uint32_t)__builtin_ctzll(found), m = mark[at] & MARK_BITS;
            do {
                uint32_t bit = (uint32_t)__builtin_ctz(m), j = at % MARKS * 8 + bit / 4;
                uint64_t v = leat__permute_one(hash[at / MARKS * ROWS + bit / 2 % 2], a[j], b[j]);
                values[j] = v < values[j] ? v : values[j];
                m &= m - 1;
            } while (__builtin_expect(m != 0, 0));
        }
    }
}

/* Handles GROUP permutations. The first hashes are computed in full, then only values that may be below the
 * least so far. In each doubling of the hashes, these are about as many as there are permutations. */
static void prime_group(const uint64_t *a, const uint64_t *b, const uint64_t *hash, const double *low,
                        const double *high, uint32_t n, uint64_t *values)
{
    uint32_t mark[LEAT__PERMUTE_MOST / ROWS * MARKS + 64];
    fractions f;
    if (n > FIRST) fractions_of(&f, a, b);
    for (uint32_t i = 0, part; i < n; i += part) {
        if (n <= FIRST || !find_limits(&f, values)) {
            part = n - i < FIRST ? n - i : FIRST;
            lower_all(a, b, hash + i, part, values);
            continue;
        }
        part = i > 0 && i < n - i ? i : n - i;
        mark_small(&f, low + i, high + i, part, mark);
        uint32_t marks = (part + ROWS - 1) / ROWS * MARKS;
        memset(mark + marks, 0, 64 * sizeof *mark);
        lower_marked(mark, marks, a, b, hash + i, values);
    }
}

static void prime(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                  uint64_t *values)
{
    double low[LEAT__PERMUTE_MOST + ROWS], high[LEAT__PERMUTE_MOST + ROWS];
    low[n] = high[n] = 0;
    for (uint32_t i = 0; i < n; i++) {
        low[i] = (double)(int64_t)(hash[i] & UINT32_MAX);
        high[i] = (double)(int64_t)(hash[i] >> 32);
    }
    const unsigned mode = begin_min64();
    for (uint32_t k = 0; k < count; k += GROUP) prime_group(a + k, b + k, hash, low, high, n, values + k);
    end_min64(mode);
}

INLINE V modulo61(V v)
{
    V s = fold61(v), over = sub64(s, all64(LEAT__PERMUTE_PRIME));
    return min_unsigned61(s, over);
}

static void prime_low(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                      uint64_t *values)
{
    for (uint32_t k = 0; k < count; k += LANES64 * 2) {
        V a0 = load(a + k), a1 = load(a + k + LANES64), b0 = load(b + k), b1 = load(b + k + LANES64);
        V top0 = shift_right32(a0), top1 = shift_right32(a1), low = all64(UINT32_MAX);
        V least0 = low, least1 = low;
        for (uint32_t i = 0; i < n; i++) {
            V h = all64(hash[i]), top = all64(hash[i] >> 32);
            least0 = min32(least0, and_(low, modulo61(multiply_add(a0, top0, h, top, b0))));
            least1 = min32(least1, and_(low, modulo61(multiply_add(a1, top1, h, top, b1))));
        }
        uint64_t out[2 * LANES64];
        store(out, least0);
        store(out + LANES64, least1);
        for (uint32_t j = 0; j < 2 * LANES64; j++)
            values[k + j] = out[j] < values[k + j] ? out[j] : values[k + j];
    }
}

/* ---- modulo 2^32 ---- */

static void affine(const uint64_t *a, const uint64_t *b, uint32_t count, const uint64_t *hash, uint32_t n,
                   uint64_t *values)
{
    uint32_t mixed[LEAT__PERMUTE_MOST], a32[LANES32], b32[LANES32], out[LANES32];
    for (uint32_t i = 0; i < n; i++) mixed[i] = leat__permute_mix((uint32_t)hash[i]);
    for (uint32_t k = 0; k < count; k += LANES32) {
        for (uint32_t j = 0; j < LANES32; j++) {
            a32[j] = (uint32_t)a[k + j];
            b32[j] = (uint32_t)b[k + j];
        }
        V factor = load(a32), plus = load(b32), least = all32(UINT32_MAX), other = least;
        for (uint32_t i = 0; i < n; i += 2) {
            least = min32(least, add32(mul32(factor, all32(mixed[i])), plus));
            other = min32(other, add32(mul32(factor, all32(mixed[i + 1 < n ? i + 1 : i])), plus));
        }
        store(out, min32(least, other));
        for (uint32_t j = 0; j < LANES32; j++)
            values[k + j] = out[j] < values[k + j] ? out[j] : values[k + j];
    }
}

/* ---- SHA-1 ---- */

typedef struct sha1_lanes {
    uint32_t word[16][LANES32]; /* of a block, one lane per text */
    uint32_t state[5][LANES32];
} sha1_lanes;

#define ROUND(f, constant)                                                                                   \
    {                                                                                                        \
        V t = add32(add32(rotate(a, 5), f), add32(add32(e, all32(constant)), w[i & 15]));                    \
        e = d, d = c, c = rotate(b, 30), b = a, a = t;                                                       \
    }
#define NEXT_WORD                                                                                            \
    w[i & 15] = rotate(xor_(xor_(w[(i + 13) & 15], w[(i + 8) & 15]), xor_(w[(i + 2) & 15], w[i & 15])), 1);

/* Processes one block of all lanes. */
static __attribute__((noinline)) void sha1_block(sha1_lanes *s)
{
    V w[16], a = load(s->state[0]), b = load(s->state[1]), c = load(s->state[2]), d = load(s->state[3]),
             e = load(s->state[4]);
    for (int i = 0; i < 16; i++) w[i] = load(s->word[i]);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) ROUND(choose(b, c, d), 0x5a827999)
#pragma GCC unroll 4
    for (int i = 16; i < 20; i++) {
        NEXT_WORD
        ROUND(choose(b, c, d), 0x5a827999)
    }
#pragma GCC unroll 20
    for (int i = 20; i < 40; i++) {
        NEXT_WORD
        ROUND(parity(b, c, d), 0x6ed9eba1)
    }
#pragma GCC unroll 20
    for (int i = 40; i < 60; i++) {
        NEXT_WORD
        ROUND(majority(b, c, d), 0x8f1bbcdc)
    }
#pragma GCC unroll 20
    for (int i = 60; i < 80; i++) {
        NEXT_WORD
        ROUND(parity(b, c, d), 0xca62c1d6)
    }
    store(s->state[0], add32(a, load(s->state[0])));
    store(s->state[1], add32(b, load(s->state[1])));
    store(s->state[2], add32(c, load(s->state[2])));
    store(s->state[3], add32(d, load(s->state[3])));
    store(s->state[4], add32(e, load(s->state[4])));
}

/* Stores block `block` of the padded text as big-endian words of a lane. */
INLINE void sha1_words(sha1_lanes *s, uint32_t lane, const uint8_t *text, uint32_t len, uint32_t block,
                       uint32_t blocks)
{
    uint8_t bytes[128];
    uint32_t from = 64 * block, here = len > from ? len - from : 0;
    if (here > 64) here = 64;
    memcpy(bytes, text + (here ? from : 0), 64);
    memset(bytes + here, 0, 64);
    if (len >= from) bytes[here] = 0x80;
    for (uint32_t i = 0; i < 16; i++) s->word[i][lane] = __builtin_bswap32(leat__load_u32(bytes + 4 * i));
    if (block + 1 == blocks) s->word[15][lane] = len << 3;
}

/* Hashes texts with the same number of blocks. */
static void sha1_group(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint32_t blocks,
                       uint64_t *out)
{
    static const uint32_t begin[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    sha1_lanes s;
    for (uint32_t j = 0; j < 5; j++) store(s.state[j], all32(begin[j]));
    for (uint32_t b = 0; b < blocks; b++) {
        for (uint32_t lane = 0; lane < LANES32; lane++) {
            uint32_t i = lane < n ? lane : 0;
            sha1_words(&s, lane, text[i], len[i], b, blocks);
        }
        sha1_block(&s);
    }
    for (uint32_t lane = 0; lane < n; lane++) out[lane] = __builtin_bswap32(s.state[0][lane]);
}

/* Texts wait until LANES32 of them have the same number of blocks, 1 or 2. Longer texts do not wait. */
static void sha1(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out)
{
    const uint8_t *waiting[2][LANES32];
    uint32_t length[2][LANES32], count[2] = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = len[i] > 55;
        if (len[i] > 119) {
            uint8_t sum[LEAT__SHA1_BYTES];
            leat__sha1_of(text[i], len[i], sum);
            *out++ = leat__load_u32(sum);
            continue;
        }
        waiting[k][count[k]] = text[i];
        length[k][count[k]++] = len[i];
        if (count[k] < LANES32) continue;
        sha1_group(waiting[k], length[k], LANES32, k + 1, out);
        out += LANES32;
        count[k] = 0;
    }
    for (uint32_t k = 0; k < 2; k++) {
        if (count[k] > 0) sha1_group(waiting[k], length[k], count[k], k + 1, out);
        out += count[k];
    }
}

/* ---- XXH64 ---- */

#define XXH_P1 UINT64_C(0x9E3779B185EBCA87)
#define XXH_P2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define XXH_P3 UINT64_C(0x165667B19E3779F9)
#define XXH_P4 UINT64_C(0x85EBCA77C2B2AE63)
#define XXH_P5 UINT64_C(0x27D4EB2F165667C5)

INLINE uint64_t turn(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

INLINE uint64_t xxh_round(uint64_t acc, uint64_t word)
{
    return turn(acc + word * XXH_P2, 31) * XXH_P1;
}

/* Hashes the stripes of a text of 32 bytes or more. */
INLINE uint64_t xxh_stripes(const uint8_t **p, const uint8_t *end)
{
    uint64_t a = XXH_P1 + XXH_P2, b = XXH_P2, c = 0, d = 0 - XXH_P1;
    for (; end - *p >= 32; *p += 32) {
        a = xxh_round(a, leat__load_u64(*p));
        b = xxh_round(b, leat__load_u64(*p + 8));
        c = xxh_round(c, leat__load_u64(*p + 16));
        d = xxh_round(d, leat__load_u64(*p + 24));
    }
    uint64_t h = turn(a, 1) + turn(b, 7) + turn(c, 12) + turn(d, 18);
    h = (h ^ xxh_round(0, a)) * XXH_P1 + XXH_P4;
    h = (h ^ xxh_round(0, b)) * XXH_P1 + XXH_P4;
    h = (h ^ xxh_round(0, c)) * XXH_P1 + XXH_P4;
    return (h ^ xxh_round(0, d)) * XXH_P1 + XXH_P4;
}

INLINE uint64_t xxh64_of(const uint8_t *p, uint32_t len)
{
    const uint8_t *end = p + len;
    uint64_t h = (len >= 32 ? xxh_stripes(&p, end) : XXH_P5) + len;
    for (; end - p >= 8; p += 8) h = turn(h ^ xxh_round(0, leat__load_u64(p)), 27) * XXH_P1 + XXH_P4;
    if (end - p >= 4) {
        h = turn(h ^ leat__load_u32(p) * XXH_P1, 23) * XXH_P2 + XXH_P3;
        p += 4;
    }
    for (; p < end; p++) h = turn(h ^ *p * XXH_P5, 11) * XXH_P1;
    h = (h ^ h >> 33) * XXH_P2;
    h = (h ^ h >> 29) * XXH_P3;
    return h ^ h >> 32;
}

#ifndef HAS_XXH64
/* Inlined: calls of libxxhash took longer for texts this short. */
static void xxh64(const uint8_t *const *text, const uint32_t *len, uint32_t n, uint64_t *out)
{
    for (uint32_t i = 0; i < n; i++) out[i] = xxh64_of(text[i], len[i]);
}
#endif
