/* SPDX-License-Identifier: Apache-2.0
 *
 * Extracts a pack into files. The main image of a sample goes to the path that is its key. The file has
 * the bytes of the source when the pack kept or tiled it, otherwise the closest form (a PNG or TIFF of
 * raw pixels, or the re-encoded JPEG), which is counted as changed. Samples from tar shards also get
 * their other members.
 *
 * Keys are untrusted: a key that is absolute, contains ".." or would leave the folder in another way is
 * refused before any file of its sample is written. A sample that cannot be written is counted, and
 * the export continues. Two samples of a pack may have the same key; `replace` never overwrites a file
 * of the same run, so the second one counts as not written. Links in the folder are not followed: all
 * output stays below it.
 *
 * With WebDataset shards, all fields of a sample become members of a tar file. Files and shards get their
 * final names when they are complete; shards that replace others get them when all shards are complete. One
 * thread.
 */
#include <leat/ingest.h>
#include <leat/pack.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "codec/codec.h"
#include "codec/tile/tile.h"
#include "ingest/csv.h"
#include "ingest/image_encode.h"
#include "ingest/pixel_file.h"
#include "ingest/shard_mark.h"
#include "ingest/source.h"
#include "ingest/table_writer.h"
#include "ingest/tar_write.h"
#include "io/below.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/object.h"
#include "pack/selection.h"

#define BYTES_MAX (UINT64_C(1) << 36)
#define SHARD_BYTES (UINT64_C(1) << 30)

/* Hashes of the names written by this run; open addressing, 0 = free slot. */
typedef struct written {
    uint64_t *slots;
    size_t count, capacity; /* capacity: a power of two, or 0 */
} written;

typedef struct exporter {
    const leat_export_opts *opts;
    leat_export_stats *stats;
    leat_pack *pack;
    leat_sample *sample;
    leat__tile_tables *tables;
    leat__pixel_file pixels;
    leat__buf path, bytes, stem;
    int image_field;
    bool members; /* the pack came from tar shards */
    bool to_tar;
    bool no_shard; /* to_tar: a shard could not be finished or started; ends the run */
    leat__tar_out tar;
    leat_export_stats in_shards; /* to_tar: counts of shards that have their final names */
    leat__store *store;          /* NULL: a local folder */
    written written;
    leat_error first; /* first failure of a sample */
} exporter;

void leat_export_opts_init_sized(leat_export_opts *opts, uint32_t struct_size)
{
    leat__sized_init(opts, struct_size);
}

static uint64_t hash_name(const char *name)
{
    return leat__hash64(name, strlen(name), 0) | 1;
}

static uint64_t *slot_of(const written *w, uint64_t hash)
{
    size_t at = (size_t)hash & (w->capacity - 1);
    while (w->slots[at] != 0 && w->slots[at] != hash) at = (at + 1) & (w->capacity - 1);
    return &w->slots[at];
}

static int grow(written *w, leat_error *err)
{
    written to = {.count = w->count, .capacity = w->capacity ? 2 * w->capacity : 1024};
    to.slots = LEAT_NEW_ARRAY(INGEST, uint64_t, to.capacity);
    if (!to.slots) return leat__fail_nomem(err, to.capacity * sizeof *to.slots, "names");
    for (size_t i = 0; i < w->capacity; i++)
        if (w->slots[i] != 0) *slot_of(&to, w->slots[i]) = w->slots[i];
    leat__free(w->slots);
    *w = to;
    return 0;
}

/* Fails with LEAT_EDATA when this run has already written `name`: two samples share it. */
static int claim_name(exporter *x, const char *name, leat_error *err)
{
    written *w = &x->written;
    if (w->count >= w->capacity / 2) LEAT_TRY(grow(w, err));
    uint64_t *slot = slot_of(w, hash_name(name));
    if (*slot != 0)
        return leat__fail(err, LEAT_EDATA, "%s/%s: an earlier sample of the pack was written to this file",
                          x->opts->folder, name);
    *slot = hash_name(name);
    w->count++;
    return 0;
}

/* Fails with LEAT_EDATA when the temporary name of `name` is a file of this run, which would be replaced. */
static int spare_written(exporter *x, const char *name, leat_error *err)
{
    LEAT_TRY(leat__below_partial(name, &x->path, err));
    const char *partial = leat__buf_str(&x->path);
    if (*slot_of(&x->written, hash_name(partial)) == 0) return 0;
    return leat__fail(err, LEAT_EDATA,
                      "%s/%s: its temporary name %s is the name of an earlier sample of the pack",
                      x->opts->folder, name, partial);
}

/* Writes FOLDER/name and creates folders as needed; `name` has been checked. */
static int write_file(exporter *x, const char *name, const void *data, size_t len, leat_error *err)
{
    LEAT_TRY(claim_name(x, name, err));
    if (x->to_tar) {
        LEAT_TRY(leat__tar_out_add(&x->tar, name, data, len, err));
    } else if (x->store) {
        leat__buf_clear(&x->path);
        if (leat__path_join(&x->path, x->opts->folder, name) != 0)
            return leat__fail_nomem(err, strlen(name), "a path");
        LEAT_TRY(leat__object_put(x->store, leat__buf_str(&x->path), data, len, !x->opts->replace, err));
    } else {
        LEAT_TRY(spare_written(x, name, err));
        LEAT_TRY(leat__below_write(x->opts->folder, name, data, len, x->opts->replace, err));
    }
    *(x->to_tar ? &x->stats->members : &x->stats->files) += 1;
    x->stats->bytes += len;
    return 0;
}

static int write_named(exporter *x, const char *key, size_t stem, const char *ext, const void *data,
                       size_t len, leat_error *err)
{
    leat__buf name;
    leat__buf_init(&name, LEAT__MEM_INGEST, 2u << 20);
    leat__buf_append(&name, key, stem);
    leat__buf_putc(&name, '.');
    leat__buf_puts(&name, ext);
    int rc = leat__buf_status(&name);
    if (rc != 0) rc = leat__fail(err, rc, "no memory for a name");
    else if (!leat__path_relative_safe(name.data, name.len))
        rc = leat__fail(err, LEAT_EPERM, "\"%s\" is not a path inside the folder", leat__buf_str(&name));
    else rc = write_file(x, name.data, data, len, err);
    leat__buf_reset(&name);
    return rc;
}

static int write_pixels(exporter *x, const char *key, const leat_view *v, leat_error *err)
{
    const char *ext;
    LEAT_TRY(leat__pixel_file_write(&x->pixels, v->data, v->size, &x->bytes, &ext, err));
    x->stats->changed++;
    const bool tif = strcmp(ext, "tif") == 0;
    if (leat__str_ends_nocase(key, tif ? ".tif" : ".png") || (tif && leat__str_ends_nocase(key, ".tiff")))
        return write_file(x, key, x->bytes.data, x->bytes.len, err);
    return write_named(x, key, strlen(key), ext, x->bytes.data, x->bytes.len, err);
}

static int write_tiled(exporter *x, const char *key, const leat_view *v, leat_error *err)
{
    leat__buf_clear(&x->bytes);
    LEAT_TRY(leat__tile_restore(v->data, v->size, x->tables, &x->bytes, err));
    if (!leat_pack_image_exact(&v->image)) x->stats->changed++;
    return write_file(x, key, x->bytes.data, x->bytes.len, err);
}

static int write_image(exporter *x, const char *key, const leat_view *v, leat_error *err)
{
    if (v->image.codec == LEAT__CODEC_TILE) return write_tiled(x, key, v, err);
    if (v->image.codec == LEAT__CODEC_RAW) return write_pixels(x, key, v, err);
    bool again = v->image.flags & LEAT_PACK_IMAGE_RESIZED, jpeg = v->image.codec == LEAT__CODEC_JPEG;
    if (again) x->stats->changed++;
    const char *ext = jpeg ? "jpg" : leat__codec_name((leat__codec_id)v->image.codec);
    char ending[16];
    snprintf(ending, sizeof ending, ".%s", ext);
    bool named = leat__str_ends_nocase(key, ending) || (jpeg && leat__str_ends_nocase(key, ".jpeg"));
    if (again && !named) return write_named(x, key, strlen(key), ext, v->data, v->size, err);
    return write_file(x, key, v->data, v->size, err);
}

static size_t stem_of(const char *key)
{
    const char *base = leat__path_base(key), *dot = strchr(base, '.');
    return dot ? (size_t)(dot - key) : strlen(key);
}

/* Writes the other members of a sample from a tar shard. */
static int write_members(exporter *x, const char *key, leat_error *err)
{
    for (uint32_t f = 0; f < leat_pack_field_count(x->pack); f++) {
        const leat_field *field = leat_pack_field(x->pack, f);
        leat_view v;
        char number[32];
        if ((int)f == x->image_field) continue;
        LEAT_TRY(leat_sample_field(x->sample, f, &v, err));
        if (!v.data) continue;
        const char *ext = field->name;
        if (field->type == LEAT_FIELD_INT) {
            int64_t i;
            memcpy(&i, v.data, sizeof i);
            snprintf(number, sizeof number, "%lld", (long long)i);
            v.data = number;
            v.size = strlen(number);
            if (strcmp(ext, "label") == 0) ext = "cls";
        } else if (field->type == LEAT_FIELD_IMAGE) {
            if (v.image.codec == LEAT__CODEC_TILE) {
                leat__buf_clear(&x->bytes);
                LEAT_TRY(leat__tile_restore(v.data, v.size, x->tables, &x->bytes, err));
                v.data = x->bytes.data;
                v.size = x->bytes.len;
            }
        }
        LEAT_TRY(write_named(x, key, stem_of(key), ext, v.data, v.size, err));
    }
    return 0;
}

/* ---- samples of WebDataset shards ---- */

/* Makes the sample's name in a shard from its key, without dots: WebDataset takes the part after the
 * first dot as the name of a field. */
static int set_stem(exporter *x, const char *key, leat_error *err)
{
    leat__buf_clear(&x->stem);
    const char *dot = strrchr(key, '.');
    const bool image = dot != NULL && leat__codec_of_suffix(dot) != LEAT__CODEC_NONE;
    size_t len = image ? (size_t)(dot - key) : strlen(key);
    if (leat__buf_append(&x->stem, key, len) != 0) return leat__fail_nomem(err, len, "a name");
    for (char *p = (char *)leat__path_base(leat__buf_str(&x->stem)); *p; p++)
        if (*p == '.') *p = '_';
    return 0;
}

/* True when a member whose ending is `name` would be packed as this field, of the type that `ending` gives. A
 * member "png" or "cls" would become the field "image" or "label". */
static bool says_field(const char *name, const char *ending)
{
    const leat_field_type type = leat__source_member_type(name);
    size_t n = strlen(name), e = strlen(ending);
    if (e == 0)
        return type == LEAT_FIELD_BYTES && strcasecmp(name, "image") != 0 && strcasecmp(name, "label") != 0;
    if (n == e) return strcmp(name, ending) == 0 && type != LEAT_FIELD_IMAGE && type != LEAT_FIELD_INT;
    return n > e && name[n - e - 1] == '.' && strcmp(name + n - e, ending) == 0;
}

/* Writes the value of the field `name`; NULL for the image and the label, which need no name. */
static int add_member(exporter *x, const char *name, const char *ending, const void *data, size_t len,
                      leat_error *err)
{
    char ext[300];
    if (!name) snprintf(ext, sizeof ext, "%s", ending);
    else if (says_field(name, ending)) snprintf(ext, sizeof ext, "%.250s", name);
    else snprintf(ext, sizeof ext, "%.250s.%s", name, ending[0] ? ending : "bin");
    for (char *p = ext; *p; p++)
        if (*p == '/') *p = '_';
    return write_named(x, leat__buf_str(&x->stem), x->stem.len, ext, data, len, err);
}

/* Returns the file of an image: the source's file, or a PNG or TIFF of its pixels. */
static int image_file(exporter *x, const leat_view *v, const void **data, size_t *len, const char **ext,
                      leat_error *err)
{
    *data = v->data;
    *len = v->size;
    *ext = v->image.codec == LEAT__CODEC_JPEG || v->image.codec == LEAT__CODEC_TILE
               ? "jpg"
               : leat__codec_name((leat__codec_id)v->image.codec);
    leat__buf_clear(&x->bytes);
    if (v->image.codec == LEAT__CODEC_TILE)
        LEAT_TRY(leat__tile_restore(v->data, v->size, x->tables, &x->bytes, err));
    else if (v->image.codec == LEAT__CODEC_RAW)
        LEAT_TRY(leat__pixel_file_write(&x->pixels, v->data, v->size, &x->bytes, ext, err));
    x->stats->changed += !leat_pack_image_exact(&v->image);
    if (x->bytes.len == 0) return 0;
    *data = x->bytes.data;
    *len = x->bytes.len;
    return 0;
}

/* Writes the elements as a NumPy file. */
static int array_file(exporter *x, const leat_field *f, const leat_view *v, leat_error *err)
{
    static const char *const types[] = {"",    "|b1", "|u1", "|i1", "<u2", "<i2", "<u4",
                                        "<i4", "<u8", "<i8", "<f2", "<V2", "<f4", "<f8"};
    char head[512];
    int n =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (", types[f->dtype]);
    for (uint32_t d = 0; d < f->ndim; d++)
        n += snprintf(head + n, sizeof head - (size_t)n, "%llu,%s",
                      (unsigned long long)(f->type == LEAT_FIELD_ARRAY ? f->shape[d] : v->shape[d]),
                      d + 1 < f->ndim ? " " : "");
    n += snprintf(head + n, sizeof head - (size_t)n, "), }");
    while ((10 + n + 1) % 64 != 0) head[n++] = ' ';
    head[n++] = '\n';
    uint16_t len = (uint16_t)n;
    leat__buf_clear(&x->bytes);
    leat__buf_append(&x->bytes, "\x93NUMPY\1\0", 8);
    leat__buf_append(&x->bytes, &len, 2);
    leat__buf_append(&x->bytes, head, (size_t)n);
    leat__buf_append(&x->bytes, v->data, v->size);
    return leat__buf_status(&x->bytes) == 0 ? 0 : leat__fail_nomem(err, v->size, "an array");
}

static int add_field(exporter *x, uint32_t f, leat_error *err)
{
    const leat_field *field = leat_pack_field(x->pack, f);
    leat_view v;
    char text[40];
    const void *data;
    size_t len;
    const char *ext;
    int64_t i;
    double d;
    LEAT_TRY(leat_sample_field(x->sample, f, &v, err));
    if (!v.data) return 0;
    switch (field->type) {
    case LEAT_FIELD_IMAGE:
        LEAT_TRY(image_file(x, &v, &data, &len, &ext, err));
        return add_member(x, (int)f == x->image_field ? NULL : field->name, ext, data, len, err);
    case LEAT_FIELD_INT:
        memcpy(&i, v.data, sizeof i);
        snprintf(text, sizeof text, "%lld", (long long)i);
        return add_member(x, strcmp(field->name, "label") == 0 ? NULL : field->name, "cls", text,
                          strlen(text), err);
    case LEAT_FIELD_FLOAT:
        memcpy(&d, v.data, sizeof d);
        snprintf(text, sizeof text, "%.17g", d);
        return add_member(x, field->name, "txt", text, strlen(text), err);
    case LEAT_FIELD_ARRAY:
    case LEAT_FIELD_RAGGED:
        LEAT_TRY(array_file(x, field, &v, err));
        return add_member(x, field->name, "npy", x->bytes.data, x->bytes.len, err);
    default:
        ext = field->type == LEAT_FIELD_TEXT ? "txt" : field->type == LEAT_FIELD_JSON ? "json" : "";
        return add_member(x, field->name, ext, v.data, v.size, err);
    }
}

static int add_sample(exporter *x, const char *key, leat_error *err)
{
    const uint32_t named = x->tar.named;
    int rc = leat__tar_out_sample(&x->tar, err);
    if (x->tar.named != named) x->in_shards = *x->stats;
    x->no_shard = rc != 0;
    if (rc != 0) return rc;
    LEAT_TRY(set_stem(x, key, err));
    for (uint32_t f = 0; f < leat_pack_field_count(x->pack); f++) LEAT_TRY(add_field(x, f, err));
    x->stats->samples++;
    return 0;
}

static int export_sample(exporter *x, uint64_t sample, leat_error *err)
{
    size_t len;
    leat_view v = {0};
    LEAT_TRY(leat_sample_read(x->sample, sample, err));
    const char *key = leat_sample_key(x->sample, &len);
    if (!leat__path_relative_safe(key, len)) {
        leat__fail(err, LEAT_EPERM, "the key \"%s\" is not a path inside the folder", key);
        leat__error_at(err, key, (int64_t)sample, -1);
        return LEAT_EPERM;
    }
    if (x->to_tar) return add_sample(x, key, err);
    if (x->image_field >= 0) LEAT_TRY(leat_sample_field(x->sample, (uint32_t)x->image_field, &v, err));
    if (v.data) LEAT_TRY(write_image(x, key, &v, err));
    if (x->members) LEAT_TRY(write_members(x, key, err));
    x->stats->samples++;
    return 0;
}

/* True when the error concerns only this sample, its key or its path; other errors would also affect
 * the next one. */
static bool is_about_one(const leat_error *why)
{
    switch (why->sys_errno) {
    case 0: break;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ELOOP:
    case EILSEQ:
    case EINVAL: return true;
    default: return false;
    }
    return why->code != LEAT_ENOMEM && why->code != LEAT_ECANCELED && why->code != LEAT_ECHANGED;
}

static int settle(exporter *x, uint64_t sample, int rc, leat_error *why, leat_error *err)
{
    if (rc == 0) return 0;
    if (why->sample < 0) leat__error_at(why, NULL, (int64_t)sample, -1);
    if (x->no_shard || !is_about_one(why)) {
        if (err) *err = *why;
        return rc;
    }
    if (x->stats->failed++ == 0) x->first = *why;
    if (x->opts->failure) x->opts->failure(x->opts->cookie, why);
    return 0;
}

static int export_one(exporter *x, uint64_t sample, leat_error *err)
{
    leat_error why = {.sample = -1, .offset = -1};
    return settle(x, sample, export_sample(x, sample, &why), &why, err);
}

static int tell(const exporter *x, uint64_t total, leat_error *err)
{
    const leat_export_opts *o = x->opts;
    uint64_t done = x->stats->samples + x->stats->failed;
    if (!o->progress || o->progress(o->cookie, done, total, x->stats->bytes, x->stats->failed) == 0) return 0;
    return leat__fail(err, LEAT_ECANCELED, "export was stopped");
}

static int export_all(exporter *x, leat_error *err)
{
    uint64_t total = leat_pack_count(x->pack);
    for (uint64_t i = 0; i < total; i++) {
        LEAT_TRY(export_one(x, i, err));
        LEAT_TRY(tell(x, total, err));
    }
    return 0;
}

static int export_selected(exporter *x, leat_error *err)
{
    uint64_t *rows = NULL, count = 0;
    LEAT_TRY(leat__selection_rows(x->pack, x->opts->select, &rows, &count, err));
    int rc = 0;
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        rc = export_one(x, rows[i], err);
        if (rc == 0) rc = tell(x, count, err);
    }
    leat__free(rows);
    return rc;
}

static int export_lines(exporter *x, leat__csv *lines, leat_error *err)
{
    for (;;) {
        bool end;
        uint64_t sample = 0;
        leat_error why = {.sample = -1, .offset = -1};
        LEAT_TRY(leat__csv_next_key(lines, &end, err));
        if (end) return 0;
        int rc = leat_pack_find(x->pack, lines->row.data, lines->row.len, &sample, &why);
        if (rc == 0) rc = export_sample(x, sample, &why);
        LEAT_TRY(settle(x, sample, rc, &why, err));
        LEAT_TRY(tell(x, 0, err));
    }
}

static int export_keys(exporter *x, leat_error *err)
{
    leat__stream *stream = NULL;
    leat__csv lines;
    LEAT_TRY(leat__stream_open(&stream, x->opts->keys, err));
    int rc = leat__csv_init(&lines, stream, 0, err);
    if (rc == 0) {
        rc = export_lines(x, &lines, err);
        leat__csv_reset(&lines);
    }
    leat__stream_close(&stream);
    return rc;
}

static bool came_from_tar(const leat_pack *pack)
{
    json_t *root = json_loads(leat_pack_provenance(pack), 0, NULL);
    const char *kind = json_string_value(json_object_get(json_object_get(root, "source"), "kind"));
    bool tar = kind && strcmp(kind, "tar") == 0;
    json_decref(root);
    return tar;
}

static int set_up(exporter *x, leat_error *err)
{
    const void *blob;
    size_t len;
    LEAT_TRY(leat_pack_open(&x->pack, x->opts->pack, NULL, err));
    LEAT_TRY(leat_sample_open(&x->sample, x->pack, err));
    x->image_field = -1;
    for (uint32_t f = 0; f < leat_pack_field_count(x->pack) && x->image_field < 0; f++)
        if (leat_pack_field(x->pack, f)->type == LEAT_FIELD_IMAGE) x->image_field = (int)f;
    x->members = came_from_tar(x->pack);
    int rc = leat_pack_blob(x->pack, LEAT__TILE_TABLES_BLOB, &blob, &len, err);
    if (rc == 0) rc = leat__tile_tables_open(&x->tables, blob, len, err);
    if (rc != 0 && rc != LEAT_ENOENT) return rc;
    return x->store ? 0 : leat__path_mkdir(x->opts->folder, err);
}

/* Counts the fields whose class names are lost: tar shards have numbers only. */
static int count_unnamed(exporter *x, leat_error *err)
{
    const char *const *names;
    uint64_t count;
    if (!x->to_tar) return 0;
    for (uint32_t f = 0; f < leat_pack_field_count(x->pack); f++) {
        if (leat_pack_field(x->pack, f)->type != LEAT_FIELD_INT) continue;
        LEAT_TRY(leat_pack_classes(x->pack, f, &names, &count, err));
        x->stats->unnamed += count > 0;
    }
    return 0;
}

static _Atomic(leat__table_writer) table_writer;

void leat__table_writer_register(leat__table_writer write)
{
    atomic_store(&table_writer, write);
}

static int check_shard(const char *path, bool tar, leat_error *err)
{
    bool ours;
    LEAT_TRY(leat__shard_ours(path, tar, &ours, err)); /* fails for a folder */
    return ours ? leat__fail(err, LEAT_EEXIST, "%s: already exists", path) : leat__shard_foreign(path, err);
}

/* True for names of shards: at least five digits and the extension. */
static bool is_shard(const leat_export_opts *o, const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits >= 5 && strcmp(name + digits, o->to == LEAT_EXPORT_WEBDATASET ? ".tar" : ".parquet") == 0;
}

/* Refuses names of shards that are taken, before the first shard is written. With `replace` only the first
 * name is checked, which may belong to a shard of leat; later names are checked when they are needed. */
static int check_shards(const leat_export_opts *o, leat_error *err)
{
    const bool tar = o->to == LEAT_EXPORT_WEBDATASET;
    leat__dir dir = {0};
    leat__buf path;
    bool there = false;
    LEAT_TRY(leat__path_exists(o->folder, &there, err));
    if (!there) return 0;
    LEAT_TRY(leat__path_mkdir(o->folder, err)); /* fails for a file */
    leat__buf_init(&path, LEAT__MEM_INGEST, 2u << 20);
    int rc = leat__dir_read(&dir, o->folder, true, err);
    if (rc == 0) leat__dir_sort(&dir, strcmp);
    for (size_t i = 0; i < dir.count && rc == 0; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (!is_shard(o, name)) continue;
        if (o->replace && strncmp(name, "00000.", 6) != 0) continue;
        leat__buf_clear(&path);
        if (leat__path_join(&path, o->folder, name) != 0) rc = leat__fail_nomem(err, 0, "a path");
        else if (o->replace) rc = leat__shard_replaceable(leat__buf_str(&path), tar, err);
        else rc = check_shard(leat__buf_str(&path), tar, err);
    }
    leat__dir_reset(&dir);
    leat__buf_reset(&path);
    return rc;
}

/* Removes unfinished shards of a killed run, numbered from `first` on, up to the first that is not there. */
static int remove_unfinished(const leat_export_opts *o, uint64_t first, leat_error *err)
{
    const char *end = o->to == LEAT_EXPORT_WEBDATASET ? ".tar" : ".parquet";
    leat__buf path;
    char name[48];
    bool there = true;
    int rc = 0;
    leat__buf_init(&path, LEAT__MEM_INGEST, 2u << 20);
    for (uint64_t i = first; rc == 0; i++) {
        snprintf(name, sizeof name, "%05llu%s.partial", (unsigned long long)i, end);
        leat__buf_clear(&path);
        if (leat__path_join(&path, o->folder, name) != 0) rc = leat__fail_nomem(err, 0, "a path");
        if (rc == 0) rc = leat__path_exists(leat__buf_str(&path), &there, err);
        if (rc != 0 || !there) break;
        rc = leat__path_unlink(leat__buf_str(&path), err);
    }
    leat__buf_reset(&path);
    return rc;
}

/* Removes a shard that leat has written. */
static int remove_shard(const leat_export_opts *o, const char *name, bool *removed, leat_error *err)
{
    leat__buf path;
    leat__buf_init(&path, LEAT__MEM_INGEST, 2u << 20);
    int rc = leat__path_join(&path, o->folder, name) == 0 ? 0 : leat__fail_nomem(err, 0, "a path");
    if (rc == 0 &&
        leat__shard_ours(leat__buf_str(&path), o->to == LEAT_EXPORT_WEBDATASET, removed, NULL) != 0)
        *removed = false;
    if (rc == 0 && *removed) rc = leat__path_unlink(leat__buf_str(&path), err);
    leat__buf_reset(&path);
    return rc;
}

/* Removes shards after the last one: unfinished shards of a killed run and, with `replace`, shards of an
 * earlier, longer run, up to a gap in the numbers. Other files stay and are counted. */
static int remove_later(const leat_export_opts *o, uint64_t first, leat_export_stats *st, leat_error *err)
{
    leat__dir dir = {0};
    uint64_t next = first;
    char expected[48];
    LEAT_TRY(remove_unfinished(o, first, err));
    if (!o->replace) return 0;
    int rc = leat__dir_read(&dir, o->folder, true, err);
    if (rc == 0) leat__dir_sort(&dir, leat__str_natural_cmp);
    for (size_t i = 0; i < dir.count && rc == 0; i++) {
        const char *name = leat__dir_name(&dir, i);
        bool removed = false;
        if (!is_shard(o, name) || strtoull(name, NULL, 10) < first) continue;
        snprintf(expected, sizeof expected, "%05llu.", (unsigned long long)next);
        if (leat__str_starts(name, expected)) {
            rc = remove_shard(o, name, &removed, err);
            next++;
        }
        st->removed += removed;
        if (!removed && st->stayed++ == 0) snprintf(st->stayed_first, sizeof st->stayed_first, "%s", name);
    }
    leat__dir_reset(&dir);
    return rc;
}

static int refuse_form(const leat_export_opts *o, leat_error *err)
{
    if (o->to > LEAT_EXPORT_PARQUET) return leat__fail(err, LEAT_EINVAL, "%u is not a form of export", o->to);
    if (o->to == LEAT_EXPORT_FILES && o->shard_bytes > 0)
        return leat__fail(err, LEAT_EINVAL,
                          "`shard_bytes` has no effect: `to` folder writes a file per image");
    if (o->to != LEAT_EXPORT_FILES && leat__path_remote(o->folder))
        return leat__fail(err, LEAT_ENOTSUP,
                          "%s: shards can only be written to a local folder; copy them afterwards",
                          o->folder);
    return o->to == LEAT_EXPORT_FILES ? 0 : check_shards(o, err);
}

static int export_pack(exporter *x, leat_error *err)
{
    const leat_export_opts *o = x->opts;
    leat_export_stats *st = x->stats;
    LEAT_TRY(refuse_form(o, err));
    if (leat__path_remote(o->folder)) {
        LEAT_TRY(leat__store_open(&x->store, o->folder, err));
        LEAT_TRY(leat__object_writable(x->store, o->folder, err));
    }
    LEAT_TRY(set_up(x, err));
    int rc = o->keys ? export_keys(x, err) : o->select ? export_selected(x, err) : export_all(x, err);
    if (rc == 0) rc = leat__tar_out_finish(&x->tar, err);
    if (rc == 0) x->in_shards = *st;
    if (rc == 0) rc = count_unnamed(x, err);
    if (rc == 0 && x->to_tar) rc = remove_later(o, x->tar.shards, st, err);
    if (rc != 0 && x->to_tar) { /* shards without a name are removed */
        uint64_t failed = st->failed;
        *st = o->replace && x->tar.named < x->tar.shards ? (leat_export_stats){0} : x->in_shards;
        st->failed = failed;
    }
    if (x->to_tar) st->files = x->tar.named;
    if (rc != 0 || st->failed == 0) return rc;
    if (err) *err = x->first;
    if (st->failed > 1)
        leat__error_context(err, "%llu samples were not exported, the first", (unsigned long long)st->failed);
    return x->first.code;
}

/* Calls the Python package to write tables. */
static int export_tables(const leat_export_opts *o, leat_export_stats *stats, leat_error *err)
{
    leat__table_writer write = atomic_load(&table_writer);
    leat_pack *pack = NULL;
    LEAT_TRY(refuse_form(o, err));
    if (!write)
        return leat__fail(err, LEAT_ENOTSUP,
                          "Parquet is written by the Python package: pip install leat, then "
                          "python -m leat export");
    /* checked before the folder is created; not for a remote pack, which would cost requests */
    if (!leat__path_remote(o->pack)) LEAT_TRY(leat_pack_open(&pack, o->pack, NULL, err));
    leat_pack_close(&pack);
    LEAT_TRY(leat__path_mkdir(o->folder, err));
    LEAT_TRY(write(o, stats, err));
    return remove_later(o, stats->files, stats, err);
}

int leat_export(const leat_export_opts *opts, leat_export_stats *stats, leat_error *err)
{
    leat_export_opts o = {0};
    leat_export_stats own = {0};
    if (!opts || opts->struct_size < sizeof o.struct_size)
        return leat__fail(err, LEAT_EINVAL, "options were not initialised");
    memcpy(&o, opts, LEAT_MIN(opts->struct_size, sizeof o));
    if (!o.pack || !o.folder || !o.folder[0])
        return leat__fail(err, LEAT_EINVAL, "export needs a pack and a folder");
    if (o.keys && o.select) return leat__fail(err, LEAT_EINVAL, "give either `keys` or `select`, not both");
    if (o.to == LEAT_EXPORT_PARQUET) {
        int done = export_tables(&o, &own, err);
        if (stats) *stats = own;
        return done;
    }
    exporter x = {.opts = &o, .stats = &own};
    leat__buf_init(&x.path, LEAT__MEM_INGEST, 2u << 20);
    leat__buf_init(&x.bytes, LEAT__MEM_INGEST, BYTES_MAX);
    leat__buf_init(&x.stem, LEAT__MEM_INGEST, 2u << 20);
    x.to_tar = o.to == LEAT_EXPORT_WEBDATASET;
    leat__tar_out_init(&x.tar, o.folder, o.shard_bytes ? o.shard_bytes : SHARD_BYTES, o.replace != 0);
    int rc = export_pack(&x, err);
    leat__store_close(&x.store);
    leat_sample_close(&x.sample);
    leat_pack_close(&x.pack);
    leat__tile_tables_close(&x.tables);
    leat__pixel_file_reset(&x.pixels);
    leat__buf_reset(&x.path);
    leat__buf_reset(&x.bytes);
    leat__buf_reset(&x.stem);
    leat__tar_out_reset(&x.tar);
    leat__free(x.written.slots);
    if (stats) *stats = own;
    return rc;
}
