/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet (arXiv 1512.03385, table 1), with the stride on the 3×3 convolution of a bottleneck, as
 * all frameworks use it today.
 */
#include "plan/arch.h"
#include "plan/layers.h"

static leat__feature_map conv_bn(leat__tape *t, leat__feature_map x, uint64_t channels, uint32_t kernel,
                                 uint32_t stride)
{
    x = leat__layer_conv(
        t, x, (leat__conv){.channels = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2});
    return leat__layer_batch_norm(t, x);
}

static leat__feature_map block(leat__tape *t, leat__feature_map x, uint64_t width, uint32_t stride,
                               bool bottleneck)
{
    uint64_t channels = bottleneck ? 4 * width : width;
    leat__feature_map y = x;
    if (bottleneck) y = leat__layer_relu(t, conv_bn(t, y, width, 1, 1));
    y = leat__layer_relu(t, conv_bn(t, y, width, 3, stride));
    y = bottleneck ? conv_bn(t, y, channels, 1, 1) : conv_bn(t, y, width, 3, 1);
    if (stride != 1 || x.channels != channels) x = conv_bn(t, x, channels, 1, stride);
    return leat__layer_relu(t, leat__layer_add_into(t, y, x));
}

void leat__arch_resnet(leat__tape *t, const leat__arch *arch, const leat__arch_shape *shape)
{
    leat__feature_map x = leat__layer_input(t, 3, shape->image, shape->image);
    x = leat__layer_conv(t, x, (leat__conv){.channels = 64, .kernel = 7, .stride = 2, .pad = 3});
    x = leat__layer_relu(t, leat__layer_batch_norm(t, x));
    x = leat__layer_max_pool(t, x, 3, 2, 1);
    for (uint32_t stage = 0; stage < 4; stage++)
        for (uint32_t i = 0; i < arch->depths[stage]; i++)
            x = block(t, x, UINT64_C(64) << stage, stage > 0 && i == 0 ? 2 : 1, arch->bottleneck);
    x = leat__layer_linear(t, leat__layer_mean(t, x), shape->classes);
    leat__layer_cross_entropy(t, x);
}
