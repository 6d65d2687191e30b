/* SPDX-License-Identifier: Apache-2.0
 *
 * Which columns are mixed, and mixing them: see mixing.h.
 *
 * One draw serves all image columns and the labels, so all image columns must have the same batch
 * ops, and where the draw depends on the size, the same size.
 */
#include "loader/mixing.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "op/mix.h"

#define CLASSES_MAX (1u << 20)

static bool same_ops(const leat__pipeline *a, const leat__pipeline *b)
{
    const leat__output_spec *x = leat__pipeline_output(a), *y = leat__pipeline_output(b);
    const uint32_t n = leat__pipeline_batch_ops(a);

    if (n != leat__pipeline_batch_ops(b)) return false;
    for (uint32_t i = 0; i < n; i++) {
        const leat__op_spec *op = leat__pipeline_batch_op(a, i);
        if (!leat__op_spec_equal(op, leat__pipeline_batch_op(b, i))) return false;
        if (leat__mix_needs_size(op) && (x->width != y->width || x->height != y->height))
            return false;
    }
    return true;
}

static int check_images(const leat__shape *shape, const leat__mixed_image *images, uint32_t count,
                        leat_error *err)
{
    for (uint32_t i = 1; i < count; i++) {
        if (!same_ops(images[0].pipeline, images[i].pipeline))
            return leat__fail(err, LEAT_EINVAL,
                              "images '%s' and '%s' must end with the same MixUp and CutMix (for "
                              "CutMix at the same size): they share their labels",
                              shape->columns[images[0].column].tensor.name,
                              shape->columns[images[i].column].tensor.name);
    }
    return 0;
}

static int refuse_options(const leat_loader_opts *o, leat_error *err)
{
    const char *given = o->label != NULL     ? "label"
                        : o->classes != 0    ? "classes"
                        : o->mix_labels != 0 ? "mix_labels"
                                             : NULL;
    if (given == NULL) return 0;
    return leat__fail(err, LEAT_EINVAL, "%s has no effect: the pipeline has no MixUp or CutMix", given);
}

static int find_label(leat__mixing *m, leat_pack *pack, const leat_loader_opts *o,
                      const leat__shape *shape, leat_error *err)
{
    const char *name = o->label != NULL ? o->label : "label";
    int field = leat_pack_field_find(pack, name);

    if (field < 0 || leat_pack_field(pack, (uint32_t)field)->type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: MixUp and CutMix mix labels, and '%s' is not an int field of the pack "
                          "(name the field with label)",
                          leat_pack_path(pack), name);
    for (m->label = 0; m->label < shape->count; m->label++) {
        const leat__column *c = &shape->columns[m->label];
        if (c->kind == LEAT__COLUMN_FIXED && c->field == (uint32_t)field) return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "MixUp and CutMix mix labels: field '%s' must be among fields",
                      name);
}

/* The labels become rows of one float per class. */
static int soften(leat__mixing *m, leat_pack *pack, const leat_loader_opts *o, leat__shape *shape,
                  leat_error *err)
{
    leat__column *c = &shape->columns[m->label];
    leat_tensor *t = &c->tensor;
    const char *const *names;
    uint64_t count = o->classes;

    if (count == 0) LEAT_TRY(leat_pack_classes(pack, c->field, &names, &count, err));
    if (count == 0)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: field '%s' has no class names, so soft labels need the number of classes "
                          "(classes), or use mix_labels pairs",
                          leat_pack_path(pack), t->name);
    if (count > CLASSES_MAX)
        return leat__fail(err, LEAT_EINVAL, "classes: %llu is more than %u", (unsigned long long)count,
                          CLASSES_MAX);
    m->classes = (uint32_t)count;
    c->kind = LEAT__COLUMN_ONE_HOT;
    c->row_bytes = count * sizeof(float);
    t->type = LEAT_FIELD_ARRAY;
    t->dtype = LEAT_DTYPE_F32;
    t->ndim = 2;
    t->shape[1] = (int64_t)count;
    t->strides[0] = (int64_t)count;
    t->strides[1] = 1;
    return 0;
}

/* A column beside the label, named after it. */
static int add_column(leat__mixing *m, leat__shape *shape, const char *suffix,
                      leat__column_kind kind, uint32_t *at, leat_error *err)
{
    const leat__column *label = &shape->columns[m->label];
    leat__buf name;

    leat__buf_init(&name, LEAT__MEM_LOADER, 8192);
    leat__buf_printf(&name, "%s%s", label->tensor.name, suffix);
    char *text = leat__buf_take(&name, NULL);
    if (text == NULL) return leat__fail_nomem(err, 64, "a name");
    for (uint32_t c = 0; c < shape->count; c++) {
        if (strcmp(shape->columns[c].tensor.name, text) != 0) continue;
        int rc = leat__fail(err, LEAT_EINVAL, "mix_labels pairs adds a field '%s', which exists already",
                            text);
        leat__free(text);
        return rc;
    }
    *at = shape->count++;
    leat__column *c = &shape->columns[*at];
    *c = *label;
    c->tensor.name = text;
    c->kind = kind;
    if (kind == LEAT__COLUMN_LAMBDA) {
        c->tensor.type = LEAT_FIELD_FLOAT;
        c->tensor.dtype = LEAT_DTYPE_F32;
        c->row_bytes = sizeof(float);
    }
    return 0;
}

static int pair(leat__mixing *m, const leat_loader_opts *o, leat__shape *shape, leat_error *err)
{
    if (o->classes != 0)
        return leat__fail(err, LEAT_EINVAL, "classes has no effect with mix_labels pairs");
    if (leat__pipeline_batch_ops(m->images[0].pipeline) > 1)
        return leat__fail(err, LEAT_EINVAL,
                          "mix_labels pairs names one partner: use one of MixUp and CutMix, or soft "
                          "labels");
    LEAT_TRY(add_column(m, shape, "_partner", LEAT__COLUMN_FIXED, &m->partner, err));
    return add_column(m, shape, "_lambda", LEAT__COLUMN_LAMBDA, &m->lambda, err);
}

int leat__mixing_open(leat__mixing *m, leat_pack *pack, const leat_loader_opts *o,
                      leat__shape *shape, const leat__mixed_image *images, uint32_t count,
                      leat_error *err)
{
    bool any = false;

    *m = (leat__mixing){.seed = o->seed, .rank = o->rank, .world = o->world};
    if ((unsigned)o->mix_labels > LEAT_MIX_LABELS_PAIRS)
        return leat__fail(err, LEAT_EINVAL, "mix_labels: %d is not a valid form", (int)o->mix_labels);
    for (uint32_t i = 0; i < count; i++) any |= leat__pipeline_batch_ops(images[i].pipeline) > 0;
    if (!any) return refuse_options(o, err);
    LEAT_TRY(check_images(shape, images, count, err));
    LEAT_TRY(find_label(m, pack, o, shape, err));
    m->images = LEAT_NEW_ARRAY(LOADER, leat__mixed_image, count);
    if (m->images == NULL) return leat__fail_nomem(err, count * sizeof *images, "mixing");
    memcpy(m->images, images, count * sizeof *images);
    m->image_count = count;
    return o->mix_labels == LEAT_MIX_LABELS_PAIRS ? pair(m, o, shape, err)
                                                  : soften(m, pack, o, shape, err);
}

void leat__mixing_reset(leat__mixing *m)
{
    leat__free(m->images);
    *m = (leat__mixing){0};
}

/* Each sample's partner is the one before it. */
static void write_pairs(const leat__mixing *m, const leat__mix *mix, leat__frame *f)
{
    const int64_t *label = f->tensors[m->label].data;
    int64_t *partner = f->tensors[m->partner].data;
    float *lambda = f->tensors[m->lambda].data;
    const uint32_t n = f->batch.samples;

    for (uint32_t i = 0; i < n; i++) {
        partner[i] = mix->active ? label[i > 0 ? i - 1 : n - 1] : label[i];
        lambda[i] = mix->lambda;
    }
}

void leat__mixing_apply(const leat__mixing *m, leat__frame *f)
{
    const uint64_t position = f->batch.position * m->world + m->rank;
    const uint32_t n = f->batch.samples;

    if (m->images == NULL) return;
    const leat__pipeline *first = m->images[0].pipeline;
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(first); k++) {
        leat__mix mix;
        leat__mix_draw(&mix, leat__pipeline_batch_op(first, k), leat__pipeline_output(first), m->seed,
                       f->batch.epoch, position, k);
        for (uint32_t i = 0; i < m->image_count; i++)
            leat__mix_pixels(&mix, leat__pipeline_output(m->images[i].pipeline),
                             f->tensors[m->images[i].column].data, n,
                             f->shape->columns[m->images[i].column].row_bytes);
        if (m->classes > 0)
            leat__mix_targets(&mix, f->tensors[m->label].data, n, m->classes);
        else
            write_pairs(m, &mix, f);
    }
}
