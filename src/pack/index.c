/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked reads of the index: see index.h. Checksums form a chain: footer -> roots -> a chunk of
 * checks (read once, kept) -> a chunk of the index (read once, one bit records that it was
 * verified). Two threads may verify the same chunk at the same time; both get the same result.
 */
#include "pack/index.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define CHECKS_PER_CHUNK (LEAT__PACK_CHUNK / 8)
#define REMOTE_GROUP                                                                                         \
    16u /* chunks of a remote index read at once: a round trip costs more than                               \
         * the bytes */
#define REMOTE_CACHE (UINT64_C(1) << 30) /* minimum cache of a remote index */
#define REMOTE_READS 6u                  /* attempts to read bytes that arrive damaged */

static int damaged(leat_error *err, const leat__index *x, uint64_t offset, const char *what)
{
    leat__fail(err, LEAT_EDATA, "%s: %s (byte %llu)", leat__file_path(x->file), what,
               (unsigned long long)offset);
    leat__error_at(err, NULL, -1, (int64_t)offset);
    return LEAT_EDATA;
}

/* Reads bytes that have a checksum. Bytes damaged in transit may be correct at the next attempt. */
static int read_checked(const leat__index *x, void *buf, size_t bytes, uint64_t at, uint64_t check,
                        const char *what, leat_error *err)
{
    bool remote = leat__file_remote(x->file) != NULL;
    for (uint32_t i = 0; i < (remote ? REMOTE_READS : 1u); i++) {
        if (i > 0) leat__file_settle(x->file); /* the cached bytes may be the damaged ones */
        LEAT_TRY(leat__file_pread(x->file, buf, bytes, at, err));
        if (leat__hash64(buf, bytes, 0) == check) return 0;
    }
    return damaged(err, x, at, what);
}

/* ---- opening ---------------------------------------------------------------------------- */

static int open_blocks(leat__index *x, leat_error *err)
{
    const char *path = leat__file_path(x->file);
    uint8_t block[LEAT__PACK_BLOCK];
    leat__footer told; /* from the header */
    uint64_t size;
    size_t got;
    LEAT_TRY(leat__file_size(x->file, &size, err));
    LEAT_TRY(leat__file_pread_some(x->file, block, sizeof block, 0, &got, err));
    memset(block + got, 0, sizeof block - got);
    LEAT_TRY(leat__header_decode(block, path, &told, err));
    if (size != told.file_bytes)
        return leat__fail(err, LEAT_EDATA, "%s: is %llu bytes, expected %llu (%s?)", path,
                          (unsigned long long)size, (unsigned long long)told.file_bytes,
                          size < told.file_bytes ? "truncated" : "bytes were added");
    LEAT_TRY(leat__file_pread(x->file, block, sizeof block, size - sizeof block, err));
    LEAT_TRY(leat__footer_decode(block, path, size, &x->footer, err));
    const leat__footer *f = &x->footer;
    if (f->check != told.check || f->kind != told.kind || f->major != told.major || f->minor != told.minor)
        return damaged(err, x, 24, "header and footer belong to different files");
    return 0;
}

static int open_roots(leat__index *x, leat_error *err)
{
    const leat__footer *f = &x->footer;
    size_t bytes;
    if (!leat__u64_to_size(f->roots_bytes, &bytes)) return leat__fail_nomem(err, f->roots_bytes, "roots");
    x->chunk_count = leat__ceil_div(f->index_bytes, LEAT__PACK_CHUNK);
    x->root_count = leat__ceil_div(f->checks_bytes, LEAT__PACK_CHUNK);
    x->roots = leat__alloc(LEAT__MEM_PACK, bytes);
    x->checks = leat__zalloc_array(LEAT__MEM_PACK, (size_t)x->root_count, sizeof *x->checks);
    x->verified = leat__zalloc_array(LEAT__MEM_PACK, (size_t)(x->chunk_count / 64 + 1), sizeof *x->verified);
    x->cache = leat__zalloc_array(LEAT__MEM_PACK, (size_t)x->chunk_count, sizeof *x->cache);
    if (x->roots == NULL || x->checks == NULL || x->verified == NULL || x->cache == NULL)
        return leat__fail_nomem(err, bytes, "the index");
    return read_checked(x, x->roots, bytes, leat__footer_roots_at(f), f->roots_check,
                        "checksum of the roots does not match", err);
}

static int open_directory(leat__index *x, leat_error *err)
{
    const leat__footer *f = &x->footer;
    uint64_t at = leat__footer_directory_at(f);
    size_t bytes = (size_t)f->directory_bytes;
    uint8_t *data = leat__alloc(LEAT__MEM_PACK, bytes);
    x->sections = LEAT_NEW_ARRAY(PACK, leat__section, (size_t)f->sections);
    int rc = 0;
    if (data == NULL || x->sections == NULL) {
        rc = leat__fail_nomem(err, bytes, "the directory");
        goto out;
    }
    LEAT_GO(rc, out,
            read_checked(x, data, bytes, at, f->directory_check, "checksum of the directory does not match",
                         err));
    LEAT_GO(rc, out, leat__directory_decode(data, f, leat__file_path(x->file), x->sections, err));
    for (uint64_t i = f->sections; i-- > 0;)
        if (x->sections[i].kind < LEAT_COUNT(x->first)) x->first[x->sections[i].kind] = &x->sections[i];
out:
    leat__free(data);
    return rc;
}

/* Checks that the required sections exist and have the length given by the counts. */
static int check_sections(leat__index *x, leat_error *err)
{
    const leat__footer *f = &x->footer;
    const struct {
        uint32_t kind, width;
        uint64_t count;
    } want[] = {
        {LEAT__SECTION_PAGES, LEAT__PACK_PAGE_WIDTH, f->pages},
        {LEAT__SECTION_SAMPLES, LEAT__PACK_SAMPLE_WIDTH, f->samples},
        {LEAT__SECTION_KEY_HASHES, 8, f->samples},
        {LEAT__SECTION_KEY_ROWS, 4, f->samples},
    };
    uint64_t at = leat__footer_directory_at(f);
    const uint32_t always[] = {LEAT__SECTION_SCHEMA, LEAT__SECTION_PROVENANCE, LEAT__SECTION_BLOB_NAMES,
                               f->kind == LEAT__PACK_SET ? LEAT__SECTION_SHARDS : LEAT__SECTION_KEYS};
    for (size_t i = 0; i < LEAT_COUNT(always); i++)
        if (leat__index_section(x, always[i]) == NULL) return damaged(err, x, at, "a section is missing");
    if (f->kind == LEAT__PACK_SET) return 0;
    for (size_t i = 0; i < LEAT_COUNT(want); i++) {
        const leat__section *s = leat__index_section(x, want[i].kind);
        if (s == NULL || s->width != want[i].width || s->length != want[i].count * s->width)
            return damaged(err, x, at, "a section is missing or has the wrong size");
    }
    return 0;
}

int leat__index_open(leat__index **out, leat__file_pool *pool, const char *path, bool direct,
                     uint64_t cache_limit, leat_error *err)
{
    *out = NULL;
    leat__index *x = LEAT_NEW(PACK, leat__index);
    if (x == NULL) return leat__fail_nomem(err, sizeof *x, "a pack");
    x->cache_limit = cache_limit;
    int rc;
    LEAT_GO(rc, out,
            leat__file_open_pooled(&x->file, pool, path, direct ? LEAT__FILE_DIRECT : LEAT__FILE_READ, err));
    if (leat__file_remote(x->file) != NULL) x->cache_limit = LEAT_MAX(cache_limit, REMOTE_CACHE);
    rc = open_blocks(x, err);
    const bool remote = leat__file_remote(x->file) != NULL;
    for (uint32_t i = 1; remote && i < (rc == LEAT_EDATA ? REMOTE_READS : rc == LEAT_EFORMAT ? 2 : 0); i++) {
        leat__file_settle(x->file);
        rc = open_blocks(x, err);
    }
    if (rc != 0) goto out;
    LEAT_GO(rc, out, open_roots(x, err));
    LEAT_GO(rc, out, open_directory(x, err));
    LEAT_GO(rc, out, check_sections(x, err));
    *out = x;
    x = NULL;
out:
    leat__index_close(&x);
    return rc;
}

void leat__index_close(leat__index **index)
{
    leat__index *x = *index;
    if (x == NULL) return;
    for (uint64_t i = 0; x->checks != NULL && i < x->root_count; i++) leat__free(atomic_load(&x->checks[i]));
    /* If nothing was cached, skip a walk over millions of empty entries. */
    for (uint64_t i = 0; atomic_load(&x->cached) > 0 && i < x->chunk_count; i++)
        leat__free(atomic_load(&x->cache[i]));
    leat__free(x->checks);
    leat__free(x->cache);
    leat__free(x->verified);
    leat__free(x->roots);
    leat__free(x->sections);
    leat__file_close(&x->file);
    leat__free(x);
    *index = NULL;
}

/* ---- checked reads ---------------------------------------------------------------------- */

/* Returns chunk `i` of the checks, verified against its root; it stays in memory. */
static int checks_chunk(leat__index *x, uint64_t i, const uint64_t **checks, leat_error *err)
{
    uint64_t *have = atomic_load_explicit(&x->checks[i], memory_order_acquire);
    if (have == NULL) {
        uint64_t at = i * LEAT__PACK_CHUNK;
        size_t bytes = (size_t)LEAT_MIN(x->footer.checks_bytes - at, LEAT__PACK_CHUNK);
        uint64_t *fresh = leat__alloc(LEAT__MEM_PACK, bytes);
        if (fresh == NULL) return leat__fail_nomem(err, bytes, "the index");
        at += leat__footer_checks_at(&x->footer);
        int rc = read_checked(x, fresh, bytes, at, x->roots[i], "checksums of the index are damaged", err);
        if (rc != 0) {
            leat__free(fresh);
            return rc;
        }
        if (atomic_compare_exchange_strong(&x->checks[i], &have, fresh)) have = fresh;
        else leat__free(fresh); /* another thread was first */
    }
    *checks = have;
    return 0;
}

static bool is_verified(const leat__index *x, uint64_t chunk)
{
    LEAT_ASSERT(chunk < x->chunk_count);
    return atomic_load_explicit(&x->verified[chunk / 64], memory_order_acquire) >> (chunk % 64) & 1;
}

static void set_verified(leat__index *x, uint64_t chunk)
{
    LEAT_ASSERT(chunk < x->chunk_count);
    atomic_fetch_or_explicit(&x->verified[chunk / 64], UINT64_C(1) << (chunk % 64), memory_order_release);
}

int leat__index_verify_chunk(leat__index *x, uint64_t chunk, uint8_t *data, leat_error *err)
{
    LEAT_ASSERT(chunk < x->chunk_count);
    const uint64_t *checks = NULL;
    uint64_t at = chunk * LEAT__PACK_CHUNK;
    size_t bytes = (size_t)LEAT_MIN(x->footer.index_bytes - at, LEAT__PACK_CHUNK);
    at += x->footer.index_offset;
    LEAT_TRY(checks_chunk(x, chunk / CHECKS_PER_CHUNK, &checks, err));
    LEAT_TRY(read_checked(x, data, bytes, at, checks[chunk % CHECKS_PER_CHUNK],
                          "the index is damaged in the 64 KiB from here", err));
    set_verified(x, chunk);
    return 0;
}

/* Caches a verified chunk if there is room; true when the cache now owns `data`. */
static bool keep_chunk(leat__index *x, uint64_t chunk, uint8_t *data)
{
    LEAT_ASSERT(is_verified(x, chunk));
    uint8_t *none = NULL;
    if (atomic_fetch_add(&x->cached, LEAT__PACK_CHUNK) + LEAT__PACK_CHUNK <= x->cache_limit &&
        atomic_compare_exchange_strong(&x->cache[chunk], &none, data))
        return true;
    atomic_fetch_sub(&x->cached, LEAT__PACK_CHUNK);
    return false;
}

/* Prefetches the missing chunks from `chunk` on in one request, and keeps those that verify. Only
 * a hint: a reader that needs a missing chunk reads it and reports the error. */
static void fetch_group(leat__index *x, uint64_t chunk)
{
    uint64_t n = 1;
    const uint64_t *checks = NULL;
    while (n < REMOTE_GROUP && chunk + n < x->chunk_count &&
           (chunk + n) / CHECKS_PER_CHUNK == chunk / CHECKS_PER_CHUNK &&
           atomic_load_explicit(&x->cache[chunk + n], memory_order_relaxed) == NULL)
        n++;
    uint64_t at = chunk * LEAT__PACK_CHUNK;
    uint64_t bytes = LEAT_MIN(x->footer.index_bytes - at, n * LEAT__PACK_CHUNK);
    uint8_t *all = leat__alloc(LEAT__MEM_PACK, (size_t)bytes);
    if (all != NULL && checks_chunk(x, chunk / CHECKS_PER_CHUNK, &checks, NULL) == 0 &&
        leat__file_pread(x->file, all, (size_t)bytes, x->footer.index_offset + at, NULL) == 0) {
        for (uint64_t i = 0; i < n; i++) {
            size_t len = (size_t)LEAT_MIN(bytes - i * LEAT__PACK_CHUNK, LEAT__PACK_CHUNK);
            const uint8_t *from = all + i * LEAT__PACK_CHUNK;
            if (leat__hash64(from, len, 0) != checks[(chunk + i) % CHECKS_PER_CHUNK]) continue;
            uint8_t *one = leat__alloc(LEAT__MEM_PACK, LEAT__PACK_CHUNK);
            if (one == NULL) break;
            memcpy(one, from, len);
            set_verified(x, chunk + i);
            if (!keep_chunk(x, chunk + i, one)) leat__free(one);
        }
    }
    leat__free(all);
}

/* Reads part of one chunk at `offset` in the index. */
static int read_in_chunk(leat__index *x, uint64_t offset, void *buf, size_t len, leat_error *err)
{
    LEAT_ASSERT(offset % LEAT__PACK_CHUNK + len <= LEAT__PACK_CHUNK);
    LEAT_ASSERT(offset + len <= x->footer.index_bytes);
    uint64_t chunk = offset / LEAT__PACK_CHUNK;
    const uint8_t *have = atomic_load_explicit(&x->cache[chunk], memory_order_acquire);
    if (have != NULL) {
        memcpy(buf, have + offset % LEAT__PACK_CHUNK, len);
        return 0;
    }
    if (leat__file_remote(x->file) != NULL && !is_verified(x, chunk)) {
        fetch_group(x, chunk);
        have = atomic_load_explicit(&x->cache[chunk], memory_order_acquire);
        if (have != NULL) {
            memcpy(buf, have + offset % LEAT__PACK_CHUNK, len);
            return 0;
        }
    }
    bool room = atomic_load_explicit(&x->cached, memory_order_relaxed) + LEAT__PACK_CHUNK <= x->cache_limit;
    if (is_verified(x, chunk) && !room)
        return leat__file_pread(x->file, buf, len, x->footer.index_offset + offset, err);
    uint8_t *data = leat__alloc(LEAT__MEM_PACK, LEAT__PACK_CHUNK);
    if (data == NULL) return leat__fail_nomem(err, LEAT__PACK_CHUNK, "the index");
    int rc = leat__index_verify_chunk(x, chunk, data, err);
    if (rc == 0) memcpy(buf, data + offset % LEAT__PACK_CHUNK, len);
    if (rc != 0 || !keep_chunk(x, chunk, data)) leat__free(data);
    return rc;
}

int leat__index_read(leat__index *x, const leat__section *s, uint64_t offset, void *buf, size_t len,
                     leat_error *err)
{
    if (!leat__range_inside(offset, len, s->length))
        return leat__fail(err, LEAT_EINVAL, "%s: read past the end of a section", leat__file_path(x->file));
    uint64_t at = s->offset - x->footer.index_offset + offset;
    LEAT_ASSERT(s->offset >= x->footer.index_offset);
    int rc = 0;
    for (size_t done = 0; done < len && rc == 0;) {
        size_t n = (size_t)LEAT_MIN(len - done, LEAT__PACK_CHUNK - (at + done) % LEAT__PACK_CHUNK);
        rc = read_in_chunk(x, at + done, (char *)buf + done, n, err);
        done += n;
    }
    return rc;
}

void leat__index_touch(const leat__index *x, const leat__section *s, uint64_t offset, size_t len)
{
    if (len == 0 || !leat__range_inside(offset, len, s->length)) return;
    uint64_t at = s->offset - x->footer.index_offset + offset;
    for (uint64_t line = at & ~UINT64_C(63); line < at + len; line += 64) {
        const uint8_t *have = atomic_load_explicit(&x->cache[line / LEAT__PACK_CHUNK], memory_order_acquire);
        if (have != NULL) __builtin_prefetch(have + line % LEAT__PACK_CHUNK);
    }
}

int leat__index_load(leat__index *x, const leat__section *s, size_t max, size_t padding, void **data,
                     size_t *len, leat_error *err)
{
    *data = NULL;
    *len = 0;
    if (s->length > max)
        return leat__fail(err, LEAT_ELIMIT, "%s: a section has %s, more than the limit of %s",
                          leat__file_path(x->file), leat__as_size(s->length).text, leat__as_size(max).text);
    size_t bytes = (size_t)s->length;
    uint8_t *block = leat__alloc_aligned(LEAT__MEM_PACK, bytes + padding, 64);
    if (block == NULL) return leat__fail_nomem(err, bytes + padding, "a section");
    int rc = leat__index_read(x, s, 0, block, bytes, err);
    if (rc != 0) {
        leat__free(block);
        return rc;
    }
    memset(block + bytes, 0, padding);
    *data = block;
    *len = bytes;
    return 0;
}

/* ---- entries ---------------------------------------------------------------------------- */

int leat__index_page(leat__index *x, uint64_t page, leat__page_entry *e, uint64_t *samples, leat_error *err)
{
    const leat__footer *f = &x->footer;
    const leat__section *s = leat__index_section(x, LEAT__SECTION_PAGES);
    uint8_t bytes[2 * LEAT__PACK_PAGE_WIDTH];
    bool last = page + 1 == f->pages;
    if (page >= f->pages)
        return leat__fail(err, LEAT_EINVAL, "%s: there is no page %llu, only %llu", leat__file_path(x->file),
                          (unsigned long long)page, (unsigned long long)f->pages);
    LEAT_TRY(leat__index_read(x, s, page * LEAT__PACK_PAGE_WIDTH, bytes,
                              (last ? 1 : 2) * LEAT__PACK_PAGE_WIDTH, err));
    leat__page_entry_load(bytes, e);
    uint64_t end = f->samples;
    if (!last) {
        leat__page_entry next;
        leat__page_entry_load(bytes + LEAT__PACK_PAGE_WIDTH, &next);
        end = next.first;
    }
    if (e->offset < LEAT__PACK_BLOCK || e->bytes == 0 || e->bytes > f->max_page_bytes ||
        (e->offset | e->bytes) % leat__footer_page_align(f) != 0 ||
        !leat__range_inside(e->offset, e->bytes, f->index_offset) || e->first >= end || end > f->samples)
        return damaged(err, x, s->offset + page * LEAT__PACK_PAGE_WIDTH,
                       "impossible entry in the table of pages");
    *samples = end - e->first;
    return 0;
}

/* Checks all values of an entry against its page, its neighbour and the limits. */
static bool sample_possible(const leat__index *x, const leat__sample_entry *e, uint64_t sample,
                            const leat__page_entry *page, uint64_t page_samples, uint64_t key_start)
{
    const leat__section *keys = leat__index_section(x, LEAT__SECTION_KEYS);
    return sample >= page->first && sample - page->first < page_samples &&
           e->offset % LEAT__PACK_ALIGN == 0 && leat__range_inside(e->offset, e->size, page->bytes) &&
           e->size <= x->footer.max_sample_bytes && e->key_end >= key_start && e->key_end <= keys->length &&
           e->key_end - key_start <= LEAT__PACK_KEY_MAX;
}

#define BATCH 128u /* entries read at once */

int leat__index_samples(leat__index *x, uint64_t first, size_t count, leat__sample_place *places,
                        uint64_t *key_start, leat_error *err)
{
    const leat__section *s = leat__index_section(x, LEAT__SECTION_SAMPLES);
    uint8_t bytes[(BATCH + 1) * LEAT__PACK_SAMPLE_WIDTH];
    leat__page_entry page = {0};
    uint64_t page_samples = 0, page_number = UINT64_MAX, key_end = 0;
    *key_start = 0;
    if (!leat__range_inside(first, count, x->footer.samples))
        return leat__fail(err, LEAT_EINVAL, "%s: samples %llu+%llu of %llu", leat__file_path(x->file),
                          (unsigned long long)first, (unsigned long long)count,
                          (unsigned long long)x->footer.samples);
    for (size_t done = 0; done < count;) {
        /* Includes the entry before: a key starts at the end of the previous one. */
        uint64_t from = first + done, before = from > 0 ? 1 : 0;
        size_t n = LEAT_MIN(count - done, (size_t)BATCH);
        LEAT_TRY(leat__index_read(x, s, (from - before) * LEAT__PACK_SAMPLE_WIDTH, bytes,
                                  (n + before) * LEAT__PACK_SAMPLE_WIDTH, err));
        if (before) key_end = leat__load_u64(bytes + 24);
        if (done == 0) *key_start = key_end;
        for (size_t i = 0; i < n; i++) {
            leat__sample_entry *e = &places[done + i].e;
            leat__sample_entry_load(bytes + (i + before) * LEAT__PACK_SAMPLE_WIDTH, e);
            uint64_t at = s->offset + (from + i) * LEAT__PACK_SAMPLE_WIDTH;
            if (e->page >= x->footer.pages) return damaged(err, x, at, "sample in no page");
            if (e->page != page_number) LEAT_TRY(leat__index_page(x, e->page, &page, &page_samples, err));
            page_number = e->page;
            if (!sample_possible(x, e, from + i, &page, page_samples, key_end))
                return damaged(err, x, at, "impossible entry in the table of samples");
            places[done + i].page_offset = page.offset;
            key_end = e->key_end;
        }
        done += n;
    }
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------- */

#define WINDOW 256u /* hashes scanned at once */

static int hash_at(leat__index *x, const leat__section *s, uint64_t i, uint64_t *hash, leat_error *err)
{
    uint8_t bytes[8];
    LEAT_TRY(leat__index_read(x, s, i * 8, bytes, sizeof bytes, err));
    *hash = leat__load_u64(bytes);
    return 0;
}

/* Interpolates the position of `hash` between two bounds, assuming evenly distributed hashes. */
static uint64_t guess(uint64_t hash, uint64_t low, uint64_t high, uint64_t n)
{
    LEAT_ASSERT(n > 0);
    if (high <= low) return n / 2;
    double share = (double)(hash - low) / (double)(high - low);
    uint64_t at = (uint64_t)(share * (double)n);
    return LEAT_MIN(at, n - 1);
}

/* Finds the first entry not below `hash`: interpolation search with a bisection after each step, so that no
 * content makes it much slower than bisection. */
static int lower_bound(leat__index *x, const leat__section *s, uint64_t hash, uint64_t *pos, leat_error *err)
{
    uint64_t lo = 0, hi = s->length / 8, low = 0, high = UINT64_MAX, seen;
    bool halve = false;
    while (hi - lo > WINDOW) {
        uint64_t mid = lo + (halve || hash < low ? (hi - lo) / 2 : guess(hash, low, high, hi - lo));
        LEAT_TRY(hash_at(x, s, mid, &seen, err));
        if (seen < hash) {
            lo = mid + 1;
            low = seen;
        } else {
            hi = mid;
            high = seen;
        }
        halve = !halve;
    }
    uint8_t window[WINDOW * 8];
    LEAT_ASSERT(lo <= hi && hi - lo <= WINDOW);
    LEAT_TRY(leat__index_read(x, s, lo * 8, window, (size_t)(hi - lo) * 8, err));
    uint64_t i = 0;
    while (i < hi - lo && leat__load_u64(window + i * 8) < hash) i++;
    *pos = lo + i;
    return 0;
}

static int key_equals(leat__index *x, uint64_t sample, const void *key, size_t size, bool *equal,
                      leat_error *err)
{
    leat__sample_place place;
    uint64_t start = 0;
    uint8_t part[1024];
    *equal = false;
    LEAT_TRY(leat__index_samples(x, sample, 1, &place, &start, err));
    if (place.e.key_end - start != size) return 0;
    const leat__section *keys = leat__index_section(x, LEAT__SECTION_KEYS);
    for (size_t at = 0; at < size;) {
        size_t n = LEAT_MIN(size - at, sizeof part);
        LEAT_TRY(leat__index_read(x, keys, start + at, part, n, err));
        if (memcmp(part, (const char *)key + at, n) != 0) return 0;
        at += n;
    }
    *equal = true;
    return 0;
}

int leat__index_find(leat__index *x, const void *key, size_t size, uint64_t least, uint64_t *sample,
                     leat_error *err)
{
    const leat__section *hashes = leat__index_section(x, LEAT__SECTION_KEY_HASHES);
    const leat__section *rows = leat__index_section(x, LEAT__SECTION_KEY_ROWS);
    uint64_t hash = leat__key_hash(key, size), pos, seen;
    LEAT_TRY(lower_bound(x, hashes, hash, &pos, err));
    /* Only few keys share a hash by chance. */
    for (uint64_t tries = 0; pos < hashes->length / 8 && tries < 4096; pos++) {
        uint8_t bytes[4];
        bool equal;
        LEAT_TRY(hash_at(x, hashes, pos, &seen, err));
        if (seen != hash) break;
        LEAT_TRY(leat__index_read(x, rows, pos * 4, bytes, sizeof bytes, err));
        uint64_t row = leat__load_u32(bytes);
        if (row >= x->footer.samples)
            return damaged(err, x, rows->offset + pos * 4, "key of a sample that does not exist");
        if (row < least) continue; /* rows of equal hashes are in ascending order */
        LEAT_TRY(key_equals(x, row, key, size, &equal, err));
        tries += !equal;
        if (equal) {
            *sample = row;
            return 0;
        }
    }
    return LEAT_ENOENT; /* the caller writes the message */
}
