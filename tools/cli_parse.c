/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses command lines. All rules:
 *
 *   --name VALUE, --name=VALUE, -n VALUE, -nVALUE      options with a value
 *   --flag, --no-flag, --flag=yes|no, -f, -fgn VALUE   flags; letters may be joined
 *   --                                                 everything after it is an argument
 *   -, -5, -.5                                         arguments: stdin by custom, numbers
 *
 * Options and arguments can be mixed; the last of a repeated option wins, unless the command lists it in
 * `once`. A word that starts with '-' and is not a number is never the value of the option before it:
 * `--output --json` is usually a forgotten value, not a file called --json.
 */
#include "cli_parse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

#define NAME_MAX_ 64 /* longest option or choice that hints and messages handle */

/* --json is first, so that it is easy to omit for commands without JSON. */
static const leat__param common[] = {
    CLI_FLAG("json", 0, "write JSON instead of text"),
    CLI_FLAG("quiet", 'q', "hide progress; print only results, errors and warnings"),
    CLI_FLAG("verbose", 'v', "print more about what is done"),
    CLI_CHOICE("color", 0, "auto", "auto|always|never", "when to colour the output"),
    CLI_FLAG("help", 'h', "show this page"),
    CLI_END,
};

static const leat__param remote[] = {
    CLI_FLAG("anonymous", 0, "send unsigned requests to buckets, for public ones"),
    CLI_PATH("ca-file", 0, NULL, "FILE", "trust the certificate authorities in this PEM file (https)"),
    CLI_END,
};

cli_group cli_remote(const cli_command *command)
{
    return command->remote ? (cli_group){"Remote paths", remote} : (cli_group){NULL, NULL};
}

cli_group cli_common(const cli_command *command)
{
    return (cli_group){"Common options", command->json ? common : common + 1};
}

const leat__param *cli_option_at(const cli_command *command, size_t i)
{
    for (size_t g = 0; g <= CLI_GROUPS_MAX + 1; g++) {
        const cli_group group = g < CLI_GROUPS_MAX    ? command->options[g]
                                : g == CLI_GROUPS_MAX ? cli_remote(command)
                                                      : cli_common(command);
        for (const leat__param *p = group.params; p && p->name; p++)
            if (i-- == 0) return p;
    }
    return NULL;
}

bool cli_word(const char *list, int index, char *out, size_t size)
{
    const leat__param p = {.choices = list};
    return leat__param_choice(&p, index, out, (int)size);
}

bool cli_listed(const char *list, const char *name)
{
    char word[NAME_MAX_];
    for (int i = 0; cli_word(list, i, word, sizeof word); i++)
        if (leat__str_eq(word, name)) return true;
    return false;
}

/* Returns the nearest of the words, or the only one that starts with `word`. */
static const char *nearest_of(const char *word, const char *const *words, size_t n)
{
    const char *starts = NULL;
    size_t found = 0;
    for (size_t i = 0; i < n && word[0]; i++) {
        if (!leat__str_starts(words[i], word)) continue;
        starts = words[i];
        found++;
    }
    return found == 1 ? starts : leat__str_nearest(word, words, n);
}

const cli_command *cli_find(const cli_command *const *commands, const char *name, const char **nearest)
{
    const char *names[CLI_OPTIONS_MAX];
    size_t n = 0;
    for (size_t i = 0; commands[i]; i++) {
        if (leat__str_eq(commands[i]->name, name)) return commands[i];
        if (!commands[i]->hidden && n < LEAT_COUNT(names)) names[n++] = commands[i]->name;
    }
    *nearest = nearest_of(name, names, n);
    return NULL;
}

const char *cli_twin(const char *name)
{
    /* the loader's name and PyTorch's name */
    static const char *const twins[][2] = {{"batch", "batch-size"}};
    for (size_t i = 0; i < LEAT_COUNT(twins); i++)
        for (int k = 0; k < 2; k++)
            if (leat__str_eq(twins[i][k], name)) return twins[i][1 - k];
    return NULL;
}

static int find_exact(const cli_line *line, const char *name)
{
    for (size_t i = 0; name && i < line->param_count; i++)
        if (leat__str_eq(line->params[i]->name, name)) return (int)i;
    return -1;
}

int cli_line_find(const cli_line *line, const char *name)
{
    const int index = find_exact(line, name);
    return index >= 0 ? index : find_exact(line, cli_twin(name));
}

static int find_letter(const cli_line *line, char letter)
{
    for (size_t i = 0; i < line->param_count; i++)
        if (line->params[i]->shortcut == letter) return (int)i;
    return -1;
}

static int start(cli_line *line, const cli_command *command, char **argv, leat_error *err)
{
    memset(line, 0, sizeof *line);
    line->command = command;
    line->args = argv;
    const leat__param *p;
    while ((p = cli_option_at(command, line->param_count)) != NULL) {
        if (line->param_count == CLI_OPTIONS_MAX)
            return leat__fail(err, LEAT_EINTERNAL, "more than %d options in the table", CLI_OPTIONS_MAX);
        line->params[line->param_count] = p;
        leat__param_default(p, &line->values[line->param_count++]);
    }
    return 0;
}

/* Fails with a message such as "unknown option --thread; did you mean --threads?". */
static int unknown_option(const cli_line *line, const char *name, leat_error *err)
{
    const char *names[CLI_OPTIONS_MAX] = {NULL}, *flags[CLI_OPTIONS_MAX];
    size_t n = 0, n_flags = 0;
    for (size_t i = 0; i < line->param_count; i++) {
        names[n++] = line->params[i]->name;
        if (line->params[i]->kind == LEAT__PARAM_FLAG) flags[n_flags++] = names[n - 1];
    }
    const char *near = nearest_of(name, names, n);
    const char *no = "";
    if (leat__str_eq(name, "workers") || leat__str_eq(name, "num-workers")) { /* as PyTorch says */
        for (size_t i = 0; i < n; i++)
            if (leat__str_eq(names[i], "threads")) near = names[i];
    }
    if (!near && leat__str_starts(name, "no-")) {
        near = nearest_of(name + 3, flags, n_flags);
        no = "no-";
    }
    if (near)
        return leat__fail(err, LEAT_EINVAL, "unknown option --%s; did you mean --%s%s?", name, no, near);
    return leat__fail(err, LEAT_EINVAL, "unknown option --%s", name);
}

static bool is_number(const char *word)
{
    return word[0] == '-' &&
           (isdigit((unsigned char)word[1]) || (word[1] == '.' && isdigit((unsigned char)word[2])));
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !is_number(word);
}

static int set_value(cli_line *line, int index, const char *shown, const char *text, leat_error *err)
{
    if (line->typed[index] && cli_listed(line->command->once, line->params[index]->name))
        return leat__fail(err, LEAT_EINVAL, "%s: given twice: join the rules with commas", shown);
    line->typed[index] = true;
    return leat__param_parse(line->params[index], shown, text, &line->values[index], err);
}

/* The remaining words of argv. */
typedef struct words {
    char **argv;
    int argc, next;
} words;

static int take_value(const char *shown, words *w, const char **text, leat_error *err)
{
    if (w->next >= w->argc) return leat__fail(err, LEAT_EINVAL, "%s needs a value", shown);
    const char *word = w->argv[w->next];
    if (is_option(word))
        return leat__fail(err, LEAT_EINVAL, "%s needs a value (%s%s%s if '%s' is meant)", shown, shown,
                          shown[1] == '-' ? "=" : "", word, word);
    *text = word;
    w->next++;
    return 0;
}

static int parse_long(cli_line *line, const char *word, words *w, leat_error *err)
{
    const char *equals = strchr(word, '=');
    const size_t len = equals ? (size_t)(equals - word) : strlen(word);
    char shown[NAME_MAX_ + 2];
    /* A word longer than any option is truncated: it is unknown anyway, and the message stays short. */
    snprintf(shown, sizeof shown, "%.*s", (int)LEAT_MIN(len, sizeof shown - 1), word);
    const char *name = shown + 2;

    int index = cli_line_find(line, name);
    if (index < 0 && leat__str_starts(name, "no-")) {
        index = cli_line_find(line, name + 3);
        if (index < 0 || line->params[index]->kind != LEAT__PARAM_FLAG)
            return unknown_option(line, name, err);
        if (equals) return leat__fail(err, LEAT_EINVAL, "%s takes no value", shown);
        return set_value(line, index, shown, "no", err);
    }
    if (index < 0) return unknown_option(line, name, err);

    const char *text = equals ? equals + 1 : NULL;
    if (!text && line->params[index]->kind == LEAT__PARAM_FLAG) text = "yes";
    if (!text) LEAT_TRY(take_value(shown, w, &text, err));
    return set_value(line, index, shown, text, err);
}

static int parse_letters(cli_line *line, const char *word, words *w, leat_error *err)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const char shown[3] = {'-', *letter, '\0'};
        const int index = find_letter(line, *letter);
        if (index < 0) {
            /* probably one dash too few, as in -json */
            if (letter == word + 1 && cli_line_find(line, word + 1) >= 0)
                return leat__fail(err, LEAT_EINVAL, "unknown option %s; did you mean -%s?", word, word);
            return leat__fail(err, LEAT_EINVAL, "unknown option %s", shown);
        }
        if (line->params[index]->kind == LEAT__PARAM_FLAG) {
            LEAT_TRY(set_value(line, index, shown, "yes", err));
            continue;
        }
        const char *text = letter[1] ? letter + 1 : NULL;
        if (!text) LEAT_TRY(take_value(shown, w, &text, err));
        return set_value(line, index, shown, text, err);
    }
    return 0;
}

static int check_word(const cli_arg_spec *spec, const char *word, leat_error *err)
{
    const leat__param p = {.kind = LEAT__PARAM_CHOICE, .choices = spec->choices};
    leat__value value;
    if (spec->path && *word == '\0') return leat__fail(err, LEAT_EINVAL, "%s: is empty", spec->name);
    return spec->choices ? leat__param_parse(&p, spec->name, word, &value, err) : 0;
}

static int check_args(const cli_line *line, leat_error *err)
{
    const cli_arg_spec *spec = line->command->args;
    size_t i = 0;
    for (; spec && spec->name; spec++) {
        if (i == line->arg_count && !spec->optional)
            return leat__fail(err, LEAT_EINVAL, "%s is missing: %s", spec->name, spec->help);
        const size_t end = spec->many ? line->arg_count : LEAT_MIN(i + 1, line->arg_count);
        for (; i < end; i++) LEAT_TRY(check_word(spec, line->args[i], err));
    }
    if (i == line->arg_count) return 0;
    for (size_t p = 0; p < line->param_count; p++)
        if (leat__str_eq(line->params[p]->name, "dataset"))
            return leat__fail(err, LEAT_EINVAL, "unexpected argument '%s'; did you mean --dataset %s?",
                              line->args[i], line->args[i]);
    return leat__fail(err, LEAT_EINVAL, "unexpected argument '%s'", line->args[i]);
}

int cli_check_required(const cli_line *line, leat_error *err)
{
    char name[NAME_MAX_];
    for (int i = 0; cli_word(line->command->required, i, name, sizeof name); i++) {
        const int index = cli_line_find(line, name);
        if (index < 0)
            return leat__fail(err, LEAT_EINTERNAL, "required option --%s is not in the table", name);
        if (!line->values[index].set)
            return leat__fail(err, LEAT_EINVAL, "--%s is missing: %s", name, line->params[index]->help);
    }
    return 0;
}

int cli_parse(cli_line *line, const cli_command *command, int argc, char **argv, leat_error *err)
{
    LEAT_TRY(start(line, command, argv, err));
    words w = {argv, argc, 0};
    bool options_end = false;
    while (w.next < argc) {
        char *word = argv[w.next++];
        /* overwrites only words that were already parsed */
        if (options_end || !is_option(word)) line->args[line->arg_count++] = word;
        else if (leat__str_eq(word, "--")) options_end = true;
        else if (word[1] == '-') LEAT_TRY(parse_long(line, word, &w, err));
        else LEAT_TRY(parse_letters(line, word, &w, err));
    }
    line->help = line->values[cli_line_find(line, "help")].i != 0;
    if (line->help) return 0;
    LEAT_TRY(check_args(line, err));
    return command->config ? 0 : cli_check_required(line, err);
}
