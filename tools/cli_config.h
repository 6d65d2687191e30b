/* SPDX-License-Identifier: Apache-2.0
 *
 * Options from a YAML file: --config of commands whose table has `.config`. The file is one mapping; its
 * keys are the command's option names. Options on the command line win.
 */
#ifndef LEAT_TOOLS_CLI_CONFIG_H
#define LEAT_TOOLS_CLI_CONFIG_H

#include "cli_parse.h"

/* Owns the texts that values of the line point to. Initialise with zeros. */
typedef struct cli_config {
    char *text[CLI_OPTIONS_MAX];
    size_t count;
} cli_config;

/* Reads the file named by --config, if any, into the values of the line. LEAT_EINVAL names the place
 * in the file when a key or a value is wrong. */
int cli_config_read(cli_config *config, cli_line *line, leat_error *err) LEAT_MUST_CHECK;
/* Does the same for a text in memory; `path` is for messages. */
int cli_config_parse(cli_config *config, cli_line *line, const char *path, const char *text, size_t len,
                     leat_error *err) LEAT_MUST_CHECK;
void cli_config_reset(cli_config *config);

#endif
