/* SPDX-License-Identifier: Apache-2.0
 *
 * Known model families, each computed from its published definition, without memory constants.
 *
 *   resnet18/34/50/101/152   He et al. 2015, arXiv 1512.03385, stride on the 3×3 ("v1.5")
 *   vit_s, vit_b, vit_l      Dosovitskiy et al. 2020, arXiv 2010.11929, patch 16 (/32 by name)
 *   convnext_t, _s, _b       Liu et al. 2022, arXiv 2201.03545
 *   generic                  parameters, activation bytes and multiply-adds per sample, given
 */
#ifndef LEAT_PLAN_ARCH_H
#define LEAT_PLAN_ARCH_H

#include <leat/error.h>

#include "plan/tape.h"

#define LEAT__PLAN_IMAGE_MOST 65535 /* pixels a side, as in the ops that crop */

typedef enum leat__arch_kind {
    LEAT__ARCH_RESNET,
    LEAT__ARCH_VIT,
    LEAT__ARCH_CONVNEXT,
    LEAT__ARCH_GENERIC
} leat__arch_kind;

typedef struct leat__arch {
    const char *name;  /* "resnet50" */
    const char *title; /* "ResNet-50" */
    leat__arch_kind kind;
    uint32_t depths[4];
    uint32_t dims[4]; /* convnext: channels; vit: {dim, heads, patch} */
    bool bottleneck;  /* resnet */
    bool adamw;       /* trained with AdamW in its paper; the others with SGD + momentum */
} leat__arch;

/* Finds an architecture by name: "ResNet-50", "resnet50", "vit-b/16", "ViT_B". Case, dashes and the
 * default patch do not matter. NULL when unknown. */
const leat__arch *leat__arch_find(const char *name);
const leat__arch *leat__arch_at(uint32_t index);  /* NULL past the last */
const char *leat__arch_nearest(const char *name); /* a name to suggest, or NULL */

typedef struct leat__arch_shape {
    uint64_t batch, image, classes;
    uint32_t size; /* bytes of an activation element */
    bool mixed;    /* fp32 weights, 16-bit compute */
    bool fused_attention;
    bool keep_grads;
    /* Only for LEAT__ARCH_GENERIC. */
    uint64_t params, activation_bytes;
    double macs;
} leat__arch_shape;

/* Computes the step's memory and work. LEAT_EINVAL when the image is too small for the
 * architecture. */
int leat__arch_measure(const leat__arch *arch, const leat__arch_shape *shape, leat__tape_sum *sum,
                       leat_error *err) LEAT_MUST_CHECK;

/* The families, one file each; they write forward and loss to `t`. */
void leat__arch_resnet(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape);
void leat__arch_vit(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape);
void leat__arch_convnext(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape);

#endif
