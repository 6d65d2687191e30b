/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all sources: their fields and classes, reading a file, and detecting the kind of a source
 * from its paths.
 */
#include "ingest/source.h"
#include "ingest/fetch.h"
#include "ingest/source_reader.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/dir.h"
#include "io/file.h"
#include "io/url.h"

#define MAX_SAMPLE (UINT64_C(1) << 30)
#define LAST_BYTES (1u << 20) /* bytes assumed for the sample that fills a run */

void *leat__source_new(const leat__source_ops *ops, size_t size, const leat_ingest_opts *opts)
{
    leat__source *s = leat__zalloc(LEAT__MEM_INGEST, size);
    if (!s) return NULL;
    s->ops = ops;
    s->image_field = s->label_field = -1;
    s->max_sample = opts->max_sample_bytes ? opts->max_sample_bytes : MAX_SAMPLE;
    return s;
}

void leat__source_close(leat__source **source)
{
    leat__source *s = *source;
    if (!s) return;
    s->ops->close(s);
    for (uint32_t i = 0; i < s->field_count; i++) leat__free((char *)s->fields[i].name);
    for (uint64_t i = 0; i < s->class_count; i++) leat__free(s->classes[i]);
    leat__free(s->fields);
    leat__free(s->classes);
    leat__free(s);
    *source = NULL;
}

int leat__source_field_find(const leat__source *s, const char *name)
{
    for (uint32_t i = 0; i < s->field_count; i++)
        if (strcmp(s->fields[i].name, name) == 0) return (int)i;
    return -1;
}

int leat__source_field(leat__source *s, const char *name, leat_field_type type, leat_error *err)
{
    if (leat__source_field_find(s, name) >= 0)
        return leat__fail(err, LEAT_EDATA, "two fields have the name \"%s\"", name);
    if (s->field_count == s->field_capacity) {
        uint32_t capacity = s->field_capacity ? s->field_capacity * 2 : 8;
        leat_field *grown = leat__realloc(LEAT__MEM_INGEST, s->fields, capacity * sizeof *grown);
        if (!grown) return leat__fail_nomem(err, capacity * sizeof *grown, "fields");
        s->fields = grown;
        s->field_capacity = capacity;
    }
    char *copy = leat__strdup(LEAT__MEM_INGEST, name);
    if (!copy) return leat__fail_nomem(err, strlen(name), "a field name");
    s->fields[s->field_count] = (leat_field){.name = copy, .type = type};
    return (int)s->field_count++;
}

int64_t leat__source_class(leat__source *s, const char *name, leat_error *err)
{
    if (!leat__utf8_valid(name, strlen(name), NULL)) {
        char shown[256]; /* not repaired silently: two names could become equal */
        return leat__fail(err, LEAT_EDATA, "the class name \"%s\" is not UTF-8: rename it",
                          leat__str_shown(name, shown, sizeof shown));
    }
    if (s->class_count == s->class_capacity) {
        uint64_t capacity = s->class_capacity ? s->class_capacity * 2 : 64;
        char **grown = leat__realloc(LEAT__MEM_INGEST, s->classes, capacity * sizeof *grown);
        if (!grown) return leat__fail_nomem(err, capacity * sizeof *grown, "class names");
        s->classes = grown;
        s->class_capacity = capacity;
    }
    char *copy = leat__strdup(LEAT__MEM_INGEST, name);
    if (!copy) return leat__fail_nomem(err, strlen(name), "a class name");
    s->classes[s->class_count] = copy;
    return (int64_t)s->class_count++;
}

const char *const leat__source_label_names[LEAT__SOURCE_LABEL_NAMES] = {
    "label", "labels", "cls", "class", "class_name", "target", "category"};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void leat__source_classes_sort(leat__source *s)
{
    if (s->class_count < 2) return;
    qsort(s->classes, s->class_count, sizeof *s->classes, compare_names);
    uint64_t kept = 1;
    for (uint64_t i = 1; i < s->class_count; i++) {
        if (strcmp(s->classes[i], s->classes[kept - 1]) == 0) leat__free(s->classes[i]);
        else s->classes[kept++] = s->classes[i];
    }
    s->class_count = kept;
}

int64_t leat__source_class_find(const leat__source *s, const char *name)
{
    if (s->class_count == 0) return -1;
    char *const *found = bsearch(&name, s->classes, s->class_count, sizeof *s->classes, compare_names);
    return found ? found - s->classes : -1;
}

int leat__source_load_file(leat__source *s, leat__records *run, leat__record *r, leat_error *err)
{
    const char *path = leat__records_str(run, r->path);
    leat__item *item = &r->items[r->path_field];
    leat__file *file = NULL;
    uint64_t size;
    int rc;
    if (leat__fetchable(run, r)) {
        LEAT_TRY(leat__fetch_record(s, run, r, err));
        return 0;
    }
    if (!leat__path_remote(path)) r->stamp = leat__path_stamp(path);
    LEAT_GO(rc, out, leat__file_open(&file, path, LEAT__FILE_READ, err));
    size = leat__file_size_at_open(file);
    if (size > s->max_sample)
        LEAT_GO(rc, out,
                leat__fail(err, LEAT_ELIMIT, "%s: %s is over the limit of %s", path, leat__as_size(size).text,
                           leat__as_size(s->max_sample).text));
    uint8_t *to = leat__records_bytes(run, item, NULL, (size_t)size);
    if (!to) LEAT_GO(rc, out, leat__fail_nomem(err, size, "a file"));
    LEAT_GO(rc, out, leat__file_pread(file, to, (size_t)size, 0, err));
    r->bytes_in += size;
out:
    leat__file_close(&file);
    return rc;
}

const char *leat__source_remote_path(leat__source *s, const leat__records *run, const leat__record *r)
{
    const leat_pack *pack = leat__source_pack_of(s, r->origin);
    const char *path = pack                               ? leat_pack_path(pack)
                       : r->path != LEAT__RECORDS_NOWHERE ? leat__records_str(run, r->path)
                                                          : NULL;
    return path && leat__path_remote(path) ? path : NULL;
}

int leat__source_again(void *cookie)
{
    const leat__source_record *of = cookie;
    leat__record copy = *of->record;
    const size_t len = of->run->in.len;
    if (!of->source->ops->load) return LEAT_EIO;
    const int rc = of->source->ops->load(of->source, of->run, &copy, NULL);
    of->run->in.len = len;
    return rc;
}

int leat__source_key(leat__records *run, leat__record *r, const char *path, leat_error *err)
{
    char *plain = leat__path_plain(path);
    if (plain == NULL) return leat__fail_nomem(err, strlen(path), "a key");
    int rc = leat__records_key(run, r, plain, strlen(plain), err);
    leat__free(plain);
    return rc;
}

size_t leat__source_name_len(const char *path)
{
    return leat__path_scheme(path) >= LEAT__SCHEME_HTTP ? strcspn(path, "?#") : strlen(path);
}

typedef enum source_kind { FOLDER, TAR, TFRECORD, MANIFEST, PACK, UNKNOWN } source_kind;

static bool ends_with(const char *path, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && strncasecmp(path + len - n, end, n) == 0;
}

static bool is_tar_name(const char *path, size_t len)
{
    static const char *const ends[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.zstd"};
    for (size_t i = 0; i < LEAT_COUNT(ends); i++)
        if (ends_with(path, len, ends[i])) return true;
    return false;
}

/* True for TFRecord names, including train.tfrecord-00000-of-00010 and compressed files. */
static bool is_tfrecord_name(const char *path, size_t len)
{
    const char *base = path;
    for (size_t i = 0; i < len; i++)
        if (path[i] == '/') base = path + i + 1;
    for (const char *p = base; p + 9 <= path + len; p++)
        if (strncasecmp(p, ".tfrecord", 9) == 0 && p > base) return true;
    return false;
}

/* True for formats that the Python package reads. */
static bool is_reader_name(const char *path, size_t len)
{
    static const char *const ends[] = {".beton", ".parquet", ".arrow", ".feather", ".lmdb", ".mdb", ".json"};
    for (size_t i = 0; i < LEAT_COUNT(ends); i++)
        if (ends_with(path, len, ends[i])) return true;
    return false;
}

/* Sets *is for folders that the Python package reads although they contain images: Pascal VOC, LMDB.
 * As folders of classes they would lose their boxes and values. */
static int is_reader_folder(const char *path, bool *is, leat_error *err)
{
    static const char *const parts[][2] = {{"Annotations", "JPEGImages"}, {"data.mdb", "data.mdb"}};
    *is = false;
    if (leat__reader_registered() || leat__path_remote(path)) return 0;
    leat__buf name;
    int rc = 0;
    leat__buf_init(&name, LEAT__MEM_INGEST, 1u << 20);
    for (size_t i = 0; i < LEAT_COUNT(parts) && !*is && rc == 0; i++) {
        bool there = true;
        for (int k = 0; k < 2 && there && rc == 0; k++) {
            leat__buf_clear(&name);
            rc = leat__path_join(&name, path, parts[i][k]);
            rc = rc != 0 ? leat__fail_nomem(err, strlen(path), "a name")
                         : leat__path_exists(leat__buf_str(&name), &there, err);
        }
        *is = there && rc == 0;
    }
    leat__buf_reset(&name);
    return rc;
}

static int kind_of(const char *path, source_kind *kind, leat_error *err)
{
    bool for_python = false;
    leat__entry_kind entry;
    size_t len = leat__source_name_len(path);
    LEAT_TRY(leat__path_kind(path, &entry, err));
    *kind = UNKNOWN;
    if (entry == LEAT__ENTRY_FOLDER) *kind = FOLDER;
    else if (is_tar_name(path, len)) *kind = TAR;
    else if (is_tfrecord_name(path, len)) *kind = TFRECORD;
    else if (ends_with(path, len, ".csv") || ends_with(path, len, ".tsv") || ends_with(path, len, ".jsonl") ||
             ends_with(path, len, ".ndjson"))
        *kind = MANIFEST;
    else if (ends_with(path, len, ".leat")) *kind = PACK;
    if (*kind == FOLDER) LEAT_TRY(is_reader_folder(path, &for_python, err));
    if (for_python || (*kind == UNKNOWN && is_reader_name(path, len)))
        return leat__fail(err, LEAT_ENOTSUP,
                          "%.*s: read by the Python package: pip install leat, then python -m leat pack",
                          (int)len, path);
    if (*kind == UNKNOWN)
        return leat__fail(err, LEAT_EINVAL,
                          "%.*s: not a folder, tar shard (.tar, .tar.gz, .tar.zst), TFRecord file "
                          "(.tfrecord), manifest (.csv, .tsv, .jsonl), pack (.leat) or one of the "
                          "formats of docs/formats.md",
                          (int)len, path);
    return 0;
}

static int refuse_order(const leat_ingest_opts *opts, const char *what, leat_error *err)
{
    if (opts->select) return leat__fail(err, LEAT_EINVAL, "`select` works on packs only");
    if (opts->keys) return leat__fail(err, LEAT_EINVAL, "`keys` works on packs only");
    if (!opts->shuffle) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "%s can only be read in order: pack them first, then shuffle the pack", what);
}

/* Tries the registered reader; *done: it opened the source. Missing local paths are left to the other
 * kinds, which report them. */
static int try_reader(leat__source **s, const leat_ingest_opts *opts, bool *done, leat_error *err)
{
    bool exists = true;
    *done = false;
    if (!leat__reader_registered()) return 0;
    if (!leat__path_remote(opts->sources[0])) LEAT_TRY(leat__path_exists(opts->sources[0], &exists, err));
    int rc = exists ? leat__source_reader(s, opts, err) : LEAT_EAGAIN;
    if (rc == LEAT_EAGAIN) return 0;
    if (rc == 0) {
        rc = refuse_order(opts, (*s)->ops->kind, err);
        if (rc != 0) leat__source_close(s);
    }
    *done = true;
    return rc;
}

int leat__source_open(leat__source **s, const leat_ingest_opts *opts, leat_error *err)
{
    source_kind kind = UNKNOWN;
    bool done;
    if (opts->source_count == 0) return leat__fail(err, LEAT_EINVAL, "no source was given");
    LEAT_TRY(try_reader(s, opts, &done, err));
    if (done) return 0;
    for (uint32_t i = 0; i < opts->source_count; i++) {
        source_kind one;
        LEAT_TRY(kind_of(opts->sources[i], &one, err));
        if (i > 0 && one != kind)
            return leat__fail(err, LEAT_EINVAL, "%s and %s are of different kinds", opts->sources[0],
                              opts->sources[i]);
        kind = one;
    }
    if (opts->source_count > 1 && kind != TAR && kind != PACK && kind != TFRECORD)
        return leat__fail(err, LEAT_EINVAL,
                          "give one %s at a time (several tar shards, TFRecord files or packs are fine)",
                          kind == FOLDER ? "folder" : "manifest");
    if (opts->strict && kind != FOLDER)
        return leat__fail(err, LEAT_EINVAL, "%s: not a folder of images, so `strict` has no effect",
                          opts->sources[0]);
    if (opts->select && kind != PACK) return leat__fail(err, LEAT_EINVAL, "`select` works on packs only");
    if (opts->keys && kind != PACK) return leat__fail(err, LEAT_EINVAL, "`keys` works on packs only");
    if (kind == TAR || kind == TFRECORD)
        LEAT_TRY(refuse_order(opts, kind == TAR ? "tar shards" : "TFRecord files", err));
    switch (kind) {
    case FOLDER: return leat__source_folder(s, opts, err);
    case TAR: return leat__source_tar(s, opts, err);
    case TFRECORD: return leat__source_tfrecord(s, opts, err);
    case MANIFEST: return leat__source_manifest(s, opts, err);
    default: return leat__source_pack(s, opts, err);
    }
}

int leat__source_fill(leat__source *s, leat__records *run, bool *end, leat_error *err)
{
    while (!*end && !leat__records_full(run)) {
        leat__record *r = leat__records_add(run);
        LEAT_TRY(s->ops->next(s, run, r, end, err));
        if (*end) leat__records_drop_last(run);
        else if (!r->failed) run->pending += r->size_hint;
    }
    return 0;
}

uint64_t leat__source_list_need(const leat__source *s)
{
    return leat__records_first(s->field_count) + (s->ops->load ? 0 : LEAT__RECORDS_BYTES + LAST_BYTES);
}
