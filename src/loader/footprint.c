/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory model of a loader. Batches: those prefetched for the consumer, the one it holds, the one being
 * collated, and those of the runs in flight. Encoded samples: one reused block per run in flight, and blocks
 * for single samples that were already in the OS page cache. The number of these was fitted to the peak RSS
 * of runs over packs of kept, raw and mixed images (docs/plan.md).
 */
#include "loader/footprint.h"

#include <leat/pack.h>

#include "base/num.h"
#include "engine/flow_window.h"
#include "io/file.h"
#include "loader/remote_pages.h"

#define PROCESS_BYTES (UINT64_C(8700) << 10)
#define THREAD_BYTES (UINT64_C(1000) << 10) /* stack, tables and decoder of one worker */
/* Blocks for single samples in addition to one per worker: when the pack is in memory, and when whole runs
 * are read. A worker's own block grows to the largest sample; the others hold any sample, rarely the largest
 * when sizes differ much. */
#define SINGLES_IN_MEMORY 2
#define SINGLES_READING 8
#define VARIED 8        /* sizes vary when the largest sample is this many times the mean */
#define RARELY_LARGER 6 /* times the mean: a size that is rarely exceeded */
/* Workers busy for BUSY_NONE of their time or less have no runs waiting to be decoded; at BUSY_ALL and more,
 * as many wait as may. Fitted to runs over the same packs, read from disk. */
#define BUSY_NONE 0.35
#define BUSY_ALL 0.80
/* The I/O depth that the budget should allow. */
#define DEPTH_ROOM 16
/* A run's block aligns each sample, each part of a batch (loader/bounds.c), for up to eight columns, and its
 * end. */
#define SLOT_BYTES (2 * (uint64_t)LEAT__IO_ALIGN + LEAT_PACK_PADDING)
#define PARTS_BYTES (27u * 256u + 4096u)
#define TINY 1024u /* bytes of a sample that costs less than its scheduling */
#define AHEAD_SAMPLES 32u
#define AHEAD_BYTES (UINT64_C(16) << 20)
#define RUN_TINY 64u /* maximum such samples in a run */

uint32_t leat__prefetch_first(uint64_t batch, uint64_t frame_bytes, uint32_t least)
{
    uint64_t wanted = leat__ceil_div(AHEAD_SAMPLES, LEAT_MAX(batch, UINT64_C(1)));
    uint64_t cheap = AHEAD_BYTES / LEAT_MAX(frame_bytes, UINT64_C(1));
    return (uint32_t)LEAT_MAX(least, LEAT_MIN(wanted, cheap));
}

uint32_t leat__run_samples(uint32_t batch, uint32_t threads, uint64_t max_sample_bytes)
{
    uint32_t samples = batch / (LEAT_MAX(threads, 1u) * 4);
    uint32_t most = max_sample_bytes <= TINY ? RUN_TINY : (uint32_t)LEAT__RUN_MAX;
    return samples < 1 ? 1 : LEAT_MIN(samples, most);
}

uint32_t leat__run_usual(uint32_t batch, uint32_t threads, uint64_t sample_bytes, uint64_t max_sample_bytes)
{
    uint64_t mean = LEAT_MAX(sample_bytes, UINT64_C(1));
    uint32_t most = leat__run_samples(batch, threads, max_sample_bytes);
    return (uint32_t)LEAT_MIN(most, LEAT__RUN_TARGET / mean + 1);
}

static uint64_t samples_of_run(const leat__footprint_facts *f)
{
    return leat__run_usual(f->batch, f->threads, f->sample_bytes, f->max_sample_bytes);
}

/* Returns the runs that hold memory: being read, being decoded, and the waiting part of the rest of the
 * window. */
static uint64_t runs_held(const leat__footprint_facts *f, uint32_t window)
{
    uint32_t moving = LEAT_MIN(window, f->io_depth + f->threads + 1);
    double share = f->busy > 0 ? (f->busy - BUSY_NONE) / (BUSY_ALL - BUSY_NONE) : 1;
    share = LEAT_MAX(0.0, LEAT_MIN(share, 1.0));
    return moving + (uint64_t)(share * (window - moving) + 0.5);
}

static uint64_t reading(const leat__footprint_facts *f, uint32_t window)
{
    uint64_t largest = LEAT_MAX(f->max_sample_bytes, f->sample_bytes);
    uint64_t other = LEAT_MIN(largest, RARELY_LARGER * f->sample_bytes), own = f->threads * largest;
    if (f->in_memory) return own + SINGLES_IN_MEMORY * LEAT_MIN(largest, 2 * f->sample_bytes);
    uint64_t singles = own + (SINGLES_READING - LEAT_MIN(f->threads, (uint32_t)SINGLES_READING)) * other;
    return runs_held(f, window) * samples_of_run(f) * f->sample_bytes + singles;
}

uint64_t leat__footprint_floor(uint64_t run_bytes, uint64_t frame_bytes)
{
    uint64_t frames, sum;
    if (!leat__mul_u64(frame_bytes, 1 + LEAT__LOANS, &frames) ||
        !leat__add_u64(frames, LEAT_MAX(run_bytes, frame_bytes), &sum) ||
        !leat__add_u64(sum, LEAT__WORKER_RAM, &sum))
        return UINT64_MAX;
    return sum;
}

uint64_t leat__footprint_alone(uint64_t run_bytes, uint64_t frame_bytes, uint64_t others)
{
    uint64_t frames, sum, scratch;
    if (!leat__mul_u64(frame_bytes, 1 + LEAT__LOANS, &frames) || !leat__add_u64(frames, run_bytes, &sum) ||
        !leat__mul_u64(1 + others, LEAT__WORKER_RAM, &scratch) || !leat__add_u64(sum, scratch, &sum))
        return UINT64_MAX;
    return sum;
}

/* The floor may have room for the image: then the other workers' scratch takes only what is above it. */
uint64_t leat__footprint_least(uint64_t floor, uint64_t run_bytes, uint64_t frame_bytes, uint32_t threads,
                               uint64_t image_bytes)
{
    uint64_t one, all;
    if (image_bytes == 0) return floor;
    if (!leat__add_u64(leat__footprint_alone(run_bytes, frame_bytes, 0), image_bytes, &one) ||
        !leat__add_u64(leat__footprint_alone(run_bytes, frame_bytes, LEAT_MAX(threads, 1u) - 1), image_bytes,
                       &all))
        return UINT64_MAX;
    return one <= floor ? floor : all;
}

/* Returns the memory of the large images in all workers. It is released with the run: one worker has the
 * largest image, the others hold any image, rarely the largest. */
static uint64_t images_of(uint32_t threads, uint64_t mean, uint64_t largest)
{
    return largest + (LEAT_MAX(threads, 1u) - 1) * LEAT_MIN(largest, RARELY_LARGER * mean);
}

void leat__footprint_of(const leat__footprint_facts *f, leat__footprint *out)
{
    uint64_t run = samples_of_run(f), frame = f->frame_bytes;
    *out = (leat__footprint){.window = leat__flow_window(f->threads, f->io_depth)};
    /* where sizes differ much, runs of small samples have more samples */
    uint64_t most = leat__run_samples(f->batch, f->threads, f->max_sample_bytes);
    uint64_t many = f->max_sample_bytes >= VARIED * f->sample_bytes ? LEAT_MIN(most, run + run / 2) : run;
    /* the runs in flight may begin and end in the middle of a batch: one more at each end */
    uint64_t rows = LEAT_MAX(f->rows > 0 ? f->rows : f->batch, 1u);
    uint64_t filling = 2 + out->window * many / rows;
    out->waiting = f->prefetch * frame;
    out->lent = LEAT__LOANS * frame;
    out->filling = filling * frame;
    out->frames = (uint32_t)(f->prefetch + LEAT__LOANS + filling);
    out->reading = reading(f, out->window);
    out->scratch = f->threads * THREAD_BYTES;
    out->images = images_of(f->threads, f->image_bytes, f->max_image_bytes);
    out->used_images = images_of(f->threads, f->used_image_bytes, f->max_used_image_bytes);
    out->process = f->process_bytes > 0 ? f->process_bytes : PROCESS_BYTES;
    out->resident = out->waiting + out->lent + out->filling + out->reading + out->scratch + out->used_images +
                    out->process;

    leat__footprint_facts wide = *f;
    wide.in_memory = false;
    wide.busy = 1;
    uint32_t window = leat__flow_window(f->threads, LEAT_MAX(f->io_depth, (uint32_t)DEPTH_ROOM));
    uint64_t largest_run =
        LEAT__RUN_TARGET + f->max_sample_bytes + most * (frame / rows + SLOT_BYTES) + PARTS_BYTES;
    out->floor = leat__footprint_floor(largest_run, frame);
    out->flow = leat__pages_flow(f->threads, largest_run, frame);
    out->least = leat__footprint_least(out->floor, largest_run, frame, f->threads, f->max_image_bytes);
    /* blocks kept for reuse must fit below the floor */
    out->budget = out->waiting + out->lent + out->filling + reading(&wide, window) +
                  f->threads * LEAT__WORKER_RAM + out->images + out->floor;
}
