/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the parts of a loader from its options: checks, subset, order, budget. shape.c builds the columns of
 * the batches. Runs once, on the opening thread.
 */
#include "io/region.h"
#include "loader/disk_pages.h"
#include "loader/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sized.h"
#include "base/str.h"
#include "loader/bounds.h"
#include "loader/change.h"
#include "loader/defaults.h"
#include "loader/page_ahead.h"
#include "loader/remote_pages.h"
#include "loader/sizes.h"
#include "loader/sources.h"
#include "pack/kind.h"
#include "pack/reader.h"
#include "pack/schema.h"
#include "probe/machine.h"

#define ADVICE_BYTES (UINT64_C(1) << 30)
#define DEPTH_MAX 512u /* reads in flight */

void leat_loader_opts_init_sized(leat_loader_opts *opts, uint32_t struct_size)
{
    if (opts == NULL || struct_size < sizeof opts->struct_size) return;
    leat_loader_opts full = {.struct_size = struct_size,
                             .order = LEAT__DEFAULT_ORDER,
                             .cache = LEAT__DEFAULT_CACHE,
                             .drop_last = LEAT__DEFAULT_DROP};
    if (struct_size > sizeof full) memset(opts, 0, struct_size); /* the struct of a newer caller is larger */
    memcpy(opts, &full, LEAT_MIN((size_t)struct_size, sizeof full));
}

/* Refuses options that have no effect. */
static int check_effects(const leat_loader_opts *o, leat_error *err)
{
    bool quasi = o->order == LEAT_ORDER_QUASI;
    if (!quasi && (o->streams > 0 || o->window_pages > 0))
        return leat__fail(err, LEAT_EINVAL, "`%s` has no effect: `order` is not quasi_random",
                          o->streams > 0 ? "streams" : "window_pages");
    if ((o->max_bad > 0 || o->quarantine != NULL) && o->on_error == LEAT_ON_ERROR_FAIL)
        return leat__fail(err, LEAT_EINVAL,
                          "`%s` has no effect: `on_error` is fail, which stops at the first bad sample",
                          o->max_bad > 0 ? "max_bad" : "quarantine");
    return 0;
}

static int check_opts(leat_loader *l, leat_error *err)
{
    leat_loader_opts *o = &l->opts;

    LEAT_TRY(check_effects(o, err));
    LEAT_TRY(leat__sizes_check(o, err));
    if (o->batch_size == 0) o->batch_size = LEAT__DEFAULT_BATCH;
    if (o->world == 0) o->world = 1;
    if (o->streams == 0) o->streams = LEAT__ORDER_STREAMS;
    if (o->batch_size > 1u << 20)
        return leat__fail(err, LEAT_EINVAL, "batch size %u: at most %u", o->batch_size, 1u << 20);
    if (o->rank >= o->world)
        return leat__fail(err, LEAT_EINVAL, "rank %u is not below the world size %u", o->rank, o->world);
    const struct {
        const char *name;
        unsigned value, most;
    } choices[] = {{"order", o->order, LEAT__ORDER_COUNT - 1},
                   {"cache", o->cache, LEAT_CACHE_DEVICE},
                   {"on_error", o->on_error, LEAT_ON_ERROR_REPLACE},
                   {"drop_last", o->drop_last, LEAT_DROP_EMPTY},
                   {"orientation", o->orientation, LEAT_ORIENTATION_IGNORE},
                   {"decode", o->decode, LEAT_DECODE_GPU},
                   {"mix_batches", o->mix_batches, LEAT_MIX_SINGLE},
                   {"collate", o->collate, LEAT_COLLATE_RAGGED},
                   {"bucket", o->bucket, LEAT_BUCKET_SIZE}};
    for (size_t i = 0; i < LEAT_COUNT(choices); i++) {
        if (choices[i].value > choices[i].most)
            return leat__fail(err, LEAT_EINVAL, "%s: %u is not a valid value", choices[i].name,
                              choices[i].value);
    }
    if (o->decode == LEAT_DECODE_GPU && (o->device == NULL || strcmp(o->device, "cpu") == 0))
        return leat__fail(err, LEAT_EINVAL, "`decode` gpu needs a `device` (cuda or cuda:N)");
    if (o->cache == LEAT_CACHE_DEVICE && (o->device == NULL || strcmp(o->device, "cpu") == 0))
        return leat__fail(err, LEAT_EINVAL, "`cache` device needs a `device` (cuda or cuda:N)");
    if (o->cache == LEAT_CACHE_DEVICE && o->decode == LEAT_DECODE_CPU)
        return leat__fail(err, LEAT_EINVAL,
                          "`cache` device: the device decodes what it keeps (`decode` auto or gpu)");
    if (o->device_memory > 0 && (o->device == NULL || strcmp(o->device, "cpu") == 0))
        return leat__fail(err, LEAT_EINVAL, "`device_memory` needs a `device` (cuda or cuda:N)");
    if (o->ops != NULL && o->image_count > 0)
        return leat__fail(err, LEAT_EINVAL, "give either `ops` or images, not both");
    if (o->weights != NULL && o->balance != NULL)
        return leat__fail(err, LEAT_EINVAL, "give either weights or `balance`, not both");
    if ((o->weights != NULL || o->balance != NULL) && o->order != LEAT_ORDER_RANDOM)
        return leat__fail(err, LEAT_EINVAL, "weights and `balance` draw at random: `order` must be random");
    if (leat__sources_mixed(o) && (o->weights != NULL || o->balance != NULL))
        return leat__fail(err, LEAT_EINVAL, "a mix of packs cannot have weights of samples or `balance`");
    if (o->draws > 0 && o->weights == NULL && o->balance == NULL)
        return leat__fail(err, LEAT_EINVAL, "draws needs weights or `balance`");
    return 0;
}

/* ---- subset, weights, order --------------------------------------------------------------- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int copy_indices(leat_loader *l, const uint64_t *indices, uint64_t n, leat_error *err)
{
    uint64_t samples = l->info.samples;

    if (n == 0) return leat__fail(err, LEAT_EINVAL, "indices: the subset is empty");
    l->indices = LEAT_NEW_ARRAY(LOADER, uint64_t, n);
    if (l->indices == NULL) return leat__fail_nomem(err, n * 8, "the subset");
    for (uint64_t i = 0; i < n; i++) {
        if (indices[i] >= samples)
            return leat__fail(err, LEAT_EINVAL, "indices: %" PRIu64 " is not below %" PRIu64 " sample%s",
                              indices[i], samples, leat__plural(samples));
        l->indices[i] = indices[i];
    }
    /* quasi-random orders need the subset in the order of the pack's pages */
    if (l->opts.order == LEAT_ORDER_QUASI) qsort(l->indices, n, sizeof *l->indices, compare_u64);
    l->subset = leat__hash64(l->indices, n * sizeof *l->indices, 1);
    l->universe = n;
    return 0;
}

/* Computes weights that make every value of an INT field equally likely. */
static int balance_weights(leat_loader *l, double **out, leat_error *err)
{
    int field = leat_pack_field_find(l->pack, l->opts.balance);
    uint64_t n = l->universe;
    int rc = 0;

    if (field < 0 || leat_pack_field(l->pack, (uint32_t)field)->type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL, "`balance`: '%s' is not an int field of %s", l->opts.balance,
                          leat_pack_path(l->pack));
    int64_t *value = LEAT_NEW_ARRAY(LOADER, int64_t, n), *sort = LEAT_NEW_ARRAY(LOADER, int64_t, n);
    double *weights = LEAT_NEW_ARRAY(LOADER, double, n);
    if (value == NULL || sort == NULL || weights == NULL) {
        rc = leat__fail_nomem(err, n * 24, "balanced sampling");
        goto out;
    }
    for (uint64_t i = 0; i < n; i++)
        LEAT_GO(rc, out,
                leat_pack_ints(l->pack, (uint32_t)field, l->indices != NULL ? l->indices[i] : i, 1, &value[i],
                               err));
    memcpy(sort, value, n * sizeof *sort);
    qsort(sort, n, sizeof *sort, compare_u64); /* groups equal values; the order of groups does not matter */
    for (uint64_t i = 0; i < n; i++) {
        uint64_t low = 0, high = n;
        while (low < high) { /* first equal value */
            uint64_t middle = low + (high - low) / 2;
            if ((uint64_t)sort[middle] < (uint64_t)value[i]) low = middle + 1;
            else high = middle;
        }
        uint64_t first = low;
        high = n;
        while (low < high) { /* past the last equal value */
            uint64_t middle = low + (high - low) / 2;
            if ((uint64_t)sort[middle] <= (uint64_t)value[i]) low = middle + 1;
            else high = middle;
        }
        weights[i] = 1.0 / (double)(low - first);
    }
    *out = weights;
    weights = NULL;
out:
    leat__free(value);
    leat__free(sort);
    leat__free(weights);
    return rc;
}

/* Counts the samples of the subset in each page that has any; other pages are omitted. */
static int count_pages(leat_loader *l, uint64_t *pages, leat_error *err)
{
    uint64_t kept = 0, at = 0;

    l->page_samples = LEAT_NEW_ARRAY(LOADER, uint32_t, l->info.pages);
    if (l->page_samples == NULL) return leat__fail_nomem(err, l->info.pages * 4, "the pages");
    for (uint64_t page = 0; page < l->info.pages; page++) {
        leat_pack_page info;
        LEAT_TRY(leat_pack_page_info(l->pack, page, &info, err));
        uint64_t samples = info.samples;
        if (l->indices != NULL) {
            samples = 0;
            while (at < l->universe && l->indices[at] < info.first + info.samples) {
                samples++;
                at++;
            }
        }
        if (samples > 0) l->page_samples[kept++] = (uint32_t)samples;
    }
    *pages = kept;
    return 0;
}

void leat__loader_extent(leat_loader *l, bool left_out)
{
    uint64_t step = (uint64_t)l->opts.batch_size * l->opts.world;

    l->run_batches = left_out ? l->count / step : l->batches;
    l->run_used = LEAT_MIN(l->run_batches * step, l->count);
    l->run_rows = leat__share_count(l->run_used, l->opts.rank, l->opts.world);
}

void leat__loader_batches(leat_loader *l)
{
    uint64_t step = (uint64_t)l->opts.batch_size * l->opts.world;

    l->batches = leat__epoch_batches(l->count, l->opts.batch_size, l->opts.world, l->opts.order,
                                     (leat_drop)l->opts.drop_last);
    l->used = LEAT_MIN(l->batches * step, l->count);
    l->rows = leat__share_count(l->used, l->opts.rank, l->opts.world);
}

/* Writes what the subset and the weights are. */
static void describe_subset(leat_loader *l, const leat_loader_opts *given)
{
    char *text = l->subset_text, of[48], field[64];
    const size_t size = sizeof l->subset_text;

    snprintf(of, sizeof of, "a subset of %" PRIu64 " sample%s", l->universe, leat__plural(l->universe));
    if (given->indices == NULL) snprintf(of, sizeof of, "all samples");
    if (given->balance != NULL)
        snprintf(text, size, "balance \"%s\" of %s", leat__str_shown(given->balance, field, sizeof field),
                 of);
    else if (given->weights != NULL) snprintf(text, size, "weights of %s", of);
    else if (given->indices != NULL) snprintf(text, size, "%s", of);
}

static int set_up_order(leat_loader *l, const leat_loader_opts *given, leat_error *err)
{
    int rc = 0;
    double *weights = NULL;
    leat__share_source *sources = NULL;
    uint64_t *ends = NULL;
    leat__shares_opts shares;
    if (l->opts.window_pages == 0) l->opts.window_pages = leat__order_window(l->info.page_bytes);
    leat__order_opts o = {.kind = l->opts.order,
                          .seed = l->opts.seed,
                          .streams = l->opts.streams,
                          .window_pages = l->opts.window_pages};

    l->universe = l->info.samples;
    if (given->indices != NULL) LEAT_TRY(copy_indices(l, given->indices, given->index_count, err));
    if (l->universe == 0)
        return leat__fail(err, LEAT_EINVAL, "%s: the pack has no samples", leat_pack_path(l->pack));
    l->count = l->opts.draws > 0 ? l->opts.draws : l->universe;
    if (l->count > LEAT__PERM_MAX) return leat__fail(err, LEAT_EINVAL, "more than 2^48 samples per epoch");
    if (given->weights != NULL && given->weight_count != l->universe &&
        given->weight_count != LEAT__COUNT_NOT_TOLD)
        return leat__fail(err, LEAT_EINVAL, "weights: %llu were given, there %s %llu sample%s to draw from",
                          (unsigned long long)given->weight_count, l->universe == 1 ? "is" : "are",
                          (unsigned long long)l->universe, leat__plural(l->universe));
    if (given->balance != NULL) LEAT_TRY(balance_weights(l, &weights, err));
    o.weights = weights != NULL ? weights : given->weights;
    if (o.weights != NULL) {
        o.weight_count = l->universe;
        l->subset = leat__hash64(o.weights, l->universe * sizeof(double), l->subset + 2);
    }
    describe_subset(l, given);
    if (given->bucket != LEAT_BUCKET_NONE) {
        LEAT_GO(rc, out, leat__sizes_buckets(l, given, &ends, &o.bucket_count, err));
        o.bucket_ends = ends;
        o.global_batch = (uint64_t)l->opts.batch_size * l->opts.world;
    }
    o.count = l->count;
    o.indices = l->indices;
    if (l->opts.order == LEAT_ORDER_QUASI) {
        LEAT_GO(rc, out, count_pages(l, &o.pages, err));
        o.page_samples = l->page_samples;
    }
    if (leat__sources_mixed(given)) {
        LEAT_GO(rc, out, leat__sources_shares(l, given, o.pages, &sources, &shares, err));
        o.shares = &shares;
    }
    LEAT_GO(rc, out, leat__order_open(&l->order, &o, err));
    l->count = leat__order_count(l->order);
    leat__loader_batches(l);
    leat__loader_extent(l, false);
out:
    leat__free(weights);
    leat__free(sources);
    leat__free(ends);
    return rc;
}

/* ---- memory ------------------------------------------------------------------------------ */

/* Returns the most samples of a run for the device. Listing tiles takes microseconds, so with short runs many
 * threads would mostly wake each other. 16 threads on the host of an H200 listed 104,000 images/s in runs of
 * 4, and 209,000 in runs of 16. Samples that stay in memory are not copied, so a run takes more of them. */
static uint32_t most_listed(const leat_loader *l)
{
    const bool stay = l->opts.cache == LEAT_CACHE_DEVICE || l->opts.cache == LEAT_CACHE_PROCESS;
    const uint32_t batch = l->opts.batch_size;
    if (l->opts.device == NULL || l->opts.decode == LEAT_DECODE_CPU) return 0;
    return stay ? LEAT_MIN(batch / 4, LEAT__RUN_LISTED) : LEAT_MIN(batch / 8, LEAT__RUN_MAX);
}

int leat__loader_frames(leat_loader *l, bool repeats, leat__shape *shape, leat_error *err)
{
    uint32_t columns = shape->count, threads = leat_pool_threads(l->pool);

    LEAT_TRY(leat__frames_open(&l->frames, l->budget, shape, err));
    l->env.shape = leat__frames_shape(l->frames);
    l->feed.ragged = LEAT_NEW_ARRAY(LOADER, uint64_t, columns + 1);
    l->feed.ids = LEAT_NEW_ARRAY(LOADER, uint64_t, l->opts.batch_size);
    l->feed.salts = LEAT_NEW_ARRAY(LOADER, uint64_t, l->opts.batch_size);
    if (l->feed.ragged == NULL || l->feed.ids == NULL || l->feed.salts == NULL)
        return leat__fail_nomem(err, columns * 8, "a feed");
    LEAT_TRY(leat__sizes_open(l, err));
    l->run_samples = leat__run_samples(l->opts.batch_size, threads, l->info.max_sample_bytes);
    l->run_listed = LEAT_MAX(l->run_samples, most_listed(l));
    l->run_usual =
        leat__run_usual(l->opts.batch_size, threads, l->info.bytes / LEAT_MAX(l->info.samples, UINT64_C(1)),
                        l->info.max_sample_bytes);
    int rc = leat__loader_bound(l, repeats, err);
    const bool must = l->opts.decode == LEAT_DECODE_GPU || l->opts.cache == LEAT_CACHE_DEVICE;
    if (rc != LEAT_EBUDGET || must || l->run_listed == l->run_samples) return rc;
    l->run_listed = l->run_samples; /* the budget has room only for short runs */
    return leat__loader_bound(l, repeats, err);
}

static int set_up_memory(leat_loader *l, const leat_loader_opts *given, leat__shape *shape, leat_error *err)
{
    uint32_t threads = l->opts.threads;

    if (given->budget != NULL) {
        l->budget = given->budget;
        leat__budget_ref(l->budget);
    } else {
        LEAT_TRY(leat_budget_open(&l->budget, l->opts.memory, err));
    }
    leat_pool_opts pool;
    leat_pool_opts_init(&pool);
    pool.threads = threads;
    if (l->pool == NULL && threads > 0) LEAT_TRY(leat_pool_open(&l->pool, &pool, err));
    else if (l->pool == NULL) LEAT_TRY(leat_pool_shared(&l->pool, err));
    LEAT_TRY(leat_tuner_open(&l->tuner, err));

    bool repeats = given->weights != NULL || given->balance != NULL || leat__order_shares(l->order) != NULL;
    LEAT_TRY(leat__asked_open(&l->asked, l, given, repeats, err));
    LEAT_TRY(leat__loader_frames(l, repeats, shape, err));
    return leat__loader_keep(l, err);
}

/* Sets the limit of the page cache. */
static void cap_cache(leat_loader *l)
{
    leat_budget_stats b;
    leat_budget_read(l->budget, &b);
    uint64_t taken = l->floor + l->kept_bytes, free = b.limit > taken ? b.limit - taken : 0;
    uint64_t flow = leat__pages_flow(leat_pool_threads(l->pool), l->max_run_bytes, l->max_frame_bytes);
    l->cache_user.cap = leat__pages_cap(free, flow);
}

/* Frees blocks that are only kept for reuse. */
static void trim_blocks(leat_loader *l)
{
    leat__frames_trim(l->frames);
    leat__blocks_trim(l->env.blocks);
    if (l->env.tile_blocks != NULL) leat__blocks_trim(l->env.tile_blocks);
}

/* The budget's keeper: called when a flow lacks bytes to make progress. */
static uint64_t give_up_kept(void *arg, uint64_t bytes)
{
    leat_loader *l = arg;
    uint64_t freed = leat__frames_kept(l->frames) + leat__blocks_kept(l->env.blocks);

    if (l->env.tile_blocks != NULL) freed += leat__blocks_kept(l->env.tile_blocks);
    trim_blocks(l);
    if (l->env.cache != NULL && freed < bytes)
        freed += leat__cache_shed(l->env.cache, &l->cache_user, bytes - freed);
    return freed;
}

void leat__loader_obey_budget(leat_loader *l)
{
    leat_budget_stats b;
    leat_budget_read(l->budget, &b);
    if (b.used > b.limit) trim_blocks(l);
    if (l->env.cache != NULL) {
        cap_cache(l);
        leat__cache_trim(l->env.cache, &l->cache_user);
    }
}

int leat_loader_memory_set(leat_loader *l, uint64_t bytes, leat_error *err)
{
    LEAT_TRY(leat__loader_check(l, err));
    if (bytes > 0) LEAT_TRY(leat__loader_check_floor(l, bytes, err)); /* also while no epoch runs */
    LEAT_TRY(leat_budget_set_limit(l->budget, bytes, err));
    leat__loader_obey_budget(l);
    return 0;
}

static int set_up_reading(leat_loader *l, leat_error *err)
{
    for (uint32_t i = 0; i < l->info.shards; i++)
        l->env.remote |= leat__file_remote(leat__pack_file(l->pack, i)) != NULL;
    /* the engine decides how many runs read at once; the lane only has to allow that many */
    const bool given = l->opts.io_depth != 0 && !l->env.remote;
    leat__aio_opts aio = {.depth = given ? LEAT_MIN(l->opts.io_depth, DEPTH_MAX) : DEPTH_MAX,
                          .max_depth = DEPTH_MAX};

    if (l->pool->replay != NULL) aio.kind = LEAT__AIO_MANUAL;
    LEAT_TRY(leat__aio_open(&l->env.aio, &aio, err));
    LEAT_TRY(leat__blocks_open(&l->env.blocks, l->budget, LEAT_BUDGET_PAGE, LEAT__MEM_PAGE, err));
    if (l->env.remote) leat__blocks_leave(l->env.blocks, l->max_run_bytes);
    l->page_seen = LEAT_NEW_ARRAY(LOADER, uint8_t, l->info.pages / 8 + 1);
    if (l->page_seen == NULL) return leat__fail_nomem(err, l->info.pages / 8, "the pages");
    /* the OS does not cache pages of remote files, so the loader does, within the budget */
    LEAT_TRY(leat__loader_disk(l, err));
    if (l->opts.cache == LEAT_CACHE_PROCESS || l->env.remote) {
        LEAT_TRY(leat__cache_open(&l->env.cache, l->pack, err));
        l->cache_user.budget = l->budget;
        l->cache_user.keep = l->opts.order == LEAT_ORDER_RANDOM;
        l->cache_user.small_pages = l->env.remote && leat__machine_reports_free();
        l->cache_user.populate =
            l->env.remote; /* one thread receives all pages and must not take page faults */
        cap_cache(l);
        l->env.cache_user = &l->cache_user;
        if (l->env.remote && l->pool->replay == NULL)
            LEAT_TRY(leat__page_ahead_open(&l->page_ahead, l->info.pages, l->budget, err));
    } else if (l->opts.order != LEAT_ORDER_RANDOM) {
        LEAT_TRY(leat__readahead_open(&l->env.ahead, 0, 0, err));
    }
    l->keeper = (leat__budget_keeper){.trim = give_up_kept, .arg = l};
    leat__budget_keep(l->budget, &l->keeper);
    return 0;
}

/* Collects advice. Facts are read only when they can matter: a small pack fits every machine's page cache. */
static void give_advice(leat_loader *l)
{
    leat__advice_facts f = {.pack = leat_pack_path(leat_pack_part(l->pack, 0, NULL)),
                            .order = l->opts.order,
                            .pack_bytes = l->info.bytes,
                            .page_bytes = l->info.page_bytes,
                            .sample_bytes = l->info.bytes / LEAT_MAX(l->info.samples, UINT64_C(1)),
                            .memory_bytes = UINT64_MAX,
                            .count = l->count,
                            .batches = l->batches,
                            .world = l->opts.world,
                            .batch_size = l->opts.batch_size,
                            .drop = (leat_drop)l->opts.drop_last};
    const leat__shares *shares = leat__order_shares(l->order);
    leat_machine machine;
    leat_disk disk;

    if (shares != NULL) f.left_out = leat__shares_left_out(shares, &f.never);
    for (uint32_t i = 0; i < l->opts.source_count && f.never == 0; i++)
        if (l->opts.sources[i].weight > 0) f.left_out = 0; /* shares are rounded anyway */
    if (f.order == LEAT_ORDER_RANDOM && f.pack_bytes >= ADVICE_BYTES &&
        leat_disk_read(&disk, f.pack, NULL) == 0) {
        leat__machine_host(&machine);
        f.memory_bytes = machine.memory_available_bytes;
        f.rotational = disk.rotational == 1;
        f.network = disk.network == 1;
    }
    if (leat__advice_order(&f, l->advice[l->advice_count])) l->advice_count++;
    if (leat__advice_ranks(&f, l->advice[l->advice_count])) l->advice_count++;
    if (leat__advice_none(&f, l->advice[l->advice_count])) l->advice_count++;
    if (leat__advice_single(&f, l->advice[l->advice_count])) l->advice_count++;
    if (leat__sources_classes(l, l->env.shape, l->advice[l->advice_count])) l->advice_count++;
    /* a command that shows the log does not warn again */
    unsigned tellers = LEAT__REGION_LOADER | (l->opts.log.write != NULL ? LEAT__REGION_COMMAND : 0u);
    if (l->env.remote && leat__region_warning(tellers, l->advice[l->advice_count])) l->advice_count++;
    for (uint32_t i = 0; i < l->advice_count; i++) leat__log(&l->opts.log, LEAT_LOG_WARN, "%s", l->advice[i]);
}

int leat__loader_setup(leat_loader *l, const char *path, const leat_loader_opts *given, leat_error *err)
{
    leat__shape shape = {0};
    int rc;

    leat__mutex_init(&l->lock);
    leat__gate_init(&l->env.decoding);
    LEAT_TRY(leat__steps_init(&l->steps, err));
    l->opts = *given;
    LEAT_TRY(check_opts(l, err));
    LEAT_TRY(leat__sources_open(l, path, given, err));
    LEAT_TRY(set_up_order(l, given, err));
    LEAT_GO(rc, out, leat__loader_shape(l, given, &shape, err));
    LEAT_GO(rc, out, set_up_memory(l, given, &shape, err));
    LEAT_GO(rc, out, leat__loader_set_up_device(l, err));
    LEAT_GO(rc, out, set_up_reading(l, err));
    LEAT_GO(rc, out, leat__loader_map_cache(l, err));
    if (given->quarantine != NULL) {
        l->quarantine = leat__strdup(LEAT__MEM_LOADER, given->quarantine);
        if (l->quarantine == NULL) LEAT_GO(rc, out, leat__fail_nomem(err, 256, "a path"));
    }
    l->env.pack = l->pack;
    l->env.on_error = l->opts.on_error;
    l->env.orientation = l->opts.orientation;
    l->env.seed = l->opts.seed;
    l->env.hashes = l->opts.digest != 0;
    l->env.sample_fn = l->opts.sample_fn;
    l->env.sample_cookie = l->opts.sample_cookie;
    l->env.universe = l->universe;
    l->env.indices = l->indices;
    l->env.shares = leat__order_shares(l->order);
    give_advice(l);
    l->opts.ops = l->opts.balance = l->opts.quarantine = l->opts.disk_cache = NULL; /* owned by the caller */
    l->opts.device = l->opts.label = l->opts.follow = NULL;
    l->opts.images = NULL;
    l->opts.indices = NULL;
    l->opts.weights = l->opts.bucket_edges = NULL;
    l->opts.fields = NULL;
    l->opts.sources = NULL;
    l->opts.defaults = NULL;
out:
    leat__shape_reset(&shape);
    return rc;
}

void leat__loader_teardown(leat_loader *l)
{
    if (l->keeper.trim != NULL) leat__budget_unkeep(l->budget, &l->keeper);
    leat__run_close(l->feed.next);
    leat__frame_unref(l->feed.frame);
    leat__change_drop(l);
    leat__asked_close(&l->asked);
    leat__readahead_close(&l->env.ahead);
    leat__disk_stop(l->env.disk); /* its thread may still be in a submission whose read has ended */
    leat__aio_close(&l->env.aio);
    leat__blocks_close(&l->env.blocks);
    leat__disk_close(&l->env.disk);
    leat__free(l->env.disk_base);
    leat__free(l->env.disk_wanted);
    leat__mapper_close(&l->cache_user.mapper);
    leat__cache_leave(&l->env.cache, &l->cache_user);
    while (l->idle != NULL) {
        leat__run_worker *w = l->idle;
        l->idle = w->next;
        leat__run_worker_close(&w);
    }
    leat__step_spans_close(&l->spans);
    leat__to_device_close(&l->device);
    leat__blocks_close(&l->env.tile_blocks);
    leat__loader_drop_frames(l);
    leat__loader_drop_images(l);
    leat_tuner_close(&l->tuner);
    leat_pool_close(&l->pool);
    if (l->kept_bytes > 0) leat_budget_release(l->budget, LEAT_BUDGET_PAGE, l->kept_bytes);
    leat_budget_close(&l->budget);
    leat__order_close(&l->order);
    leat__free(l->page_samples);
    leat__page_ahead_close(&l->page_ahead);
    leat__free(l->page_seen);
    leat__free(l->indices);
    leat__free(l->quarantine);
    leat__kept_close(&l->env.kept);
    leat__sources_close(l);
    leat__steps_reset(&l->steps);
    leat__gate_destroy(&l->env.decoding);
    leat__mutex_destroy(&l->lock);
}
