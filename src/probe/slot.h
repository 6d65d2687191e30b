/* SPDX-License-Identifier: Apache-2.0
 *
 * A small number for each thread. Threads that write often (meters, traces) keep their data
 * under it: below LEAT__SLOTS a number belongs to one living thread at a time, which may then
 * write without atomic read-modify-writes. The lowest free number is taken at first use and
 * given back when the thread ends; the next owner sees all that the last one wrote.
 */
#ifndef LEAT_PROBE_SLOT_H
#define LEAT_PROBE_SLOT_H

#include <stdint.h>

#define LEAT__SLOTS 128u /* threads beyond this share the number LEAT__SLOTS */

uint32_t leat__slot_take(void); /* slow path of leat__slot() */

/* initial-exec: one load, also inside a shared library. */
extern _Thread_local uint32_t leat__slot_plus_one __attribute__((tls_model("initial-exec")));

/* Number of the calling thread: 0 … LEAT__SLOTS - 1 are its own, LEAT__SLOTS is shared. */
static inline uint32_t leat__slot(void)
{
    uint32_t slot = leat__slot_plus_one;
    return slot ? slot - 1 : leat__slot_take();
}

#endif
