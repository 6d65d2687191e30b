/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the command line of one subcommand against its table. Prints nothing and allocates nothing, so it
 * is tested without a process.
 */
#ifndef LEAT_TOOLS_CLI_PARSE_H
#define LEAT_TOOLS_CLI_PARSE_H

#include "cli.h"

struct cli_line {
    const cli_command *command;
    const leat__param *params[CLI_OPTIONS_MAX]; /* options of all groups and the common ones */
    leat__value values[CLI_OPTIONS_MAX];
    bool typed[CLI_OPTIONS_MAX]; /* given on the command line, not in the --config file */
    size_t param_count;
    char **args; /* positional arguments: the front of argv, which is reordered */
    size_t arg_count;
    bool help; /* --help was given: missing options were not checked */
};

/* Returns the options that the frame adds to `command`, as a group ("Common options"). */
cli_group cli_common(const cli_command *command);
cli_group cli_remote(const cli_command *command); /* empty for commands without remote paths */

/* Returns the i-th option of the command, all groups in order and the common ones last; NULL past the
 * last. */
const leat__param *cli_option_at(const cli_command *command, size_t i);

/* Parses the words after the subcommand's name. LEAT_EINVAL says in one line what is wrong, with a
 * hint if a valid word is near. Values point into argv, which must outlive the line. */
int cli_parse(cli_line *line, const cli_command *command, int argc, char **argv,
              leat_error *err) LEAT_MUST_CHECK;

/* Fails when a required option is missing. cli_parse calls it, except for commands with --config:
 * their file may still give the option. */
int cli_check_required(const cli_line *line, leat_error *err) LEAT_MUST_CHECK;

/* Returns the other name of an option that commands name differently ("batch", "batch-size"), or
 * NULL. Every command accepts both, also in the --config file. */
const char *cli_twin(const char *name);

/* Returns the index of an option by its long name or its twin, -1 when there is none. */
int cli_line_find(const cli_line *line, const char *name);

/* Returns the command called `name`, or NULL; *nearest is then a command to suggest, or NULL.
 * `commands` ends with NULL. */
const cli_command *cli_find(const cli_command *const *commands, const char *name, const char **nearest);

/* True when `name` is one of the words of `list` ("a|b|c"). */
bool cli_listed(const char *list, const char *name);

/* Copies the i-th word of "a|b|c" to `out`; returns false past the last. */
bool cli_word(const char *list, int index, char *out, size_t size);

#endif
