/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of ops other than crop, resize and flip, from data/plan/ops.txt, for plans that may not measure. Also
 * how much slower this CPU is than that of the tables.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "dsp/resize.h"
#include "op/combine.h"
#include "op/head.h"
#include "op/pipeline.h"
#include "op/spec.h"
#include "plan/parts.h"

#define TABLE_PIXELS (224.0 * 224.0)
#define AREA_DRAWS 256

static const plan_op_cost *row_of(const char *name)
{
    for (size_t i = 0; i < LEAT_COUNT(plan_op_cost_rows); i++)
        if (strcmp(plan_op_cost_rows[i].name, name) == 0) return &plan_op_cost_rows[i];
    return NULL;
}

double leat__plan_op_us(const char *name, const char *isa)
{
    const plan_op_cost *row = row_of(name);
    if (row == NULL) return -1;
    if (leat__str_starts(isa, "avx512")) return row->avx512_us;
    return leat__str_starts(isa, "avx2") ? row->avx2_us : row->scalar_us;
}

/* Adds up the costs of a pipeline. */
typedef struct sum {
    const char *isa;
    leat__op_reach at; /* the size of the image before the next op */
    double images;     /* images of one sample: ops after TenCrop run on each of ten */
    double share;      /* probability that the next op runs */
    double us;
    bool all, sure; /* all: every op is in the table; sure: no size varies where it matters */
} sum;

/* Returns the mean pixels of an image of a size in this range. *sure is cleared when the size varies. */
static double pixels_in(const leat__op_reach *r, bool *sure)
{
    double least = (double)r->width_min * r->height_min, most = (double)r->width_max * r->height_max;
    if (least < most) *sure = false;
    return (least + most) / 2;
}

static double number_of(const leat__op_spec *op, uint32_t param)
{
    const leat__value *const v = &op->value[param];
    switch (op->def->params[param].kind) {
    case LEAT__PARAM_FLOATS:
    case LEAT__PARAM_INTS: return v->count > 0 ? v->list[0] : 0;
    case LEAT__PARAM_FLOAT: return v->f;
    default: return (double)v->i;
    }
}

/* Returns the position of a parameter; param_count when the op has no such parameter. */
static uint32_t param_at(const leat__op_def *def, const char *name)
{
    uint32_t i = 0;
    while (i < def->param_count && strcmp(def->params[i].name, name) != 0) i++;
    return i;
}

/* Returns the probability of an op. */
static double probability(const leat__op_spec *op)
{
    const uint32_t p = param_at(op->def, "p");
    return p < op->def->param_count && op->def->params[p].kind == LEAT__PARAM_FLOAT ? op->value[p].f : 1;
}

/* Returns how many times the cost in the table the op's arguments make it cost. */
static double by_arguments(const leat__op_spec *op)
{
    double times = 1;
    for (size_t i = 0; i < LEAT_COUNT(plan_op_argument_rows); i++) {
        const plan_op_argument *row = &plan_op_argument_rows[i];
        if (strcmp(row->name, op->def->name) != 0) continue;
        const uint32_t param = leat__op_param_index(op->def, row->param);
        const double value = number_of(op, param);
        if (strcmp(row->kind, "per") == 0) times *= 1 + row->share * (value / row->at - 1);
        else if (strcmp(row->kind, "choice") == 0) times *= value == row->at ? row->share : 1;
        else if (op->value[param].count == 1 && value == 0) times -= row->share; /* a part that is off */
    }
    return LEAT_MAX(times, 0.0);
}

/* Returns the mean pixels of an op's canvas. `before` are those of the image; `after` is between that and the
 * largest canvas. Where the side is drawn evenly from a range, the mean follows from that. */
static double canvas_pixels(const leat__op_spec *op, double before, double after)
{
    const uint32_t at = param_at(op->def, "side_range");
    if (at == op->def->param_count) return LEAT_MAX(before, after);
    const double low = op->value[at].list[0], high = op->value[at].list[1];
    return before * (low * low + low * high + high * high) / 3;
}

/* Adds one op that is not a combinator. */
static void add_op(sum *s, const leat__op_spec *op)
{
    const plan_op_cost *row = row_of(op->def->name);
    double cost = leat__plan_op_us(op->def->name, s->isa), images = s->images;
    bool same = true; /* whatever is drawn */
    double pixels = pixels_in(&s->at, &same);
    leat__ops_reach(op, 1, &s->at);
    if (row == NULL) {
        s->all = false;
        return;
    }
    if (op->def->canvas)
        pixels = canvas_pixels(op, pixels, pixels_in(&s->at, &same)); /* it fills its result */
    if (op->def->crops > 0) { /* it copies its crops, whatever the size of the image */
        same = true;
        s->images = images *= op->def->crops;
        pixels = pixels_in(&s->at, &same);
    }
    if (op->def->kind == LEAT_OP_OUTPUT) images -= 1; /* the table of samples has the first one */
    if (cost <= 0 || images <= 0) return;
    s->us += s->share * probability(op) *
             (row->fixed_us + images * by_arguments(op) * cost * pixels / TABLE_PIXELS);
    if (!same) s->sure = false;
}

/* Returns the probability that a combinator applies the op inside it at this distance. */
static double chance_of(const leat__op_spec *op, uint32_t child)
{
    const leat__value *const weights = &op->value[param_at(op->def, "p")];
    double all = 0, own = 1;
    uint32_t n = 0;
    if (op->def->combine == LEAT__COMBINE_APPLY) return probability(op);
    if (op->def->combine != LEAT__COMBINE_CHOICE) return 1;
    for (uint32_t i = 1; i <= op->inside; i += 1 + op[i].inside, n++) {
        const double weight = weights->count > 0 ? weights->list[n] : 1;
        if (i == child) own = weight;
        all += weight;
    }
    return all > 0 ? own / all : 0;
}

/* Adds ops in order, and those inside combinators by the probability that they run. */
static void add_ops(sum *s, const leat__op_spec *ops, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 1 + ops[i].inside) {
        const leat__op_spec *const op = &ops[i];
        if (op->def->combine == LEAT__COMBINE_NONE) {
            add_op(s, op);
            continue;
        }
        const leat__op_reach in = s->at;
        const double share = s->share;
        for (uint32_t k = 1; k <= op->inside; k += 1 + op[k].inside) {
            s->share = share * chance_of(op, k);
            if (op->def->combine == LEAT__COMBINE_CHOICE) s->at = in;
            add_ops(s, &op[k], 1 + op[k].inside);
        }
        s->share = share;
        s->at = in;
        leat__ops_reach(op, 1 + op->inside, &s->at);
    }
}

bool leat__plan_ops_us(const char *text, const char *isa, uint32_t width, uint32_t height, double *us,
                       bool *sure)
{
    leat__op_spec *ops = LEAT_NEW_ARRAY(MISC, leat__op_spec, LEAT__SPEC_OPS_MAX);
    leat_error err = {0};
    uint32_t count = 0;
    sum s = {.isa = isa,
             .at = {width, width, height, height},
             .images = 1,
             .share = 1,
             .all = ops != NULL && leat__spec_parse(text, ops, &count, &err) == 0,
             .sure = true};
    if (s.all) add_ops(&s, ops, count);
    leat__free(ops);
    *us = s.us;
    *sure = s.sure;
    return s.all;
}

double leat__plan_ops_area(const leat__pipeline *p, uint32_t width, uint32_t height)
{
    double sum_of_shares = 0;
    uint32_t drawn = 0;
    for (uint64_t k = 0; k < AREA_DRAWS; k++) {
        const leat__draw_key key = {.seed = k, .sample = k};
        leat__recipe recipe;
        leat__head h;
        uint32_t x[2], y[2];
        if (leat__pipeline_draw(p, &key, width, height, &recipe, NULL) != 0) continue;
        leat__head_fuse(&h, &recipe, 0, width, height);
        if (leat__axis_range(&h.ax, &x[0], &x[1], NULL) != 0 ||
            leat__axis_range(&h.ay, &y[0], &y[1], NULL) != 0)
            continue;
        sum_of_shares += (double)(x[1] - x[0]) / width * (y[1] - y[0]) / height;
        drawn++;
    }
    return drawn > 0 ? sum_of_shares / drawn : 1;
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
