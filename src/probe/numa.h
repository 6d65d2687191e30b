/* SPDX-License-Identifier: Apache-2.0
 *
 * The NUMA nodes that this process may use: the CPUs and the memory of each. Nodes without a
 * usable CPU are not listed. Facts only; engine/placement.h decides which thread runs where.
 */
#ifndef LEAT_PROBE_NUMA_H
#define LEAT_PROBE_NUMA_H

#include "base/error.h"
#include "probe/cgroup.h"

#define LEAT__NUMA_MAX 64u

typedef struct leat__numa_node {
    uint32_t id;
    leat__cpuset cpus;     /* usable by this process */
    uint64_t memory_bytes; /* 0 = none or unknown */
    bool memory_allowed;   /* the process may allocate memory there */
} leat__numa_node;

typedef struct leat__numa {
    uint32_t online; /* nodes of the machine, usable or not; at least 1 */
    uint32_t count;  /* length of `nodes`; 0 when the kernel does not report nodes */
    leat__numa_node nodes[LEAT__NUMA_MAX];
} leat__numa;

/* Finds the CPUs this process may use: online, in its affinity mask, and in the CPU sets of its control
 * groups. False when unknown. */
bool leat__cpus_usable(leat__cpuset *set, const leat__cgroup *cg);

/* Reads the nodes into heap memory, because the struct is large. Free it with leat__free; NULL when out of
 * memory. */
leat__numa *leat__numa_read(const leat__cgroup *cg);

#endif
