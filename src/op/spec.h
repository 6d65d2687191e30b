/* SPDX-License-Identifier: Apache-2.0
 *
 * The text form of a pipeline to checked op specs. Grammar:
 *
 *   pipeline = op { (";" | newline) op }
 *   op       = Name [ "(" [ arg { "," arg } ] ")" ]
 *   arg      = [ name "=" ] ( value | ops )
 *   ops      = op { (";" | ",") op } | "[" op { (";" | ",") op } "]"     of RandomApply and the like
 *   value    = number | word | 'text' | "text" | ("(" | "[") number { "," number } (")" | "]")
 *
 * "#" starts a comment up to the end of the line. Pure functions.
 */
#ifndef LEAT_OP_SPEC_H
#define LEAT_OP_SPEC_H

#include "op/op.h"

#define LEAT__SPEC_OPS_MAX 64
#define LEAT__SPEC_DEPTH_MAX 8 /* ops inside ops */

/* Fills at most LEAT__SPEC_OPS_MAX specs; ops inside an op follow it (leat__op_spec.inside).
 * LEAT_EINVAL names op, parameter and what is wrong; err->offset is the place in the text. */
int leat__spec_parse(const char *text, leat__op_spec *ops, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

/* The text form of roles: role = field [ "=" ( "follow" | Op ) ], separated as ops are. A field
 * whose name has blanks or one of ,;()[]=# is quoted. Fills at most LEAT__SPEC_OPS_MAX roles. */
struct leat__role_spec;
int leat__spec_parse_roles(const char *text, struct leat__role_spec *roles, uint32_t *count,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
