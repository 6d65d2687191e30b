/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters that the kernel reports: CPU time used by this process and by others, time its threads waited for
 * a CPU, throttled quota periods, page faults, pressure. Two readings make a window. Any thread.
 */
#ifndef LEAT_DOCTOR_KERNEL_COUNTERS_H
#define LEAT_DOCTOR_KERNEL_COUNTERS_H

#include <leat/doctor.h>

typedef struct leat__kernel_counters {
    uint64_t wall_ns;
    uint64_t cpu_ns;       /* CPU time of the process */
    uint64_t wait_ns;      /* time its threads were runnable but not running; 0 = unknown */
    uint64_t host_busy_ns; /* busy time of the CPUs this process may use; 0 = unknown */
    uint64_t faults;       /* major page faults */
    uint64_t periods, throttled;
} leat__kernel_counters;

void leat__kernel_counters_read(leat__kernel_counters *s);

/* Fills in the CPU, fault, throttling and pressure facts of the window; unavailable ones stay unknown. */
void leat__kernel_counters_facts(const leat__kernel_counters *from, const leat__kernel_counters *to,
                                 leat_doctor_facts *f);

#endif
