/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat help`: pages for people, for man(1) and, as JSON, for programs.
 */
#include "cli_frame.h"
#include "cli_page.h"
#include "cli_parse.h"
#include "op_page.h"

#include <string.h>
#include <unistd.h>

static const leat__param options[] = {
    CLI_FLAG("man", 0, "write the page as roff, as man(1) reads it"),
    CLI_END,
};

static int show_json(cli *c, const cli_command *command)
{
    leat__buf buf;
    leat__buf_init(&buf, LEAT__MEM_MISC, CLI_PAGE_MAX);
    cli_tables_json(c->commands, command, &buf);
    return cli_json(c, &buf);
}

static int show_man(cli *c, const cli_command *command)
{
    leat__buf page;
    leat__buf_init(&page, LEAT__MEM_MISC, CLI_PAGE_MAX);
    cli_writer w = cli_writer_roff(&page);
    if (command) cli_page_command(&w, command);
    else cli_page_overview(&w, c->commands);
    const int exit_code = cli_show(c, &page);
    leat__buf_reset(&page);
    return exit_code;
}

/* Shows `leat help ops` or `leat help OP`; returns false for other names. */
static bool show_ops(cli *c, const char *name, int *exit_code)
{
    leat__buf page;
    leat__buf_init(&page, LEAT__MEM_MISC, CLI_PAGE_MAX);
    cli_writer w = cli_flag(c, "man") ? cli_writer_roff(&page)
                                      : cli_writer_text(&page, cli_columns(STDOUT_FILENO), c->color_out);
    bool found = strcmp(name, "ops") == 0;
    if (found) op_page_all(&w);
    else found = op_page_one(&w, name);
    if (found && c->json)
        *exit_code = cli_usage(c, "--json is for commands: leat help --json has all tables");
    else if (found) *exit_code = cli_show(c, &page);
    leat__buf_reset(&page);
    return found;
}

static int unknown(cli *c, const char *name, const char *nearest)
{
    if (nearest)
        return cli_usage(c, "'%s' is neither a command nor an op; did you mean '%s'?", name, nearest);
    return cli_usage(
        c, "'%s' is neither a command nor an op: leat help lists the commands, leat help ops the ops", name);
}

/* True when `kind` is a choice of the command's first argument, as `images` is of `leat dedup`. */
static bool has_kind(const cli_command *command, const char *kind)
{
    const cli_arg_spec *spec = command->args;
    const leat__param p = {.kind = LEAT__PARAM_CHOICE, .choices = spec ? spec->choices : NULL};
    leat__value value;
    return p.choices && leat__param_parse(&p, spec->name, kind, &value, NULL) == 0;
}

static int run(cli *c)
{
    const char *name = cli_arg(c, 0), *kind = cli_arg(c, 1), *nearest = NULL;
    int exit_code;
    const cli_command *command = name ? cli_find(c->commands, name, &nearest) : NULL;
    if (kind && !command) return cli_usage(c, "unexpected argument '%s': '%s' is not a command", kind, name);
    if (name && !command && show_ops(c, name, &exit_code)) return exit_code;
    if (name && !command) return unknown(c, name, nearest ? nearest : op_page_nearest(name));
    if (kind && !has_kind(command, kind)) return cli_usage(c, "leat %s has no '%s'", command->name, kind);
    if (c->json && cli_flag(c, "man"))
        return cli_usage(c, "--man and --json are two forms of a page: give one of them");
    if (c->json) return show_json(c, command);
    return cli_flag(c, "man") ? show_man(c, command) : cli_show_help(c, command);
}

const cli_command cli_cmd_help = {
    .name = "help",
    .summary = "show the help of a command",
    .examples = (const cli_example[]){{"leat help machine", "the page of one command"},
                                      {"leat help --man machine | man -l -",
                                       "the same in the reader of manual pages"},
                                      {"leat help ops", "all augmentations and their parameters"},
                                      {"leat help RandomResizedCrop", "one augmentation"},
                                      {"leat help --json", "all tables, for programs"},
                                      {"leat help load --json", "the table of one command"},
                                      {NULL, NULL}},
    .description = "Without COMMAND the page of leat itself: what there is, and where to look "
                   "further.",
    .args =
        (const cli_arg_spec[]){{.name = "COMMAND",
                                .help = "the command to explain; or ops, or the name of an augmentation",
                                .command = true,
                                .optional = true},
                               {.name = "KIND",
                                .help = "what follows the command, such as images of leat dedup: the page of "
                                        "the command has all kinds",
                                .optional = true},
                               {.name = NULL}},
    .options = {{"Options", options}},
    .json = (const cli_key[]){{"commands[].name", "name of the command"},
                              {"commands[].summary", "what it does, one line"},
                              {"commands[].arguments[]", "name, required, many, help"},
                              {"commands[].options[]", "name, letter, kind, default, min, max, "
                                                       "choices, required, help"},
                              {"commands[].json_keys[]", "keys of the command's --json output"},
                              {NULL, NULL}},
    .run = run,
};
