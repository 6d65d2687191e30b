/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one line: a strict JSON parser (RFC 8259) that builds no tree. Strings are skipped with the vector
 * kernels of text_dsp.h, everything else byte by byte.
 *
 * The line is followed by readable bytes, and the byte after it is a newline or a NUL, which no valid token
 * contains. So the parser need not check for the end inside a token.
 */
#include "text/jsonl.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "text/text_dsp.h"
#include "text/unicode.h"

typedef struct parser {
    const uint8_t *p, *end;
    const leat__text_dsp *dsp;
    const char *wrong;
} parser;

static const uint8_t *fail(parser *s, const char *why)
{
    if (!s->wrong) s->wrong = why;
    return NULL;
}

static inline void blanks(parser *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r')) s->p++;
}

static inline int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the value of four hexadecimal digits, or -1. */
static int hex4(const uint8_t *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(p[i]);
        if (d < 0) return -1;
        value = value << 4 | d;
    }
    return value;
}

/* Skips a string: s->p is after the opening quote and moves past the closing one. Returns the position of the
 * closing quote. */
static const uint8_t *string(parser *s, bool *escaped)
{
    *escaped = false;
    for (;;) {
        s->p = s->dsp->string_stop(s->p);
        if (s->p >= s->end) return fail(s, "a string has no end");
        if (*s->p == '"') return s->p++;
        if (*s->p != '\\') return fail(s, "a control character in a string is not escaped");
        *escaped = true;
        if (s->end - s->p < 2) return fail(s, "a string has no end");
        switch (s->p[1]) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't': s->p += 2; break;
        case 'u':
            if (s->end - s->p < 6 || hex4(s->p + 2) < 0)
                return fail(s, "\\u is not followed by four hexadecimal digits");
            s->p += 6;
            break;
        default: return fail(s, "an escape that JSON does not have");
        }
    }
}

static uint32_t escape_code(const uint8_t **pp, uint64_t *lone)
{
    const uint8_t *p = *pp;
    uint32_t c = (uint32_t)hex4(p + 2);
    p += 6;
    if (c >= 0xd800 && c < 0xdc00 && p[0] == '\\' && p[1] == 'u') {
        uint32_t low = (uint32_t)hex4(p + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            p += 6;
        }
    }
    if (c >= 0xd800 && c < 0xe000) {
        c = 0xfffd;
        (*lone)++;
    }
    *pp = p;
    return c;
}

const uint8_t leat__plain_escape[256] = {
    ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = 8, ['f'] = 12, ['n'] = 10, ['r'] = 13, ['t'] = 9};

/* Like string(), but also writes the unescaped text to f->into, so that the string is read only once. */
static const uint8_t *string_into(parser *s, leat__jsonl_field *f, bool *escaped)
{
    uint8_t *d = f->into;
    const uint8_t *from = s->p;
    f->lone_surrogates = 0;
    for (;;) {
        s->p = s->dsp->string_copy(s->p, &d);
        if (s->p >= s->end) return fail(s, "a string has no end");
        if (*s->p == '"') {
            f->into_len = (size_t)(d - f->into);
            *escaped =
                f->into_len < (size_t)(s->p - from); /* every escape is longer than the text it encodes */
            return s->p++;
        }
        if (*s->p != '\\') return fail(s, "a control character in a string is not escaped");
        if (s->end - s->p < 2) return fail(s, "a string has no end");
        if (s->p[1] != 'u') return fail(s, "an escape that JSON does not have");
        if (s->end - s->p < 6 || hex4(s->p + 2) < 0)
            return fail(s, "\\u is not followed by four hexadecimal digits");
        d += leat__utf8_encode(escape_code(&s->p, &f->lone_surrogates), d);
    }
}

static bool digits(parser *s)
{
    const uint8_t *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9') s->p++;
    return s->p > from;
}

static bool number(parser *s)
{
    if (*s->p == '-') s->p++;
    if (s->p < s->end && *s->p == '0') s->p++;
    else if (!digits(s)) return false;
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (!digits(s)) return false;
    }
    if (s->p < s->end && (*s->p | 32) == 'e') {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-')) s->p++;
        if (!digits(s)) return false;
    }
    return true;
}

static bool literal(parser *s, const char *word, size_t len)
{
    if ((size_t)(s->end - s->p) < len || memcmp(s->p, word, len) != 0) return false;
    s->p += len;
    return true;
}

/* Skips a number or a literal; also NaN and the infinities, as Python writes them. */
static bool plain(parser *s)
{
    switch (*s->p) {
    case 't': return literal(s, "true", 4);
    case 'f': return literal(s, "false", 5);
    case 'n': return literal(s, "null", 4);
    case 'N': return literal(s, "NaN", 3);
    case 'I': return literal(s, "Infinity", 8);
    case '-':
        if (s->end - s->p > 1 && s->p[1] == 'I') return literal(s, "-Infinity", 9);
        return number(s);
    default: return number(s);
    }
}

static bool key(parser *s)
{
    bool escaped;
    if (s->p >= s->end || *s->p != '"') return fail(s, "a key is expected") != NULL;
    s->p++;
    if (!string(s, &escaped)) return false;
    blanks(s);
    if (s->p >= s->end || *s->p != ':') return fail(s, "a colon is expected") != NULL;
    s->p++;
    blanks(s);
    return true;
}

/* Skips an object or an array without recursion: `open` has a bit per level, 1 for an object. */
static bool nested(parser *s)
{
    uint8_t open[LEAT__JSONL_DEPTH / 8] = {0};
    unsigned depth = 0;
    bool escaped;
    for (;;) {
        blanks(s);
        if (s->p >= s->end) return fail(s, "the object has no end") != NULL;
        bool done = true;
        if (*s->p == '{' || *s->p == '[') {
            bool object = *s->p == '{';
            if (depth == LEAT__JSONL_DEPTH) return fail(s, "nested too deeply") != NULL;
            open[depth / 8] =
                (uint8_t)((open[depth / 8] & ~(1u << depth % 8)) | (unsigned)object << depth % 8);
            depth++;
            s->p++;
            blanks(s);
            done = s->p < s->end && *s->p == (object ? '}' : ']');
            if (!done && object && !key(s)) return false;
            if (done) {
                s->p++;
                depth--;
            }
        } else if (*s->p == '"') {
            s->p++;
            if (!string(s, &escaped)) return false;
        } else if (!plain(s)) {
            return fail(s, "a value is expected") != NULL;
        }
        while (done) { /* after a value */
            if (depth == 0) return true;
            bool object = open[(depth - 1) / 8] >> (depth - 1) % 8 & 1;
            blanks(s);
            if (s->p >= s->end) return fail(s, "the object has no end") != NULL;
            if (*s->p == ',') {
                s->p++;
                blanks(s);
                if (object && !key(s)) return false;
                break;
            }
            if (*s->p != (object ? '}' : ']')) return fail(s, "a comma or an end is expected") != NULL;
            s->p++;
            depth--;
        }
    }
}

size_t leat__jsonl_text(const leat__jsonl_field *f, uint8_t *dst, uint64_t *lone)
{
    if (!f->escaped) {
        memcpy(dst, f->raw, f->raw_len);
        return f->raw_len;
    }
    const leat__text_dsp *dsp = leat__text_dsp_now();
    const uint8_t *p = f->raw;
    uint8_t *d = dst;
    for (;;) {
        p = dsp->string_copy(p, &d);
        if (*p == '"') return (size_t)(d - dst); /* the closing quote follows the value */
        d += leat__utf8_encode(escape_code(&p, lone), d);
    }
}

size_t leat__jsonl_take(const leat__jsonl_field *f, uint8_t *dst, uint64_t *lone)
{
    if (!f->into) return leat__jsonl_text(f, dst, lone);
    *lone += f->lone_surrogates;
    return f->into_len;
}

/* Reads a value of only digits. False for other numbers, and above 64 bits. */
static bool whole_number(const uint8_t *p, size_t len, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9') return false;
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, p[i] - '0', value))
            return false;
    }
    return true;
}

double leat__jsonl_number(const leat__jsonl_field *f, int32_t *rest)
{
    const bool minus = f->raw[0] == '-';
    uint64_t whole;
    *rest = 0;
    /* strtod stops: the byte after the value is not part of a number */
    if (!whole_number(f->raw + minus, f->raw_len - minus, &whole)) return strtod((const char *)f->raw, NULL);
    const double value = (double)whole;
    const uint64_t rounded = value < 0x1p64 ? (uint64_t)value : 0; /* 2^64 does not fit 64 bits */
    *rest = (int32_t)(int64_t)(whole - rounded);
    if (minus) *rest = -*rest;
    return minus ? -value : value;
}

bool leat__jsonl_ordered(const leat__jsonl_field *f)
{
    return f->kind == LEAT__JSONL_NUMBER ||
           (f->kind == LEAT__JSONL_OTHER && (f->raw[0] == 'I' || f->raw[0] == '-'));
}

/* True when a key with escapes names the field. */
static bool same_key(const uint8_t *raw, size_t len, const leat__jsonl_field *f)
{
    uint8_t text[256 + LEAT__TEXT_PAD];
    uint64_t lone = 0;
    leat__jsonl_field k = {.raw = raw, .raw_len = len, .escaped = true};
    if (len > 256) return false;
    size_t n = leat__jsonl_text(&k, text, &lone);
    return n == f->name_len && memcmp(text, f->name, n) == 0;
}

static leat__jsonl_field *wanted(leat__jsonl_field *fields, size_t count, const uint8_t *raw, size_t len,
                                 bool escaped)
{
    for (size_t i = 0; i < count; i++) {
        leat__jsonl_field *f = &fields[i];
        if (escaped ? same_key(raw, len, f) : len == f->name_len && memcmp(raw, f->name, len) == 0) return f;
    }
    return NULL;
}

static void found(leat__jsonl_field *f, const parser *s, const uint8_t *member, const uint8_t *value,
                  bool escaped)
{
    const uint8_t digit = value[*value == '-']; /* not of -Infinity */
    f->kind = *value == '"'                  ? LEAT__JSONL_STRING
              : digit >= '0' && digit <= '9' ? LEAT__JSONL_NUMBER
                                             : LEAT__JSONL_OTHER;
    bool text = f->kind == LEAT__JSONL_STRING;
    f->raw = value + text;
    f->raw_len = (size_t)(s->p - value) - (text ? 2 : 0);
    f->escaped = escaped;
    f->member = member;
    f->member_len = (size_t)(s->p - member);
}

/* Reads the members of the line's top-level object; s->p is after its brace. */
static bool members(parser *s, leat__jsonl_field *fields, size_t count)
{
    blanks(s);
    if (s->p < s->end && *s->p == '}') {
        s->p++;
        return true;
    }
    for (;;) {
        bool key_escaped, escaped = false;
        const uint8_t *member = s->p;
        if (s->p >= s->end || *s->p != '"') return fail(s, "a key is expected") != NULL;
        s->p++;
        const uint8_t *key_end = string(s, &key_escaped);
        if (!key_end) return false;
        leat__jsonl_field *f = wanted(fields, count, member + 1, (size_t)(key_end - member - 1), key_escaped);
        blanks(s);
        if (s->p >= s->end || *s->p != ':') return fail(s, "a colon is expected") != NULL;
        s->p++;
        blanks(s);
        if (s->p >= s->end) return fail(s, "the object has no end") != NULL;
        const uint8_t *value = s->p;
        if (*value == '"') {
            s->p++;
            if (!(f && f->into ? string_into(s, f, &escaped) : string(s, &escaped))) return false;
        } else if (!nested(s)) {
            return false;
        }
        if (f) found(f, s, member, value, escaped);
        blanks(s);
        if (s->p >= s->end) return fail(s, "the object has no end") != NULL;
        if (*s->p == '}') break;
        if (*s->p != ',') return fail(s, "a comma or an end is expected") != NULL;
        s->p++;
        blanks(s);
    }
    s->p++;
    return true;
}

const char *leat__jsonl_read(const uint8_t *line, size_t len, leat__jsonl_field *fields, size_t count,
                             size_t *at)
{
    parser s = {.p = line, .end = line + len, .dsp = leat__text_dsp_now()};
    for (size_t i = 0; i < count; i++) fields[i].kind = LEAT__JSONL_ABSENT;
    size_t good = s.dsp->utf8_check(line, len);
    if (good < len) {
        *at = good;
        return "not valid UTF-8";
    }
    blanks(&s);
    if (s.p >= s.end || *s.p != '{') fail(&s, "a line must be a JSON object");
    else {
        s.p++;
        if (members(&s, fields, count)) {
            blanks(&s);
            if (s.p < s.end) fail(&s, "text after the object");
        }
    }
    *at = (size_t)(s.p - line);
    return s.wrong;
}
