/* SPDX-License-Identifier: Apache-2.0
 *
 * Borders and blanks: the steps that write constant or repeated pixels.
 */
#ifndef LEAT_OP_PAD_H
#define LEAT_OP_PAD_H

#include "op/apply.h"

int leat__step_pad(leat__bench *b, const leat__step *s, leat_error *err) LEAT_MUST_CHECK;
void leat__step_erase(leat__bench *b, const leat__step *s);

#endif
