/* SPDX-License-Identifier: Apache-2.0
 *
 * Vision transformer (arXiv 2010.11929, table 1; the small size is DeiT's, arXiv 2012.12877):
 * pre-norm blocks, a class token, learned positions, MLP of four times the width.
 */
#include "plan/arch.h"
#include "plan/layers.h"

static leat__feature_map block(leat__tape *t, leat__feature_map x, uint64_t heads, bool fused)
{
    uint64_t dim = x.channels;
    leat__feature_map y = leat__layer_linear(t, leat__layer_layer_norm(t, x), 3 * dim);
    y = leat__layer_linear(t, leat__layer_attention(t, y, heads, fused), dim);
    x = leat__layer_add(t, x, y);
    y = leat__layer_linear(t, leat__layer_layer_norm(t, x), 4 * dim);
    y = leat__layer_linear(t, leat__layer_gelu(t, y), dim);
    return leat__layer_add(t, x, y);
}

void leat__arch_vit(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape)
{
    uint32_t dim = arch->dims[0], heads = arch->dims[1], patch = arch->dims[2];
    leat__feature_map x = leat__layer_input(t, 3, shape->image, shape->image);
    x = leat__layer_conv(t, x, (leat__conv){.channels = dim, .kernel = patch, .stride = patch, .bias = true});
    x = leat__layer_tokens(t, x);
    for (uint32_t i = 0; i < arch->depths[0]; i++) x = block(t, x, heads, shape->fused_attention);
    x = leat__layer_first_token(t, leat__layer_layer_norm(t, x));
    leat__layer_cross_entropy(t, leat__layer_linear(t, x, shape->classes));
}
