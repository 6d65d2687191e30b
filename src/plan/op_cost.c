/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of ops other than crop, resize and flip, from data/plan/ops.txt, for plans that may not measure. Also
 * how much slower this CPU is than that of the tables.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "op/combine.h"
#include "op/spec.h"
#include "plan/parts.h"

#define TABLE_PIXELS (224.0 * 224.0)
#define FIXED_US 20.0 /* per op, whatever the size; measured with 32 x 32 pixels */

double leat__plan_op_us(const char *name, const char *isa)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_op_cost_rows); i++) {
        const plan_op_cost *row = &plan_op_cost_rows[i];
        if (strcmp(row->name, name) != 0) continue;
        if (leat__str_starts(isa, "avx512")) return row->avx512_us;
        return leat__str_starts(isa, "avx2") ? row->avx2_us : row->scalar_us;
    }
    return -1;
}

/* Returns the mean pixels of an image of a size in this range. *sure is cleared when the size varies. */
static double pixels_in(const leat__op_reach *r, bool *sure)
{
    double least = (double)r->width_min * r->height_min, most = (double)r->width_max * r->height_max;
    if (least < most) *sure = false;
    return (least + most) / 2;
}

bool leat__plan_ops_us(const char *text, const char *isa, uint32_t width, uint32_t height, double *us,
                       bool *sure)
{
    leat__op_spec *ops = LEAT_NEW_ARRAY(MISC, leat__op_spec, LEAT__SPEC_OPS_MAX);
    leat__op_reach at = {width, width, height, height}; /* the size of the image before op i */
    leat_error err = {0};
    uint32_t count = 0;
    bool all = ops != NULL && leat__spec_parse(text, ops, &count, &err) == 0;
    *us = 0;
    *sure = true;
    for (uint32_t i = 0; all && i < count;) {
        const uint32_t end = i + 1 + ops[i].inside;
        bool same = true; /* whatever is drawn */
        const double pixels = pixels_in(&at, &same);
        leat__ops_reach(&ops[i], end - i, &at);
        for (; i < end; i++) {
            double cost = leat__plan_op_us(ops[i].def->name, isa);
            all = all && cost >= 0;
            *us += cost > 0 ? FIXED_US + cost * pixels / TABLE_PIXELS : 0;
            if (cost > 0 && !same) *sure = false;
        }
    }
    leat__free(ops);
    return all;
}

double leat__plan_cpu_times(const leat_plan_facts *f)
{
    if (f->cpu[0] == '\0') return 1;
    for (size_t i = 0; i < LEAT_COUNT(plan_cpu_rows); i++) {
        const plan_cpu *row = &plan_cpu_rows[i];
        if (strstr(f->cpu, row->match) == NULL) continue;
        if (strcmp(row->isa, "any") == 0 || leat__str_starts(f->isa, row->isa)) return row->times;
    }
    return 1;
}
