/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits words as spaCy does: removes characters from both ends of a word until nothing matches or the rest
 * is a known contraction, then splits the rest at icons.
 */
#include "text/english_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "base/thread.h"
#include "text/fold.h"
#include "text/unicode.h"

/* The words of each contraction; "‘s" is one. */
static const char *const contraction[] = {
    "ai nt",      "are nt",     "can not",     "ca nt",       "ca nt ve",    "could nt",    "could nt ve",
    "could ve",   "dare nt",    "did nt",      "did nt ve",   "does nt",     "does nt ve",  "do nt",
    "do nt ve",   "gon na",     "got ta",      "had nt",      "had nt ve",   "has nt",      "have nt",
    "he d",       "he d ve",    "he ll ve",    "he s",        "how d",       "how d ve",    "how ll",
    "how ll ve",  "how re",     "how s",       "how ve",      "i d",         "i d ve",      "i ll ve",
    "i m",        "i m a",      "is nt",       "it d",        "it d ve",     "it ll",       "it ll ve",
    "i ve",       "may nt",     "may nt ve",   "might nt",    "might nt ve", "might ve",    "must nt",
    "must nt ve", "must ve",    "need nt",     "need nt ve",  "not ve",      "ought nt",    "ought nt ve",
    "sha nt",     "sha nt ve",  "she d ve",    "she ll ve",   "she s",       "should nt",   "should nt ve",
    "should ve",  "that d",     "that d ve",   "that ll",     "that ll ve",  "that s",      "there d",
    "there d ve", "there ll",   "there ll ve", "there re",    "there s",     "there ve",    "these d",
    "these d ve", "these ll",   "these ll ve", "these re",    "these ve",    "they d",      "they d ve",
    "they ll",    "they ll ve", "they re",     "they ve",     "this d",      "this d ve",   "this ll",
    "this ll ve", "this s",     "those d",     "those d ve",  "those ll",    "those ll ve", "those re",
    "those ve",   "was nt",     "we d",        "we d ve",     "we ll ve",    "were nt",     "we ve",
    "what d",     "what d ve",  "what ll",     "what ll ve",  "what re",     "what s",      "what ve",
    "when d",     "when d ve",  "when ll",     "when ll ve",  "when re",     "when s",      "when ve",
    "where d",    "where d ve", "where ll",    "where ll ve", "where re",    "where s",     "where ve",
    "who d",      "who d ve",   "who ll",      "who ll ve",   "who s",       "who ve",      "why d",
    "why d ve",   "why ll",     "why ll ve",   "why re",      "why s",       "why ve",      "wo nt",
    "wo nt ve",   "would nt",   "would nt ve", "would ve",    "y all",       "you d",       "you d ve",
    "you ll",     "you ll ve",  "you re",      "you ve",      "‘s",
};

/* Split off after a digit. One entry is two units: spaCy's list lacks a separator there. */
static const char *const unit[] = {
    "km",  "km²", "km³",  "m",   "m²",   "m³", "dm",   "dm²",  "dm³", "cm",  "cm²", "cm³", "mm",
    "mm²", "mm³", "ha",   "µm",  "nm",   "yd", "in",   "ft",   "kg",  "g",   "mg",  "µg",  "t",
    "lb",  "oz",  "kmh",  "mph", "mbar", "mb", "kb",   "gb",   "tb",  "км",  "км²", "км³", "м",
    "м²",  "м³",  "дм",   "дм²", "дм³",  "см", "см²",  "см³",  "мм",  "мм²", "мм³", "нм",  "кг",
    "г",   "мг",  "мбар", "кб",  "мб",   "гб", "тбكم", "كم²",  "كم³", "م",   "م²",  "م³",  "سم",
    "سم²", "سم³", "مم",   "مم²", "مم³",  "كم", "غرام", "جرام", "جم",  "كغ",  "ملغ", "كوب", "اكواب",
};

#define UNIT_MAX 10 /* bytes */

static leat__contractions table;

/* Loads the bytes of a word of 1 to LEAT__CONTRACTION_MAX bytes. Uses overlapping loads, because memcpy() of
 * a length that the compiler does not know is a call. */
static inline void key_of(const uint8_t *p, size_t len, uint64_t *low, uint64_t *high)
{
    *high = 0;
    if (len >= 8) {
        *low = leat__load_u64(p);
        if (len > 8) *high = leat__load_u64(p + len - 8) >> (128 - 8 * len);
    } else if (len >= 4) {
        *low = leat__load_u32(p) | (uint64_t)leat__load_u32(p + len - 4) << (8 * len - 32);
    } else {
        *low = p[0] | (uint64_t)p[len / 2] << (8 * (len / 2)) | (uint64_t)p[len - 1] << (8 * (len - 1));
    }
}

static bool put_entry(uint32_t number, const char *parts)
{
    uint8_t word[16];
    size_t len = 0;
    leat__contraction *e = &table.entry[number];
    for (const char *p = parts; *p; p++)
        if (*p != ' ') word[len++] = (uint8_t)*p;
    key_of(word, len, &e->low, &e->high);
    e->parts = parts;
    if (leat__contraction_of(&table, e->low, e->high) != &table.entry[0]) return false;
    table.slot[(e->low + (e->high << 3)) * table.multiplier >> (64 - LEAT__CONTRACTION_LOG)] =
        (uint8_t)number;
    return true;
}

/* Finds a multiplier that gives every contraction a different slot. */
static void make_table(void)
{
    table.entry[0] = (leat__contraction){UINT64_MAX, UINT64_MAX, NULL};
    for (table.multiplier = UINT64_C(0x9e3779b97f4a7c15);; table.multiplier += 2) {
        size_t i = 0;
        memset(table.slot, 0, sizeof table.slot);
        while (i < LEAT_COUNT(contraction) && put_entry((uint32_t)i + 1, contraction[i])) i++;
        if (i == LEAT_COUNT(contraction)) return;
    }
}

const leat__contractions *leat__english_contractions(void)
{
    static leat__once once = LEAT__ONCE_INIT;
    leat__once_run(&once, make_table);
    return &table;
}

/* Returns the contraction that the word is, or NULL. */
static const leat__contraction *special(const uint8_t *p, size_t len)
{
    uint64_t low, high;
    if (len < 2 || len > LEAT__CONTRACTION_MAX) return NULL;
    key_of(p, len, &low, &high);
    const leat__contraction *c = leat__contraction_of(leat__english_contractions(), low, high);
    return c->low == low && c->high == high ? c : NULL;
}

void leat__english_put_parts(leat__word_list *list, const leat__contraction *c)
{
    const char *parts = c->parts;
    while (parts) {
        const char *blank = strchr(parts, ' ');
        leat__word_list_put(list, (const uint8_t *)parts, blank ? (size_t)(blank - parts) : strlen(parts));
        parts = blank ? blank + 1 : NULL;
    }
}

static uint32_t flags_at(const uint8_t *p, uint32_t *bytes)
{
    return leat__fold_of(leat__utf8_decode(p, bytes))->flags;
}

static size_t last_char(const uint8_t *p, size_t s, size_t e)
{
    do e--;
    while (e > s && (p[e] & 0xc0) == 0x80);
    return e;
}

static size_t prefix_of(const uint8_t *p, size_t s, size_t e)
{
    uint32_t bytes;
    if (s == e || !(flags_at(p + s, &bytes) & (LEAT__FOLD_ICON | LEAT__FOLD_PREFIX))) return 0;
    return bytes;
}

/* Returns the length of the unit after the last digit, 0 without one. */
static size_t unit_of(const uint8_t *p, size_t s, size_t e)
{
    size_t n = 0;
    while (n <= UNIT_MAX && e - s > n && p[e - n - 1] != '0') n++;
    if (n == 0 || n > UNIT_MAX || e - s == n) return 0;
    for (size_t i = 0; i < LEAT_COUNT(unit); i++)
        if ((uint8_t)unit[i][0] == p[e - n] && strncmp(unit[i], (const char *)p + e - n, n) == 0 &&
            unit[i][n] == 0)
            return n;
    return 0;
}

/* Returns how many bytes to remove from the end. *is_unit: true for a unit, which may have several
 * characters; false for a single character. */
static size_t suffix_of(const uint8_t *p, size_t s, size_t e, bool *is_unit)
{
    uint32_t bytes;
    *is_unit = false;
    if (s == e) return 0;
    size_t n = unit_of(p, s, e);
    if (n > 0) {
        *is_unit = true;
        return n;
    }
    size_t last = last_char(p, s, e);
    uint32_t flags = flags_at(p + last, &bytes);
    bool money = (flags & LEAT__FOLD_MONEY) && last > s && p[last - 1] == '0';
    return money || flags & (LEAT__FOLD_ICON | LEAT__FOLD_SUFFIX) ? e - last : 0;
}

/* True for an icon, and for < = > between a letter or digit and a letter. */
static bool splits(const uint8_t *p, size_t s, size_t e, size_t at, uint32_t *bytes)
{
    uint32_t n;
    if (flags_at(p + at, bytes) & LEAT__FOLD_ICON) return true;
    if (p[at] < '<' || p[at] > '>' || at == s || at + 1 == e) return false;
    uint32_t before = leat__utf8_decode(p + last_char(p, s, at), &n);
    uint32_t after = leat__utf8_decode(p + at + 1, &n);
    return (before == '0' || leat__unicode_of(before) & LEAT__UNI_ALPHA) &&
           leat__unicode_of(after) & LEAT__UNI_ALPHA;
}

static void put_inner(leat__word_list *list, const uint8_t *p, size_t s, size_t e)
{
    const leat__contraction *c = special(p + s, e - s);
    uint32_t bytes;
    if (c) {
        leat__english_put_parts(list, c);
        return;
    }
    size_t from = s;
    for (size_t i = s; i < e; i += bytes) {
        if (!splits(p, s, e, i, &bytes) || i == s) continue;
        leat__word_list_put(list, p + from, i - from);
        leat__word_list_put(list, p + i, bytes);
        from = i + bytes;
    }
    leat__word_list_put(list, p + from, e - from);
}

/* Adds every character between s and e as a word. */
static void put_chars(leat__word_list *list, const uint8_t *p, size_t s, size_t e)
{
    uint32_t bytes;
    for (; s < e; s += bytes) {
        leat__utf8_decode(p + s, &bytes);
        leat__word_list_put(list, p + s, bytes);
    }
}

/* True for a word of a to z and 0: only a unit can be split off. */
static bool is_plain(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((p[i] < 'a' || p[i] > 'z') && p[i] != '0') return false;
    return true;
}

static void put_plain(leat__word_list *list, const uint8_t *p, size_t len)
{
    const leat__contraction *c = special(p, len);
    if (c) {
        leat__english_put_parts(list, c);
        return;
    }
    size_t after = unit_of(p, 0, len);
    leat__word_list_put(list, p, len - after);
    leat__word_list_put(list, p + len - after, after);
}

/* Splits any word. Before a unit there is a digit, so nothing more is removed from the end after it. */
static void put_word(leat__word_list *list, const uint8_t *p, size_t len)
{
    size_t s = 0, e = len, unit_end = 0, last = 0;
    while (s < e && e - s != last && !special(p + s, e - s)) {
        bool is_unit;
        last = e - s;
        size_t before = prefix_of(p, s, e);
        if (before && special(p + s + before, e - s - before)) {
            s += before;
            break;
        }
        size_t after = suffix_of(p, s + before, e, &is_unit);
        if (after && is_unit) unit_end = e;
        if (after && special(p + s, e - after - s)) {
            e -= after;
            break;
        }
        s += before;
        e -= after;
    }
    put_chars(list, p, 0, s);
    if (s < e) put_inner(list, p, s, e);
    if (unit_end) {
        leat__word_list_put(list, p + e, unit_end - e);
        e = unit_end;
    }
    put_chars(list, p, e, len);
}

void leat__english_split(leat__word_list *list, const uint8_t *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const uint8_t *end = memchr(text + i, ' ', len - i);
        size_t n = end ? (size_t)(end - text) - i : len - i;
        if (is_plain(text + i, n)) put_plain(list, text + i, n);
        else put_word(list, text + i, n);
        i += n + 1;
    }
}

/* True for bytes that may continue a word or number. A number may contain a point or a comma, which
 * otherwise separate words. */
static bool goes_on(uint8_t c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' ||
           c == ',';
}

size_t leat__english_words(leat__word_list *list, const uint8_t *text, size_t len, size_t from, size_t to,
                           uint8_t *temp)
{
    while (to < len && goes_on(text[to])) to++;
    leat__english_split(list, temp, leat__fold_simplify(text, len, from, to, temp));
    return to;
}
