/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the frame share with each other and with main.c. Subcommands do not
 * include this.
 */
#ifndef LEAT_TOOLS_CLI_FRAME_H
#define LEAT_TOOLS_CLI_FRAME_H

#include "cli.h"

/* Life of a context: begin; adapt once the line is parsed (colour, --quiet …); end flushes
 * stdout and returns the exit code that the process leaves with. */
void cli_begin(cli *c, const cli_command *const *commands);
void cli_adapt(cli *c, const cli_line *line);
int cli_end(cli *c, int exit_code);

/* The whole process: what main() does. `commands` ends with NULL. */
int cli_main(const cli_command *const *commands, int argc, char **argv);
/* The same inside another program, which says how leat is started again: {"python3", "-m", "leat",
 * NULL}. */
int cli_main_inside(const cli_command *const *commands, int argc, char **argv, const char *const *self);

/* Print something and return the exit code. `command` NULL is the page of leat itself. */
#define CLI_PAGE_MAX ((size_t)1 << 20)
int cli_version(cli *c);
int cli_show_help(cli *c, const cli_command *command);
int cli_show(cli *c, const leat__buf *page);
int cli_unknown_command(cli *c, const char *name, const char *nearest);

int cli_columns(int fd); /* of the terminal, else $COLUMNS, else 80 */

/* Signals. `cli_stopped` is the number of the first signal, 0 when none came; SIGPIPE when a
 * write found stdout closed. */
void cli_signals_begin(bool talk); /* talk: tell the terminal what a second Ctrl-C does */
void cli_stop(int signal_number);
int cli_stopped(void);
void cli_watch_end(cli *c); /* of cli_on_interrupt; nothing when there is none */

/* Takes the bar off the screen and puts it back, around a line of text. */
void cli_progress_hide_locked(cli *c);
void cli_progress_show_locked(cli *c);

/* Takes the live view off the screen; the next drawing puts it below what was printed meanwhile. */
void cli_view_hide_locked(cli *c);

/* One drawing of the bar into `out`, at most `columns` wide; for tests too. */
void cli_progress_format(const cli_progress *p, int columns, bool utf8, char *out, size_t size);

#endif
