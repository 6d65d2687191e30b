/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures reads alone. A list of ranges is read repeatedly, with a fixed number in flight, until
 * the time is over. Cold reads bypass the page cache (O_DIRECT), so that the user's cache does
 * not change. If the file system does not allow that, there is no cold figure, unless everything
 * is in memory anyway.
 */
#include "doctor/reads.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "doctor/judge.h"
#include "io/aio.h"
#include "io/http.h"
#include "io/resident.h"
#include "pack/reader.h"

#define RANGES_MAX 4096u
#define LEAST_RANGES 16u
#define LIST_NS (LEAT_NS_PER_S / 4)
#define SET_BYTES (UINT64_C(64) << 20) /* maximum bytes for warm reads; also at most this part of */
#define SET_PART 8                     /* the pack, so that the cache changes little */
#define DEPTH 32u                      /* the loader's initial depth */
#define DEEP 64u
#define WAIT_NS (LEAT_NS_PER_S / 10) /* wait for a read, between checks of the time limit */
#define LEAST_SECONDS 0.5            /* to read samples into the page cache; a slow disk reads fewer */
#define PART_SMALL 4096u             /* bytes of a small request to a server */
#define PARTS 1024u                  /* positions in the file */
#define PARTS_STRIDE 389u            /* distance of consecutive positions, modulo PARTS: no common divisor */
#define LINK_SMALL 8u /* with these, the HTTP loop allows the large ones all at once (io/http.c) */
#define LINK_LARGE (1u << 20)
#define PARTS_FEW 2u /* reads in flight */
#define PARTS_MANY 16u
#define PARTS_MOST 64u
#define SLOT_MAX (UINT64_C(256) << 20) /* memory for reads in flight */

typedef struct range {
    const leat__file *file;
    uint64_t offset, len;
    uint32_t samples; /* samples it contains */
} range;

typedef struct ranges {
    range *at;
    uint32_t count;
    uint64_t longest, bytes, samples;
} ranges;

typedef struct result {
    double per_s;   /* samples per second */
    double read_ms; /* mean time of one read */
    uint64_t reads;
    double half_s; /* seconds until half of the list was read the first time */
} result;

static void put(ranges *r, const leat__file *file, uint64_t offset, uint64_t len, uint32_t samples)
{
    r->at[r->count++] = (range){file, offset, len, samples};
    r->longest = LEAT_MAX(r->longest, len);
    r->bytes += len;
    r->samples += samples;
}

/* True while more ranges may be listed. Lookups read the index, which may be on the same slow disk,
 * so their time is limited. */
static bool may_list(const ranges *r, uint64_t until_ns)
{
    return r->count < RANGES_MAX && (r->count < LEAST_RANGES || leat__clock_ns() < until_ns);
}

/* Lists each sample separately, as the random order reads; aligned for direct reads. */
static int list_samples(leat_pack *pack, const uint64_t *ids, uint64_t count, bool direct, uint64_t max_bytes,
                        ranges *r, leat_error *err)
{
    uint64_t until = leat__clock_ns() + LIST_NS;
    for (uint64_t i = 0; i < count && may_list(r, until) && r->bytes < max_bytes; i++) {
        leat_pack_row row;
        leat_pack_page page;
        LEAT_TRY(leat_pack_rows(pack, ids[i], 1, &row, err));
        LEAT_TRY(leat_pack_page_info(pack, row.page, &page, err));
        leat__span span = {page.offset + row.offset, row.size, 0};
        if (direct) span = leat__span_around(span.offset, span.len);
        put(r, leat__pack_file(pack, page.shard), span.offset, span.len, 1);
    }
    return 0;
}

/* Lists whole pages, each once, in the order in which the samples first touch them; aligned. */
static int list_pages(leat_pack *pack, const uint64_t *ids, uint64_t count, uint64_t pages, ranges *r,
                      leat_error *err)
{
    uint8_t *seen = LEAT_NEW_ARRAY(DOCTOR, uint8_t, pages / 8 + 1);
    uint64_t until = leat__clock_ns() + LIST_NS;
    int rc = seen == NULL ? leat__fail_nomem(err, pages / 8, "the pages") : 0;
    for (uint64_t i = 0; i < count && may_list(r, until) && rc == 0; i++) {
        leat_pack_row row;
        leat_pack_page page;
        if ((rc = leat_pack_rows(pack, ids[i], 1, &row, err)) != 0) break;
        if (seen[row.page / 8] & (1u << row.page % 8)) continue;
        seen[row.page / 8] |= (uint8_t)(1u << row.page % 8);
        rc = leat_pack_page_info(pack, row.page, &page, err);
        if (rc != 0) break;
        leat__span span = leat__span_around(page.offset, page.bytes);
        put(r, leat__pack_file(pack, page.shard), span.offset, span.len,
            (uint32_t)LEAT_MIN(page.samples, UINT32_MAX));
    }
    leat__free(seen);
    return rc;
}

/* ---- Reading a list ---- */

typedef struct lane {
    leat__aio *aio;
    leat__aio_req *req;
    uint8_t *memory;
    uint64_t slot;
    uint32_t depth;
} lane;

static void lane_close(lane *l)
{
    leat__aio_close(&l->aio);
    leat__free(l->req);
    leat__free(l->memory);
}

static int lane_open(lane *l, uint32_t depth, uint64_t longest, leat_error *err)
{
    leat__aio_opts o = {.depth = depth, .max_depth = depth};
    l->slot = leat__ceil_div(longest, LEAT__IO_ALIGN) * LEAT__IO_ALIGN;
    l->depth = (uint32_t)LEAT_MIN(depth, LEAT_MAX(SLOT_MAX / LEAT_MAX(l->slot, 1u), 1u));
    l->req = LEAT_NEW_ARRAY(DOCTOR, leat__aio_req, l->depth);
    l->memory = leat__alloc_aligned(LEAT__MEM_DOCTOR, l->slot * l->depth, LEAT__IO_ALIGN);
    if (l->req == NULL || l->memory == NULL) return leat__fail_nomem(err, l->slot * l->depth, "reads");
    return leat__aio_open(&l->aio, &o, err);
}

static void start_read(lane *l, uint32_t i, const range *r)
{
    leat__aio_req *q = &l->req[i];
    *q = (leat__aio_req){.file = r->file,
                         .offset = r->offset,
                         .len = (size_t)r->len,
                         .buf = l->memory + l->slot * i,
                         .cookie = (void *)r};
    leat__aio_submit(l->aio, q);
}

/* Reads the list repeatedly until the time is over, or once if `once`. */
static int read_for(const ranges *list, uint32_t depth, double seconds, bool once,
                    const leat__time_limit *limit, result *out, leat_error *err)
{
    lane l = {0};
    uint64_t samples = 0, begin = 0, wait_ns = 0, next = 0, most = once ? list->count : UINT64_MAX;
    uint32_t flying = 0;
    int rc = 0;

    *out = (result){-1, -1, 0, 0};
    if (list->count == 0) return 0;
    LEAT_TRY(leat__time_check(limit, err)); /* closing waits for reads in flight */
    LEAT_GO(rc, out, lane_open(&l, depth, list->longest, err));
    begin = leat__clock_ns();
    uint64_t until = begin + (uint64_t)(seconds * 1e9);
    for (; flying < l.depth && next < most; flying++, next++)
        start_read(&l, flying, &list->at[next % list->count]);
    while (flying > 0) {
        leat__aio_req *q;
        LEAT_GO(rc, out, leat__time_check(limit, err));
        if ((rc = leat__aio_wait(l.aio, &q, leat__clock_ns() + WAIT_NS)) == LEAT_ETIMEDOUT) continue;
        if (rc != 0) goto out;
        if (q->rc != 0) LEAT_GO(rc, out, leat__aio_error(q, err));
        samples += ((const range *)q->cookie)->samples;
        wait_ns += q->done_ns - q->submit_ns;
        if (++out->reads == (list->count + 1) / 2) out->half_s = (double)(leat__clock_ns() - begin) / 1e9;
        if (next < most && leat__clock_ns() < until)
            start_read(&l, (uint32_t)(q - l.req), &list->at[next++ % list->count]);
        else flying--;
    }
    double passed = (double)(leat__clock_ns() - begin) / 1e9;
    if (passed > 0) out->per_s = (double)samples / passed;
    if (out->reads > 0) out->read_ms = (double)wait_ns / (double)out->reads / 1e6;
out:
    lane_close(&l);
    return rc;
}

/* ---- Page cache ---- */

static int shard_resident(const char *path, uint64_t *in, uint64_t *all, leat_error *err)
{
    uint64_t bytes, size;
    LEAT_TRY(leat__file_resident(path, &bytes, &size, err));
    *in += bytes;
    *all += size;
    return 0;
}

int leat__reads_resident(const char *path, double *cached, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    uint64_t in = 0, all = 0;
    int rc;

    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(pack, &info, sizeof info));
    for (uint32_t i = 0; i < info.shards; i++)
        if (leat__file_remote(leat__pack_file(pack, i)) == NULL)
            LEAT_GO(rc, out, shard_resident(leat__file_path(leat__pack_file(pack, i)), &in, &all, err));
    *cached = all > 0 ? LEAT_MIN(1.0, (double)in / (double)all) : -1;
out:
    leat_pack_close(&pack);
    return rc;
}

int leat__reads_forget(const char *path, leat_error *err)
{
    leat_pack *pack = NULL;
    leat_pack_info info;
    int rc;

    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    LEAT_GO(rc, out, leat_pack_info_read(pack, &info, sizeof info));
    for (uint32_t i = 0; i < info.shards; i++)
        leat__file_advise(leat__pack_file(pack, i), 0, 0, LEAT__ADVICE_DONTNEED);
out:
    leat_pack_close(&pack);
    return rc;
}

int leat__reads_samples(const char *path, const uint64_t *ids, uint64_t *count, double seconds,
                        const leat__time_limit *limit, leat_error *err)
{
    leat_pack *pack = NULL;
    ranges r = {0};
    result got;
    int rc;

    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    r.at = LEAT_NEW_ARRAY(DOCTOR, range, RANGES_MAX);
    if (r.at == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, RANGES_MAX * sizeof(range), "reads"));
    uint64_t most = LEAT_MIN(*count, (uint64_t)RANGES_MAX);
    LEAT_GO(rc, out, list_samples(pack, ids, most, false, UINT64_MAX, &r, err));
    rc = read_for(&r, DEEP, LEAT_MAX(seconds, LEAST_SECONDS), true, limit, &got, err);
    if (rc == 0) *count = got.reads;
out:
    leat__free(r.at);
    leat_pack_close(&pack);
    return rc;
}

/* ---- Together ---- */

static int measure_cold(leat_pack *pack, const leat_pack_info *info, const uint64_t *ids, uint64_t count,
                        bool random, double seconds, const leat__time_limit *limit, ranges *r,
                        leat_doctor_facts *f, leat_error *err)
{
    uint32_t usual = (uint32_t)f->io_depth, deep = LEAT_MAX(DEEP, 2 * usual);
    result got;

    if (random) { /* pages are measured last: a slow disk takes long to finish reads in flight */
        LEAT_TRY(list_samples(pack, ids, count, true, UINT64_MAX, r, err));
        LEAT_TRY(read_for(r, usual, seconds, false, limit, &got, err));
        f->io_cold = got.per_s;
        f->read_ms = got.read_ms;
        LEAT_TRY(read_for(r, deep, seconds, false, limit, &got, err));
        f->io_deep = got.per_s;
        *r = (ranges){.at = r->at};
    }
    LEAT_TRY(list_pages(pack, ids, count, info->pages, r, err));
    LEAT_TRY(read_for(r, LEAT_MAX(usual / 4, 1u), seconds, false, limit, &got, err));
    f->io_pages = got.per_s;
    if (random) return 0;
    f->io_cold = got.per_s;
    f->read_ms = got.read_ms;
    LEAT_TRY(read_for(r, deep / 4, seconds, false, limit, &got, err));
    f->io_deep = got.per_s;
    return 0;
}

/* ---- A bucket or web server ---- */

/* Lists ranges spread over the first file, none next to another, without reading the index. */
static void list_parts(leat_pack *pack, uint64_t len, ranges *r)
{
    const leat__file *file = leat__pack_file(pack, 0);
    uint64_t size = leat__file_size_at_open(file), step = LEAT_MAX(size / PARTS, UINT64_C(1));
    *r = (ranges){.at = r->at};
    for (uint64_t i = 0; i < PARTS && size > 0; i++) {
        uint64_t at = i * PARTS_STRIDE % PARTS * step;
        put(r, file, at, LEAT_MIN(len, size - at), 1);
    }
}

/* Measures small and large ranges, few and many in flight, to find what kind of limit the server has.
 * The loader joins requests and prefetches, so these are not the rate of its reads, unless the link
 * is full. */
static int ask_server(leat_pack *pack, double seconds, const leat__time_limit *limit, ranges *r,
                      leat_doctor_facts *f, leat_error *err)
{
    result got;
    list_parts(pack, PART_SMALL, r);
    LEAT_TRY(read_for(r, PARTS_FEW, seconds, false, limit, &got, err));
    f->remote_few = got.per_s;
    f->remote_ms = got.read_ms;
    LEAT_TRY(read_for(r, PARTS_MANY, seconds, false, limit, &got, err));
    f->remote_many = got.per_s;
    list_parts(pack, LEAT__PART_LARGE, r);
    LEAT_TRY(read_for(r, PARTS_FEW, seconds, false, limit, &got, err));
    f->remote_few_mbs = got.per_s * LEAT__PART_LARGE / 1e6;
    LEAT_TRY(read_for(r, PARTS_MANY, seconds, false, limit, &got, err));
    f->remote_many_mbs = got.per_s * LEAT__PART_LARGE / 1e6;
    /* the gain of a remedy is computed from it, too */
    if (!leat__doctor_line_full(f) || (f->io_fixed > 0 && f->io_depth < PARTS_MOST)) {
        LEAT_TRY(read_for(r, PARTS_MOST, seconds, false, limit, &got, err));
        f->remote_most_mbs = got.per_s * LEAT__PART_LARGE / 1e6;
    }
    if (leat__doctor_many_suffice(f)) {
        list_parts(pack, PART_SMALL, r);
        LEAT_TRY(read_for(r, PARTS_MOST, seconds, false, limit, &got, err));
        f->remote_most = got.per_s;
    }
    if (leat__doctor_line_full(f) && f->sample_bytes > 0) /* no way of reading is faster */
        f->io_cold = 1e6 * leat__doctor_line_mbs(f) / f->sample_bytes;
    return 0;
}

static void count_refused(leat_doctor_facts *f)
{
    leat__http_stats s;
    leat__http_read(&s);
    if (s.requests > 0) f->remote_refused = LEAT_MIN(1.0, (double)s.throttled / (double)s.requests);
}

int leat__reads_link(const char *path, uint32_t parts, double *latency_s, double *all_per_s,
                     double *half_per_s, leat_error *err)
{
    leat_pack *pack = NULL;
    ranges r = {0};
    uint64_t bytes = 0;
    result got;
    int rc;

    LEAT_GO(rc, out, leat_pack_open(&pack, path, NULL, err));
    r.at = LEAT_NEW_ARRAY(DOCTOR, range, PARTS);
    if (r.at == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, PARTS * sizeof(range), "reads"));
    list_parts(pack, PART_SMALL, &r);
    r.count = LEAT_MIN(r.count, LINK_SMALL);
    LEAT_GO(rc, out, read_for(&r, 1, 1, true, NULL, &got, err));
    *latency_s = got.read_ms / 1e3;
    list_parts(pack, LINK_LARGE, &r);
    r.count = LEAT_MIN(r.count, parts);
    for (uint32_t i = 0; i < r.count; i++) bytes += r.at[i].len;
    uint64_t begin = leat__clock_ns();
    LEAT_GO(rc, out, read_for(&r, PARTS_MANY, 1, true, NULL, &got, err));
    /* the first round trip brings no data */
    double passed = (double)(leat__clock_ns() - begin) / 1e9, half = got.half_s, trip = *latency_s;
    double share = r.count > 0 ? (double)got.reads / r.count : 0;
    *all_per_s = *half_per_s = (double)bytes * share / LEAT_MAX(passed - trip, passed / 4);
    if (half > 0) *half_per_s = LEAT_MAX(*all_per_s, (double)bytes / 2 / LEAT_MAX(half - trip, half / 4));
out:
    leat__free(r.at);
    leat_pack_close(&pack);
    return rc;
}

int leat__reads_measure(const char *path, const uint64_t *ids, uint64_t count, const leat_loader_opts *opts,
                        double seconds, const leat__time_limit *limit, leat_doctor_facts *f, leat_error *err)
{
    leat_pack_opts po = LEAT_PACK_OPTS_INIT;
    leat_pack *warm = NULL, *cold = NULL;
    leat_pack_info info;
    ranges r = {0};
    result got;
    int rc;

    LEAT_GO(rc, out, leat_pack_open(&warm, path, &po, err));
    LEAT_GO(rc, out, leat_pack_info_read(warm, &info, sizeof info));
    r.at = LEAT_NEW_ARRAY(DOCTOR, range, RANGES_MAX);
    if (r.at == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, RANGES_MAX * sizeof(range), "reads"));
    f->io_fixed = opts->io_depth > 0;
    f->io_depth = opts->io_depth > 0 ? opts->io_depth : DEPTH;
    f->dataset_bytes = (double)info.bytes;
    f->sample_bytes = info.samples > 0 ? (double)info.bytes / (double)info.samples : -1;
    f->remote = leat__file_remote(leat__pack_file(warm, 0)) != NULL;
    if (f->remote > 0) {
        f->network = 1;
        rc = ask_server(warm, seconds / 2, limit, &r, f, err);
        count_refused(f);
        goto out;
    }
    po.direct = 1;
    LEAT_GO(rc, out, leat_pack_open(&cold, path, &po, err));
    uint64_t set = LEAT_MIN(SET_BYTES, LEAT_MAX(info.bytes / SET_PART, UINT64_C(1) << 20));
    LEAT_GO(rc, out, list_samples(warm, ids, count, false, set, &r, err));
    LEAT_GO(rc, out, read_for(&r, DEEP, LEAT_MAX(seconds / 2, LEAST_SECONDS), true, limit, &got, err));
    r.count = (uint32_t)LEAT_MIN(got.reads, (uint64_t)r.count); /* only these are in memory now */
    LEAT_GO(rc, out, read_for(&r, (uint32_t)f->io_depth, seconds / 4, false, limit, &got, err));
    f->io_warm = got.per_s;
    if (f->io_fixed && f->io_depth < DEEP) { /* slow warm reads suggest a network file system */
        LEAT_GO(rc, out, read_for(&r, DEEP, seconds / 4, false, limit, &got, err));
        f->io_warm_deep = got.per_s;
    }
    r = (ranges){.at = r.at};
    if (leat__file_direct(leat__pack_file(cold, 0)))
        LEAT_GO(rc, out,
                measure_cold(cold, &info, ids, count, opts->order == LEAT_ORDER_RANDOM, seconds / 4, limit,
                             &r, f, err));
    if (!known(f->io_cold) && f->cached > 0.99) f->io_cold = f->io_pages = f->io_deep = f->io_warm;
out:
    leat__free(r.at);
    leat_pack_close(&cold);
    leat_pack_close(&warm);
    return rc;
}
