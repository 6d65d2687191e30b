/* SPDX-License-Identifier: Apache-2.0
 *
 * The content of an open pipeline, for pipeline.c, which builds it, and pipeline_run.c, which runs it.
 */
#ifndef LEAT_OP_COMPILED_H
#define LEAT_OP_COMPILED_H

#include "dsp/pixel.h"
#include "op/op.h"
#include "op/pipeline.h"
#include "op/spec.h"
#include "op/wide_ops.h"

struct leat__pipeline {
    leat__op_spec ops[LEAT__SPEC_OPS_MAX];
    uint32_t stream[LEAT__SPEC_OPS_MAX]; /* random stream of each op */
    uint32_t count, batch_ops, view;
    leat__output_spec output;
    leat__norm norm[3];
    leat__pixel_kind kind; /* channels 0: 8-bit planes */
    leat__wide_norm wide_norm;
};

#endif
