/* SPDX-License-Identifier: Apache-2.0
 *
 * The output ops: normalisation, element type, layout. The pipeline reads their parameters when it is
 * opened; nothing is drawn.
 */
#include "base/num.h"
#include "op/op.h"
#include "op/output.h"
#include "op/pipeline.h"

static const leat__param normalize_params[] = {
    {.name = "mean",
     .kind = LEAT__PARAM_FLOATS,
     .min = -1e6,
     .max = 1e6,
     .help = "subtracted, one number or one per channel"},
    {.name = "std",
     .kind = LEAT__PARAM_FLOATS,
     .min = 1e-12,
     .max = 1e6,
     .help = "divided by, one number or one per channel"},
};

static int normalize_check(const leat__op_spec *op, leat_error *err)
{
    for (int i = 0; i < 2; i++) /* the length is checked when the number of channels is known */
        if (op->value[i].count < 1)
            return leat__fail(err, LEAT_EINVAL, "Normalize.%s: one number or one per channel",
                              op->def->params[i].name);
    return 0;
}

static const leat__param dtype_params[] = {
    {.name = "dtype",
     .kind = LEAT__PARAM_CHOICE,
     .choices = LEAT__OUTPUT_DTYPE_CHOICES,
     .min = 1,
     .help = "element type of the batch"},
    {.name = "scale",
     .kind = LEAT__PARAM_FLAG,
     .def = "true",
     .min = 1,
     .help = "float types hold 0 to 1 instead of 0 to 255"},
};

static const leat__param layout_params[] = {
    {.name = "layout",
     .kind = LEAT__PARAM_CHOICE,
     .choices = LEAT__LAYOUT_CHOICES,
     .min = 1,
     .help = "separate planes, or channels last"},
};

const leat__op_def leat__ops_output[] = {
    {"Normalize", "subtracts the mean and divides by the standard deviation, per channel", LEAT_OP_OUTPUT,
     normalize_params, LEAT_COUNT(normalize_params), normalize_check, NULL, NULL},
    {"ToDtype", "element type of the output", LEAT_OP_OUTPUT, dtype_params, LEAT_COUNT(dtype_params), NULL,
     NULL, NULL},
    {"ToLayout", "memory layout of the output", LEAT_OP_OUTPUT, layout_params, LEAT_COUNT(layout_params),
     NULL, NULL, NULL},
    {0},
};

const leat__op_def *const leat__op_layout = &leat__ops_output[2];

int leat__output_apply(leat__output_draft *draft, const leat__op_spec *op, leat_error *err)
{
    const leat__op_spec **const said = &draft->said[op->def - leat__ops_output];
    if (*said)
        return leat__fail(err, LEAT_EINVAL, "%s is given twice: the first one has no effect", op->def->name);
    *said = op;
    if (op->def == &leat__ops_output[0]) {
        draft->normalized = true;
        draft->mean_count = (uint32_t)op->value[0].count;
        draft->std_count = (uint32_t)op->value[1].count;
        for (uint32_t c = 0; c < draft->mean_count; c++) draft->mean[c] = (float)op->value[0].list[c];
        for (uint32_t c = 0; c < draft->std_count; c++) draft->std[c] = (float)op->value[1].list[c];
    } else if (op->def == &leat__ops_output[1]) {
        draft->dtype = leat__output_dtype((uint32_t)op->value[0].i);
        draft->dtype_given = true;
        draft->scale = op->value[1].i != 0;
        if (leat__output_whole(draft->dtype) && !draft->scale)
            return leat__fail(err, LEAT_EINVAL, "ToDtype.scale has no effect on %s",
                              leat_dtype_name(draft->dtype));
    } else {
        draft->layout = (leat__layout)op->value[0].i;
    }
    return 0;
}
