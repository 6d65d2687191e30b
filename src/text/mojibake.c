/* SPDX-License-Identifier: Apache-2.0
 *
 * A sequence is a run of 2 to 4 characters whose Windows-1252 bytes are the UTF-8 of one code point.
 * Correct text has sequences, too: an accented letter at the end of a word, then punctuation. Therefore
 * only those are sure that no language writes:
 *
 *   - Â or Ã with a symbol, except between a capital letter and something else than a small one ("MANHÃ…" is
 *     Portuguese);
 *   - any other capital letter after a small one ("vÄ›c", for "věc");
 *   - two adjacent sequences from the same part of Unicode ("Ð´Ð°");
 *   - those with a control character, a byte that Windows-1252 does not define;
 *   - the first bytes of punctuation and symbols ("â€™"), of emoji ("ðŸ˜€"), of the byte order mark, and
 *     of U+FFFD.
 */
#include "text/mojibake.h"

#include "text/unicode.h"

typedef struct sequence {
    uint8_t raw[4];
    uint32_t bytes; /* of raw; 0 = no sequence */
    const uint8_t *begin, *end;
} sequence;

/* Returns the Windows-1252 byte for this code point if it is above 0x7f, or -1. */
static int byte_of(uint32_t code)
{
    static const uint16_t high[32] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                      0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                      0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                      0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};
    if (code >= 0xa0 && code <= 0xff) return (int)code;
    for (int i = 0; i < 32; i++)
        if (high[i] == code) return 0x80 + i;
    return -1;
}

static sequence sequence_at(const uint8_t *p, const uint8_t *end)
{
    sequence s = {.begin = p, .end = p};
    uint32_t want = 1;
    for (uint32_t n; s.bytes < want && s.end < end; s.end += n) {
        uint32_t code = leat__utf8_decode(s.end, &n);
        int b = code >= 0x80 ? byte_of(code) : -1;
        if (s.bytes == 0) want = b < 0xc2 || b > 0xf4 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
        if (b < 0 || want == 0) break;
        s.raw[s.bytes++] = (uint8_t)b;
    }
    const bool control = s.raw[0] == 0xc2 && s.raw[1] < 0xa0;
    if (s.bytes < want || want == 0 || control || leat__utf8_check(s.raw, want) != want) s.bytes = 0;
    return s;
}

static bool is_small(uint32_t code)
{
    return code >= 'a' && code <= 'z';
}

static bool is_capital(uint32_t code)
{
    return (code >= 'A' && code <= 'Z') || (code >= 0xc0 && code <= 0xde && code != 0xd7) || code == 0x160 ||
           code == 0x152 || code == 0x17d || code == 0x178;
}

/* True for adjacent sequences of nearby code points: long ones, or short ones whose first bytes differ by 3
 * at most. "Ä–Ö–Ü" has two that are not. */
static bool are_alike(const sequence *a, const sequence *b)
{
    if (a->bytes == 0 || b->bytes == 0 || a->end != b->begin) return false;
    int apart = a->raw[0] - b->raw[0];
    return (a->bytes > 2 && b->bytes > 2) || (apart >= -3 && apart <= 3);
}

/* True for the first bytes of code points that are often misread, but not for a letter with punctuation. */
static bool is_symbol(const sequence *s)
{
    const uint8_t *r = s->raw;
    if (r[0] == 0xe2) return r[1] < 0xa0 && r[1] != 0x85 && (r[1] < 0x91 || r[1] > 0x97);
    if (r[0] == 0xef) return (r[1] == 0xbb && r[2] == 0xbf) || (r[1] == 0xbf && r[2] == 0xbd);
    return r[0] == 0xf0 && r[1] == 0x9f;
}

static bool has_control(const sequence *s)
{
    for (uint32_t i = 1; i < s->bytes; i++) {
        const uint8_t b = s->raw[i];
        if (b == 0x81 || b == 0x8d || b == 0x8f || b == 0x90 || b == 0x9d) return true;
    }
    return false;
}

static bool is_sure(const sequence *last, const sequence *s, uint32_t before, const uint8_t *end)
{
    const uint8_t lead = s->raw[0];
    if (is_symbol(s) || has_control(s)) return true;
    if (lead == 0xc2 || lead == 0xc3) {
        if (!is_capital(before) || (s->end < end && is_small(*s->end))) return true;
    } else if (lead < 0xdf && lead != 0xd7 && is_small(before)) {
        return true;
    }
    sequence next = sequence_at(s->end, end);
    return are_alike(last, s) || are_alike(s, &next);
}

static void put(leat__buf *out, const uint8_t *p, const uint8_t *end)
{
    if (out) leat__buf_append(out, p, (size_t)(end - p));
}

/* Visits all characters. Appends them to `out`, if any, with sequences undone: sure ones, or all if `all`. */
static leat__mojibake visit(const uint8_t *p, size_t size, bool all, leat__buf *out)
{
    leat__mojibake found = {false, false};
    const uint8_t *end = p + size;
    sequence last = {.bytes = 0};
    uint32_t before = 0; /* the character before p; 0: none, or a sequence */
    while (p < end) {
        const uint8_t *q = p;
        while (q < end && *q < 0x80) q++;
        if (q > p) {
            before = q[-1];
            put(out, p, q);
            p = q;
            continue;
        }
        sequence s = sequence_at(p, end);
        if (s.bytes == 0) {
            uint32_t n;
            before = leat__utf8_decode(p, &n);
            found.lone = true;
            q = p + n;
            put(out, p, q);
        } else {
            bool sure = is_sure(&last, &s, before, end);
            if (sure) found.sure = true;
            if (sure || all) put(out, s.raw, s.raw + s.bytes);
            else put(out, p, s.end);
            before = 0;
            q = s.end;
        }
        last = s;
        p = q;
    }
    return found;
}

leat__mojibake leat__mojibake_find(const uint8_t *text, size_t size)
{
    return visit(text, size, false, NULL);
}

void leat__mojibake_undo(const uint8_t *text, size_t size, leat__mojibake found, leat__buf *out)
{
    (void)visit(text, size, found.sure && !found.lone, out);
}
