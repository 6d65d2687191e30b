/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat filter`: keeps the documents of JSONL files that pass named rules.
 */
#include <leat/text.h>

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "cli_python.h"
#include "curate/filter_run.h"
#include "curate/text_flow.h"

static const leat__param filtering[] = {
    CLI_PATH("output", 'o', NULL, "DIR", "write kept documents, reasons, bad lines and the report here"),
    CLI_STRING("profile", 'p', NULL, "NAMES", "apply the rules of these profiles, separated by commas"),
    CLI_STRING("set", 0, NULL, "RULES", "change thresholds: words.min=20,curly.max=off"),
    CLI_STRING("modify", 0, NULL, "NAMES", "change the text first: modifiers, separated by commas"),
    CLI_PATH("lid", 0, NULL, "FILE", "identify languages with this fastText model (.bin, .ftz)"),
    CLI_STRING("lang", 0, NULL, "LABELS", "keep documents of these languages: en,de (with --lid)"),
    CLI_FLOAT("lang-min", 0, "0", 0, 1, "P", "keep documents with at least this probability (with --lid)"),
    CLI_STRING("columns", 0, NULL, "NAMES",
               "write only these keys of kept documents: id,text; +words adds a score"),
    CLI_PATH("config", 'c', NULL, "FILE", "read options from this YAML file; given options win"),
    CLI_FLAG("score-only", 0, "write every score of every document, drop nothing"),
    CLI_STRING("explain", 0, NULL, "ID", "print the rules and scores of this document, as JSON"),
    CLI_STRING("report", 0, NULL, "FILES",
               "write a page with plots and examples (NAME.html), or its data (NAME.json)"),
    CLI_INT("look", 0, "0", 0, 100, "N",
            "print N random kept, dropped and borderline documents with their scores"),
    CLI_INT("seed", 0, "0", 0, 4294967295.0, "S", "seed of --look"),
    CLI_FLAG("list", 0, "list profiles, scores and modifiers"),
    CLI_END,
};

static const leat__param files[] = {
    CLI_TEXT_FILES,
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard memory budget, 0 = half of what is available"),
    CLI_STRING("on", 0, NULL, "CLUSTER", "run on the nodes of a cluster: ray, ray://HOST:PORT"),
    CLI_BYTES("task-bytes", 0, "0", 0, 1e15, "input of a task with --on, 0 = by its size and the nodes"),
    CLI_END,
};

typedef struct watch {
    cli *c;
    cli_progress bar;
    leat__buf explained;
} watch;

static int on_progress(void *cookie, uint64_t done, uint64_t total, uint64_t documents, uint64_t dropped)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, done, dropped);
    return cli_interrupted(w->c);
}

static void on_explained(void *cookie, const char *json)
{
    watch *w = cookie;
    leat__buf_puts(&w->explained, json);
}

/* Prints one document of --look, as a line of JSON or as text. */
static void on_looked(void *cookie, const leat_filter_seen *d)
{
    watch *w = cookie;
    leat__buf *out = &w->explained;
    if (!w->c->json) {
        leat__buf_printf(out, "%s: %s%s%s%s\n", d->kind, d->id, d->kept ? ", kept" : ", dropped",
                         d->lang[0] ? ", " : "", d->lang);
        for (uint32_t i = 0; i < d->rule_count; i++)
            leat__buf_printf(out, "  %-34s %10.4g  threshold %.4g%s\n", d->rules[i].name, d->rules[i].score,
                             d->rules[i].threshold, d->rules[i].keeps ? "" : "  violated");
        for (const char *line = d->text, *end; *line; line = *end ? end + 1 : end) {
            end = strchr(line, '\n');
            if (!end) end = line + strlen(line);
            leat__buf_printf(out, "  | %.*s\n", (int)(end - line), line);
        }
        leat__buf_putc(out, '\n');
        return;
    }
    leat__filter_seen_json(d, out);
}

/* Gets the i-th name of a list and its help; returns 0, or an error past the last. */
typedef int (*name_at)(uint32_t i, const char **name, const char **help);

/* The scores that need a language model. */
static int lang_score(uint32_t i, const char **name, const char **help)
{
    static const char *const rows[][2] = {{"lang_score", "probability of the language"},
                                          {"lang_match", "1 when it is one of --lang"}};
    if (i >= LEAT_COUNT(rows)) return LEAT_EINVAL;
    *name = rows[i][0];
    *help = rows[i][1];
    return 0;
}

static void put_names(leat__json *j, name_at at)
{
    const char *name, *help;
    for (uint32_t i = 0; at(i, &name, &help) == 0; i++) leat__json_kstr(j, name, help);
}

static int list_json(cli *c)
{
    leat__buf buf;
    leat__json j;
    leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
    leat__json_init(&j, &buf, 0);
    leat__json_object(&j);
    leat__json_key(&j, "profiles");
    leat__json_object(&j);
    put_names(&j, leat_text_profile);
    leat__json_end(&j);
    leat__json_key(&j, "modifiers");
    leat__json_object(&j);
    put_names(&j, leat_text_modifier);
    leat__json_end(&j);
    leat__json_key(&j, "scores");
    leat__json_object(&j);
    put_names(&j, leat_text_score);
    put_names(&j, lang_score);
    leat__json_end(&j);
    leat__json_end(&j);
    return cli_json(c, &buf);
}

static void list_names(cli *c, const char *heading, int width, name_at at)
{
    const char *name, *help;
    cli_heading(c, heading);
    for (uint32_t i = 0; at(i, &name, &help) == 0; i++) cli_out(c, "  %-*s %s\n", width, name, help);
}

static int list(cli *c)
{
    if (c->json) return list_json(c);
    list_names(c, "Profiles", 20, leat_text_profile);
    list_names(c, "Modifiers", 20, leat_text_modifier);
    list_names(c, "Scores", 28, leat_text_score);
    list_names(c, "Scores of --lid", 28, lang_score);
    return CLI_OK;
}

static void fill(cli *c, leat_filter_opts *o)
{
    leat_filter_opts_init(o);
    CLI_FILL_TEXT_FILES(o, c, NULL);
    o->profile = cli_str(c, "profile");
    o->set = cli_str(c, "set");
    o->modify = cli_str(c, "modify");
    o->explain = cli_str(c, "explain");
    o->lid = cli_str(c, "lid");
    o->lang = cli_str(c, "lang");
    o->lang_min = cli_float(c, "lang-min");
    o->report = cli_str(c, "report");
    o->look = (uint32_t)cli_int(c, "look");
    o->seed = (uint32_t)cli_int(c, "seed");
    o->looked = on_looked;
    o->columns = cli_str(c, "columns");
    o->score_only = cli_flag(c, "score-only");
    o->progress = on_progress;
    o->explained = on_explained;
}

static void print_text(cli *c, const leat_filter_stats *st, bool score_only)
{
    char in[24], took[24], words[160];
    cli_out(c, "%llu document%s", (unsigned long long)st->documents, cli_s(st->documents));
    if (!score_only || st->rule_count)
        cli_out(c, ": %llu %s, %llu %s", (unsigned long long)st->kept,
                score_only ? (st->kept == 1 ? "passes the rules" : "pass the rules") : "kept",
                (unsigned long long)st->dropped,
                score_only ? (st->dropped == 1 ? "does not" : "do not") : "dropped");
    if (st->bad) cli_out(c, "; %llu bad line%s", (unsigned long long)st->bad, cli_s(st->bad));
    cli_out(c, "\n%s of text, %s, %.0f MB per CPU-second\n",
            leat__format_bytes(st->text_bytes, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)st->text_bytes / 1e6 / st->cpu_seconds : 0.0);
    if (st->load.limit) cli_out(c, "%s\n", leat__text_load_words(&st->load, words));
    bool heading = false;
    for (uint32_t i = 0; i < st->rule_count; i++) {
        const leat_filter_rule *r = &st->rules[i];
        if (r->failed == 0) continue;
        if (!heading)
            cli_out(c, "%-34s %10s %10s %10s  %s\n", "rule", "threshold", "violated", "first", "profile");
        heading = true;
        cli_out(c, "%-34s %10.4g %10llu %10llu  %s\n", r->name, r->threshold, (unsigned long long)r->failed,
                (unsigned long long)r->first, r->profile);
    }
}

/* Prints the texts. They are untrusted: control characters must not reach a terminal. */
static void print_seen(cli *c, leat__buf *seen)
{
    for (size_t i = 0; i < seen->len; i++) {
        unsigned char b = (unsigned char)seen->data[i];
        unsigned char next = (unsigned char)seen->data[i + 1]; /* a NUL follows the last byte */
        if ((b < ' ' && b != '\n' && b != '\t') || b == 127) seen->data[i] = ' ';
        /* U+0080 to U+009F: terminals also interpret them as escape sequences */
        if (b == 0xc2 && next >= 0x80 && next < 0xa0) seen->data[i] = seen->data[i + 1] = ' ';
    }
    cli_out(c, "%s", leat__buf_str(seen));
}

static int finish(cli *c, const leat_filter_opts *o, const leat_filter_stats *st, watch *w)
{
    int code = st->documents == 0 && st->bad > 0 ? CLI_DATA : CLI_OK;
    if (o->explain) {
        if (w->explained.len == 0) {
            cli_warn(c, "no document has the id %s", o->explain);
            return CLI_FINDING;
        }
    }
    if (!o->explain || o->output) code = cli_bad_lines(c, st->bad, st->documents, o->output);
    if (st->columns_missing[0]) cli_warn(c, "--columns: no kept document has %s", st->columns_missing);
    if (o->explain || o->look > 0) {
        print_seen(c, &w->explained);
        if (!o->output && !o->report) return code;
    }
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__filter_json(st, &buf);
        int printed = cli_json(c, &buf);
        if (printed != CLI_OK) return printed;
    } else if (!o->explain && o->look == 0) {
        print_text(c, st, o->score_only);
    }
    return code;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_filter_opts o;
    const char *inputs[1024];
    size_t n = cli_arg_count(c);
    if (cli_flag(c, "list")) return list(c);
    if (n == 0) return cli_usage(c, "no input was named");
    if (n > LEAT_COUNT(inputs))
        return cli_usage(c, "more than %zu inputs (name their folder)", LEAT_COUNT(inputs));
    for (size_t i = 0; i < n; i++) inputs[i] = cli_arg(c, i);
    fill(c, &o);
    if (!o.output && !o.explain && !o.look && !o.report) return cli_usage(c, "--output is needed");
    if (!o.profile && !o.set && !o.modify && !o.columns && !o.score_only && !o.lid && !o.lang &&
        o.lang_min == 0 && !o.explain && !o.look && !o.report)
        return cli_usage(c, "nothing to do: give --profile NAMES, --set RULES, --modify or --columns");
    if (cli_given(c, "seed") && !o.look && !o.report) return cli_usage(c, "--seed needs --look or --report");
    if (cli_given(c, "on")) return cli_python_ray(c);
    if (cli_given(c, "task-bytes")) return cli_usage(c, "--task-bytes needs --on");
    leat_filter_stats *st = LEAT_NEW(MISC, leat_filter_stats);
    if (!st) return cli_usage(c, "out of memory");
    watch w = {.c = c};
    leat__buf_init(&w.explained, LEAT__MEM_MISC, 1u << 26);
    o.inputs = inputs;
    o.input_count = (uint32_t)n;
    o.cookie = &w;
    cli_progress_begin(&w.bar, c, "filtering", "B", 0);
    int rc = leat_filter_text(&o, st, &err);
    cli_progress_end(&w.bar);
    int code = rc != 0 ? cli_fail(c, &err) : finish(c, &o, st, &w);
    leat__buf_reset(&w.explained);
    leat__free(st);
    return code;
}

const cli_command cli_cmd_filter = {
    .name = "filter",
    .summary = "keep the documents of JSONL files that pass named rules",
    .examples =
        (const cli_example[]){
            {"leat filter crawl/*.jsonl.gz -o kept --profile gopher@paper,fineweb@paper", "two rule sets"},
            {"leat filter docs.jsonl -o stricter --profile nemo-english --set words.min=20",
             "with another threshold"},
            {"leat filter docs.jsonl --profile gopher@paper --explain doc-17", "why a document is dropped"},
            {"leat filter docs.jsonl --profile gopher@paper --look 3", "look at random documents"},
            {"leat filter docs.jsonl -o reported --profile gopher@paper --report report.html",
             "a page with the funnel, histograms and examples"},
            {"leat filter docs.jsonl -o scores --score-only", "all scores of all documents"},
            {"leat filter docs.jsonl -o english --lid lid.176.ftz --lang en --lang-min 0.65",
             "documents in English"},
            {"leat filter docs.jsonl -o configured --config rules.yaml", "options from a file"},
            {"leat filter /data/crawl -o /data/kept -p gopher@paper --on ray", "on a Ray cluster"},
            {"leat filter docs.jsonl -o columns --set words.min=20 --columns id,text,+words",
             "chosen columns, with a score"},
            {NULL, NULL}},
    .config = true,
    .once = "set",
    .description = "Reads each document once, computes the scores of all rules in one pass and writes "
                   "the documents that "
                   "violate no rule, byte for byte and in their order, to DIR/kept-00000.jsonl and so "
                   "on. DIR/reasons.jsonl "
                   "has a line for every dropped document with its first violated rule, score and "
                   "threshold; DIR/bad.jsonl "
                   "one for every line that could not be read; DIR/report.json the counts.\n\n"
                   "Profiles are tables of rules under the name of their source; --list shows them with "
                   "the scores and "
                   "the modifiers. A rule is named by its score and bound (words.min, "
                   "dup_line_ratio.max); --set changes "
                   "its threshold, switches it off, or adds it.\n\n"
                   "--lid reads a supervised fastText model. A document gets the label that fastText "
                   "predicts for its text with spaces instead of line feeds, and its probability.\n\n"
                   "A file for --config is YAML with the names of options as keys. Options that take "
                   "several names may be lists there, and set may be a mapping of rules to thresholds.",
    .args = (const cli_arg_spec[]){{.name = "IN",
                                    .path = true,
                                    .many = true,
                                    .optional = true,
                                    .help = "JSONL files (plain, .gz, .zst), folders or patterns"},
                                   {.name = NULL}},
    .options = {{"Filtering", filtering}, {"Files and resources", files}},
    .json = (const cli_key[]){{"documents", "lines with a text"},
                              {"kept", "documents that pass all rules"},
                              {"dropped", "documents that do not"},
                              {"bad", "lines that could not be read"},
                              {"modified", "documents that a modifier changed"},
                              {"lone_surrogates", "escapes without UTF-8 form, scored as U+FFFD"},
                              {"files", "input files"},
                              {"bytes_in", "bytes of the input files"},
                              {"text_bytes", "bytes of the texts"},
                              {"shards", "output files with documents"},
                              {"bytes_out", "bytes of them"},
                              {"columns_missing", "columns that no kept document has; absent = none"},
                              {"rules[].rule", "name of a rule"},
                              {"rules[].profile", "profile it comes from"},
                              {"rules[].threshold", "its threshold; null = --set switched it off"},
                              {"rules[].failed", "documents that violate it"},
                              {"rules[].first", "documents for which it is the first violated rule"},
                              {"kind", "with --look, one line per document: kept, dropped or borderline"},
                              {"id", "with --look: its id; and kept, rules and text"},
                              {"profiles", "with --list: names with their help; and modifiers, scores"},
                              {"limit", "largest of the shares: reading, cpus, writing, memory"},
                              {"read_share", "share of the time in which the reading thread was busy"},
                              {"work_share", "in which the worker threads were busy"},
                              {"write_share", "in which results were written"},
                              {"memory_share", "in which work waited only for memory"},
                              {"budget_peak_bytes", "peak bytes in flight"},
                              {"seconds", "time taken"},
                              {"cpu_seconds", "CPU time taken"},
                              {NULL, NULL}},
    .run = run,
};
