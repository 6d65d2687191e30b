/* SPDX-License-Identifier: Apache-2.0
 *
 * A page as text for a terminal: sections, two columns, words wrapped at the width. Columns are counted in
 * UTF-8 characters (the pages have no wide ones).
 */
#include <ctype.h>
#include <string.h>

#include "base/num.h"
#include "cli_page.h"

#define INDENT 2
#define COLUMN_MAX 30 /* longer terms get a separate line */

static size_t columns_of(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += ((unsigned char)s[i] & 0xC0) != 0x80;
    return n;
}

static void spaces(leat__buf *out, size_t n)
{
    while (n-- > 0) leat__buf_putc(out, ' ');
}

/* Writes `len` bytes of words from column `at` on; further lines start at `indent`. Adds no final newline. */
static void wrap(cli_writer *w, const char *text, size_t len, size_t at, size_t indent)
{
    const char *end = text + len;
    bool first = true;
    while (text < end) {
        while (text < end && isspace((unsigned char)*text)) text++;
        const char *word = text;
        while (text < end && !isspace((unsigned char)*text)) text++;
        if (word == text) break;
        const size_t n = columns_of(word, (size_t)(text - word));
        if (!first && at + 1 + n > (size_t)w->width) {
            leat__buf_putc(w->out, '\n');
            spaces(w->out, indent);
            at = indent;
        } else if (!first) {
            leat__buf_putc(w->out, ' ');
            at++;
        }
        leat__buf_append(w->out, word, (size_t)(text - word));
        at += n;
        first = false;
    }
}

static void styled(cli_writer *w, const char *code, const char *text)
{
    if (w->color) leat__buf_printf(w->out, "\033[%sm%s\033[0m", code, text);
    else leat__buf_puts(w->out, text);
}

static void text_title(cli_writer *w, const char *name, const char *summary)
{
    styled(w, "1", name);
    leat__buf_printf(w->out, " - %s\n", summary);
}

static void text_section(cli_writer *w, const char *title)
{
    char upper[128];
    size_t i = 0;
    for (; title[i] && i + 1 < sizeof upper; i++) upper[i] = (char)toupper((unsigned char)title[i]);
    upper[i] = '\0';
    leat__buf_putc(w->out, '\n');
    styled(w, "1", upper);
    leat__buf_putc(w->out, '\n');
}

static void text_paragraphs(cli_writer *w, const char *text)
{
    for (bool first = true; *text; first = false) {
        const char *gap = strstr(text, "\n\n");
        const size_t len = gap ? (size_t)(gap - text) : strlen(text);
        if (!first) leat__buf_putc(w->out, '\n');
        spaces(w->out, INDENT);
        wrap(w, text, len, INDENT, INDENT);
        leat__buf_putc(w->out, '\n');
        text += len;
        while (*text == '\n') text++;
    }
}

static void text_synopsis(cli_writer *w, const char *usage)
{
    spaces(w->out, INDENT);
    wrap(w, usage, strlen(usage), INDENT, INDENT + 4);
    leat__buf_putc(w->out, '\n');
}

static void text_example(cli_writer *w, const char *command, const char *text)
{
    spaces(w->out, INDENT);
    styled(w, "36", command);
    leat__buf_putc(w->out, '\n');
    if (!text) return;
    spaces(w->out, INDENT + 4);
    wrap(w, text, strlen(text), INDENT + 4, INDENT + 4);
    leat__buf_putc(w->out, '\n');
}

static void text_item(cli_writer *w, const char *term, const char *text)
{
    /* the second column moves left on narrow screens */
    const size_t column = LEAT_MIN((size_t)COLUMN_MAX, (size_t)w->width * 2 / 5);
    const size_t used = INDENT + columns_of(term, strlen(term));
    spaces(w->out, INDENT);
    if (used > (size_t)w->width) {
        if (w->color) leat__buf_puts(w->out, "\x1b[36m");
        wrap(w, term, strlen(term), INDENT, INDENT + 4);
        if (w->color) leat__buf_puts(w->out, "\x1b[0m");
    } else {
        styled(w, "36", term);
    }
    if (used + 2 > column) {
        leat__buf_putc(w->out, '\n');
        spaces(w->out, column);
    } else {
        spaces(w->out, column - used);
    }
    wrap(w, text, strlen(text), column, column);
    leat__buf_putc(w->out, '\n');
}

cli_writer cli_writer_text(leat__buf *out, int width, bool color)
{
    return (cli_writer){
        .out = out,
        .width = LEAT_MAX(40, LEAT_MIN(width, 100)),
        .color = color,
        .title = text_title,
        .section = text_section,
        .paragraphs = text_paragraphs,
        .synopsis = text_synopsis,
        .example = text_example,
        .item = text_item,
    };
}
