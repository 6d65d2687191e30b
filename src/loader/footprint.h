/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicts the memory of a loader: a pure function of its options and of a few facts of the pack. The loader
 * sizes its runs with it, and `leat plan` uses the same model before a run. Any thread.
 */
#ifndef LEAT_LOADER_FOOTPRINT_H
#define LEAT_LOADER_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__RUN_MAX 16    /* maximum samples of a run; more if they are tiny */
#define LEAT__RUN_LISTED 64 /* maximum samples of a run that the host only lists for a device */
#define LEAT__RUN_TARGET (UINT64_C(2) << 20) /* encoded bytes after which a run is full */
#define LEAT__WORKER_RAM (UINT64_C(2) << 20) /* bytes charged for the scratch of one worker */
#define LEAT__LOANS 1                        /* a training loop holds one batch while it asks for the next */

/* Returns the most samples of a run, small enough that every worker gets several runs per batch. */
uint32_t leat__run_samples(uint32_t batch, uint32_t threads, uint64_t max_sample_bytes);
/* Returns the usual number of samples per run for this mean size: a run is full with the sample that exceeds
 * the target. */
uint32_t leat__run_usual(uint32_t batch, uint32_t threads, uint64_t sample_bytes, uint64_t max_sample_bytes);

/* Returns the batches that a loader makes ahead at first, unless their number is given. A batch of few
 * samples is too little work to wake a worker, so more of them are made ahead if that takes little memory.
 * `least`: LEAT__PREFETCH_FIRST, or what a device decodes at once. */
uint32_t leat__prefetch_first(uint64_t batch, uint64_t frame_bytes, uint32_t least);

typedef struct leat__footprint_facts {
    uint32_t batch, threads, prefetch;
    uint32_t io_depth;    /* reads in flight: as requested, or as the controller will choose */
    uint32_t rows;        /* samples of the largest batch, if the dataset has fewer than `batch`; 0 = batch */
    uint64_t frame_bytes; /* the largest batch */
    uint64_t sample_bytes, max_sample_bytes; /* encoded: mean and largest */
    bool in_memory;                          /* the pack is in the OS page cache: nothing is prefetched */
    uint64_t process_bytes; /* memory outside the budget and the workers; 0 = the usual amount */
    /* mean and largest memory to decode an image and to run ops on it: what is reserved beyond
     * LEAT__WORKER_RAM (loader/scratch.h), and how much is used. The index tells only the former */
    uint64_t image_bytes, max_image_bytes;
    uint64_t used_image_bytes, max_used_image_bytes;
    double busy; /* share of time in which the workers decode; 0 = unknown: always */
} leat__footprint_facts;

/* All in bytes. `frames` counts batches in memory when the consumer is slower and every queue is
 * full: waiting, borrowed, being filled. */
typedef struct leat__footprint {
    uint32_t window; /* runs in flight */
    uint32_t frames;
    uint64_t waiting, filling, lent; /* batches */
    uint64_t reading;                /* encoded samples, and blocks kept for reuse */
    uint64_t scratch;                /* of the workers, outside the budget */
    uint64_t images;                 /* reserved for large images that the workers decode, in the budget */
    uint64_t used_images;            /* the part of it that is used */
    uint64_t process;                /* outside the budget: code, libraries, stacks, the index */
    uint64_t resident;               /* the sum: memory of the process */
    uint64_t budget;                 /* a limit that never blocks work */
    uint64_t floor;                  /* the minimum budget */
    uint64_t least;                  /* the minimum budget that is enough for the largest image, too */
    uint64_t flow;                   /* what the flow takes of the budget before the page cache does */
} leat__footprint;

/* Computes the minimum budget as the engine does for the loader's stages: the largest step, a group, the
 * borrowed batches, one worker. UINT64_MAX on overflow. */
uint64_t leat__footprint_floor(uint64_t run_bytes, uint64_t frame_bytes);

/* Returns what a budget must have when a run is alone, besides an image's memory beyond that of a worker: the
 * run, the batches, and the scratch that `others` more workers keep. `run_bytes` is the largest run, with
 * what is held all the time. UINT64_MAX on overflow. */
uint64_t leat__footprint_alone(uint64_t run_bytes, uint64_t frame_bytes, uint64_t others);
/* Returns the minimum budget with which every image can be decoded, the largest of which takes `image_bytes`
 * beyond LEAT__WORKER_RAM. UINT64_MAX on overflow. */
uint64_t leat__footprint_least(uint64_t floor, uint64_t run_bytes, uint64_t frame_bytes, uint32_t threads,
                               uint64_t image_bytes);

void leat__footprint_of(const leat__footprint_facts *facts, leat__footprint *out);

#endif
