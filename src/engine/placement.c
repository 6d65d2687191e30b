/* SPDX-License-Identifier: Apache-2.0
 *
 * Placement of CPU workers on NUMA nodes: see placement.h. Each thread of leat binds itself; the masks of the
 * application's threads are not changed. Reads the nodes once, when a pool is opened.
 *
 * Memory: a bound worker allocates pages on its own node (MPOL_LOCAL), even if the process was started with
 * another policy, which was meant for unbound threads. So the pages of a worker's scratch are local, because
 * the worker touches them first.
 */
#include "engine/placement.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/mem.h"
#include "base/thread.h"

#define MPOL_LOCAL 4 /* from linux/mempolicy.h; since Linux 3.8 */

void leat__placement_spread(const leat__numa_node *nodes, uint32_t count, uint32_t workers, uint32_t *node_of)
{
    LEAT_ASSERT(count > 0 && count <= LEAT__NUMA_MAX);
    uint32_t cpus[LEAT__NUMA_MAX], given[LEAT__NUMA_MAX] = {0};
    for (uint32_t i = 0; i < count; i++) cpus[i] = leat__cpuset_count(&nodes[i].cpus);
    for (uint32_t w = 0; w < workers; w++) {
        uint32_t best = 0;
        /* choose the node with the smallest share of its CPUs taken afterwards: (given + 1) / cpus */
        for (uint32_t i = 1; i < count; i++)
            if ((uint64_t)(given[i] + 1) * cpus[best] < (uint64_t)(given[best] + 1) * cpus[i]) best = i;
        given[best]++;
        node_of[w] = best;
    }
}

int leat__placement_open(leat__placement **out, leat_error *err)
{
    const char *want = getenv("LEAT_NUMA");
    leat__cgroup cg;
    *out = NULL;
    if (want && strcmp(want, "off") == 0) return 0;
    leat__cgroup_read(&cg);
    leat__numa *numa = leat__numa_read(&cg);
    if (!numa) return leat__fail_nomem(err, sizeof *numa, "the NUMA nodes");
    size_t bytes = numa->count * sizeof numa->nodes[0];
    leat__placement *p = NULL;
    int rc = 0;
    if (numa->count > 1) {
        p = leat__alloc(LEAT__MEM_ENGINE, sizeof *p + bytes);
        if (!p) rc = leat__fail_nomem(err, sizeof *p + bytes, "the placement of workers");
    }
    if (p) {
        p->count = numa->count;
        memcpy(p->nodes, numa->nodes, bytes);
    }
    leat__free(numa);
    *out = p;
    return rc;
}

void leat__placement_close(leat__placement **p)
{
    leat__free(*p);
    *p = NULL;
}

void leat__placement_enter(const leat__placement *p, uint32_t node)
{
    LEAT_ASSERT(node < p->count);
    const leat__cpuset *cpus = &p->nodes[node].cpus;
    if (!leat__thread_set_cpus(cpus->words, sizeof cpus->words)) return;
    if (p->nodes[node].memory_allowed) {
        long rc = syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
        (void)rc; /* a kernel without memory policies does not need one */
    }
}
