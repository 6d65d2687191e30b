/* SPDX-License-Identifier: Apache-2.0
 *
 * What the output ops of a pipeline say, gathered while it is opened.
 */
#ifndef LEAT_OP_OUTPUT_H
#define LEAT_OP_OUTPUT_H

#include "op/op.h"
#include "op/pipeline.h"

typedef struct leat__output_draft {
    leat__dtype dtype;
    leat__layout layout;
    bool dtype_given, scale, normalized;
    float mean[3], std[3];
} leat__output_draft;

extern const leat__op_def *const leat__op_layout; /* ToLayout */

void leat__output_apply(leat__output_draft *draft, const leat__op_spec *op);

#endif
