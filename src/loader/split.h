/* SPDX-License-Identifier: Apache-2.0
 *
 * decode = auto: decides how much the device decodes. A pure function of the consumer's waits. While the
 * consumer waits for batches, the CPUs do not keep up, and the device gets more. While it does not wait, the
 * device gets less, down to the share at which waiting began before, or further if steps take longer now. The
 * decoded bytes are the same either way.
 */
#ifndef LEAT_LOADER_SPLIT_H
#define LEAT_LOADER_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: everything on the CPUs. */
typedef struct leat__split {
    uint32_t share;         /* the device's share, in sixteenths */
    uint32_t floor;         /* share below which the consumer waited */
    uint32_t floor_age;     /* windows since then */
    uint64_t floor_step_ns; /* duration of a trainer's step at that time */
    uint32_t calm;          /* windows without waiting */
    uint32_t batches;       /* batches of the window so far */
    uint64_t begin_ns, waited_ns;
} leat__split;

/* Call it after each next(), with how long it waited, when it returned, and whether it returned a batch.
 * Returns the share for the next batches. */
uint32_t leat__split_step(leat__split *s, uint64_t waited_ns, uint64_t now_ns, bool batch);

#endif
