/* SPDX-License-Identifier: Apache-2.0
 *
 * `leat pack`: packs folders, tar shards, manifests and packs into one pack.
 */
#include <leat/ingest.h>

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "cli.h"
#include "codec/codec.h"
#include "curate/image_check.h"
#include "packing.h"
#include "probe/machine.h"

static const leat__param packing[] = {
    CLI_PATH("output", 'o', NULL, "FILE", "write the pack here"),
    CLI_FLAG("resume", 0, "resume an interrupted run; add --force when it is to replace a pack"),
    CLI_FLAG("force", 'f', "replace a pack of that name; without --resume, also discard an unfinished one"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip",
               "on a sample that cannot be packed: stop, or skip and count it"),
    CLI_FLAG("strict", 0,
             "folders: pack every file; without it, hidden files and files without an image suffix are "
             "skipped and counted"),
    CLI_PATH("report", 0, NULL, "FILE",
             "write skipped samples here: one JSON object per line with key, offset, reason"),
    CLI_PATH("check", 0, NULL, "PACK", "also check the images: write the columns of leat check here"),
    CLI_THREADS,
    CLI_BYTES("memory", 0, "0", 0, 1e15,
              "hard budget for images in flight; 0 = 128 MiB a thread, 256 MiB at least, and larger "
              "images one at a time"),
    CLI_END,
};

static const leat__param images[] = {
    CLI_CHOICE("images", 0, "tiled", "auto|keep|tiled|raw|mix",
               "how images are stored: untouched, JPEGs re-coded without loss for fast "
               "decoding, as pixels, or a mix of untouched and pixels; auto = tiled"),
    CLI_CHOICE("tiles", 0, "small", "small|fast",
               "tiled images: the bytes of the JPEGs, or a tenth more and faster to decode"),
    CLI_FLOAT("mix-raw", 0, "0.5", 0, 1, "P", "share of images stored as pixels in a mix"),
    CLI_INT("max-side", 0, "0", 0, LEAT_MAX_SIDE, "N",
            "make larger images smaller, antialiased, to this many pixels; 0 = never"),
    CLI_INT("quality", 0, "0", 0, 100, "Q",
            "encode every image as JPEG of this quality; 0 = only resized images, with quality 90"),
    CLI_CHOICE("frames", 0, "first", "first|all",
               "animated GIF and WebP: pack the first frame, or every frame as a sample with the key "
               "KEY#0000, KEY#0001 and so on"),
    CLI_FLAG("trust", 0,
             "skip the decoding check; tiled images: compare files, "
             "which are restored byte for byte, but not pixels"),
    CLI_END,
};

static const leat__param order[] = {
    CLI_STRING("shuffle", 0, NULL, "SEED",
               "shuffle the samples with this seed (not tar shards); else the source's order"),
    CLI_STRING("where", 0, NULL, "COND",
               "take only samples that meet this condition on key and numbers: 'label < 10 and "
               "score in 0.2..0.8'"),
    CLI_PATH("keys", 0, NULL, "FILE", "packs: take only these keys, one per line, in this order"),
    CLI_PATH("select", 0, NULL, "PACK",
             "packs: take only the samples of this selection: of leat select or leat dedup"),
    CLI_BYTES("shard-bytes", 0, "0", 0, 1e18,
              "split into files of at most this size, 1 MiB or more; 0 = one file"),
    CLI_BYTES("page-bytes", 0, "512KiB", 65536, 268435456, "size of a page"),
    CLI_END,
};

static const leat__param shards[] = {
    CLI_STRING("members", 0, NULL, "LIST",
               "take these kinds of members, such as jpg,cls,txt, and skip others; else all kinds that "
               "the first samples have. Also Parquet, Arrow and others that Python reads: these columns"),
    CLI_INT("infer", 0, "64", 1, 1e9, "N", "samples to read before the types of members are decided"),
    CLI_STRING("default", 0, NULL, "FIELD=N,...",
               "numbers of samples that lack the member: label=-1; other values may be missing"),
    CLI_END,
};

static const leat__param limits[] = {
    CLI_INT("max-pixels", 0, "178956970", 1, 1e15, "N", "pixels of one image"),
    CLI_BYTES("max-out-bytes", 0, "1GiB", 1, 1e15, "decoded bytes of one image"),
    CLI_BYTES("max-sample-bytes", 0, "1GiB", 1, 1e12, "stored bytes of one sample"),
    CLI_INT("max-scans", 0, "500", 1, 100000, "N", "scans of one progressive JPEG"),
    CLI_INT("max-work", 0, "4000000000", 1, 1e15, "N", "pixels times scans of one JPEG"),
    CLI_END,
};

static int fill(cli *c, leat_ingest_opts *o, leat_error *err)
{
    leat_ingest_opts_init(o);
    o->output = cli_str(c, "output");
    o->resume = cli_flag(c, "resume");
    o->replace = cli_flag(c, "force");
    o->skip_errors = cli_choice(c, "on-error") == 1;
    o->strict = cli_flag(c, "strict");
    o->report = cli_str(c, "report");
    o->threads = (uint32_t)cli_int(c, "threads");
    o->memory = cli_bytes(c, "memory");
    o->images = (uint32_t)cli_choice(c, "images");
    o->fast_tiles = cli_choice(c, "tiles") == 1;
    o->mix_raw = cli_float(c, "mix-raw");
    o->max_side = (uint32_t)cli_int(c, "max-side");
    o->quality = (uint32_t)cli_int(c, "quality");
    o->frames = cli_choice(c, "frames") == 1;
    o->trust = cli_flag(c, "trust");
    o->keys = cli_str(c, "keys");
    o->select = cli_str(c, "select");
    o->where = cli_str(c, "where");
    o->members = cli_str(c, "members");
    o->defaults = cli_str(c, "default");
    if (cli_given(c, "infer")) o->infer = (uint32_t)cli_int(c, "infer");
    if (o->members && o->infer) return leat__fail(err, LEAT_EINVAL, "--infer has no effect with --members");
    o->shard_bytes = cli_bytes(c, "shard-bytes");
    o->page_bytes = cli_bytes(c, "page-bytes");
    o->max_pixels = (uint64_t)cli_int(c, "max-pixels");
    o->max_out_bytes = cli_bytes(c, "max-out-bytes");
    o->max_sample_bytes = cli_bytes(c, "max-sample-bytes");
    o->max_scans = (uint32_t)cli_int(c, "max-scans");
    o->max_work = (uint64_t)cli_int(c, "max-work");
    if (cli_given(c, "tiles") && o->images != LEAT_IMAGES_TILED && o->images != LEAT_IMAGES_AUTO)
        return leat__fail(err, LEAT_EINVAL, "--tiles needs --images tiled");
    if (cli_given(c, "mix-raw") && o->images != LEAT_IMAGES_MIX)
        return leat__fail(err, LEAT_EINVAL, "--mix-raw needs --images mix");
    if (o->images == LEAT_IMAGES_RAW && (o->quality > 0 || o->trust))
        return leat__fail(err, LEAT_EINVAL, "--%s has no effect with --images raw: all images are decoded",
                          o->quality > 0 ? "quality" : "trust");
    if (cli_given(c, "shuffle")) {
        o->shuffle = 1;
        if (!leat__str_to_u64(cli_str(c, "shuffle"), &o->shuffle_seed))
            return leat__fail(err, LEAT_EINVAL, "--shuffle: \"%s\" is not a whole number from 0 on",
                              cli_str(c, "shuffle"));
    }
    return 0;
}

static int print_json(cli *c, const leat_ingest_stats *st, const char *check, const leat_check_stats *found)
{
    cli_object page;
    leat__json *j = cli_object_begin(&page);
    leat__json_ku64(j, "samples", st->samples);
    leat__json_ku64(j, "bytes_in", st->bytes_in);
    leat__json_ku64(j, "bytes_out", st->bytes_out);
    leat__json_ku64(j, "skipped", st->skipped);
    leat__json_ku64(j, "ignored", st->ignored);
    leat__json_ku64(j, "filtered", st->filtered);
    leat__json_ku64(j, "missing", st->missing);
    leat__json_ku64(j, "unlabelled", st->unlabelled);
    leat__json_ku64(j, "in_folders", st->in_folders);
    leat__json_ku64(j, "blank_labels", st->blank_labels);
    leat__json_kdouble(j, "seconds", st->seconds);
    leat__json_kdouble(j, "samples_per_s",
                       st->seconds > 0 ? (double)(st->samples - st->resumed) / st->seconds : 0);
    leat__json_ku64(j, "resumed", st->resumed);
    leat__json_ku64(j, "duplicate_keys", st->duplicate_keys);
    leat__json_ku64(j, "changed", st->changed);
    leat__json_ku64(j, "pages", st->pages);
    leat__json_ku64(j, "shards", st->shards);
    leat__json_kstr(j, "source", st->source_kind);
    leat__json_key(j, "images");
    leat__json_object(j);
    for (int id = 1; id < LEAT__CODEC_COUNT; id++) {
        uint64_t n = id < 8 ? st->images[id] : st->images_more[id - 8];
        if (n) leat__json_ku64(j, leat__codec_name((leat__codec_id)id), n);
    }
    leat__json_end(j);
    leat__json_ku64(j, "animated", st->animated);
    leat__json_ku64(j, "frames", st->frames);
    if (check) {
        leat__buf checked;
        leat__buf_init(&checked, LEAT__MEM_MISC, 1u << 20);
        leat__check_json(found, check, &checked);
        leat__json_key(j, "check");
        leat__json_raw(j, leat__buf_str(&checked));
        leat__buf_reset(&checked);
    }
    leat__json_ku64(j, "budget_peak_bytes", st->budget_peak_bytes);
    leat__json_ku64(j, "peak_rss_bytes", leat__process_peak_rss());
    return cli_object_end(c, &page);
}

static void print_text(cli *c, const leat_ingest_stats *st, bool where)
{
    char in[24], out[24], took[24];
    cli_out(c, "%llu sample%s, %s in, %s out, %s (%.0f samples/s)\n", (unsigned long long)st->samples,
            cli_s(st->samples), leat__format_bytes(st->bytes_in, in, sizeof in),
            leat__format_bytes(st->bytes_out, out, sizeof out),
            leat__format_seconds(st->seconds, took, sizeof took),
            st->seconds > 0 ? (double)(st->samples - st->resumed) / st->seconds : 0.0);
    if (st->resumed)
        cli_say(c, "%llu sample%s from the run that was resumed", (unsigned long long)st->resumed,
                st->resumed == 1 ? " was there" : "s were there");
    if (st->flat) cli_say(c, "no class folders: the pack has no field \"label\"");
    if (st->changed)
        cli_say(c, "%llu image%s cannot be exported byte for byte: stored as pixels or encoded again",
                (unsigned long long)st->changed, st->changed == 1 ? "" : "s");
    if (where)
        cli_say(c, "%llu sample%s did not meet --where and %s left out", (unsigned long long)st->filtered,
                cli_s(st->filtered), st->filtered == 1 ? "was" : "were");
    if (st->frames)
        cli_say(c, "%llu sample%s of animations", (unsigned long long)st->frames,
                st->frames == 1 ? " is a frame" : "s are frames");
    if (st->animated)
        cli_say(c, "%llu image%s several frames or pages: the first one is used",
                (unsigned long long)st->animated, st->animated == 1 ? " has" : "s have");
    if (st->missing)
        cli_say(c,
                "%llu sample%s a member that others have; numbers have the default, other values are absent",
                (unsigned long long)st->missing, st->missing == 1 ? " lacks" : "s lack");
    if (st->duplicate_keys)
        cli_warn(c, "%llu sample%s the key of an earlier one", (unsigned long long)st->duplicate_keys,
                 st->duplicate_keys == 1 ? " has" : "s have");
}

static void warn_ignored(cli *c, const leat_ingest_stats *st)
{
    const bool one = st->ignored == 1;
    const unsigned long long n = st->ignored;
    const char *first = st->ignored_first, *more = one ? "" : ", ...";
    if (strcmp(st->source_kind, "folder") == 0)
        cli_warn(c, "skipped %llu file%s hidden or %s no image suffix (%s%s); --strict takes every file", n,
                 one ? " that is" : "s that are", one ? "has" : "have", first, more);
    else
        cli_warn(c, "skipped %llu file%s hidden or not part of the dataset (%s%s)", n,
                 one ? " that is" : "s that are", first, more);
}

static int run(cli *c)
{
    leat_error err = {0};
    leat_ingest_opts o;
    leat_ingest_stats st = {.struct_size = sizeof st};
    leat_check_opts check;
    leat_check_stats found = {.struct_size = sizeof found};
    if (fill(c, &o, &err) != 0) return cli_usage(c, "%s", err.message);
    leat_check_opts_init(&check);
    check.output = cli_str(c, "check");
    int rc = cli_packing_run(c, &o, check.output ? &check : NULL, "packing", &st, &found, &err);
    if (rc != 0) return cli_packing_fail(c, &o, &st, &err);
    int code = cli_packing_end(c, &o, &st);
    if (st.ignored) warn_ignored(c, &st);
    if (c->json) print_json(c, &st, check.output, &found);
    else print_text(c, &st, o.where != NULL);
    if (check.output && !c->json) {
        cli_out(c, "%llu image%s with issues\n", (unsigned long long)found.found, cli_s(found.found));
        cli_check_issues(c, check.output, &found, false);
    }
    return found.found > 0 ? CLI_FINDING : code;
}

const cli_command cli_cmd_pack = {
    .name = "pack",
    .summary = "pack images into one fast, checksummed file",
    .examples =
        (const cli_example[]){
            {"leat pack photos -o photos.leat", "a folder with a folder per class"},
            {"leat pack train-*.tar -o train.leat --images keep", "shards of a WebDataset"},
            {"leat pack train-*.tar -o labelled.leat --members jpg,cls,txt --default label=-1",
             "samples without a class have the label -1"},
            {"leat pack list.csv -o list.leat --on-error skip --report bad.jsonl",
             "a manifest with paths and labels"},
            {"leat pack big.leat -o few.leat --where 'label < 10 and score in 0.2..0.8'",
             "samples that meet a condition"},
            {"leat pack photos -o checked.leat --check check.leat", "also find poor images"},
            {"leat pack big.leat -o small.leat --keys keys.txt --max-side 256",
             "a part of a pack, made smaller"},
            {NULL, NULL}},
    .description =
        "Reads every sample, decodes every image once to check that it is valid (unless "
        "--trust), and writes a pack: one file, or shards, with an index and checksums. The "
        "same source and settings give the same bytes, whatever the number of threads. The "
        "pack appears under its name only when it is complete; an interrupted run is continued "
        "with --resume. Exit code 1 means that samples were left out (--on-error skip), or that --check "
        "found issues.\n\n"
        "Class folders are numbered by the bytes of their names, as torchvision's ImageFolder "
        "does. In a manifest, paths are relative to it; the columns path (or image, file, "
        "file_name, filename, image_path), label (or labels, cls, class, class_name, target, category) and "
        "key "
        "have a meaning, all others become fields; without a key, the path is the key. Several tar shards or "
        "several packs are "
        "joined.\n\n"
        "A condition compares int and float fields, class names and key with == or =, !=, <, <=, "
        ">, >= (0 <= label < 10), 'in [1, 2]', 'in 1..5' (both ends included) and their 'not in', "
        "joined by and, or, not and parentheses. "
        "Names with other letters stand in `backquotes`. Text is written 'so' or \"so\".",
    .args = (const cli_arg_spec[]){{.name = "SRC",
                                    .path = true,
                                    .many = true,
                                    .help = "image folder, tar shards (.tar, .tar.gz, "
                                            ".tar.zst), TFRecord files, manifest (.csv, .tsv, "
                                            ".jsonl), packs (.leat), or a format of "
                                            "docs/formats.md; s3:// paths too"},
                                   {.name = NULL}},
    .options = {{"Packing", packing},
                {"Images", images},
                {"Order and files", order},
                {"Tar shards", shards},
                {"Limits", limits}},
    .required = "output",
    .json =
        (const cli_key[]){
            {"samples", "samples in the pack"},
            {"bytes_in", "bytes read from the source for them"},
            {"bytes_out", "bytes of the files written"},
            {"skipped", "samples skipped"},
            {"ignored",
             "files skipped: hidden (a folder is one), without an image suffix, or not of the dataset"},
            {"filtered", "samples that did not meet --where"},
            {"missing", "samples of tar shards that lack a member"},
            {"unlabelled", "images of this run beside class folders, with the label -1"},
            {"in_folders", "samples of tar shards with images only, in several folders: no labels"},
            {"blank_labels", "rows of a manifest whose class name begins or ends with a blank"},
            {"seconds", "time taken"},
            {"samples_per_s", "samples written per second by this run"},
            {"resumed", "samples taken over from an interrupted run"},
            {"duplicate_keys", "samples with the key of an earlier one"},
            {"changed", "images of this run that cannot be exported byte for byte"},
            {"pages", "pages written"},
            {"shards", "files with samples"},
            {"source", "folder, tar, manifest or pack"},
            {"images", "how many images are stored how, by this run"},
            {"check", "with --check: what leat check --json prints"},
            {"animated", "images with several frames or pages: the first one is used"},
            {"frames", "samples that are frames of animations, with --frames all"},
            {"budget_peak_bytes", "peak bytes in flight"},
            {"peak_rss_bytes", "peak resident memory of the process"},
            {NULL, NULL}},
    .remote = true,
    .run = run,
};
