/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvNeXt (arXiv 2201.03545): patchify stem, four stages of 7×7 depthwise blocks with layer
 * norm, GELU and layer scale, 2×2 downsampling between them.
 */
#include "plan/arch.h"
#include "plan/layers.h"

static leat__feature_map block(leat__tape *t, leat__feature_map x)
{
    uint64_t dim = x.channels;
    leat__feature_map y = leat__layer_conv(
        t, x, (leat__conv){.channels = dim, .kernel = 7, .stride = 1, .pad = 3, .groups = dim, .bias = true});
    y = leat__layer_linear(t, leat__layer_layer_norm(t, y), 4 * dim);
    y = leat__layer_linear(t, leat__layer_gelu(t, y), dim);
    return leat__layer_add(t, x, leat__layer_scale(t, y));
}

void leat__arch_convnext(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape)
{
    leat__feature_map x = leat__layer_input(t, 3, shape->image, shape->image);
    x = leat__layer_conv(t, x,
                         (leat__conv){.channels = arch->dims[0], .kernel = 4, .stride = 4, .bias = true});
    x = leat__layer_layer_norm(t, x);
    for (uint32_t stage = 0; stage < 4; stage++) {
        if (stage > 0) {
            x = leat__layer_layer_norm(t, x);
            x = leat__layer_conv(
                t, x, (leat__conv){.channels = arch->dims[stage], .kernel = 2, .stride = 2, .bias = true});
        }
        for (uint32_t i = 0; i < arch->depths[stage]; i++) x = block(t, x);
    }
    x = leat__layer_layer_norm(t, leat__layer_mean(t, x));
    leat__layer_cross_entropy(t, leat__layer_linear(t, x, shape->classes));
}
