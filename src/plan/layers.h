/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of the architectures. Each is added to a tape with the tensors that PyTorch keeps for its
 * backward. Under autocast (tape.mixed), convolutions, linear layers and attention compute in 16 bits and
 * cast wider inputs; normalisation over features and the loss compute in fp32.
 */
#ifndef LEAT_PLAN_LAYERS_H
#define LEAT_PLAN_LAYERS_H

#include "plan/tape.h"

/* A feature map of one sample or, with height = tokens and width = 1, a sequence of tokens. */
typedef struct leat__feature_map {
    uint32_t storage;
    uint32_t size; /* bytes per element */
    uint64_t channels, height, width;
} leat__feature_map;

typedef struct leat__conv {
    uint64_t channels; /* output channels */
    uint32_t kernel, stride, pad;
    uint64_t groups; /* 0 = 1 */
    bool bias;
} leat__conv;

leat__feature_map leat__layer_input(leat__tape *t, uint64_t channels, uint64_t height, uint64_t width);
leat__feature_map leat__layer_conv(leat__tape *t, leat__feature_map in, leat__conv conv);
leat__feature_map leat__layer_linear(leat__tape *t, leat__feature_map in, uint64_t out);
leat__feature_map leat__layer_batch_norm(leat__tape *t, leat__feature_map in);
leat__feature_map leat__layer_layer_norm(leat__tape *t, leat__feature_map in);
leat__feature_map leat__layer_relu(leat__tape *t, leat__feature_map in); /* in place */
leat__feature_map leat__layer_gelu(leat__tape *t, leat__feature_map in);
/* Computes a += b. */
leat__feature_map leat__layer_add_into(leat__tape *t, leat__feature_map a, leat__feature_map b);
/* The result has the wider type. */
leat__feature_map leat__layer_add(leat__tape *t, leat__feature_map a, leat__feature_map b);
/* Multiplies by a vector of fp32. */
leat__feature_map leat__layer_scale(leat__tape *t, leat__feature_map in);
leat__feature_map leat__layer_max_pool(leat__tape *t, leat__feature_map in, uint32_t kernel, uint32_t stride,
                                       uint32_t pad);
/* Averages over height and width. */
leat__feature_map leat__layer_mean(leat__tape *t, leat__feature_map in);
/* Adds a class token and positions. */
leat__feature_map leat__layer_tokens(leat__tape *t, leat__feature_map in);
leat__feature_map leat__layer_first_token(leat__tape *t, leat__feature_map in);

/* `qkv` has q, k and v in one storage of 3 × dim. `fused`: scores are never stored. */
leat__feature_map leat__layer_attention(leat__tape *t, leat__feature_map qkv, uint64_t heads, bool fused);
void leat__layer_cross_entropy(leat__tape *t, leat__feature_map logits);

#endif
