/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds a generation to an existing pack: its files do not change, new samples go to new shards,
 * and a new set file lists both, and the dropped samples. One rename gives the set file its name,
 * so readers see either the old generation or the new one.
 *
 * A single file becomes the first shard of the set. It gets a shard's name by a hard link (or a
 * copy if there are none), because the set takes its old name.
 *
 * A killed append is not resumed. Its files are recorded in the journal, as for any packer, and
 * the next run removes them. Files that the set at NAME lists are never touched.
 */
#include "pack/append.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/reader_impl.h"

#define COPY_BYTES (1u << 20)
#define ONE_SHARD (UINT64_MAX / 4) /* no limit */

/* ---- opening ---------------------------------------------------------------------------- */

static int take_blobs(leat_packer *p, leat_error *err)
{
    for (uint32_t i = 0; i < leat_pack_blob_count(p->base); i++) {
        const char *name = leat_pack_blob_name(p->base, i);
        const void *data;
        size_t size;
        LEAT_TRY(leat_pack_blob(p->base, name, &data, &size, err));
        LEAT_TRY(leat__blobs_set(&p->blobs, name, data, size, err));
    }
    return 0;
}

/* Appends the fields for a message: "image: image, label: int, mask: array u8 32x32". */
static void list_fields(leat__buf *out, const leat__schema *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const leat_field *f = &s->fields[i];
        leat__buf_printf(out, "%s%s: %s", i > 0 ? ", " : "", f->name, leat_field_type_name(f->type));
        if (f->type != LEAT_FIELD_ARRAY && f->type != LEAT_FIELD_RAGGED) continue;
        leat__buf_printf(out, " %s", leat_dtype_name(f->dtype));
        if (f->type == LEAT_FIELD_RAGGED)
            leat__buf_printf(out, " %u dimension%s", f->ndim, f->ndim == 1 ? "" : "s");
        for (uint32_t k = 0; k < f->ndim && f->type == LEAT_FIELD_ARRAY; k++)
            leat__buf_printf(out, "%s%llu", k > 0 ? "x" : " ", (unsigned long long)f->shape[k]);
    }
}

/* New samples must have the fields of the pack. */
static int check_schema(const leat_packer *p, leat_error *err)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    int rc = leat__schema_json(p->schema, &text);
    bool same = rc == 0 && strcmp(leat__buf_str(&text), leat_pack_schema(p->base)) == 0;
    if (rc != 0) rc = leat__fail_nomem(err, text.len, "the schema");
    else if (!same) {
        leat__buf_clear(&text);
        list_fields(&text, p->schema);
        leat__buf_puts(&text, ") than the pack (");
        list_fields(&text, p->base->schema);
        rc = leat__fail(err, LEAT_EINVAL, "%s: the samples to append have other fields (%s)", p->path,
                        leat__buf_str(&text));
    }
    leat__buf_reset(&text);
    return rc;
}

char *leat__provenance_source(const char *whole)
{
    static const char mark[] = "\"source\":";
    const char *from = strstr(whole, mark);
    size_t len = from != NULL ? strlen(from += sizeof mark - 1) : 0;
    return len < 3 ? leat__strdup(LEAT__MEM_PACK, "{}") : leat__strndup(LEAT__MEM_PACK, from, len - 1);
}

/* Appends the added names to `source`; unchanged when either has no names. */
static int add_names(char **source, const char *added, leat_error *err)
{
    json_t *have = json_loads(*source, 0, NULL), *more = added != NULL ? json_loads(added, 0, NULL) : NULL;
    json_t *names = json_object_get(have, "names"), *others = json_object_get(more, "names");
    int rc = 0;
    if (json_is_array(names) && json_is_array(others)) {
        size_t size = json_array_extend(names, others) == 0 ? json_dumpb(have, NULL, 0, JSON_COMPACT) : 0;
        char *text = size > 0 ? leat__zalloc(LEAT__MEM_PACK, size + 1) : NULL;
        if (text == NULL || json_dumpb(have, text, size, JSON_COMPACT) != size)
            rc = leat__fail_nomem(err, size, "provenance");
        leat__free(*source);
        *source = text;
    }
    json_decref(have);
    json_decref(more);
    return rc;
}

static int take_provenance(leat_packer *p, const char *added, leat_error *err)
{
    char *source = leat__provenance_source(leat_pack_provenance(p->base));
    if (source == NULL) return leat__fail_nomem(err, 0, "provenance");
    int rc = add_names(&source, added, err);
    if (rc == 0) rc = leat__packer_provenance(source, &p->base_provenance, err);
    leat__free(source);
    return rc;
}

static int take_drops(leat_packer *p, leat_error *err)
{
    for (uint64_t i = 0; i < p->base->drop_count; i++) {
        uint8_t word[8];
        leat__store_u64(word, p->base->drops[i]);
        if (leat__buf_append(&p->drops, word, sizeof word) != 0)
            return leat__fail_nomem(err, p->drops.len, "dropped samples");
    }
    return 0;
}

int leat__append_options(leat_packer *p, leat_packer_opts *o, leat_error *err)
{
    leat_pack_info info;
    if (o->resume)
        return leat__fail(err, LEAT_EINVAL, "%s: an append cannot be resumed: run it again", p->path);
    LEAT_TRY(leat_pack_open(&p->base, p->path, NULL, err));
    (void)leat_pack_info_read(p->base, &info, sizeof info);
    if (o->field_count == 0) {
        o->fields = p->base->schema->fields;
        o->field_count = p->base->schema->count;
    }
    if (o->page_bytes == 0) o->page_bytes = info.page_bytes;
    if (o->shard_bytes == 0) o->shard_bytes = ONE_SHARD;
    o->identity = ~o->identity; /* no later run resumes it */
    o->replace = 1;             /* replaces NAME */
    return 0;
}

int leat__append_open(leat_packer *p, const char *source, leat_error *err)
{
    leat_pack_close(&p->base); /* a generation may have been published before we held the lock */
    LEAT_TRY(leat_pack_open(&p->base, p->path, NULL, err));
    LEAT_TRY(leat__journal_put_mark(&p->journal, LEAT__RECORD_ONCE, err));
    if (p->base->shard_count >= LEAT__PACK_SHARDS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%s: has %u shards, no more fit: compact it first", p->path,
                          p->base->shard_count);
    LEAT_TRY(check_schema(p, err));
    LEAT_TRY(take_blobs(p, err));
    LEAT_TRY(take_drops(p, err));
    LEAT_TRY(take_provenance(p, source, err));
    p->shard = p->base->shard_count;
    return 0;
}

leat_pack *leat__packer_base(const leat_packer *p)
{
    return p->base;
}

/* ---- rules for blobs ------------------------------------------------------------------- */

/* Class names may be added after the existing ones, so that numbers keep their meaning. */
static bool extends(const leat__blob *old, const void *data, size_t size)
{
    json_t *had = json_loadb(old->data, old->size, 0, NULL), *has = json_loadb(data, size, 0, NULL);
    bool fits = json_is_array(had) && json_is_array(has) && json_array_size(has) >= json_array_size(had);
    for (size_t i = 0; fits && i < json_array_size(had); i++)
        fits = json_equal(json_array_get(had, i), json_array_get(has, i)) != 0;
    json_decref(had);
    json_decref(has);
    return fits;
}

int leat__append_check_blob(const leat_packer *p, const leat__blob *old, const void *data, size_t size,
                            leat_error *err)
{
    bool classes = strncmp(old->name, "classes/", 8) == 0;
    if (classes && extends(old, data, size)) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      classes ? "%s: %s: class names of the pack cannot be changed by an"
                                " append, new ones can only be added after them"
                              : "%s: blob \"%s\" cannot be changed by an append: samples"
                                " of the pack need it",
                      p->path, old->name);
}

/* ---- dropping ------------------------------------------------------------------------------ */

int leat_packer_drop(leat_packer *p, const void *key, size_t size, uint64_t *count, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (key != NULL || size == 0), err);
    uint64_t found = 0;
    if (count != NULL) *count = 0;
    if (p->base == NULL || p->finishing)
        return leat__fail(err, LEAT_ESTATE, "%s: samples can only be dropped from a pack that is appended to",
                          p->path);
    for (uint32_t i = 0; i < p->base->shard_count; i++) {
        const leat__shard *s = &p->base->shards[i];
        uint64_t row = 0, least = 0;
        int rc;
        for (; (rc = leat__index_find(s->index, key, size, least, &row, err)) == 0; least = row + 1) {
            if (leat__shard_dropped(s, row)) continue;
            uint8_t word[8];
            leat__store_u64(word, leat__drop_word(i, row));
            if (leat__buf_append(&p->drops, word, sizeof word) != 0)
                return leat__fail_nomem(err, p->drops.len, "dropped samples");
            found++;
        }
        if (rc != LEAT_ENOENT) return rc;
    }
    if (count != NULL) *count = found;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = leat__load_u64(a), y = leat__load_u64(b);
    return x < y ? -1 : x > y;
}

/* Sorts the dropped samples and removes duplicates. */
static void sort_drops(leat_packer *p)
{
    uint8_t *words = (uint8_t *)p->drops.data;
    size_t count = p->drops.len / 8, kept = 0;
    if (count == 0) return;
    qsort(words, count, 8, by_number);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || leat__load_u64(words + i * 8) != leat__load_u64(words + (kept - 1) * 8))
            memmove(words + 8 * kept++, words + i * 8, 8);
    p->drops.len = kept * 8;
}

/* ---- publishing ---------------------------------------------------------------------------- */

static leat__journal_shard first_shard(const leat_packer *p)
{
    const leat__footer *f = &p->base->shards[0].index->footer;
    return (leat__journal_shard){.file_bytes = f->file_bytes,
                                 .samples = f->samples,
                                 .pages = f->pages,
                                 .fingerprint = f->check,
                                 .max_page_bytes = f->max_page_bytes,
                                 .max_sample_bytes = f->max_sample_bytes};
}

int leat__append_note(leat_packer *p, leat_error *err)
{
    sort_drops(p);
    if (p->base->set != NULL) return 0;
    leat__journal_shard s = first_shard(p);
    return leat__journal_put_shard(&p->journal, &s, err);
}

static int copy_file(leat_packer *p, const char *to, leat_error *err)
{
    const leat__file *from = p->base->shards[0].index->file;
    char *partial = leat__packer_partial_path(p, 0);
    uint8_t *data = leat__alloc(LEAT__MEM_PACK, COPY_BYTES);
    leat__file *file = NULL;
    uint64_t size = p->base->shards[0].index->footer.file_bytes;
    int rc = partial == NULL || data == NULL ? leat__fail_nomem(err, COPY_BYTES, "a copy") : 0;
    if (rc != 0) goto out;
    LEAT_GO(rc, out,
            leat__file_open(&file, partial, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, err));
    for (uint64_t at = 0; at < size; at += COPY_BYTES) {
        size_t n = (size_t)LEAT_MIN(size - at, COPY_BYTES);
        LEAT_GO(rc, out, leat__file_pread(from, data, n, at, err));
        LEAT_GO(rc, out, leat__file_pwrite(file, data, n, at, err));
    }
    if (p->sync) LEAT_GO(rc, out, leat__file_sync(file, err));
    leat__file_close(&file);
    rc = leat__path_rename(partial, to, err);
out:
    leat__file_close(&file);
    leat__free(data);
    leat__free(partial);
    return rc;
}

int leat__append_link(leat_packer *p, leat_error *err)
{
    if (p->base->set != NULL) return 0;
    leat__journal_shard s = first_shard(p);
    char *name = leat__packer_final_path(p, &s);
    if (name == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc = leat__path_link(p->path, name, err);
    if (rc == LEAT_ENOTSUP) rc = copy_file(p, name, err);
    leat__free(name);
    return rc;
}

static void list_one(leat__json *j, const char *file, const leat__footer *f)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)f->check);
    leat__json_object(j);
    leat__json_kstr(j, "file", file);
    leat__json_ku64(j, "bytes", f->file_bytes);
    leat__json_ku64(j, "samples", f->samples);
    leat__json_ku64(j, "pages", f->pages);
    leat__json_kstr(j, "fingerprint", fingerprint);
    leat__json_end(j);
}

int leat__append_list(const leat_packer *p, leat__json *j, leat_error *err)
{
    if (p->base->set != NULL) {
        for (uint32_t i = 0; i < p->base->shard_count; i++) {
            const leat__index *x = p->base->shards[i].index;
            list_one(j, leat__path_base(leat__file_path(x->file)), &x->footer);
        }
        return 0;
    }
    leat__journal_shard s = first_shard(p);
    char *name = leat__packer_final_path(p, &s);
    if (name == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    list_one(j, leat__path_base(name), &p->base->shards[0].index->footer);
    leat__free(name);
    return 0;
}

void leat__append_set(const leat_packer *p, leat__indexer *x)
{
    leat_pack_info info;
    (void)leat_pack_info_read(p->base, &info, sizeof info);
    x->provenance = p->base_provenance;
    x->drops = &p->drops;
    x->max_page_bytes = LEAT_MAX(x->max_page_bytes, info.max_page_bytes);
    x->max_sample_bytes = LEAT_MAX(x->max_sample_bytes, info.max_sample_bytes);
}

bool leat__append_nothing(const leat_packer *p)
{
    return p->done_count == 0 && !p->blobs_changed && p->drops.len == p->base->drop_count * 8;
}
