/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes packs: the public calls of the packer, and the files it fills. packer.h shows how the parts work
 * together; docs/format.md section 7 describes the files on disk at each step.
 */
#include "pack/packer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include <leat/version.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/dir.h"
#include "io/url.h"
#include "pack/append.h"
#include "pack/selection.h"

#define PAGE_BYTES_DEFAULT (512u << 10)
#define SHARD_BYTES_MIN (1u << 20)
#define RESERVE (UINT64_C(64) << 20)
#define SYNC_EVERY (UINT64_C(512) << 20) /* limits what a power failure can lose */

/* ---- names ------------------------------------------------------------------------------ */

char *leat__path_with(const char *path, const char *suffix)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_PACK, 1u << 20);
    (void)leat__buf_printf(&b, "%s%s", path, suffix);
    char *s = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return s;
}

/* NAME-00000.leat.partial, NAME-00000-FINGERPRINT.leat */
static char *shard_path(const char *path, uint32_t shard, const char *mark, const char *suffix)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_PACK, 1u << 20);
    size_t stem = strlen(path);
    const char *ext = "";
    if (leat__str_ends(path, ".leat")) {
        stem -= strlen(".leat");
        ext = ".leat";
    }
    (void)leat__buf_append(&b, path, stem);
    (void)leat__buf_printf(&b, "-%05u%s%s%s", shard, mark, ext, suffix);
    char *s = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return s;
}

char *leat__packer_partial_path(const leat_packer *p, uint32_t shard)
{
    if (p->shard_bytes == 0) return leat__path_with(p->path, ".partial");
    return shard_path(p->path, shard, "", ".partial");
}

char *leat__packer_final_path(const leat_packer *p, const leat__journal_shard *s)
{
    if (p->shard_bytes == 0) return leat__path_with(p->path, "");
    char mark[24];
    snprintf(mark, sizeof mark, "-%016llx", (unsigned long long)s->fingerprint);
    return shard_path(p->path, s->shard, mark, "");
}

/* ---- files ------------------------------------------------------------------------------ */

/* Checks the invariants of the current file and the totals between two calls. */
static void check(const leat_packer *p)
{
    LEAT_ASSERT(p->data_end >= LEAT__PACK_BLOCK && p->data_end % LEAT__PACK_ALIGN == 0);
    LEAT_ASSERT(p->samples >= p->pages && p->totals.samples >= p->samples && p->totals.pages >= p->pages);
    LEAT_ASSERT(p->max_page <= p->data_end && p->max_sample <= p->max_page);
    LEAT_ASSERT(p->journal_from <= p->journal.end);
    LEAT_ASSERT(p->done_count <= p->done_capacity);
    LEAT_ASSERT(!p->finished || p->finishing);
}

void leat__packer_forget_shard(leat_packer *p)
{
    p->samples = p->pages = p->keys_bytes = p->max_page = p->max_sample = p->unsynced = 0;
    p->reserved = 0;
    p->data_end = LEAT__PACK_BLOCK;
    p->journal_from = p->journal.end;
    p->at_start = p->totals;
}

/* Creates the next file under its partial name. */
static int start_shard(leat_packer *p, leat_error *err)
{
    LEAT_ASSERT(p->file == NULL);
    uint8_t block[LEAT__PACK_BLOCK];
    char *partial = leat__packer_partial_path(p, p->shard);
    int rc;
    if (partial == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    leat__packer_forget_shard(p);
    LEAT_GO(rc, out,
            leat__file_open(&p->file, partial, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_LOCK, err));
    LEAT_GO(rc, out, leat__file_truncate(p->file, 0, err));
    leat__header_encode_partial(block);
    LEAT_GO(rc, out, leat__file_pwrite(p->file, block, sizeof block, 0, err));
out:
    if (rc != 0) leat__file_close(&p->file);
    leat__free(partial);
    return rc;
}

static void fill_indexer(const leat_packer *p, leat__indexer *x)
{
    *x = (leat__indexer){
        .kind = LEAT__PACK_FILE,
        .schema = p->schema,
        .provenance = p->provenance,
        .blobs = &p->blobs,
        .journal = (leat__journal *)&p->journal,
        .journal_from = p->journal_from,
        .shard = p->shard,
        .samples = p->samples,
        .pages = p->pages,
        .keys_bytes = p->keys_bytes,
        .data_end = p->data_end,
        .page_bytes = p->page_bytes,
        .max_page_bytes = p->max_page,
        .max_sample_bytes = p->max_sample,
    };
}

int leat__packer_add_done(leat_packer *p, const leat__journal_shard *s, leat_error *err)
{
    LEAT_ASSERT(p->done_count <= p->done_capacity);
    if (p->done_count >= LEAT__PACK_SHARDS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "%s: more than %u shards", p->path, LEAT__PACK_SHARDS_MAX);
    if (p->done_count == p->done_capacity) {
        size_t want = p->done_capacity == 0 ? 16 : p->done_capacity * 2;
        void *grown = leat__realloc(LEAT__MEM_PACK, p->done, want * sizeof *p->done);
        if (grown == NULL) return leat__fail_nomem(err, want * sizeof *p->done, "shards");
        p->done = grown;
        p->done_capacity = want;
    }
    p->done[p->done_count++] = *s;
    return 0;
}

/* Writes index and footer, syncs, records SHARD, closes the file. */
static int close_shard(leat_packer *p, leat_error *err)
{
    LEAT_ASSERT(p->file != NULL);
    leat__indexer x;
    leat__footer footer;
    uint64_t duplicates;
    LEAT_TRY(leat__write_behind_drain(p->writer, err));
    fill_indexer(p, &x);
    LEAT_TRY(leat__indexer_write(&x, p->file, &footer, &duplicates, err));
    if (p->sync) LEAT_TRY(leat__file_sync(p->file, err));
    leat__journal_shard s = {p->shard,     footer.file_bytes, p->samples,    p->pages,
                             footer.check, p->max_page,       p->max_sample, duplicates};
    LEAT_TRY(leat__journal_put_shard(&p->journal, &s, err));
    if (p->sync) LEAT_TRY(leat__journal_sync(&p->journal, err));
    LEAT_TRY(leat__packer_add_done(p, &s, err));
    leat__file_close(&p->file);
    p->shard++;
    leat__packer_forget_shard(p);
    check(p);
    return 0;
}

/* ---- pages ------------------------------------------------------------------------------ */

/* Sets *fits when the page still fits into the current file. Always true for the file's first page. */
static int page_fits_file(const leat_packer *p, const leat__page *page, bool *fits, leat_error *err)
{
    uint64_t samples = p->samples + page->samples, bytes = 0;
    *fits = true;
    if (p->pages == 0) return 0;
    if (samples > LEAT__PACK_SAMPLES_MAX) {
        *fits = false;
        if (p->shard_bytes != 0) return 0;
        return leat__fail(err, LEAT_ELIMIT, "%s: more than %u samples need shards", p->path,
                          LEAT__PACK_SAMPLES_MAX);
    }
    if (p->shard_bytes == 0) return 0;
    leat__indexer x;
    fill_indexer(p, &x);
    x.samples = samples;
    x.pages++;
    x.keys_bytes += page->keys.len;
    x.data_end += page->bytes;
    LEAT_TRY(leat__indexer_size(&x, &bytes, err));
    *fits = bytes <= p->shard_bytes;
    return 0;
}

static int sync_now_and_then(leat_packer *p, uint64_t bytes, leat_error *err)
{
    p->unsynced += bytes;
    if (!p->sync || p->unsynced < SYNC_EVERY) return 0;
    LEAT_TRY(leat__write_behind_drain(p->writer, err));
    LEAT_TRY(leat__file_sync(p->file, err));
    LEAT_TRY(leat__journal_put_mark(&p->journal, LEAT__RECORD_SYNC, err));
    LEAT_TRY(leat__journal_sync(&p->journal, err));
    p->unsynced = 0;
    return 0;
}

/* Swaps the bytes of the page with the writer; the page gets another block. */
static int write_page(leat_packer *p, leat__page *page, leat_error *err)
{
    LEAT_ASSERT(page->bytes <= page->capacity && page->lent == NULL);
    uint64_t end = p->data_end + page->bytes;
    if (end > p->reserved) {
        p->reserved = end + LEAT_MIN(p->data_end, RESERVE);
        leat__file_reserve(p->file, p->data_end, p->reserved - p->data_end);
    }
    LEAT_ASSERT(end <= p->reserved);
    leat__write_block block = {page->data, page->capacity};
    int rc = leat__write_behind_put(p->writer, p->file, p->data_end, (size_t)page->bytes, &block, err);
    page->data = block.data;
    page->capacity = block.capacity;
    return rc;
}

typedef struct lent_write {
    leat__file *file;
    uint64_t at;
    leat_error *err;
} lent_write;

static int write_piece(void *cookie, const void *data, size_t len)
{
    lent_write *w = cookie;
    LEAT_TRY(leat__file_pwrite(w->file, data, len, w->at, w->err));
    w->at += len;
    return 0;
}

/* Writes a large sample from the caller's memory to the file without a copy. */
static int write_lent(leat_packer *p, const leat__page *page, leat_error *err)
{
    LEAT_ASSERT(page->lent != NULL && page->samples == 1);
    lent_write w = {p->file, p->data_end, err};
    LEAT_TRY(leat__page_lent_bytes(page, write_piece, &w));
    leat__file_flush_hint(p->file, p->data_end, page->bytes);
    return 0;
}

int leat__packer_put(leat_packer *p, leat__page *page, leat_error *err)
{
    if (p->finishing) return leat__fail(err, LEAT_ESTATE, "%s: complete, cannot add samples", p->path);
    if (page->samples == 0) return 0;
    leat__page_seal(page);
    LEAT_ASSERT(page->sealed && page->bytes > 0 && page->bytes % LEAT__PACK_ALIGN == 0);
    bool fits;
    LEAT_TRY(page_fits_file(p, page, &fits, err));
    if (!fits) LEAT_TRY(close_shard(p, err));
    if (p->file == NULL) LEAT_TRY(start_shard(p, err));

    leat__journal_page record = {
        .shard = p->shard,
        .samples = page->samples,
        .offset = p->data_end,
        .bytes = page->bytes,
        .check = page->check,
        .max_sample = page->max_sample,
        .payload = page->payload,
        .rows_bytes = page->rows.len,
        .keys_bytes = page->keys.len,
        .rows = (const uint8_t *)page->rows.data,
        .keys = (const uint8_t *)page->keys.data,
    };
    memcpy(record.marks, page->marks, sizeof record.marks);
    if (page->lent) LEAT_TRY(write_lent(p, page, err));
    /* The record is written first: if that fails, the page is still complete and may be put again. If the
     * page then does not reach the disk, resume detects it by its check. */
    LEAT_TRY(leat__journal_put_page(&p->journal, &record, err));
    if (!page->lent) LEAT_TRY(write_page(p, page, err));

    p->data_end += page->bytes;
    p->pages++;
    p->samples += page->samples;
    p->keys_bytes += page->keys.len;
    p->max_page = LEAT_MAX(p->max_page, page->bytes);
    p->max_sample = LEAT_MAX(p->max_sample, page->max_sample);
    p->totals.samples += page->samples;
    p->totals.pages++;
    p->totals.payload += page->payload;
    memcpy(p->totals.marks, page->marks, sizeof p->totals.marks);
    leat__page_clear(page); /* the page is stored: a failing sync below must not add it twice */
    check(p);
    return sync_now_and_then(p, record.bytes, err);
}

int leat_packer_append(leat_packer *p, const leat_pack_sample *sample, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && sample != NULL, err);
    uint64_t size;
    if (p->finishing) return leat__fail(err, LEAT_ESTATE, "%s: complete, cannot add samples", p->path);
    LEAT_TRY(leat__sample_measure(p->schema, sample, &size, err));
    LEAT_TRY(leat__packer_check_kinds(p, sample, err));
    if (p->page == NULL) LEAT_TRY(leat__page_open(&p->page, p->schema, p->page_bytes, err));
    if (p->page->sealed || !leat__page_fits(p->page, sample, size))
        LEAT_TRY(leat__packer_put(p, p->page, err));
    if (size <= p->page_bytes) return leat__page_add(p->page, sample, err);
    LEAT_TRY(leat__page_lend(p->page, sample, err));
    int rc = leat__packer_put(p, p->page, err);
    leat__page_clear(p->page); /* also on failure: the caller owns the sample again */
    return rc;
}

/* ---- blobs ------------------------------------------------------------------------------ */

int leat_packer_blob(leat_packer *p, const char *name, const void *data, size_t size, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && name != NULL && (data != NULL || size == 0), err);
    const leat__blob *old = leat__blobs_find(&p->blobs, name);
    if (old != NULL && old->size == size && (size == 0 || memcmp(old->data, data, size) == 0)) return 0;
    if (p->finishing) return leat__fail(err, LEAT_ESTATE, "%s: complete, cannot add samples", p->path);
    if (old != NULL && p->base != NULL) LEAT_TRY(leat__append_check_blob(p, old, data, size, err));
    LEAT_TRY(leat__blobs_set(&p->blobs, name, data, size, err));
    p->blobs_changed = true;
    return leat__journal_put_blob(&p->journal, name, data, size, err);
}

int leat_packer_blob_view(const leat_packer *p, const char *name, const void **data, size_t *size)
{
    LEAT_REQUIRE(p != NULL && name != NULL && data != NULL && size != NULL, NULL);
    const leat__blob *b = leat__blobs_find(&p->blobs, name);
    *data = b != NULL ? b->data : NULL;
    *size = b != NULL ? b->size : 0;
    return b != NULL ? 0 : LEAT_ENOENT;
}

int leat_packer_classes(leat_packer *p, uint32_t field, const char *const *names, uint64_t count,
                        leat_error *err)
{
    LEAT_REQUIRE(p != NULL && (names != NULL || count == 0), err);
    if (field >= p->schema->count || p->schema->fields[field].type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL, "class names belong to an int field");
    for (uint64_t i = 0; i < count; i++) {
        if (names[i] != NULL && leat__utf8_valid(names[i], strlen(names[i]), NULL)) continue;
        char shown[256];
        return leat__fail(err, LEAT_EINVAL, "class name %llu, \"%s\", is not UTF-8", (unsigned long long)i,
                          leat__str_shown(names[i] != NULL ? names[i] : "", shown, sizeof shown));
    }
    leat__buf text;
    leat__json j;
    leat__buf_init(&text, LEAT__MEM_PACK, LEAT__PACK_BLOB_MAX);
    leat__json_init(&j, &text, 0);
    leat__json_array(&j);
    for (uint64_t i = 0; i < count; i++) leat__json_str(&j, names[i]);
    leat__json_end(&j);
    char *name = leat__blob_classes_name(p->schema->fields[field].name);
    int rc = leat__buf_status(&text);
    if (name == NULL || rc != 0) rc = leat__fail_nomem(err, text.len, "class names");
    else rc = leat_packer_blob(p, name, text.data, text.len, err);
    leat__free(name);
    leat__buf_reset(&text);
    return rc;
}

/* ---- open and close --------------------------------------------------------------------- */

int leat__packer_provenance(const char *source, char **whole, leat_error *err)
{
    if (source == NULL) source = "{}";
    json_error_t jerr;
    json_t *root = json_loads(source, JSON_REJECT_DUPLICATES, &jerr);
    bool object = json_is_object(root);
    json_decref(root);
    if (!object) return leat__fail(err, LEAT_EINVAL, "provenance: not a JSON object");
    leat__buf b;
    leat__json j;
    leat__buf_init(&b, LEAT__MEM_PACK, LEAT__PACK_JSON_MAX);
    leat__json_init(&j, &b, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "created_with", "leat " LEAT_VERSION);
    leat__json_kstr(&j, "format", LEAT__PACK_VERSION);
    leat__json_key(&j, "source");
    leat__json_raw(&j, source);
    leat__json_end(&j);
    int rc = leat__buf_status(&b);
    *whole = rc == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    if (*whole == NULL) return leat__fail(err, rc ? rc : LEAT_ENOMEM, "provenance: too long");
    return 0;
}

/* Hash of everything that affects the bytes: resume must not mix two different runs. */
static int identity(const leat_packer *p, uint64_t callers, uint64_t *id, leat_error *err)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_PACK, 2 * (size_t)LEAT__PACK_JSON_MAX);
    uint8_t words[24];
    leat__store_u64(words, callers);
    leat__store_u64(words + 8, p->page_bytes);
    leat__store_u64(words + 16, p->shard_bytes);
    (void)leat__buf_append(&b, words, sizeof words);
    (void)leat__schema_json(p->schema, &b);
    (void)leat__buf_puts(&b, p->provenance);
    int rc = leat__buf_status(&b);
    if (rc == 0) *id = leat__hash64(b.data, b.len, 0);
    leat__buf_reset(&b);
    return rc == 0 ? 0 : leat__fail_nomem(err, b.len, "the schema");
}

static int take_options(leat_packer *p, const leat_packer_opts *o, leat_error *err)
{
    p->page_bytes = o->page_bytes ? o->page_bytes : PAGE_BYTES_DEFAULT;
    p->shard_bytes = o->shard_bytes;
    p->replace = o->replace != 0;
    p->sync = o->no_sync == 0;
    if (p->page_bytes < LEAT__PACK_PAGE_MIN || p->page_bytes > LEAT__PACK_PAGE_MAX ||
        p->page_bytes % LEAT__PACK_BLOCK != 0)
        return leat__fail(err, LEAT_EINVAL,
                          "`page_bytes`: must be a multiple of 4096 from 64 KiB to 256 MiB");
    if (p->shard_bytes != 0 && p->shard_bytes < SHARD_BYTES_MIN)
        return leat__fail(err, LEAT_EINVAL, "`shard_bytes`: must be at least 1 MiB");
    LEAT_TRY(leat__schema_make(&p->schema, o->fields, o->field_count, err));
    p->kinds = leat__zalloc_array(LEAT__MEM_PACK, (size_t)o->field_count + 1, sizeof *p->kinds);
    if (p->kinds == NULL) return leat__fail_nomem(err, o->field_count * sizeof *p->kinds, "fields");
    return leat__packer_provenance(o->provenance, &p->provenance, err);
}

int leat__packer_identity(const leat_packer_opts *o, uint64_t *id, leat_error *err)
{
    leat_packer *p = LEAT_NEW(PACK, leat_packer);
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a packer");
    int rc = take_options(p, o, err);
    if (rc == 0) rc = identity(p, o->identity, id, err);
    leat_packer_close(&p);
    return rc;
}

/* Checks NAME: it must not exist or, with `replace`, it must be a pack. */
static int check_output(const leat_packer *p, leat_error *err)
{
    leat__entry_kind kind = LEAT__ENTRY_FILE;
    bool exists, regular;
    LEAT_TRY(leat__path_exists(p->path, &exists, err));
    if (!exists) return 0;
    LEAT_TRY(leat__path_regular(p->path, &regular, err));
    if (!regular) LEAT_TRY(leat__path_kind(p->path, &kind, err));
    if (!regular)
        return leat__fail(
            err, LEAT_EINVAL,
            kind == LEAT__ENTRY_FOLDER ? "%s: is a folder, not a file" : "%s: not a regular file", p->path);
    return leat__file_only_pack(p->path, p->replace, err);
}

/* Starts again where an earlier run left an unfinished pack; fails while that run still holds its lock.
 * Discards that pack if it cannot be resumed or is to be replaced; fails with LEAT_EEXIST otherwise. */
static int take_over(leat_packer *p, const leat_packer_opts *o, const char *journal, uint64_t id,
                     leat_error *err)
{
    bool once = false;
    LEAT_TRY(leat__journal_hold(&p->journal, journal, err));
    LEAT_TRY(leat__journal_known(&p->journal, journal, err));
    LEAT_TRY(leat__journal_once(&p->journal, &once, err));
    if (!once && (!p->replace || o->append))
        return leat__fail(err, LEAT_EEXIST,
                          "%s: an unfinished pack is there: resume it, or replace it to start"
                          " again",
                          p->path);
    LEAT_TRY(check_output(p, err));
    LEAT_TRY(leat__packer_discard_files(p->path, &p->journal, err));
    return leat__journal_restart(&p->journal, id, err);
}

static int start(leat_packer *p, const leat_packer_opts *o, leat_error *err)
{
    uint64_t id = 0;
    bool unfinished;
    LEAT_TRY(leat__path_can_make(p->path, err));
    LEAT_TRY(identity(p, o->identity, &id, err));
    char *journal = leat__path_with(p->path, ".journal");
    if (journal == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc;
    LEAT_GO(rc, out, leat__path_exists(journal, &unfinished, err));
    if (unfinished && o->resume) {
        LEAT_GO(rc, out, leat__journal_resume(&p->journal, journal, id, err));
        LEAT_GO(rc, out, leat__packer_replay(p, err));
        p->resumed = p->totals;
        if (!p->finishing) LEAT_GO(rc, out, check_output(p, err));
    } else if (unfinished) {
        LEAT_GO(rc, out, take_over(p, o, journal, id, err));
    } else {
        LEAT_GO(rc, out, check_output(p, err));
        LEAT_GO(rc, out, leat__journal_create(&p->journal, journal, id, err));
    }
    if (o->append) {
        rc = leat__append_open(p, o->provenance, err);
        if (rc != 0) (void)!leat__path_unlink(journal, NULL); /* nothing was done */
        if (rc != 0) goto out;
    }
    if (p->file == NULL && p->done_count == 0) rc = start_shard(p, err);
out:
    leat__free(journal);
    return rc;
}

/* Packs for a bucket are first written to this machine (ingest/bucket_pack.h). */
static int refuse_remote(const char *path, bool append, leat_error *err)
{
    if (append)
        return leat__fail(err, LEAT_ENOTSUP, "%.200s: only packs on this machine can be changed", path);
    return leat__path_local(path, "; 'leat pack FILE -o URL' uploads a finished pack", err);
}

int leat_packer_open(leat_packer **out, const char *path, const leat_packer_opts *opts, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    leat_packer_opts o = {0};
    *out = NULL;
    if (path == NULL || *path == '\0' || opts == NULL || opts->struct_size < 8)
        return leat__fail(err, LEAT_EINVAL, "packer: no path or no options");
    memcpy(&o, opts, LEAT_MIN((size_t)opts->struct_size, sizeof o));
    if (leat__path_remote(path)) return refuse_remote(path, o.append != 0, err);
    leat_packer *p = LEAT_NEW(PACK, leat_packer);
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a packer");
    int rc = 0;
    rc = leat__path_resolve(path, &p->path, err); /* writes to the target of a link, not over the link */
    leat__buf_init(&p->drops, LEAT__MEM_PACK, LEAT__PACK_DROPS_MAX);
    if (rc == 0 && o.append) rc = leat__append_options(p, &o, err);
    if (rc == 0) rc = take_options(p, &o, err);
    if (rc == 0) rc = leat__write_behind_open(&p->writer, p->page_bytes, err);
    if (rc == 0) rc = start(p, &o, err);
    if (rc == 0) *out = p;
    else leat_packer_close(&p);
    return rc;
}

/* Finds whether an unfinished pack is there. */
static int has_journal(const char *path, bool *there, leat_error *err)
{
    char *target, *journal = NULL;
    LEAT_TRY(leat__path_resolve(path, &target, err));
    journal = leat__path_with(target, ".journal");
    int rc = journal == NULL ? leat__fail_nomem(err, strlen(path), "a path")
                             : leat__path_exists(journal, there, err);
    leat__free(journal);
    leat__free(target);
    return rc;
}

int leat__packer_open_once(leat_packer **out, const char *path, const leat_packer_opts *opts, leat_error *err)
{
    bool before = true;
    LEAT_TRY(has_journal(path, &before, err));
    int rc = leat_packer_open(out, path, opts, err);
    if (rc == 0) rc = leat__journal_put_mark(&(*out)->journal, LEAT__RECORD_ONCE, err);
    if (rc == 0) return 0;
    leat_packer_close(out);
    if (!before)
        (void)!leat_packer_discard(path, NULL); /* on a full disk: the journal was made, but not filled */
    return rc;
}

uint64_t leat_packer_resumed(const leat_packer *p, uint64_t marks[LEAT_PACKER_MARKS])
{
    if (p == NULL) return 0;
    if (marks != NULL) memcpy(marks, p->resumed.marks, sizeof p->resumed.marks);
    return p->resumed.samples;
}

/* Closes the last file. It may already be closed (an earlier finish failed just after that), or
 * be a new one without a page. */
static int close_last(leat_packer *p, leat_error *err)
{
    if (p->file == NULL) return 0;
    if (p->pages > 0 || (p->done_count == 0 && p->base == NULL)) return close_shard(p, err);
    leat__file_close(&p->file);
    char *partial = leat__packer_partial_path(p, p->shard);
    if (partial == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc = leat__path_unlink(partial, err);
    leat__free(partial);
    return rc;
}

int leat_packer_finish(leat_packer *p, leat_packer_stats *stats, leat_error *err)
{
    LEAT_REQUIRE(p != NULL, err);
    if (p->finished) return leat__fail(err, LEAT_ESTATE, "%s: already finished", p->path);
    if (!p->finishing) {
        if (p->page != NULL) LEAT_TRY(leat__packer_put(p, p->page, err));
        LEAT_TRY(close_last(p, err));
        if (p->base != NULL) LEAT_TRY(leat__append_note(p, err));
        else LEAT_TRY(leat__packer_note_old(p, err));
        LEAT_TRY(leat__journal_put_mark(&p->journal, LEAT__RECORD_FINISH, err));
        if (p->sync) LEAT_TRY(leat__journal_sync(&p->journal, err));
        p->finishing = true;
    }
    uint64_t file_bytes;
    LEAT_TRY(leat__packer_publish(p, &file_bytes, err));
    p->finished = true;
    check(p);
    LEAT_ASSERT(p->file == NULL);
    if (stats == NULL) return 0;
    *stats = (leat_packer_stats){.samples = p->totals.samples,
                                 .pages = p->totals.pages,
                                 .shards = p->done_count,
                                 .payload_bytes = p->totals.payload,
                                 .file_bytes = file_bytes};
    for (size_t i = 0; i < p->done_count; i++) stats->duplicate_keys += p->done[i].duplicate_keys;
    return 0;
}

void leat_packer_close(leat_packer **packer)
{
    if (packer == NULL) return;
    leat_packer *p = *packer;
    if (p == NULL) return;
    leat__write_behind_close(&p->writer); /* before the file it writes to */
    leat__file_close(&p->file);
    leat__journal_reset(&p->journal);
    leat__blobs_reset(&p->blobs);
    leat__page_close(&p->page);
    leat__schema_close(&p->schema);
    leat_pack_close(&p->base);
    leat__buf_reset(&p->drops);
    leat__free(p->base_provenance);
    leat__free(p->provenance);
    leat__free(p->done);
    leat__free(p->old_shards);
    leat__free(p->kinds);
    leat__free(p->path);
    leat__free(p);
    *packer = NULL;
}
