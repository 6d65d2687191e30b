/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns flags and --config into the options of a loader.
 */
#include "load_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "dsp/resizer.h"
#include "io/file.h"
#include "loader/defaults.h"
#include "op/pipeline.h"
#include "pack/selection.h"

#define KEYS_MAX ((size_t)1 << 32)

const leat__param cli_load_options[] = {
    CLI_INT("batch", 'b', LEAT__TEXT(LEAT__DEFAULT_BATCH), 1, 1048576, "N", "samples per batch of this rank"),
    CLI_INT("size", 's', LEAT__TEXT(LEAT__DEFAULT_SIDE), 1, 16384, "N", "side of the square image delivered"),
    CLI_CHOICE("crop", 0, "rrc", "rrc|center|none",
               "random resized crop, resize and centre crop, or resize only"),
    CLI_FLOAT("flip", 0, LEAT__TEXT(LEAT__DEFAULT_FLIP), 0, 1, "P",
              "mirror with this probability (with --crop rrc)"),
    CLI_CHOICE("dtype", 0, "u8", LEAT__OUTPUT_DTYPE_CHOICES, "element type of the images"),
    CLI_CHOICE("layout", 0, "nchw", LEAT__LAYOUT_CHOICES, "memory layout of the images"),
    CLI_CHOICE("like", 0, "pillow13", LEAT__PASS_CHOICES,
               "pixels of a resize: as Pillow 13 or 12 makes them, or fast: close to these"),
    CLI_CHOICE("orientation", 0, "apply", "apply|ignore",
               "turn images as their EXIF says, or deliver them as stored"),
    CLI_STRING("ops", 0, NULL, "TEXT",
               "the whole pipeline as text, instead of the six above; see leat help ops"),
    CLI_CHOICE("collate", 0, "stack", "stack|pad|list|ragged",
               "images in a batch: of one size; padded to the largest; each with its own size"),
    CLI_INT("pad-multiple", 0, "1", 1, LEAT_PAD_MULTIPLE_MAX, "N",
            "--collate pad: height and width are multiples of this"),
    CLI_FLOAT("pad-value", 0, "0", -1e9, 1e9, "V", "--collate pad: value of the padding, after Normalize"),
    CLI_FLAG("pad-mask", 0, "--collate pad: also deliver a mask, true where the image is"),
    CLI_CHOICE("bucket", 0, NULL, "aspect|size",
               "batches of images of similar width / height or width x height"),
    CLI_INT("buckets", 0, LEAT__TEXT(LEAT_BUCKETS), 1, LEAT_BUCKETS_MAX, "N",
            "--bucket: how many, of equal size"),
    CLI_STRING("bucket-edges", 0, NULL, "A,B", "--bucket: upper edges of the buckets, instead of --buckets"),
    CLI_STRING("follow", 0, NULL, "ROLES",
               "fields that follow the image: \"mask; boxes = Boxes(xywh)\"; see leat help Mask"),
    CLI_CHOICE("mix-labels", 0, NULL, "soft|pairs",
               "labels after MixUp or CutMix: one float per class, or label, partner's label and weight "
               "(default soft)"),
    CLI_STRING("label", 0, NULL, "FIELD", "int field of the labels for MixUp and CutMix (default label)"),
    CLI_INT("classes", 0, "0", 0, 1048576, "N",
            "number of classes for MixUp and CutMix, 0 = as many as the field has class names"),
    CLI_CHOICE("order", 0, LEAT__DEFAULT_ORDER_NAME, LEAT__ORDER_CHOICES, "order of the samples"),
    CLI_INT("seed", 0, "0", 0, 9007199254740992.0, "S", "seed of order and augmentation"),
    CLI_INT("epochs", 'e', "1", 1, 1000000, "E", "number of epochs; with --resume, those before it included"),
    CLI_FLAG("drop-last", 0, "drop the last, smaller batch"),
    CLI_FLAG("keep-last", 0, "keep the last batch even if some ranks then get an empty one"),
    CLI_PATH("keys", 0, NULL, "FILE", "only the samples with these keys, one per line"),
    CLI_PATH("select", 0, NULL, "PACK", "only the samples of this selection: of leat select or leat dedup"),
    CLI_STRING("balance", 0, NULL, "FIELD", "draw every value of this int field equally often"),
    CLI_INT("window-pages", 0, NULL, 1, 1000000000, "N",
            "quasi_random: pages open at once (default: 2 GiB of pages, 64 to 4096)"),
    CLI_INT("streams", 0, LEAT__TEXT(LEAT__DEFAULT_STREAMS), 1, 65536, "N",
            "quasi_random: windows that a batch draws from"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip|replace", "what to do with a bad sample"),
    CLI_INT("max-bad", 0, "0", 0, 9007199254740992.0, "N",
            "fail when an epoch has more bad samples than this, 0 = no limit"),
    CLI_PATH("quarantine", 0, NULL, "FILE",
             "append bad samples to this file as JSON lines; with --on-error skip or replace"),
    CLI_END,
};

const leat__param cli_load_machine[] = {
    CLI_THREADS,
    CLI_BYTES("memory", 'm', LEAT__TEXT(LEAT__DEFAULT_MEMORY), 0, 1e18,
              "memory budget, 0 = half of what is available"),
    CLI_STRING("cache", 0, LEAT__DEFAULT_CACHE_NAME, "os|process|device|disk:DIR",
               "where pages are cached: by the system, in the loader, on the GPU (tiles), or in a folder "
               "(remote packs)"),
    CLI_BYTES("cache-bytes", 0, "0", 0, 1e18,
              "size limit of the disk:DIR folder, 0 = half of the free space there"),
    CLI_INT("prefetch", 0, "0", 0, 1024, "N", "batches made ahead, 0 = decided while running"),
    CLI_INT("io-depth", 0, "0", 0, 1024, "N",
            "reads in flight, 0 = decided while running; small values have no effect on remote packs"),
    CLI_STRING("device", 0, NULL, "cpu|cuda[:N]", "where batches arrive: host memory or a GPU"),
    CLI_CHOICE("decode", 0, "auto", "auto|cpu|gpu", "where tiled images are decoded, with --device cuda"),
    CLI_BYTES("device-memory", 0, "0", 0, 1e18, "GPU memory for batches; 0 = a quarter of what is free"),
    CLI_INT("rank", 0, "0", 0, 1000000, "R", "index of this rank"),
    CLI_INT("world", 0, "1", 1, 1000000, "W", "number of ranks"),
    CLI_FLOAT("step-ms", 0, "0", 0, 3600000, "MS", "simulate a training step of this length"),
    CLI_PATH("config", 'c', NULL, "FILE", "read flags from this YAML file; given flags win"),
    CLI_END,
};

void load_ops_write(leat__buf *out, int crop, int side, double flip, const char *like, const char *dtype,
                    const char *layout)
{
    switch (crop) {
    case 0:
        leat__buf_printf(out, "RandomResizedCrop(%d, like=%s)", side, like);
        if (flip > 0) leat__buf_printf(out, "; RandomHorizontalFlip(%.17g)", flip);
        break;
    case 1: /* the usual evaluation: resize to 256 for a crop of 224, other sizes in proportion */
        leat__buf_printf(out, "Resize(%d, like=%s); CenterCrop(%d)", (side * 256 + 112) / 224, like, side);
        break;
    default: leat__buf_printf(out, "Resize((%d, %d), like=%s)", side, side, like);
    }
    if (dtype != NULL) leat__buf_printf(out, "; ToDtype(%s)", dtype);
    leat__buf_printf(out, "; ToLayout(%s)", layout);
}

/* --ops replaces these flags, so giving both is an error. On the command line it overrides --config. */
static int ops_alone(cli *c, leat_error *err)
{
    static const char *const parts[] = {"size", "crop", "flip", "dtype", "layout", "like"};
    bool wins = cli_typed(c, "ops");
    for (size_t i = 0; i < LEAT_COUNT(parts); i++)
        if (cli_given(c, parts[i]) && (!wins || cli_typed(c, parts[i])))
            return leat__fail(err, LEAT_EINVAL,
                              "--ops is the whole pipeline, so --%s has no effect: put it into --ops",
                              parts[i]);
    return 0;
}

static int make_ops(load_flags *f, cli *c, leat_error *err)
{
    const char *ops = cli_str(c, "ops"), *dtype = NULL;
    int crop = cli_choice(c, "crop");

    if (ops != NULL) {
        LEAT_TRY(ops_alone(c, err));
        return leat__buf_puts(&f->ops, ops);
    }
    if (cli_typed(c, "flip") && crop != 0) return leat__fail(err, LEAT_EINVAL, "--flip needs --crop rrc");
    /* Without --dtype, images of 16 bits and floats keep their type. */
    if (cli_given(c, "dtype")) dtype = leat_dtype_name(leat__output_dtype((uint32_t)cli_choice(c, "dtype")));
    load_ops_write(&f->ops, crop, (int)cli_int(c, "size"), cli_float(c, "flip"), cli_str(c, "like"), dtype,
                   leat__layout_name((leat__layout)cli_choice(c, "layout")));
    return leat__buf_status(&f->ops);
}

int load_open_packs(leat_pack **pack, cli *c, leat_error *err)
{
    uint32_t n = (uint32_t)cli_arg_count(c);
    const char **paths = LEAT_NEW_ARRAY(MISC, const char *, n + 1);
    if (paths == NULL) return leat__fail_nomem(err, n * sizeof *paths, "packs");
    for (uint32_t i = 0; i < n; i++) paths[i] = cli_arg(c, i);
    int rc = leat_pack_open_many(pack, paths, n, NULL, err);
    leat__free(paths);
    return rc;
}

/* Reads one key per line, quoted or not; the last line may be empty. */
static int read_keys(load_flags *f, cli *c, const char *path, leat_error *err)
{
    leat_pack *pack = NULL;
    char *text = NULL;
    size_t len;
    uint64_t n = 0, lines = 1;
    int rc;

    LEAT_GO(rc, out, leat__file_load(path, KEYS_MAX, 1, &text, &len, err));
    LEAT_GO(rc, out, load_open_packs(&pack, c, err));
    for (size_t i = 0; i < len; i++) lines += text[i] == '\n';
    f->indices = LEAT_NEW_ARRAY(MISC, uint64_t, lines);
    if (f->indices == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, lines * 8, "the keys"));
    for (char *line = text, *end; line < text + len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + len - line));
        if (end == NULL) end = text + len;
        size_t size = (size_t)(end - line);
        if (size > 0 && line[size - 1] == '\r') size--;
        if (size == 0) continue;
        size = leat__str_unquote(line, size);
        rc = leat_pack_find(pack, line, size, &f->indices[n], err);
        if (rc != 0) {
            if (rc == LEAT_ENOENT)
                rc = leat__fail(err, LEAT_ENOENT, "%s: key '%.*s' is not in %s", path, (int)size, line,
                                leat_pack_path(pack));
            goto out;
        }
        n++;
    }
    if (n == 0) rc = leat__fail(err, LEAT_EINVAL, "--keys %s: the file has no keys", path);
    f->opts.indices = f->indices;
    f->opts.index_count = n;
out:
    leat_pack_close(&pack);
    leat__free(text);
    return rc;
}

static int read_selection(load_flags *f, cli *c, const char *path, leat_error *err)
{
    leat_pack *pack = NULL;
    uint64_t n = 0;
    LEAT_TRY(load_open_packs(&pack, c, err));
    int rc = leat__selection_rows(pack, path, &f->indices, &n, err);
    if (rc == 0 && n == 0) rc = leat__fail(err, LEAT_EINVAL, "--select %s: the selection is empty", path);
    f->opts.indices = f->indices;
    f->opts.index_count = n;
    leat_pack_close(&pack);
    return rc;
}

static int set_cache(leat_loader_opts *o, const char *text, leat_error *err)
{
    if (text == NULL || strcmp(text, "os") == 0) o->cache = LEAT_CACHE_OS;
    else if (strcmp(text, "process") == 0) o->cache = LEAT_CACHE_PROCESS;
    else if (strcmp(text, "device") == 0) o->cache = LEAT_CACHE_DEVICE;
    else if (leat__str_starts(text, "disk:")) o->disk_cache = text + strlen("disk:");
    else return leat__fail(err, LEAT_EINVAL, "--cache: '%s' is not os, process, device or disk:DIR", text);
    if (o->disk_cache_bytes != 0 && o->disk_cache == NULL)
        return leat__fail(err, LEAT_EINVAL, "--cache-bytes needs --cache disk:DIR");
    return 0;
}

/* Returns a number that only quasi_random uses; 0 = the default. A number from the --config file is
 * ignored when the command line chooses another order. */
static uint32_t of_quasi(cli *c, const leat_loader_opts *o, const char *name)
{
    bool counts = o->order == LEAT_ORDER_QUASI || cli_typed(c, name) || !cli_typed(c, "order");
    return cli_given(c, name) && counts ? (uint32_t)cli_int(c, name) : 0;
}

static int read_buckets(load_flags *f, cli *c, leat_error *err)
{
    const char *edges = cli_str(c, "bucket-edges");

    if (cli_given(c, "bucket"))
        f->opts.bucket = (leat_bucket)(LEAT_BUCKET_ASPECT + (uint32_t)cli_choice(c, "bucket"));
    if (cli_given(c, "buckets")) f->opts.bucket_count = (uint32_t)cli_int(c, "buckets");
    if (edges == NULL) return 0;
    f->bucket_edges = LEAT_NEW_ARRAY(MISC, double, strlen(edges) + 1);
    if (f->bucket_edges == NULL) return leat__fail_nomem(err, strlen(edges), "buckets");
    for (const char *at = edges;;) {
        char *end;
        f->bucket_edges[f->opts.bucket_edge_count++] = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0'))
            return leat__fail(err, LEAT_EINVAL, "--bucket-edges: '%s' is not a list of numbers", edges);
        if (*end == '\0') break;
        at = end + 1;
    }
    f->opts.bucket_edges = f->bucket_edges;
    return 0;
}

double load_flag_most(const char *name)
{
    static const leat__param *const tables[] = {cli_load_options, cli_load_machine};
    for (size_t t = 0; t < LEAT_COUNT(tables); t++)
        for (const leat__param *p = tables[t]; p->name != NULL; p++)
            if (leat__str_eq(p->name, name)) return p->max;
    return 0;
}

int load_flags_read(load_flags *f, cli *c, leat_error *err)
{
    leat_loader_opts *o = &f->opts;

    memset(f, 0, sizeof *f);
    leat_loader_opts_init(o);
    leat__buf_init(&f->ops, LEAT__MEM_MISC, 65536);
    LEAT_TRY(make_ops(f, c, err));
    o->ops = leat__buf_str(&f->ops);
    o->batch_size = (uint32_t)cli_int(c, "batch");
    o->order = (leat_order)cli_choice(c, "order");
    o->seed = (uint64_t)cli_int(c, "seed");
    bool drop = cli_flag(c, "drop-last"), keep = cli_flag(c, "keep-last");
    if (drop) o->drop_last = LEAT_DROP_LAST;
    if (keep) o->drop_last = LEAT_DROP_NEVER;
    o->threads = (uint32_t)cli_int(c, "threads");
    o->memory = cli_bytes(c, "memory");
    o->disk_cache_bytes = cli_bytes(c, "cache-bytes");
    o->on_error = (leat_on_error)cli_choice(c, "on-error");
    o->orientation = (leat_orientation)cli_choice(c, "orientation");
    o->collate = (leat_collate)cli_choice(c, "collate");
    o->pad_multiple = (uint32_t)cli_int(c, "pad-multiple");
    o->pad_value = cli_float(c, "pad-value");
    o->pad_mask = cli_flag(c, "pad-mask");
    LEAT_TRY(read_buckets(f, c, err));
    o->max_bad = (uint64_t)cli_int(c, "max-bad");
    o->quarantine = cli_str(c, "quarantine");
    o->balance = cli_str(c, "balance");
    if (cli_given(c, "mix-labels"))
        o->mix_labels = (leat_mix_labels)(LEAT_MIX_LABELS_SOFT + (uint32_t)cli_choice(c, "mix-labels"));
    o->label = cli_str(c, "label");
    o->follow = cli_str(c, "follow");
    o->classes = (uint32_t)cli_int(c, "classes");
    o->window_pages = of_quasi(c, o, "window-pages");
    o->streams = of_quasi(c, o, "streams");
    o->prefetch = (uint32_t)cli_int(c, "prefetch");
    o->io_depth = (uint32_t)cli_int(c, "io-depth");
    o->device = cli_str(c, "device");
    o->device_memory = cli_bytes(c, "device-memory");
    o->decode = (leat_decode)cli_choice(c, "decode");
    o->rank = (uint32_t)cli_int(c, "rank");
    o->world = (uint32_t)cli_int(c, "world");
    o->log = c->log;
    f->epochs = (uint64_t)cli_int(c, "epochs");
    f->step_s = cli_float(c, "step-ms") / 1e3;
    LEAT_TRY(set_cache(o, cli_str(c, "cache"), err));
    if (drop && keep) return leat__fail(err, LEAT_EINVAL, "give either --drop-last or --keep-last, not both");
    if (o->rank >= o->world)
        return leat__fail(err, LEAT_EINVAL, "--rank %u must be below --world %u", o->rank, o->world);
    return 0;
}

int load_flags_keys(load_flags *f, cli *c, leat_error *err)
{
    const char *keys = cli_str(c, "keys"), *select = cli_str(c, "select");
    if (keys != NULL && select != NULL)
        return leat__fail(err, LEAT_EINVAL, "give either --keys or --select, not both");
    if (select != NULL) return read_selection(f, c, select, err);
    return keys != NULL ? read_keys(f, c, keys, err) : 0;
}

void load_flags_reset(load_flags *f)
{
    leat__buf_reset(&f->ops);
    leat__free(f->indices);
    f->indices = NULL;
    leat__free(f->bucket_edges);
    f->bucket_edges = NULL;
}
