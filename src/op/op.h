/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of ops. An op has a name, parameters, and a `draw`: given the size of the image before it
 * and a random stream, it appends *steps* (src/op/step.h) in which all numbers are fixed. Draws contain all
 * randomness, steps change pixels. So the same draw serves an image, its masks and its boxes, and leading
 * crops are known before a pixel is decoded.
 *
 * Tables are constant; any thread may read them.
 */
#ifndef LEAT_OP_OP_H
#define LEAT_OP_OP_H

#include <leat/op.h>

#include "base/param.h"
#include "base/rng.h"
#include "op/step.h"

#define LEAT__OP_PARAMS_MAX 10

/* One op of a pipeline with its parameters parsed and checked. */
typedef struct leat__op_spec {
    const struct leat__op_def *def;
    leat__value value[LEAT__OP_PARAMS_MAX];
    char text[256];  /* value of its text parameter, if it has one */
    uint32_t inside; /* specs after this one that are inside it, nested ones included */
} leat__op_spec;

/* Size of an image in flight; 0 = unknown until the image is known. */
typedef struct leat__op_size {
    uint32_t width, height;
} leat__op_size;

/* Ops that apply the ops inside them (src/op/combine.c). Their first parameter is the list of those ops. */
typedef enum leat__combine {
    LEAT__COMBINE_NONE,
    LEAT__COMBINE_APPLY,  /* all, in order, or none */
    LEAT__COMBINE_CHOICE, /* one of them */
    LEAT__COMBINE_ORDER   /* all, in random order */
} leat__combine;

/* All sizes that an image in flight can have, over all draws. */
typedef struct leat__op_reach {
    uint32_t width_min, width_max, height_min, height_max;
} leat__op_reach;

typedef struct leat__op_def {
    const char *name;
    const char *help;
    leat_op_kind kind;
    const leat__param *params;
    uint32_t param_count;
    /* Checks rules between parameters; NULL = none. */
    int (*check)(const leat__op_spec *op, leat_error *err);
    /* Returns the size after the op when it is known in advance; NULL = unchanged. */
    leat__op_size (*size)(const leat__op_spec *op, leat__op_size in);
    /* Appends steps; NULL for output and batch ops. LEAT_EINVAL when the op cannot handle the image (such as
     * a crop larger than the image without padding). */
    int (*draw)(const leat__op_spec *op, leat__rng *rng, leat__recipe *recipe, leat_error *err);
    bool fixed; /* geometry that draws nothing: the same for all images of one size */
    leat__combine combine;
    uint32_t crops;  /* images that it makes of one, in an extra dimension; else 0 */
    bool boxes;      /* its draw depends on the boxes of the image */
    bool bytes_only; /* geometry that does not support wide images */
    bool splits;     /* makes several images of one: masks and boxes cannot follow it */
    bool in_place;   /* its steps change an image in place, or run while the image is made */
    bool canvas;     /* makes a larger image, which is in memory as a whole */
    /* Replaces the range of possible input sizes by that of the output sizes; needed where `size` depends on
     * the image. */
    void (*reach)(const leat__op_spec *op, leat__op_reach *r);
} leat__op_def;

/* Checks that a list of one number for all channels, or one per channel, is not empty. Its length is checked
 * when the pipeline knows its images (wide_check.c). */
int leat__op_check_channels(const leat__op_spec *op, int param, leat_error *err) LEAT_MUST_CHECK;
void leat__op_fill(const leat__value *v, float fill[LEAT__CHANNELS_MAX]);

/* The families; op.c joins them. Each array ends with a NULL name. */
extern const leat__op_def leat__ops_geometry[];
extern const leat__op_def leat__ops_crops[];
extern const leat__op_def leat__ops_warp[];
extern const leat__op_def leat__ops_color[];
extern const leat__op_def leat__ops_distort[];
extern const leat__op_def leat__ops_policy[];
extern const leat__op_def leat__ops_combine[];
extern const leat__op_def leat__ops_output[];
extern const leat__op_def leat__ops_batch[];
extern const leat__op_def leat__ops_mosaic[];
extern const leat__op_def leat__ops_paste[];
extern const leat__op_def leat__ops_roles[];

const leat__op_def *leat__op_at(uint32_t index); /* NULL past the end */
const leat__op_def *leat__op_find(const char *name);
const char *leat__op_nearest(const char *name); /* for a hint; NULL when no name is similar */

/* True for RandomResizedCrop and Resize, whose first parameter sets only the output size, not the region that
 * is taken. */
bool leat__op_resizes(const leat__op_def *def);

/* Draws whether an op with probability `p` happens; draws nothing when p is 1. */
bool leat__op_happens(const leat__value *p, leat__rng *rng);

/* True for the same op with the same values. */
bool leat__op_spec_equal(const leat__op_spec *a, const leat__op_spec *b);

/* Returns the position of a parameter, which must exist. */
uint32_t leat__op_param_index(const leat__op_def *def, const char *name);

#endif
