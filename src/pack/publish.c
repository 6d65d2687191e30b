/* SPDX-License-Identifier: Apache-2.0
 *
 * Finishing: gives each complete file its header and its name, then writes the set file, then
 * removes the journal. Every step can be repeated: a file that already has its name is recognised
 * by its fingerprint. So a finish that was killed at any point can be run again.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/append.h"
#include "pack/index.h"
#include "pack/packer.h"
#include "pack/reader.h"

static int write_header_and_sync(leat__file *file, const leat__footer *f, bool sync, leat_error *err)
{
    uint8_t block[LEAT__PACK_BLOCK];
    leat__header_encode(f, block);
    LEAT_TRY(leat__file_pwrite(file, block, sizeof block, 0, err));
    return sync ? leat__file_sync(file, err) : 0;
}

/* Reads the footer of a complete file, which must match the journal. */
static int read_footer(const leat__file *file, const leat__journal_shard *s, leat__footer *f, leat_error *err)
{
    uint8_t block[LEAT__PACK_BLOCK];
    uint64_t size;
    LEAT_TRY(leat__file_size(file, &size, err));
    if (size == s->file_bytes) {
        LEAT_TRY(leat__file_pread(file, block, sizeof block, size - sizeof block, err));
        LEAT_TRY(leat__footer_decode(block, leat__file_path(file), size, f, err));
        if (f->check == s->fingerprint) return 0;
    }
    return leat__fail(err, LEAT_EDATA, "%s: changed since it was written; start again",
                      leat__file_path(file));
}

static int publish_shard(leat_packer *p, const leat__journal_shard *s, leat_error *err)
{
    char *final = leat__packer_final_path(p, s);
    char *partial = leat__packer_partial_path(p, s->shard);
    leat__file *file = NULL;
    leat__footer footer;
    bool waiting;
    int rc = 0;
    if (final == NULL || partial == NULL) {
        rc = leat__fail_nomem(err, strlen(p->path), "a path");
        goto out;
    }
    LEAT_GO(rc, out, leat__path_exists(partial, &waiting, err));
    if (!waiting) { /* an earlier finish got this far */
        LEAT_GO(rc, out, leat__file_open(&file, final, LEAT__FILE_READ, err));
        LEAT_GO(rc, out, read_footer(file, s, &footer, err));
        goto out;
    }
    LEAT_GO(rc, out, leat__file_open(&file, partial, LEAT__FILE_WRITE, err));
    LEAT_GO(rc, out, read_footer(file, s, &footer, err));
    LEAT_GO(rc, out, write_header_and_sync(file, &footer, p->sync, err));
    leat__file_close(&file);
    LEAT_GO(rc, out, leat__path_rename(partial, final, err));
out:
    leat__file_close(&file);
    leat__free(final);
    leat__free(partial);
    return rc;
}

static int shards_json(const leat_packer *p, leat__buf *out, leat_error *err)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "version", 1);
    leat__json_key(&j, "shards");
    leat__json_array(&j);
    if (p->base != NULL) LEAT_TRY(leat__append_list(p, &j, err));
    for (size_t i = 0; i < p->done_count; i++) {
        const leat__journal_shard *s = &p->done[i];
        char *path = leat__packer_final_path(p, s);
        char fingerprint[17];
        if (path == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
        snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)s->fingerprint);
        leat__json_object(&j);
        leat__json_kstr(&j, "file", leat__path_base(path));
        leat__json_ku64(&j, "bytes", s->file_bytes);
        leat__json_ku64(&j, "samples", s->samples);
        leat__json_ku64(&j, "pages", s->pages);
        leat__json_kstr(&j, "fingerprint", fingerprint);
        leat__json_end(&j);
        leat__free(path);
    }
    leat__json_end(&j);
    leat__json_end(&j);
    int rc = leat__buf_status(out);
    return rc == 0 ? 0 : leat__fail(err, rc, "%s: cannot list the shards", p->path);
}

static int write_set(leat_packer *p, const char *partial, const char *shards, uint64_t *file_bytes,
                     leat_error *err)
{
    leat__file *file = NULL;
    leat__footer footer;
    uint8_t block[LEAT__PACK_BLOCK];
    uint64_t none;
    leat__indexer x = {.kind = LEAT__PACK_SET,
                       .schema = p->schema,
                       .provenance = p->provenance,
                       .shards = shards,
                       .blobs = &p->blobs,
                       .data_end = LEAT__PACK_BLOCK,
                       .page_bytes = p->page_bytes};
    for (size_t i = 0; i < p->done_count; i++) {
        const leat__journal_shard *s = &p->done[i];
        if (s->max_page_bytes > x.max_page_bytes) x.max_page_bytes = s->max_page_bytes;
        if (s->max_sample_bytes > x.max_sample_bytes) x.max_sample_bytes = s->max_sample_bytes;
    }
    if (p->base != NULL) leat__append_set(p, &x);
    int rc;
    LEAT_GO(rc, out,
            leat__file_open(&file, partial, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    leat__header_encode_partial(block);
    LEAT_GO(rc, out, leat__file_pwrite(file, block, sizeof block, 0, err));
    LEAT_GO(rc, out, leat__indexer_write(&x, file, &footer, &none, err));
    if (p->sync) LEAT_GO(rc, out, leat__file_sync(file, err));
    LEAT_GO(rc, out, write_header_and_sync(file, &footer, p->sync, err));
    *file_bytes = footer.file_bytes;
out:
    leat__file_close(&file);
    return rc;
}

static int publish_set(leat_packer *p, uint64_t *file_bytes, leat_error *err)
{
    leat__buf shards;
    leat__buf_init(&shards, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    char *partial = leat__path_with(p->path, ".partial");
    int rc = partial == NULL ? leat__fail_nomem(err, strlen(p->path), "a path") : 0;
    if (rc == 0) rc = shards_json(p, &shards, err);
    if (rc == 0) rc = write_set(p, partial, leat__buf_str(&shards), file_bytes, err);
    if (rc == 0) rc = leat__path_rename(partial, p->path, err);
    leat__free(partial);
    leat__buf_reset(&shards);
    return rc;
}

static int unlink_with(const char *path, const char *suffix, leat_error *err)
{
    char *name = leat__path_with(path, suffix);
    if (name == NULL) return leat__fail_nomem(err, strlen(path), "a path");
    int rc = leat__path_unlink(name, err);
    leat__free(name);
    return rc;
}

/* ---- replacing a set -------------------------------------------------------------------- */

int leat__set_list(const char *path, char **text, leat_error *err)
{
    leat__index *x = NULL;
    void *data = NULL;
    size_t len;
    *text = NULL;
    int rc = leat__index_open(&x, NULL, path, false, 0, err);
    if (rc != 0) return rc;
    if (x->footer.kind == LEAT__PACK_SET) {
        rc = leat__index_load(x, leat__index_section(x, LEAT__SECTION_SHARDS), LEAT__PACK_JSON_MAX, 1, &data,
                              &len, err);
        *text = data;
    } else {
        *text = leat__strdup(LEAT__MEM_PACK, "");
        rc = *text != NULL ? 0 : leat__fail_nomem(err, 1, "a list of shards");
    }
    leat__index_close(&x);
    return rc;
}

/* Like leat__set_list; "" also when there is no pack. Fails when something exists there that cannot be read,
 * because its shards are then unknown. */
static int listed_shards(const char *path, char **text, leat_error *err)
{
    int rc = leat__set_list(path, text, err);
    if (rc != LEAT_ENOENT) return rc;
    *text = leat__strdup(LEAT__MEM_PACK, "");
    return *text != NULL ? 0 : leat__fail_nomem(err, 1, "a list of shards");
}

int leat__packer_note_old(leat_packer *p, leat_error *err)
{
    char *text = NULL;
    int rc = 0;
    /* A set that cannot be read is replaced without recording its shards. */
    if (p->replace && listed_shards(p->path, &text, NULL) == 0 && *text != '\0')
        rc = leat__journal_put_old(&p->journal, text, err);
    if (rc == 0 && text != NULL && *text != '\0') {
        leat__free(p->old_shards);
        p->old_shards = text;
        text = NULL;
    }
    leat__free(text);
    return rc;
}

/* Returns the names of a list as keys of an object, for lookups; NULL: out of memory. */
static json_t *names_of(const char *shards)
{
    json_t *root = json_loads(shards, 0, NULL), *names = json_object();
    const json_t *list = json_object_get(root, "shards");
    for (size_t i = 0; i < json_array_size(list) && names != NULL; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "file"));
        if (name == NULL || json_object_set_new(names, name, json_true()) == 0) continue;
        json_decref(names);
        names = NULL;
    }
    json_decref(root);
    return names;
}

/* True for NAME-… of a set NAME.leat. Shards of another name belong to the set that this one was copied from.
 */
static bool is_shard_of(const char *path, const char *file)
{
    const char *base = leat__path_base(path);
    const size_t stem = strlen(base) - (leat__str_ends(base, ".leat") ? strlen(".leat") : 0);
    return leat__path_relative_safe(file, strlen(file)) && strchr(file, '/') == NULL &&
           strncmp(file, base, stem) == 0 && file[stem] == '-';
}

bool leat__list_has(const char *list, const char *file)
{
    json_t *names = names_of(list);
    const bool has = json_object_get(names, file) != NULL;
    json_decref(names);
    return has;
}

bool leat__set_has(const char *path, const char *file)
{
    char *text = NULL;
    const bool has = leat__set_list(path, &text, NULL) == 0 && leat__list_has(text, file);
    leat__free(text);
    return has;
}

/* Calls `each` for the shards of the set at `path` that are in the list `old` and not in `kept`. */
static void each_replaced(const char *path, const char *old, const json_t *kept,
                          void (*each)(void *cookie, const char *file), void *cookie)
{
    json_t *names = names_of(old), *value;
    const char *file;
    json_object_foreach(names, file, value)
    {
        if (is_shard_of(path, file) && json_object_get(kept, file) == NULL) each(cookie, file);
    }
    json_decref(names);
}

void leat__set_replaced(const char *path, const char *old, const char *kept,
                        void (*each)(void *cookie, const char *file), void *cookie)
{
    json_t *names = names_of(kept);
    if (names != NULL) each_replaced(path, old, names, each, cookie);
    json_decref(names);
}

static void remove_beside(void *cookie, const char *file)
{
    const char *path = cookie;
    leat__buf name;
    leat__buf_init(&name, LEAT__MEM_PACK, 1u << 20);
    (void)leat__buf_append(&name, path, (size_t)(leat__path_base(path) - path));
    if (leat__buf_puts(&name, file) == 0) (void)!leat__path_unlink(leat__buf_str(&name), NULL);
    leat__buf_reset(&name);
}

/* Removes the files of the list `old` that are not in `kept`. Errors are ignored: a leftover file does no
 * harm to the finished pack. */
static void remove_listed(const char *path, const char *old, const json_t *kept)
{
    each_replaced(path, old, kept, remove_beside, (char *)path);
}

/* Returns the shards of the set at `path`, empty when there is no set; NULL when unknown. */
static json_t *names_at(const char *path)
{
    char *text = NULL;
    json_t *names = listed_shards(path, &text, NULL) == 0 ? names_of(text) : NULL;
    leat__free(text);
    return names;
}

/* Removes the shards of the replaced set. Only after the new pack has its name: until then the old set needs
 * them. */
static void remove_old(const leat_packer *p)
{
    json_t *kept = p->old_shards != NULL ? names_at(p->path) : NULL;
    if (kept != NULL) remove_listed(p->path, p->old_shards, kept);
    json_decref(kept);
}

int leat__packer_publish(leat_packer *p, uint64_t *file_bytes, leat_error *err)
{
    *file_bytes = 0;
    if (p->base != NULL && leat__append_nothing(p)) return unlink_with(p->path, ".journal", err);
    for (size_t i = 0; i < p->done_count; i++) LEAT_TRY(publish_shard(p, &p->done[i], err));
    if (p->base != NULL) LEAT_TRY(leat__append_link(p, err));
    if (p->shard_bytes != 0) LEAT_TRY(publish_set(p, file_bytes, err));
    remove_old(p);
    for (size_t i = 0; i < p->done_count; i++) *file_bytes += p->done[i].file_bytes;
    return unlink_with(p->path, ".journal", err);
}

/* ---- discarding ------------------------------------------------------------------------- */

static int unlink_partial(const leat_packer *p, uint32_t shard, leat_error *err)
{
    char *name = leat__packer_partial_path(p, shard);
    if (name == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc = leat__path_unlink(name, err);
    leat__free(name);
    return rc;
}

/* Removes a shard that already has its name but is in no set. Only the exact file recorded in the
 * journal is removed. */
static int unlink_unlisted(const leat_packer *p, const leat__journal_shard *s, const json_t *kept,
                           leat_error *err)
{
    leat__file *file = NULL;
    leat__footer footer;
    char *name = leat__packer_final_path(p, s);
    if (name == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    bool ours = json_object_get(kept, leat__path_base(name)) == NULL &&
                leat__file_open(&file, name, LEAT__FILE_READ, NULL) == 0 &&
                read_footer(file, s, &footer, NULL) == 0;
    leat__file_close(&file);
    int rc = ours ? leat__path_unlink(name, err) : 0;
    leat__free(name);
    return rc;
}

/* Removes the shards recorded in the journal, and one that may have been started after them.
 * `kept` lists the shards of the set at NAME; NULL when unknown: then no file with its final name
 * is touched. */
static int discard_shards(leat_packer *p, const json_t *kept, leat_error *err)
{
    uint32_t last = (uint32_t)json_object_size(kept); /* an append starts after the shards of
                                                       * the set */
    leat__journal_record r;
    bool exists;
    LEAT_TRY(leat__path_exists(p->path, &exists, err));
    for (uint64_t at = leat__journal_first();; at = r.next) {
        int rc = leat__journal_read(&p->journal, at, &r, err);
        if (rc == LEAT_ENOENT) break;
        LEAT_TRY(rc);
        if (r.kind == LEAT__RECORD_PAGE) last = LEAT_MAX(last, r.page.shard);
        if (r.kind == LEAT__RECORD_SHARD && kept != NULL) LEAT_TRY(unlink_unlisted(p, &r.shard, kept, err));
        /* The new pack had already replaced the set; only the old shards remained. */
        if (r.kind == LEAT__RECORD_OLD && kept != NULL && exists) remove_listed(p->path, r.old_shards, kept);
    }
    for (uint32_t i = 0; i <= last && i < LEAT__PACK_SHARDS_MAX; i++) LEAT_TRY(unlink_partial(p, i, err));
    return last < LEAT__PACK_SHARDS_MAX ? unlink_partial(p, last + 1, err) : 0;
}

int leat__packer_discard_files(const char *path, leat__journal *held, leat_error *err)
{
    leat_packer p = {.path = (char *)path, .shard_bytes = 1, .journal = *held}; /* for names */
    json_t *kept = names_at(path);
    int rc = unlink_with(path, ".partial", err);
    if (rc == 0) rc = discard_shards(&p, kept, err);
    *held = p.journal; /* its buffer may have grown */
    json_decref(kept);
    return rc;
}

int leat_packer_discard(const char *path, leat_error *err)
{
    LEAT_REQUIRE(path != NULL, err);
    leat__journal held = {0};
    char *target, *name = NULL;
    LEAT_TRY(leat__path_resolve(path, &target, err));
    int rc = 0;
    if ((name = leat__path_with(target, ".journal")) == NULL)
        rc = leat__fail_nomem(err, strlen(path), "a path");
    /* Holding the journal's lock proves that no packer is running. */
    if (rc == 0) rc = leat__journal_hold(&held, name, err);
    if (rc == 0) rc = leat__packer_discard_files(target, &held, err);
    if (rc == 0) rc = unlink_with(target, ".journal", err);
    else if (rc == LEAT_ENOENT) rc = unlink_with(target, ".partial", err);
    leat__journal_reset(&held);
    leat__free(name);
    leat__free(target);
    return rc;
}
