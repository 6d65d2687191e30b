/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares the geometry of two pipelines: images of one sample that are moved by the same draws stay
 * aligned. Pure functions.
 */
#include <string.h>

#include "base/num.h"
#include "op/combine.h"

bool leat__op_moves(const leat__op_spec *op)
{
    for (uint32_t i = 0; i <= op->inside; i++)
        if (op[i].def->kind == LEAT_OP_GEOMETRY || op[i].def->kind == LEAT_OP_POLICY) return true;
    return false;
}

typedef struct span {
    const leat__op_spec *at, *end;
} span;

typedef struct verdict {
    bool random, same;
} verdict;

static span inside_of(const leat__op_spec *op)
{
    return (span){op + 1, op + 1 + op->inside};
}

static const leat__op_spec *next_op(span *s)
{
    const leat__op_spec *const op = s->at;
    if (op == s->end) return NULL;
    s->at += 1 + op->inside;
    return op;
}

static const leat__op_spec *next_move(span *s)
{
    const leat__op_spec *op;
    while ((op = next_op(s)) && !leat__op_moves(op)) {
    }
    return op;
}

/* True when two ops draw the same moves. Ignored: how pixels are interpolated, what fills a border, and the
 * size that a crop is resized to. */
static bool same_move(leat__op_spec a, leat__op_spec b)
{
    static const char *const looks[] = {"interpolation", "like", "fill", "padding_mode"};
    if (a.def != b.def) return false;
    for (uint32_t i = 0; i < a.def->param_count; i++) {
        bool skip = i == 0 && leat__op_resizes(a.def);
        for (size_t k = 0; k < LEAT_COUNT(looks); k++) skip |= strcmp(a.def->params[i].name, looks[k]) == 0;
        if (skip) a.value[i] = b.value[i];
    }
    return leat__op_spec_equal(&a, &b);
}

static void compare(span a, span b, verdict *v);

/* Compares ops inside RandomChoice or RandomOrder. Ops that move pixels must have the same positions, because
 * draws count all ops inside. */
static void compare_places(span a, span b, verdict *v)
{
    const leat__op_spec *x, *y;
    do {
        x = next_op(&a);
        y = next_op(&b);
        v->same &= (x == NULL) == (y == NULL);
        const span one = x ? (span){x, a.at} : (span){0}, two = y ? (span){y, b.at} : (span){0};
        compare(one, two, v);
    } while (x || y);
}

static void compare(span a, span b, verdict *v)
{
    const leat__op_spec *x, *y;
    do {
        x = next_move(&a);
        y = next_move(&b);
        v->random |= (x && !x->def->fixed) || (y && !y->def->fixed);
        v->same &= x && y ? same_move(*x, *y) : x == y;
        if (!x || !y || !x->def->combine || x->def != y->def) continue;
        if (x->def->combine == LEAT__COMBINE_APPLY) compare(inside_of(x), inside_of(y), v);
        else compare_places(inside_of(x), inside_of(y), v);
    } while (x || y);
}

bool leat__ops_same_moves(const leat__op_spec *a, uint32_t a_count, const leat__op_spec *b, uint32_t b_count)
{
    verdict v = {.same = true};
    compare((span){a, a + a_count}, (span){b, b + b_count}, &v);
    return v.same || !v.random;
}
