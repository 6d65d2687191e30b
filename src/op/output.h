/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of the output ops of a pipeline, collected while it is opened.
 */
#ifndef LEAT_OP_OUTPUT_H
#define LEAT_OP_OUTPUT_H

#include "op/op.h"
#include "op/pipeline.h"

typedef struct leat__output_draft {
    leat_dtype dtype;
    leat__layout layout;
    bool dtype_given, scale, normalized;
    float mean[LEAT__CHANNELS_MAX], std[LEAT__CHANNELS_MAX];
    uint32_t mean_count, std_count; /* numbers given: one, or one per channel */
    const leat__op_spec *said[3];   /* output ops seen so far, in the order of the table */
} leat__output_draft;

extern const leat__op_def *const leat__op_layout; /* ToLayout */

/* Adds the settings of one output op. LEAT_EINVAL when the op was given before or has no effect. */
int leat__output_apply(leat__output_draft *draft, const leat__op_spec *op, leat_error *err) LEAT_MUST_CHECK;

#endif
