/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of images. The folders directly below the root are classes, numbered in byte order (so labels
 * are the same as in torchvision's ImageFolder); a folder without subfolders has no labels. Images
 * beside class folders have the label -1 and are counted. Within a class, names are in natural order,
 * files and folders mixed. Keys are paths below the root.
 *
 * Hidden files and folders (names starting with a dot) and files without an image extension are skipped
 * and counted, a hidden folder as one; with `strict` all are taken. Links are followed. A link to one of
 * its parent folders, a dangling link and a folder that cannot be listed count as samples that cannot be
 * read. Only one folder at a time is in memory, so the total size does not matter; a shuffle keeps all
 * names in a file.
 *
 * The root may be a prefix in a bucket (s3://bucket/prefix): it gives the same samples in the same order.
 * Its folders are listed in advance, several in parallel.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/perm.h"
#include "base/str.h"
#include "codec/codec.h"
#include "ingest/name_list.h"
#include "ingest/source.h"
#include "io/dir.h"
#include "io/dir_ahead.h"
#include "io/url.h"

#define DEPTH_MAX 64

typedef struct frame {
    leat__dir dir;
    size_t at;       /* next entry */
    size_t path_len; /* length of this folder's path in s->path, with its slash */
} frame;

typedef struct folder_source {
    leat__source base;
    leat__buf path; /* path of the current entry; starts with the root and a slash */
    size_t root_len;
    frame stack[DEPTH_MAX];
    int depth;     /* frames in use */
    int64_t label; /* label of the current class, -1 at the root */
    bool strict;
    leat__dir_ahead *ahead; /* listings of a bucket; NULL: a local folder */
    leat_error why;         /* why the current entry, a folder, cannot be listed */
    /* With shuffle: all keys; labels are derived from them. */
    leat__name_list names;
    leat__buf key; /* the current key */
    uint64_t given;
    leat__perm perm;
    bool shuffled;
} folder_source;

static int no_memory(leat_error *err)
{
    return leat__fail_nomem(err, 0, "a list of files");
}

static int set_path(folder_source *s, size_t len, const char *name, bool folder, leat_error *err)
{
    s->path.len = len;
    leat__buf_puts(&s->path, name);
    if (folder) leat__buf_putc(&s->path, '/');
    return leat__buf_status(&s->path) == 0 ? 0 : no_memory(err);
}

static bool has_entry(const leat__dir *dir, const char *name)
{
    for (size_t i = 0; i < dir->count; i++)
        if (strcmp(leat__dir_name(dir, i), name) == 0) return true;
    return false;
}

/* Fails for Pascal VOC in a bucket: as a folder of classes it would lose its boxes. Local ones are
 * detected in source.c. */
static int refuse_voc(const leat__dir *dir, const char *path, leat_error *err)
{
    if (!leat__path_remote(path) || !has_entry(dir, "Annotations") || !has_entry(dir, "JPEGImages")) return 0;
    return leat__fail(err, LEAT_ENOTSUP, "%s: Pascal VOC is read from local disks only: copy it first", path);
}

static int enter(folder_source *s, leat_error *err)
{
    if (s->depth == DEPTH_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%s: folders are nested deeper than %d", leat__buf_str(&s->path),
                          DEPTH_MAX);
    frame *f = &s->stack[s->depth];
    LEAT_TRY(leat__dir_ahead_read(s->ahead, &f->dir, leat__buf_str(&s->path), err));
    for (int i = 0; i < s->depth; i++)
        if (s->stack[i].dir.device == f->dir.device && s->stack[i].dir.inode == f->dir.inode)
            return leat__fail(err, LEAT_EDATA, "%s: a link leads back to a folder above it",
                              leat__buf_str(&s->path));
    if (s->depth == 0) LEAT_TRY(refuse_voc(&f->dir, leat__buf_str(&s->path), err));
    /* at the root, samples are in the order of classes */
    leat__dir_sort(&f->dir, s->depth == 0 ? strcmp : leat__str_natural_cmp);
    f->at = 0;
    f->path_len = s->path.len;
    s->depth++;
    return 0;
}

/* True for the extensions of torchvision's ImageFolder, and for others that only images have. If leat
 * cannot read one of the latter, that is an error: skipping it would lose samples. */
bool leat__source_is_image(const char *name)
{
    static const char *const others[] = {"ppm", "pgm", "pbm", "jp2"};
    const char *dot = strrchr(name, '.');
    if (dot == NULL) return false;
    for (size_t i = 0; i < LEAT_COUNT(others); i++)
        if (strcasecmp(dot + 1, others[i]) == 0) return true;
    return leat__codec_of_suffix(dot) != LEAT__CODEC_NONE;
}

static bool is_hidden(const char *name)
{
    return name[0] == '.';
}

static bool pass_by(folder_source *s, const char *name, bool folder)
{
    if (s->strict || (!is_hidden(name) && (folder || leat__source_is_image(name)))) return false;
    if (s->base.ignored++ == 0) snprintf(s->base.ignored_first, sizeof s->base.ignored_first, "%s", name);
    return true;
}

/* Starts listing the folders after entry `from`, as many as may be in flight. */
static void list_ahead(folder_source *s, leat__buf *path, const leat__dir *dir, size_t from)
{
    size_t len = path->len;
    for (size_t i = from; s->ahead && i < dir->count; i++) {
        const char *name = leat__dir_name(dir, i);
        if (dir->entries[i].kind != LEAT__ENTRY_FOLDER || (is_hidden(name) && !s->strict)) continue;
        path->len = len;
        leat__buf_puts(path, name);
        leat__buf_putc(path, '/');
        if (leat__buf_status(path) != 0 || !leat__dir_ahead_want(s->ahead, leat__buf_str(path))) break;
    }
    path->len = len;
    if (path->data) path->data[len] = '\0';
}

/* Returns a folder as a sample that cannot be read; removes the slash from its path. */
static const leat__entry *unwalkable(folder_source *s)
{
    static const leat__entry folder = {.kind = LEAT__ENTRY_FOLDER};
    s->path.len--;
    s->path.data[s->path.len] = '\0';
    return &folder;
}

/* Finds the next file; its path is in s->path. */
static int walk(folder_source *s, const leat__entry **found, leat_error *err)
{
    *found = NULL;
    while (s->depth > 0) {
        frame *f = &s->stack[s->depth - 1];
        if (f->at == f->dir.count) {
            s->depth--;
            continue;
        }
        const leat__entry *e = &f->dir.entries[f->at];
        const char *name = leat__dir_name(&f->dir, f->at++);
        if (pass_by(s, name, e->kind == LEAT__ENTRY_FOLDER)) continue;
        LEAT_TRY(set_path(s, f->path_len, name, e->kind == LEAT__ENTRY_FOLDER, err));
        if (s->depth == 1)
            s->label = e->kind == LEAT__ENTRY_FOLDER ? leat__source_class_find(&s->base, name) : -1;
        if (e->kind == LEAT__ENTRY_FOLDER) {
            s->path.len = f->path_len;
            list_ahead(s, &s->path, &f->dir, f->at - 1);
            LEAT_TRY(set_path(s, f->path_len, name, true, err));
            int rc = enter(s, &s->why);
            if (rc == 0) continue;
            if (s->ahead) { /* a failed listing must not lose samples */
                if (err) *err = s->why;
                return rc;
            }
            if (rc == LEAT_ENOMEM) return leat__fail_nomem(err, 0, "a list of files");
            *found = unwalkable(s);
            return 0;
        }
        *found = e;
        return 0;
    }
    return 0;
}

static int fill(folder_source *s, leat__records *run, leat__record *r, const char *key, size_t len,
                int64_t label, leat_error *err)
{
    LEAT_TRY(leat__records_key(run, r, key, len, err));
    r->path = leat__records_text(run, s->path.data, s->path.len);
    if (r->path == LEAT__RECORDS_NOWHERE) return no_memory(err);
    r->path_field = (uint32_t)s->base.image_field;
    if (s->base.label_field >= 0) {
        r->items[s->base.label_field].absent = false;
        r->items[s->base.label_field].i = label;
    }
    return 0;
}

/* Returns the stamp that a resumed run compares. For a bucket it comes from the listing, which avoids
 * a request per object. */
static leat__stamp stamp_of(uint64_t size, uint64_t tag)
{
    return (leat__stamp){.bytes = size, .mtime_ns = (int64_t)tag};
}

static int next_shuffled(folder_source *s, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    if (s->given == s->names.count) {
        *end = true;
        return 0;
    }
    uint64_t listed[2] = {0};
    LEAT_TRY(leat__name_list_at(&s->names, leat__perm_at(&s->perm, s->given++), &s->key, err));
    if (s->ahead) {
        s->key.len -= sizeof listed; /* stored with every name */
        memcpy(listed, s->key.data + s->key.len, sizeof listed);
        s->key.data[s->key.len] = '\0';
        r->stamp = stamp_of(listed[0], listed[1]);
        r->size_hint = listed[0];
    }
    const char *key = leat__buf_str(&s->key), *slash = strchr(key, '/');
    int64_t label = -1;
    LEAT_TRY(set_path(s, s->root_len, key, false, err));
    if (slash && s->base.label_field >= 0) {
        char *class = leat__strndup(LEAT__MEM_INGEST, key, (size_t)(slash - key));
        if (!class) return no_memory(err);
        label = leat__source_class_find(&s->base, class);
        leat__free(class);
    }
    return fill(s, run, r, key, s->key.len, label, err);
}

static int folder_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    folder_source *s = (folder_source *)base;
    if (s->shuffled) return next_shuffled(s, run, r, end, err);
    const leat__entry *e;
    LEAT_TRY(walk(s, &e, err));
    if (!e) {
        *end = true;
        return 0;
    }
    LEAT_TRY(fill(s, run, r, s->path.data + s->root_len, s->path.len - s->root_len, s->label, err));
    if (e->kind == LEAT__ENTRY_FILE) {
        r->size_hint = e->size;
        if (s->ahead) r->stamp = stamp_of(e->size, e->tag);
    } else if (e->kind == LEAT__ENTRY_FOLDER) {
        leat__records_fail(r, &s->why);
    } else {
        leat_error why = {0};
        leat__fail(&why, e->kind == LEAT__ENTRY_BROKEN ? LEAT_ENOENT : LEAT_EFORMAT,
                   e->kind == LEAT__ENTRY_BROKEN ? "%s: a broken link, or not readable"
                                                 : "%s: not a regular file",
                   leat__buf_str(&s->path));
        leat__records_fail(r, &why);
    }
    return 0;
}

static void folder_close(leat__source *base)
{
    folder_source *s = (folder_source *)base;
    for (int i = 0; i < DEPTH_MAX; i++) leat__dir_reset(&s->stack[i].dir);
    leat__dir_ahead_close(&s->ahead);
    leat__buf_reset(&s->path);
    leat__name_list_reset(&s->names);
    leat__buf_reset(&s->key);
}

/* Finds the classes and counts the files, for the progress bar; a link to a folder counts as one. */
static int count_below(folder_source *s, leat__buf *path, int depth, uint64_t *files, leat_error *err)
{
    if (depth >= DEPTH_MAX) return 0; /* the walk will report the error */
    leat__dir dir = {0};
    size_t len = path->len;
    int rc = s->ahead ? leat__dir_ahead_read(s->ahead, &dir, leat__buf_str(path), err)
                      : leat__dir_read(&dir, leat__buf_str(path), true, err);
    if (rc != 0 && rc != LEAT_ENOMEM && depth > 0 && !s->ahead) { /* counts as a sample that cannot be read */
        ++*files;
        rc = 0;
    }
    if (rc != 0) goto out;
    for (size_t i = 0; i < dir.count; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (is_hidden(name) && !s->strict) continue;
        if (dir.entries[i].kind != LEAT__ENTRY_FOLDER) {
            *files += s->strict || leat__source_is_image(name);
            continue;
        }
        path->len = len;
        list_ahead(s, path, &dir, i);
        leat__buf_puts(path, name);
        leat__buf_putc(path, '/');
        if (leat__buf_status(path) != 0) LEAT_GO(rc, out, no_memory(err));
        LEAT_GO(rc, out, count_below(s, path, depth + 1, files, err));
    }
out:
    path->len = len;
    if (path->data) path->data[len] = 0;
    leat__dir_reset(&dir);
    return rc;
}

static int find_classes(folder_source *s, leat_error *err)
{
    leat__dir dir = {0};
    int rc;
    LEAT_GO(rc, out, leat__dir_read(&dir, leat__buf_str(&s->path), false, err));
    for (size_t i = 0; i < dir.count; i++) {
        const char *name = leat__dir_name(&dir, i);
        if (dir.entries[i].kind != LEAT__ENTRY_FOLDER || (is_hidden(name) && !s->strict)) continue;
        int64_t number = leat__source_class(&s->base, name, err);
        if (number < 0) LEAT_GO(rc, out, (int)number);
    }
    leat__source_classes_sort(&s->base);
out:
    leat__dir_reset(&dir);
    return rc;
}

static int list_all(folder_source *s, const leat_ingest_opts *opts, leat_error *err)
{
    const leat__entry *e;
    LEAT_TRY(leat__name_list_open(&s->names, opts->output, err));
    for (;;) {
        LEAT_TRY(walk(s, &e, err));
        if (!e) break;
        uint64_t listed[2] = {e->size, e->tag};
        leat__buf_clear(&s->key);
        leat__buf_append(&s->key, s->path.data + s->root_len, s->path.len - s->root_len);
        if (s->ahead) leat__buf_append(&s->key, listed, sizeof listed);
        if (leat__buf_status(&s->key) != 0) return no_memory(err);
        LEAT_TRY(leat__name_list_add(&s->names, s->key.data, s->key.len, err));
    }
    s->shuffled = true;
    if (s->names.count > 0) leat__perm_init(&s->perm, s->names.count, opts->shuffle_seed, 0);
    return leat__name_list_close_adding(&s->names, err);
}

static const leat__source_ops ops = {
    .kind = "folder",
    .next = folder_next,
    .load = leat__source_load_file,
    .close = folder_close,
};

int leat__source_folder(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    folder_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    int rc = 0, n;
    leat__buf_init(&s->path, LEAT__MEM_INGEST, 1u << 20);
    leat__buf_init(&s->key, LEAT__MEM_INGEST, 1u << 20);
    leat__buf_puts(&s->path, opts->sources[0]);
    if (s->path.len == 0 || s->path.data[s->path.len - 1] != '/') leat__buf_putc(&s->path, '/');
    if (leat__buf_status(&s->path) != 0) LEAT_GO(rc, out, no_memory(err));
    s->root_len = s->path.len;
    s->label = -1;
    s->strict = opts->strict != 0;
    if (leat__path_remote(opts->sources[0])) {
        s->ahead = leat__dir_ahead_open();
        if (!s->ahead) LEAT_GO(rc, out, no_memory(err));
        base->remote = true;
    }
    LEAT_GO(rc, out, find_classes(s, err));
    n = leat__source_field(base, "image", LEAT_FIELD_IMAGE, err);
    if (n < 0) LEAT_GO(rc, out, n);
    base->image_field = n;
    if (base->class_count > 0) {
        n = leat__source_field(base, "label", LEAT_FIELD_INT, err);
        if (n < 0) LEAT_GO(rc, out, n);
        base->label_field = n;
        base->class_folders = true;
    }
    base->flat = !base->class_folders;
    LEAT_GO(rc, out, count_below(s, &s->path, 0, &base->total, err));
    LEAT_GO(rc, out, enter(s, err));
    if (opts->shuffle) LEAT_GO(rc, out, list_all(s, opts, err));
    *out = base;
    base = NULL;
out:
    leat__source_close(&base);
    return rc;
}
