/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles: how a field of a sample follows the geometry of an image. They are declared like ops, so they
 * share the text form, Python's classes and the help. They are used in the loader's `follow`, not in a
 * pipeline. Constant data.
 */
#include "op/roles.h"

#include "base/num.h"

#define IMAGE_PARAM                                                                                          \
    {                                                                                                        \
        .name = "image", .kind = LEAT__PARAM_STRING, .def = "", .min = 1,                                    \
        .help = "name of the image it follows; the first one when not given"                                 \
    }
#define RELATIVE_PARAM                                                                                       \
    {                                                                                                        \
        .name = "relative", .kind = LEAT__PARAM_FLAG, .def = "false", .min = 1,                              \
        .help = "coordinates are shares of the image's width and height, not pixels"                         \
    }

static const leat__param mask_params[] = {
    {.name = "fill",
     .kind = LEAT__PARAM_INT,
     .def = "0",
     .min = 0,
     .max = 255,
     .help = "value of pixels from outside the image; 255 is usual for 'ignore'"},
    IMAGE_PARAM,
};

static const leat__param boxes_params[] = {
    {.name = "format",
     .kind = LEAT__PARAM_CHOICE,
     .def = "xyxy",
     .choices = "xyxy|xywh|cxcywh",
     .min = 1,
     .help = "two corners, corner and size, or centre and size"},
    RELATIVE_PARAM,
    {.name = "min_visible",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0",
     .min = 0,
     .max = 1,
     .help = "drop boxes of which less than this share of the area is left in the image"},
    {.name = "min_size",
     .kind = LEAT__PARAM_FLOAT,
     .def = "1",
     .min = 0,
     .max = 65535,
     .help = "drop boxes whose visible width or height is below this number of pixels"},
    IMAGE_PARAM,
};

static const leat__param points_params[] = {
    RELATIVE_PARAM,
    IMAGE_PARAM,
};

static const leat__param labels_params[] = {
    {.name = "boxes",
     .kind = LEAT__PARAM_STRING,
     .def = "",
     .min = 1,
     .help = "field of the boxes they belong to; needed when several fields are boxes"},
};

const leat__op_def leat__ops_roles[] = {
    [LEAT__ROLE_MASK] = {"Mask", "class numbers per pixel, moved like the image, nearest pixel", LEAT_OP_ROLE,
                         mask_params, LEAT_COUNT(mask_params), NULL, NULL, NULL},
    [LEAT__ROLE_BOXES] = {"Boxes", "boxes, moved like the image, clipped, dropped when outside", LEAT_OP_ROLE,
                          boxes_params, LEAT_COUNT(boxes_params), NULL, NULL, NULL},
    [LEAT__ROLE_POINTS] = {"Keypoints", "points (x, y) or (x, y, visibility), moved like the image",
                           LEAT_OP_ROLE, points_params, LEAT_COUNT(points_params), NULL, NULL, NULL},
    [LEAT__ROLE_LABELS] = {"Labels", "one row per box, dropped with its box", LEAT_OP_ROLE, labels_params,
                           LEAT_COUNT(labels_params), NULL, NULL, NULL},
    [LEAT__ROLES] = {0},
};
