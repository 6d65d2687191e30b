/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes sketches from shingles; owns the memory of a sketcher.
 */
#include "text/sketch.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "text/hash_words.h"
#include "text/score.h"
#include "text/text_dsp.h"

#define SLACK 64
#define DISTINCT_MAX 1024
#define REPEATS_AFTER 4 /* rounds after which repeated shingles are removed */
/* From this many shingles per bin on, most are skipped. With 9 of them tried for each of 260 bins, a bin
 * stays empty in 3 texts of 100. */
#define MANY_PER_BIN 11
#define LEAST_PER_BIN 9
/* From this many shingles per bin on, the smallest are tried first. With 2 per bin, 35 of 260 bins stay
 * empty, and then only shingles of these bins are tried. */
#define SOME_PER_BIN 6
#define FIRST_PER_BIN 2
#define PART 512u        /* shingles processed at once */
#define CHUNK (6 * PART) /* shingles collected before they are tried */

int leat__sketcher_init(leat__sketcher *s, uint32_t words, uint32_t chars, leat_error *err)
{
    LEAT_ASSERT((words > 0) != (chars > 0));
    memset(s, 0, sizeof *s);
    s->words = words;
    s->chars = chars;
    return leat__sketcher_reserve(s, 64u << 10, err);
}

void leat__sketcher_reset(leat__sketcher *s)
{
    leat__free(s->slab);
    leat__free(s->text_slab);
    memset(s, 0, sizeof *s);
}

/* A word takes at least two bytes including its separator, a character one byte. */
static uint64_t item_count(const leat__sketcher *s, uint64_t bytes)
{
    return (s->words ? bytes / 2 + 1 : bytes) + SLACK;
}

static uint64_t folded_bytes(uint64_t bytes)
{
    return bytes + 2 * LEAT__TEXT_PAD;
}

static uint64_t array_bytes(const leat__sketcher *s, uint64_t bytes)
{
    uint64_t items = item_count(s, bytes);
    return (s->words ? 2 * items * 4 + items * 8 : items * 4 + folded_bytes(bytes)) + items * 8 + 3 * 704;
}

uint64_t leat__sketcher_need(const leat__sketcher *s, uint64_t bytes)
{
    return array_bytes(s, bytes) + bytes + 2 * LEAT__TEXT_PAD;
}

int leat__sketcher_reserve(leat__sketcher *s, size_t bytes, leat_error *err)
{
    if (bytes > LEAT__TEXT_MAX)
        return leat__fail(err, LEAT_ELIMIT, "a text of %s is larger than %s", leat__as_size(bytes).text,
                          leat__as_size(LEAT__TEXT_MAX).text);
    if (bytes <= s->text_capacity && s->text) return 0;
    uint64_t need = bytes + 2 * LEAT__TEXT_PAD, arrays = array_bytes(s, bytes);
    uint64_t items = item_count(s, bytes);
    leat__free(s->text_slab);
    leat__free(s->slab);
    s->text = NULL;
    s->text_capacity = 0;
    s->slab = NULL;
    s->text_slab = leat__alloc_aligned(LEAT__MEM_CURATE, need, 64);
    if (s->text_slab) s->slab = leat__alloc_aligned(LEAT__MEM_CURATE, arrays, 64);
    if (!s->slab) return leat__fail_nomem(err, need + arrays, "the shingles of a document");
    s->text_slab_bytes = need;
    s->slab_bytes = arrays;
    s->text = s->text_slab;
    s->text_capacity = bytes;
    uint8_t *p = s->slab;
    s->shingle = (uint64_t *)p;
    p += items * 8 + 704;
    s->word_hash = (uint64_t *)p;
    if (s->words) p += items * 8 + 704;
    s->bounds = (uint32_t *)p;
    if (s->chars) s->folded = p + items * 4 + 704;
    return 0;
}

int leat__sketcher_shingles(leat__sketcher *s, size_t len, uint32_t *count, leat_error *err)
{
    LEAT_ASSERT(len <= s->text_capacity);
    (void)err;
    *count = leat__text_dsp_now()->shingles(s, len);
    return 0;
}

/* Writes the distinct values among the n to `out`, if there are at most DISTINCT_MAX. Otherwise returns n,
 * and `out` is not valid. */
static uint32_t distinct(const uint64_t *x, uint32_t n, uint64_t *out)
{
    uint16_t slot[2 * DISTINCT_MAX] = {0}; /* number of the value, from 1 */
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = (uint32_t)(x[i] * LEAT__HW1 >> 32) % (2 * DISTINCT_MAX);
        while (slot[at] && out[slot[at] - 1] != x[i]) at = (at + 1) % (2 * DISTINCT_MAX);
        if (slot[at]) continue;
        if (count == DISTINCT_MAX) return n;
        out[count++] = x[i];
        slot[at] = (uint16_t)count;
    }
    return count;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    uint32_t least = a < b ? a : b;
    __asm__("" : "+r"(least)); /* otherwise the compiler moves both to vectors for one minimum, and back */
    return least;
}

/* The first round: updates the least values of all bins. Values are below UINT32_MAX, which marks an empty
 * bin. */
static void lower_bins(const uint64_t *x, uint32_t n, uint32_t k, uint32_t *least)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bin = (uint32_t)((x[i] >> 32) * k >> 32), v = (uint32_t)x[i], before = least[bin];
        v -= v == UINT32_MAX;
        least[bin] = smaller(v, before);
    }
}

/* Returns the bound for lower halves below which each bin is expected to have `per_bin` values. */
static uint32_t bound_of(uint32_t per_bin, uint32_t n, uint32_t k)
{
    return (uint32_t)(((uint64_t)per_bin * k << 32) / n);
}

/* Like lower_bins(), only for shingles whose bins have no value below `most` yet. */
static void lower_open(const uint64_t *x, uint32_t n, uint32_t k, uint32_t most, uint32_t *least)
{
    uint64_t kept[PART + 8];
    const leat__text_dsp *dsp = leat__text_dsp_now();
    for (uint32_t i = 0; i < n; i += PART)
        lower_bins(kept, dsp->keep_open(x + i, LEAT_MIN(n - i, PART), k, least, most, kept), k, least);
}

/* Same result as lower_bins(): tries the values below `most` first; no other value can lower the bins that
 * have one. */
static void lower_some(const uint64_t *x, uint32_t n, uint32_t k, uint32_t most, uint32_t *least)
{
    uint64_t kept[PART + 8];
    const leat__text_dsp *dsp = leat__text_dsp_now();
    for (uint32_t i = 0; i < n; i += PART)
        lower_bins(kept, dsp->keep_low(x + i, LEAT_MIN(n - i, PART), most, kept), k, least);
    lower_open(x, n, k, most, least);
}

/* Same result as lower_bins(), for many shingles: first tries the values of which each bin is expected to
 * have LEAST_PER_BIN; then, if a bin is empty, the others. */
static void lower_many(const uint64_t *x, uint32_t n, uint32_t k, uint32_t *least)
{
    uint64_t kept[CHUNK + 8];
    const uint32_t first = bound_of(FIRST_PER_BIN, n, k), most = bound_of(LEAST_PER_BIN, n, k);
    const leat__text_dsp *dsp = leat__text_dsp_now();
    for (uint32_t i = 0, held = 0; i < n; i += PART) {
        held += dsp->keep_low(x + i, LEAT_MIN(n - i, PART), most, kept + held);
        if (held + PART <= CHUNK && n - i > PART) continue;
        lower_some(kept, held, k, first, least);
        held = 0;
    }
    uint32_t empty = 0;
    for (uint32_t bin = 0; bin < k; bin++) empty += least[bin] == UINT32_MAX;
    if (empty > 0) lower_open(x, n, k, most, least);
}

/* Runs the first round. Afterwards `least` is 0 for bins that have a value, because no value is below 0.
 * Returns how many have one. */
static uint32_t first_round(const uint64_t *x, uint32_t n, uint32_t k, uint32_t *least, uint32_t *out)
{
    uint32_t count = 0;
    memset(least, 0xff, 4 * (size_t)k);
    if (n / k >= MANY_PER_BIN) lower_many(x, n, k, least);
    else if (n / k >= SOME_PER_BIN) lower_some(x, n, k, bound_of(FIRST_PER_BIN, n, k), least);
    else lower_bins(x, n, k, least);
    for (uint32_t bin = 0; bin < k; bin++) {
        bool filled = least[bin] != UINT32_MAX;
        out[bin] = least[bin];
        least[bin] = filled ? 0 : UINT32_MAX;
        count += filled;
    }
    return count;
}

static inline uint64_t hash_again(uint64_t x, uint32_t r)
{
    return leat__fold(x ^ LEAT__HW0, LEAT__HW1 + 2 * (uint64_t)r * LEAT__HW2);
}

/* For at most PART shingles, writes the hashes of round r whose bins were empty when it began. */
static uint32_t hash_open(const uint64_t *x, uint32_t n, uint32_t k, uint32_t r, const uint32_t *least,
                          uint64_t *out)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = hash_again(x[i], r);
        out[found] = h;
        found += r >= k || least[(h >> 32) * k >> 32] > 0;
    }
    return found;
}

/* Runs another round: gives empty bins their least value. Returns how many it fills. */
static uint32_t fill_bins(const uint64_t *x, uint32_t n, uint32_t k, uint32_t r, uint32_t *least,
                          uint32_t *out)
{
    uint64_t kept[PART + 1];
    uint16_t touched[LEAT__SKETCH_MAX + 1];
    uint32_t count = 0;
    for (uint32_t part = 0; part < n; part += PART) {
        uint32_t some = hash_open(x + part, LEAT_MIN(n - part, PART), k, r, least, kept);
        for (uint32_t i = 0; i < some; i++) {
            uint64_t h = kept[i];
            uint32_t bin = r < k ? (uint32_t)((h >> 32) * k >> 32) : r - k, v = (uint32_t)h, before;
            v -= v == UINT32_MAX;
            LEAT_ASSERT(bin < k);
            before = least[bin];
            touched[count] = (uint16_t)bin;
            count += before == UINT32_MAX;
            least[bin] = smaller(v, before);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bin = touched[i];
        out[bin] = least[bin] ^ r * UINT32_C(0x9e3779b1);
        least[bin] = 0;
    }
    return count;
}

/* Round r > 0 hashes again. After K rounds the hash alone selects the value, and round K + i fills bin i for
 * any set, so the loop ends. A long text that needs many rounds has few distinct shingles, so repeats are
 * removed first. */
void leat__sketch_fss(const uint64_t *x, uint32_t n, uint32_t k, uint32_t *out)
{
    LEAT_ASSERT(n > 0 && k > 0 && k <= LEAT__SKETCH_MAX);
    uint64_t few[DISTINCT_MAX];
    uint32_t least[LEAT__SKETCH_MAX];
    uint32_t left = k - first_round(x, n, k, least, out);
    for (uint32_t r = 1; left > 0; r++) {
        if (r == REPEATS_AFTER && n > 4 * k) {
            n = distinct(x, n, few);
            if (n <= DISTINCT_MAX) x = few;
        }
        left -= fill_bins(x, n, k, r, least, out);
    }
}

uint64_t leat__sketch_band(const uint32_t *values, uint32_t rows)
{
    LEAT_ASSERT(rows > 0);
    uint64_t h = rows;
    uint32_t i = 0;
    for (; i + 2 <= rows; i += 2) h = leat__fold(h ^ LEAT__HW0, leat__load_u64(values + i) ^ LEAT__HW1);
    if (i < rows) h = leat__fold(h ^ LEAT__HW0, values[i] ^ LEAT__HW1);
    return h ^ h >> 31;
}

void leat__sketch_bytes(const uint32_t *values, uint32_t k, uint8_t *out)
{
    for (uint32_t i = 0; i < k; i++) out[i] = (uint8_t)(values[i] * UINT32_C(0x9e3779b1) >> 24);
}

uint32_t leat__sketch_equal(const uint8_t *a, const uint8_t *b, uint32_t k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k; i++) n += a[i] == b[i];
    return n;
}

double leat__sketch_similarity(uint32_t equal, uint32_t k)
{
    LEAT_ASSERT(equal <= k);
    double share = k ? (double)equal / k : 0;
    double s = (share - 1.0 / 256) / (1 - 1.0 / 256);
    return s < 0 ? 0 : s;
}

double leat__sketch_curve(double similarity, uint32_t bands, uint32_t rows)
{
    LEAT_ASSERT(similarity >= 0 && similarity <= 1);
    return 1 - pow(1 - pow(similarity, rows), bands);
}
