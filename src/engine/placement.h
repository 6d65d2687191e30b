/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns each CPU worker to a NUMA node. A worker may run on every CPU of its node that the
 * process may use: the kernel balances inside the node, and memory stays local. On one node, or
 * with LEAT_NUMA=off, there is no placement and threads are not bound.
 */
#ifndef LEAT_ENGINE_PLACEMENT_H
#define LEAT_ENGINE_PLACEMENT_H

#include "probe/numa.h"

typedef struct leat__placement {
    uint32_t count; /* nodes; at least 2 */
    leat__numa_node nodes[];
} leat__placement;

/* Chooses the node (index into `nodes`) of each worker, in proportion to the nodes' CPUs. The first few
 * workers are spread too, because only they are active under a CPU limit. A pure function. */
void leat__placement_spread(const leat__numa_node *nodes, uint32_t count, uint32_t workers,
                            uint32_t *node_of);

/* Opens a placement. *p stays NULL when there is nothing to place: one node, nodes unknown, or turned off. */
int leat__placement_open(leat__placement **p, leat_error *err) LEAT_MUST_CHECK;
void leat__placement_close(leat__placement **p);

/* Binds the calling thread, which must be leat's own, to this node and its memory. Never fails: a thread that
 * cannot be bound runs as before. */
void leat__placement_enter(const leat__placement *p, uint32_t node);

#endif
