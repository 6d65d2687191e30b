/* SPDX-License-Identifier: Apache-2.0
 *
 * The command `leat`: the list of subcommands and main(). The list comes from the words in
 * tools/meson.build.
 */
#include "cli_frame.h"

#define COMMAND(name) extern const cli_command cli_cmd_##name;
#include "commands.inc"
#undef COMMAND

static const cli_command *const commands[] = {
#define COMMAND(name) &cli_cmd_##name,
#include "commands.inc"
#undef COMMAND
    NULL,
};

int main(int argc, char **argv)
{
    return cli_main(commands, argc, argv);
}
