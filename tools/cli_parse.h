/* SPDX-License-Identifier: Apache-2.0
 *
 * From words to values: the command line of one subcommand, parsed against its table. Prints
 * nothing and allocates nothing, so it is tested without a process.
 */
#ifndef LEAT_TOOLS_CLI_PARSE_H
#define LEAT_TOOLS_CLI_PARSE_H

#include "cli.h"

struct cli_line {
    const cli_command *command;
    const leat__param *params[CLI_OPTIONS_MAX]; /* all groups and the common ones, flat */
    leat__value values[CLI_OPTIONS_MAX];
    bool typed[CLI_OPTIONS_MAX]; /* on the command line, not in the file of --config */
    size_t param_count;
    char **args; /* positionals: the front of argv, which is reordered */
    size_t arg_count;
    bool help; /* --help was given: what is missing was not checked */
};

/* The options that the frame adds to `command`, as a group ("Common options"). */
cli_group cli_common(const cli_command *command);
cli_group cli_remote(const cli_command *command); /* empty for commands without remote paths */

/* The i-th option of the command, all groups in order and the common ones last; NULL past the
 * last. */
const leat__param *cli_option_at(const cli_command *command, size_t i);

/* Parses the words after the subcommand's name. LEAT_EINVAL and one line when they are wrong;
 * with a hint where a valid word is near. Views into argv: it must outlive the line. */
int cli_parse(cli_line *line, const cli_command *command, int argc, char **argv,
              leat_error *err) LEAT_MUST_CHECK;

/* Fails when an option that the command needs was not given. cli_parse does this, except for
 * commands with --config: their file may still give it. */
int cli_check_required(const cli_line *line, leat_error *err) LEAT_MUST_CHECK;

/* The other name of an option that commands name differently ("batch", "batch-size"), or NULL. Every command
 * accepts both, also in the file of --config. */
const char *cli_twin(const char *name);

/* Index of an option by its long name or its twin, -1 when there is none. */
int cli_line_find(const cli_line *line, const char *name);

/* The command called `name`, NULL when there is none; *nearest is then one worth a hint, or
 * NULL. `commands` ends with NULL. */
const cli_command *cli_find(const cli_command *const *commands, const char *name, const char **nearest);

/* True when `name` stands in `list` ("a|b|c"); the whole of it, not a part. */
bool cli_listed(const char *list, const char *name);

/* The i-th word of "a|b|c" into out, false past the last. */
bool cli_word(const char *list, int index, char *out, size_t size);

#endif
