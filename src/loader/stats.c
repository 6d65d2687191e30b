/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, fields and statistics of a loader; statistics are counters of the epoch and of all epochs. Any
 * thread may read them; the loader's lock keeps the flow from being closed meanwhile.
 */
#include <string.h>

#include <leat/loader.h>

#include "base/clock.h"
#include "base/num.h"
#include "loader/change.h"
#include "loader/setup.h"
#include "loader/to_device.h"

/* ---- sizes and fields ---------------------------------------------------------------------- */

uint64_t leat_loader_samples(const leat_loader *l)
{
    return l != NULL ? leat__change_seen(l)->rows : 0;
}

uint64_t leat_loader_batches(const leat_loader *l)
{
    return l != NULL ? leat__change_seen(l)->batches : 0;
}

const char *leat_loader_advice(const leat_loader *l, uint32_t i)
{
    return l != NULL && i < l->advice_count ? l->advice[i] : NULL;
}

leat_pack *leat_loader_pack(leat_loader *l)
{
    return l != NULL ? l->pack : NULL;
}

leat_budget *leat_loader_budget(leat_loader *l)
{
    return l != NULL ? l->budget : NULL;
}

int32_t leat_loader_device(const leat_loader *l)
{
    return l != NULL && l->device != NULL ? leat__to_device_index(l->device) : -1;
}

uint32_t leat_loader_field_count(const leat_loader *l)
{
    return l != NULL ? leat__change_seen(l)->env.shape->count : 0;
}

const leat_tensor *leat_loader_field(const leat_loader *l, uint32_t field)
{
    if (l == NULL) return NULL;
    const leat__shape *shape = leat__change_seen(l)->env.shape;
    return field < shape->count ? &shape->columns[field].tensor : NULL;
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* Converts runs in flight, which the flow counts, to reads: a run reads all its samples at once. */
static uint32_t reads_of(const leat_loader *l, uint32_t runs)
{
    uint32_t reads = runs * l->run_usual;
    return l->env.remote ? reads : LEAT_MIN(reads, leat__aio_depth(l->env.aio));
}

static int read_flow(const leat_loader *l, leat_loader_stats *s)
{
    leat_flow *f = l->flow;
    leat_flow_stats flow;

    if (f == NULL) return 0;
    LEAT_TRY(leat_flow_read(f, &flow, sizeof flow));
    s->threads = flow.threads;
    s->io_depth = reads_of(l, flow.io_depth);
    s->prefetch = flow.prefetch;
    s->blocked_ns = flow.blocked_ns;
    s->floor_bytes = flow.floor_bytes;
    for (uint32_t i = 0; i < LEAT_LOADER_STAGES; i++) LEAT_TRY(leat_flow_read_stage(f, i, &s->stages[i]));
    return 0;
}

/* Reads the counters of the running epoch; the lock is held. */
static int read_epoch_locked(leat_loader *l, leat_loader_stats *s)
{
    int rc = read_flow(l, s);
    s->epoch = l->epoch;
    s->batches = l->delivered_batches;
    s->samples = l->delivered_rows;
    s->bad_samples = l->bad;
    s->wait_ns = l->wait_ns;
    s->elapsed_ns = l->begin_ns > 0 ? leat__clock_ns() - l->begin_ns : 0;
    s->read_bytes = l->env.read_bytes;
    s->reads = l->env.reads;
    s->cache_hits = l->env.cache_hits;
    s->cache_misses = l->env.cache_misses;
    s->read_ns = l->env.read_ns;
    s->decode_ns = l->env.decode_ns;
    s->disk_cache_hits = l->env.disk_hits;
    if (l->env.remote) {
        leat__http_stats now;
        leat__http_read(&now);
        s->remote_requests = now.requests - l->traffic.requests;
        s->remote_retries = now.retries - l->traffic.retries;
        s->remote_bytes = now.bytes_in - l->traffic.bytes_in;
        s->remote_hedged = now.hedged - l->traffic.hedged;
    }
    return rc;
}

/* Adds the counters of `o` to `s`. Shares of time are weighted by time; values that are not sums are kept. */
static void add(leat_loader_stats *s, const leat_loader_stats *o)
{
    double time = (double)s->elapsed_ns + (double)o->elapsed_ns;
    for (uint32_t i = 0; i < LEAT_LOADER_STAGES; i++) {
        leat_stage_stats *a = &s->stages[i];
        const leat_stage_stats *b = &o->stages[i];
        double ready = a->readiness * (double)s->elapsed_ns + b->readiness * (double)o->elapsed_ns;
        if (time > 0) a->readiness = ready / time;
        a->items += b->items;
        a->failed += b->failed;
        a->dropped += b->dropped;
        a->bytes += b->bytes;
        a->bytes_max = LEAT_MAX(a->bytes_max, b->bytes_max);
        a->busy_ns += b->busy_ns;
        a->wait_ns += b->wait_ns;
    }
    s->batches += o->batches;
    s->samples += o->samples;
    s->bad_samples += o->bad_samples;
    s->read_bytes += o->read_bytes;
    s->reads += o->reads;
    s->cache_hits += o->cache_hits;
    s->cache_misses += o->cache_misses;
    s->read_ns += o->read_ns;
    s->decode_ns += o->decode_ns;
    s->remote_requests += o->remote_requests;
    s->remote_retries += o->remote_retries;
    s->remote_bytes += o->remote_bytes;
    s->remote_hedged += o->remote_hedged;
    s->disk_cache_hits += o->disk_cache_hits;
    s->wait_ns += o->wait_ns;
    s->elapsed_ns += o->elapsed_ns;
    s->blocked_ns += o->blocked_ns;
}

void leat__loader_remember_locked(leat_loader *l)
{
    leat_loader_stats s = {0};
    if (read_epoch_locked(l, &s) != 0) return;
    add(&l->past, &s);
    if (s.threads == 0) return;
    l->past.threads = s.threads;
    l->past.io_depth = s.io_depth;
    l->past.prefetch = s.prefetch;
}

static void read_device(leat_loader *l, bool all, leat_loader_stats *s)
{
    static const leat__to_device_stats none;
    leat__to_device_stats d;
    if (l->device == NULL) return;
    const leat__to_device_stats *const before = all ? &none : &l->device_before;
    leat__to_device_read(l->device, &d);
    s->page_locked = leat__frames_locked(l->frames);
    if (l->cache_user.mapper != NULL && leat__mapper_failed(l->cache_user.mapper)) s->page_locked = 0;
    s->device_blocks = d.pool.blocks;
    s->device_limit = d.pool.limit;
    s->device_used = d.pool.used;
    s->device_peak = d.pool.peak;
    s->copied_bytes = d.copied_bytes - before->copied_bytes;
    s->copy_ns = d.copy_ns - before->copy_ns;
    s->copy_wait_ns = d.wait_ns - before->wait_ns;
    s->device_images = d.decoded - before->decoded;
    s->device_decode_ns = d.decode_ns - before->decode_ns;
    s->device_overlap_ns = d.overlap_ns - before->overlap_ns;
    s->device_list_ns = atomic_load(&l->env.list_ns) - (all ? 0 : l->list_ns_before);
    s->device_cached_images = d.store.images;
    s->device_cached_bytes = d.store.bytes;
    s->device_share = d.share;
}

static int read_stats(leat_loader *l, bool all, leat_loader_stats *out, uint32_t struct_size)
{
    leat_loader_stats s = {.struct_size = struct_size};
    leat_budget_stats b;
    int rc = 0;

    LEAT_TRY(leat__loader_check(l, NULL));
    LEAT_REQUIRE(out != NULL, NULL);
    leat__mutex_lock(&l->lock);
    if (l->begun) rc = read_epoch_locked(l, &s);
    if (all) add(&s, &l->past);
    if (s.threads == 0) s.threads = l->opts.threads > 0 ? l->opts.threads : leat_pool_threads(l->pool);
    leat__steps_read(&l->steps, all, &s);
    if (l->spans != NULL) s.device_step_ms = leat__step_spans_ms(l->spans, all);
    leat__mutex_unlock(&l->lock);
    LEAT_TRY(rc);
    leat_budget_read(l->budget, &b);
    s.cache_bytes = l->env.cache != NULL ? leat__cache_bytes(l->env.cache) : 0;
    s.budget_limit = b.limit;
    s.budget_kept = leat__frames_kept(l->frames) + leat__blocks_kept(l->env.blocks);
    if (l->env.tile_blocks != NULL) s.budget_kept += leat__blocks_kept(l->env.tile_blocks);
    s.budget_kept = LEAT_MIN(s.budget_kept, b.used); /* both are read at different times */
    s.budget_used = b.used - s.budget_kept;
    s.budget_peak = b.peak;
    s.budget_memory = leat__budget_memory(l->budget, &s.budget_memory_peak);
    read_device(l, all, &s);
    memcpy(out, &s, LEAT_MIN(struct_size, sizeof s));
    return 0;
}

int leat_loader_read(leat_loader *l, leat_loader_stats *out, uint32_t struct_size)
{
    return read_stats(l, false, out, struct_size);
}

int leat_loader_read_all(leat_loader *l, leat_loader_stats *out, uint32_t struct_size)
{
    return read_stats(l, true, out, struct_size);
}

void leat_loader_prepared(leat_loader *l, uint64_t ns)
{
    if (l != NULL) leat__steps_prepared(&l->steps, ns);
}

uint32_t leat_loader_decisions(leat_loader *l, uint64_t first, leat_decision *out, uint32_t max)
{
    if (leat__loader_check(l, NULL) != 0) return 0;
    uint32_t count = leat_tuner_read(l->tuner, first, out, max);
    for (uint32_t i = 0; i < count; i++) {
        if (out[i].knob != LEAT_KNOB_IO_DEPTH) continue;
        out[i].from = reads_of(l, out[i].from);
        out[i].to = reads_of(l, out[i].to);
    }
    return count;
}
