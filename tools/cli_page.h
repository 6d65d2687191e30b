/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that is written out of the tables: help pages, man pages, completions and the
 * tables themselves as JSON. All into a buffer; none of it depends on the terminal.
 */
#ifndef LEAT_TOOLS_CLI_PAGE_H
#define LEAT_TOOLS_CLI_PAGE_H

#include "cli.h"

/* A page is told to a writer, section by section. One writer sets text for a terminal, one
 * sets roff. */
typedef struct cli_writer cli_writer;
struct cli_writer {
    leat__buf *out;
    int width; /* of the text, in columns */
    bool color;
    /* "leat pack", "turn images into …" */
    void (*title)(cli_writer *w, const char *name, const char *summary);
    void (*section)(cli_writer *w, const char *title);
    void (*paragraphs)(cli_writer *w, const char *text); /* an empty line between two */
    void (*synopsis)(cli_writer *w, const char *usage);
    void (*example)(cli_writer *w, const char *command, const char *text);
    void (*item)(cli_writer *w, const char *term, const char *text);
};

cli_writer cli_writer_text(leat__buf *out, int width, bool color);
cli_writer cli_writer_roff(leat__buf *out);

/* The page of one command, and the page of `leat` itself. */
void cli_page_command(cli_writer *w, const cli_command *command);
void cli_page_overview(cli_writer *w, const cli_command *const *commands);

/* "-o, --output FILE" into out; "[default: 4]" and the like are part of cli_option_text. */
void cli_option_term(const leat__param *p, leat__buf *out);
void cli_option_text(const leat__param *p, bool required, leat__buf *out);
const char *cli_metavar(const leat__param *p); /* NULL for flags */

/* "bash", "zsh" or "fish". */
void cli_complete_bash(const cli_command *const *commands, leat__buf *out);
void cli_complete_zsh(const cli_command *const *commands, leat__buf *out);
void cli_complete_fish(const cli_command *const *commands, leat__buf *out);

/* The tables as one JSON object; `only`: the table of this command, NULL = all. */
void cli_tables_json(const cli_command *const *commands, const cli_command *only, leat__buf *out);

#endif
