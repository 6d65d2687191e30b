/* SPDX-License-Identifier: Apache-2.0
 *
 * Which NUMA node each CPU worker belongs to. A worker may run on every CPU of its node that
 * the process may use: the kernel balances inside, memory stays near. On one node, or with
 * LEAT_NUMA=off, there is no placement and threads are left alone.
 */
#ifndef LEAT_ENGINE_PLACEMENT_H
#define LEAT_ENGINE_PLACEMENT_H

#include "probe/numa.h"

typedef struct leat__placement {
    uint32_t count;      /* nodes; at least 2 */
    leat__numa_node nodes[];
} leat__placement;

/* The node (its place among `nodes`) of each of `workers` workers: in proportion to their
 * CPUs, so that also the first few of them, which are what is active under a CPU cap, are
 * spread. A pure function. */
void leat__placement_spread(const leat__numa_node *nodes, uint32_t count, uint32_t workers,
                            uint32_t *node_of);

/* *p is NULL when there is nothing to place: one node, none known, or turned off. */
int leat__placement_open(leat__placement **p, leat_error *err) LEAT_MUST_CHECK;
void leat__placement_close(leat__placement **p);

/* Makes the calling thread, one of leat's own, stay on this node and take memory from it where
 * there is some. Never fails: a thread that may not is as fast as before. */
void leat__placement_enter(const leat__placement *p, uint32_t node);

#endif
