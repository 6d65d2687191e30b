/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat check`: decode every image once, score it, and list what is wrong.
 */
#include <leat/images.h>
#include <leat/pack.h>

#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "curate/image_check.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "write the columns here"),
    CLI_PATH("csv", 0, NULL, "FILE", "also write a CSV file, a line per image"),
    CLI_STRING("limits", 0, NULL, "LIST", "set limits of issues, as in dark=40,grey=off; others adapt"),
    CLI_FLAG("strict", 0, "take every file of a folder, whatever its name"),
    CLI_FLAG("force", 'f', "replace a pack of that name"),
    CLI_INT("threads", 't', "0", 0, 4096, "N", "worker threads, 0 = all usable CPUs"),
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard budget of what is in flight, 0 = half of what is available"),
    CLI_INT("max-pixels", 0, "0", 0, 1e15, "N", "largest image, 0 = 178956970"),
    CLI_END,
};

typedef struct watch {
    cli *c;
    cli_progress bar;
} watch;

static int on_progress(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t found)
{
    watch *w = cookie;
    if (total) cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, bytes, found);
    return cli_interrupted(w->c);
}

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

static void print_text(cli *c, const char *output, const leat_check_stats *st)
{
    char in[24], took[24];
    leat_pack *pack = NULL;
    if (leat_pack_open(&pack, output, NULL, NULL) != 0) pack = NULL;
    cli_out(c, "%llu images, %llu decoded, %llu with issues; %s, %s, %.0f images per CPU-second\n",
            (unsigned long long)st->samples, (unsigned long long)st->ok, (unsigned long long)st->found,
            leat__format_bytes(st->bytes_in, in, sizeof in),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->cpu_seconds > 0 ? (double)st->samples / st->cpu_seconds : 0.0);
    for (uint32_t i = 0; i < st->issue_count; i++)
        if (st->issues[i].count > 0) print_issue(c, &st->issues[i], pack);
    for (uint32_t i = 0; i < st->issue_count; i++)
        if (st->issues[i].off && !cli_given(c, "limits"))
            cli_say(c, "%s is true of more than half of the images: not listed", st->issues[i].name);
    leat_pack_close(&pack);
}

static int finish(cli *c, const char *output, const leat_check_stats *st)
{
    if (st->ignored)
        cli_warn(c, "%llu file%s skipped, hidden or not an image by name; --strict takes every file",
                 (unsigned long long)st->ignored, st->ignored == 1 ? " was" : "s were");
    if (c->json) {
        leat__buf buf;
        leat__buf_init(&buf, LEAT__MEM_MISC, 1u << 20);
        leat__check_json(st, output, &buf);
        int code = cli_json(c, &buf);
        leat__buf_reset(&buf);
        if (code != CLI_OK) return code;
    } else {
        print_text(c, output, st);
    }
    return st->found ? CLI_FINDING : CLI_OK;
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_check_opts o;
    leat_check_stats st = {.struct_size = sizeof st};
    const char *sources[1024];
    const size_t n = cli_arg_count(c);
    if (n > LEAT_COUNT(sources)) return cli_usage(c, "more than %zu sources", LEAT_COUNT(sources));
    for (size_t i = 0; i < n; i++)
        sources[i] = cli_arg(c, i);
    leat_check_opts_init(&o);
    o.sources = sources;
    o.source_count = (uint32_t)n;
    o.output = cli_str(c, "output");
    o.csv = cli_str(c, "csv");
    o.limits = cli_str(c, "limits");
    o.strict = cli_flag(c, "strict");
    o.replace = cli_flag(c, "force");
    o.threads = (uint32_t)cli_int(c, "threads");
    o.memory = cli_bytes(c, "memory");
    o.max_pixels = (uint64_t)cli_int(c, "max-pixels");
    o.log = c->log;
    watch w = {.c = c};
    o.progress = on_progress;
    o.cookie = &w;
    cli_progress_begin(&w.bar, c, "checking", "images", 0);
    int rc = leat_check_images(&o, &st, &err);
    cli_progress_end(&w.bar);
    if (rc != 0) {
        int code = cli_fail(c, &err);
        if (rc == LEAT_EEXIST) cli_say(c, "--force replaces what is there");
        return code;
    }
    return finish(c, o.output, &st);
}

const cli_command cli_cmd_check = {
    .name = "check",
    .summary = "find broken, odd and poor images",
    .examples =
        (const cli_example[]){
            {"leat check photos.leat -o photos.check.leat", "all images of a pack"},
            {"leat check photos -o photos.check.leat --csv photos.csv", "a folder, and a table to read"},
            {"leat check train-*.tar -o train.check.leat --limits dark=40,grey=off",
             "tar shards, with limits of your own"},
            {NULL, NULL}},
    .description =
        "Decodes every image once and writes columns: a small pack with the same rows and keys that has a "
        "verdict, hashes, scores, issues and signatures for leat dedup images. Exit code 1 means that "
        "issues "
        "were found.\n\n"
        "Limits of scores adapt to the data set: an image has an issue when its score is an outlier among "
        "the others, or beyond a fixed value. An issue that more than half of the images have is not "
        "listed.\n\n"
        "Scores: mean, contrast, p1, p5, p50, p95, p99 (brightness), entropy, blur, saturation, cast, "
        "jpeg_quality, border, aspect, size. docs/images.md explains them.",
    .args =
        (const cli_arg_spec[]){{.name = "SRC",
                                .path = true,
                                .many = true,
                                .help = "packs, tar shards, or one image folder, manifest or other source "
                                        "of leat pack"},
                               {.name = NULL}},
    .options = {{"Checking", options}},
    .required = "output",
    .json = (const cli_key[]){{"samples", "images looked at"},
                              {"ok", "images that could be decoded"},
                              {"found", "images with an issue"},
                              {"issues", "by name: count, limit, examples"},
                              {"ignored", "files skipped because of their names"},
                              {"bytes_in", "bytes of the images"},
                              {"bytes_out", "bytes of the columns"},
                              {"budget_peak_bytes", "peak bytes in flight"},
                              {"seconds", "time taken"},
                              {"cpu_seconds", "CPU time taken"},
                              {"images_per_cpu_s", "images per second of CPU time"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
