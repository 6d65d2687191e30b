/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of a scanned text: their hashes and lengths, the stop words, and the few patterns that
 * may begin at the candidates of the first pass. Included after scan_tmpl.h.
 */
#include "text/word_table.h"

/* Kinds of a hit. */
enum { HIT_LOREM = 1, HIT_SCRIPT = 2, HIT_POLICY = 4, HIT_NEMO_POLICY = 8 };

#ifndef HAS_WORD_PASS
/* Not inlined: the loop over words has no registers left for it. */
static NOINLINE uint64_t hash_long_word(const uint8_t *p, uint32_t len)
{
    return leat__hash_run(p, len, 0);
}

INLINE void hash_words(leat__scorer *s, const int nonascii)
{
    const leat__word_table *table = leat__word_table_get();
    const uint64_t multiplier = table->multiplier;
    const uint32_t *bounds = s->bounds, count = s->word_count;
    const uint8_t *text = s->text;
    uint64_t *hash = s->word_hash, found = 0;
    uint32_t *before = s->before, chars_before = 0, longest = 0, distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = bounds[2 * i], len = bounds[2 * i + 1] - start;
        const uint8_t *p = text + start, *mask = leat__mask_of(len < 16 ? len : 16);
        uint64_t a = leat__masked_u64(p, mask, 0);
        if (RARE(len > 16)) hash[i] = hash_long_word(p, len);
        else hash[i] = leat__hash_short(a, leat__masked_u64(p, mask, 8), len);
        const leat__word_entry *e = &table->entry[a * multiplier >> 58];
        uint64_t same = 0u - (uint64_t)((e->key == a) & (e->len == len));
        found += same & e->count;
        distinct |= (uint32_t)same & e->bit;
        uint32_t chars = nonascii ? chars_in(s, start, start + len) : len;
        longest = chars > longest ? chars : longest;
        before[i] = chars_before;
        chars_before += chars;
    }
    before[count] = chars_before;
    s->counts.longest_word = longest;
    s->counts.stop_words = (uint32_t)found;
    s->counts.stop_words_distinct = bits_of(distinct);
    s->counts.symbol_words = (uint32_t)(found >> 32);
}

static NOINLINE void word_pass(leat__scorer *s)
{
    if (s->nonascii) hash_words(s, 1);
    else hash_words(s, 0);
}
#endif

/* True when the text at p is `word`, ignoring case. */
INLINE int says(const leat__scorer *s, const uint8_t *p, const char *word, size_t len)
{
    if (p < s->text) return 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = p[i];
        if (c >= 'A' && c <= 'Z') c |= 32;
        if (c != (uint8_t)word[i]) return 0;
    }
    return 1;
}
#define SAYS(p, word) says(s, (p), (word), sizeof(word) - 1)

/* True for NeMo's long sentences about cookies that contain none of the short phrases; p is at the k of their
 * first "cookie". */
static int nemo_cookies(const leat__scorer *s, const uint8_t *p)
{
    return SAYS(p - 13, "necessary cookies are absolutely essential for the website to function properly. "
                        "this category only includes cookies that ensures basic functionalities and security "
                        "features of the website. these cookies do not store any personal information.") ||
                   SAYS(p - 7, "any cookies that may not be particularly necessary for the website to "
                               "function and is used specifically to collect user personal data via "
                               "analytics, ads, other embedded contents are termed as non-necessary cookies. "
                               "it is mandatory to procure user consent prior to running these cookies on "
                               "your website.") ||
                   SAYS(p - 61, "if you continue to browse this site without changing your cookie settings, "
                                "you agree to this use. acceptread more")
               ? HIT_NEMO_POLICY
               : 0;
}

static int policy_hit(const leat__scorer *s, const uint8_t *p)
{
    switch (*p | 32) {
    case 'k': /* "cookie" */
        if (!SAYS(p - 3, "cookie")) return 0;
        if (SAYS(p - 3, "cookie policy")) return HIT_POLICY;
        if (SAYS(p - 3, "cookies") &&
            (SAYS(p - 8, "uses ") || SAYS(p - 7, "use ") || SAYS(p - 10, "use of ")))
            return HIT_POLICY;
        return nemo_cookies(s, p);
    case 'v': /* "privacy", "javascript" */
        if (SAYS(p - 2, "javascript")) return HIT_SCRIPT;
        if (SAYS(p - 3, "privacy policy")) return HIT_POLICY;
        if (SAYS(p - 3, "privacy overview") || SAYS(p - 3, "privacy & cookies policy") ||
            SAYS(p - 3, "privacy and cookies policy"))
            return HIT_NEMO_POLICY;
        return 0;
    case 'r': return SAYS(p - 2, "terms of use") ? HIT_POLICY : 0;
    case 'i': return SAYS(p - 6, "lorem ipsum") ? HIT_LOREM : 0;
    default: return 0;
    }
}

static int url_char(const uint8_t *p, const uint8_t *end)
{
    static const char marks[] = "$-_@.&+/:=?#~!*(),";
    uint8_t c = *p;
    if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z')) return 1;
    if (c != 0 && c < 0x80 && strchr(marks, c)) return 1;
    if (c != '%' || end - p < 3) return 0;
    for (int i = 1; i <= 2; i++) {
        uint8_t h = p[i] | 32;
        if (!((p[i] >= '0' && p[i] <= '9') || (h >= 'a' && h <= 'f'))) return 0;
    }
    return 3;
}

/* Returns the end of a URL whose "://" is at p, or NULL. */
static const uint8_t *url_at(leat__scorer *s, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *from = p - 4;
    if (p - s->text >= 5 && memcmp(p - 5, "https", 5) == 0) from = p - 5;
    else if (p - s->text < 4 || memcmp(p - 4, "http", 4) != 0) return NULL;
    const uint8_t *q = p + 3;
    int step;
    while (q < end && (step = url_char(q, end)) > 0) q += step;
    if (q == p + 3) return NULL;
    s->counts.urls++;
    s->counts.url_chars += (uint32_t)(q - from);
    return q;
}

/* Counts NeMo's symbol words: they have more than half as many sequences of # as characters. "#" itself is in
 * the table of words; others contain "#x#". Each word is counted once, at its first "#x#". */
static void hash_word(leat__scorer *s, uint32_t at)
{
    uint32_t lo = 0, hi = s->word_count;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->bounds[2 * mid] <= at) lo = mid;
        else hi = mid;
    }
    const uint8_t *a = s->text + s->bounds[2 * lo], *b = s->text + s->bounds[2 * lo + 1], *p = s->text + at;
    if (p + 2 >= b) return;
    for (const uint8_t *q = a; q < p; q++)
        if (q[0] == '#' && q[1] != '#' && q[2] == '#') return;
    uint32_t runs = 0, chars = 0;
    for (const uint8_t *q = a; q < b; q++) {
        runs += *q == '#' && (q == a || q[-1] != '#');
        chars += (*q & 0xc0) != 0x80;
    }
    if (2 * runs > chars) s->counts.symbol_words++;
}

static NOINLINE void pattern_pass(leat__scorer *s)
{
    const uint8_t *end = s->text + s->counts.bytes, *url_end = s->text;
    uint32_t next_dots = 0, ellipses = 0;
    s->hit_count = 0;
    for (uint32_t i = 0; i < s->candidate_count; i++) {
        uint32_t at = s->candidate[i];
        const uint8_t *p = s->text + at;
        int hit = 0;
        if (*p == '.') {
            if (at >= next_dots && end - p >= 3) {
                ellipses++;
                next_dots = at + 3;
            }
        } else if (*p == 0xe2) {
            ellipses++;
        } else if (*p == ':') {
            const uint8_t *q = p >= url_end && end - p > 3 ? url_at(s, p, end) : NULL;
            if (q) url_end = q;
        } else if (*p == '#') {
            if (s->word_count > 0) hash_word(s, at);
        } else {
            hit = policy_hit(s, p);
        }
        if (hit) {
            s->hit[s->hit_count] = at;
            s->hit_kind[s->hit_count++] = (uint8_t)hit;
        }
    }
    s->counts.ellipses = ellipses;
}
