/* SPDX-License-Identifier: Apache-2.0
 *
 * decode = auto: how much of the decoding the device does. A pure function of the consumer's
 * waits: while it waits for batches, the CPUs do not keep up, and the device gets more; while it
 * does not wait, the device gets less again, down to where waiting began before, or further when steps
 * take longer now. The bytes are the same either way.
 */
#ifndef LEAT_LOADER_SPLIT_H
#define LEAT_LOADER_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: everything on the CPUs. */
typedef struct leat__split {
    uint32_t share;         /* sixteenths for the device */
    uint32_t floor;         /* below it the consumer waited */
    uint32_t floor_age;     /* windows since then */
    uint64_t floor_step_ns; /* how long a step of the trainer took then */
    uint32_t calm;          /* windows without waiting */
    uint32_t batches;       /* of the window so far */
    uint64_t begin_ns, waited_ns;
} leat__split;

/* After each call of next(): how long it waited, when it returned, whether it returned a batch.
 * Returns the share for the next batches. */
uint32_t leat__split_step(leat__split *s, uint64_t waited_ns, uint64_t now_ns, bool batch);

#endif
