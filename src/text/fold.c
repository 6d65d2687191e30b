/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts to lower case, and simplifies text: see fold.h.
 */
#include "text/fold.h"

#include <stdbool.h>

#include "base/num.h"
#include "text/unicode.h"
#include "fold_tables.h"

#define SIGMA 0x3a3
#define HANGUL 0xac00
#define HANGUL_END 0xd7a4

typedef struct writer {
    uint8_t *out;
    size_t n;
    bool blank; /* write one before the next character */
} writer;

const leat__letter *leat__fold_of(uint32_t code)
{
    return &fold_entry[fold_block[fold_index[code >> 7]][code & 127]];
}

static bool in_runs(const uint32_t (*run)[2], size_t n, uint32_t code)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (run[mid][1] < code) lo = mid + 1;
        else hi = mid;
    }
    return lo < n && run[lo][0] <= code;
}

/* True when the nearest code point that is not ignored, from `at` in one direction, is a cased letter. */
static bool cased_from(const uint8_t *text, size_t len, size_t at, bool back)
{
    uint32_t n;
    for (;;) {
        if (back) {
            if (at == 0) return false;
            do at--;
            while ((text[at] & 0xc0) == 0x80);
        } else if (at >= len) {
            return false;
        }
        uint32_t code = leat__utf8_decode(text + at, &n);
        if (!in_runs(fold_ignored, LEAT_COUNT(fold_ignored), code))
            return in_runs(fold_cased, LEAT_COUNT(fold_cased), code);
        if (!back) at += n;
    }
}

/* Returns the lower case of a code point; a sigma at the end of a word gets its final form. */
static uint32_t lower_of(const uint8_t *text, size_t len, size_t at, uint32_t code, uint32_t bytes)
{
    if (code == SIGMA)
        return cased_from(text, len, at, true) && !cased_from(text, len, at + bytes, false) ? 0x3c2 : 0x3c3;
    return code + (uint32_t)leat__fold_of(code)->lower;
}

static void put(writer *w, uint32_t code)
{
    if (w->blank && w->n > 0) w->out[w->n++] = ' ';
    w->blank = false;
    w->n += leat__utf8_encode(code, w->out + w->n);
}

size_t leat__fold_lower(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out)
{
    writer w = {.out = out};
    uint32_t bytes;
    for (size_t i = from; i < to; i += bytes) {
        uint32_t code = leat__utf8_decode(text + i, &bytes);
        if (leat__unicode_of(code) & LEAT__UNI_SPACE) {
            w.blank = true;
            continue;
        }
        put(&w, lower_of(text, len, i, code, bytes));
        if (code == 0x130) put(&w, 0x307);
    }
    return w.n;
}

void leat__fold_lower_words(leat__word_list *list, const uint8_t *text, size_t len, size_t from, size_t to,
                            uint8_t *temp)
{
    size_t n = leat__fold_lower(text, len, from, to, temp);
    for (size_t i = 0; i < n;) {
        const uint8_t *end = memchr(temp + i, ' ', n - i);
        size_t bytes = end ? (size_t)(end - temp) - i : n - i;
        leat__word_list_put(list, temp + i, bytes);
        i += bytes + 1;
    }
}

static void put_plain(writer *w, uint32_t code, uint32_t lower, const leat__letter *f)
{
    if (code >= HANGUL && code < HANGUL_END) {
        uint32_t s = code - HANGUL, tail = s % 28;
        put(w, 0x1100 + s / 588);
        put(w, 0x1161 + s % 588 / 28);
        if (tail) put(w, 0x11a7 + tail);
        return;
    }
    if (f->parts == LEAT__FOLD_SELF) {
        put(w, lower);
        return;
    }
    for (uint32_t i = 0; i < f->parts; i++) put(w, fold_part[f->part + i]);
}

static bool digit_at(const uint8_t *text, size_t len, size_t at, uint32_t *bytes)
{
    return at < len && leat__unicode_of(leat__utf8_decode(text + at, bytes)) & LEAT__UNI_DIGIT;
}

static bool separates(uint32_t code)
{
    return code == '.' || code == ',' || code == 0x60c || code == 0x66b || (code >= 0x2396 && code <= 0x2398);
}

/* Returns the end of the number at `at`: digits, and at most one separator with more digits. */
static size_t number_end(const uint8_t *text, size_t len, size_t at)
{
    uint32_t bytes, mark;
    while (at < len && text[at] >= '0' && text[at] <= '9') at++;
    if (at >= len || (text[at] < 0x80 && !separates(text[at]))) return at;
    while (digit_at(text, len, at, &bytes)) at += bytes;
    if (at >= len || !separates(leat__utf8_decode(text + at, &mark))) return at;
    if (!digit_at(text, len, at + mark, &bytes)) return at;
    at += mark;
    while (digit_at(text, len, at, &bytes)) at += bytes;
    return at;
}

size_t leat__fold_simplify(const uint8_t *text, size_t len, size_t from, size_t to, uint8_t *out)
{
    writer w = {.out = out};
    uint32_t bytes;
    for (size_t i = from; i < to;) {
        uint8_t c = text[i];
        if ((c | 32) >= 'a' && (c | 32) <= 'z') {
            if (w.blank && w.n > 0) w.out[w.n++] = ' ';
            w.blank = false;
            for (; i < to && (c = text[i] | 32) >= 'a' && c <= 'z'; i++) w.out[w.n++] = c;
            continue;
        }
        uint32_t code = leat__utf8_decode(text + i, &bytes);
        uint8_t is = leat__unicode_of(code);
        if (is & LEAT__UNI_DIGIT) {
            put(&w, '0');
            i = number_end(text, len, i);
            continue;
        }
        const leat__letter *f = leat__fold_of(code);
        if ((f->flags & LEAT__FOLD_BLANK) || (is & LEAT__UNI_SPACE)) w.blank = true;
        else put_plain(&w, code, lower_of(text, len, i, code, bytes), f);
        i += bytes;
    }
    return w.n;
}
