/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /sys/devices/system/node and the part the process may use. No state, any thread.
 */
#include "probe/numa.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define NODES "/sys/devices/system/node"

static bool list_at(leat__cpuset *set, const char *path)
{
    char *text = leat__sysfile_load("%s", path);
    bool ok = text && leat__cpuset_parse(set, text);
    leat__free(text);
    return ok;
}

/* Reads a list from /proc/self/status, which describes the main thread. The calling thread may be pinned to
 * one CPU while others are not. */
static bool status_list(leat__cpuset *set, const char *key)
{
    char *status = leat__sysfile_load("/proc/self/status");
    const char *at = status ? strstr(status, key) : NULL;
    bool ok = at && leat__cpuset_parse(set, at + strlen(key));
    leat__free(status);
    return ok;
}

static bool mask_of_process(leat__cpuset *set)
{
    if (status_list(set, "Cpus_allowed_list:\t")) return true;
    memset(set, 0, sizeof *set);
    return sched_getaffinity(0, sizeof *set, (cpu_set_t *)set) == 0;
}

bool leat__cpus_usable(leat__cpuset *set, const leat__cgroup *cg)
{
    leat__cpuset online;
    if (!mask_of_process(set)) return false;
    if (list_at(&online, "/sys/devices/system/cpu/online")) leat__cpuset_and(set, &online);
    if (cg->has_cpuset) leat__cpuset_and(set, &cg->cpuset);
    return true;
}

/* "Node 0 MemTotal:       16384 kB" */
static uint64_t memory_of(uint32_t id)
{
    static const char key[] = "MemTotal:";
    char text[1024];
    uint64_t kb, bytes;
    if (!leat__sysfile_read(text, sizeof text, NODES "/node%u/meminfo", id)) return 0;
    const char *at = strstr(text, key);
    if (!at) return 0;
    at += strlen(key);
    at += strspn(at, " \t");
    return leat__text_u64(at, &kb) && leat__mul_u64(kb, 1024, &bytes) ? bytes : 0;
}

static void read_node(leat__numa *numa, uint32_t id, const leat__cpuset *usable, const leat__cpuset *memory)
{
    leat__numa_node *node = &numa->nodes[numa->count];
    char path[sizeof NODES + 32];
    snprintf(path, sizeof path, NODES "/node%u/cpulist", id);
    if (!list_at(&node->cpus, path)) return; /* memory only, or absent */
    leat__cpuset_and(&node->cpus, usable);
    if (leat__cpuset_count(&node->cpus) == 0) return;
    node->id = id;
    node->memory_bytes = memory_of(id);
    node->memory_allowed = leat__cpuset_has(memory, id);
    numa->count++;
}

leat__numa *leat__numa_read(const leat__cgroup *cg)
{
    leat__cpuset nodes, usable, memory;
    leat__numa *numa = LEAT_NEW(PROBE, leat__numa);
    if (!numa) return NULL;
    numa->online = 1;
    if (!list_at(&nodes, NODES "/online")) return numa;
    numa->online = leat__cpuset_count(&nodes);
    if (!leat__cpus_usable(&usable, cg)) return numa;
    if (!status_list(&memory, "Mems_allowed_list:\t")) memory = nodes;
    for (uint32_t id = 0; id < LEAT__CPUS_MAX && numa->count < LEAT__NUMA_MAX; id++)
        if (leat__cpuset_has(&nodes, id)) read_node(numa, id, &usable, &memory);
    return numa;
}
