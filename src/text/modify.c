/* SPDX-License-Identifier: Apache-2.0
 *
 * The modifiers: each reads a text and appends the changed text to a buffer.
 */
#include "text/modify.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "text/mojibake.h"
#include "text/unicode.h"

#define MISREAD_MAX 4 /* how often a text may have been misread */

typedef struct reader {
    const uint8_t *p, *end;
} reader;

static inline bool is_alnum(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static inline bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static inline void put(leat__buf *out, const uint8_t *p, size_t n)
{
    leat__buf_append(out, p, n);
}

static reader all_of(const leat__buf *b)
{
    const uint8_t *p = (const uint8_t *)leat__buf_str(b);
    return (reader){p, p + b->len};
}

/* Turns \r\n and \r into \n, and three or more consecutive \n into two; removes blanks at line ends. */
static void newlines(reader r, leat__buf *out)
{
    unsigned run = 0;
    while (r.p < r.end) {
        uint8_t c = *r.p++;
        if (c == '\r') {
            if (r.p < r.end && *r.p == '\n') r.p++;
            c = '\n';
        }
        if (c == '\n') {
            while (out->len > 0 && (out->data[out->len - 1] == ' ' || out->data[out->len - 1] == '\t'))
                out->len--;
            if (++run <= 2) leat__buf_putc(out, '\n');
        } else {
            if (c != ' ' && c != '\t') run = 0;
            leat__buf_putc(out, (char)c);
        }
    }
}

/* Replaces curly and angle quotes by straight ones. */
static void quotes(reader r, leat__buf *out)
{
    while (r.p < r.end) {
        uint32_t n, code = leat__utf8_decode(r.p, &n);
        if (code == 0x2018 || code == 0x2019 || code == 0x201a || code == 0x201b) leat__buf_putc(out, '\'');
        else if (code == 0x201c || code == 0x201d || code == 0x201e || code == 0x201f || code == 0xab ||
                 code == 0xbb)
            leat__buf_putc(out, '"');
        else put(out, r.p, n);
        r.p += n;
    }
}

/* Drops controls, soft hyphens, zero-width spaces, word joiners and byte order marks. Those that are white
 * space become a blank, so that words stay apart. Joiners and marks of direction stay: scripts and emoji need
 * them. */
static void drop_controls(reader r, leat__buf *out)
{
    const uint8_t *kept = r.p; /* where the characters begin that are not in `out` yet */
    while (r.p < r.end) {
        uint32_t n, code = leat__utf8_decode(r.p, &n);
        bool drop = (code < 0x20 && code != '\n' && code != '\t' && code != '\r') ||
                    (code >= 0x7f && code < 0xa0) || code == 0xfeff || code == 0x200b || code == 0x2060 ||
                    code == 0xad;
        if (drop) {
            put(out, kept, (size_t)(r.p - kept));
            if (leat__unicode_of(code) & LEAT__UNI_SPACE) leat__buf_putc(out, ' ');
            kept = r.p + n;
        }
        r.p += n;
    }
    put(out, kept, (size_t)(r.end - kept));
}

/* Undoes mojibake, also of text that was misread several times, then drops controls. */
static void unicode_repair(reader r, leat__buf *out)
{
    leat__buf a, b;
    leat__buf_init(&a, out->cat, out->max);
    leat__buf_init(&b, out->cat, out->max);
    for (int round = 0; round < MISREAD_MAX; round++) {
        leat__mojibake found = leat__mojibake_find(r.p, (size_t)(r.end - r.p));
        if (!found.sure) break;
        leat__buf *to = round % 2 ? &b : &a;
        leat__buf_clear(to);
        leat__mojibake_undo(r.p, (size_t)(r.end - r.p), found, to);
        r = all_of(to);
    }
    drop_controls(r, out);
    if (a.status) out->status = a.status;
    if (b.status) out->status = b.status;
    leat__buf_reset(&a);
    leat__buf_reset(&b);
}

/* Replaces full-width ASCII, ligatures, non-breaking and other blanks, and dashes by plain
 * characters. */
static void compatible(reader r, leat__buf *out)
{
    static const char *const ligature[] = {"ff", "fi", "fl", "ffi", "ffl", "st", "st"};
    while (r.p < r.end) {
        uint32_t n, code = leat__utf8_decode(r.p, &n);
        uint8_t is = leat__unicode_of(code);
        if (code >= 0xff01 && code <= 0xff5e) leat__buf_putc(out, (char)(code - 0xfee0));
        else if (code >= 0xfb00 && code <= 0xfb06) leat__buf_puts(out, ligature[code - 0xfb00]);
        else if (code >= 0x80 && (is & LEAT__UNI_SPACE) && !(is & LEAT__UNI_BREAK)) leat__buf_putc(out, ' ');
        else if (code == 0x2010 || code == 0x2011) leat__buf_putc(out, '-');
        else put(out, r.p, n);
        r.p += n;
    }
}

/* True for a character that a URL may contain; beyond ASCII, everything except white space, punctuation and
 * symbols. */
static bool in_url(const uint8_t *p, uint32_t *bytes)
{
    uint32_t code = leat__utf8_decode(p, bytes);
    if (code < 0x80) return code > ' ' && code < 0x7f && !strchr("<>\"'`{}|\\^", (int)code);
    return !(leat__unicode_of(code) & LEAT__UNI_MARK);
}

/* Returns the length of a URL at p; 0 when there is none. A square bracket ends it, and a round one that it
 * did not open, as in [a](http://b.c). */
static size_t url_length(const uint8_t *p, const uint8_t *end)
{
    static const char *const begins[] = {"http://", "https://", "ftp://", "www."};
    size_t n = 0;
    for (size_t i = 0; i < LEAT_COUNT(begins) && n == 0; i++) {
        size_t k = strlen(begins[i]);
        while (n < k && p + n < end && (is_alnum(p[n]) ? p[n] | 32 : p[n]) == (uint8_t)begins[i][n]) n++;
        if (n < k) n = 0;
    }
    if (n == 0) return 0;
    size_t begin = n;
    uint32_t bytes, open = 0;
    for (; p + n < end && in_url(p + n, &bytes); n += bytes) {
        const uint8_t c = p[n];
        if (n > begin && (c == '[' || (c == ']' && p[begin] != '['))) break; /* [::1] is an address */
        if (c == ')' && open-- == 0) break;
        open += c == '(';
    }
    while (n > begin && strchr(".,;:!?", p[n - 1])) n--;
    return n > begin ? n : 0;
}

static void urls(reader r, leat__buf *out)
{
    const uint8_t *before = NULL;
    while (r.p < r.end) {
        size_t n = !before || !is_alnum(*before) ? url_length(r.p, r.end) : 0;
        before = r.p;
        if (n > 0) {
            r.p += n;
        } else {
            put(out, r.p, 1);
            r.p++;
        }
    }
}

/* True for letters of scripts that put no blanks between words, or attach particles to foreign words: Thai to
 * Khmer, Chinese, Japanese, Korean. They cannot be told from an address beside them. */
static bool is_unspaced(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0xe00, 0xeff},   {0x1000, 0x109f},  {0x1100, 0x11ff},
                                         {0x1780, 0x17ff}, {0x2e80, 0x4dbf},  {0x4e00, 0x9fff},
                                         {0xa960, 0xa97f}, {0xac00, 0xd7ff},  {0xf900, 0xfaff},
                                         {0xff66, 0xffdc}, {0x20000, 0x3ffff}};
    for (size_t i = 0; i < LEAT_COUNT(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

/* Returns the bytes of the letter or digit at p that may belong to the same word as an address or a number; 0
 * when there is none. */
static uint32_t letter_at(const uint8_t *p, const uint8_t *end)
{
    uint32_t n = 1;
    if (p >= end) return 0;
    if (*p < 0x80) return is_alnum(*p);
    uint32_t code = leat__utf8_decode(p, &n);
    return (leat__unicode_of(code) & (LEAT__UNI_ALPHA | LEAT__UNI_DIGIT)) && !is_unspaced(code) ? n : 0;
}

/* Returns the length of an e-mail address that begins at p; 0 when there is none. */
static size_t email_length(const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
    size_t n = 0, label = 0, last_label = 0;
    bool dot = false, letters = true;
    for (uint32_t k; p + n < end && n <= 64; n += k) {
        k = letter_at(p + n, end);
        if (k == 0 && strchr("._%+-", p[n]) && p[n]) k = 1;
        if (k == 0) break;
    }
    if (n == 0 || p + n >= end || p[n] != '@' || p[n - 1] == '.') return 0;
    size_t at = n + 1;
    for (uint32_t k; p + at < end && at < n + 255; at += k) {
        k = letter_at(p + at, end);
        if (k > 0 || p[at] == '-') {
            letters = letters && !is_digit(p[at]) && p[at] != '-';
            k += k == 0;
            label++;
        } else if (p[at] == '.' && label > 0 && letter_at(p + at + 1, end)) {
            dot = letters = true;
            label = 0;
            k = 1;
        } else {
            break;
        }
        last_label = label;
    }
    return dot && last_label >= 2 && letters ? at : 0;
}

/* Returns the length of a dotted IPv4 address; 0 when there is none. */
static size_t ip_length(const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
    size_t n = 0;
    for (int part = 0; part < 4; part++) {
        unsigned value = 0, digits = 0;
        while (p + n < end && is_digit(p[n]) && digits < 4) {
            value = value * 10 + (p[n++] - '0');
            digits++;
        }
        if (digits == 0 || digits > 3 || value > 255) return 0;
        if (part == 3) break;
        if (p + n >= end || p[n] != '.') return 0;
        n++;
    }
    bool more = p + n + 1 < end && p[n] == '.' && is_digit(p[n + 1]);
    return more || (p + n < end && is_alnum(p[n])) ? 0 : n;
}

/* A number as groups of digits. */
typedef struct number {
    bool plus, bracket;
    unsigned groups, digits, size[8];
    uint8_t separator; /* between groups; 0 = not always the same */
    size_t end;
} number;

static bool is_separator(uint8_t c)
{
    return c == ' ' || c == '.' || c == '-';
}

/* Reads the separator between two groups: one character, or brackets around one of the first two groups.
 * Returns where the next group begins, 0 when none follows. */
static size_t next_group(const uint8_t *p, const uint8_t *end, size_t at, bool *inside, number *n)
{
    uint8_t found = 0;
    if (*inside) {
        if (p + at >= end || p[at] != ')') return 0;
        *inside = false;
        at++;
    }
    bool closed = at > 0 && p[at - 1] == ')';
    if (p + at < end && is_separator(p[at])) found = p[at++];
    if (p + at < end && p[at] == '(' && n->groups < 2 && !n->bracket && found != '.') {
        n->bracket = *inside = true;
        at++;
    }
    if (p + at >= end || !is_digit(p[at]) || (!found && !closed && !*inside)) return 0;
    if (n->groups == 1) n->separator = found;
    if (n->separator != found) n->separator = 0;
    return at;
}

static bool read_number(const uint8_t *p, const uint8_t *end, number *n)
{
    bool inside = *p == '(';
    *n = (number){.plus = *p == '+', .bracket = inside};
    for (size_t at = n->plus || inside;;) {
        unsigned size = 0;
        while (p + at < end && is_digit(p[at]) && size < 16) at++, size++;
        if (size == 0 || size > 15 || n->groups == LEAT_COUNT(n->size)) return false;
        n->size[n->groups++] = size;
        n->digits += size;
        n->end = at;
        at = next_group(p, end, at, &inside, n);
        if (at == 0) return !inside;
    }
}

/* True for a number with a country code: 8 to 15 digits; 11 for countries 1 and 7, the only one-digit
 * codes. */
static bool is_international(const uint8_t *p, const number *n)
{
    if (p[1] == '1' || p[1] == '7') return n->digits == 11;
    return p[1] != '0' && n->size[0] > 1 && n->digits >= 8 && n->digits <= 15;
}

/* True for 3-3-4 digits, possibly after a 1; the area code begins with 2 to 9. */
static bool is_american(const uint8_t *p, const number *n)
{
    const unsigned one = n->groups == 4, *g = n->size + one;
    const uint8_t *area = p + (*p == '(');
    if (n->groups != 3 + one || (one && (n->size[0] != 1 || *p != '1'))) return false;
    while (one && !is_digit(*++area)) continue;
    return g[0] == 3 && g[1] == 3 && g[2] == 4 && *area >= '2';
}

/* True for two to five groups with one kind of separator and 9 to 12 digits; the first begins with 0 and has
 * 2 to 5 digits. Dates are excluded: two digits, two digits, and a year. */
static bool is_national(const uint8_t *p, const number *n)
{
    const unsigned *g = n->size;
    bool date = n->groups > 2 && g[0] == 2 && g[1] == 2 && g[2] == 4;
    return p[*p == '('] == '0' && g[0] >= 2 && g[0] <= 5 && n->groups >= 2 && n->groups <= 5 &&
           n->digits >= 9 && n->digits <= 12 && (n->separator || n->bracket) && !date;
}

/* Returns the length of a telephone number, or 0. docs/text.md has the rule. */
static size_t phone_length(const uint8_t *text, const uint8_t *p, const uint8_t *end)
{
    number n;
    if ((*p != '+' && *p != '(' && !is_digit(*p)) || !read_number(p, end, &n)) return 0;
    bool link =
        p - text >= 4 && (p[-4] | 32) == 't' && (p[-3] | 32) == 'e' && (p[-2] | 32) == 'l' && p[-1] == ':';
    if (p + n.end < end && is_alnum(p[n.end])) return 0;
    if (link) return n.digits >= 7 && n.digits <= 15 ? n.end : 0;
    if (n.plus) return is_international(p, &n) ? n.end : 0;
    if (p - text >= 2 && is_separator(p[-1]) && is_digit(p[-2])) return 0; /* the end of a longer number */
    return is_american(p, &n) || is_national(p, &n) ? n.end : 0;
}

typedef size_t (*finder)(const uint8_t *text, const uint8_t *p, const uint8_t *end);

/* Replaces all matches, except those that begin inside a word or after a dot. */
static void replace_all(reader r, leat__buf *out, finder find, const char *with)
{
    const uint8_t *text = r.p;
    bool free = true;
    while (r.p < r.end) {
        size_t n = free ? find(text, r.p, r.end) : 0;
        if (n > 0) {
            leat__buf_puts(out, with);
            r.p += n;
            continue;
        }
        uint32_t bytes = letter_at(r.p, r.end);
        free = bytes == 0 && *r.p != '.';
        if (bytes == 0) (void)!leat__utf8_decode(r.p, &bytes);
        put(out, r.p, bytes);
        r.p += bytes;
    }
}

static void pii(reader r, leat__buf *out)
{
    leat__buf a, b;
    leat__buf_init(&a, out->cat, out->max);
    leat__buf_init(&b, out->cat, out->max);
    replace_all(r, &a, email_length, "<EMAIL>");
    replace_all(all_of(&a), &b, ip_length, "<IP>");
    replace_all(all_of(&b), out, phone_length, "<PHONE>");
    if (a.status) out->status = a.status;
    if (b.status) out->status = b.status;
    leat__buf_reset(&a);
    leat__buf_reset(&b);
}

static void emails(reader r, leat__buf *out)
{
    replace_all(r, out, email_length, "");
}

static bool has_word(const uint8_t *p, const uint8_t *end, const char *word)
{
    size_t n = strlen(word);
    for (; (size_t)(end - p) >= n; p++) {
        size_t i = 0;
        while (i < n && (p[i] >= 'A' && p[i] <= 'Z' ? p[i] | 32 : p[i]) == (uint8_t)word[i]) i++;
        if (i == n) return true;
    }
    return false;
}

static bool has_policy(const uint8_t *p, const uint8_t *end)
{
    static const char *const phrases[] = {"terms of use", "privacy policy", "cookie policy",
                                          "uses cookies", "use of cookies", "use cookies"};
    for (size_t i = 0; i < LEAT_COUNT(phrases); i++)
        if (has_word(p, end, phrases[i])) return true;
    return false;
}

static bool boilerplate_line(const uint8_t *p, const uint8_t *end)
{
    return has_policy(p, end) || has_word(p, end, "lorem ipsum") || has_word(p, end, "javascript");
}

static void boilerplate(reader r, leat__buf *out)
{
    bool first = true;
    while (r.p <= r.end) {
        const uint8_t *nl = r.p < r.end ? memchr(r.p, '\n', (size_t)(r.end - r.p)) : NULL;
        const uint8_t *end = nl ? nl : r.end;
        if (!boilerplate_line(r.p, end)) {
            if (!first) leat__buf_putc(out, '\n');
            put(out, r.p, (size_t)(end - r.p));
            first = false;
        }
        r.p = end + 1;
    }
}

/* Returns the length of a citation mark at p: [12], [], [edit] or [citation needed]; 0 when there is none. */
static size_t citation_length(const uint8_t *p, const uint8_t *end)
{
    static const char *const marks[] = {"[edit]", "[citation needed]"};
    const uint8_t *q = p + 1;
    for (size_t i = 0; i < LEAT_COUNT(marks); i++) {
        size_t n = strlen(marks[i]);
        if ((size_t)(end - p) >= n && memcmp(p, marks[i], n) == 0) return n;
    }
    while (q < end && is_digit(*q)) q++;
    return *p == '[' && q < end && *q == ']' ? (size_t)(q + 1 - p) : 0;
}

static void put_without_citations(const uint8_t *p, const uint8_t *end, leat__buf *out)
{
    while (p < end) {
        size_t n = *p == '[' ? citation_length(p, end) : 0;
        if (n == 0) leat__buf_putc(out, (char)*p);
        p += n + (n == 0);
    }
}

/* True for a line that C4 keeps: an end mark, no dots, no policy phrase, no script. Also for a line for which
 * it drops the page, so that the score c4_drop finds it. */
static bool c4_line(const uint8_t *p, const uint8_t *end)
{
    if (end == p || end[-1] == 0 || !strchr(".?!\"'", end[-1])) return false;
    if (end - p >= 3 && memcmp(end - 3, "...", 3) == 0) return false;
    if (has_word(p, end, "lorem ipsum")) return true;
    if (has_word(p, end, "javascript")) return false;
    return memchr(p, '{', (size_t)(end - p)) || !has_policy(p, end);
}

typedef struct line {
    const uint8_t *p, *end; /* from its first to its last word */
    const uint8_t *next;    /* the line after it */
    unsigned words;
    unsigned longest; /* word, in characters */
} line;

/* Reads a line of str.splitlines(), and its words. */
static line read_line(const uint8_t *p, const uint8_t *end)
{
    line l = {.p = p, .end = p};
    unsigned word = 0;
    uint32_t n;
    for (; p < end; p += n) {
        uint8_t is = leat__unicode_of(leat__utf8_decode(p, &n));
        if (is & LEAT__UNI_BREAK) {
            n += *p == '\r' && p + 1 < end && p[1] == '\n';
            p += n;
            break;
        }
        if (is & LEAT__UNI_SPACE) {
            word = 0;
            continue;
        }
        if (l.words == 0) l.p = p;
        if (word++ == 0) l.words++;
        if (word > l.longest) l.longest = word;
        l.end = p + n;
    }
    l.next = p;
    return l;
}

/* Removes white space at the start, which a citation mark leaves before the first kept line. */
static void strip_start(leat__buf *out)
{
    size_t at = 0;
    uint32_t n;
    for (; at < out->len; at += n)
        if (!(leat__unicode_of(leat__utf8_decode((const uint8_t *)out->data + at, &n)) & LEAT__UNI_SPACE))
            break;
    memmove(out->data, out->data + at, out->len - at + 1);
    out->len -= at;
}

#define C4_WORDS 3
#define C4_LONGEST 1000

static void c4_lines(reader r, leat__buf *out)
{
    while (r.p < r.end && out->status == 0) {
        line l = read_line(r.p, r.end);
        r.p = l.next;
        if (l.words < C4_WORDS || l.longest > C4_LONGEST) continue;
        size_t before = out->len;
        if (before > 0) leat__buf_putc(out, '\n');
        size_t from = out->len;
        put_without_citations(l.p, l.end, out);
        if (out->status != 0) return;
        const uint8_t *made = (const uint8_t *)out->data;
        if (!c4_line(made + from, made + out->len)) {
            out->len = before;
            out->data[before] = 0;
        } else if (before == 0) {
            strip_start(out);
        }
    }
}

static const struct {
    const char *name, *help;
    void (*run)(reader r, leat__buf *out);
} steps[] = {
    {"unicode", "undo UTF-8 read as Windows-1252; drop controls, soft hyphens, zero-width spaces",
     unicode_repair},
    {"compatible", "replace full-width characters, ligatures and unusual blanks", compatible},
    {"newlines", "one kind of line end, no blanks before it, at most one blank line", newlines},
    {"quotes", "straight quotes", quotes},
    {"urls", "remove URLs", urls},
    {"emails", "remove e-mail addresses", emails},
    {"pii", "replace e-mail and IPv4 addresses and telephone numbers by <EMAIL>, <IP>, <PHONE>", pii},
    {"boilerplate", "remove lines with policy phrases, lorem ipsum or javascript", boilerplate},
    {"c4-lines", "keep only lines that C4 keeps, without citation marks", c4_lines},
};

bool leat__modifier_at(unsigned i, const char **name, const char **help)
{
    if (i >= LEAT_COUNT(steps)) return false;
    *name = steps[i].name;
    *help = steps[i].help;
    return true;
}

int leat__modifiers_init(leat__modifiers *m, const char *names, leat_error *err)
{
    memset(m, 0, sizeof *m);
    leat__buf_init(&m->work, LEAT__MEM_CURATE, (size_t)1 << 33);
    for (const char *p = names ? names : ""; *p;) {
        while (*p == ' ') p++;
        size_t n = strcspn(p, ","), all = n;
        unsigned i = 0;
        while (n > 0 && p[n - 1] == ' ') n--;
        while (i < LEAT_COUNT(steps) && (strlen(steps[i].name) != n || memcmp(steps[i].name, p, n) != 0)) i++;
        if (i == LEAT_COUNT(steps))
            return leat__fail(err, LEAT_EINVAL, "there is no modifier \"%.*s\"", (int)n, p);
        if (m->count == LEAT__MODIFIERS_MAX)
            return leat__fail(err, LEAT_EINVAL, "more than %d modifiers", LEAT__MODIFIERS_MAX);
        m->step[m->count++] = (uint8_t)i;
        p += all + (p[all] == ',');
    }
    return 0;
}

void leat__modifiers_reset(leat__modifiers *m)
{
    leat__buf_reset(&m->work);
    memset(m, 0, sizeof *m);
}

int leat__modifiers_run(leat__modifiers *m, leat__buf *text, bool *changed, leat_error *err)
{
    *changed = false;
    for (unsigned i = 0; i < m->count; i++) {
        leat__buf_clear(&m->work);
        steps[m->step[i]].run(all_of(text), &m->work);
        if (m->work.status != 0) return leat__fail_nomem(err, text->len, "a modified document");
        if (m->work.len == text->len && (text->len == 0 || memcmp(m->work.data, text->data, text->len) == 0))
            continue;
        leat__buf swap = *text;
        *text = m->work;
        m->work = swap;
        *changed = true;
    }
    return 0;
}
