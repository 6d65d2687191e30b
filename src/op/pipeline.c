/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles a pipeline: see pipeline.h. An open pipeline is constant and shared by threads; pipeline_run.c
 * runs it.
 */
#include "op/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "op/combine.h"
#include "op/compiled.h"
#include "op/output.h"
#include "op/spec.h"

enum { STREAMS_PER_KIND = 0x1000 };

leat_dtype leat__output_dtype(uint32_t choice)
{
#define DTYPE_OF(id, name, whole) LEAT_DTYPE_##id,
    static const leat_dtype dtypes[] = {LEAT__OUTPUT_DTYPE_MAP(DTYPE_OF)};
#undef DTYPE_OF
    return choice < LEAT_COUNT(dtypes) ? dtypes[choice] : LEAT_DTYPE_NONE;
}

bool leat__output_whole(leat_dtype dtype)
{
    switch (dtype) {
#define WHOLE_OF(id, name, whole)                                                                            \
    case LEAT_DTYPE_##id: return whole;
        LEAT__OUTPUT_DTYPE_MAP(WHOLE_OF)
#undef WHOLE_OF
    default: return false;
    }
}

const char *leat__layout_name(leat__layout layout)
{
    return layout == LEAT__LAYOUT_NCHW ? "nchw" : "nhwc";
}

/* Checks the order of ops: first those on pixels, then those on numbers, then those on batches. The layout
 * changes no values, so it may come last. */
static int check_order(const leat__op_spec *ops, uint32_t count, leat_error *err)
{
    const leat__op_def *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const leat__op_def *const d = ops[i].def;
        const bool pixels =
            d->kind == LEAT_OP_GEOMETRY || d->kind == LEAT_OP_COLOR || d->kind == LEAT_OP_POLICY;
        if (pixels && last)
            return leat__fail(err, LEAT_EINVAL, "%s works on 8-bit pixels: put it before %s", d->name,
                              last->name);
        if (d == leat__op_layout) continue;
        if (last && last->kind == LEAT_OP_BATCH && d->kind != LEAT_OP_BATCH)
            return leat__fail(err, LEAT_EINVAL, "%s works on single samples: put it before %s", d->name,
                              last->name);
        if (d->kind == LEAT_OP_OUTPUT || d->kind == LEAT_OP_BATCH) last = d;
    }
    return 0;
}

static int check_three(uint32_t count, const char *name, leat_error *err)
{
    if (count <= 1 || count == 3) return 0;
    return leat__fail(err, LEAT_EINVAL, "Normalize.%s: one number or three", name);
}

/* Decides the element type and fills the conversion tables. */
static int settle_output(leat__pipeline *p, leat__output_draft *draft, leat_error *err)
{
    leat__output_spec *const o = &p->output;
    LEAT_TRY(check_three(draft->mean_count, "mean", err));
    LEAT_TRY(check_three(draft->std_count, "std", err));
    if (draft->dtype == LEAT_DTYPE_U16)
        return leat__fail(err, LEAT_EINVAL, "ToDtype(u16) needs images of uint16 samples; these have 8 bits");
    if (draft->normalized && !draft->dtype_given && leat__output_whole(draft->dtype))
        draft->dtype = LEAT_DTYPE_F32;
    if (draft->normalized && leat__output_whole(draft->dtype))
        return leat__fail(err, LEAT_EINVAL, "Normalize needs a float type, such as ToDtype(f32)");
    o->dtype = draft->dtype;
    o->layout = draft->layout;
    for (int c = 0; c < 3; c++)
        leat__norm_init(&p->norm[c], draft->scale, draft->mean[draft->mean_count == 3 ? c : 0],
                        draft->std[draft->std_count == 3 ? c : 0]);
    return 0;
}

/* Numbers the random streams by kind of op, so adding a colour op never changes what the geometry draws.
 * Combinators that contain geometry are a separate kind for the same reason. With at most 64 ops, views never
 * share a stream. */
static void settle_streams(leat__pipeline *p)
{
    uint32_t used[LEAT_OP_COMBINE + 2] = {0};
    for (uint32_t i = 0; i < p->count; i++) {
        const leat__op_spec *const op = &p->ops[i];
        const uint32_t slot = (uint32_t)op->def->kind + (op->def->combine && !leat__op_moves(op));
        p->stream[i] =
            (slot - LEAT_OP_GEOMETRY) * STREAMS_PER_KIND + p->view * LEAT__SPEC_OPS_MAX + used[slot]++;
    }
}

static int refuse_size(const leat__pipeline *p, leat_error *err)
{
    for (uint32_t i = 0; i < p->count; i += 1 + p->ops[i].inside)
        if (leat__combine_changes_size(&p->ops[i]))
            return leat__fail(err, LEAT_EINVAL,
                              "%s does not give all images one size: add Resize((h, w)), CenterCrop "
                              "or RandomCrop after it, or `collate` pad, list or ragged",
                              p->ops[i].def->name);
    if (leat__ops_without_reach(p->ops, p->count))
        return leat__fail(err, LEAT_EINVAL,
                          "the pipeline does not give all images one size: add "
                          "RandomResizedCrop, CenterCrop, RandomCrop or Resize((h, w))");
    return leat__fail(err, LEAT_EINVAL,
                      "the pipeline does not give all images one size: add "
                      "RandomResizedCrop, CenterCrop, RandomCrop or Resize((h, w)); or let batches hold "
                      "images of different size (`collate` pad, list or ragged)");
}

/* Sizes that depend on the image need a bound, or memory cannot be planned. */
static int check_reach(const leat__pipeline *p, leat_error *err)
{
    const leat__op_def *without = leat__ops_without_reach(p->ops, p->count);
    if (!without) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "the output size of %s is not known in advance: add Resize((h, w)), "
                      "CenterCrop or RandomCrop after it",
                      without->name);
}

/* Sets how many images a sample gives. Refuses options that do not work with several. */
static int settle_crops(leat__pipeline *p, bool any_size, leat_error *err)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const leat__op_def *const d = p->ops[i].def;
        if (!d->crops) continue;
        if (p->output.crops)
            return leat__fail(err, LEAT_EINVAL, "%s: only one op may make several crops", d->name);
        if (any_size) return leat__fail(err, LEAT_EINVAL, "%s needs `collate` stack", d->name);
        if (p->batch_ops)
            return leat__fail(err, LEAT_EINVAL,
                              "%s cannot be mixed over a batch: leave out MixUp, CutMix, Mosaic, CopyPaste",
                              d->name);
        p->output.crops = d->crops;
    }
    return 0;
}

static int settle_size(leat__pipeline *p, bool any_size, leat_error *err)
{
    const leat__op_size size = leat__ops_size(p->ops, p->count, (leat__op_size){0});
    p->output.channels = p->kind.channels > 0 ? p->kind.channels : 3;
    for (uint32_t i = 0; i < p->count; i += 1 + p->ops[i].inside) {
        const leat__op_def *const d = p->ops[i].def;
        if (strcmp(d->name, "Grayscale") == 0)
            p->output.channels = (uint32_t)p->ops[i].value[leat__op_param_index(d, "num_output_channels")].i;
    }
    if (!size.width || !size.height) return any_size ? check_reach(p, err) : refuse_size(p, err);
    uint64_t bytes;
    if (!leat__mul_u64((uint64_t)size.width * size.height,
                       p->output.channels * leat_dtype_size(p->output.dtype), &bytes) ||
        !leat__mul_u64(bytes, LEAT_MAX(p->output.crops, 1u), &bytes) || bytes > PTRDIFF_MAX)
        return leat__fail(err, LEAT_EOVERFLOW, "an output of %ux%u is too large", size.width, size.height);
    p->output.width = size.width;
    p->output.height = size.height;
    p->output.bytes = bytes;
    return 0;
}

static int compile(leat__pipeline *p, const leat__pipeline_opts *opts, leat_error *err)
{
    leat__output_draft draft = {
        .dtype = LEAT_DTYPE_U8, .layout = LEAT__LAYOUT_NCHW, .scale = true, .std = {1}};
    LEAT_TRY(leat__spec_parse(opts->ops ? opts->ops : "", p->ops, &p->count, err));
    LEAT_TRY(check_order(p->ops, p->count, err));
    for (uint32_t i = 0; i < p->count; i++) {
        const leat_op_kind kind = p->ops[i].def->kind;
        if (kind == LEAT_OP_OUTPUT) LEAT_TRY(leat__output_apply(&draft, &p->ops[i], err));
        if (kind == LEAT_OP_BATCH) p->batch_ops++;
    }
    p->view = opts->view;
    settle_streams(p);
    p->kind = opts->kind;
    if (p->kind.channels > 0) {
        LEAT_TRY(leat__wide_check(p->ops, p->count, &p->kind, opts->field, err));
        LEAT_TRY(leat__wide_settle(&draft, &p->kind, opts->field, &p->output, &p->wide_norm, err));
    } else {
        LEAT_TRY(leat__bytes_check(p->ops, p->count, err));
        LEAT_TRY(settle_output(p, &draft, err));
    }
    LEAT_TRY(settle_crops(p, opts->any_size, err));
    return settle_size(p, opts->any_size, err);
}

int leat__pipeline_open(leat__pipeline **out, const leat__pipeline_opts *opts, leat_error *err)
{
    leat__pipeline *p = LEAT_NEW(OP, leat__pipeline);
    *out = NULL;
    if (!p) return leat__fail_nomem(err, sizeof *p, "a pipeline");
    const int rc = compile(p, opts, err);
    if (rc != 0) {
        leat__pipeline_close(&p);
        return rc;
    }
    *out = p;
    return 0;
}

void leat__pipeline_close(leat__pipeline **p)
{
    leat__free(*p);
    *p = NULL;
}

const leat__output_spec *leat__pipeline_output(const leat__pipeline *p)
{
    return &p->output;
}

leat__output_spec leat__pipeline_output_of(const leat__pipeline *p, uint32_t width, uint32_t height)
{
    leat__output_spec spec = p->output;
    spec.width = width;
    spec.height = height;
    spec.bytes = (size_t)width * height * spec.channels * leat_dtype_size(spec.dtype);
    return spec;
}

void leat__pipeline_reach(const leat__pipeline *p, uint32_t width, uint32_t height, uint32_t *most_width,
                          uint32_t *most_height)
{
    leat__op_reach r = {width, width, height, height};
    leat__ops_reach(p->ops, p->count, &r);
    *most_width = r.width_max;
    *most_height = r.height_max;
}

/* True when an op from number `from` on needs its own copy of the image. */
static bool copies_from(const leat__pipeline *p, uint32_t from)
{
    for (uint32_t i = from; i < p->count; i++) {
        const leat_op_kind kind = p->ops[i].def->kind;
        if (kind != LEAT_OP_OUTPUT && kind != LEAT_OP_BATCH && kind != LEAT_OP_COMBINE &&
            !p->ops[i].def->in_place)
            return true;
    }
    return false;
}

uint64_t leat__pipeline_canvas(const leat__pipeline *p, uint32_t width, uint32_t height, bool *copies)
{
    leat__op_reach r = {width, width, height, height};
    uint64_t most = 0;
    *copies = false;
    for (uint32_t i = 0, end; i < p->count; i = end) {
        const uint64_t before = (uint64_t)r.width_max * r.height_max;
        bool canvas = false;
        end = i + 1 + p->ops[i].inside;
        for (uint32_t k = i; k < end; k++) canvas |= p->ops[k].def->canvas;
        leat__ops_reach(&p->ops[i], end - i, &r);
        const uint64_t after = (uint64_t)r.width_max * r.height_max;
        if (!canvas || after <= before) continue;
        most = LEAT_MAX(most, after);
        *copies |= end - i > 1 || copies_from(p, end); /* inside a combinator others may follow */
    }
    return most;
}

bool leat__pipeline_in_place(const leat__pipeline *p)
{
    bool changed = false, moved = false;
    uint32_t inside = 0; /* end of the ops inside a combinator */
    for (uint32_t i = 0; i < p->count; i++) {
        const leat__op_def *const def = p->ops[i].def;
        if (def->combine != LEAT__COMBINE_NONE) inside = LEAT_MAX(inside, i + 1 + p->ops[i].inside);
        if (def->kind == LEAT_OP_OUTPUT || def->kind == LEAT_OP_BATCH || def->kind == LEAT_OP_COMBINE)
            continue;
        if (!def->in_place) return false;
        if (def->kind == LEAT_OP_GEOMETRY) { /* a combinator may put it between two others */
            if (i < inside) return false;
            moved |= changed;
        } else if (moved) return false;
        else changed = true;
    }
    return true;
}

bool leat__pipeline_wide(const leat__pipeline *p)
{
    return p->kind.channels > 0;
}

const char *leat__pipeline_splits(const leat__pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->ops[i].def->splits) return p->ops[i].def->name;
    return NULL;
}

const char *leat__pipeline_needs_boxes(const leat__pipeline *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->ops[i].def->boxes) return p->ops[i].def->name;
    return NULL;
}

uint32_t leat__pipeline_batch_ops(const leat__pipeline *p)
{
    return p->batch_ops;
}

const leat__op_spec *leat__pipeline_batch_op(const leat__pipeline *p, uint32_t i)
{
    for (uint32_t k = 0; k < p->count; k++)
        if (p->ops[k].def->kind == LEAT_OP_BATCH && i-- == 0) return &p->ops[k];
    return NULL;
}

bool leat__pipeline_same_geometry(const leat__pipeline *a, const leat__pipeline *b)
{
    return leat__ops_same_moves(a->ops, a->count, b->ops, b->count);
}

static int draw_op(const leat__pipeline *p, uint32_t at, const leat__draw_key *key, leat__recipe *recipe,
                   leat_error *err)
{
    const leat__op_spec *const op = &p->ops[at];
    leat__rng rng;
    leat__rng_init(&rng, key->seed, key->epoch, key->sample, p->stream[at]);
    if (op->def->kind == LEAT_OP_OUTPUT) recipe->normalized = true;
    if (!op->def->combine) return op->def->draw ? op->def->draw(op, &rng, recipe, err) : 0;
    uint32_t pick[LEAT__SPEC_OPS_MAX];
    const uint32_t n = leat__combine_pick(op, &rng, pick);
    for (uint32_t i = 0; i < n; i++) LEAT_TRY(draw_op(p, at + pick[i], key, recipe, err));
    return 0;
}

int leat__pipeline_draw(const leat__pipeline *p, const leat__draw_key *key, uint32_t width, uint32_t height,
                        leat__recipe *recipe, leat_error *err)
{
    leat__recipe_start(recipe, width, height);
    recipe->crop = key->crop;
    recipe->boxes = key->boxes;
    recipe->moved = key->moved;
    recipe->box_count = key->box_count;
    for (uint32_t i = 0; i < p->count; i += 1 + p->ops[i].inside) LEAT_TRY(draw_op(p, i, key, recipe, err));
    if (p->output.width != 0 && (recipe->width != p->output.width || recipe->height != p->output.height))
        return leat__fail(err, LEAT_EINTERNAL, "the recipe gives %ux%u, not %ux%u", recipe->width,
                          recipe->height, p->output.width, p->output.height);
    return 0;
}

int leat_pipeline_check(const char *ops, leat_pipeline_output *output, leat_error *err)
{
    LEAT_REQUIRE(ops != NULL, err);
    const leat__pipeline_opts opts = {.ops = ops};
    leat__pipeline *p;
    LEAT_TRY(leat__pipeline_open(&p, &opts, err));
    const leat__output_spec *const o = &p->output;
    if (output) {
        *output = (leat_pipeline_output){
            .width = o->width, .height = o->height, .channels = o->channels, .bytes = o->bytes};
        snprintf(output->dtype, sizeof output->dtype, "%s", leat_dtype_name(o->dtype));
        snprintf(output->layout, sizeof output->layout, "%s", leat__layout_name(o->layout));
    }
    leat__pipeline_close(&p);
    return 0;
}
