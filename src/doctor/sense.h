/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel reports about this process: CPU used, CPU used by others, time its threads
 * waited for a CPU, throttled quota periods, page faults, pressure. Two samples make a window.
 * Any thread.
 */
#ifndef LEAT_DOCTOR_SENSE_H
#define LEAT_DOCTOR_SENSE_H

#include <leat/doctor.h>

typedef struct leat__sense {
    uint64_t wall_ns;
    uint64_t cpu_ns;       /* of the process */
    uint64_t wait_ns;      /* its threads were runnable but not running; 0 = unknown */
    uint64_t host_busy_ns; /* of the CPUs this process may use; 0 = unknown */
    uint64_t faults;       /* major */
    uint64_t periods, throttled;
} leat__sense;

void leat__sense_look(leat__sense *s);

/* Fills CPU, fault, throttling and pressure facts of the window; unavailable ones stay
 * unknown. */
void leat__sense_facts(const leat__sense *from, const leat__sense *to, leat_doctor_facts *f);

#endif
