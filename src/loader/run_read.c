/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the samples of runs. Completions of reads run on the lane of io/aio.h and never wait; the
 * last one of a run notifies the engine.
 */
#include "loader/run_read.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "loader/page_ahead.h"
#include "loader/run_list.h"
#include "pack/reader.h"
#include "probe/meter.h"

#define WARM_RUNS 16 /* runs without a miss before only one sample of a run is checked */

void leat__run_sample_fail(leat__run_sample *s, int rc, const leat_error *why)
{
    s->rc = rc;
    if (why == NULL || s->error != NULL) return;
    s->error = leat__alloc(LEAT__MEM_LOADER, sizeof *s->error);
    if (s->error != NULL) *s->error = *why;
}

/* Returns the memory to read the sample without the cache. */
static uint64_t slot_bytes(const leat__run_env *env, uint64_t size)
{
    if (env->cache != NULL) return size + 2 * LEAT__IO_ALIGN + LEAT_PACK_PADDING;
    return (size + LEAT_PACK_PADDING + 63) & ~UINT64_C(63);
}

static const leat__file *file_of(const leat__run_sample *s)
{
    return leat__pack_file(s->run->env->pack, s->row.shard);
}

/* Returns the disk cache for a sample of a remote pack; else NULL. */
static leat__disk *disk_of(const leat__run_sample *s)
{
    return s->run->env->disk != NULL && leat__file_remote(file_of(s)) != NULL ? s->run->env->disk : NULL;
}

uint64_t leat__run_sample_bytes(const leat__run_sample *s)
{
    return slot_bytes(s->run->env, disk_of(s) != NULL ? s->page.bytes : s->row.size);
}

/* ---- on the lane of reads ---- */

static void one_done(leat__run *r)
{
    LEAT_ASSERT(atomic_load(&r->pending) > 0);
    if (atomic_fetch_sub(&r->pending, 1) != 1) return;
    if (r->ahead != NULL) leat__page_ahead_done(r);
    else leat_task_done(r->task, 0, NULL);
}

static void count_read(leat__run_env *env, uint64_t bytes, uint64_t ns)
{
    atomic_fetch_add_explicit(&env->reads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&env->read_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&env->read_ns, ns, memory_order_relaxed);
}

/* Returns the bytes to read for this range, because direct reads need whole blocks. */
static leat__span span_of(const leat__run_sample *s, uint64_t offset, uint64_t len)
{
    if (leat__file_remote(file_of(s)) != NULL) return (leat__span){offset, len, 0};
    return leat__span_around(offset, len);
}

/* Returns the place of a page in the disk cache, which has all shards concatenated. */
static uint64_t disk_offset(const leat__run_sample *s, uint64_t offset)
{
    LEAT_ASSERT(s->row.shard < leat__pack_shards(s->run->env->pack));
    return s->run->env->disk_base[s->row.shard] + offset;
}

/* Releases the sample's claim on its page, if it has one. */
static void release_claim(leat__run_sample *s)
{
    if (s->claimed) leat__disk_release(s->run->env->disk, s->row.page);
    s->claimed = false;
}

/* Submits the request of a sample: to the disk cache if that has the page, else to the pack. */
static void submit_now(leat__run_sample *s)
{
    leat__run_env *env = s->run->env;
    s->from_disk = disk_of(s) != NULL && leat__disk_has(env->disk, s->row.page);
    if (s->from_disk) {
        release_claim(s); /* another process has stored the page meanwhile */
        atomic_fetch_add_explicit(&env->disk_hits, 1, memory_order_relaxed);
        s->req.file = leat__disk_file(env->disk);
        s->req.offset = disk_offset(s, s->req.offset);
    }
    leat__aio_submit(env->aio, &s->req);
}

static void page_on_disk(leat__disk_waiter *w)
{
    leat__run_sample *s = (leat__run_sample *)((char *)w - offsetof(leat__run_sample, disk_waiter));
    s->claimed = w->claimed;
    submit_now(s);
}

/* Submits a request. A page that is missing in the disk cache is fetched by one thread of the machine; the
 * others wait for it. `page`: the request is for a whole page. */
static void submit(leat__run_sample *s, bool page)
{
    leat__run_env *env = s->run->env;
    LEAT_ASSERT(!s->claimed);
    bool fetch =
        page && disk_of(s) != NULL && !leat__disk_full(env->disk) && !leat__disk_has(env->disk, s->row.page);
    if (fetch) s->claimed = leat__disk_claim(env->disk, s->row.page);
    if (!fetch || s->claimed) {
        submit_now(s);
        return;
    }
    s->disk_waiter = (leat__disk_waiter){.page = s->row.page, .ready = page_on_disk};
    leat__disk_wait(env->disk, &s->disk_waiter);
}

/* Drops a page that is wrong in the disk cache: it does not count as a hit, and is fetched again. */
static void drop_from_disk(leat__run_sample *s)
{
    leat__run_env *env = s->run->env;
    leat__disk_forget(env->disk, s->row.page);
    if (s->from_disk) atomic_fetch_sub_explicit(&env->disk_hits, 1, memory_order_relaxed);
    s->from_disk = false;
}

static void sample_saved(leat__disk_saver *saver)
{
    one_done(((leat__run_sample *)((char *)saver - offsetof(leat__run_sample, saver)))->run);
}

static void sample_read(leat__aio_req *req)
{
    leat__run_sample *s = req->cookie;
    leat__run_env *env = s->run->env;
    count_read(env, req->len, req->done_ns - req->submit_ns);
    if (req->rc != 0 && s->from_disk) { /* the file was truncated or cannot be read */
        drop_from_disk(s);
        req->file = file_of(s);
        req->offset -= disk_offset(s, 0);
        leat__aio_submit(env->aio, req);
        return;
    }
    if (req->rc != 0) {
        leat_error why;
        leat__run_sample_fail(s, leat__aio_error(req, &why), &why);
    } else if (s->claimed &&
               leat__pack_page_check(env->pack, s->row.page, &s->page, s->direct.data, NULL) == 0) {
        s->claimed = false; /* the save releases the claim */
        s->saver = (leat__disk_saver){.page = s->row.page,
                                      .offset = disk_offset(s, s->page.offset),
                                      .data = s->direct.data,
                                      .len = s->page.bytes,
                                      .done = sample_saved};
        leat__disk_save(env->disk, &s->saver);
        return;
    }
    release_claim(s);
    one_done(s->run);
}

/* Reads only this sample: into the run's buffer, or into a separate aligned block for direct reads. */
static void read_sample(leat__run_sample *s, uint8_t *slot)
{
    leat__run_env *env = s->run->env;
    leat__span span = {s->row.file_offset, s->row.size, 0};
    bool whole = false;

    if (slot == NULL) {
        /* a page that will be cached on disk is read as a whole */
        whole = disk_of(s) != NULL && !leat__disk_full(env->disk) && !leat__disk_has(env->disk, s->row.page);
        if (whole) span = (leat__span){s->page.offset, s->page.bytes, s->row.offset};
        else span = span_of(s, span.offset, span.len);
        s->direct = leat__blocks_take(env->blocks, span.len + LEAT_PACK_PADDING);
        if (s->direct.data == NULL) {
            leat_error why;
            leat__run_sample_fail(s, leat__fail_nomem(&why, span.len, "a sample"), &why);
            one_done(s->run);
            return;
        }
        slot = s->direct.data;
    }
    LEAT_ASSERT(s->direct.data == NULL || span.len + LEAT_PACK_PADDING <= s->direct.bytes);
    memset(slot + span.len, 0, LEAT_PACK_PADDING);
    s->data = slot + span.lead;
    s->req = (leat__aio_req){.file = file_of(s),
                             .offset = span.offset,
                             .buf = slot,
                             .len = span.len,
                             .done = sample_read,
                             .cookie = s};
    submit(s, whole);
}

/* Returns the blocks around a page, which the cache holds, because direct reads read whole blocks. */
static leat__span page_span(const leat__run_sample *s)
{
    return span_of(s, s->page.offset, s->page.bytes);
}

static uint64_t page_memory(const leat__run_sample *s)
{
    leat__span span = page_span(s);
    return LEAT_MAX(span.len, span.lead + s->page.bytes + LEAT_PACK_PADDING);
}

static void use_page(leat__run_sample *s, leat__cached *page)
{
    LEAT_ASSERT(page->data != NULL && s->cached == NULL);
    s->cached = page;
    s->data = page->data + page_span(s).lead + s->row.offset;
}

/* Verifies a page. One with a single large sample is left to the worker, which reads it anyway and then has
 * it in its CPU cache; this thread has reads to start. A page that will be saved on disk is verified first.
 */
static int check_page(const leat__run_sample *s, leat__cached *page, leat_error *err)
{
    if (s->page.samples == 1 && !s->claimed) return 0;
    LEAT_TRY(
        leat__pack_page_check(s->run->env->pack, s->row.page, &s->page, page->data + page_span(s).lead, err));
    page->checked = true;
    return 0;
}

/* A page being stored in the disk cache. */
typedef struct saving {
    leat__disk_saver saver;
    leat__cache *cache;
    leat__cached *page;
} saving;

static void page_saved(leat__disk_saver *saver)
{
    saving *v = (saving *)((char *)saver - offsetof(saving, saver));
    leat__cache_unpin(v->cache, v->page);
    leat__free(v);
}

/* Saves a page as soon as it has arrived, not when its samples are used. A run that holds a claim on one page
 * and waits for another could deadlock with other processes. */
static void save_page(leat__run_sample *s, leat__cached *page)
{
    leat__run_env *env = s->run->env;
    saving *v = LEAT_NEW(LOADER, saving);
    if (v == NULL) { /* out of memory: the page is not saved */
        release_claim(s);
        return;
    }
    s->claimed = false; /* the save releases the claim */
    leat__cache_pin(env->cache, page);
    *v = (saving){.saver = {.page = s->row.page,
                            .offset = disk_offset(s, s->page.offset),
                            .data = page->data + page_span(s).lead,
                            .len = s->page.bytes,
                            .done = page_saved},
                  .cache = env->cache,
                  .page = page};
    leat__disk_save(env->disk, &v->saver);
}

static void read_page(leat__run_sample *s, leat__cached *page);

/* Called when the page could not be read: tries the sample alone, which may still be valid. */
static void do_without_page(leat__run_sample *s)
{
    if (s->run->ahead != NULL) one_done(s->run); /* the run that needs the sample reads it */
    else read_sample(s, NULL);
}

static void page_read(leat__aio_req *req)
{
    leat__run_sample *s = req->cookie;
    leat__run_env *env = s->run->env;
    leat__cached *page = s->cached;
    LEAT_ASSERT(page != NULL);
    leat_error why;

    count_read(env, req->len, req->done_ns - req->submit_ns);
    /* not earlier, else the requesting thread would fault in new memory before its next request */
    memset(page->data + req->len, 0, page->bytes - req->len);
    int rc = req->rc != 0 ? leat__aio_error(req, &why) : check_page(s, page, &why);
    if (rc != 0 && s->from_disk) { /* the disk cache is damaged: read from the pack */
        drop_from_disk(s);
        read_page(s, page);
        return;
    }
    if (rc != 0) release_claim(s);
    s->cached = NULL;
    leat__cache_filled(env->cache, page, rc);
    if (rc == 0) {
        use_page(s, page);
        if (s->claimed) save_page(s, page);
        one_done(s->run);
    } else {
        do_without_page(s);
    }
}

static void page_ready(leat__cache_waiter *w, leat__cached *page)
{
    leat__run_sample *s = (leat__run_sample *)((char *)w - offsetof(leat__run_sample, waiter));
    if (page != NULL) {
        use_page(s, page);
        one_done(s->run);
    } else {
        do_without_page(s);
    }
}

static void read_page(leat__run_sample *s, leat__cached *page)
{
    leat__span span = page_span(s);
    LEAT_ASSERT(span.len <= page->bytes);

    s->cached = page;
    s->req = (leat__aio_req){.file = file_of(s),
                             .offset = span.offset,
                             .buf = page->data,
                             .len = span.len,
                             .done = page_read,
                             .cookie = s};
    submit(s, true);
}

static void read_through_cache(leat__run_sample *s)
{
    LEAT_ASSERT(s->cached == NULL);
    leat__run_env *env = s->run->env;
    leat__cached *page;

    s->waiter.ready = page_ready;
    leat__cache_answer answer =
        leat__cache_get(env->cache, env->cache_user, s->row.page, page_memory(s), s->uses, &s->waiter, &page);
    bool hit = answer == LEAT__CACHE_HIT || answer == LEAT__CACHE_WAIT;
    if (!s->counted || !hit)
        atomic_fetch_add_explicit(hit ? &env->cache_hits : &env->cache_misses, 1, memory_order_relaxed);
    switch (answer) {
    case LEAT__CACHE_HIT:
        use_page(s, page);
        one_done(s->run);
        return;
    case LEAT__CACHE_FILL: read_page(s, page); return;
    case LEAT__CACHE_WAIT: return;
    case LEAT__CACHE_BYPASS: read_sample(s, NULL); return;
    }
}

leat__cache_answer leat__run_ask(leat__run *r)
{
    leat__run_env *env = r->env;
    leat__run_sample *s = &r->sample[0];
    leat__cached *page;

    LEAT_ASSERT(r->count == 1 && r->ahead != NULL && env->cache != NULL);
    r->pending = 1;
    s->waiter.ready = page_ready;
    leat__cache_answer answer =
        leat__cache_get(env->cache, env->cache_user, s->row.page, page_memory(s), s->uses, &s->waiter, &page);
    if (answer == LEAT__CACHE_HIT) use_page(s, page);
    if (answer != LEAT__CACHE_FILL) return answer;
    atomic_fetch_add_explicit(&env->cache_misses, 1, memory_order_relaxed);
    read_page(s, page);
    return answer;
}

/* True when the sample is in the OS page cache. Checks both ends, because readahead for a neighbour may have
 * cached only a part. */
static bool in_system_cache(const leat__run_sample *s)
{
    const leat__file *file = file_of(s);
    uint64_t first = s->row.file_offset, last = first + s->row.size - 1;
    uint8_t byte;
    return leat__file_pread_cached(file, &byte, 1, first) == 1 &&
           leat__file_pread_cached(file, &byte, 1, last) == 1;
}

/* Finds the samples that need no read, because they are in the OS page cache. The decoder copies them one at
 * a time into a block that stays in its CPU cache. After many runs without a miss only one sample per run is
 * checked. Returns the bytes to read. */
static uint64_t leave_for_later(leat__run *r)
{
    leat__run_env *env = r->env;
    uint32_t warm = atomic_load_explicit(&env->warm, memory_order_relaxed);
    uint64_t ahead = 0;
    bool later = false, known = false, all = true;

    for (uint32_t i = 0; i < r->count; i++) {
        leat__run_sample *s = &r->sample[i];
        if (s->rc != 0 || s->row.size == 0) continue;
        s->later =
            leat__run_is_resident(env, s->id) || /* resident on the device: not read at all */
            (env->kept != NULL && leat__kept_has(env->kept, s->row.shard, s->row.file_offset, s->row.size));
        if (!s->later) {
            if (warm < WARM_RUNS || !known) later = in_system_cache(s);
            known = true;
            s->later = later;
            all &= later;
        }
        uint64_t slot = slot_bytes(env, s->row.size);
        if (s->later) r->hand_bytes = LEAT_MAX(r->hand_bytes, slot);
        else ahead += slot;
    }
    atomic_store_explicit(&env->warm, all ? LEAT_MIN(warm + 1, WARM_RUNS) : 0, memory_order_relaxed);
    r->encoded_bytes = ahead + r->hand_bytes;
    return ahead;
}

int leat__run_read(leat__run *r, leat_task *task, leat_error *err)
{
    LEAT_ASSERT(r->task == NULL && r->buf.data == NULL);
    leat__run_env *env = r->env;
    uint64_t at = 0;

    r->task = task;
    r->pending = r->count + 1; /* plus one for this function, so that done comes after it */
    if (env->cache == NULL) {
        uint64_t ahead = leave_for_later(r);
        if (ahead > 0) r->buf = leat__blocks_take(env->blocks, ahead);
        if (ahead > 0 && r->buf.data == NULL) return leat__fail_nomem(err, ahead, "encoded samples");
        task->bytes = r->encoded_bytes + r->share_bytes + r->scratch_bytes + r->list_bytes;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        leat__run_sample *s = &r->sample[i];
        if (s->rc != 0 || s->row.size == 0 || s->later) {
            s->data = (const uint8_t *)"";
            atomic_fetch_sub(&r->pending, 1);
        } else if (env->cache != NULL) {
            read_through_cache(s);
        } else {
            read_sample(s, r->buf.data + at);
            at += slot_bytes(env, s->row.size);
        }
    }
    return atomic_fetch_sub(&r->pending, 1) == 1 ? 0 : LEAT_FLOW_PENDING;
}

/* ---- on a worker ---- */

/* Copies a sample from the OS page cache; reads it if it is no longer there. */
static int fetch(leat__run *r, leat__run_sample *s, leat_error *err)
{
    leat__run_env *env = r->env;
    const leat__file *file = file_of(s);

    if (r->hand.data == NULL) r->hand = leat__blocks_take(env->blocks, r->hand_bytes);
    if (r->hand.data == NULL) return leat__fail_nomem(err, r->hand_bytes, "an encoded sample");
    uint8_t *to = r->hand.data;
    memset(to + s->row.size, 0, LEAT_PACK_PADDING);
    s->data = to;
    if (env->kept != NULL && leat__kept_copy(env->kept, s->row.shard, s->row.file_offset, to, s->row.size)) {
        count_read(env, s->row.size, 0);
        return 0;
    }
    uint64_t begin = leat__meters_now();
    size_t got = leat__file_pread_cached(file, to, s->row.size, s->row.file_offset);
    if (got < s->row.size) {
        atomic_store_explicit(&env->warm, 0, memory_order_relaxed);
        LEAT_TRY(leat__file_pread(file, to + got, s->row.size - got, s->row.file_offset + got, err));
    }
    count_read(env, s->row.size, leat__meters_now() - begin);
    return 0;
}

/* Reads a sample again that arrived damaged over the network. */
static int read_again(leat__run_sample *s, leat__run_worker *w, leat_error *err)
{
    leat__buf_clear(&w->spare);
    if (leat__buf_zeros(&w->spare, s->row.size + LEAT_PACK_PADDING) != 0)
        return leat__fail_nomem(err, s->row.size + LEAT_PACK_PADDING, "a sample");
    LEAT_TRY(leat__pack_read_row(s->run->env->pack, s->id, &s->row, w->spare.data, w->spare.len, err));
    s->data = (const uint8_t *)w->spare.data;
    return 0;
}

/* Verifies a sample by its own checksum, unless its page was verified. */
static int check(leat__run_sample *s, leat__run_worker *w, leat_error *err)
{
    leat__cached *page = s->cached;

    if (page != NULL && page->checked) return 0;
    int rc = leat__pack_sample_check(s->run->env->pack, s->id, &s->row, s->data, err);
    if (page != NULL && rc == 0) page->checked = true;
    if (page != NULL && rc != 0) page->damaged = true;
    if (rc != 0 && disk_of(s) != NULL) drop_from_disk(s);
    if (rc != 0 && leat__file_remote(file_of(s)) != NULL) rc = read_again(s, w, err);
    return rc;
}

int leat__run_sample_get(leat__run_sample *s, leat__run_worker *w, leat_error *err)
{
    if (s->later) LEAT_TRY(fetch(s->run, s, err));
    return check(s, w, err);
}
