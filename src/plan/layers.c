/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds layers to a tape: see layers.h. Every function appends operations and returns the feature map that
 * they produce; failures are stored in the tape until it is run.
 */
#include "plan/layers.h"

static uint64_t elements(leat__feature_map m)
{
    return m.channels * m.height * m.width;
}

static leat__feature_map map_new(leat__tape *t, uint64_t channels, uint64_t height, uint64_t width,
                                 uint32_t size)
{
    leat__feature_map m = {.channels = channels, .height = height, .width = width, .size = size};
    m.storage = leat__tape_storage(t, elements(m), size);
    return m;
}

static leat__tape_op op_new(leat__feature_map in, leat__feature_map out)
{
    return (leat__tape_op){.in = {in.storage, LEAT__TAPE_NONE}, .out = out.storage, .passes = 1};
}

static void op_save(leat__tape_op *op, leat__feature_map m)
{
    op->saves[op->saves_count++] = m.storage;
}

static leat__feature_map cast(leat__tape *t, leat__feature_map in, uint32_t size)
{
    if (in.size == size) return in;
    leat__feature_map out = map_new(t, in.channels, in.height, in.width, size);
    leat__tape_op op = op_new(in, out);
    leat__tape_add(t, &op);
    return out;
}

/* Adds the parameters of a layer. Under autocast their narrow copy lives until backward. */
static void op_weights(const leat__tape *t, leat__tape_op *op, uint64_t count)
{
    op->weights = count;
    op->grad_temp = t->mixed;
    if (t->mixed) op->kept_bytes += count * t->size;
}

leat__feature_map leat__layer_input(leat__tape *t, uint64_t channels, uint64_t height, uint64_t width)
{
    return map_new(t, channels, height, width, 4);
}

leat__feature_map leat__layer_conv(leat__tape *t, leat__feature_map in, leat__conv c)
{
    uint64_t groups = c.groups > 0 ? c.groups : 1;
    uint64_t height = (in.height + 2 * c.pad - c.kernel) / c.stride + 1;
    uint64_t width = (in.width + 2 * c.pad - c.kernel) / c.stride + 1;
    uint64_t taps = in.channels / groups * c.kernel * c.kernel;
    in = cast(t, in, t->size);
    leat__feature_map out = map_new(t, c.channels, height, width, t->size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    op_weights(t, &op, c.channels * taps + (c.bias ? c.channels : 0));
    op.macs = (double)t->batch * (double)elements(out) * (double)taps;
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_linear(leat__tape *t, leat__feature_map in, uint64_t out_channels)
{
    return leat__layer_conv(t, in,
                            (leat__conv){.channels = out_channels, .kernel = 1, .stride = 1, .bias = true});
}

leat__feature_map leat__layer_batch_norm(leat__tape *t, leat__feature_map in)
{
    leat__feature_map out = map_new(t, in.channels, in.height, in.width, in.size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    op.weights = 2 * in.channels;
    op.kept_bytes = 2 * in.channels * 4;
    op.passes = 2; /* statistics first, then the values */
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_layer_norm(leat__tape *t, leat__feature_map in)
{
    in = cast(t, in, t->mixed ? 4 : t->size);
    leat__feature_map out = map_new(t, in.channels, in.height, in.width, in.size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    op.weights = 2 * in.channels;
    op.kept_bytes = t->batch * in.height * in.width * 2 * 4;
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_relu(leat__tape *t, leat__feature_map in)
{
    leat__tape_op op = op_new(in, in);
    op_save(&op, in);
    leat__tape_add(t, &op);
    return in;
}

leat__feature_map leat__layer_gelu(leat__tape *t, leat__feature_map in)
{
    leat__feature_map out = map_new(t, in.channels, in.height, in.width, in.size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_add_into(leat__tape *t, leat__feature_map a, leat__feature_map b)
{
    leat__tape_op op = op_new(a, a);
    op.in[1] = b.storage;
    op.grad_alias = true;
    leat__tape_add(t, &op);
    return a;
}

leat__feature_map leat__layer_add(leat__tape *t, leat__feature_map a, leat__feature_map b)
{
    leat__feature_map out = map_new(t, a.channels, a.height, a.width, a.size > b.size ? a.size : b.size);
    leat__tape_op op = op_new(a, out);
    op.in[1] = b.storage;
    op.grad_alias = a.size == b.size; /* a narrower side gets its own cast gradient */
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_scale(leat__tape *t, leat__feature_map in)
{
    leat__feature_map out = map_new(t, in.channels, in.height, in.width, 4);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    op.weights = in.channels;
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_max_pool(leat__tape *t, leat__feature_map in, uint32_t kernel, uint32_t stride,
                                       uint32_t pad)
{
    leat__feature_map out = map_new(t, in.channels, (in.height + 2 * pad - kernel) / stride + 1,
                                    (in.width + 2 * pad - kernel) / stride + 1, in.size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in);
    op.kept_bytes = t->batch * elements(out) * 8; /* int64 indices */
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_mean(leat__tape *t, leat__feature_map in)
{
    leat__feature_map out = map_new(t, in.channels, 1, 1, in.size);
    leat__tape_op op = op_new(in, out);
    op_save(&op, in); /* adaptive pooling keeps its input */
    leat__tape_add(t, &op);
    return out;
}

leat__feature_map leat__layer_tokens(leat__tape *t, leat__feature_map in)
{
    uint64_t tokens = in.height * in.width + 1;
    uint32_t wide = t->mixed ? 4 : t->size; /* the class token and the positions are fp32 */
    leat__feature_map joined = map_new(t, in.channels, tokens, 1, wide);
    leat__tape_op join = op_new(in, joined);
    join.weights = in.channels;
    leat__tape_add(t, &join);
    leat__feature_map out = map_new(t, in.channels, tokens, 1, wide);
    leat__tape_op add = op_new(joined, out);
    add.weights = in.channels * tokens;
    add.grad_alias = true;
    leat__tape_add(t, &add);
    return out;
}

leat__feature_map leat__layer_first_token(leat__tape *t, leat__feature_map in)
{
    leat__feature_map out = map_new(t, in.channels, 1, 1, in.size);
    leat__tape_op op = op_new(in, out);
    leat__tape_add(t, &op);
    return out;
}

/* Adds scores, softmax and the weighted sum as three operations, as in textbooks. */
static leat__feature_map attention_plain(leat__tape *t, leat__feature_map qkv, leat__feature_map out,
                                         uint64_t heads)
{
    uint64_t tokens = qkv.height;
    double macs = (double)t->batch * (double)tokens * (double)tokens * (double)out.channels;
    leat__feature_map scores = map_new(t, heads, tokens, tokens, t->size);
    leat__tape_op dot = op_new(qkv, scores);
    op_save(&dot, qkv);
    dot.macs = macs;
    leat__tape_add(t, &dot);

    leat__feature_map wide = cast(t, scores, t->mixed ? 4 : t->size);
    leat__feature_map shares = map_new(t, heads, tokens, tokens, wide.size);
    leat__tape_op softmax = op_new(wide, shares);
    op_save(&softmax, shares);
    leat__tape_add(t, &softmax);

    shares = cast(t, shares, t->size);
    leat__tape_op sum = op_new(shares, out);
    sum.in[1] = qkv.storage;
    op_save(&sum, shares);
    op_save(&sum, qkv);
    sum.macs = macs;
    leat__tape_add(t, &sum);
    return out;
}

leat__feature_map leat__layer_attention(leat__tape *t, leat__feature_map qkv, uint64_t heads, bool fused)
{
    leat__feature_map out = map_new(t, qkv.channels / 3, qkv.height, qkv.width, qkv.size);
    if (!fused) return attention_plain(t, qkv, out, heads);
    leat__tape_op op = op_new(qkv, out);
    op_save(&op, qkv);
    op_save(&op, out);
    op.kept_bytes = t->batch * heads * qkv.height * 4; /* log-sum-exp */
    op.macs = 2.0 * (double)t->batch * (double)qkv.height * (double)qkv.height * (double)out.channels;
    leat__tape_add(t, &op);
    return out;
}

void leat__layer_cross_entropy(leat__tape *t, leat__feature_map logits)
{
    logits = cast(t, logits, t->mixed ? 4 : t->size);
    leat__feature_map log_shares = map_new(t, logits.channels, 1, 1, logits.size);
    leat__tape_op op = op_new(logits, log_shares);
    op_save(&op, log_shares);
    leat__tape_add(t, &op);
    leat__feature_map loss = map_new(t, 1, 1, 1, 4);
    leat__tape_op pick = op_new(log_shares, loss);
    leat__tape_add(t, &pick);
}
