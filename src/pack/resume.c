/* SPDX-License-Identifier: Apache-2.0
 *
 * Resumes after a crash. The journal is replayed from its start, and every page it names is read
 * back and compared with its check: a power failure may have kept the record and lost the page,
 * or the file may have been damaged since. At the first mismatch the journal is truncated, and
 * packing continues from there. Damage to a page that had been synced is recorded, so that the
 * caller can report it.
 *
 * A run killed while publishing is rolled back to the state before, unless a file already has its
 * name. Then its pages are verified too, but cannot be written again.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/packer.h"

/* The pages known to be on stable storage: those with records before `at`, except pages of file `shard` that
 * extend past `whole`. */
typedef struct safe {
    uint64_t at;
    uint32_t shard;
    uint64_t whole;
} safe;

/* First pass: finds the end of the complete records, up to which record pages are safe, and whether only
 * publishing remains. */
static int survey(leat_packer *p, uint64_t *end, safe *s, leat_error *err)
{
    leat__journal_record r;
    uint64_t at = leat__journal_first(), pages_end = LEAT__PACK_BLOCK;
    uint32_t shard = 0;
    *s = (safe){.at = at};
    for (;;) {
        int rc = leat__journal_read(&p->journal, at, &r, err);
        if (rc == LEAT_ENOENT) break;
        LEAT_TRY(rc);
        at = r.next;
        if (r.kind == LEAT__RECORD_PAGE) {
            shard = r.page.shard;
            pages_end = r.page.offset + r.page.bytes;
        }
        if (r.kind == LEAT__RECORD_SYNC || r.kind == LEAT__RECORD_SHARD)
            *s = (safe){at, shard, pages_end / LEAT__PACK_BLOCK * LEAT__PACK_BLOCK};
        if (r.kind == LEAT__RECORD_SHARD && p->shard_bytes != 0)
            s->whole = UINT64_MAX; /* only its header is missing */
        if (r.kind == LEAT__RECORD_FINISH) p->finishing = true;
    }
    *end = at;
    return 0;
}

/* Opens the file being written unless it is open; a missing file is not an error. */
static int open_partial(leat_packer *p, leat_error *err)
{
    if (p->file != NULL) return 0;
    char *path = leat__packer_partial_path(p, p->shard);
    if (path == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc = leat__file_open(&p->file, path, LEAT__FILE_WRITE | LEAT__FILE_LOCK, err);
    leat__free(path);
    return rc == LEAT_ENOENT ? 0 : rc;
}

static int page_matches(leat__file *file, const leat__journal_page *g, bool *there, leat_error *err)
{
    uint64_t size = 0;
    *there = false;
    LEAT_TRY(leat__file_size(file, &size, err));
    if (!leat__range_inside(g->offset, g->bytes, size)) return 0;
    uint8_t *data = leat__alloc(LEAT__MEM_PACK, (size_t)g->bytes);
    if (data == NULL) return leat__fail_nomem(err, g->bytes, "a page");
    int rc = leat__file_pread(file, data, (size_t)g->bytes, g->offset, err);
    if (rc == 0) *there = leat__hash64(data, (size_t)g->bytes, 0) == g->check;
    leat__free(data);
    return rc;
}

static int page_is_there(leat_packer *p, const leat__journal_page *g, bool *there, leat_error *err)
{
    *there = false;
    LEAT_TRY(open_partial(p, err));
    return p->file != NULL ? page_matches(p->file, g, there, err) : 0;
}

static bool is_safe(const leat__journal_record *r, const safe *s)
{
    if (r->at >= s->at) return false;
    return r->page.shard != s->shard || r->page.offset + r->page.bytes <= s->whole;
}

static int note_damage(leat_packer *p, const leat__journal_page *g, leat_error *err)
{
    char *path = leat__packer_partial_path(p, g->shard);
    if (path == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    snprintf(p->damage, sizeof p->damage,
             "%.160s: page %llu at byte %llu was damaged since it was written: packing again from "
             "there",
             path, (unsigned long long)p->pages, (unsigned long long)g->offset);
    leat__free(path);
    return 0;
}

const char *leat__packer_damage(const leat_packer *p)
{
    return p->damage;
}

static int apply_page(leat_packer *p, const leat__journal_record *r, const safe *s, bool *keep,
                      leat_error *err)
{
    const leat__journal_page *g = &r->page;
    *keep = g->shard == p->shard && g->offset == p->data_end;
    if (*keep && !p->finishing) {
        LEAT_TRY(page_is_there(p, g, keep, err));
        if (!*keep && is_safe(r, s)) LEAT_TRY(note_damage(p, g, err));
    }
    if (!*keep) return 0;
    p->data_end += g->bytes;
    p->pages++;
    p->samples += g->samples;
    p->keys_bytes += g->keys_bytes;
    p->max_page = LEAT_MAX(p->max_page, g->bytes);
    p->max_sample = LEAT_MAX(p->max_sample, g->max_sample);
    p->totals.samples += g->samples;
    p->totals.pages++;
    p->totals.payload += g->payload;
    memcpy(p->totals.marks, g->marks, sizeof p->totals.marks);
    leat__packer_learn_kinds(p, g);
    return 0;
}

static int apply(leat_packer *p, const leat__journal_record *r, const safe *s, bool *keep, leat_error *err)
{
    *keep = true;
    switch (r->kind) {
    case LEAT__RECORD_PAGE: return apply_page(p, r, s, keep, err);
    case LEAT__RECORD_BLOB:
        return leat__blobs_set(&p->blobs, r->blob_name, r->blob, (size_t)r->blob_bytes, err);
    case LEAT__RECORD_SHARD:
        /* A single file that is complete but not yet published is still the file being written:
         * its index is written again at the next finish. */
        *keep = p->shard_bytes != 0 || p->finishing;
        if (!*keep) return 0;
        LEAT_TRY(leat__packer_add_done(p, &r->shard, err));
        leat__file_close(&p->file);
        p->shard++;
        p->journal.end = r->next;
        leat__packer_forget_shard(p);
        return 0;
    case LEAT__RECORD_OLD:
        leat__free(p->old_shards);
        p->old_shards = leat__strdup(LEAT__MEM_PACK, r->old_shards);
        return p->old_shards != NULL ? 0 : leat__fail_nomem(err, 1, "the list of old shards");
    case LEAT__RECORD_FINISH: *keep = p->finishing; return 0;
    case LEAT__RECORD_ONCE:
    case LEAT__RECORD_SYNC: return 0;
    }
    return 0;
}

/* Truncates the journal at `at` and writes the blobs again, because some may have been set after it. */
static int cut_back(leat_packer *p, uint64_t at, leat_error *err)
{
    LEAT_TRY(leat__journal_cut(&p->journal, at, err));
    for (size_t i = 0; i < p->blobs.count; i++) {
        const leat__blob *b = &p->blobs.items[i];
        LEAT_TRY(leat__journal_put_blob(&p->journal, b->name, b->data, b->size, err));
    }
    leat__packer_forget_shard(p);
    return 0;
}

static int shard_is_there(const leat_packer *p, const leat__journal_shard *s, bool *there, leat_error *err)
{
    char *paths[] = {leat__packer_partial_path(p, s->shard), leat__packer_final_path(p, s)};
    int rc = 0;
    *there = false;
    for (size_t i = 0; i < LEAT_COUNT(paths); i++) {
        if (paths[i] == NULL) rc = leat__fail_nomem(err, strlen(p->path), "a path");
        if (rc == 0 && !*there) rc = leat__path_exists(paths[i], there, err);
        leat__free(paths[i]);
    }
    return rc;
}

/* Opens the file of a complete shard under its current name; NULL when there is none. */
static int open_done(const leat_packer *p, const leat__journal_shard *s, leat__file **file, leat_error *err)
{
    char *paths[] = {leat__packer_partial_path(p, s->shard), leat__packer_final_path(p, s)};
    int rc = 0;
    for (size_t i = 0; i < LEAT_COUNT(paths); i++) {
        if (paths[i] == NULL) rc = leat__fail_nomem(err, strlen(p->path), "a path");
        if (rc == 0 && *file == NULL) {
            rc = leat__file_open(file, paths[i], LEAT__FILE_READ, err);
            if (rc == LEAT_ENOENT) rc = 0;
        }
        leat__free(paths[i]);
    }
    return rc;
}

/* Verifies the pages of a run that is partly published: they cannot be written again. */
static int check_finished(leat_packer *p, leat_error *err)
{
    leat__journal_record r;
    leat__file *file = NULL;
    uint32_t shard = UINT32_MAX;
    uint64_t pages = 0;
    int rc = 0;
    for (uint64_t at = leat__journal_first(); at < p->journal.end && rc == 0; at = r.next) {
        bool there;
        rc = leat__journal_read(&p->journal, at, &r, err);
        if (rc != 0 || r.kind != LEAT__RECORD_PAGE || r.page.shard >= p->done_count) continue;
        if (r.page.shard != shard) {
            leat__file_close(&file);
            shard = r.page.shard;
            pages = 0;
            rc = open_done(p, &p->done[shard], &file, err);
        }
        if (rc != 0 || file == NULL) continue; /* publishing reports a missing file */
        rc = page_matches(file, &r.page, &there, err);
        if (rc == 0 && !there)
            rc = leat__fail(err, LEAT_EDATA,
                            "%s: page %llu at byte %llu was damaged since it was written; "
                            "start again with `force`, without `resume`",
                            leat__file_path(file), (unsigned long long)pages,
                            (unsigned long long)r.page.offset);
        pages++;
    }
    leat__file_close(&file);
    return rc;
}

/* Detects a pack or set that was published and then removed before its journal was: nothing of that run is
 * left, so it starts from scratch. If only part of a set is missing, publishing reports it. */
static int settle_finished(leat_packer *p, leat_error *err)
{
    bool there = p->done_count == 0;
    for (size_t i = 0; i < p->done_count && !there; i++)
        LEAT_TRY(shard_is_there(p, &p->done[i], &there, err));
    if (there) return check_finished(p, err);
    p->finishing = false;
    p->done_count = 0;
    p->shard = 0;
    memset(&p->totals, 0, sizeof p->totals);
    return cut_back(p, leat__journal_first(), err);
}

/* Checks that the file being written contains all its pages. If it was removed, its part of the journal is
 * dropped too. */
static int settle(leat_packer *p, leat_error *err)
{
    uint64_t size = 0;
    if (p->finishing) return settle_finished(p, err);
    LEAT_TRY(open_partial(p, err));
    if (p->file != NULL) LEAT_TRY(leat__file_size(p->file, &size, err));
    if (p->file != NULL && size >= p->data_end) return leat__file_truncate(p->file, p->data_end, err);
    leat__file_close(&p->file);
    p->totals = p->at_start;
    return cut_back(p, p->journal_from, err);
}

/* Reverts an unfinished publish. Files get their names in order: while the first has none, everything can be
 * written again. */
static int take_back_finish(leat_packer *p, leat_error *err)
{
    bool waiting;
    char *first = leat__packer_partial_path(p, 0);
    if (first == NULL) return leat__fail_nomem(err, strlen(p->path), "a path");
    int rc = leat__path_exists(first, &waiting, err);
    if (rc == 0 && waiting) p->finishing = false;
    leat__free(first);
    return rc;
}

int leat__packer_replay(leat_packer *p, leat_error *err)
{
    uint64_t end, at = leat__journal_first();
    leat__journal_record r;
    safe s;
    p->journal.end = at;
    leat__packer_forget_shard(p);
    LEAT_TRY(survey(p, &end, &s, err));
    if (p->finishing) LEAT_TRY(take_back_finish(p, err));
    while (at < end) {
        bool keep;
        LEAT_TRY(leat__journal_read(&p->journal, at, &r, err));
        LEAT_TRY(apply(p, &r, &s, &keep, err));
        if (!keep) break;
        at = r.next;
    }
    LEAT_TRY(leat__journal_cut(&p->journal, at, err));
    return settle(p, err);
}
