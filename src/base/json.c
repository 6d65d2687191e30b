/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON. A writer belongs to one thread; failures are the buffer's status.
 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"

void leat__json_init(leat__json *j, leat__buf *out, int indent)
{
    *j = (leat__json){.out = out, .indent = indent};
    j->first[0] = true;
}

static void new_line(leat__json *j)
{
    if (j->indent == 0) return;
    leat__buf_putc(j->out, '\n');
    for (unsigned i = 0; i < j->depth * (unsigned)j->indent; i++) leat__buf_putc(j->out, ' ');
}

/* Writes the separator before a value: nothing after a key, else a comma and a line break. */
static void before_value(leat__json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->first[j->depth]) leat__buf_putc(j->out, ',');
    if (j->depth > 0) new_line(j);
    j->first[j->depth] = false;
}

static void open_level(leat__json *j, char open, char close)
{
    before_value(j);
    LEAT_ASSERT(j->depth + 1 < LEAT__JSON_DEPTH);
    leat__buf_putc(j->out, open);
    j->depth++;
    j->first[j->depth] = true;
    j->close[j->depth] = close;
}

void leat__json_object(leat__json *j)
{
    open_level(j, '{', '}');
}

void leat__json_array(leat__json *j)
{
    open_level(j, '[', ']');
}

void leat__json_end(leat__json *j)
{
    LEAT_ASSERT(j->depth > 0 && !j->after_key);
    bool empty = j->first[j->depth];
    char close = j->close[j->depth];
    j->depth--;
    if (!empty) new_line(j);
    leat__buf_putc(j->out, close);
}

static void put_escaped(leat__buf *out, const char *s, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    size_t i = 0;

    leat__buf_putc(out, '"');
    while (i < len) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\') {
            leat__buf_putc(out, '\\');
            leat__buf_putc(out, (char)c);
            i++;
        } else if (c < 0x20 || c == 0x7f) {
            char text[7] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15], 0};
            leat__buf_puts(out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : text);
            i++;
        } else {
            /* the longest sequence of plain characters, up to the first bad byte */
            size_t end = i, good;
            while (end < len && (unsigned char)s[end] >= 0x20 && s[end] != '"' && s[end] != '\\' &&
                   s[end] != 0x7f)
                end++;
            bool valid = leat__utf8_valid(s + i, end - i, &good);
            leat__buf_append(out, s + i, good);
            i += good;
            if (!valid) {
                leat__buf_puts(out, "\\ufffd");
                i++;
            }
        }
    }
    leat__buf_putc(out, '"');
}

void leat__json_key(leat__json *j, const char *key)
{
    LEAT_ASSERT(j->depth > 0 && j->close[j->depth] == '}' && !j->after_key);
    before_value(j);
    put_escaped(j->out, key, strlen(key));
    leat__buf_puts(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void leat__json_strn(leat__json *j, const char *s, size_t len)
{
    before_value(j);
    put_escaped(j->out, s, len);
}

void leat__json_str(leat__json *j, const char *s)
{
    if (s == NULL) leat__json_null(j);
    else leat__json_strn(j, s, strlen(s));
}

void leat__json_raw(leat__json *j, const char *json)
{
    before_value(j);
    leat__buf_puts(j->out, json);
}

void leat__json_u64(leat__json *j, uint64_t v)
{
    before_value(j);
    leat__buf_printf(j->out, "%llu", (unsigned long long)v);
}

void leat__json_i64(leat__json *j, int64_t v)
{
    before_value(j);
    leat__buf_printf(j->out, "%lld", (long long)v);
}

/* Writes the fewest digits, `least` or more, that read back equal. */
static const char *exact_digits(double v, int least, char text[40])
{
    for (int digits = least; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, v);
        if (digits == 17 || strtod(text, NULL) == v) break;
    }
    for (char *p = text; *p; p++) { /* printf may use the locale's decimal comma */
        if (*p == ',') *p = '.';
    }
    return text;
}

void leat__json_double(leat__json *j, double v)
{
    char text[40];
    if (isfinite(v)) leat__json_raw(j, exact_digits(v, 6, text));
    else leat__json_null(j);
}

__extension__ typedef unsigned __int128 u128;

static const uint64_t tens[] = {1u,
                                10u,
                                100u,
                                1000u,
                                10000u,
                                100000u,
                                1000000u,
                                10000000u,
                                100000000u,
                                1000000000u,
                                10000000000u,
                                100000000000u,
                                1000000000000u,
                                10000000000000u,
                                100000000000000u,
                                1000000000000000u,
                                10000000000000000u,
                                100000000000000000u,
                                1000000000000000000u,
                                10000000000000000000u};

/* Rounds a number of at least 1e-4 and below 1e15 to this many significant digits, as printf does. The number
 * is the result divided by 10^*places, up to 20 of them. */
static uint64_t round_digits(double v, int digits, int *places)
{
    /* the last three are a little above the power of ten */
    static const double small[] = {1, 1e-1, 1e-2, 1e-3};
    int above = -3, binary; /* v < 10^above */
    while (v >= (above <= 0 ? small[-above] : (double)tens[above])) above++;
    *places = digits - above;
    u128 scaled = (uint64_t)ldexp(frexp(v, &binary), 53); /* 53 bits by 67 */
    scaled *= *places < 20 ? tens[*places] : tens[19];
    if (*places == 20) scaled *= 10;
    const int shift = 53 - binary;
    const uint64_t whole = (uint64_t)(scaled >> shift);
    const u128 rest = scaled - ((u128)whole << shift), half = (u128)1 << (shift - 1);
    return whole + (rest > half || (rest == half && (whole & 1)));
}

static char *put_u64(uint64_t v, char *end)
{
    do *--end = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    return end;
}

/* Writes whole / 10^places without the zeros at its end. Returns where the text begins. */
static char *put_fixed(uint64_t whole, int places, char *end)
{
    *--end = '\0';
    for (; places > 0 && whole % 10 == 0; places--) whole /= 10;
    if (places == 0) return put_u64(whole, end);
    for (; places > 0; places--, whole /= 10) *--end = (char)('0' + whole % 10);
    *--end = '.';
    return put_u64(whole, end);
}

/* As exact_digits from 15 digits on, for numbers of at least 1e-4 and below 1e15, several times as fast. A
 * quotient of a number of up to 53 bits and a power of ten up to 10^22 is what strtod() returns. NULL:
 * strtod() has to decide. */
static char *quick_digits(double v, char *end)
{
    for (int digits = 15; digits <= 17; digits++) {
        int places;
        const uint64_t whole = round_digits(v, digits, &places);
        if (digits == 17) return put_fixed(whole, places, end);
        if (whole > (uint64_t)1 << 53) return NULL;
        if ((double)whole / (places < 20 ? (double)tens[places] : 1e20) == v)
            return put_fixed(whole, places, end);
    }
    return NULL;
}

/* Any number of up to 15 digits reads back equal from them, so that fewer need not be tried. */
void leat__json_number(leat__buf *out, double v)
{
    char text[40], *end = text + sizeof text, *quick = NULL;
    const double size = fabs(v);

    /* the usual case: whole numbers */
    if (size < 1e15 && size == trunc(size)) quick = put_fixed((uint64_t)size, 0, end);
    else if (size >= 1e-4 && size < 1e15) quick = quick_digits(size, end);
    if (quick && v < 0) *--quick = '-';
    if (!quick) leat__buf_puts(out, isfinite(v) ? exact_digits(v, 15, text) : "null");
    else leat__buf_append(out, quick, (size_t)(end - 1 - quick));
}

void leat__json_bool(leat__json *j, bool v)
{
    leat__json_raw(j, v ? "true" : "false");
}

void leat__json_null(leat__json *j)
{
    leat__json_raw(j, "null");
}

void leat__json_kstr(leat__json *j, const char *key, const char *s)
{
    leat__json_key(j, key);
    leat__json_str(j, s);
}

void leat__json_ku64(leat__json *j, const char *key, uint64_t v)
{
    leat__json_key(j, key);
    leat__json_u64(j, v);
}

void leat__json_ki64(leat__json *j, const char *key, int64_t v)
{
    leat__json_key(j, key);
    leat__json_i64(j, v);
}

void leat__json_kdouble(leat__json *j, const char *key, double v)
{
    leat__json_key(j, key);
    leat__json_double(j, v);
}

void leat__json_kbool(leat__json *j, const char *key, bool v)
{
    leat__json_key(j, key);
    leat__json_bool(j, v);
}
