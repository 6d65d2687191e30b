/* SPDX-License-Identifier: Apache-2.0
 *
 * A small number for each thread. Threads that write often (meters, traces) use it to index their
 * data. A number below LEAT__SLOTS belongs to one living thread at a time, which may then write
 * without atomic read-modify-writes. The lowest free number is taken at first use and returned
 * when the thread ends. The next owner sees everything the last one wrote.
 */
#ifndef LEAT_PROBE_SLOT_H
#define LEAT_PROBE_SLOT_H

#include <stdint.h>

#define LEAT__SLOTS 128u /* threads beyond this share the number LEAT__SLOTS */

uint32_t leat__slot_take(void); /* slow path of leat__slot() */

/* initial-exec: one load, even in a shared library. */
extern _Thread_local uint32_t leat__slot_plus_one __attribute__((tls_model("initial-exec")));

/* Number of the calling thread: 0 … LEAT__SLOTS - 1 are exclusive, LEAT__SLOTS is shared. */
static inline uint32_t leat__slot(void)
{
    uint32_t slot = leat__slot_plus_one;
    return slot ? slot - 1 : leat__slot_take();
}

#endif
