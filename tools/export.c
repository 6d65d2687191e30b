/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat export`: extracts the files of a pack to their original paths.
 */
#include <string.h>

#include <leat/ingest.h>

#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "cli_python.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "DIR", "write the files below this folder"),
    CLI_CHOICE("to", 0, "folder", "folder|webdataset|parquet",
               "folder: the original files; webdataset: tar shards with all fields; parquet: a table, as "
               "Hugging Face datasets have it"),
    CLI_BYTES("shard-bytes", 0, "1G", 1024.0 * 1024, 1e18, "end a tar shard or a parquet file at this size"),
    CLI_PATH("keys", 0, NULL, "FILE", "only these keys, one per line"),
    CLI_PATH("select", 0, NULL, "PACK", "only the samples of this selection: of leat select or leat dedup"),
    CLI_FLAG("force", 'f',
             "overwrite files that were there before this run; of shards and tables, also remove those whose "
             "numbers follow the last one written"),
    CLI_FLAG("checkpoint", 0,
             "write the model of a run of leat train: .pt TorchScript, .pt2 exported program, .onnx"),
    CLI_END,
};

#define FAILURES_SHOWN 10

typedef struct watch {
    cli *c;
    cli_progress bar;
    uint64_t failed;
    leat_error first; /* printed when a second failure follows; a single failure is the final error */
} watch;

static void on_failure(void *cookie, const leat_error *why)
{
    watch *w = cookie;
    if (w->failed == 0) w->first = *why;
    if (w->failed == 1) cli_warn(w->c, "not exported: %s", w->first.message);
    if (w->failed > 0 && w->failed < FAILURES_SHOWN) cli_warn(w->c, "not exported: %s", why->message);
    w->failed++;
}

static int on_progress(void *cookie, uint64_t done, uint64_t total, uint64_t bytes, uint64_t skipped)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, bytes, skipped);
    return cli_interrupted(w->c);
}

static int print_json(cli *c, const leat_export_stats *st)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "files", st->files);
    leat__json_ku64(j, "bytes", st->bytes);
    leat__json_ku64(j, "changed", st->changed);
    leat__json_ku64(j, "failed", st->failed);
    leat__json_ku64(j, "removed", st->removed);
    leat__json_ku64(j, "members", st->members);
    leat__json_ku64(j, "stayed", st->stayed);
    leat__json_ku64(j, "unnamed", st->unnamed);
    return cli_object_end(c, &page);
}

static int model(cli *c)
{
    static const char *const of_packs[] = {"to", "shard-bytes", "keys", "select"};
    for (size_t i = 0; i < LEAT_COUNT(of_packs); i++)
        if (cli_given(c, of_packs[i]))
            return cli_usage(c, "--%s is for packs: it has no effect with --checkpoint", of_packs[i]);
    return cli_python(c);
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_export_opts o;
    leat_export_stats st = {0};
    watch w = {.c = c};
    if (cli_flag(c, "checkpoint")) return model(c);
    leat_export_opts_init(&o);
    o.pack = cli_arg(c, 0);
    o.folder = cli_str(c, "output");
    o.keys = cli_str(c, "keys");
    o.select = cli_str(c, "select");
    o.replace = cli_flag(c, "force");
    o.to = (uint32_t)cli_choice(c, "to");
    if (cli_given(c, "shard-bytes")) o.shard_bytes = cli_bytes(c, "shard-bytes");
    o.progress = on_progress;
    o.failure = on_failure;
    o.cookie = &w;
    cli_progress_begin(&w.bar, c, "exporting", "samples", 0);
    int rc = leat_export(&o, &st, &err);
    cli_progress_end(&w.bar);
    if (w.failed == 1 && strcmp(w.first.message, err.message) != 0)
        cli_warn(c, "not exported: %s", w.first.message);
    if (cli_is_stop(c, &err))
        cli_say(c, "stopped by a signal; written to %s: %llu sample%s, %llu file%s", o.folder,
                (unsigned long long)st.samples, cli_s(st.samples), (unsigned long long)st.files,
                cli_s(st.files));
    if (rc == LEAT_ECANCELED || (rc != 0 && st.failed == 0 && st.files == 0)) return cli_fail_output(c, &err);
    if (st.changed)
        cli_warn(c, "%llu image%s not the source's file%s: stored as pixels or encoded again",
                 (unsigned long long)st.changed, st.changed == 1 ? " is" : "s are", cli_s(st.changed));
    if (st.removed)
        cli_warn(c, "removed %llu shard%s of an earlier run, numbered after the last one written",
                 (unsigned long long)st.removed, cli_s(st.removed));
    if (st.stayed)
        cli_warn(c,
                 "%llu file%s numbered after the last shard written (%s/%s): changed, not from leat export, "
                 "or after a gap",
                 (unsigned long long)st.stayed, st.stayed > 1 ? "s stay," : " stays,", o.folder,
                 st.stayed_first);
    if (st.unnamed)
        cli_warn(c, "tar shards have no class names: %llu field%s only the numbers of the classes",
                 (unsigned long long)st.unnamed, st.unnamed > 1 ? "s have" : " has");
    char size[24];
    if (c->json) print_json(c, &st);
    else
        cli_out(c, "%llu file%s, %s, in %s\n", (unsigned long long)st.files, cli_s(st.files),
                leat__format_bytes(st.bytes, size, sizeof size), o.folder);
    if (rc == 0) return CLI_OK;
    int exit_code = cli_fail(c, &err);
    if (rc == LEAT_EEXIST && !o.replace)
        cli_tell(c, "--force replaces files that were there before this run");
    return exit_code == CLI_USAGE ? CLI_DATA : exit_code; /* CLI_USAGE would mean that nothing was done */
}

const cli_command cli_cmd_export = {
    .name = "export",
    .summary = "extract the original files of a pack",
    .examples = (const cli_example[]){{"leat export photos.leat -o photos-again", "all of them"},
                                      {"leat export photos.leat -o some --keys keys.txt", "the listed ones"},
                                      {"leat export photos.leat -o shards --to webdataset",
                                       "tar shards for other loaders"},
                                      {NULL, NULL}},
    .description =
        "Writes each image under the path it was packed from, byte for byte as it was when the "
        "pack kept or tiled it. Images stored as pixels come back as PNG, resized ones as JPEG; "
        "so do progressive JPEGs that an older leat tiled, as baseline files of the same pixels. "
        "These are counted; 'leat info' counts them before. "
        "Samples from tar shards get their other members back, too. A sample that cannot be written "
        "is named and counted, and the others are written; the exit code is then 4. Reasons: its "
        "path would leave the folder or is not a legal name, a folder in it is a symbolic link, the "
        "file already exists, an earlier sample had the same key, or the sample is damaged.\n\n"
        "A file, tar shard or table is NAME.partial until it is complete. A run that fails or is stopped "
        "removes it; what a killed run left is replaced by the next one. With --force, tar shards and tables "
        "replace those of an earlier run when all of them are complete; files that leat did not write stay.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .options = {{"Exporting", options}},
    .required = "output",
    .json =
        (const cli_key[]){
            {"samples", "samples exported"},
            {"files", "files written; of --to webdataset, tar shards"},
            {"bytes", "bytes written"},
            {"changed", "images that are not the source's file"},
            {"failed", "samples that were not exported"},
            {"removed", "shards of an earlier, longer run, with --force"},
            {"members", "files in tar shards"},
            {"stayed",
             "files numbered after the last shard, with --force: not as leat wrote them, or after a gap"},
            {"unnamed", "fields whose class names are not in the tar shards"},
            {NULL, NULL}},
    .remote = true,
    .run = run,
};
