/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat append`: adds samples to an existing pack, as a new generation.
 */
#include <leat/ingest.h>

#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "packing.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "PACK", "the pack to append to"),
    CLI_CHOICE("if-exists", 0, "fail", "fail|skip|update",
               "when the pack already has the key of a sample: stop, keep the pack's sample, or replace it"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip",
               "what to do with samples that cannot be packed: stop, or skip and count them"),
    CLI_FLAG("strict", 0, "folders: append every file, also hidden ones and those without an image suffix"),
    CLI_PATH("report", 0, NULL, "FILE",
             "list what was left out here: one JSON object per line with key, offset, reason"),
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15, "hard budget for images in flight; 0 = as leat pack"),
    CLI_END,
};

static const leat__param images[] = {
    CLI_CHOICE("images", 0, "auto", "auto|keep|tiled|raw|mix",
               "how images are stored; auto = as the pack was packed"),
    CLI_FLAG("trust", 0, "do not decode images to check that they are valid"),
    CLI_PATH("keys", 0, NULL, "FILE", "with packs: only these keys, one per line, in this order"),
    CLI_END,
};

static int print_json(cli *c, const leat_ingest_stats *st)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "existing", st->existing);
    leat__json_ku64(j, "skipped", st->skipped);
    leat__json_ku64(j, "ignored", st->ignored);
    leat__json_ku64(j, "bytes_in", st->bytes_in);
    leat__json_ku64(j, "bytes_out", st->bytes_out);
    leat__json_ku64(j, "duplicate_keys", st->duplicate_keys);
    leat__json_kdouble(j, "seconds", st->seconds);
    return cli_object_end(c, &page);
}

static void fill(cli *c, leat_ingest_opts *o)
{
    leat_ingest_opts_init(o);
    o->output = cli_str(c, "output");
    o->append = LEAT_APPEND_FAIL + (uint32_t)cli_choice(c, "if-exists");
    o->skip_errors = cli_choice(c, "on-error") == 1;
    o->strict = cli_flag(c, "strict");
    o->report = cli_str(c, "report");
    o->threads = (uint32_t)cli_int(c, "threads");
    o->memory = cli_bytes(c, "memory");
    o->images = (uint32_t)cli_choice(c, "images");
    o->trust = cli_flag(c, "trust");
    o->keys = cli_str(c, "keys");
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_ingest_opts o;
    leat_ingest_stats st = {.struct_size = sizeof st};
    fill(c, &o);
    bool was_set = cli_packing_is_set(o.output);
    if (cli_packing_run(c, &o, NULL, "appending", &st, NULL, &err) != 0) return cli_fail(c, &err);
    int code = cli_packing_end(c, &o, &st);
    if (st.existing)
        cli_say(c, "%llu sample%s in the pack already: %s", (unsigned long long)st.existing,
                st.existing == 1 ? " was" : "s were", o.append == LEAT_APPEND_SKIP ? "kept" : "replaced");
    cli_packing_became_set(c, o.output, was_set);
    char in[24], out[24];
    if (c->json) print_json(c, &st);
    else
        cli_out(c, "%llu sample%s appended, %s in, %s out\n", (unsigned long long)st.samples,
                cli_s(st.samples), leat__format_bytes(st.bytes_in, in, sizeof in),
                leat__format_bytes(st.bytes_out, out, sizeof out));
    return code;
}

const cli_command cli_cmd_append = {
    .name = "append",
    .summary = "add samples to a pack without writing it again",
    .examples =
        (const cli_example[]){{"leat append new-photos -o photos.leat", "a folder with a folder per class"},
                              {"leat append fixed.csv -o photos.leat --if-exists update",
                               "samples with the same key are replaced"},
                              {NULL, NULL}},
    .description = "Writes the new samples to a file beside the pack and publishes both "
                   "under the pack's name, in one "
                   "step: PACK becomes a set that needs the files PACK-*.leat beside it, until "
                   "'leat compact'. Readers see the pack without or with all new samples, and "
                   "readers that have it open keep what "
                   "they have. A run that is killed leaves the pack as it was, and the "
                   "next one works. One process "
                   "writes a pack at a time.\n\n"
                   "The source must have the fields of the pack. Class names that the "
                   "pack has keep their numbers, new "
                   "ones follow. Tiled images use the pack's tables. Packs in buckets "
                   "cannot be appended to.",
    .args = (const cli_arg_spec[]){{.name = "SRC",
                                    .path = true,
                                    .many = true,
                                    .help = "image folder, tar shards, manifest or packs, as of leat pack"},
                                   {.name = NULL}},
    .options = {{"Appending", options}, {"Images", images}},
    .required = "output",
    .json = (const cli_key[]){{"samples", "samples appended"},
                              {"existing", "samples whose key the pack had"},
                              {"skipped", "samples left out"},
                              {"ignored", "files skipped: hidden (a folder is one) or not images"},
                              {"bytes_in", "bytes read from the source"},
                              {"bytes_out", "bytes of the files written"},
                              {"duplicate_keys", "samples with the key of an earlier one of this run"},
                              {"seconds", "time taken"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
