/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a subcommand from argv and returns its exit code. Also returns option values by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli_config.h"
#include "cli_frame.h"
#include "cli_page.h"
#include "cli_parse.h"
#include "io/region.h"
#include "probe/cpu.h"

/* ---- Values ---- */

static const leat__value *value_of(const cli *c, const char *name, unsigned kinds)
{
    const int index = cli_line_find(c->line, name);
    if (index < 0 || !(kinds >> c->line->params[index]->kind & 1)) {
        fprintf(stderr, "leat: bug: the table of '%s' has no such option: --%s\n", c->line->command->name,
                name);
        abort();
    }
    return &c->line->values[index];
}

#define KIND(name) (1u << LEAT__PARAM_##name)

const leat__value *cli_value(const cli *c, const char *name)
{
    return value_of(c, name, ~0u);
}

bool cli_given(const cli *c, const char *name)
{
    return cli_value(c, name)->set;
}

bool cli_typed(const cli *c, const char *name)
{
    return c->line->typed[cli_value(c, name) - c->line->values];
}

int cli_refuse_zero(cli *c, const char *name)
{
    const leat__value *v = value_of(c, name, KIND(INT) | KIND(FLOAT));
    const bool whole = c->line->params[cli_line_find(c->line, name)]->kind == LEAT__PARAM_INT;
    if (!v->set || (whole ? v->i != 0 : v->f != 0)) return CLI_OK;
    return cli_usage(c, "--%s: 0 is not allowed; leave it out for the default", name);
}

bool cli_flag(const cli *c, const char *name)
{
    return value_of(c, name, KIND(FLAG))->i != 0;
}

int64_t cli_int(const cli *c, const char *name)
{
    return value_of(c, name, KIND(INT))->i;
}

double cli_float(const cli *c, const char *name)
{
    return value_of(c, name, KIND(FLOAT) | KIND(SECONDS))->f;
}

uint64_t cli_bytes(const cli *c, const char *name)
{
    return value_of(c, name, (KIND(BYTES) | KIND(BYTES10)))->u;
}

int cli_choice(const cli *c, const char *name)
{
    return (int)value_of(c, name, KIND(CHOICE))->i;
}

const char *cli_str(const cli *c, const char *name)
{
    return value_of(c, name, KIND(STRING) | KIND(PATH) | KIND(CHOICE))->s;
}

size_t cli_arg_count(const cli *c)
{
    return c->line->arg_count;
}

const char *cli_arg(const cli *c, size_t i)
{
    return i < c->line->arg_count ? c->line->args[i] : NULL;
}

/* ---- Pages ---- */

int cli_show_help(cli *c, const cli_command *command)
{
    leat__buf page;
    leat__buf_init(&page, LEAT__MEM_MISC, CLI_PAGE_MAX);
    cli_writer w = cli_writer_text(&page, cli_columns(STDOUT_FILENO), c->color_out);
    if (command) cli_page_command(&w, command);
    else cli_page_overview(&w, c->commands);
    const int exit_code = cli_show(c, &page);
    leat__buf_reset(&page);
    return exit_code;
}

int cli_show(cli *c, const leat__buf *page)
{
    if (leat__buf_status(page) != 0) return cli_failf(c, CLI_FIT, "out of memory");
    cli_out_buf(c, page);
    return CLI_OK;
}

/* ---- Dispatch ---- */

/* `leat` without a subcommand has its own small table. */
static const leat__param top_options[] = {
    CLI_FLAG("version", 'V', "show version, optional parts, instruction set and compiler"),
    CLI_END,
};
static const cli_command top = {
    .name = "leat",
    .options = {{NULL, top_options}},
    .args = (const cli_arg_spec[]){{.name = "COMMAND", .optional = true, .many = true}, {.name = NULL}},
    .json = (const cli_key[]){{"version", "of leat"}, {NULL, NULL}},
};

static int run_top(cli *c, int argc, char **argv)
{
    cli_line line;
    leat_error err = {0};
    if (cli_parse(&line, &top, argc, argv, &err) != 0) return cli_usage(c, "%s", err.message);
    cli_adapt(c, &line);
    c->command = NULL;
    if (line.help) return cli_show_help(c, NULL);
    if (line.arg_count > 0)
        return cli_usage(c, "options come after the command: leat %s [OPTIONS]", line.args[0]);
    if (leat__cpu_check(&err) != 0) return cli_usage(c, "%s", err.message);
    if (cli_flag(c, "version")) return cli_version(c);
    return cli_show_help(c, NULL);
}

static int unknown_command(cli *c, const char *name, const char *nearest)
{
    if (nearest) return cli_usage(c, "unknown command '%s'; did you mean '%s'?", name, nearest);
    return cli_usage(c, "unknown command '%s'", name);
}

/* Sets the environment variables of both options, which the library reads, as do programs that a
 * command starts. */
static int set_remote(cli *c)
{
    if (!c->command->remote) return CLI_OK;
    if (cli_given(c, "anonymous")) setenv("LEAT_ANONYMOUS", cli_flag(c, "anonymous") ? "1" : "0", 1);
    const char *file = cli_str(c, "ca-file");
    if (file == NULL) return CLI_OK;
    if (access(file, R_OK) != 0)
        return cli_failf(c, CLI_USAGE, "--ca-file %s: cannot read: %s", file, strerror(errno));
    setenv("LEAT_CA_FILE", file, 1);
    return CLI_OK;
}

/* Prints the region warning; loaders with a log have already warned when they were opened. */
static void warn_region(cli *c)
{
    char text[LEAT__REGION_TEXT];
    if (leat__region_warning(LEAT__REGION_COMMAND, text)) cli_warn(c, "%s", text);
}

static int run_command(cli *c, const cli_command *command, int argc, char **argv)
{
    cli_line line;
    leat_error err = {0};
    c->command = command;
    if (cli_parse(&line, command, argc, argv, &err) != 0) return cli_usage(c, "%s", err.message);
    cli_adapt(c, &line);
    if (line.help) return cli_show_help(c, command);
    if (leat__cpu_check(&err) != 0) return cli_usage(c, "%s", err.message);
    cli_config config = {.count = 0};
    int exit_code;
    if (command->config && cli_config_read(&config, &line, &err) != 0) exit_code = cli_fail(c, &err);
    else if (command->config && cli_check_required(&line, &err) != 0)
        exit_code = cli_usage(c, "%s", err.message);
    else if ((exit_code = set_remote(c)) == CLI_OK) exit_code = command->run(c);
    warn_region(c);
    cli_watch_end(c);
    cli_config_reset(&config);
    c->line = NULL;
    return exit_code;
}

/* Opens /dev/null for missing standard files. A process may be started without stdin, stdout or
 * stderr; the next opened file would get the free number, and messages would be written into it. The
 * access mode is the wrong one, so that using such a file still fails. */
static void fill_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) _exit(CLI_DATA);
    }
}

int cli_main(const cli_command *const *commands, int argc, char **argv)
{
    return cli_main_inside(commands, argc, argv, NULL);
}

int cli_main_inside(const cli_command *const *commands, int argc, char **argv, const char *const *self)
{
    cli c;
    const char *nearest = NULL;
    int exit_code;
    fill_standard_files();
    cli_begin(&c, commands);
    c.self = self;
    leat__options_as_flags(true);
    cli_signals_begin(c.tty_err);
    if (argc < 2 || argv[1][0] == '-') {
        exit_code = run_top(&c, argc > 1 ? argc - 1 : 0, argv + (argc > 1));
    } else {
        const cli_command *command = cli_find(commands, argv[1], &nearest);
        exit_code =
            command ? run_command(&c, command, argc - 2, argv + 2) : unknown_command(&c, argv[1], nearest);
    }
    leat__options_as_flags(false);
    return cli_end(&c, exit_code);
}
