/* SPDX-License-Identifier: Apache-2.0
 *
 * The role of a field that follows an image: see roles.c.
 */
#ifndef LEAT_OP_ROLES_H
#define LEAT_OP_ROLES_H

#include "op/op.h"

/* In the order of the table leat__ops_roles. */
typedef enum leat__role {
    LEAT__ROLE_MASK,
    LEAT__ROLE_BOXES,
    LEAT__ROLE_POINTS,
    LEAT__ROLE_LABELS,
    LEAT__ROLES
} leat__role;

/* Positions of the parameters. */
enum { LEAT__MASK_FILL, LEAT__MASK_IMAGE };
enum { LEAT__BOXES_FORMAT, LEAT__BOXES_RELATIVE, LEAT__BOXES_VISIBLE, LEAT__BOXES_SIZE, LEAT__BOXES_IMAGE };
enum { LEAT__POINTS_RELATIVE, LEAT__POINTS_IMAGE };
enum { LEAT__LABELS_BOXES };

/* One field and its role. `op.def` is NULL for the word `follow`: the role depends on the field's type and
 * name. The role's text parameter (image, or boxes) is op.text. */
typedef struct leat__role_spec {
    char field[256];
    leat__op_spec op;
} leat__role_spec;

#endif
