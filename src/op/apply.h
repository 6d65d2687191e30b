/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on pixels. A bench holds the image in flight and the scratch that steps need; each
 * step takes `image` and leaves its result there. One per worker.
 */
#ifndef LEAT_OP_APPLY_H
#define LEAT_OP_APPLY_H

#include "op/image.h"
#include "op/step.h"

typedef struct leat__bench {
    leat__planes image; /* in flight */
    leat__planes spare; /* where a step that cannot work in place puts its result */
} leat__bench;

/* Zeroed struct = empty. */
void leat__bench_reset(leat__bench *b);

/* Any step that the head does not take, and not ERASE_OUT. nearest: the image is a mask, so
 * pixels are only moved: filters become nearest, fills 0, and colour steps do nothing. */
int leat__step_apply(leat__bench *b, const leat__step *s, bool nearest, leat_error *err)
    LEAT_MUST_CHECK;

#endif
