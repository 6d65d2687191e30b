/* SPDX-License-Identifier: Apache-2.0
 *
 * RandomApply, RandomChoice and RandomOrder: see combine.h.
 */
#include "op/combine.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "op/spec.h"

#define OPS_PARAM                                                                                            \
    {                                                                                                        \
        .name = "transforms", .kind = LEAT__PARAM_STRING, .min = 1,                                          \
        .help = "the ops inside, separated by ';'"                                                           \
    }

enum { COMBINE_OPS, COMBINE_P };
static const leat__param apply_params[] = {
    OPS_PARAM,
    {.name = "p",
     .kind = LEAT__PARAM_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "probability of all of them; else none"},
};
static const leat__param choice_params[] = {
    OPS_PARAM,
    {.name = "p",
     .kind = LEAT__PARAM_FLOATS,
     .def = "",
     .min = 0,
     .max = 1e9,
     .help = "weight of each op, for up to 16 ops; equal when not given"},
};
static const leat__param order_params[] = {OPS_PARAM};

static uint32_t children(const leat__op_spec *op, uint32_t *at)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside) at[n++] = i;
    return n;
}

/* The number of channels must be the same for all samples, so no draw may change it. */
static int combine_check(const leat__op_spec *op, leat_error *err)
{
    for (uint32_t i = 1; i <= op->inside; i++)
        if (strcmp(op[i].def->name, "Grayscale") == 0 && op[i].value[0].i != 3)
            return leat__fail(err, LEAT_EINVAL,
                              "%s: Grayscale inside it must keep the channels: Grayscale(3)", op->def->name);
    return 0;
}

static int choice_check(const leat__op_spec *op, leat_error *err)
{
    uint32_t at[LEAT__SPEC_OPS_MAX];
    const leat__value *const p = &op->value[COMBINE_P];
    const uint32_t n = children(op, at);
    double sum = 0;
    for (int i = 0; i < p->count; i++) sum += p->list[i];
    if (p->count && (uint32_t)p->count != n)
        return leat__fail(err, LEAT_EINVAL, "RandomChoice.p: %d weights for %u ops", p->count, n);
    if (p->count && !(sum > 0)) return leat__fail(err, LEAT_EINVAL, "RandomChoice.p: all weights are 0");
    return combine_check(op, err);
}

static uint32_t choose(const leat__value *p, uint32_t n, leat__rng *rng)
{
    LEAT_ASSERT(n > 0);
    LEAT_ASSERT(p->count == 0 || (uint32_t)p->count == n);
    if (p->count == 0) return (uint32_t)leat__rng_below(rng, n);
    double sum = 0, upto = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) sum += p->list[i];
    const double at = leat__rng_double(rng) * sum;
    for (uint32_t i = 0; i < n; i++) {
        if (!(p->list[i] > 0)) continue;
        upto += p->list[i];
        last = i; /* rounding may leave the full sum at or below `at`: the last one is chosen then */
        if (at < upto) break;
    }
    return last;
}

uint32_t leat__combine_pick(const leat__op_spec *op, leat__rng *rng, uint32_t *pick)
{
    uint32_t n = children(op, pick);
    LEAT_ASSERT(n > 0 && n <= LEAT__SPEC_OPS_MAX);
    switch (op->def->combine) {
    case LEAT__COMBINE_APPLY: return leat__rng_double(rng) < op->value[COMBINE_P].f ? n : 0;
    case LEAT__COMBINE_CHOICE: pick[0] = pick[choose(&op->value[COMBINE_P], n, rng)]; return 1;
    case LEAT__COMBINE_ORDER:
        for (uint32_t i = n - 1; i > 0; i--) {
            const uint32_t k = (uint32_t)leat__rng_below(rng, (uint64_t)i + 1), t = pick[i];
            pick[i] = pick[k];
            pick[k] = t;
        }
        return n;
    default: return 0;
    }
}

/* ---- sizes ---- */

static bool same_size(leat__op_size a, leat__op_size b)
{
    return a.width == b.width && a.height == b.height;
}

static leat__op_size size_of(const leat__op_spec *op, leat__op_size in)
{
    return leat__ops_size(op, 1 + op->inside, in);
}

/* Returns the common size of all orders, or 0. Any order gives `all` if each op keeps it, and if the image
 * already has it or one op always gives it. */
static leat__op_size size_in_any_order(const leat__op_spec *op, leat__op_size in)
{
    const leat__op_size all = leat__ops_size(op + 1, op->inside, in);
    bool given = same_size(in, all);
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside) {
        if (!same_size(size_of(&op[i], all), all)) return (leat__op_size){0};
        given |= same_size(size_of(&op[i], (leat__op_size){0}), all);
    }
    return given ? all : (leat__op_size){0};
}

static leat__op_size combined_size(const leat__op_spec *op, leat__op_size in)
{
    leat__op_size out = leat__ops_size(op + 1, op->inside, in);
    switch (op->def->combine) {
    case LEAT__COMBINE_APPLY: return same_size(in, out) ? in : (leat__op_size){0};
    case LEAT__COMBINE_CHOICE:
        out = size_of(&op[1], in);
        for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside)
            if (!same_size(size_of(&op[i], in), out)) return (leat__op_size){0};
        return out;
    default: return size_in_any_order(op, in);
    }
}

leat__op_size leat__ops_size(const leat__op_spec *ops, uint32_t count, leat__op_size in)
{
    for (uint32_t i = 0; i < count; i += 1 + ops[i].inside) {
        if (ops[i].def->combine) in = combined_size(&ops[i], in);
        else if (ops[i].def->size) in = ops[i].def->size(&ops[i], in);
    }
    return in;
}

/* ---- reach ---- */

static void unite(leat__op_reach *r, const leat__op_reach *other)
{
    r->width_min = LEAT_MIN(r->width_min, other->width_min);
    r->width_max = LEAT_MAX(r->width_max, other->width_max);
    r->height_min = LEAT_MIN(r->height_min, other->height_min);
    r->height_max = LEAT_MAX(r->height_max, other->height_max);
}

static void combined_reach(const leat__op_spec *op, leat__op_reach *r)
{
    const leat__op_reach in = *r;
    leat__op_reach out = in;
    if (op->def->combine != LEAT__COMBINE_CHOICE) {
        leat__ops_reach(op + 1, op->inside, &out); /* in random order: only one op changes the size */
        if (op->def->combine == LEAT__COMBINE_APPLY) unite(r, &out);
        else *r = out;
        return;
    }
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside) {
        out = in;
        leat__ops_reach(&op[i], 1 + op[i].inside, &out);
        if (i == 1) *r = out;
        else unite(r, &out);
    }
}

void leat__ops_reach(const leat__op_spec *ops, uint32_t count, leat__op_reach *r)
{
    for (uint32_t i = 0; i < count; i += 1 + ops[i].inside) {
        const leat__op_def *const d = ops[i].def;
        if (d->combine) {
            combined_reach(&ops[i], r);
        } else if (d->size) {
            const leat__op_size fixed = d->size(&ops[i], (leat__op_size){0, 0});
            if (fixed.width) *r = (leat__op_reach){fixed.width, fixed.width, fixed.height, fixed.height};
            else if (d->reach) d->reach(&ops[i], r);
        }
    }
}

const leat__op_def *leat__ops_without_reach(const leat__op_spec *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const leat__op_def *const d = ops[i].def;
        uint32_t sized = 0;
        for (uint32_t k = 1; d->combine == LEAT__COMBINE_ORDER && k <= ops[i].inside; k++)
            sized += ops[i + k].def->size != NULL;
        if (sized > 1) return d;
        if (d->size && !d->reach && !d->size(&ops[i], (leat__op_size){0, 0}).width) return d;
    }
    return NULL;
}

bool leat__combine_changes_size(const leat__op_spec *op)
{
    for (uint32_t i = 1; i <= op->inside; i++)
        if (op[i].def->size) return true;
    return false;
}

#define OP(name_, help_, params_, check_, combine_)                                                          \
    {                                                                                                        \
        .name = name_, .help = help_, .kind = LEAT_OP_COMBINE, .params = params_,                            \
        .param_count = LEAT_COUNT(params_), .check = check_, .combine = combine_                             \
    }
const leat__op_def leat__ops_combine[] = {
    OP("RandomApply", "applies the ops inside with probability p", apply_params, combine_check,
       LEAT__COMBINE_APPLY),
    OP("RandomChoice", "applies one of the ops inside", choice_params, choice_check, LEAT__COMBINE_CHOICE),
    OP("RandomOrder", "applies the ops inside in random order", order_params, combine_check,
       LEAT__COMBINE_ORDER),
    {0},
};
