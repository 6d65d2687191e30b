/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory of one node, for two loaders: worker processes that each keep `prefetch` batches outstanding
 * (PyTorch's DataLoader), and leat's threads with one budget.
 *
 * The guide's figure is shown beside ours: it uses 230 MB for a batch of 154 MB "with overhead" and nothing
 * else. Ours computes the overhead: the samples of the batch being collated in each worker, the private
 * memory of each worker, pinned copies, and the second loader that persistent validation workers keep alive.
 */
#include "plan/parts.h"

#include <math.h>

#include "base/num.h"
#include "engine/flow_window.h"
#include "loader/footprint.h"
#include "loader/kept.h"
#include "loader/remote_pages.h"
#include "loader/state.h"

/* Single-GPU guide, "Memory budget": OS + base ~3 GB, PyTorch ~2 GB (per training process). */
#define OS_BYTES (3 * PLAN_GB)
#define FRAMEWORK_BYTES (2 * PLAN_GB)
/* Guide: 256 × 3 × 224 × 224 × 4 = 154,140,672 bytes "≈ 230 MB with overhead". */
#define GUIDE_OVERHEAD (230e6 / 154140672.0)
/* Private memory of a forked worker (interpreter, decoder, pages touched): an estimate. */
#define WORKER_BYTES (PLAN_GB / 4)
/* libcurl, with all that it loads, and the requests in flight: measured. Neighbours are joined to fewer
 * requests in a sequential order. */
#define CLIENT_CODE (UINT64_C(5500) << 10)
#define REQUESTS_MANY 64
#define REQUESTS_FEW 16
/* Batches in a process-based trainer outside the queue: pin thread, being copied, in use. */
#define PINNED_BATCHES 3
/* Bytes of a row other than its pixels: the label and the sample's number. */
#define ROW_BYTES 16
/* Bytes that align the columns of a batch and its end. */
#define ALIGN_BYTES 5120

/* Returns the memory of the operating system: it counts for a machine's memory, but not for a job's limit. */
static uint64_t os_bytes(const leat_plan_facts *f)
{
    return f->whole_machine ? OS_BYTES : 0;
}

static bool job_limits(const leat_plan_facts *f)
{
    uint64_t left = f->ram_bytes > os_bytes(f) ? f->ram_bytes - os_bytes(f) : 0;
    return f->limit_bytes > 0 && (f->ram_bytes == 0 || f->limit_bytes <= left);
}

/* Returns the limit of host memory: ram_bytes or limit_bytes, whichever leaves less; 0 = unknown. */
static uint64_t limit_of(const leat_plan_facts *f)
{
    return job_limits(f) ? f->limit_bytes : f->ram_bytes;
}

uint64_t leat__plan_batch_samples(const leat_plan_facts *f)
{
    return f->samples > 0 ? LEAT_MIN(f->batch, f->samples) : f->batch;
}

uint64_t leat__plan_batch_bytes(const leat_plan_facts *f)
{
    uint64_t pixels = UINT64_C(3) * f->image * f->image;
    return leat__plan_batch_samples(f) * (f->out_bytes > 0 ? f->out_bytes : pixels * f->element_bytes);
}

uint64_t leat__plan_frame_bytes(const leat_plan_facts *f)
{
    return leat__plan_batch_bytes(f) + leat__plan_batch_samples(f) * ROW_BYTES + ALIGN_BYTES;
}

uint64_t leat__plan_dataset_bytes(const leat_plan_facts *f)
{
    return f->samples * f->sample_bytes;
}

/* Returns the bytes left below this share of each known limit, after all that is used; negative: too
 * many are used. */
static double room_below(const leat_plan_facts *f, const leat_plan_ram *ram, double share)
{
    double job = (double)(ram->with_validation - ram->os), machine = job + (double)os_bytes(f);
    double room = f->ram_bytes > 0 ? share * (double)f->ram_bytes - machine : INFINITY;
    return f->limit_bytes > 0 ? LEAT_MIN(room, share * (double)f->limit_bytes - job) : room;
}

static uint32_t verdict_of(const leat_plan_facts *f, const leat_plan_ram *ram, double safe)
{
    if (ram->limit == 0) return LEAT_PLAN_UNKNOWN;
    if (room_below(f, ram, PLAN_ALIVE) < 0 || ram->shm_short) return LEAT_PLAN_OUT_OF_MEMORY;
    return room_below(f, ram, safe) < 0 ? LEAT_PLAN_RISKY : LEAT_PLAN_SAFE;
}

static void add_up(const leat_plan_facts *f, leat_plan_ram *ram)
{
    uint64_t loader = ram->queue + ram->assembling + ram->pinned + ram->workers + ram->pages + ram->cache;
    ram->os = job_limits(f) ? 0 : os_bytes(f);
    ram->used = f->ram_used_bytes;
    ram->limit = limit_of(f);
    ram->total = loader + ram->os + ram->framework + ram->used;
    ram->with_validation = ram->total + (f->no_validation ? 0 : loader);
}

void leat__plan_ram_process(const leat_plan_facts *f, leat_plan_ram *ram)
{
    uint64_t trainers = LEAT_MAX(f->gpus, 1u);
    uint64_t workers = trainers * (uint64_t)f->workers;
    *ram = (leat_plan_ram){.batch = leat__plan_batch_bytes(f)};
    ram->queue = workers * f->prefetch * ram->batch;
    ram->assembling = workers * ram->batch;
    ram->pinned = trainers * PINNED_BATCHES * ram->batch;
    ram->workers = workers * WORKER_BYTES;
    ram->framework = trainers * FRAMEWORK_BYTES;
    ram->shm = ram->queue; /* collated batches go to the trainer through shared memory */
    add_up(f, ram);
    uint64_t shm_peak = f->no_validation ? ram->shm : 2 * ram->shm;
    ram->shm_short = f->shm_bytes > 0 && shm_peak > f->shm_bytes;
    ram->guide_batch = (uint64_t)((double)ram->batch * GUIDE_OVERHEAD + 0.5);
    ram->guide_buffer = workers * f->prefetch * ram->guide_batch;
    ram->guide_total = ram->guide_buffer + OS_BYTES + FRAMEWORK_BYTES;
    ram->verdict = verdict_of(f, ram, PLAN_SAFE_PROCESS);
}

/* Caps the footprint of a small dataset: an epoch may have fewer batches than fit in memory, and
 * fewer samples to prefetch. */
static void cap_by_dataset(const leat_plan_facts *f, const leat__footprint_facts *k, leat__footprint *out)
{
    uint64_t most = leat__ceil_div(f->samples, f->batch) * k->frame_bytes;
    uint64_t held = out->waiting + out->filling + out->lent, over = held > most ? held - most : 0;
    uint64_t charged = k->threads * LEAT__WORKER_RAM + out->images + out->floor;
    uint64_t ahead = out->budget - held - charged; /* encoded samples that the budget has room for */
    uint64_t fewer = LEAT_MIN(over, out->waiting);
    out->waiting -= fewer;
    out->filling -= LEAT_MIN(over - fewer, out->filling);
    /* in addition, each worker has a block for the largest sample */
    uint64_t all = leat__plan_dataset_bytes(f) + k->threads * k->max_sample_bytes;
    uint64_t now = out->waiting + out->filling + out->lent, reading = LEAT_MIN(out->reading, all);
    /* the last batch is smaller: the rest of its block is never written */
    double epoch = (double)f->samples / (double)leat__plan_batch_samples(f) * (double)k->frame_bytes;
    uint64_t written = epoch < (double)now ? (uint64_t)epoch : now;
    out->budget = charged + now + LEAT_MIN(ahead, all);
    out->resident -= held - written + (out->reading - reading);
    out->reading = reading;
}

/* Returns the memory of the HTTP client, outside the budget, for requests of this size: its code, unless a
 * measured process has it, and the requests in flight. */
static uint64_t client_bytes(const leat_plan_facts *f, uint64_t range)
{
    if (!leat__plan_remote(f)) return 0;
    uint64_t requests = leat__order_shuffled(leat__plan_order(f)) ? REQUESTS_MANY : REQUESTS_FEW;
    return (f->process_bytes > 0 ? 0 : CLIENT_CODE) + leat__requests_memory(requests, range);
}

/* Computes the memory with the loader's own function (loader/footprint.h) for these facts. */
static void ask_loader(const leat_plan_facts *f, leat__footprint *out)
{
    leat__footprint_facts k = {.batch = (uint32_t)LEAT_MIN(f->batch, UINT64_C(1) << 24),
                               .rows = (uint32_t)LEAT_MIN(leat__plan_batch_samples(f), UINT64_C(1) << 24),
                               .threads = (uint32_t)f->workers,
                               .prefetch = f->prefetch,
                               .io_depth = LEAT__DEPTH_FIRST,
                               .frame_bytes = leat__plan_frame_bytes(f),
                               .sample_bytes = f->sample_bytes,
                               .max_sample_bytes = LEAT_MAX(f->max_sample_bytes, f->sample_bytes),
                               .in_memory = leat__plan_in_memory(f),
                               .process_bytes = f->process_bytes,
                               .image_bytes = f->image_bytes,
                               .max_image_bytes = f->max_image_bytes,
                               .used_image_bytes = f->used_image_bytes,
                               .max_used_image_bytes = f->max_used_image_bytes,
                               /* a trainer on a GPU may be slower than the loader, and pages of a bucket
                                  arrive many at a time: all queues may fill */
                               .busy = f->gpus == 0 && !leat__plan_remote(f) ? leat__plan_busy(f) : 1};
    leat__footprint_of(&k, out);
    out->process += client_bytes(f, f->page_bytes);
    out->resident += client_bytes(f, f->page_bytes);
    if (f->samples > 0 && f->batch > 0) cap_by_dataset(f, &k, out);
}

/* Returns the bytes of pages held twice when cache=process cannot keep the dataset: each run in
 * flight replaces a page while the old one is still held. */
static uint64_t replaced_bytes(const leat_plan_facts *f, const leat__footprint *k)
{
    return k->window * f->page_bytes;
}

/* Returns the bytes of the index that the budget is charged for; every budget has room for the first ones. */
static uint64_t index_charged(const leat_plan_facts *f, const leat__footprint *k, uint64_t budget)
{
    uint64_t kept = leat__plan_remote(f) ? leat__kept_index(budget, k->floor, f->index_bytes) : 0;
    return kept - LEAT_MIN(kept, LEAT__INDEX_FREE);
}

/* Returns the most that the loader's page cache takes of this budget, by the loader's own functions. */
static uint64_t page_cache(const leat_plan_facts *f, const leat__footprint *k, uint64_t budget)
{
    uint64_t taken = k->floor + index_charged(f, k, budget);
    if (!leat__plan_own_pages(f)) return 0;
    return leat__pages_cap(budget - LEAT_MIN(budget, taken), k->flow);
}

/* Returns what the budget has for samples that are read alone: besides the floor, the page cache, the scratch
 * of the workers, and the borrowed batch. */
static uint64_t for_singles(const leat_plan_facts *f, const leat__footprint *k, const leat_plan_ram *ram)
{
    if (!leat__plan_remote(f) || f->loader != LEAT_PLAN_LEAT) return 0;
    uint64_t taken = k->floor + index_charged(f, k, ram->budget) + ram->page_cache +
                     (uint64_t)f->workers * LEAT__WORKER_RAM + leat__plan_frame_bytes(f);
    return ram->budget - LEAT_MIN(ram->budget, taken);
}

/* Returns the least budget whose page cache may have `cap` bytes. */
static uint64_t budget_for(const leat_plan_facts *f, const leat__footprint *k, uint64_t cap)
{
    uint64_t index = leat__plan_remote(f) ? f->index_bytes : 0;
    uint64_t above = index - LEAT_MIN(index, LEAT__INDEX_FREE) + leat__pages_free(cap, k->flow);
    if (index > LEAT__INDEX_FREE) above = LEAT_MAX(above, index / 3 * 4 + 4); /* at most 3/4 are for it */
    return k->floor + above;
}

/* Returns the bytes that a bucket adds to the budget `now`, of `room`: for the whole dataset, or for the
 * pages that the order needs. If there is room for neither, all of it: in every order some pages are then
 * kept. */
static uint64_t bucket_room(const leat_plan_facts *f, const leat__footprint *k, uint64_t now, uint64_t room)
{
    const leat_order order = leat__plan_order(f);
    uint64_t dataset = leat__plan_dataset_bytes(f);
    uint64_t whole = budget_for(f, k, leat__pages_whole(dataset));
    uint64_t enough = budget_for(f, k, leat__pages_enough(dataset, leat__plan_open_bytes(f)));
    if (whole <= now + room) return whole - LEAT_MIN(whole, now);
    if (order != LEAT_ORDER_RANDOM && enough <= now + room) return enough - LEAT_MIN(enough, now);
    return room;
}

/* Returns what a page cache adds to the budget of one loader when no budget is given: the dataset if memory
 * allows, else as much of it as fits. A loader for validation has a separate cache. */
static uint64_t cache_room(const leat_plan_facts *f, const leat__footprint *k, const leat_plan_ram *ram,
                           uint64_t trainers)
{
    if (!leat__plan_own_pages(f) || f->memory_bytes > 0) return 0;
    double left = ram->limit > 0 ? room_below(f, ram, PLAN_SAFE_LEAT) : 0;
    uint64_t room = left > 0 ? (uint64_t)left : 0;
    uint64_t each = room / trainers / (f->no_validation ? 1 : 2), dataset = leat__plan_dataset_bytes(f);
    if (leat__plan_remote(f)) return bucket_room(f, k, ram->budget, each);
    return each >= dataset ? dataset : each - LEAT_MIN(each, replaced_bytes(f, k));
}

/* Returns what the page cache holds in the end: the dataset, or what it has room for. From a local file it
 * also holds pages twice. `left`: the part of the budget that other data never uses. */
static uint64_t cache_held(const leat_plan_facts *f, const leat__footprint *k, const leat_plan_ram *ram,
                           uint64_t left)
{
    uint64_t dataset = leat__plan_dataset_bytes(f);
    if (!leat__plan_own_pages(f)) return 0;
    if (leat__plan_remote(f))
        return LEAT_MIN(left, LEAT_MIN(dataset, ram->page_cache) + index_charged(f, k, ram->budget));
    return left >= dataset ? dataset : left + replaced_bytes(f, k);
}

/* Returns the memory of one loader in the end, `most` of it inside the budget, of which the page cache holds
 * `held`. */
static uint64_t resident(const leat_plan_facts *f, const leat__footprint *k, uint64_t most, uint64_t held,
                         uint64_t window_bytes)
{
    uint64_t outside = k->process + k->scratch, want = k->resident + window_bytes;
    if (!leat__plan_own_pages(f)) return LEAT_MIN(want + held, most + outside);
    want += leat__plan_dataset_bytes(f);
    return want <= most + outside ? want : most + outside + replaced_bytes(f, k);
}

/* Returns the memory of one loader that reads from a bucket, `most` of it inside the budget. Samples read
 * alone take all that is left; otherwise there are only the page cache and the batches. */
static uint64_t bucket_resident(const leat_plan_facts *f, const leat__footprint *k, const leat_plan_ram *ram,
                                uint64_t most)
{
    bool single = leat__plan_reads_of(f, ram).single > 0;
    uint64_t client = client_bytes(f, single ? f->sample_bytes : f->page_bytes);
    uint64_t outside = k->process - client_bytes(f, f->page_bytes) + client + k->scratch +
                       LEAT_MIN(f->index_bytes, LEAT__INDEX_FREE);
    uint64_t pages =
        LEAT_MIN(leat__plan_dataset_bytes(f), ram->page_cache) + index_charged(f, k, ram->budget);
    uint64_t inside = k->waiting + k->filling + k->lent + k->images + pages;
    return outside + (single ? most : LEAT_MIN(inside, most));
}

void leat__plan_ram_leat(const leat_plan_facts *f, uint32_t window, leat_plan_ram *ram)
{
    uint64_t trainers = LEAT_MAX(f->gpus, 1u);
    uint64_t window_bytes = window * f->page_bytes;
    leat__footprint k;
    ask_loader(f, &k);
    *ram = (leat_plan_ram){.batch = leat__plan_batch_bytes(f)};
    /* parts of the budget in use at the same time, besides the floor */
    uint64_t want = k.budget + window_bytes, parts = want - k.floor;
    uint64_t outside = k.process + k.scratch;
    uint64_t charged = (uint64_t)f->workers * LEAT__WORKER_RAM + k.images;
    ram->budget = f->memory_bytes > 0 ? f->memory_bytes : want;
    ram->queue = trainers * k.waiting;
    ram->assembling = trainers * k.filling;
    ram->pinned = trainers * k.lent;
    ram->workers = trainers * (charged + outside);
    ram->uncharged = trainers * outside;
    ram->pages = trainers * (parts - k.waiting - k.filling - k.lent - charged);
    if (ram->budget < want) { /* too small: fewer pages are prefetched first, then fewer batches are queued */
        uint64_t over = trainers * (want - ram->budget);
        uint64_t cut = LEAT_MIN(over, ram->pages);
        ram->pages -= cut;
        over -= cut;
        cut = LEAT_MIN(over, ram->queue);
        ram->queue -= cut;
        /* then one large image is processed at a time */
        ram->workers -= LEAT_MIN(over - cut, trainers * (k.images - f->max_image_bytes));
    }
    ram->framework = f->gpus > 0 ? trainers * FRAMEWORK_BYTES : 0;
    add_up(f, ram);
    ram->budget += cache_room(f, &k, ram, trainers);
    ram->page_cache = page_cache(f, &k, ram->budget);
    ram->reading = for_singles(f, &k, ram);
    uint64_t most = LEAT_MAX(ram->budget, 2 * k.floor) - k.floor;
    uint64_t own = (ram->queue + ram->assembling + ram->pinned + ram->workers + ram->pages) / trainers;
    uint64_t held = cache_held(f, &k, ram, most - LEAT_MIN(most, own - outside));
    ram->cache = trainers * held;
    add_up(f, ram);
    ram->resident = trainers * (leat__plan_remote(f) ? bucket_resident(f, &k, ram, most)
                                                     : resident(f, &k, most, held, window_bytes));
    ram->verdict = verdict_of(f, ram, PLAN_SAFE_LEAT);
    if (ram->budget < k.least) ram->verdict = LEAT_PLAN_OUT_OF_MEMORY;
}
