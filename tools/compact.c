/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat compact`: merges all generations of a pack into one, without deleted samples.
 */
#include <leat/pack.h>

#include "base/str.h"
#include "cli.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "FILE", "write the pack here; else it takes the place of the old one"),
    CLI_FLAG("force", 'f', "replace a pack at --output"),
    CLI_BYTES("shard-bytes", 0, "0", 0, 1e18,
              "split into files of at most this size, 1 MiB or more; 0 = one file"),
    CLI_END,
};

typedef struct watch {
    cli *c;
    cli_progress bar;
} watch;

static int on_progress(void *cookie, uint64_t done, uint64_t total)
{
    watch *w = cookie;
    cli_progress_total(&w->bar, total);
    cli_progress_at(&w->bar, done, 0, 0);
    return cli_interrupted(w->c);
}

static int print_json(cli *c, const leat_packer_stats *st)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "pages", st->pages);
    leat__json_ku64(j, "shards", st->shards);
    leat__json_ku64(j, "bytes_out", st->file_bytes);
    return cli_object_end(c, &page);
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_packer_stats st = {0};
    watch w = {.c = c};
    leat_pack_compact_opts o = {.struct_size = sizeof o,
                                .output = cli_str(c, "output"),
                                .shard_bytes = cli_bytes(c, "shard-bytes"),
                                .replace = cli_flag(c, "force"),
                                .progress = on_progress,
                                .cookie = &w};
    char size[24];
    cli_progress_begin(&w.bar, c, "compacting", "samples", 0);
    int rc = leat_pack_compact(cli_arg(c, 0), &o, &st, &err);
    cli_progress_end(&w.bar);
    if (rc != 0) return cli_fail_result(c, NULL, &err);
    if (c->json) return print_json(c, &st) == 0 ? CLI_OK : CLI_DATA;
    cli_out(c, "%llu sample%s, %s\n", (unsigned long long)st.samples, cli_s(st.samples),
            leat__format_bytes(st.file_bytes, size, sizeof size));
    return CLI_OK;
}

const cli_command cli_cmd_compact = {
    .name = "compact",
    .summary = "write a pack that was appended to as one file",
    .examples = (const cli_example[]){{"leat compact photos.leat", "in place"},
                                      {"leat compact photos.leat -o clean.leat", "elsewhere"},
                                      {NULL, NULL}},
    .description = "Copies the samples as they are stored, without those that were "
                   "deleted or updated. The result has "
                   "the bytes of a pack into which all samples were packed at once "
                   "(tiled images: with the same "
                   "tables). Readers see the old pack or the new one. A single file is "
                   "left as it is.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .help = "a pack or a set"}, {.name = NULL}},
    .options = {{"Compacting", options}},
    .json = (const cli_key[]){{"samples", "samples in the pack"},
                              {"pages", "its pages"},
                              {"shards", "files with samples"},
                              {"bytes_out", "bytes of the files"},
                              {NULL, NULL}},
    .run = run,
};
