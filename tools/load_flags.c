/* SPDX-License-Identifier: Apache-2.0
 *
 * From flags and --config to the options of a loader.
 */
#include "load_flags.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "dsp/resizer.h"
#include "io/file.h"
#include "loader/defaults.h"
#include "op/pipeline.h"
#include "pack/selection.h"

#define CONFIG_MAX ((size_t)1 << 20)
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
               "whose pixels a resize gives; fast: near Pillow's, and faster"),
    CLI_CHOICE("orientation", 0, "apply", "apply|ignore",
               "turn images as their EXIF says, or deliver them as stored"),
    CLI_STRING("ops", 0, NULL, "TEXT",
               "the whole pipeline as text, instead of the six above; see leat help ops"),
    CLI_CHOICE("collate", 0, "stack", "stack|pad|list|ragged",
               "images in a batch: of one size; padded to the largest; each with its own size"),
    CLI_INT("pad-multiple", 0, "1", 1, LEAT_PAD_MULTIPLE_MAX, "N",
            "--collate pad: height and width are multiples of this"),
    CLI_FLOAT("pad-value", 0, "0", -1e9, 1e9, "V",
              "--collate pad: what stands beside an image, after Normalize"),
    CLI_FLAG("pad-mask", 0, "--collate pad: one more field, true where the image is"),
    CLI_CHOICE("bucket", 0, NULL, "aspect|size",
               "batches of images of similar width / height or width x height"),
    CLI_INT("buckets", 0, LEAT__TEXT(LEAT_BUCKETS), 1, LEAT_BUCKETS_MAX, "N",
            "--bucket: how many, of equal size"),
    CLI_STRING("bucket-edges", 0, NULL, "A,B", "--bucket: where they end, instead of --buckets"),
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
    CLI_INT("epochs", 'e', "1", 1, 1000000, "E", "number of epochs"),
    CLI_FLAG("drop-last", 0, "drop the last, smaller batch"),
    CLI_FLAG("keep-last", 0, "keep it also when ranks without a sample get an empty batch"),
    CLI_PATH("keys", 0, NULL, "FILE", "only the samples with these keys, one per line"),
    CLI_PATH("select", 0, NULL, "PACK", "only the samples of this selection: of leat select or leat dedup"),
    CLI_STRING("balance", 0, NULL, "FIELD", "draw every value of this int field equally often"),
    CLI_INT("window-pages", 0, LEAT__TEXT(LEAT__DEFAULT_WINDOW_PAGES), 1, 1000000000, "N",
            "quasi_random: pages open at once"),
    CLI_INT("streams", 0, LEAT__TEXT(LEAT__DEFAULT_STREAMS), 1, 65536, "N",
            "quasi_random: windows that a batch draws from"),
    CLI_CHOICE("on-error", 0, "fail", "fail|skip|replace", "what to do with a bad sample"),
    CLI_INT("max-bad", 0, "0", 0, 9007199254740992.0, "N",
            "more bad samples than this per epoch fail it, 0 = no limit"),
    CLI_PATH("quarantine", 0, NULL, "FILE", "append bad samples to this file as JSON lines"),
    CLI_END,
};

const leat__param cli_load_machine[] = {
    CLI_THREADS,
    CLI_BYTES("memory", 'm', LEAT__TEXT(LEAT__DEFAULT_MEMORY), 0, 1e18,
              "byte budget, 0 = half of what is left"),
    CLI_STRING("cache", 0, LEAT__DEFAULT_CACHE_NAME, "os|process|device|disk:DIR",
               "who keeps pages: the system, the loader, the GPU (tiles), or, of a remote pack, a folder"),
    CLI_BYTES("cache-bytes", 0, "0", 0, 1e18,
              "size limit of the disk:DIR folder, 0 = half of the free space there"),
    CLI_INT("prefetch", 0, "0", 0, 1024, "N", "batches made ahead, 0 = decided while running"),
    CLI_INT("io-depth", 0, "0", 0, 1024, "N", "reads in flight, 0 = decided while running"),
    CLI_STRING("device", 0, NULL, "cpu|cuda[:N]", "where batches arrive: host memory or a GPU"),
    CLI_CHOICE("decode", 0, "auto", "auto|cpu|gpu", "who decodes tiled images, with --device cuda"),
    CLI_BYTES("device-memory", 0, "0", 0, 1e18, "of the GPU, for batches; 0 = a quarter of what is free"),
    CLI_INT("rank", 0, "0", 0, 1000000, "R", "index of this rank"),
    CLI_INT("world", 0, "1", 1, 1000000, "W", "number of ranks"),
    CLI_FLOAT("step-ms", 0, "0", 0, 3600000, "MS", "simulate a training step of this length"),
    CLI_PATH("config", 'c', NULL, "FILE", "read flags from this YAML file; given flags win"),
    CLI_END,
};

/* ---- --config ----------------------------------------------------------------------------- */

static bool same_flag(const char *key, const char *name)
{
    for (; *key && *name; key++, name++) {
        char k = *key == '_' ? '-' : *key;
        if (k != *name) return false;
    }
    return *key == *name;
}

static const leat__param *find_param(const char *key)
{
    static const leat__param *const tables[] = {cli_load_options, cli_load_machine, cli_mix_options};
    for (size_t t = 0; t < LEAT_COUNT(tables); t++)
        for (const leat__param *p = tables[t]; p->name != NULL; p++)
            if (same_flag(key, p->name)) return p;
    return NULL;
}

/* The file is one mapping of scalars. Finds `name` (NULL: only checks) and copies its text. */
static int search_config(const char *path, const char *text, size_t len, const char *name, leat__buf *out,
                         bool *found, leat_error *err)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    int rc = 0;

    if (!yaml_parser_initialize(&parser)) return leat__fail_nomem(err, sizeof parser, "a YAML parser");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (!yaml_parser_load(&parser, &doc)) {
        rc = leat__fail(err, LEAT_EINVAL, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                        parser.problem != NULL ? parser.problem : "not YAML");
        yaml_parser_delete(&parser);
        return rc;
    }
    yaml_node_t *root = yaml_document_get_root_node(&doc);
    if (root != NULL && root->type != YAML_MAPPING_NODE)
        rc = leat__fail(err, LEAT_EINVAL, "%s: must be a list of 'flag: value' lines", path);
    for (yaml_node_pair_t *p = root != NULL && rc == 0 ? root->data.mapping.pairs.start : NULL;
         p != NULL && p < root->data.mapping.pairs.top && rc == 0; p++) {
        const yaml_node_t *k = yaml_document_get_node(&doc, p->key);
        const yaml_node_t *v = yaml_document_get_node(&doc, p->value);
        if (k->type != YAML_SCALAR_NODE || v->type != YAML_SCALAR_NODE) {
            rc = leat__fail(err, LEAT_EINVAL, "%s:%zu: must be 'flag: value'", path, k->start_mark.line + 1);
        } else if (find_param((const char *)k->data.scalar.value) == NULL) {
            rc = leat__fail(err, LEAT_EINVAL, "%s:%zu: unknown flag '%s'", path, k->start_mark.line + 1,
                            (const char *)k->data.scalar.value);
        } else if (same_flag((const char *)k->data.scalar.value, name)) {
            rc = leat__buf_append(out, v->data.scalar.value, v->data.scalar.length);
            *found = true;
        }
    }
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return rc;
}

/* A value of the file. Text must outlive the value: `f` keeps it. */
static int take_text(load_flags *f, const char *path, const char *name, leat__buf *found, leat__value *value,
                     leat_error *err)
{
    const leat__param *p = find_param(name);
    char shown[256], *text = leat__buf_take(found, NULL);
    if (text == NULL) return leat__fail_nomem(err, CONFIG_MAX, "a flag");
    snprintf(shown, sizeof shown, "%s: %s", path, name);
    int rc = leat__param_parse(p, shown, text, value, err);
    bool is_text = p->kind == LEAT__PARAM_STRING || p->kind == LEAT__PARAM_PATH;
    if (rc == 0 && is_text && f->text_count == LEAT_COUNT(f->texts))
        rc = leat__fail(err, LEAT_ELIMIT, "%s: too many flags that are text", path);
    if (rc == 0 && is_text) f->texts[f->text_count++] = text;
    else leat__free(text);
    return rc;
}

int load_flag_value(load_flags *f, cli *c, const char *name, leat__value *value, leat_error *err)
{
    const char *path = cli_str(c, "config");
    char *text = NULL;
    leat__buf found_text;
    bool found = false;
    size_t len;
    int rc = 0;

    *value = *cli_value(c, name);
    if (path == NULL || cli_given(c, name)) return 0;
    leat__buf_init(&found_text, LEAT__MEM_MISC, CONFIG_MAX);
    LEAT_GO(rc, out, leat__file_load(path, CONFIG_MAX, 1, &text, &len, err));
    LEAT_GO(rc, out, search_config(path, text, len, name, &found_text, &found, err));
    if (found) rc = take_text(f, path, name, &found_text, value, err);
out:
    leat__buf_reset(&found_text);
    leat__free(text);
    return rc;
}

/* ---- to options --------------------------------------------------------------------------- */

typedef struct reader {
    load_flags *f;
    cli *c;
    leat_error *err;
    int rc;
} reader;

static leat__value get(reader *r, const char *name)
{
    leat__value v = {0};
    if (r->rc == 0) r->rc = load_flag_value(r->f, r->c, name, &v, r->err);
    return v;
}

void load_ops_write(leat__buf *out, int crop, int side, double flip, const char *like, const char *dtype,
                    const char *layout)
{
    switch (crop) {
    case 0:
        leat__buf_printf(out, "RandomResizedCrop(%d, like=%s)", side, like);
        if (flip > 0) leat__buf_printf(out, "; RandomHorizontalFlip(%.17g)", flip);
        break;
    case 1: /* the usual evaluation: 256 for 224, and in proportion */
        leat__buf_printf(out, "Resize(%d, like=%s); CenterCrop(%d)", (side * 256 + 112) / 224, like, side);
        break;
    default: leat__buf_printf(out, "Resize((%d, %d), like=%s)", side, side, like);
    }
    if (dtype != NULL) leat__buf_printf(out, "; ToDtype(%s)", dtype);
    leat__buf_printf(out, "; ToLayout(%s)", layout);
}

/* --ops replaces these flags, so giving both is an error. On the command line it overrides --config. */
static int ops_alone(reader *r)
{
    static const char *const parts[] = {"size", "crop", "flip", "dtype", "layout", "like"};
    bool wins = cli_given(r->c, "ops");
    for (size_t i = 0; i < LEAT_COUNT(parts); i++)
        if (get(r, parts[i]).set && (!wins || cli_given(r->c, parts[i])))
            return leat__fail(r->err, LEAT_EINVAL,
                              "--ops is the whole pipeline: write what --%s says into it", parts[i]);
    return r->rc;
}

static int make_ops(load_flags *f, reader *r)
{
    static const char *const likes[] = {"pillow13", "pillow12", "fast"};
    leat__value ops = get(r, "ops"), size = get(r, "size"), crop = get(r, "crop");
    leat__value like = get(r, "like"), flip = get(r, "flip"), dtype = get(r, "dtype");
    leat__value layout = get(r, "layout");

    if (r->rc != 0) return r->rc;
    if (ops.s != NULL) {
        LEAT_TRY(ops_alone(r));
        return leat__buf_puts(&f->ops, ops.s);
    }
    if (cli_given(r->c, "flip") && crop.i != 0)
        return leat__fail(r->err, LEAT_EINVAL, "--flip goes with --crop rrc");
    /* Without --dtype, images of 16 bits and floats keep their type. */
    load_ops_write(&f->ops, (int)crop.i, (int)size.i, flip.f, likes[like.i],
                   dtype.set ? leat_dtype_name(leat__output_dtype((uint32_t)dtype.i)) : NULL,
                   leat__layout_name((leat__layout)layout.i));
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

/* One key per line, quoted or not; an empty last line is fine. */
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

/* A number that only quasi_random uses; 0 = the default. What a file says for the order it names does not
 * count when the command line names another order. */
static uint32_t of_quasi(reader *r, const leat_loader_opts *o, const char *name)
{
    leat__value v = get(r, name);
    bool counts = o->order == LEAT_ORDER_QUASI || cli_given(r->c, name) || !cli_given(r->c, "order");
    return v.set && counts ? (uint32_t)v.i : 0;
}

static int read_buckets(load_flags *f, reader *r)
{
    leat__value bucket = get(r, "bucket"), count = get(r, "buckets"), edges = get(r, "bucket-edges");

    if (bucket.set) f->opts.bucket = (leat_bucket)(LEAT_BUCKET_ASPECT + bucket.i);
    if (count.set) f->opts.bucket_count = (uint32_t)count.i;
    if (edges.s == NULL) return r->rc;
    f->bucket_edges = LEAT_NEW_ARRAY(MISC, double, strlen(edges.s) + 1);
    if (f->bucket_edges == NULL) return leat__fail_nomem(r->err, strlen(edges.s), "buckets");
    for (const char *at = edges.s;;) {
        char *end;
        f->bucket_edges[f->opts.bucket_edge_count++] = strtod(at, &end);
        if (end == at || (*end != ',' && *end != '\0'))
            return leat__fail(r->err, LEAT_EINVAL, "--bucket-edges: '%s' is not a list of numbers", edges.s);
        if (*end == '\0') break;
        at = end + 1;
    }
    f->opts.bucket_edges = f->bucket_edges;
    return r->rc;
}

int load_flags_read(load_flags *f, cli *c, leat_error *err)
{
    reader r = {f, c, err, 0};
    leat_loader_opts *o = &f->opts;

    memset(f, 0, sizeof *f);
    leat_loader_opts_init(o);
    leat__buf_init(&f->ops, LEAT__MEM_MISC, 65536);
    LEAT_TRY(make_ops(f, &r));
    o->ops = leat__buf_str(&f->ops);
    o->batch_size = (uint32_t)get(&r, "batch").i;
    o->order = (leat_order)get(&r, "order").i;
    o->seed = (uint64_t)get(&r, "seed").i;
    bool drop = get(&r, "drop-last").i != 0, keep = get(&r, "keep-last").i != 0;
    if (drop) o->drop_last = LEAT_DROP_LAST;
    if (keep) o->drop_last = LEAT_DROP_NEVER;
    o->threads = (uint32_t)get(&r, "threads").i;
    o->memory = get(&r, "memory").u;
    leat__value cache = get(&r, "cache");
    o->disk_cache_bytes = get(&r, "cache-bytes").u;
    o->on_error = (leat_on_error)get(&r, "on-error").i;
    o->orientation = (leat_orientation)get(&r, "orientation").i;
    o->collate = (leat_collate)get(&r, "collate").i;
    o->pad_multiple = (uint32_t)get(&r, "pad-multiple").i;
    o->pad_value = get(&r, "pad-value").f;
    o->pad_mask = get(&r, "pad-mask").i != 0;
    LEAT_TRY(read_buckets(f, &r));
    o->max_bad = (uint64_t)get(&r, "max-bad").i;
    o->quarantine = get(&r, "quarantine").s;
    o->balance = get(&r, "balance").s;
    leat__value mix = get(&r, "mix-labels");
    o->mix_labels = mix.set ? (leat_mix_labels)(LEAT_MIX_LABELS_SOFT + mix.i) : LEAT_MIX_LABELS_DEFAULT;
    o->label = get(&r, "label").s;
    o->follow = get(&r, "follow").s;
    o->classes = (uint32_t)get(&r, "classes").i;
    o->window_pages = of_quasi(&r, o, "window-pages");
    o->streams = of_quasi(&r, o, "streams");
    o->prefetch = (uint32_t)get(&r, "prefetch").i;
    o->io_depth = (uint32_t)get(&r, "io-depth").i;
    o->device = get(&r, "device").s;
    o->device_memory = get(&r, "device-memory").u;
    o->decode = (leat_decode)get(&r, "decode").i;
    o->rank = (uint32_t)get(&r, "rank").i;
    o->world = (uint32_t)get(&r, "world").i;
    o->log = c->log;
    f->epochs = (uint64_t)get(&r, "epochs").i;
    f->step_s = get(&r, "step-ms").f / 1e3;
    LEAT_TRY(r.rc);
    LEAT_TRY(set_cache(o, cache.s, err));
    if (drop && keep) return leat__fail(err, LEAT_EINVAL, "give either --drop-last or --keep-last, not both");
    if (o->rank >= o->world)
        return leat__fail(err, LEAT_EINVAL, "--rank %u must be below --world %u", o->rank, o->world);
    return 0;
}

int load_flags_keys(load_flags *f, cli *c, leat_error *err)
{
    leat__value keys = {0}, select = {0};
    LEAT_TRY(load_flag_value(f, c, "keys", &keys, err));
    LEAT_TRY(load_flag_value(f, c, "select", &select, err));
    if (keys.s != NULL && select.s != NULL)
        return leat__fail(err, LEAT_EINVAL, "give either --keys or --select, not both");
    if (select.s != NULL) return read_selection(f, c, select.s, err);
    return keys.s != NULL ? read_keys(f, c, keys.s, err) : 0;
}

void load_flags_reset(load_flags *f)
{
    leat__buf_reset(&f->ops);
    leat__free(f->indices);
    f->indices = NULL;
    leat__free(f->bucket_edges);
    f->bucket_edges = NULL;
    while (f->text_count > 0) leat__free(f->texts[--f->text_count]);
}
