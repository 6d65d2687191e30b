/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that is generated from the tables: help pages, man pages, completions and the tables as JSON.
 * All of it is written to a buffer and does not depend on the terminal.
 */
#ifndef LEAT_TOOLS_CLI_PAGE_H
#define LEAT_TOOLS_CLI_PAGE_H

#include "cli.h"

/* Receives a page section by section. One writer formats text for a terminal, one roff. */
typedef struct cli_writer cli_writer;
struct cli_writer {
    leat__buf *out;
    int width; /* columns of text */
    bool color;
    /* Begins a page: name and summary, such as "leat pack", "turn images into …". */
    void (*title)(cli_writer *w, const char *name, const char *summary);
    void (*section)(cli_writer *w, const char *title);
    void (*paragraphs)(cli_writer *w, const char *text); /* separated by empty lines */
    void (*synopsis)(cli_writer *w, const char *usage);
    void (*example)(cli_writer *w, const char *command, const char *text);
    void (*item)(cli_writer *w, const char *term, const char *text);
};

cli_writer cli_writer_text(leat__buf *out, int width, bool color);
cli_writer cli_writer_roff(leat__buf *out);

/* Write the page of one command, and the page of `leat` itself. */
void cli_page_command(cli_writer *w, const cli_command *command);
void cli_page_overview(cli_writer *w, const cli_command *const *commands);

/* cli_option_term writes "-o, --output FILE"; cli_option_text the help with "[default: 4]" and the like. */
void cli_option_term(const leat__param *p, leat__buf *out);
void cli_option_text(const leat__param *p, bool required, leat__buf *out);
const char *cli_metavar(const leat__param *p); /* NULL for flags */

/* Write the completion script for bash, zsh or fish. */
void cli_complete_bash(const cli_command *const *commands, leat__buf *out);
void cli_complete_zsh(const cli_command *const *commands, leat__buf *out);
void cli_complete_fish(const cli_command *const *commands, leat__buf *out);

/* Writes the tables as one JSON object; `only`: the table of this command, NULL = all. */
void cli_tables_json(const cli_command *const *commands, const cli_command *only, leat__buf *out);

#endif
