/* SPDX-License-Identifier: Apache-2.0
 *
 * A page as roff for man(1). Uses only macros of man(7) that every renderer knows. It has no date: the same
 * tables give the same bytes.
 */
#include <ctype.h>
#include <string.h>

#include <leat/version.h>

#include "cli_page.h"

/* Escapes text for roff: backslashes and dashes, and a dot or an apostrophe at the start of a line,
 * which would be a request. */
static void roff_text(leat__buf *out, const char *s, size_t len)
{
    bool line_start = true;
    for (size_t i = 0; i < len; i++) {
        const char c = s[i];
        if (line_start && (c == '.' || c == '\'')) leat__buf_puts(out, "\\&");
        line_start = c == '\n';
        switch (c) {
        case '\\': leat__buf_puts(out, "\\e"); break;
        case '-': leat__buf_puts(out, "\\-"); break;
        case '\'': leat__buf_puts(out, "\\(aq"); break;
        case '`': leat__buf_puts(out, "\\(ga"); break;
        case '^': leat__buf_puts(out, "\\(ha"); break;
        case '~': leat__buf_puts(out, "\\(ti"); break;
        case '"': leat__buf_puts(out, "\\(dq"); break;
        default: leat__buf_putc(out, c);
        }
    }
}

static void roff_line(leat__buf *out, const char *s)
{
    roff_text(out, s, strlen(s));
    leat__buf_putc(out, '\n');
}

static void roff_title(cli_writer *w, const char *name, const char *summary)
{
    leat__buf_puts(w->out, ".TH \"");
    for (const char *s = name; *s; s++)
        leat__buf_putc(w->out, *s == ' ' ? '-' : (char)toupper((unsigned char)*s));
    leat__buf_puts(w->out, "\" 1 \"\" \"leat " LEAT_VERSION "\" \"leat manual\"\n"
                           ".nh\n.ad l\n.SH NAME\n");
    for (const char *s = name; *s; s++) /* whatis(1) needs one word */
        leat__buf_puts(w->out, *s == ' ' || *s == '-' ? "\\-" : (const char[]){*s, '\0'});
    leat__buf_puts(w->out, " \\- ");
    roff_line(w->out, summary);
}

static void roff_section(cli_writer *w, const char *title)
{
    leat__buf_puts(w->out, ".SH \"");
    for (const char *s = title; *s; s++) leat__buf_putc(w->out, (char)toupper((unsigned char)*s));
    leat__buf_puts(w->out, "\"\n");
}

static void roff_paragraphs(cli_writer *w, const char *text)
{
    while (*text) {
        const char *gap = strstr(text, "\n\n");
        const size_t len = gap ? (size_t)(gap - text) : strlen(text);
        leat__buf_puts(w->out, ".PP\n");
        roff_text(w->out, text, len);
        leat__buf_putc(w->out, '\n');
        text += len;
        while (*text == '\n') text++;
    }
}

static void roff_synopsis(cli_writer *w, const char *usage)
{
    leat__buf_puts(w->out, ".PP\n");
    roff_line(w->out, usage);
}

static void roff_example(cli_writer *w, const char *command, const char *text)
{
    leat__buf_puts(w->out, ".TP\n\\fB");
    roff_text(w->out, command, strlen(command));
    leat__buf_puts(w->out, "\\fR\n");
    roff_line(w->out, text ? text : "");
}

static void roff_item(cli_writer *w, const char *term, const char *text)
{
    while (*term == ' ') term++; /* the column of short options is for terminals */
    roff_example(w, term, text);
}

cli_writer cli_writer_roff(leat__buf *out)
{
    return (cli_writer){
        .out = out,
        .title = roff_title,
        .section = roff_section,
        .paragraphs = roff_paragraphs,
        .synopsis = roff_synopsis,
        .example = roff_example,
        .item = roff_item,
    };
}
