/* SPDX-License-Identifier: Apache-2.0
 *
 * What a loader will hold in memory: a pure function of its options and of a few facts of the
 * pack. The loader sizes its runs with it, `leat plan` asks it before anything runs: there is no
 * second model. Any thread.
 */
#ifndef LEAT_LOADER_FOOTPRINT_H
#define LEAT_LOADER_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#define LEAT__RUN_MAX 16                        /* samples of a run, at most; of tiny ones more */
#define LEAT__RUN_TARGET (UINT64_C(2) << 20)    /* encoded bytes after which a run is full */
#define LEAT__WORKER_RAM (UINT64_C(2) << 20)    /* charged for the scratch of one worker */
#define LEAT__LOANS 1 /* a training loop holds one batch while it asks for the next */

/* Samples in a run: small enough that every worker gets several per batch. */
uint32_t leat__run_samples(uint32_t batch, uint32_t threads, uint64_t max_sample_bytes);
/* What a run really has of samples of this mean size: it is full with the one that passes the target. */
uint32_t leat__run_usual(uint32_t batch, uint32_t threads, uint64_t sample_bytes,
                        uint64_t max_sample_bytes);

typedef struct leat__footprint_facts {
    uint32_t batch, threads, prefetch;
    uint32_t io_depth; /* reads at once: what is asked for, or what the controller will reach */
    uint64_t frame_bytes; /* a full batch */
    uint64_t sample_bytes, max_sample_bytes; /* encoded: mean and largest */
    bool in_memory; /* the system has the pack in its page cache: nothing is read ahead */
    double busy; /* share of their time that the workers have something to decode; 0 = not known: all */
} leat__footprint_facts;

/* All bytes. `frames` counts batches in memory when the consumer is the slower side and every
 * queue is full: waiting, on loan, being filled. */
typedef struct leat__footprint {
    uint32_t window; /* runs on their way */
    uint32_t frames;
    uint64_t waiting, filling, lent; /* batches */
    uint64_t reading; /* encoded samples, and blocks kept to be used again */
    uint64_t scratch; /* of the workers */
    uint64_t process; /* outside the budget: code, libraries, stacks, the index */
    uint64_t resident; /* the sum: what the process takes */
    uint64_t budget;  /* a limit that never makes it wait */
    uint64_t floor;   /* the least it starts with */
} leat__footprint;

/* The least budget: the largest step, a group, the batches on loan, one worker; as the engine
 * counts it for the loader's stages. UINT64_MAX when it is no number. */
uint64_t leat__footprint_floor(uint64_t run_bytes, uint64_t frame_bytes);

void leat__footprint_of(const leat__footprint_facts *facts, leat__footprint *out);

#endif
