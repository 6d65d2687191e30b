/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits words as spaCy does: characters are taken off both ends of a word until nothing matches or
 * the rest is a known contraction; the rest is split at icons.
 */
#include "text/english_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/num.h"
#include "text/fold.h"
#include "text/unicode.h"

#define CONTRACTION_MAX 10

/* In the order of their letters. */
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
    "you ll",     "you ll ve",  "you re",      "you ve",
};

/* Taken off after a digit. One is two units: spaCy's list lacks a separator there. */
static const char *const unit[] = {
    "km",  "km²", "km³",  "m",   "m²",   "m³", "dm",   "dm²",  "dm³", "cm",  "cm²", "cm³", "mm",
    "mm²", "mm³", "ha",   "µm",  "nm",   "yd", "in",   "ft",   "kg",  "g",   "mg",  "µg",  "t",
    "lb",  "oz",  "kmh",  "mph", "mbar", "mb", "kb",   "gb",   "tb",  "км",  "км²", "км³", "м",
    "м²",  "м³",  "дм",   "дм²", "дм³",  "см", "см²",  "см³",  "мм",  "мм²", "мм³", "нм",  "кг",
    "г",   "мг",  "мбар", "кб",  "мб",   "гб", "тбكم", "كم²",  "كم³", "م",   "م²",  "م³",  "سم",
    "سم²", "سم³", "مم",   "مم²", "مم³",  "كم", "غرام", "جرام", "جم",  "كغ",  "ملغ", "كوب", "اكواب",
};

typedef struct writer {
    uint8_t *out;
    uint32_t *start;
    size_t n;
    uint32_t words;
} writer;

static void put(writer *w, const uint8_t *p, size_t len)
{
    if (len == 0) return;
    w->start[w->words++] = (uint32_t)w->n;
    memcpy(w->out + w->n, p, len);
    w->n += len;
    w->out[w->n++] = ' ';
}

/* Compares a word with a contraction, without its blanks. */
static int compare(const uint8_t *p, size_t len, const char *other)
{
    size_t i = 0;
    for (; *other; other++) {
        if (*other == ' ') continue;
        if (i == len || p[i] < (uint8_t)*other) return -1;
        if (p[i] > (uint8_t)*other) return 1;
        i++;
    }
    return i < len;
}

/* The parts of a contraction, or NULL. "‘s" is one word. */
static const char *special(const uint8_t *p, size_t len)
{
    size_t lo = 0, hi = LEAT_COUNT(contraction);
    if (len < 2 || len > CONTRACTION_MAX) return NULL;
    if (len == 4 && memcmp(p, "‘s", 4) == 0) return "‘s";
    if (!strchr("adelmst", p[len - 1])) return NULL;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int order = compare(p, len, contraction[mid]);
        if (order == 0) return contraction[mid];
        if (order < 0) hi = mid;
        else lo = mid + 1;
    }
    return NULL;
}

static void put_special(writer *w, const char *parts)
{
    while (parts) {
        const char *blank = strchr(parts, ' ');
        put(w, (const uint8_t *)parts, blank ? (size_t)(blank - parts) : strlen(parts));
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

/* Bytes to take off the end; *is_unit when they may be several characters. */
static size_t suffix_of(const uint8_t *p, size_t s, size_t e, bool *is_unit)
{
    uint32_t bytes;
    *is_unit = false;
    if (s == e) return 0;
    for (size_t i = 0; i < LEAT_COUNT(unit); i++) {
        size_t n = strlen(unit[i]);
        if (e - s > n && p[e - n - 1] == '0' && memcmp(p + e - n, unit[i], n) == 0) {
            *is_unit = true;
            return n;
        }
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

static void put_inner(writer *w, const uint8_t *p, size_t s, size_t e)
{
    const char *parts = special(p + s, e - s);
    uint32_t bytes;
    if (parts) {
        put_special(w, parts);
        return;
    }
    size_t from = s;
    for (size_t i = s; i < e; i += bytes) {
        if (!splits(p, s, e, i, &bytes) || i == s) continue;
        put(w, p + from, i - from);
        put(w, p + i, bytes);
        from = i + bytes;
    }
    put(w, p + from, e - from);
}

/* Every character between s and e is a word. */
static void put_chars(writer *w, const uint8_t *p, size_t s, size_t e)
{
    uint32_t bytes;
    for (; s < e; s += bytes) {
        leat__utf8_decode(p + s, &bytes);
        put(w, p + s, bytes);
    }
}

/* After a unit a digit is at the end, so that nothing more is taken off there. */
static void put_word(writer *w, const uint8_t *p, size_t len)
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
    put_chars(w, p, 0, s);
    if (s < e) put_inner(w, p, s, e);
    if (unit_end) {
        put(w, p + e, unit_end - e);
        e = unit_end;
    }
    put_chars(w, p, e, len);
}

/* True when nothing can be split off: letters only. */
static bool is_plain(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] < 'a' || p[i] > 'z') return false;
    return true;
}

uint32_t leat__english_words(const uint8_t *text, size_t len, uint8_t *out, uint32_t *start)
{
    writer w = {.out = out, .start = start};
    for (size_t i = 0; i < len;) {
        const uint8_t *end = memchr(text + i, ' ', len - i);
        size_t n = end ? (size_t)(end - text) - i : len - i;
        if (!is_plain(text + i, n)) {
            put_word(&w, text + i, n);
        } else {
            const char *parts = special(text + i, n);
            if (parts) put_special(&w, parts);
            else put(&w, text + i, n);
        }
        i += n + 1;
    }
    w.start[w.words] = (uint32_t)w.n;
    return w.words;
}
