/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits set by the control groups of this process: CPU quota, memory, CPU set, swap. They are
 * read from the process's own group and every visible parent, in version 1, version 2 and both at
 * once.
 */
#ifndef LEAT_PROBE_CGROUP_H
#define LEAT_PROBE_CGROUP_H

#include "probe/sysfile.h"

typedef struct leat__cgroup {
    uint32_t version;                                  /* 0 none, 1, 2, 3 = both */
    double cpu_quota;                                  /* smallest of all groups, in CPUs; 0 = none */
    uint64_t periods, throttled_periods, throttled_us; /* of the group with that quota */
    uint64_t memory_limit;                             /* smallest of all groups; LEAT_UNLIMITED = none */
    uint64_t memory_used;                              /* of the group with that limit, without page cache */
    uint64_t memory_left;                              /* smallest limit - used of all groups */
    uint64_t swap_left;                                /* smallest swap limit - used; LEAT_UNLIMITED = none */
    bool has_cpuset;
    leat__cpuset cpuset;    /* CPUs that all groups allow */
    char unified[PATH_MAX]; /* own version 2 group (below the sysroot), "" = none */
} leat__cgroup;

/* Reads all limits. Never fails: a file that cannot be read sets no limit. */
void leat__cgroup_read(leat__cgroup *cg);

#endif
