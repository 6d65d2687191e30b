/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings, numbers and paths. Pure functions.
 */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

bool leat__str_eq(const char *a, const char *b)
{
    if (a == NULL || b == NULL) return a == b;
    return strcmp(a, b) == 0;
}

bool leat__str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool leat__str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

bool leat__str_has_control(const char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) return true;
    return false;
}

bool leat__str_ends_nocase(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcasecmp(s + n - m, suffix) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares two digit sequences as numbers of any length; moves both pointers past them. */
static int compare_runs(const char **a, const char **b)
{
    while (**a == '0') (*a)++;
    while (**b == '0') (*b)++;
    const char *x = *a, *y = *b;
    while (is_digit(**a)) (*a)++;
    while (is_digit(**b)) (*b)++;
    size_t n = (size_t)(*a - x), m = (size_t)(*b - y);
    if (n != m) return n < m ? -1 : 1;
    return memcmp(x, y, n);
}

int leat__str_natural_cmp(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x && *y) {
        if (is_digit(*x) && is_digit(*y)) {
            int order = compare_runs(&x, &y);
            if (order != 0) return order;
        } else {
            if (*x != *y) return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
            x++;
            y++;
        }
    }
    if (*x || *y) return *x ? 1 : -1;
    return strcmp(a, b); /* "a01" and "a1" are equal as numbers but different names */
}

/* strtoll and similar functions accept leading blanks; we do not. */
static bool starts_number(const char *s)
{
    return is_digit(*s) || ((*s == '-' || *s == '+' || *s == '.') && s[1] != '\0');
}

bool leat__str_to_i64(const char *s, int64_t *value)
{
    char *end;

    if (!starts_number(s)) return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || *end != '\0' || end == s) return false;
    *value = v;
    return true;
}

const char *leat__str_i64_fault(const char *s)
{
    const size_t sign = *s == '-' || *s == '+', digits = strspn(s + sign, "0123456789");
    return digits > 0 && s[sign + digits] == '\0'
               ? "a whole number out of range: it does not fit 64 bits with sign"
               : "not a whole number";
}

bool leat__str_to_u64(const char *s, uint64_t *value)
{
    char *end;

    if (!is_digit(*s)) return false; /* no sign: strtoull would wrap "-1" */
    errno = 0;
    unsigned long long v = strtoull(s, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *value = v;
    return true;
}

/* Reads a decimal number before a unit, independent of the locale. */
static bool read_decimal(const char *s, double *value, const char **rest)
{
    char digits[64];
    size_t n = 0;

    if (!starts_number(s)) return false;
    while (s[n] && n + 1 < sizeof digits &&
           (is_digit(s[n]) || s[n] == '.' || s[n] == '-' || s[n] == '+' ||
            ((s[n] == 'e' || s[n] == 'E') && (is_digit(s[n + 1]) || s[n + 1] == '-' || s[n + 1] == '+')))) {
        digits[n] = s[n];
        n++;
    }
    digits[n] = '\0';
    /* strtod follows the locale; for other decimal points, read the two parts separately */
    char *end;
    errno = 0;
    double v = strtod(digits, &end);
    if (*end == '.') { /* a locale with a decimal comma */
        *end = ',';
        v = strtod(digits, &end);
    }
    if (*end != '\0' || end == digits || !isfinite(v)) return false;
    *value = v;
    *rest = s + n;
    return true;
}

bool leat__str_to_double(const char *s, double *value)
{
    const char *rest;
    double v;

    if (!read_decimal(s, &v, &rest) || *rest != '\0') return false;
    *value = v;
    return true;
}

static bool read_bytes(const char *s, bool thousands, uint64_t *value)
{
    static const char prefixes[] = "KMGTPE";
    const char *rest;
    double v;

    if (leat__str_to_u64(s, value)) return true; /* exact beyond 2^53 */
    if (!is_digit(*s) || !read_decimal(s, &v, &rest)) return false;
    double scale = 1.0;
    if (*rest != '\0' && *rest != 'B' && *rest != 'b') {
        const char *p = strchr(prefixes, toupper((unsigned char)*rest));
        if (p == NULL || *p == '\0') return false;
        /* "10MB" is decimal as on a disk's label; "10M" and "10MiB" are binary */
        bool decimal =
            ((rest[1] == 'B' || rest[1] == 'b') && rest[2] == '\0') || (thousands && rest[1] == '\0');
        scale = pow(decimal ? 1000.0 : 1024.0, (double)(p - prefixes + 1));
        rest++;
        if (*rest == 'i') rest++;
    }
    if (*rest == 'B' || *rest == 'b') rest++;
    if (*rest != '\0') return false;
    v *= scale;
    if (!(v >= 0.0 && v < 18446744073709551616.0)) return false;
    *value = (uint64_t)v;
    return true;
}

bool leat__str_to_bytes(const char *s, uint64_t *value)
{
    return read_bytes(s, false, value);
}

bool leat__str_to_bytes10(const char *s, uint64_t *value)
{
    return read_bytes(s, true, value);
}

bool leat__str_to_seconds(const char *s, double *value)
{
    static const struct {
        const char *unit;
        double scale;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"min", 60}, {"h", 3600}};
    const char *rest;
    double v;

    if (!read_decimal(s, &v, &rest)) return false;
    for (size_t i = 0; i < LEAT_COUNT(units); i++) {
        if (strcmp(rest, units[i].unit) == 0) {
            *value = v * units[i].scale;
            return true;
        }
    }
    return false;
}

bool leat__str_to_bool(const char *s, bool *value)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};

    for (size_t i = 0; i < LEAT_COUNT(yes); i++) {
        if (strcasecmp(s, yes[i]) == 0) return *value = true, true;
        if (strcasecmp(s, no[i]) == 0) return *value = false, true;
    }
    return false;
}

/* Decimals that show three digits of a number below 1000, as it is rounded: 9.996 is 10.0. */
static int decimals_of(double v)
{
    return fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;
}

static char *format_bytes(uint64_t bytes, bool up, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    size_t unit = 0;

    while (v >= 1024.0 && unit + 1 < LEAT_COUNT(units)) {
        v /= 1024.0;
        unit++;
    }
    const double parts = decimals_of(v) == 2 ? 100 : decimals_of(v) == 1 ? 10 : 1;
    if (up) v = ceil(v * parts) / parts;
    if (unit == 0) snprintf(out, size, "%llu B", (unsigned long long)bytes);
    else snprintf(out, size, "%.*f %s", decimals_of(v), v, units[unit]);
    return out;
}

char *leat__format_bytes(uint64_t bytes, char *out, size_t size)
{
    return format_bytes(bytes, false, out, size);
}

leat__size_text leat__as_size(uint64_t bytes)
{
    leat__size_text t;
    format_bytes(bytes, true, t.text, sizeof t.text);
    return t;
}

char *leat__format_count(double count, char *out, size_t size)
{
    static const char units[] = {0, 'k', 'M', 'G', 'T', 'P'};
    size_t unit = 0;

    if (!isfinite(count)) return snprintf(out, size, "-"), out;
    while (fabs(count) >= 999.5 && unit + 1 < sizeof units) { /* rounds to 1000 */
        count /= 1000.0;
        unit++;
    }
    const int decimals = unit == 0 && count == floor(count) ? 0 : decimals_of(count);
    if (unit == 0) snprintf(out, size, "%.*f", decimals, count);
    else snprintf(out, size, "%.*f%c", decimals, count, units[unit]);
    return out;
}

char *leat__format_seconds(double seconds, char *out, size_t size)
{
    if (!isfinite(seconds) || seconds < 0) {
        snprintf(out, size, "-");
    } else if (seconds > 0 && seconds < 0.5e-6) {
        snprintf(out, size, "<1us");
    } else if (seconds < 1e-3) {
        snprintf(out, size, "%.0fus", seconds * 1e6);
    } else if (seconds < 1) {
        snprintf(out, size, "%.0fms", seconds * 1e3);
    } else if (seconds < 60) {
        snprintf(out, size, "%.1fs", seconds);
    } else if (seconds < 3600) {
        unsigned whole = (unsigned)(seconds + 0.5);
        snprintf(out, size, "%um%02us", whole / 60, whole % 60);
    } else {
        double minutes = floor(seconds / 60 + 0.5);
        snprintf(out, size, "%.0fh%02.0fm", floor(minutes / 60), fmod(minutes, 60));
    }
    return out;
}

#define WORD_MAX 64

size_t leat__str_distance(const char *a, const char *b)
{
    size_t row[3][WORD_MAX + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > WORD_MAX || m > WORD_MAX) return n > m ? n : m;
    for (size_t j = 0; j <= m; j++) row[1][j] = j;
    for (size_t i = 1; i <= n; i++) {
        /* row[2] is the current row; row[1] and row[0] are the two above it */
        row[2][0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
            size_t best = row[1][j - 1] + cost;
            best = LEAT_MIN(best, row[1][j] + 1);
            best = LEAT_MIN(best, row[2][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = LEAT_MIN(best, row[0][j - 2] + 1);
            row[2][j] = best;
        }
        memcpy(row[0], row[1], sizeof row[0]);
        memcpy(row[1], row[2], sizeof row[1]);
    }
    return row[1][m];
}

const char *leat__str_nearest(const char *word, const char *const *words, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SIZE_MAX, len = strlen(word);

    for (size_t i = 0; i < n; i++) {
        size_t distance = leat__str_distance(word, words[i]);
        if (strcasecmp(word, words[i]) == 0) distance = LEAT_MIN(distance, 1);
        /* a typed prefix counts as one typing error */
        if (len >= 2 && leat__str_starts(words[i], word)) distance = LEAT_MIN(distance, 1);
        if (distance < best_distance) {
            best_distance = distance;
            best = words[i];
        }
    }
    size_t worth = len <= 3 ? 1 : len <= 6 ? 2 : 3;
    return best_distance <= worth ? best : NULL;
}

#define NAMES_SHOWN 10u
#define NAMES_TAIL 32u /* bytes of " and 18446744073709551615 more" */

void leat__names_add(leat__names *list, const char *name)
{
    const char *comma = list->shown > 0 ? ", " : "";
    const size_t room = sizeof list->text - NAMES_TAIL - list->len;
    const bool skipped = list->all++ > list->shown;
    if (skipped || list->shown == NAMES_SHOWN || strlen(comma) + strlen(name) >= room) return;
    list->len += (size_t)snprintf(list->text + list->len, room, "%s%s", comma, name);
    list->shown++;
}

const char *leat__names_end(leat__names *list)
{
    const unsigned long long more = list->all - list->shown;
    if (list->all == 0) snprintf(list->text, sizeof list->text, "none");
    else if (more > 0)
        snprintf(list->text + list->len, NAMES_TAIL, "%s%llu more", list->shown > 0 ? " and " : "", more);
    return list->text;
}

/* Length of the valid UTF-8 character at s, 0 when it is not valid. */
static size_t utf8_one(const unsigned char *s, size_t len)
{
    unsigned char c = s[0];
    size_t n = c < 0x80                 ? 1
               : c >= 0xc2 && c <= 0xdf ? 2
               : (c & 0xf0) == 0xe0     ? 3
               : c >= 0xf0 && c <= 0xf4 ? 4
                                        : 0;

    if (n == 0 || n > len) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
    }
    if (c == 0xe0 && s[1] < 0xa0) return 0; /* overlong */
    if (c == 0xed && s[1] > 0x9f) return 0; /* surrogates */
    if (c == 0xf0 && s[1] < 0x90) return 0; /* overlong */
    if (c == 0xf4 && s[1] > 0x8f) return 0; /* above U+10FFFF */
    return n;
}

bool leat__utf8_valid(const char *s, size_t len, size_t *good)
{
    size_t i = 0;

    while (i < len) {
        size_t n = utf8_one((const unsigned char *)s + i, len - i);
        if (n == 0) break;
        i += n;
    }
    if (good != NULL) *good = i;
    return i == len;
}

size_t leat__str_web_prefix(const char *s)
{
    if (strncasecmp(s, "http", 4) != 0) return 0;
    size_t at = 4 + (s[4] == 's' || s[4] == 'S');
    return strncmp(s + at, "://", 3) == 0 ? at + 3 : 0;
}

/* Replaces text[from, to) by "…"; the text after it is truncated to `size`. Returns the end of the dots. */
static size_t put_dots(char *text, size_t size, size_t from, size_t to)
{
    static const char dots[] = "\xe2\x80\xa6";
    const size_t n = sizeof dots - 1;
    if (from + n >= size) {
        text[from] = '\0';
        return from;
    }
    size_t rest = strlen(text + to);
    if (from + n + rest >= size) rest = size - 1 - from - n;
    memmove(text + from + n, text + to, rest);
    memcpy(text + from, dots, n);
    text[from + n + rest] = '\0';
    return from + n;
}

/* Replaces user and password of a URL. Returns its new end. */
static size_t hide_user(char *text, size_t size, size_t host, size_t end)
{
    size_t place = host, at;
    while (place < end && strchr("/?#", text[place]) == NULL) place++;
    for (at = place; at > host && text[at - 1] != '@';) at--;
    if (at == host) return end;
    size_t now = put_dots(text, size, host, at - 1);
    return now + (end - (at - 1));
}

size_t leat__str_hide_in_url(char *text, size_t size, size_t host, size_t end)
{
    size_t query = host;
    while (query < end && text[query] != '?' && text[query] != '#') query++;
    if (query < end) end = put_dots(text, size, query + 1, end);
    return hide_user(text, size, host, end);
}

/* Returns the length of the scheme at the start of `s`, 0 without one. *word: length of the word there. */
static size_t scheme_len(const char *s, size_t *word)
{
    *word = 0;
    while (isalnum((unsigned char)s[*word]) || (s[*word] != '\0' && strchr("+.-", s[*word]))) (*word)++;
    return *word > 0 && strncmp(s + *word, "://", 3) == 0 ? *word : 0;
}

/* True where '?' is a part of the name. */
static bool is_bucket(const char *scheme, size_t len)
{
    static const char *const names[] = {"s3", "gs", "az"};
    for (size_t i = 0; i < LEAT_COUNT(names); i++)
        if (len == 2 && strncmp(scheme, names[i], 2) == 0) return true;
    return false;
}

void leat__str_hide_secrets(char *text, size_t size)
{
    for (size_t at = 0; text[at] != '\0';) {
        size_t word, n = scheme_len(text + at, &word), host = at + n + 3, end = host;
        if (n == 0) {
            at += word > 0 ? word : 1;
            continue;
        }
        end += strcspn(text + end, " \t\r\n\"<>");
        while (end > host && strchr(":;,.)'", text[end - 1]) != NULL) end--;
        if (is_bucket(text + at, n)) end = hide_user(text, size, host, end);
        else end = leat__str_hide_in_url(text, size, host, end);
        const size_t len = strlen(text);
        at = end < len ? end : len;
    }
}

const char *leat__str_shown(const char *s, char *out, size_t size)
{
    const unsigned char *from = (const unsigned char *)s;
    size_t at = 0, left = strlen(s);
    while (left > 0 && at + 5 < size) { /* the longest step plus a NUL */
        size_t n = *from < 0x20 || *from == 0x7f ? 0 : utf8_one(from, left);
        if (n == 0) at += (size_t)snprintf(out + at, size - at, "\\x%02x", *from);
        else memcpy(out + at, from, n);
        at += n;
        from += n > 0 ? n : 1;
        left -= n > 0 ? n : 1;
    }
    out[at] = '\0';
    return out;
}

/* Returns the character for the letter after a backslash; 0: none. */
static char escaped(char letter)
{
    switch (letter) {
    case 'n': return '\n';
    case 'r': return '\r';
    case '"':
    case '\\': return letter;
    default: return 0;
    }
}

int leat__str_shell(leat__buf *out, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
    if (path[0] == '-') leat__buf_puts(out, "./");
    if (path[0] != '\0' && path[strspn(path, plain)] == '\0') return leat__buf_puts(out, path);
    leat__buf_putc(out, '\'');
    for (; *path; path++)
        if (*path == '\'') leat__buf_puts(out, "'\\''");
        else leat__buf_putc(out, *path);
    return leat__buf_putc(out, '\'');
}

size_t leat__str_unquote(char *line, size_t len)
{
    size_t to = 0;
    if (len < 2 || line[0] != '"' || line[len - 1] != '"') return len;
    for (size_t i = 1; i < len - 1; i++) {
        if (line[i] == '"') return len;
        if (line[i] == '\\' && (i + 1 == len - 1 || escaped(line[++i]) == 0)) return len;
    }
    for (size_t i = 1; i < len - 1; i++) line[to++] = line[i] == '\\' ? escaped(line[++i]) : line[i];
    return to;
}

int leat__path_join(leat__buf *out, const char *dir, const char *name)
{
    leat__buf_puts(out, dir);
    if (out->status == 0 && out->len > 0 && out->data[out->len - 1] != '/') leat__buf_putc(out, '/');
    return leat__buf_puts(out, name);
}

const char *leat__path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool leat__path_relative_safe(const char *path, size_t len)
{
    if (len == 0 || path[0] == '/') return false;
    size_t start = 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && path[i] != '/') {
            if (path[i] == '\0') return false;
            continue;
        }
        size_t part = i - start;
        if (part == 0 || (part == 1 && path[start] == '.') ||
            (part == 2 && path[start] == '.' && path[start + 1] == '.'))
            return false;
        start = i + 1;
    }
    return true;
}
