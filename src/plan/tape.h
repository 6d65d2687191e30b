/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one training step, op by op. An architecture is a list of operations over
 * storages (arch_*.c). leat__tape_run() executes the list like autograd, forward and backward,
 * and records the maximum of live bytes. So activations are summed from the tensors that backward
 * really needs, in-place operations share their storage, and the time of the peak is computed,
 * not assumed. One thread at a time; no I/O.
 *
 * What a framework keeps (PyTorch, from its derivative formulas): a convolution and a linear
 * layer keep input and weight; batch norm its input and two statistics per channel; layer norm
 * its input and two statistics per row; ReLU its result; GELU its input; max pooling its input
 * and int64 indices; fused attention q, k, v, the result and one float per row and head; addition
 * nothing.
 */
#ifndef LEAT_PLAN_TAPE_H
#define LEAT_PLAN_TAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define LEAT__TAPE_NONE UINT32_MAX
#define LEAT__TAPE_SAVES 5

typedef struct leat__tape_op {
    uint32_t in[2];                   /* storages read; LEAT__TAPE_NONE when absent */
    uint32_t out;                     /* storage written; equal to in[0] for in-place operations */
    uint32_t saves[LEAT__TAPE_SAVES]; /* storages kept until this op's backward */
    uint32_t saves_count;
    bool grad_alias;     /* backward passes its gradient on (add, view) instead of making one */
    bool grad_temp;      /* parameter gradients are in the compute type and are widened */
    uint64_t kept_bytes; /* saved besides storages: statistics, indices, cast weights */
    uint64_t weights;    /* parameters, in elements */
    uint64_t forward_workspace, backward_workspace;
    double macs;   /* multiply-adds of forward, whole batch */
    double passes; /* times the input is read in forward (batch norm: 2) */
} leat__tape_op;

typedef struct leat__tape {
    uint64_t batch;
    uint32_t size;        /* bytes of an activation element in compute precision */
    bool mixed;           /* autocast: fp32 weights, compute in 16 bits */
    bool keep_grads;      /* gradients stay allocated between steps */
    uint32_t param_bytes; /* bytes of a stored parameter */
    leat__buf storages;   /* their sizes in bytes, a uint64_t each */
    leat__buf ops;        /* leat__tape_op each */
    int status;
} leat__tape;

/* The needs of a step, in bytes for the whole batch, without weights and optimizer state. */
typedef struct leat__tape_sum {
    uint64_t params;           /* elements */
    uint64_t saved_bytes;      /* kept from forward to backward */
    uint64_t peak_bytes;       /* maximum of live bytes: activations, their gradients,
                                * weights' gradients */
    uint64_t peak_grads_bytes; /* part of it: gradients of weights */
    double macs;               /* forward, per batch */
    double traffic_bytes;      /* moved to and from memory in forward and backward */
} leat__tape_sum;

void leat__tape_init(leat__tape *t, uint64_t batch, uint32_t size, bool mixed);
void leat__tape_reset(leat__tape *t);

/* Add a storage of batch × elements × element_bytes, and a copy of an op. A storage that no op writes
 * is the batch: it is counted elsewhere and has no gradient, like everything without parameters
 * before it. Failures are stored and reported by leat__tape_run: LEAT_ENOMEM, or LEAT_EOVERFLOW for
 * sizes past 2^63. */
uint32_t leat__tape_storage(leat__tape *t, uint64_t elements, uint32_t element_bytes);
void leat__tape_add(leat__tape *t, const leat__tape_op *op);

int leat__tape_run(const leat__tape *t, leat__tape_sum *sum) LEAT_MUST_CHECK;

#endif
