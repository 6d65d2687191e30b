/* SPDX-License-Identifier: Apache-2.0
 *
 * Wide images in pipelines: uint16 and float32 samples, and 8-bit images of 2 or 5 to 16 channels.
 * They take a separate, simpler path than 8-bit planes, which have the fast one:
 *
 *   encoded -> region -> [steps in sequence] -> normalise, cast, lay out -> batch
 *
 * Pixels keep their type between steps, as in torchvision: crops, flips and pads move them, resizes and
 * maps compute in float and round once, to nearest even. All channels are treated alike.
 */
#ifndef LEAT_OP_WIDE_OPS_H
#define LEAT_OP_WIDE_OPS_H

#include "codec/wide.h"
#include "dsp/resize.h"
#include "op/apply.h"
#include "op/output.h"
#include "op/pipeline.h"
#include "op/step.h"

/* ---- at open (wide_check.c) ---- */

/* Normalisation to a float type: (v / div - mean) / std, each operation in float. */
typedef struct leat__wide_norm {
    float div; /* 255, 65535, or 1 */
    float mean[LEAT__CHANNELS_MAX], std[LEAT__CHANNELS_MAX];
} leat__wide_norm;

/* LEAT_EINVAL when an op does not support such pixels: names the op, the field, type and channels. */
int leat__wide_check(const leat__op_spec *ops, uint32_t count, const leat__pixel_kind *kind,
                     const char *field, leat_error *err) LEAT_MUST_CHECK;

/* Checks the fills and erase values of a pipeline for 8-bit images: one number or three, fills at most
 * 255. */
int leat__bytes_check(const leat__op_spec *ops, uint32_t count, leat_error *err) LEAT_MUST_CHECK;

/* Decides the element type and normalisation of the output. Integers keep their type or become floats. */
int leat__wide_settle(const leat__output_draft *draft, const leat__pixel_kind *kind, const char *field,
                      leat__output_spec *output, leat__wide_norm *norm, leat_error *err) LEAT_MUST_CHECK;

/* ---- pixels ---- */

/* The image in flight and the scratch of steps; zeroed = empty. One per worker. */
typedef struct leat__wide_workspace {
    leat__wide image, spare;
    leat__axis x, y;
    const leat__warp_dsp *warp;
    leat__work work;
} leat__wide_workspace;

void leat__wide_workspace_reset(leat__wide_workspace *b);

/* Applies any step that leat__wide_check accepts, except ERASE_OUT (wide_steps.c). */
int leat__wide_apply(leat__wide_workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;

/* Applies a RESIZE (wide_resize.c): Pillow's filters in double, as for its mode F. */
int leat__wide_resample(leat__wide_workspace *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;

/* Converts `n` samples to floats and back. Integers are rounded to nearest even and clipped. */
void leat__wide_to_float(leat__sample_type type, const uint8_t *src, float *dst, size_t n);
void leat__wide_from_float(leat__sample_type type, const float *src, uint8_t *dst, size_t n);

/* Write the finished image into the batch, and erase rectangles of it afterwards (wide_write.c). */
void leat__wide_write(const leat__wide *im, const leat__wide_norm *norm, const leat__output_spec *spec,
                      void *out);
void leat__wide_erase_out(const leat__output_spec *spec, const leat__step *s, void *out);

#endif
