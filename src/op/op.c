/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of ops: joins the families' tables and answers queries about them. Constant data.
 */
#include "op/op.h"

#include <string.h>

#include "base/check.h"
#include "base/num.h"
#include "base/str.h"

static const leat__op_def *const families[] = {
    leat__ops_geometry, leat__ops_crops,  leat__ops_warp,    leat__ops_color,
    leat__ops_distort,  leat__ops_policy, leat__ops_combine, leat__ops_output,
    leat__ops_batch,    leat__ops_mosaic, leat__ops_paste,   leat__ops_roles,
};

enum { OPS_MAX = 96 };

const leat__op_def *leat__op_at(uint32_t index)
{
    for (size_t f = 0; f < LEAT_COUNT(families); f++)
        for (const leat__op_def *d = families[f]; d->name; d++)
            if (index-- == 0) return d;
    return NULL;
}

static uint32_t count_ops(void)
{
    uint32_t n = 0;
    while (leat__op_at(n)) n++;
    return n;
}

const leat__op_def *leat__op_find(const char *name)
{
    const leat__op_def *d;
    for (uint32_t i = 0; (d = leat__op_at(i)); i++)
        if (strcmp(d->name, name) == 0) return d;
    return NULL;
}

const char *leat__op_nearest(const char *name)
{
    const char *names[OPS_MAX];
    uint32_t n = 0;
    const leat__op_def *d;
    while (n < OPS_MAX && (d = leat__op_at(n))) names[n++] = d->name;
    return leat__str_nearest(name, names, n);
}

bool leat__op_resizes(const leat__op_def *def)
{
    return def == &leat__ops_geometry[0] || def == &leat__ops_geometry[1];
}

bool leat__op_happens(const leat__value *p, leat__rng *rng)
{
    return p->f >= 1 || leat__rng_double(rng) < p->f;
}

bool leat__op_spec_equal(const leat__op_spec *a, const leat__op_spec *b)
{
    if (a->def != b->def) return false;
    for (uint32_t i = 0; i < a->def->param_count; i++) {
        const leat__value *const x = &a->value[i], *const y = &b->value[i];
        if (x->i != y->i || x->f != y->f || x->count != y->count) return false;
        for (int k = 0; k < x->count; k++)
            if (x->list[k] != y->list[k]) return false;
    }
    return strcmp(a->text, b->text) == 0;
}

uint32_t leat__op_param_index(const leat__op_def *def, const char *name)
{
    uint32_t i = 0;
    while (i < def->param_count && strcmp(def->params[i].name, name) != 0) i++;
    LEAT_ASSERT(i < def->param_count);
    return i;
}

/* ---- public ---- */

uint32_t leat_op_count(void)
{
    return count_ops();
}

int leat_op_info_at(uint32_t index, leat_op_info *info)
{
    LEAT_REQUIRE(info != NULL, NULL);
    const leat__op_def *d = leat__op_at(index);
    if (!d) return LEAT_ENOENT;
    *info = (leat_op_info){.name = d->name, .help = d->help, .kind = d->kind, .params = d->param_count};
    return 0;
}

static const char *kind_name(const leat__op_def *d, uint32_t index)
{
    if (d->combine && index == 0) return "ops";
    switch (d->params[index].kind) {
    case LEAT__PARAM_FLAG: return "flag";
    case LEAT__PARAM_INT: return "int";
    case LEAT__PARAM_FLOAT: return "float";
    case LEAT__PARAM_FLOATS: return "floats";
    case LEAT__PARAM_INTS: return "ints";
    case LEAT__PARAM_CHOICE: return "choice";
    default: return "string";
    }
}

int leat_op_param_at(uint32_t op, uint32_t index, leat_op_param *param)
{
    LEAT_REQUIRE(param != NULL, NULL);
    const leat__op_def *d = leat__op_at(op);
    if (!d || index >= d->param_count) return LEAT_ENOENT;
    const leat__param *p = &d->params[index];
    *param = (leat_op_param){.name = p->name,
                             .kind = kind_name(d, index),
                             .def = p->def,
                             .choices = p->choices,
                             .min = p->min,
                             .max = p->max,
                             .arity = p->arity,
                             .help = p->help};
    return 0;
}

int leat__op_check_channels(const leat__op_spec *op, int param, leat_error *err)
{
    if (op->value[param].count >= 1) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s.%s: one number or one per channel", op->def->name,
                      op->def->params[param].name);
}

void leat__op_fill(const leat__value *v, float fill[LEAT__CHANNELS_MAX])
{
    for (int c = 0; c < LEAT__CHANNELS_MAX; c++) fill[c] = (float)v->list[c < v->count ? c : v->count - 1];
}
