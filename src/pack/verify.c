/* SPDX-License-Identifier: Apache-2.0
 *
 * Verifies a pack: reads every byte of every file and compares it with its checksum. Opening has
 * checked header, footer, roots and directory. Then the chunks of the index are verified, then the pages,
 * by one or several threads that take the next page from a counter. A damaged page is checked sample by
 * sample, to name the lost samples. The tables must also be consistent: pages are adjacent, samples are in
 * order in their pages, and the table of keys lists each sample once under its hash.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/reader_impl.h"

#define THREADS_MAX 256u
#define ROWS 128u

typedef struct job {
    leat_pack *pack;
    leat_pack_verify_opts opts;
    uint64_t total_bytes;
    atomic_uint_fast64_t next_page, done_bytes;
    atomic_bool stop;
    leat__mutex lock; /* protects callbacks, stats and failure */
    leat_pack_verify_stats stats;
    int rc; /* first error that is not damage */
    leat_error err;
} job;

static void report(job *j, const leat_pack_damage *d)
{
    leat__mutex_lock(&j->lock);
    j->stats.damaged++;
    if (d->sample >= 0) j->stats.damaged_samples++;
    if (j->opts.damage != NULL && !atomic_load(&j->stop) && j->opts.damage(j->opts.cookie, d) != 0)
        atomic_store(&j->stop, true);
    leat__mutex_unlock(&j->lock);
}

static void report_plain(job *j, const leat__file *file, int64_t page, uint64_t offset, const char *reason)
{
    leat_pack_damage d = {.path = leat__file_path(file),
                          .key = "",
                          .sample = -1,
                          .page = page,
                          .offset = (int64_t)offset,
                          .reason = reason};
    report(j, &d);
}

/* Reports damage and continues; any other error ends the job. */
static bool survived(job *j, const leat__file *file, int64_t page, int rc, const leat_error *err)
{
    if (rc == 0) return true;
    if (rc == LEAT_EDATA || rc == LEAT_EIO) {
        report_plain(j, file, page, err->offset >= 0 ? (uint64_t)err->offset : 0, err->message);
        return false;
    }
    leat__mutex_lock(&j->lock);
    if (j->rc == 0) {
        j->rc = rc;
        j->err = *err;
    }
    leat__mutex_unlock(&j->lock);
    atomic_store(&j->stop, true);
    return false;
}

static void advance(job *j, uint64_t bytes)
{
    uint64_t done = atomic_fetch_add(&j->done_bytes, bytes) + bytes;
    if (j->opts.progress == NULL) return;
    leat__mutex_lock(&j->lock);
    if (!atomic_load(&j->stop) && j->opts.progress(j->opts.cookie, done, j->total_bytes) != 0)
        atomic_store(&j->stop, true);
    leat__mutex_unlock(&j->lock);
}

/* ---- the index -------------------------------------------------------------------------- */

static void verify_chunks(job *j, leat__index *x)
{
    leat_error err;
    uint8_t *data = leat__alloc(LEAT__MEM_PACK, LEAT__PACK_CHUNK);
    if (data == NULL) {
        survived(j, x->file, -1, leat__fail_nomem(&err, LEAT__PACK_CHUNK, "verify"), &err);
        return;
    }
    for (uint64_t i = 0; i < x->chunk_count && !atomic_load(&j->stop); i++) {
        leat__error_reset(&err);
        survived(j, x->file, -1, leat__index_verify_chunk(x, i, data, &err), &err);
        if (i % 256 == 0)
            advance(j,
                    LEAT_MIN(LEAT__PACK_CHUNK * UINT64_C(256), x->footer.index_bytes - i * LEAT__PACK_CHUNK));
    }
    leat__free(data);
}

static uint64_t key_sum(uint64_t hash, uint64_t row)
{
    return leat__mix64(hash ^ leat__mix64(row + 1));
}

/* Sums (hash of key, number) over all samples, computed from the keys. */
static int sum_of_keys(leat__shard *s, uint64_t *sum, leat_error *err)
{
    leat__sample_place places[ROWS];
    const leat__section *keys = leat__index_section(s->index, LEAT__SECTION_KEYS);
    uint8_t *key = leat__alloc(LEAT__MEM_PACK, LEAT__PACK_KEY_MAX);
    if (key == NULL) return leat__fail_nomem(err, LEAT__PACK_KEY_MAX, "a key");
    int rc = 0;
    *sum = 0;
    for (uint64_t at = 0; at < s->index->footer.samples && rc == 0; at += ROWS) {
        size_t n = (size_t)LEAT_MIN(s->index->footer.samples - at, ROWS);
        uint64_t start;
        rc = leat__index_samples(s->index, at, n, places, &start, err);
        for (size_t i = 0; i < n && rc == 0; i++) {
            size_t size = (size_t)(places[i].e.key_end - start);
            rc = leat__index_read(s->index, keys, start, key, size, err);
            *sum += key_sum(leat__key_hash(key, size), at + i);
            start = places[i].e.key_end;
        }
    }
    leat__free(key);
    return rc;
}

/* Computes the same sum from the sorted table, and checks its order. */
static int sum_of_table(leat__shard *s, uint64_t *sum, bool *sorted, leat_error *err)
{
    const leat__section *hashes = leat__index_section(s->index, LEAT__SECTION_KEY_HASHES);
    const leat__section *rows = leat__index_section(s->index, LEAT__SECTION_KEY_ROWS);
    uint8_t h[512 * 8], r[512 * 4];
    uint64_t last_hash = 0, last_row = 0;
    *sum = 0;
    *sorted = true;
    for (uint64_t at = 0; at < s->index->footer.samples; at += 512) {
        size_t n = (size_t)LEAT_MIN(s->index->footer.samples - at, UINT64_C(512));
        LEAT_TRY(leat__index_read(s->index, hashes, at * 8, h, n * 8, err));
        LEAT_TRY(leat__index_read(s->index, rows, at * 4, r, n * 4, err));
        for (size_t i = 0; i < n; i++) {
            uint64_t hash = leat__load_u64(h + i * 8), row = leat__load_u32(r + i * 4);
            if (at + i > 0 && (hash < last_hash || (hash == last_hash && row <= last_row))) *sorted = false;
            last_hash = hash;
            last_row = row;
            *sum += key_sum(hash, row);
        }
    }
    return 0;
}

static void verify_keys(job *j, leat__shard *s)
{
    leat_error err;
    uint64_t a = 0, b = 0;
    bool sorted = true;
    leat__error_reset(&err);
    int rc = sum_of_keys(s, &a, &err);
    if (rc == 0) rc = sum_of_table(s, &b, &sorted, &err);
    if (!survived(j, s->index->file, -1, rc, &err)) return;
    if (a != b || !sorted)
        report_plain(j, s->index->file, -1, leat__index_section(s->index, LEAT__SECTION_KEY_HASHES)->offset,
                     "the table of keys does not match the keys");
}

/* ---- pages ------------------------------------------------------------------------------ */

static void report_sample(job *j, const leat__file *file, uint64_t sample, uint64_t page, uint64_t offset,
                          const char *reason)
{
    char key[1024] = "";
    size_t size = 0;
    if (leat_pack_key(j->pack, sample, key, sizeof key, &size, NULL) != 0) key[0] = '\0';
    leat_pack_damage d = {.path = leat__file_path(file),
                          .key = key,
                          .key_size = strlen(key),
                          .sample = (int64_t)sample,
                          .page = (int64_t)page,
                          .offset = (int64_t)offset,
                          .reason = reason};
    report(j, &d);
}

/* Checks each sample of a page; returns how many were damaged. */
static uint64_t verify_samples(job *j, const leat_pack_page *g, uint64_t page, const uint8_t *data)
{
    const leat__file *file = leat__pack_file(j->pack, g->shard);
    leat_pack_row rows[ROWS];
    leat_pack_cell cells[ROWS];
    uint64_t bad = 0, end = 0;
    leat_error err;
    for (uint64_t at = 0; at < g->samples && !atomic_load(&j->stop); at += ROWS) {
        size_t n = (size_t)LEAT_MIN(g->samples - at, ROWS);
        leat__error_reset(&err);
        if (!survived(j, file, (int64_t)page, leat_pack_rows(j->pack, g->first + at, n, rows, &err), &err))
            return bad + 1;
        for (uint32_t f = 0; f < j->pack->schema->count; f++)
            if (!survived(j, file, (int64_t)page, leat_pack_cells(j->pack, f, g->first + at, n, cells, &err),
                          &err))
                return bad + 1;
        for (size_t i = 0; i < n; i++) {
            const leat_pack_row *r = &rows[i];
            const char *reason = NULL;
            if (r->page != page || r->offset < end) reason = "overlaps the sample before it";
            else if (leat__hash64(data + r->offset, (size_t)r->size, 0) != r->check)
                reason = "checksum does not match";
            if (reason != NULL) {
                report_sample(j, file, g->first + at + i, page, g->offset + r->offset, reason);
                bad++;
            }
            end = r->offset + r->size;
        }
    }
    return bad;
}

static void verify_page(job *j, uint64_t page, uint8_t *data)
{
    leat_pack_page g;
    leat_error err;
    const leat__shard *s = leat__pack_shard_of_page(j->pack, page);
    const leat__file *file = s->index->file;
    leat__error_reset(&err);
    if (!survived(j, file, (int64_t)page, leat_pack_page_info(j->pack, page, &g, &err), &err)) return;
    bool whole = false;
    int rc = leat__pack_page_fetch(j->pack, &g, data, &whole, &err);
    if (!survived(j, file, (int64_t)page, rc, &err)) return;
    uint64_t bad = verify_samples(j, &g, page, data);
    if (!whole && bad == 0)
        report_plain(
            j, file, (int64_t)page, g.offset,
            "checksum of the page does not match, but those of its samples do: padding or dropped samples");
    leat__mutex_lock(&j->lock);
    j->stats.pages++;
    j->stats.samples += g.samples;
    leat__mutex_unlock(&j->lock);
    advance(j, g.bytes);
}

static uint64_t largest_page(const leat_pack *p)
{
    leat_pack_info info;
    (void)leat_pack_info_read(p, &info, sizeof info);
    return info.max_page_bytes;
}

static void verify_pages(void *arg)
{
    job *j = arg;
    leat_error err;
    size_t bytes;
    uint8_t *data = NULL;
    if (leat__u64_to_size(largest_page(j->pack), &bytes))
        data = leat__alloc_aligned(LEAT__MEM_PACK, bytes, LEAT__PACK_BLOCK);
    if (data == NULL) {
        survived(j, NULL, -1, leat__fail_nomem(&err, largest_page(j->pack), "a page"), &err);
        return;
    }
    while (!atomic_load(&j->stop)) {
        uint64_t page = atomic_fetch_add(&j->next_page, 1);
        if (page >= j->pack->pages) break;
        verify_page(j, page, data);
    }
    leat__free(data);
}

/* Checks that pages are adjacent from the header to the index. */
static void verify_tiling(job *j, leat__shard *s)
{
    leat_error err;
    uint64_t at = LEAT__PACK_BLOCK, samples, first = 0;
    for (uint64_t i = 0; i < s->index->footer.pages; i++) {
        leat__page_entry e;
        leat__error_reset(&err);
        if (!survived(j, s->index->file, (int64_t)(s->first_page + i),
                      leat__index_page(s->index, i, &e, &samples, &err), &err))
            return;
        if (e.offset != at || e.first != first) break;
        at += e.bytes;
        first += samples;
    }
    if (at != s->index->footer.index_offset || first != s->index->footer.samples)
        report_plain(j, s->index->file, -1, at, "pages do not follow each other");
}

static void run_pages(job *j)
{
    leat__thread threads[THREADS_MAX];
    uint32_t extra = LEAT_MIN(LEAT_MAX(j->opts.threads, 1u), THREADS_MAX) - 1, started = 0;
    memset(threads, 0, sizeof threads);
    /* Fewer threads than requested only make it slower. */
    while (started < extra &&
           leat__thread_start(&threads[started], "leat-verify", verify_pages, j, NULL) == 0)
        started++;
    verify_pages(j);
    for (uint32_t i = 0; i < started; i++) leat__thread_join(&threads[i]);
}

static int verify_open(job *j, leat_error *err)
{
    leat_pack_info info;
    (void)leat_pack_info_read(j->pack, &info, sizeof info);
    j->total_bytes = info.bytes;
    if (j->pack->set != NULL) verify_chunks(j, j->pack->set);
    for (uint32_t i = 0; i < j->pack->shard_count; i++) {
        verify_chunks(j, j->pack->shards[i].index);
        if (j->stats.damaged > 0) continue; /* incomplete tables cannot be compared */
        verify_tiling(j, &j->pack->shards[i]);
        verify_keys(j, &j->pack->shards[i]);
    }
    if (!atomic_load(&j->stop)) run_pages(j);
    j->stats.bytes = info.bytes;
    if (j->rc != 0) {
        if (err != NULL) *err = j->err;
        return j->rc;
    }
    if (j->stats.damaged > 0 && !atomic_load(&j->stop))
        return leat__fail(err, LEAT_EDATA, "%s: damaged, %llu findings", j->pack->path,
                          (unsigned long long)j->stats.damaged);
    return atomic_load(&j->stop) ? leat__fail(err, LEAT_ECANCELED, "%s: verify was stopped", j->pack->path)
                                 : 0;
}

int leat_pack_verify(const char *path, const leat_pack_verify_opts *opts, leat_pack_verify_stats *stats,
                     leat_error *err)
{
    LEAT_REQUIRE(path != NULL, err);
    job j = {.stop = false};
    leat_error why;
    leat__error_reset(&why);
    if (opts != NULL) memcpy(&j.opts, opts, LEAT_MIN((size_t)opts->struct_size, sizeof j.opts));
    leat__mutex_init(&j.lock);
    int rc = leat_pack_open(&j.pack, path, NULL, &why);
    if (rc == 0) {
        rc = verify_open(&j, err);
    } else {
        if (err != NULL) *err = why;
        if (rc == LEAT_EDATA || rc == LEAT_EFORMAT) {
            leat_pack_damage d = {.path = path,
                                  .key = "",
                                  .sample = -1,
                                  .page = -1,
                                  .offset = why.offset,
                                  .reason = why.message};
            report(&j, &d);
        }
    }
    if (stats != NULL) *stats = j.stats;
    leat_pack_close(&j.pack);
    leat__mutex_destroy(&j.lock);
    return rc;
}
