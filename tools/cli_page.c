/* SPDX-License-Identifier: Apache-2.0
 *
 * The content of a page, taken from the tables; the writer decides how it looks. Examples come first: most
 * readers of help need only one.
 */
#include "cli_page.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli_parse.h"

#define TERM_MAX ((size_t)4096)

static const cli_example exits[] = {
    {"0", "success"},
    {"1", "success, with findings"},
    {"2", "wrong usage; nothing was done"},
    {"3", "does not fit: memory budget, limit, machine, or the disk that a run plans for"},
    {"4", "bad data, or it could not be read or written"},
    {"130", "stopped by Ctrl-C; 143 by SIGTERM, 141 because the output was closed"},
    {NULL, NULL},
};

/* The overview shows only these: one example per command would hide where to begin. */
static const cli_example first_steps[] = {
    {"leat demo", "try every step on generated images"},
    {"leat pack photos -o photos.leat", "pack a folder that has one folder per class"},
    {"leat load photos.leat", "measure how fast batches arrive"},
    {"leat doctor photos.leat --step-ms 55", "find the bottleneck of a trainer that takes 55 ms a step"},
    {"leat plan --dataset photos.leat --model resnet50", "predict memory, rate and hours before the run"},
    {"leat train photos.leat -o run", "train a ResNet-50"},
    {"leat help COMMAND", "examples, options and output of one command"},
    {NULL, NULL},
};

static const cli_example variables[] = {
    {"NO_COLOR", "disables colour when set and not empty"},
    {"COLUMNS", "width of help pages when the output is not a terminal"},
    {"LEAT_CPU_MASK", "scalar, avx2, avx512 or avx512icl: the newest instructions that kernels may use"},
    {NULL, NULL},
};

const char *cli_metavar(const leat__param *p)
{
    if (p->kind == LEAT__PARAM_FLAG) return NULL;
    if (p->metavar) return p->metavar;
    switch (p->kind) {
    case LEAT__PARAM_INT: return "N";
    case LEAT__PARAM_FLOAT: return "X";
    case LEAT__PARAM_BYTES:
    case LEAT__PARAM_BYTES10: return "BYTES";
    case LEAT__PARAM_SECONDS: return "TIME";
    case LEAT__PARAM_CHOICE: return "WORD";
    case LEAT__PARAM_PATH: return "FILE";
    case LEAT__PARAM_FLOATS: return "X,...";
    case LEAT__PARAM_INTS: return "N,...";
    default: return "TEXT";
    }
}

void cli_option_term(const leat__param *p, leat__buf *out)
{
    if (p->shortcut) leat__buf_printf(out, "-%c, ", p->shortcut);
    else leat__buf_puts(out, "    ");
    leat__buf_printf(out, "--%s", p->name);
    if (cli_metavar(p)) leat__buf_printf(out, " %s", cli_metavar(p));
}

static void range_text(const leat__param *p, leat__buf *out)
{
    char lo[32], hi[32];
    if (p->min > p->max) return;
    switch (p->kind) {
    case LEAT__PARAM_BYTES:
    case LEAT__PARAM_BYTES10:
        leat__format_bytes((uint64_t)p->min, lo, sizeof lo);
        if (p->max >= 0x1p63) snprintf(hi, sizeof hi, "any");
        else leat__format_bytes((uint64_t)p->max, hi, sizeof hi);
        break;
    case LEAT__PARAM_INT:
    case LEAT__PARAM_FLOAT:
    case LEAT__PARAM_FLOATS:
    case LEAT__PARAM_INTS:
    case LEAT__PARAM_SECONDS:
        snprintf(lo, sizeof lo, p->kind == LEAT__PARAM_INT ? "%.0f" : "%g", p->min);
        snprintf(hi, sizeof hi, p->kind == LEAT__PARAM_INT ? "%.0f" : "%g", p->max);
        break;
    default: return;
    }
    leat__buf_printf(out, "; %s to %s", lo, hi);
}

void cli_option_text(const leat__param *p, bool required, leat__buf *out)
{
    leat__buf_puts(out, p->help);
    if (p->kind == LEAT__PARAM_CHOICE) {
        char word[64];
        leat__buf_puts(out, ": ");
        for (int i = 0; cli_word(p->choices, i, word, sizeof word); i++)
            leat__buf_printf(out, "%s%s", i ? ", " : "", word);
    }
    range_text(p, out);
    if (cli_twin(p->name)) leat__buf_printf(out, "; also --%s", cli_twin(p->name));
    if (required) leat__buf_puts(out, " (required)");
    else if (p->def && p->def[0]) leat__buf_printf(out, " [%s]", p->def);
}

/* Writes a usage line such as "leat pack [OPTIONS] SRC --output FILE". */
static void usage_text(const cli_command *command, leat__buf *out)
{
    leat__buf_printf(out, "leat %s [OPTIONS]", command->name);
    for (const cli_arg_spec *a = command->args; a && a->name; a++)
        leat__buf_printf(out, " %s%s%s%s", a->optional ? "[" : "", a->name, a->many ? "..." : "",
                         a->optional ? "]" : "");
    const leat__param *p;
    for (size_t i = 0; (p = cli_option_at(command, i)) != NULL; i++)
        if (cli_listed(command->required, p->name))
            leat__buf_printf(out, " --%s %s", p->name, cli_metavar(p));
}

static void tell_group(cli_writer *w, const cli_group *group, const char *required)
{
    if (!group->params || !group->params->name) return;
    leat__buf term, text;
    leat__buf_init(&term, LEAT__MEM_MISC, TERM_MAX);
    leat__buf_init(&text, LEAT__MEM_MISC, TERM_MAX);
    w->section(w, group->title ? group->title : "Options");
    for (const leat__param *p = group->params; p->name; p++) {
        leat__buf_clear(&term);
        leat__buf_clear(&text);
        cli_option_term(p, &term);
        cli_option_text(p, cli_listed(required, p->name), &text);
        w->item(w, leat__buf_str(&term), leat__buf_str(&text));
    }
    leat__buf_reset(&term);
    leat__buf_reset(&text);
}

static void tell_pairs(cli_writer *w, const char *title, const cli_example *pairs)
{
    w->section(w, title);
    for (; pairs->command; pairs++) w->item(w, pairs->command, pairs->text);
}

static void tell_args(cli_writer *w, const cli_arg_spec *args)
{
    if (!args || !args->name) return;
    w->section(w, "Arguments");
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_MISC, TERM_MAX);
    for (const cli_arg_spec *a = args; a->name; a++) {
        leat__buf_clear(&text);
        leat__buf_puts(&text, a->help);
        char word[64];
        for (int i = 0; cli_word(a->choices, i, word, sizeof word); i++)
            leat__buf_printf(&text, "%s%s", i ? ", " : ": ", word);
        w->item(w, a->name, leat__buf_str(&text));
    }
    leat__buf_reset(&text);
}

void cli_page_command(cli_writer *w, const cli_command *command)
{
    char name[80];
    leat__buf usage;
    leat__buf_init(&usage, LEAT__MEM_MISC, TERM_MAX);
    snprintf(name, sizeof name, "leat %s", command->name);
    w->title(w, name, command->summary);
    w->section(w, "Examples");
    for (const cli_example *e = command->examples; e && e->command; e++) w->example(w, e->command, e->text);
    w->section(w, "Usage");
    usage_text(command, &usage);
    w->synopsis(w, leat__buf_str(&usage));
    if (command->description) {
        w->section(w, "Description");
        w->paragraphs(w, command->description);
    }
    tell_args(w, command->args);
    for (size_t i = 0; i < CLI_GROUPS_MAX; i++) tell_group(w, &command->options[i], command->required);
    const cli_group far = cli_remote(command), shared = cli_common(command);
    tell_group(w, &far, NULL);
    tell_group(w, &shared, NULL);
    if (command->json) {
        w->section(w, "JSON keys");
        for (const cli_key *k = command->json; k->name; k++) w->item(w, k->name, k->help);
    }
    tell_pairs(w, "Exit codes", exits);
    if (w->out->status == 0 && usage.status != 0) w->out->status = usage.status;
    leat__buf_reset(&usage);
}

void cli_page_overview(cli_writer *w, const cli_command *const *commands)
{
    w->title(w, "leat", "keep accelerators fed");
    w->section(w, "Examples");
    for (const cli_example *e = first_steps; e->command; e++) w->example(w, e->command, e->text);
    w->section(w, "Usage");
    w->synopsis(w, "leat COMMAND [OPTIONS] [ARGUMENTS]");
    w->section(w, "Commands");
    for (size_t i = 0; commands[i]; i++)
        if (!commands[i]->hidden) w->item(w, commands[i]->name, commands[i]->summary);
    w->section(w, "Options");
    w->item(w, "-h, --help", "show this page, or the page of the command before it");
    w->item(w, "-V, --version",
            "version, optional parts, instruction set and compiler; "
            "with --json as JSON");
    tell_pairs(w, "Environment", variables);
    tell_pairs(w, "Exit codes", exits);
}

static void param_json(leat__json *j, const leat__param *p, bool required)
{
    static const char *const kinds[] = {
        [LEAT__PARAM_FLAG] = "flag",     [LEAT__PARAM_INT] = "int",       [LEAT__PARAM_FLOAT] = "float",
        [LEAT__PARAM_BYTES] = "bytes",   [LEAT__PARAM_BYTES10] = "bytes", [LEAT__PARAM_SECONDS] = "seconds",
        [LEAT__PARAM_CHOICE] = "choice", [LEAT__PARAM_STRING] = "string", [LEAT__PARAM_PATH] = "path",
        [LEAT__PARAM_FLOATS] = "floats", [LEAT__PARAM_INTS] = "ints"};
    char word[64];
    leat__json_object(j);
    leat__json_kstr(j, "name", p->name);
    leat__json_kstr(j, "kind", kinds[p->kind]);
    if (p->shortcut) leat__json_kstr(j, "letter", (const char[]){p->shortcut, '\0'});
    leat__json_kstr(j, "default", p->def && p->def[0] ? p->def : NULL);
    if (p->min <= p->max) {
        leat__json_kdouble(j, "min", p->min);
        leat__json_kdouble(j, "max", p->max);
    }
    if (p->choices) {
        leat__json_key(j, "choices");
        leat__json_array(j);
        for (int i = 0; cli_word(p->choices, i, word, sizeof word); i++) leat__json_str(j, word);
        leat__json_end(j);
    }
    leat__json_kbool(j, "required", required);
    leat__json_kstr(j, "help", p->help);
    leat__json_end(j);
}

static void command_json(leat__json *j, const cli_command *command)
{
    leat__json_object(j);
    leat__json_kstr(j, "name", command->name);
    leat__json_kstr(j, "summary", command->summary);
    leat__json_key(j, "arguments");
    leat__json_array(j);
    for (const cli_arg_spec *a = command->args; a && a->name; a++) {
        leat__json_object(j);
        leat__json_kstr(j, "name", a->name);
        leat__json_kbool(j, "required", !a->optional);
        leat__json_kbool(j, "many", a->many);
        leat__json_kstr(j, "help", a->help);
        leat__json_end(j);
    }
    leat__json_end(j);
    leat__json_key(j, "options");
    leat__json_array(j);
    const leat__param *p;
    for (size_t i = 0; (p = cli_option_at(command, i)) != NULL; i++)
        param_json(j, p, cli_listed(command->required, p->name));
    leat__json_end(j);
    leat__json_key(j, "json_keys");
    leat__json_array(j);
    for (const cli_key *k = command->json; k && k->name; k++) leat__json_str(j, k->name);
    leat__json_end(j);
    leat__json_end(j);
}

void cli_tables_json(const cli_command *const *commands, const cli_command *only, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_key(&j, "commands");
    leat__json_array(&j);
    for (size_t i = 0; commands[i]; i++)
        if (only ? commands[i] == only : !commands[i]->hidden) command_json(&j, commands[i]);
    leat__json_end(&j);
    leat__json_end(&j);
}
