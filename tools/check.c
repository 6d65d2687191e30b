/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat check`: decodes every image once, scores it, and lists the issues.
 */
#include <leat/images.h>
#include <leat/pack.h>

#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "curate/image_check.h"
#include "curate/label_check.h"
#include "packing.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "write the columns here"),
    CLI_PATH("csv", 0, NULL, "FILE",
             "also write a CSV file, a line per image; --force replaces an earlier one"),
    CLI_STRING("limits", 0, NULL, "LIST", "set limits of issues, as in dark=40,grey=off; others adapt"),
    CLI_FLAG("strict", 0, "take every file of a folder, whatever its name"),
    CLI_REPLACE,
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard memory budget, 0 = half of what is available"),
    CLI_INT("max-pixels", 0, "0", 0, 1e15, "N", "largest image, 0 = 178956970"),
    CLI_END,
};

static const leat__param labels[] = {
    CLI_FLAG("labels", 0, "check the labels of a pack instead of its images"),
    CLI_PATH("embeddings", 'e', NULL, "PACK", "vectors of the images: leat embed writes them"),
    CLI_STRING("field", 0, NULL, "NAME", "field of the vectors, when their pack has several"),
    CLI_PATH("predictions", 0, NULL, "PACK", "scores of the classes, instead of votes: leat embed --logits"),
    CLI_STRING("column", 0, "label", "NAME", "int field with the labels"),
    CLI_INT("neighbours", 0, "20", 1, 1000, "N", "nearest images that vote on a label"),
    CLI_END,
};

static void print_issue(cli *c, const leat_check_issue *s, leat_pack *pack)
{
    char limit[48] = "", key[256];
    size_t size;
    if (s->score) snprintf(limit, sizeof limit, "%s %s %.4g", s->score, s->side < 0 ? "<" : ">", s->limit);
    cli_out(c, "%8llu  %-16s %-24s", (unsigned long long)s->count, s->name, limit);
    for (uint32_t i = 0; i < LEAT_MIN(s->examples, 2) && pack; i++)
        if (leat_pack_key(pack, s->example[i], key, sizeof key, &size, NULL) == 0) {
            char shown[256];
            cli_out(c, "%s%s", i ? ", " : " ", leat__str_shown(key, shown, sizeof shown));
        }
    cli_out(c, "\n");
}

void cli_check_issues(cli *c, const char *output, const leat_check_stats *st, bool limits)
{
    leat_pack *pack = NULL;
    if (leat_pack_open(&pack, output, NULL, NULL) != 0) pack = NULL;
    for (uint32_t i = 0; i < st->issue_count; i++)
        if (st->issues[i].count > 0) print_issue(c, &st->issues[i], pack);
    for (uint32_t i = 0; i < st->issue_count; i++)
        if (st->issues[i].off && !limits)
            cli_say(c, "more than half of the images have the issue %s: not listed", st->issues[i].name);
    leat_pack_close(&pack);
}

static void print_text(cli *c, const char *output, const leat_check_stats *st)
{
    char in[24], took[24];
    cli_out(c, "%llu image%s, %llu decoded, %llu with issues; %s, %s, %.0f images per CPU-second\n",
            (unsigned long long)st->samples, cli_s(st->samples), (unsigned long long)st->ok,
            (unsigned long long)st->found, leat__format_bytes(st->bytes_in, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)(st->samples - st->resumed) / st->cpu_seconds : 0.0);
    if (st->resumed)
        cli_out(c, "%llu of them by the interrupted run before\n", (unsigned long long)st->resumed);
    cli_check_issues(c, output, st, cli_given(c, "limits"));
}

static int finish(cli *c, const char *output, const leat_check_stats *st)
{
    if (st->ignored)
        cli_warn(c, "skipped %llu file%s hidden or %s no image suffix; --strict takes every file",
                 (unsigned long long)st->ignored, st->ignored == 1 ? " that is" : "s that are",
                 st->ignored == 1 ? "has" : "have");
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__check_json(st, output, &buf);
        int code = cli_json(c, &buf);
        if (code != CLI_OK) return code;
    } else {
        print_text(c, output, st);
    }
    return st->found ? CLI_FINDING : CLI_OK;
}

/* ---- labels ---- */

static int finish_labels(cli *c, const char *output, const leat_check_labels_stats *st)
{
    char took[24], key[256], shown[256];
    size_t size;
    leat_pack *pack = NULL;
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__check_labels_json(st, output, &buf);
        int code = cli_json(c, &buf);
        if (code != CLI_OK) return code;
    } else {
        cli_out(c, "%llu label%s of %u classes: %llu probably wrong, %llu image%s far from the class; %s\n",
                (unsigned long long)st->labelled, cli_s(st->labelled), st->classes,
                (unsigned long long)st->wrong, (unsigned long long)st->outliers, cli_s(st->outliers),
                leat__format_seconds(st->seconds, took, sizeof took));
        if (st->without_vector)
            cli_out(c, "%llu labelled image%s without a vector (zeros or not finite) did not vote\n",
                    (unsigned long long)st->without_vector, cli_s(st->without_vector));
        if (st->without_scores)
            cli_out(c, "%llu labelled image%s without finite predictions %s not judged\n",
                    (unsigned long long)st->without_scores, cli_s(st->without_scores),
                    st->without_scores == 1 ? "was" : "were");
        if (leat_pack_open(&pack, output, NULL, NULL) != 0) pack = NULL;
        for (uint32_t i = 0; i < st->examples && pack; i++)
            if (leat_pack_key(pack, st->example[i], key, sizeof key, &size, NULL) == 0)
                cli_out(c, "%s%s", i ? ", " : "most suspicious: ", leat__str_shown(key, shown, sizeof shown));
        if (st->examples) cli_out(c, "\n");
        leat_pack_close(&pack);
    }
    return st->wrong || st->outliers ? CLI_FINDING : CLI_OK;
}

static int run_labels(cli *c)
{
    leat_error err = {0};
    leat_check_labels_opts o;
    leat_check_labels_stats st = {.struct_size = sizeof st};
    cli_progress bar;
    if (cli_arg_count(c) != 1) return cli_usage(c, "--labels: give one pack");
    leat_check_labels_opts_init(&o);
    o.pack = cli_arg(c, 0);
    o.csv = cli_str(c, "csv");
    o.vectors = cli_str(c, "embeddings");
    o.field = cli_str(c, "field");
    o.predictions = cli_str(c, "predictions");
    o.column = cli_str(c, "column");
    o.neighbours = (uint32_t)cli_int(c, "neighbours");
    CLI_FILL_RUN(&o, c, &bar);
    cli_progress_begin(&bar, c, "checking", "labels", 0);
    int rc = leat_check_labels(&o, &st, &err);
    cli_progress_end(&bar);
    if (rc == 0 && o.predictions == NULL && st.labelled <= o.neighbours)
        cli_warn(c,
                 "%llu labelled images are too few for %u neighbours: the result says little; give fewer "
                 "(--neighbours)",
                 (unsigned long long)st.labelled, o.neighbours);
    if (rc == 0) return finish_labels(c, o.output, &st);
    return cli_fail_result(c, o.output, &err);
}

/* Returns CLI_USAGE when an option of the other kind of check is given. */
static int check_kind(cli *c)
{
    static const char *const images[] = {"limits", "strict", "max-pixels"};
    static const char *const of_labels[] = {"embeddings", "field", "predictions", "column", "neighbours"};
    const bool is_labels = cli_flag(c, "labels");
    for (size_t i = 0; is_labels && i < LEAT_COUNT(images); i++)
        if (cli_given(c, images[i])) return cli_usage(c, "--%s has no effect with --labels", images[i]);
    for (size_t i = 0; !is_labels && i < LEAT_COUNT(of_labels); i++)
        if (cli_given(c, of_labels[i])) return cli_usage(c, "--%s needs --labels", of_labels[i]);
    if (is_labels && cli_given(c, "neighbours") && cli_given(c, "predictions"))
        return cli_usage(c, "--neighbours has no effect with --predictions");
    return CLI_OK;
}

static int run(cli *c)
{
    leat_error err = {0};
    int kind = check_kind(c);
    if (kind != CLI_OK) return kind;
    if (cli_flag(c, "labels")) return run_labels(c);
    leat_check_opts o;
    leat_check_stats st = {.struct_size = sizeof st};
    cli_progress bar;
    const char *sources[1024];
    const size_t n = cli_arg_count(c);
    if (n > LEAT_COUNT(sources)) return cli_usage(c, "more than %zu sources", LEAT_COUNT(sources));
    for (size_t i = 0; i < n; i++) sources[i] = cli_arg(c, i);
    leat_check_opts_init(&o);
    o.sources = sources;
    o.source_count = (uint32_t)n;
    o.csv = cli_str(c, "csv");
    o.limits = cli_str(c, "limits");
    o.strict = cli_flag(c, "strict");
    o.max_pixels = (uint64_t)cli_int(c, "max-pixels");
    CLI_FILL_RUN(&o, c, &bar);
    cli_progress_begin(&bar, c, "checking", "images", 0);
    int rc = leat_check_images(&o, &st, &err);
    cli_progress_end(&bar);
    if (rc != 0) return cli_fail_result(c, o.output, &err);
    return finish(c, o.output, &st);
}

const cli_command cli_cmd_check = {
    .name = "check",
    .summary = "find broken, odd and poor images",
    .examples =
        (const cli_example[]){
            {"leat check photos.leat -o photos.check.leat", "all images of a pack"},
            {"leat check photos -o folder.check.leat --csv photos.csv", "a folder, and a table to read"},
            {"leat check train-*.tar -o train.check.leat --limits dark=40,grey=off",
             "tar shards, with limits of your own"},
            {"leat check photos.leat --labels -e vectors.leat -o labels.leat --csv wrong.csv",
             "labels that the most similar images contradict"},
            {NULL, NULL}},
    .description =
        "Decodes every image once and writes columns: a small pack with the same rows and keys that has a "
        "verdict, hashes, scores, issues and signatures for leat dedup images. Exit code 1 means that "
        "issues "
        "were found.\n\n"
        "Limits of scores adapt to the data set: an image has an issue when its score is an outlier among "
        "the others, or beyond a fixed value. An issue that more than half of the images have is not "
        "listed, unless --limits sets its limit.\n\n"
        "Scores: mean, contrast, p1, p5, p50, p95, p99 (brightness), entropy, blur, saturation, cast, "
        "jpeg_quality, border, aspect, size, noise. docs/images.md explains them.\n\n"
        "--labels checks labels, not images: by the labels of the nearest vectors, or by predictions, a "
        "label is probably wrong when another class is likelier, and as likely as that class is for its "
        "own images. The columns are label, suggested, issues (1: wrong label, 2: far from its class), rank, "
        "suspicion, confidence and outlier.",
    .args =
        (const cli_arg_spec[]){{.name = "SRC",
                                .path = true,
                                .many = true,
                                .help = "packs, tar shards, or one image folder, manifest or other source "
                                        "of leat pack"},
                               {.name = NULL}},
    .options = {{"Checking", options}, {"Labels", labels}},
    .required = "output",
    .json =
        (const cli_key[]){{"samples", "images checked"},
                          {"ok", "images that could be decoded"},
                          {"found", "images with an issue"},
                          {"issues", "by name: count, limit, examples"},
                          {"ignored", "files skipped because of their names"},
                          {"bytes_in", "bytes of the images"},
                          {"bytes_out", "bytes of the columns"},
                          {"resumed", "images checked by an interrupted run before this one"},
                          {"budget_peak_bytes", "peak bytes in flight"},
                          {"labelled", "labels: images with a label"},
                          {"classes", "labels: how many"},
                          {"wrong", "labels: probably wrong ones"},
                          {"outliers", "labels: images far from their class"},
                          {"without_vector",
                           "labels: labelled images whose vector is zeros or not finite; they do not vote"},
                          {"without_scores",
                           "labels: labelled images whose predictions are not finite; they are not judged"},
                          {"examples", "labels: keys of the most suspicious ones"},
                          {"seconds", "time taken"},
                          {"cpu_seconds", "CPU time taken"},
                          {"images_per_cpu_s", "images per second of CPU time"},
                          {NULL, NULL}},
    .remote = true,
    .run = run,
};
