/* SPDX-License-Identifier: Apache-2.0
 *
 * Which family runs a step: see apply.h.
 */
#include "op/apply.h"

#include "op/pad.h"

void leat__bench_reset(leat__bench *b)
{
    leat__planes_reset(&b->image);
    leat__planes_reset(&b->spare);
}

int leat__step_apply(leat__bench *b, const leat__step *step, bool nearest, leat_error *err)
{
    leat__step s = *step;
    if (nearest) {
        if (!leat__step_is_geometry(s.kind)) return 0;
        s.filter = LEAT__FILTER_NEAREST;
        for (int c = 0; c < 3; c++) s.fill[c] = 0;
    }
    switch (s.kind) {
    case LEAT__STEP_PAD: return leat__step_pad(b, &s, err);
    case LEAT__STEP_ERASE: leat__step_erase(b, &s); return 0;
    default:
        return leat__fail(err, LEAT_EINTERNAL, "the step %s has no place here",
                          leat__step_name(s.kind));
    }
}
