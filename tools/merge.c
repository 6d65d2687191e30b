/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat merge`: merges several packs into one, without decoding or encoding their samples.
 */
#include <leat/ingest.h>

#include "base/str.h"
#include "cli.h"
#include "packing.h"

static const leat__param options[] = {
    CLI_PATH("output", 'o', NULL, "FILE", "write the pack here"),
    CLI_CHOICE("duplicates", 0, "error", "error|first|last|rename",
               "on samples with equal keys: stop, keep the first or the last one, or "
               "rename later ones "
               "(a.jpg becomes a-2.jpg)"),
    CLI_STRING("where", 0, NULL, "COND",
               "take only samples that meet this condition on key and numbers, before "
               "duplicates are looked for"),
    CLI_FLAG("resume", 0, "resume an interrupted run; add --force when it is to replace a pack"),
    CLI_FLAG("force", 'f', "replace a pack of that name; without --resume, also discard an unfinished one"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip", "on a damaged sample: stop, or skip and count it"),
    CLI_PATH("report", 0, NULL, "FILE",
             "write skipped samples here: one JSON object per line with key, offset, reason"),
    CLI_BYTES("shard-bytes", 0, "0", 0, 1e18,
              "split into files of at most this size, 1 MiB or more; 0 = one file"),
    CLI_THREADS,
    CLI_END,
};

static int print_json(cli *c, const leat_ingest_stats *st)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "duplicates", st->existing);
    leat__json_ku64(j, "filtered", st->filtered);
    leat__json_ku64(j, "skipped", st->skipped);
    leat__json_ku64(j, "recoded", st->recoded);
    leat__json_ku64(j, "resumed", st->resumed);
    leat__json_ku64(j, "shards", st->shards);
    leat__json_ku64(j, "bytes_in", st->bytes_in);
    leat__json_ku64(j, "bytes_out", st->bytes_out);
    leat__json_kdouble(j, "seconds", st->seconds);
    return cli_object_end(c, &page);
}

static void print_text(cli *c, const leat_ingest_opts *o, const leat_ingest_stats *st)
{
    char out[24];
    if (st->existing)
        cli_say(c, "%llu sample%s with the key of another one: %s", (unsigned long long)st->existing,
                st->existing == 1 ? "" : "s", o->merge == LEAT_MERGE_RENAME ? "renamed" : "left out");
    if (st->recoded)
        cli_say(c, "%llu image%s coded again, without loss, with the tables of %s",
                (unsigned long long)st->recoded, st->recoded == 1 ? " was" : "s were", cli_arg(c, 0));
    cli_out(c, "%llu sample%s, %s\n", (unsigned long long)st->samples, cli_s(st->samples),
            leat__format_bytes(st->bytes_out, out, sizeof out));
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_ingest_opts o;
    leat_ingest_stats st = {.struct_size = sizeof st};
    leat_ingest_opts_init(&o);
    o.output = cli_str(c, "output");
    o.merge = LEAT_MERGE_ERROR + (uint32_t)cli_choice(c, "duplicates");
    o.where = cli_str(c, "where");
    o.resume = cli_flag(c, "resume");
    o.replace = cli_flag(c, "force");
    o.skip_errors = cli_choice(c, "on-error") == 1;
    o.report = cli_str(c, "report");
    o.shard_bytes = cli_bytes(c, "shard-bytes");
    o.threads = (uint32_t)cli_int(c, "threads");
    if (cli_packing_run(c, &o, NULL, "merging", &st, NULL, &err) != 0)
        return cli_packing_fail(c, &o, &st, &err);
    int code = cli_packing_end(c, &o, &st);
    if (!c->json) print_text(c, &o, &st);
    else if (print_json(c, &st) != 0) code = CLI_DATA;
    return code;
}

const cli_command cli_cmd_merge = {
    .name = "merge",
    .summary = "merge packs into one, without encoding images again",
    .examples = (const cli_example[]){{"leat merge a.leat b.leat -o all.leat", "all samples of both"},
                                      {"leat merge old.leat new.leat -o newest.leat --duplicates last",
                                       "samples of new.leat replace those of old.leat"},
                                      {"leat merge a.leat b.leat -o cats.leat --where \"label == 'cat'\"",
                                       "samples of one class"},
                                      {NULL, NULL}},
    .description = "Copies samples as they are stored, in the order of the packs. The "
                   "packs must have the same fields, by "
                   "name and type. Class names of the label are joined: those of the "
                   "first pack keep their numbers, new "
                   "ones follow, labels are renumbered. Packs of one kind of source and "
                   "with the same settings give the "
                   "bytes of one `leat pack` over all sources (tiled images: where the "
                   "packs have the same tables).\n\n"
                   "Tiles that were coded with other tables than the first pack's are "
                   "coded again with these, without loss. "
                   "The pack appears under its name only when it is complete; an "
                   "interrupted run is continued with --resume. "
                   "leat help pack says how conditions are written.",
    .args = (const cli_arg_spec[]){{.name = "PACK", .path = true, .many = true, .help = "packs or sets"},
                                   {.name = NULL}},
    .options = {{"Merging", options}},
    .required = "output",
    .json = (const cli_key[]){{"samples", "samples in the pack"},
                              {"duplicates", "samples with the key of another one: left out, or renamed"},
                              {"filtered", "samples that did not meet --where"},
                              {"skipped", "damaged samples that were skipped"},
                              {"recoded", "images whose tiles were coded again"},
                              {"resumed", "samples taken over from an interrupted run"},
                              {"shards", "files with samples"},
                              {"bytes_in", "bytes read"},
                              {"bytes_out", "bytes of the files written"},
                              {"seconds", "time taken"},
                              {NULL, NULL}},
    .remote = true,
    .run = run,
};
