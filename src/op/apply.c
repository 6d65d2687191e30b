/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the family that runs a step: see apply.h.
 */
#include "op/apply.h"

#include <string.h>

#include "base/check.h"
#include "base/mem.h"
#include "probe/cpu.h"

void leat__workspace_reset(leat__workspace *b)
{
    leat__planes_reset(&b->image);
    leat__planes_reset(&b->spare);
    leat__planes_reset(&b->base);
    leat__free(b->work.block);
    leat__free(b->sum);
    leat__decoder_close(&b->decoder);
    leat__buf_reset(&b->file);
    memset(b, 0, sizeof *b);
}

void *leat__work_fit(leat__work *w, size_t bytes, leat_error *err)
{
    LEAT_ASSERT(bytes > 0);
    if (bytes > w->capacity) {
        leat__free(w->block);
        w->capacity = 0;
        w->block = leat__alloc_aligned(LEAT__MEM_SCRATCH, bytes, 64);
        if (!w->block) {
            leat__fail_nomem(err, bytes, "the scratch of a step");
            return NULL;
        }
        w->capacity = bytes;
    }
    return w->block;
}

int leat__step_apply(leat__workspace *b, const leat__step *step, bool nearest, leat_error *err)
{
    LEAT_ASSERT(b->image.width > 0 && b->image.height > 0);
    leat__step s = *step;
    if (!b->color) b->color = leat__color_dsp_for(leat__cpu_flags());
    if (!b->warp) b->warp = leat__warp_dsp_for(leat__cpu_flags());
    if (nearest) {
        if (!leat__step_is_geometry(s.kind)) return 0;
        s.filter = LEAT__FILTER_NEAREST;
    }
    switch (s.kind) {
    case LEAT__STEP_PAD: return leat__step_pad(b, &s, err);
    case LEAT__STEP_AFFINE:
    case LEAT__STEP_PERSPECTIVE: return leat__step_warp(b, &s, err);
    case LEAT__STEP_ELASTIC: return leat__step_elastic(b, &s, err);
    case LEAT__STEP_BRIGHTNESS:
    case LEAT__STEP_CONTRAST:
    case LEAT__STEP_SATURATION:
    case LEAT__STEP_HUE:
    case LEAT__STEP_GRAYSCALE:
    case LEAT__STEP_INVERT:
    case LEAT__STEP_SOLARIZE:
    case LEAT__STEP_POSTERIZE:
    case LEAT__STEP_EQUALIZE:
    case LEAT__STEP_AUTOCONTRAST: return leat__step_color(b, &s, err);
    case LEAT__STEP_SHARPNESS: return leat__step_sharpness(b, &s, err);
    case LEAT__STEP_BLUR: return leat__step_blur(b, &s, err);
    case LEAT__STEP_NOISE:
    case LEAT__STEP_JPEG:
    case LEAT__STEP_PERMUTE:
    case LEAT__STEP_MEDIAN:
    case LEAT__STEP_GRID: return leat__step_distort(b, &s, err);
    case LEAT__STEP_CLAHE: return leat__step_clahe(b, &s, err);
    case LEAT__STEP_BLEND_START:
    case LEAT__STEP_BLEND_ADD: return leat__step_blend(b, &s, err);
    case LEAT__STEP_ERASE: leat__step_erase(b, &s); return 0;
    default: return leat__fail(err, LEAT_EINTERNAL, "the step %s has no place here", leat__step_name(s.kind));
    }
}
