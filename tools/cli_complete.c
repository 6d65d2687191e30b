/* SPDX-License-Identifier: Apache-2.0
 *
 * Completions of bash, zsh and fish. The scripts contain the tables as data and never run leat: pressing
 * Tab must not wait for a process.
 */
#include <leat/op.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli_page.h"
#include "cli_parse.h"

/* EACH_OPTION iterates over the options of a command, EACH_COMMAND over the listed commands. */
#define EACH_OPTION(command, p)                                                                              \
    for (size_t i_ = 0; i_ < CLI_OPTIONS_MAX; i_++)                                                          \
        if ((p = cli_option_at(command, i_)) != NULL)
#define EACH_COMMAND(commands, command)                                                                      \
    for (const cli_command *const *at_ = (commands); (command = *at_) != NULL; at_++)                        \
        if (!command->hidden)

static void words(leat__buf *out, const char *list, const char *gap)
{
    char word[64];
    for (int i = 0; cli_word(list, i, word, sizeof word); i++)
        leat__buf_printf(out, "%s%s", i ? gap : "", word);
}

/* Writes the other words that `leat help` explains. */
static void op_words(leat__buf *out)
{
    leat_op_info info;
    leat__buf_puts(out, "ops");
    for (uint32_t i = 0; leat_op_info_at(i, &info) == 0; i++) leat__buf_printf(out, " %s", info.name);
}

/* True for a flag that the help shows as --no-NAME, because it is on by default. */
static bool is_turned_off(const leat__param *p)
{
    char form[96];
    snprintf(form, sizeof form, "--no-%s", p->name);
    return p->kind == LEAT__PARAM_FLAG && strstr(p->help, form) != NULL;
}

/* Writes the words that an argument may be; false when there is no list. */
static bool arg_words(leat__buf *out, const cli_command *const *commands, const cli_arg_spec *arg)
{
    if (!arg || !arg->name) return false;
    if (arg->choices) words(out, arg->choices, " ");
    const cli_command *command;
    if (arg->command) EACH_COMMAND(commands, command) leat__buf_printf(out, "%s ", command->name);
    if (arg->command) op_words(out);
    return arg->choices || arg->command;
}

static bool wants_path(const leat__param *p)
{
    return p->kind == LEAT__PARAM_PATH;
}

/* Writes a string in single quotes for a POSIX shell or fish; characters of `also` get a backslash
 * (zsh's specs need it for ':' and brackets). */
static void quoted(leat__buf *out, const char *s, const char *also, bool fish)
{
    for (; *s; s++) {
        if (*s == '\'') leat__buf_puts(out, fish ? "\\'" : "'\\''");
        else if (*s == '\\' && fish) leat__buf_puts(out, "\\\\");
        else if (strchr(also, *s)) leat__buf_printf(out, "\\%c", *s);
        else leat__buf_putc(out, *s);
    }
}

/* ---- bash ---- */

static void bash_values(leat__buf *out, const cli_command *const *commands, const cli_command *command)
{
    const leat__param *p;
    leat__buf_printf(out, "    %s)\n        case $prev in\n", command->name);
    EACH_OPTION(command, p)
    {
        if (p->kind == LEAT__PARAM_FLAG) continue;
        leat__buf_printf(out, "        --%s", p->name);
        if (p->shortcut) leat__buf_printf(out, "|-%c", p->shortcut);
        leat__buf_puts(out, ") ");
        if (p->kind == LEAT__PARAM_CHOICE) {
            leat__buf_puts(out, "words='");
            words(out, p->choices, " ");
            leat__buf_puts(out, "'; kind=words ;;\n");
        } else {
            leat__buf_printf(out, "kind=%s ;;\n", wants_path(p) ? "files" : "none");
        }
    }
    leat__buf_puts(out, "        esac\n        options='");
    EACH_OPTION(command, p)
    {
        leat__buf_printf(out, "--%s ", p->name);
        if (is_turned_off(p)) leat__buf_printf(out, "--no-%s ", p->name);
    }
    leat__buf_puts(out, "'\n        arguments='");
    arg_words(out, commands, command->args);
    leat__buf_puts(out, "'\n        ;;\n");
}

void cli_complete_bash(const cli_command *const *commands, leat__buf *out)
{
    const cli_command *command;
    leat__buf_puts(out, "# bash completion of leat, written by `leat completions bash`\n"
                        "_leat() {\n"
                        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "    local command='' options='' arguments='' words='' kind='' i\n"
                        "    # readline splits --name=value at the '='\n"
                        "    if [[ $cur == '=' ]]; then cur=''\n"
                        "    elif [[ $prev == '=' && COMP_CWORD -gt 1 ]]; then "
                        "prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
                        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                        "        [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }\n"
                        "    done\n"
                        "    COMPREPLY=()\n"
                        "    case $command in\n"
                        "    '')\n        options='--help --version'\n        arguments='");
    EACH_COMMAND(commands, command) leat__buf_printf(out, "%s ", command->name);
    leat__buf_puts(out, "'\n        ;;\n");
    EACH_COMMAND(commands, command) bash_values(out, commands, command);
    leat__buf_puts(out, "    esac\n"
                        "    if [[ $kind == none ]]; then return\n"
                        "    elif [[ $kind == words ]]; then :\n"
                        "    elif [[ -z $kind && $cur == -* ]]; then words=$options\n"
                        "    elif [[ -z $kind && -n $arguments ]]; then words=$arguments\n"
                        "    else\n"
                        "        compopt -o filenames 2>/dev/null\n"
                        "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
                        "        return\n"
                        "    fi\n"
                        "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                        "}\n"
                        "complete -F _leat leat\n");
}

/* ---- zsh ---- */

static void zsh_option(leat__buf *out, const leat__param *p)
{
    /* '(-o --output)'{-o+,--output=}'[help]:FILE:_files' */
    const char *equals = p->kind == LEAT__PARAM_FLAG ? "" : "=";
    leat__buf_puts(out, "            ");
    if (p->shortcut)
        leat__buf_printf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", p->shortcut, p->name, p->shortcut,
                         equals[0] ? "+" : "", p->name, equals);
    else leat__buf_printf(out, "'--%s%s[", p->name, equals);
    quoted(out, p->help, "[]:\\", false);
    leat__buf_putc(out, ']');
    if (equals[0]) {
        leat__buf_putc(out, ':');
        quoted(out, cli_metavar(p), "[]:\\", false);
        leat__buf_putc(out, ':');
        if (p->kind == LEAT__PARAM_CHOICE) {
            leat__buf_putc(out, '(');
            words(out, p->choices, " ");
            leat__buf_putc(out, ')');
        } else if (wants_path(p)) {
            leat__buf_puts(out, "_files");
        } else {
            leat__buf_putc(out, ' '); /* takes a value, but there are no words to complete */
        }
    }
    leat__buf_puts(out, "' \\\n");
    if (is_turned_off(p))
        leat__buf_printf(out, "            '--no-%s[turn off --%s]' \\\n", p->name, p->name);
}

static void zsh_args(leat__buf *out, const cli_command *const *commands, const cli_command *command)
{
    for (const cli_arg_spec *a = command->args; a && a->name; a++) {
        leat__buf_printf(out, "            '%s:", a->many ? "*" : a->optional ? ":" : "");
        quoted(out, a->name, "[]:\\", false);
        leat__buf_putc(out, ':');
        if (a->choices || a->command) {
            leat__buf_putc(out, '(');
            arg_words(out, commands, a);
            leat__buf_putc(out, ')');
        } else {
            leat__buf_puts(out, a->path ? "_files" : " ");
        }
        leat__buf_puts(out, "' \\\n");
    }
}

void cli_complete_zsh(const cli_command *const *commands, leat__buf *out)
{
    const cli_command *command;
    const leat__param *p;
    leat__buf_puts(out, "#compdef leat\n"
                        "# zsh completion of leat, written by `leat completions zsh`\n"
                        "_leat() {\n"
                        "    local context state state_descr line\n"
                        "    typeset -A opt_args\n"
                        "    local -a commands\n"
                        "    commands=(\n");
    EACH_COMMAND(commands, command)
    {
        leat__buf_printf(out, "        '%s:", command->name);
        quoted(out, command->summary, ":\\", false);
        leat__buf_puts(out, "'\n");
    }
    leat__buf_puts(out, "    )\n"
                        "    _arguments -C '(- *)'{-h,--help}'[show help]' "
                        "'(- *)'{-V,--version}'[show the version]' "
                        "'1:command:->command' '*::argument:->argument'\n"
                        "    case $state in\n"
                        "    command) _describe command commands ;;\n"
                        "    argument)\n"
                        "        case $line[1] in\n");
    EACH_COMMAND(commands, command)
    {
        leat__buf_printf(out, "        %s)\n          _arguments -s -S \\\n", command->name);
        EACH_OPTION(command, p) zsh_option(out, p);
        zsh_args(out, commands, command);
        leat__buf_puts(out, "            && return 0 ;;\n");
    }
    leat__buf_puts(out, "        esac ;;\n"
                        "    esac\n"
                        "}\n"
                        "if [ \"$funcstack[1]\" = _leat ]; then _leat \"$@\"; "
                        "else compdef _leat leat; fi\n");
}

/* ---- fish ---- */

static void fish_option(leat__buf *out, const cli_command *command, const leat__param *p)
{
    leat__buf_printf(out, "complete -c leat -n '__fish_seen_subcommand_from %s' -l %s", command->name,
                     p->name);
    if (p->shortcut) leat__buf_printf(out, " -s %c", p->shortcut);
    if (p->kind == LEAT__PARAM_CHOICE) {
        leat__buf_puts(out, " -x -a '");
        words(out, p->choices, " ");
        leat__buf_putc(out, '\'');
    } else if (wants_path(p)) {
        leat__buf_puts(out, " -r -F");
    } else if (p->kind != LEAT__PARAM_FLAG) {
        leat__buf_puts(out, " -x");
    }
    leat__buf_puts(out, " -d '");
    quoted(out, p->help, "", true);
    leat__buf_puts(out, "'\n");
    if (is_turned_off(p))
        leat__buf_printf(out,
                         "complete -c leat -n '__fish_seen_subcommand_from %s' -l no-%s -d 'turn off --%s'\n",
                         command->name, p->name, p->name);
}

void cli_complete_fish(const cli_command *const *commands, leat__buf *out)
{
    const cli_command *command;
    const leat__param *p;
    leat__buf_puts(out, "# fish completion of leat, written by `leat completions fish`\n"
                        "complete -c leat -n __fish_use_subcommand -f\n"
                        "complete -c leat -n __fish_use_subcommand -s h -l help "
                        "-d 'show help'\n"
                        "complete -c leat -n __fish_use_subcommand -s V -l version "
                        "-d 'show the version'\n");
    EACH_COMMAND(commands, command)
    {
        leat__buf_printf(out, "complete -c leat -n __fish_use_subcommand -a %s -d '", command->name);
        quoted(out, command->summary, "", true);
        leat__buf_puts(out, "'\n");
        const cli_arg_spec *arg = command->args;
        if (arg && arg->name && (arg->choices || arg->command)) {
            leat__buf_printf(out, "complete -c leat -n '__fish_seen_subcommand_from %s' -f -a '",
                             command->name);
            arg_words(out, commands, arg);
            leat__buf_puts(out, "'\n");
        }
        EACH_OPTION(command, p) fish_option(out, command, p);
    }
}
