/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat decontaminate`: removes text that a corpus shares with evaluation sets.
 */
#include <leat/text.h>

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "curate/decontaminate.h"
#include "curate/text_flow.h"

static const leat__param matching[] = {
    CLI_PATH("output", 'o', NULL, "DIR", "write kept documents, matches, bad lines and the report here"),
    CLI_STRING("eval", 'e', NULL, "FILES", "evaluation sets: JSONL files or folders, separated by commas"),
    CLI_STRING("eval-field", 0, "text", "NAMES", "keys of their texts, separated by commas"),
    CLI_INT("ngram", 0, "13", 2, 64, "N", "number of consecutive words that must be shared"),
    CLI_INT("min-matches", 0, "1", 1, 1e9, "N", "shared n-grams that make a document contaminated"),
    CLI_CHOICE("by", 0, "document", "document|span",
               "drop contaminated documents, or cut the shared spans out of them"),
    CLI_INT("window", 0, "0", 0, 1e6, "BYTES", "span: cut this many bytes around each span too"),
    CLI_PATH("config", 'c', NULL, "FILE", "read options from this YAML file; given options win"),
    CLI_END,
};

static const leat__param files[] = {
    CLI_TEXT_FILES,
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard memory budget, 0 = half of what is available"),
    CLI_END,
};

static void fill(cli *c, leat_decontaminate_opts *o)
{
    leat_decontaminate_opts_init(o);
    CLI_FILL_TEXT_FILES(o, c, NULL);
    o->eval_fields = cli_str(c, "eval-field");
    o->ngram = (uint32_t)cli_int(c, "ngram");
    o->min_matches = (uint32_t)cli_int(c, "min-matches");
    o->by = (uint32_t)cli_choice(c, "by");
    o->window = (uint32_t)cli_int(c, "window");
}

static void print_text(cli *c, const leat_decontaminate_opts *o, const leat_decontaminate_stats *st)
{
    char in[24], cut[24], took[24], words[160];
    cli_out(c, "%llu document%s: %llu contaminated, %llu dropped, %llu kept\n",
            (unsigned long long)st->documents, cli_s(st->documents), (unsigned long long)st->contaminated,
            (unsigned long long)st->dropped, (unsigned long long)st->kept);
    if (st->spans)
        cli_out(c, "%llu span%s cut out, %s\n", (unsigned long long)st->spans, cli_s(st->spans),
                leat__format_bytes(st->bytes_removed, cut, sizeof cut));
    cli_out(c, "%llu of %llu evaluation text%s %s found; %llu %s fewer than %u words\n",
            (unsigned long long)st->evals_found, (unsigned long long)st->evals, cli_s(st->evals),
            st->evals_found == 1 ? "was" : "were", (unsigned long long)st->evals_short,
            st->evals_short == 1 ? "has" : "have", o->ngram);
    cli_out(c, "%s of text, %s, %.0f MB per CPU-second\n", leat__format_bytes(st->text_bytes, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)st->text_bytes / 1e6 / st->cpu_seconds : 0.0);
    if (st->load.limit) cli_out(c, "%s\n", leat__text_load_words(&st->load, words));
}

static int finish(cli *c, const leat_decontaminate_opts *o, const leat_decontaminate_stats *st)
{
    if (st->evals_bad)
        cli_warn(c, "%llu line%s of the evaluation sets %s none of the fields \"%s\"",
                 (unsigned long long)st->evals_bad, cli_s(st->evals_bad), st->evals_bad == 1 ? "has" : "have",
                 o->eval_fields);
    int code = cli_bad_lines(c, st->bad, st->documents, o->output);
    if (!c->json) {
        print_text(c, o, st);
        return code;
    }
    leat__buf buf;
    leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
    leat__decontaminate_json(st, &buf);
    int printed = cli_json(c, &buf);
    return printed != CLI_OK ? printed : code;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_decontaminate_opts o;
    leat_decontaminate_stats st = {0};
    const char *inputs[1024], *evals[256];
    size_t n = cli_arg_count(c);
    if (n > LEAT_COUNT(inputs))
        return cli_usage(c, "more than %zu inputs (name their folder)", LEAT_COUNT(inputs));
    for (size_t i = 0; i < n; i++) inputs[i] = cli_arg(c, i);
    fill(c, &o);
    char *names = leat__strdup(LEAT__MEM_MISC, cli_str(c, "eval"));
    if (!names) return cli_usage(c, "out of memory");
    for (char *p = names, *end; p && *p; p = end) {
        end = strchr(p, ',');
        if (end) *end++ = 0;
        if (o.eval_count < LEAT_COUNT(evals)) evals[o.eval_count++] = p;
    }
    cli_progress bar;
    o.inputs = inputs;
    o.input_count = (uint32_t)n;
    o.evals = evals;
    o.cookie = &bar;
    cli_progress_begin(&bar, c, "decontaminating", "B", 0);
    int rc = leat_decontaminate_text(&o, &st, &err);
    cli_progress_end(&bar);
    int code = rc != 0 ? cli_fail(c, &err) : finish(c, &o, &st);
    leat__free(names);
    return code;
}

const cli_command cli_cmd_decontaminate = {
    .name = "decontaminate",
    .summary = "remove what a text corpus shares with evaluation sets",
    .examples =
        (const cli_example[]){
            {"leat decontaminate crawl -o clean --eval mmlu.jsonl,gsm8k.jsonl --eval-field question",
             "drop documents that share 13 consecutive words with a question"},
            {"leat decontaminate crawl -o cut --eval evals --by span --window 200",
             "cut the shared text out, with 200 bytes around it"},
            {NULL, NULL}},
    .description = "Compares the n-grams of words of every document with those of the evaluation sets; "
                   "case, punctuation and white space do not count. Writes the documents that share "
                   "none, byte for byte and in their order, to DIR/kept-00000.jsonl and so on. "
                   "DIR/matches.jsonl has a line for every contaminated document with its first shared "
                   "span; DIR/evals.jsonl one for every evaluation text that was found, with the number "
                   "of documents; DIR/report.json the counts.",
    .args = (const cli_arg_spec[]){{.name = "IN",
                                    .path = true,
                                    .many = true,
                                    .help = "JSONL files (plain, .gz, .zst), folders or patterns"},
                                   {.name = NULL}},
    .options = {{"Finding matches", matching}, {"Files and resources", files}},
    .required = "output|eval",
    .config = true,
    .json = (const cli_key[]){{"documents", "lines with a text"},
                              {"kept", "documents written"},
                              {"dropped", "documents left out"},
                              {"contaminated", "documents that share n-grams with an evaluation set"},
                              {"spans", "spans cut out (--by span)"},
                              {"bytes_removed", "bytes of these"},
                              {"bad", "lines that could not be read"},
                              {"lone_surrogates", "escapes without UTF-8 form, read as U+FFFD"},
                              {"evals", "texts of the evaluation sets: lines with at least one --eval-field"},
                              {"evals_found", "of these, found in the corpus"},
                              {"evals_short", "of these, those whose fields are all too short to be found"},
                              {"evals_bad", "lines of the evaluation sets without a text"},
                              {"eval_ngrams", "different n-grams of the evaluation sets"},
                              {"files", "input files"},
                              {"bytes_in", "bytes of the input files"},
                              {"text_bytes", "bytes of the texts"},
                              {"shards", "output files with documents"},
                              {"bytes_out", "bytes of them"},
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
