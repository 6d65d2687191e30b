/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the text form of a pipeline into checked op specs. Grammar:
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
#define LEAT__SPEC_DEPTH_MAX 8 /* nesting of ops */

/* Fills at most LEAT__SPEC_OPS_MAX specs; ops inside an op follow it (leat__op_spec.inside). LEAT_EINVAL
 * names the op, the parameter and the error; err->offset is the position in the text. */
int leat__spec_parse(const char *text, leat__op_spec *ops, uint32_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Parses the text form of roles: role = field [ "=" ( "follow"
 * Op ) ], separated like ops. A field name with blanks or one of ,;()[]=# must be quoted. Fills at most
 * LEAT__SPEC_OPS_MAX roles. */
struct leat__role_spec;
int leat__spec_parse_roles(const char *text, struct leat__role_spec *roles, uint32_t *count,
                           leat_error *err) LEAT_MUST_CHECK;

#endif
