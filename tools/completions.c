/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat completions SHELL`: prints the script that a shell loads.
 */
#include "base/str.h"
#include "cli_frame.h"
#include "cli_page.h"

static int run(cli *c)
{
    leat__buf script;
    leat__buf_init(&script, LEAT__MEM_MISC, CLI_PAGE_MAX);
    if (leat__str_eq(cli_arg(c, 0), "bash")) cli_complete_bash(c->commands, &script);
    else if (leat__str_eq(cli_arg(c, 0), "zsh")) cli_complete_zsh(c->commands, &script);
    else cli_complete_fish(c->commands, &script);
    const int exit_code = cli_show(c, &script);
    leat__buf_reset(&script);
    return exit_code;
}

const cli_command cli_cmd_completions = {
    .name = "completions",
    .summary = "write a shell's completion script",
    .examples =
        (const cli_example[]){{"source <(leat completions bash)", "in ~/.bashrc"},
                              {"leat completions zsh > \"${fpath[1]}/_leat\"", "for zsh"},
                              {"leat completions fish > ~/.config/fish/completions/leat.fish", "for fish"},
                              {NULL, NULL}},
    .description = "The script carries names and help of all commands and options and never "
                   "runs leat. Packages install it; write it again after an update of leat if "
                   "you keep your own copy.",
    .args =
        (const cli_arg_spec[]){
            {.name = "SHELL", .help = "the shell to write for", .choices = "bash|zsh|fish"}, {.name = NULL}},
    .run = run,
};
