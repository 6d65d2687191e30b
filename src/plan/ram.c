/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory of one node. Two loaders: worker processes that each keep `prefetch` batches
 * outstanding (PyTorch's DataLoader), and leat's threads under one budget.
 *
 * The guide's arithmetic stands beside ours: it takes 230 MB for a batch of 154 MB "with
 * overhead" and stops there. Ours counts what the overhead is: the samples of the batch being
 * collated in each worker, the private memory of each worker, pinned copies, and the second
 * loader that persistent validation workers keep alive.
 */
#include "plan/parts.h"

#include "base/num.h"

/* Single-GPU guide, "Memory budget": OS + base ~3 GB, PyTorch ~2 GB (per training process). */
#define OS_BYTES (3 * PLAN_GB)
#define FRAMEWORK_BYTES (2 * PLAN_GB)
/* Guide: 256 × 3 × 224 × 224 × 4 = 154,140,672 bytes "≈ 230 MB with overhead". */
#define GUIDE_OVERHEAD (230e6 / 154140672.0)
/* Private memory of a forked worker (interpreter, decoder, pages touched): an estimate. */
#define WORKER_BYTES (PLAN_GB / 4)
/* Batches in a process-based trainer besides the queue: pin thread, in copy, in use. */
#define PINNED_BATCHES 3
/* leat: a worker's scratch where none was measured; runs of samples being read and decoded
 * (two per thread, 16 samples each); what the process has outside its budget (code, stacks,
 * the index, what the allocator keeps: 30 to 50 MiB in runs of leat load). */
#define SCRATCH_BYTES (UINT64_C(2) << 20)
#define RUNS_PER_THREAD 2
#define RUN_SAMPLES 16
#define LEAT_BASE_BYTES (UINT64_C(40) << 20)

uint64_t leat__plan_batch_bytes(const leat_plan_facts *f)
{
    return f->batch * 3 * f->image * f->image * f->element_bytes;
}

uint64_t leat__plan_dataset_bytes(const leat_plan_facts *f)
{
    return f->samples * f->sample_bytes;
}

static uint32_t verdict_of(const leat_plan_ram *ram, double safe)
{
    if (ram->limit == 0) return LEAT_PLAN_UNKNOWN;
    double share = (double)ram->with_validation / (double)ram->limit;
    if (share > PLAN_ALIVE || ram->shm_short) return LEAT_PLAN_OUT_OF_MEMORY;
    return share > safe ? LEAT_PLAN_RISKY : LEAT_PLAN_SAFE;
}

static void add_up(const leat_plan_facts *f, leat_plan_ram *ram)
{
    uint64_t loader = ram->queue + ram->assembling + ram->pinned + ram->workers + ram->pages;
    ram->os = f->whole_machine ? OS_BYTES : 0;
    ram->used = f->ram_used_bytes;
    ram->limit = f->ram_bytes;
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
    ram->shm = ram->queue; /* collated batches cross to the trainer in shared memory */
    add_up(f, ram);
    uint64_t shm_peak = f->no_validation ? ram->shm : 2 * ram->shm;
    ram->shm_short = f->shm_bytes > 0 && shm_peak > f->shm_bytes;
    ram->guide_batch = (uint64_t)((double)ram->batch * GUIDE_OVERHEAD + 0.5);
    ram->guide_buffer = workers * f->prefetch * ram->guide_batch;
    ram->guide_total = ram->guide_buffer + OS_BYTES + FRAMEWORK_BYTES;
    ram->verdict = verdict_of(ram, PLAN_SAFE_PROCESS);
}

void leat__plan_ram_leat(const leat_plan_facts *f, uint32_t window, leat_plan_ram *ram)
{
    uint64_t trainers = LEAT_MAX(f->gpus, 1u);
    uint64_t threads = (uint64_t)f->workers;
    uint64_t scratch = 0;
    if (scratch == 0) { /* the decoded image, and rows between the two passes of the resize */
        scratch = (uint64_t)f->width * f->height * 3 + (uint64_t)f->height * f->image * 3;
        scratch = LEAT_MAX(scratch, SCRATCH_BYTES);
    }
    *ram = (leat_plan_ram){.batch = leat__plan_batch_bytes(f)};
    uint64_t reading = threads * RUNS_PER_THREAD * RUN_SAMPLES * f->sample_bytes;
    uint64_t per_trainer[] = {f->prefetch * ram->batch, ram->batch, ram->batch,
                              threads * scratch, reading + window * f->page_bytes};
    uint64_t want = 0;
    for (size_t i = 0; i < LEAT_COUNT(per_trainer); i++) want += per_trainer[i];
    ram->budget = f->memory_bytes > 0 ? f->memory_bytes : want;
    ram->queue = trainers * per_trainer[0];
    ram->assembling = trainers * per_trainer[1];
    ram->pinned = trainers * per_trainer[2];
    ram->workers = trainers * (per_trainer[3] + LEAT_BASE_BYTES);
    ram->pages = trainers * per_trainer[4];
    if (ram->budget < want) { /* tight: fewer pages are kept, then fewer batches wait */
        uint64_t over = trainers * (want - ram->budget);
        uint64_t cut = LEAT_MIN(over, ram->pages);
        ram->pages -= cut;
        ram->queue -= LEAT_MIN(over - cut, ram->queue);
    }
    /* One batch lent or leaving, one being filled, a run per thread. */
    ram->starved = 2 * ram->batch + threads * (scratch + RUN_SAMPLES * f->sample_bytes);
    ram->starved = LEAT_MIN(ram->starved, ram->budget);
    ram->framework = f->gpus > 0 ? trainers * FRAMEWORK_BYTES : 0;
    add_up(f, ram);
    ram->verdict = verdict_of(ram, PLAN_SAFE_LEAT);
    uint64_t least = 2 * ram->batch + threads * scratch + 2 * f->page_bytes;
    if (ram->budget < least) ram->verdict = LEAT_PLAN_OUT_OF_MEMORY;
}
