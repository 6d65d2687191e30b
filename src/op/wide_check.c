/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks which pipelines accept wide images, and decides their output: see wide_ops.h. Pure functions.
 */
#include <stdio.h>
#include <string.h>

#include "op/wide_ops.h"

/* "field 'image' (uint16, 5 channels)" */
static const char *name_of(const leat__pixel_kind *kind, const char *field, char text[160])
{
    snprintf(text, 160, "field '%.100s' (%s, %u channel%s)", field != NULL ? field : "image",
             leat__sample_name(kind->type), kind->channels, kind->channels == 1 ? "" : "s");
    return text;
}

/* Checks that parameter i has one value for all channels, or one for each. */
static int check_count(const leat__op_spec *op, uint32_t i, const leat__pixel_kind *kind, const char *field,
                       leat_error *err)
{
    char text[160];
    const leat__value *const v = &op->value[i];
    if (v->count == 1 || (uint32_t)v->count == kind->channels) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.%s: one number or %u for %s", op->def->name,
                      op->def->params[i].name, kind->channels, name_of(kind, field, text));
}

int leat__bytes_check(const leat__op_spec *ops, uint32_t count, leat_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ops[i].def->param_count; k++) {
            const leat__value *const v = &ops[i].value[k];
            const char *const name = ops[i].def->params[k].name;
            const bool fill = strcmp(name, "fill") == 0;
            if (!fill && strcmp(name, "value") != 0) continue;
            if (v->count > 1 && v->count != 3)
                return leat__fail(err, LEAT_EINVAL, "%s.%s: one number or three", ops[i].def->name, name);
            for (int c = 0; c < v->count && fill; c++)
                if (v->list[c] > 255)
                    return leat__fail(err, LEAT_EINVAL, "%s.fill: %.15g is out of range (0 to 255)",
                                      ops[i].def->name, v->list[c]);
        }
    return 0;
}

int leat__wide_check(const leat__op_spec *ops, uint32_t count, const leat__pixel_kind *kind,
                     const char *field, leat_error *err)
{
    char text[160];
    if (kind->channels > LEAT__CHANNELS_MAX)
        return leat__fail(err, LEAT_EINVAL, "%u channels: at most %d are possible", kind->channels,
                          LEAT__CHANNELS_MAX);
    bool numbers = false; /* true after an op that converts pixels to output numbers */
    for (uint32_t i = 0; i < count; i++) {
        const leat__op_def *const d = ops[i].def;
        numbers |= d->kind == LEAT_OP_OUTPUT;
        if (d->kind == LEAT_OP_ERASE && !numbers)
            return leat__fail(err, LEAT_EINVAL,
                              "%s blanks 8-bit pixels: put it after Normalize or ToDtype "
                              "for %s",
                              d->name, name_of(kind, field, text));
        if (d->kind == LEAT_OP_COLOR || d->kind == LEAT_OP_POLICY || d->bytes_only)
            return leat__fail(err, LEAT_EINVAL,
                              "%s works on 8-bit images of 1, 3 or 4 channels, and not on %s", d->name,
                              name_of(kind, field, text));
        for (uint32_t k = 0; k < d->param_count; k++) {
            const char *const name = d->params[k].name;
            const bool per_channel = strcmp(name, "fill") == 0 || strcmp(name, "mean") == 0 ||
                                     strcmp(name, "std") == 0 || strcmp(name, "value") == 0;
            if (per_channel && d->params[k].kind == LEAT__PARAM_FLOATS && ops[i].value[k].count > 0)
                LEAT_TRY(check_count(&ops[i], k, kind, field, err));
        }
    }
    return 0;
}

int leat__wide_settle(const leat__output_draft *draft, const leat__pixel_kind *kind, const char *field,
                      leat__output_spec *output, leat__wide_norm *norm, leat_error *err)
{
    static const float full[LEAT__SAMPLE_COUNT] = {255, 65535, 1};
    const leat_dtype own = leat__sample_dtype(kind->type);
    leat_dtype dtype = draft->dtype_given ? draft->dtype : own;
    char text[160];
    if (draft->normalized && !draft->dtype_given) dtype = LEAT_DTYPE_F32;
    const bool whole = leat__output_whole(dtype);
    if (draft->normalized && whole)
        return leat__fail(err, LEAT_EINVAL, "Normalize needs a float type, such as ToDtype(f32)");
    if (whole && dtype != own)
        return leat__fail(
            err, LEAT_EINVAL, "ToDtype(%s) would change the values of %s: use %s%sa float type, such as f32",
            leat_dtype_name(dtype), name_of(kind, field, text),
            own == LEAT_DTYPE_F32 ? "" : leat_dtype_name(own), own == LEAT_DTYPE_F32 ? "" : " or ");
    output->dtype = dtype;
    output->layout = draft->layout;
    norm->div = draft->scale ? full[kind->type] : 1;
    for (uint32_t c = 0; c < kind->channels; c++) {
        norm->mean[c] = draft->mean[draft->mean_count > 1 ? c : 0];
        norm->std[c] = draft->std[draft->std_count > 1 ? c : 0];
    }
    return 0;
}
