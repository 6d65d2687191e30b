/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding elements in XML: see xml.h.
 */
#include "io/xml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

/* Finds the next "<tag" or "</tag" at or after `from`; NULL when there is none. *close: position of its '>';
 * *empty: it is "<tag/>". */
static const char *find_tag(const char *from, const char *end, const char *tag, bool ending,
                            const char **close, bool *empty)
{
    size_t len = strlen(tag);
    while (from < end && (from = memchr(from, '<', (size_t)(end - from))) != NULL) {
        const char *name = from + 1 + (ending ? 1 : 0);
        const char *stop = memchr(from, '>', (size_t)(end - from));
        if (stop == NULL) return NULL;
        bool match = (!ending || from[1] == '/') && name + len <= stop && memcmp(name, tag, len) == 0 &&
                     (name[len] == '>' || name[len] == ' ' || name[len] == '/' || name[len] == '\n');
        if (match) {
            *close = stop;
            *empty = stop[-1] == '/';
            return from;
        }
        from = stop + 1;
    }
    return NULL;
}

bool leat__xml_next(leat__xml in, const char *tag, leat__xml *inner, leat__xml *rest)
{
    if (in.len == 0) return false; /* `data` may be NULL then */
    const char *end = in.data + in.len, *close = NULL, *stop = NULL;
    bool empty = false, unused;
    if (find_tag(in.data, end, tag, false, &close, &empty) == NULL) return false;
    const char *begin = close + 1, *last = begin;
    stop = close;
    if (!empty) {
        last = find_tag(begin, end, tag, true, &stop, &unused);
        if (last == NULL) return false;
    }
    *inner = (leat__xml){begin, (size_t)(last - begin)};
    if (rest != NULL) *rest = (leat__xml){stop + 1, (size_t)(end - stop - 1)};
    return true;
}

static void put_utf8(leat__buf *out, uint32_t c)
{
    if (c < 0x80) {
        (void)leat__buf_putc(out, (char)c);
    } else if (c < 0x800) {
        (void)leat__buf_printf(out, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
    } else if (c < 0x10000) {
        (void)leat__buf_printf(out, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 63)),
                               (int)(0x80 | (c & 63)));
    } else if (c < 0x110000) {
        (void)leat__buf_printf(out, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 63)),
                               (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    }
}

/* Decodes one entity at `p` ("&…;"); returns its length, 0 when it is not an entity. */
static size_t put_entity(leat__buf *out, const char *p, size_t len)
{
    static const struct {
        const char *text;
        char c;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < LEAT_COUNT(known); i++) {
        size_t n = strlen(known[i].text);
        if (len < n || memcmp(p, known[i].text, n) != 0) continue;
        (void)leat__buf_putc(out, known[i].c);
        return n;
    }
    const char *stop = memchr(p, ';', LEAT_MIN(len, (size_t)12));
    if (stop == NULL || len < 4 || p[1] != '#') return 0;
    char *end;
    bool hex = p[2] == 'x';
    unsigned long c = strtoul(p + (hex ? 3 : 2), &end, hex ? 16 : 10);
    if (end != stop || c == 0 || c >= 0x110000) return 0;
    put_utf8(out, (uint32_t)c);
    return (size_t)(stop - p) + 1;
}

bool leat__xml_text(leat__xml in, const char *tag, leat__buf *out)
{
    leat__xml inner;
    leat__buf_clear(out);
    if (!leat__xml_next(in, tag, &inner, NULL)) return false;
    for (size_t i = 0; i < inner.len;) {
        size_t n = inner.data[i] == '&' ? put_entity(out, inner.data + i, inner.len - i) : 0;
        if (n == 0) {
            (void)leat__buf_putc(out, inner.data[i]);
            n = 1;
        }
        i += n;
    }
    return leat__buf_status(out) == 0;
}

int leat__xml_escape(leat__buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<': (void)leat__buf_puts(out, "&lt;"); break;
        case '>': (void)leat__buf_puts(out, "&gt;"); break;
        case '&': (void)leat__buf_puts(out, "&amp;"); break;
        case '"': (void)leat__buf_puts(out, "&quot;"); break;
        case '\'': (void)leat__buf_puts(out, "&apos;"); break;
        default: (void)leat__buf_putc(out, *text);
        }
    }
    return leat__buf_status(out);
}
