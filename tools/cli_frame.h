/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the parts of the frame share with each other and with main.c. Subcommands do not
 * include this.
 */
#ifndef LEAT_TOOLS_CLI_FRAME_H
#define LEAT_TOOLS_CLI_FRAME_H

#include "cli.h"

/* Lifetime of a context: cli_begin; cli_adapt after the line is parsed (colour, --quiet …); cli_end
 * flushes stdout and returns the exit code of the process. */
void cli_begin(cli *c, const cli_command *const *commands);
void cli_adapt(cli *c, const cli_line *line);
int cli_end(cli *c, int exit_code);

/* Does everything that main() does. `commands` ends with NULL. */
int cli_main(const cli_command *const *commands, int argc, char **argv);
/* Does the same inside another program, which specifies how leat is started again: {"python3", "-m",
 * "leat", NULL}. */
int cli_main_inside(const cli_command *const *commands, int argc, char **argv, const char *const *self);

/* Print a page and return the exit code. `command` NULL is the page of leat itself. */
#define CLI_PAGE_MAX ((size_t)1 << 20)
int cli_version(cli *c);
int cli_show_help(cli *c, const cli_command *command);
int cli_show(cli *c, const leat__buf *page);

int cli_columns(int fd); /* width of the terminal, else $COLUMNS, else 80 */

/* Signals. `cli_stopped` returns the number of the first signal, 0 when there was none; SIGPIPE when
 * a write found stdout closed. */
void cli_signals_begin(bool talk); /* talk: print what a second Ctrl-C does */
void cli_stop(int signal_number);
int cli_stopped(void);
void cli_watch_end(cli *c); /* undoes cli_on_interrupt, if any */

/* Remove the bar from the screen, and draw it again after a line of text. */
void cli_progress_hide_locked(cli *c);
void cli_progress_show_locked(cli *c);

/* Removes the live view from the screen; the next drawing puts it below the text printed meanwhile. */
void cli_view_hide_locked(cli *c);

/* Formats the bar into `out`, at most `columns` wide. Also called by tests. */
void cli_progress_format(const cli_progress *p, int columns, bool utf8, char *out, size_t size);

#endif
