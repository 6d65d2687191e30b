/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat select`: chooses samples of a pack by vectors and columns.
 */
#include <leat/select.h>

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "curate/select_run.h"
#include "io/file.h"

#define CONFIG_MAX ((size_t)1 << 20)
#define COLUMNS_MAX 256

static const leat__param selecting[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "write the selection here"),
    CLI_INT("count", 'n', NULL, 1, 4e9, "N", "choose this many samples; else all that the strategies allow"),
    CLI_FLOAT("share", 0, "0", 0, 1, "P", "choose this share of the samples"),
    CLI_PATH("config", 'c', NULL, "FILE", "read strategies from this YAML file; given options win"),
    CLI_CHOICE("strategy", 's', NULL, "diversity|weights|balance|typicality|similarity|random",
               "choose by one strategy, without a file"),
    CLI_PATH("embeddings", 'e', NULL, "PACK", "vectors of the samples: leat embed writes them"),
    CLI_STRING("field", 0, NULL, "NAME", "field of the vectors, when their pack has several"),
    CLI_STRING("with", 0, NULL, "PACKS",
               "packs with columns of the samples, separated by commas: leat check writes some"),
    CLI_STRING("where", 0, NULL, "COND",
               "choose only samples that meet this condition on their columns; see leat "
               "help pack"),
    CLI_PATH("previous", 0, NULL, "PACK", "keep the samples of this selection and choose more"),
    CLI_END,
};

static const leat__param one[] = {
    CLI_FLOAT("min-distance", 0, "0", 0, 2, "D",
              "diversity: leave out samples nearer than this to a chosen one"),
    CLI_STRING("column", 0, NULL, "NAME", "weights: prefer high values; balance: int column, or folder"),
    CLI_FLOAT("strength", 0, "1", -16, 16, "S",
              "weights, typicality, similarity: exponent; below 0 prefers low values"),
    CLI_CHOICE("distribution", 0, "uniform", "uniform|input", "balance: shares of the values"),
    CLI_PATH("query", 0, NULL, "PACK", "similarity: vectors to be similar to"),
    CLI_INT("neighbours", 0, "20", 1, 1000, "N", "typicality: mean distance to this many others"),
    CLI_INT("seed", 0, "0", 0, 9007199254740992.0, "S", "random: another seed gives other samples"),
    CLI_END,
};

static const leat__param running[] = {
    CLI_REPLACE,
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "refuse to start when more memory is needed, 0 = no limit"),
    CLI_END,
};

static int on_progress(void *bar, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    (void)found; /* equals `done` */
    return cli_progress_on(bar, done, total, bytes, 0);
}

/* Fills in the options of one strategy; CLI_USAGE when the strategy does not have them. */
static int fill_strategy(cli *c, leat_select_strategy *s)
{
    static const uint32_t kinds[] = {LEAT_SELECT_DIVERSITY,  LEAT_SELECT_WEIGHTS,    LEAT_SELECT_BALANCE,
                                     LEAT_SELECT_TYPICALITY, LEAT_SELECT_SIMILARITY, LEAT_SELECT_RANDOM};
    static const struct {
        const char *name, *of;
    } has[] = {{"min-distance", "diversity"},
               {"column", "weights|balance"},
               {"strength", "weights|typicality|similarity"},
               {"distribution", "balance"},
               {"query", "similarity"},
               {"seed", "random"},
               {"neighbours", "typicality"}};
    const char *given = cli_str(c, "strategy");
    for (size_t i = 0; i < LEAT_COUNT(has); i++) {
        if (!cli_given(c, has[i].name)) continue;
        if (given == NULL) return cli_usage(c, "--%s needs --strategy %s", has[i].name, has[i].of);
        if (strstr(has[i].of, given) == NULL)
            return cli_usage(c, "--%s has no effect with --strategy %s", has[i].name, given);
    }
    if (given == NULL) return CLI_OK;
    s->kind = kinds[cli_choice(c, "strategy")];
    s->least = cli_float(c, "min-distance");
    s->column = cli_str(c, "column");
    s->strength = cli_float(c, "strength");
    s->shares = cli_choice(c, "distribution") == 1 ? LEAT_SHARES_INPUT : LEAT_SHARES_UNIFORM;
    s->query = cli_str(c, "query");
    s->seed = (uint64_t)cli_int(c, "seed");
    s->neighbours = (uint32_t)cli_int(c, "neighbours");
    if (s->strength == 0) return cli_usage(c, "--strength must not be 0");
    return CLI_OK;
}

/* Splits a list at commas, in place. */
static int split(cli *c, char *list, const char *out[COLUMNS_MAX], uint32_t *n)
{
    for (char *at = list; at; ++*n) {
        char *comma = strchr(at, ',');
        if (comma) *comma = 0;
        if (!at[0]) return cli_usage(c, "--with: a name in the list is empty");
        if (*n == COLUMNS_MAX) return cli_usage(c, "--with: more than %d packs", COLUMNS_MAX);
        out[*n] = at;
        at = comma ? comma + 1 : NULL;
    }
    return CLI_OK;
}

static int finish(cli *c, const leat_select_stats *st)
{
    char took[24];
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__select_json(st, &buf);
        return cli_json(c, &buf);
    }
    cli_out(c, "%llu of %llu sample%s selected", (unsigned long long)st->selected,
            (unsigned long long)st->samples, cli_s(st->samples));
    if (st->previous) cli_out(c, " besides %llu of the previous selection", (unsigned long long)st->previous);
    if (st->excluded) cli_out(c, ", %llu left out by conditions", (unsigned long long)st->excluded);
    if (st->unknown)
        cli_out(c, ", %llu left out without a finite number in a column", (unsigned long long)st->unknown);
    if (st->without_vector)
        cli_out(c, ", %llu left out without a vector (zeros or not finite)",
                (unsigned long long)st->without_vector);
    if (st->resumed)
        cli_out(c, ", %llu of them by the interrupted run before", (unsigned long long)st->resumed);
    if (st->near) cli_out(c, ", %llu too near to others", (unsigned long long)st->near);
    cli_out(c, "\n%s, %.1f CPU-seconds", leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds);
    if (st->distances)
        cli_out(c, "; %llu distance%s, the last sample at %.4f from the others",
                (unsigned long long)st->distances, cli_s(st->distances), st->last_distance);
    cli_out(c, "\n");
    return CLI_OK;
}

static int select_rows(cli *c, leat_select_opts *o)
{
    leat_error err = {0};
    leat_select_stats st = {.struct_size = sizeof st};
    cli_progress bar;
    CLI_FILL_RUN(o, c, &bar);
    o->progress = on_progress;
    cli_progress_begin(&bar, c, "selecting", "samples", 0);
    int rc = leat_select(o, &st, &err);
    cli_progress_end(&bar);
    if (rc == 0 && o->previous && st.previous == 0)
        cli_warn(c, "%s: no sample is selected: there is nothing to keep", o->previous);
    if (rc == 0 && st.asked > st.selected)
        cli_warn(c, "%llu sample%s asked for: only %llu of %llu were selected", (unsigned long long)st.asked,
                 st.asked == 1 ? " was" : "s were", (unsigned long long)st.selected,
                 (unsigned long long)st.samples);
    if (rc == 0) return finish(c, &st);
    return cli_fail_result(c, o->output, &err);
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_select_opts o;
    leat_select_strategy strategy = {0};
    const char *columns[COLUMNS_MAX];
    char *config = NULL, *with = NULL;
    size_t len;
    int code = fill_strategy(c, &strategy);
    if (code == CLI_OK) code = cli_refuse_zero(c, "share");
    if (code != CLI_OK) return code;
    leat_select_opts_init(&o);
    o.pack = cli_arg(c, 0);
    o.count = (uint64_t)cli_int(c, "count");
    o.share = cli_float(c, "share");
    o.vectors = cli_str(c, "embeddings");
    o.field = cli_str(c, "field");
    o.where = cli_str(c, "where");
    o.previous = cli_str(c, "previous");
    o.strategies = &strategy;
    o.strategy_count = strategy.kind != 0;
    if (cli_str(c, "config")) {
        if (leat__file_load(cli_str(c, "config"), CONFIG_MAX, 1, &config, &len, &err) != 0)
            return cli_fail(c, &err);
        o.config = config;
        o.config_name = cli_str(c, "config");
        if (strlen(config) != len) code = cli_usage(c, "%s: has a zero byte in it", o.config_name);
    }
    if (cli_str(c, "with")) {
        with = leat__strdup(LEAT__MEM_MISC, cli_str(c, "with"));
        o.columns = columns;
        if (code == CLI_OK) code = split(c, with, columns, &o.column_count);
    }
    if (code == CLI_OK) code = select_rows(c, &o);
    leat__free(config);
    leat__free(with);
    return code;
}

const cli_command cli_cmd_select = {
    .name = "select",
    .summary = "choose samples of a pack by diversity, scores and balance",
    .examples =
        (const cli_example[]){{"leat select photos.leat -e vectors.leat -s diversity -n 1000 -o "
                               "chosen.leat",
                               "a thousand images that are far from each other"},
                              {"leat select photos.leat -e vectors.leat -s diversity --min-distance 0.1 -o "
                               "distinct.leat",
                               "as many as differ by a distance of 0.1"},
                              {"leat select photos.leat --with photos.check.leat --where 'issues == 0 and "
                               "blur > 50' -o good.leat",
                               "all images without issues"},
                              {"leat select photos.leat -s balance --column label -n 5000 -o even.leat",
                               "the same number of each class"},
                              {"leat select photos.leat -e vectors.leat -c select.yaml --previous "
                               "chosen.leat -o more.leat",
                               "strategies of a file, besides what was chosen before"},
                              {NULL, NULL}},
    .description = "Writes columns beside the pack: a small pack with the same rows and "
                   "keys that has selected (1 or 0), "
                   "order, round, score, distance and reason. leat.Loader, leat load, "
                   "leat pack and leat export take it "
                   "with --select; no image is copied or removed.\n\n"
                   "Samples are chosen one at a time: the one with the highest product "
                   "of objective ^ strength over "
                   "all strategies, the first of equal ones. The result is exact and the "
                   "same for any number of threads.\n\n"
                   "Strategies of a file: diversity (distance to the nearest chosen "
                   "sample; min_distance), weights "
                   "(column), balance (column; distribution: uniform, input, or shares "
                   "of values), typicality (neighbours), "
                   "similarity (query), random (seed), threshold (where). All have a "
                   "strength. docs/images.md has an example.\n\n"
                   "A column that several packs have is named with its file, without folder and "
                   ".leat: img.keep is keep of img.leat. Where such a name has other characters than "
                   "letters, digits, _ and dots, a condition has it in backquotes: `img-2.keep`.\n\n"
                   "Distances are those of vectors scaled to unit length: sqrt(2 - 2 x cosine), 0 to 2.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .options = {{"Selecting", selecting}, {"One strategy", one}, {"Running", running}},
    .required = "output",
    .json =
        (const cli_key[]){
            {"samples", "samples of the pack"},
            {"selected", "samples chosen by this run"},
            {"asked", "samples to choose by count or share; 0 without"},
            {"previous", "samples of the previous selection"},
            {"round", "number of this selection, 0 without a previous one"},
            {"excluded", "samples left out by conditions"},
            {"unknown", "samples left out because a column of weights has no finite number for them"},
            {"without_vector", "samples left out because their vector is zeros or not finite"},
            {"near",
             "samples left out because they are too near to a chosen one; 0 when the count was reached"},
            {"distances", "distances computed"},
            {"resumed", "samples chosen by an interrupted run before this one"},
            {"last_distance", "distance of the last chosen sample to the others"},
            {"plan_memory", "bytes of memory planned"},
            {"seconds", "time taken"},
            {"cpu_seconds", "CPU time taken"},
            {NULL, NULL}},
    .remote = true,
    .run = run,
};
