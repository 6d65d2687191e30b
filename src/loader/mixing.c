/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects the columns to mix and mixes them: see mixing.h.
 *
 * One draw serves all image columns and the labels, so all image columns must have the same batch
 * ops and, if the draw depends on the size, the same size.
 */
#include "loader/mixing.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "loader/moved.h"
#include "loader/pasting.h"
#include "op/mosaic.h"
#include "op/paste.h"

#define CLASSES_MAX (1u << 20)

/* True for ops that replace whole pixels by those of other samples, and keep the label of the image. */
static bool moves_pixels(const leat__op_spec *op)
{
    return leat__mosaic_is(op) || leat__paste_is(op);
}

static bool same_ops(const leat__pipeline *a, const leat__pipeline *b)
{
    const leat__output_spec *x = leat__pipeline_output(a), *y = leat__pipeline_output(b);
    const uint32_t n = leat__pipeline_batch_ops(a);

    if (n != leat__pipeline_batch_ops(b)) return false;
    for (uint32_t i = 0; i < n; i++) {
        const leat__op_spec *op = leat__pipeline_batch_op(a, i);
        if (!leat__op_spec_equal(op, leat__pipeline_batch_op(b, i))) return false;
        if (!leat__mix_needs_size(op) && !moves_pixels(op)) continue;
        if (x->width != y->width || x->height != y->height) return false;
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
                              "CutMix and Mosaic at the same size): they share their labels",
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
    return leat__fail(err, LEAT_EINVAL, "`%s` has no effect: the pipeline has no MixUp or CutMix", given);
}

static int find_label(leat__mixing *m, leat_pack *pack, const leat_loader_opts *o, const leat__shape *shape,
                      leat_error *err)
{
    const char *name = o->label != NULL ? o->label : "label";
    int field = leat_pack_field_find(pack, name);

    if (field < 0 || leat_pack_field(pack, (uint32_t)field)->type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL,
                          "%s: MixUp and CutMix mix labels, and '%s' is not an int field of the pack "
                          "(name the field with `label`)",
                          leat_pack_path(pack), name);
    for (m->label = 0; m->label < shape->count; m->label++) {
        const leat__column *c = &shape->columns[m->label];
        if (c->kind == LEAT__COLUMN_FIXED && c->field == (uint32_t)field) return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "MixUp and CutMix mix labels: field '%s' must be among fields", name);
}

/* Turns the label column into rows of one float per class. */
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
                          "(`classes`), or use `mix_labels` pairs",
                          leat_pack_path(pack), t->name);
    if (count > CLASSES_MAX)
        return leat__fail(err, LEAT_EINVAL, "`classes`: %llu is more than %u", (unsigned long long)count,
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

/* Adds a column that is named after the label. */
static int add_column(leat__mixing *m, leat__shape *shape, const char *suffix, leat__column_kind kind,
                      uint32_t *at, leat_error *err)
{
    const leat__column *label = &shape->columns[m->label];
    leat__buf name;

    leat__buf_init(&name, LEAT__MEM_LOADER, 8192);
    leat__buf_printf(&name, "%s%s", label->tensor.name, suffix);
    char *text = leat__buf_take(&name, NULL);
    if (text == NULL) return leat__fail_nomem(err, 64, "a name");
    for (uint32_t c = 0; c < shape->count; c++) {
        if (strcmp(shape->columns[c].tensor.name, text) != 0) continue;
        int rc =
            leat__fail(err, LEAT_EINVAL, "`mix_labels` pairs adds a field '%s', which exists already", text);
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
        return leat__fail(err, LEAT_EINVAL, "`classes` has no effect with `mix_labels` pairs");
    if (leat__pipeline_batch_ops(m->images[0].pipeline) > 1)
        return leat__fail(err, LEAT_EINVAL,
                          "`mix_labels` pairs names one partner: use one of MixUp and CutMix, or soft "
                          "labels");
    LEAT_TRY(add_column(m, shape, "_partner", LEAT__COLUMN_FIXED, &m->partner, err));
    return add_column(m, shape, "_lambda", LEAT__COLUMN_LAMBDA, &m->lambda, err);
}

/* Checks that an op that applies only to unmixed batches has another batch op before it. */
static int check_unmixed(const leat__pipeline *p, leat_error *err)
{
    bool before = false;
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(p); k++) {
        const leat__op_spec *op = leat__pipeline_batch_op(p, k);
        if (moves_pixels(op)) continue;
        if (leat__mix_unmixed(op) && !before)
            return leat__fail(err, LEAT_EINVAL,
                              "%s: unmixed has no effect without a MixUp or CutMix before it", op->def->name);
        before = true;
    }
    return 0;
}

/* Checks that CopyPaste has boxes, which define its objects. */
static int check_pasting(const leat__mixed_image *images, const leat__follow *follow,
                         const leat__shape *shape, leat_error *err)
{
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(images[0].pipeline); k++)
        if (leat__paste_is(leat__pipeline_batch_op(images[0].pipeline, k)) &&
            leat__paste_follower(follow, LEAT__ROLE_BOXES) == NULL)
            return leat__fail(err, LEAT_EINVAL,
                              "CopyPaste needs boxes: let a field follow image '%s' as Boxes()",
                              shape->columns[images[0].column].tensor.name);
    return 0;
}

/* Makes room in the columns that follow a Mosaic or a CopyPaste: four samples may put all their boxes into
 * one. */
static void make_room(const leat__follow *follow, leat__shape *shape)
{
    for (uint32_t i = 0; i < follow->count; i++)
        if (shape->columns[follow->list[i].column].kind == LEAT__COLUMN_RAGGED)
            shape->columns[follow->list[i].column].grows = LEAT__MOSAIC_PARTS;
}

int leat__mixing_open(leat__mixing *m, leat_pack *pack, const leat_loader_opts *o, leat__shape *shape,
                      const leat__mixed_image *images, uint32_t count, const leat__follow *follow,
                      leat_error *err)
{
    bool any = false;

    *m = (leat__mixing){.seed = o->seed, .rank = o->rank, .world = o->world, .follow = follow};
    if ((unsigned)o->mix_labels > LEAT_MIX_LABELS_PAIRS)
        return leat__fail(err, LEAT_EINVAL, "`mix_labels`: %d is not a valid form", (int)o->mix_labels);
    for (uint32_t i = 0; i < count; i++) any |= leat__pipeline_batch_ops(images[i].pipeline) > 0;
    if (!any) return refuse_options(o, err);
    LEAT_TRY(check_images(shape, images, count, err));
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(images[0].pipeline); k++)
        m->labels |= !moves_pixels(leat__pipeline_batch_op(images[0].pipeline, k));
    LEAT_TRY(check_unmixed(images[0].pipeline, err));
    LEAT_TRY(check_pasting(images, follow, shape, err));
    if (m->labels) LEAT_TRY(find_label(m, pack, o, shape, err));
    else LEAT_TRY(refuse_options(o, err));
    make_room(follow, shape);
    m->images = LEAT_NEW_ARRAY(LOADER, leat__mixed_image, count);
    if (m->images == NULL) return leat__fail_nomem(err, count * sizeof *images, "mixing");
    memcpy(m->images, images, count * sizeof *images);
    m->image_count = count;
    if (!m->labels) return 0;
    return o->mix_labels == LEAT_MIX_LABELS_PAIRS ? pair(m, o, shape, err) : soften(m, pack, o, shape, err);
}

void leat__mixing_reset(leat__mixing *m)
{
    leat__free(m->images);
    *m = (leat__mixing){0};
}

bool leat__mixing_on_host(const leat__mixing *m)
{
    if (m->images == NULL) return false;
    const leat__pipeline *first = m->images[0].pipeline;
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(first); k++)
        if (moves_pixels(leat__pipeline_batch_op(first, k))) return true;
    return false;
}

void leat__mixing_draw(const leat__mixing *m, const leat__frame *f, uint32_t k, leat__mix *mix)
{
    const leat__pipeline *first = m->images[0].pipeline;
    const uint64_t position = f->batch.position * m->world + m->rank;
    bool mixed = false;

    /* draws are pure functions, so those of earlier ops tell whether the batch is already mixed */
    for (uint32_t i = leat__mix_unmixed(leat__pipeline_batch_op(first, k)) ? 0 : k; i <= k; i++) {
        const leat__op_spec *op = leat__pipeline_batch_op(first, i);
        *mix = (leat__mix){.lambda = 1};
        if (moves_pixels(op) || (mixed && leat__mix_unmixed(op))) continue;
        leat__mix_draw(mix, op, leat__pipeline_output(first), m->seed, f->batch.epoch, position, i);
        mixed |= mix->active;
    }
}

/* Writes label pairs; each sample's partner is the one before it. */
void leat__mixing_pairs(const leat__mixing *m, const leat__mix *mix, leat__frame *f)
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

/* ---- Mosaic ------------------------------------------------------------------------------- */

/* Returns the row of part `part` of a mosaic: the sample itself, or one of those before it. */
static uint32_t part_row(uint32_t row, uint32_t part, uint32_t n)
{
    return (row + n - part % n) % n;
}

/* Applies Mosaic to rows of pixels or masks, from the last row to the first, so that the rows before each row
 * are unchanged. The last rows, which the first ones need, are saved first. */
static int mosaic_rows(const leat__mosaic *drawn, uint32_t n, leat__size size, uint32_t planes, size_t pixel,
                       uint8_t *rows, leat_error *err)
{
    enum { ASIDE = LEAT__MOSAIC_PARTS - 1 };
    const size_t plane = (size_t)size.width * size.height * pixel, bytes = planes * plane;
    uint8_t *aside = leat__alloc(LEAT__MEM_SCRATCH, LEAT__MOSAIC_PARTS * bytes + 1);
    if (aside == NULL) return leat__fail_nomem(err, LEAT__MOSAIC_PARTS * bytes, "a mosaic");
    uint8_t *own = aside + ASIDE * bytes;
    for (uint32_t k = 0; k < LEAT_MIN(n, (uint32_t)ASIDE); k++)
        memcpy(aside + k * bytes, rows + (n - 1 - k) * bytes, bytes);
    for (uint32_t row = n; row-- > 0;) {
        const uint8_t *part[LEAT__MOSAIC_PARTS];
        uint8_t *out = rows + row * bytes;
        if (!drawn[row].active) continue;
        memcpy(own, out, bytes);
        for (uint32_t c = 0; c < planes; c++) {
            for (uint32_t k = 0; k < LEAT__MOSAIC_PARTS; k++) {
                const uint32_t from = part_row(row, k, n);
                const uint8_t *old = from < row ? rows + from * bytes : aside + (n - 1 - from) * bytes;
                part[k] = (from == row ? own : old) + c * plane;
            }
            leat__mosaic_plane(&drawn[row], size.width, size.height, pixel, part, out + c * plane);
        }
    }
    leat__free(aside);
    return 0;
}

static void mosaic_row(leat__moved_boxes *b, const leat__mosaic *drawn, uint32_t row, uint32_t n,
                       leat__size size)
{
    const leat__box_rule rule = leat__follow_rule(b->boxes);
    for (uint32_t k = 0; k < (drawn[row].active ? (uint32_t)LEAT__MOSAIC_PARTS : 1u); k++) {
        const uint32_t from = part_row(row, k, n);
        for (int64_t i = 0; i < leat__moved_count(b, from); i++) {
            float box[4];
            memcpy(box, leat__moved_box(b, from, i), sizeof box);
            if (!drawn[row].active ||
                leat__mosaic_box(&drawn[row], size.width, size.height, (int)k, &rule, box))
                leat__moved_put(b, from, i, box);
        }
    }
}

static int mosaic_boxes(leat__moved_boxes *b, leat__frame *f, const leat__follower *list, uint32_t count,
                        const leat__mosaic *drawn, leat__size size, leat_error *err)
{
    const uint32_t n = f->batch.samples;
    LEAT_TRY(leat__moved_open(b, f, list, count, err));
    for (uint32_t row = 0; row < n; row++) {
        leat__moved_begin(b, row);
        mosaic_row(b, drawn, row, n, size);
        leat__moved_end(b, row);
    }
    leat__moved_finish(b, n);
    return 0;
}

static int mosaic_followers(const leat__mixing *m, leat__frame *f, const leat__mosaic *drawn, leat__size size,
                            leat_error *err)
{
    const leat__follow *follow = m->follow;
    int rc = 0;
    for (uint32_t i = 0; i < follow->count && rc == 0; i++) {
        const leat__follower *one = &follow->list[i];
        if (one->role == LEAT__ROLE_MASK)
            rc = mosaic_rows(drawn, f->batch.samples, size, 1, 1, f->tensors[one->column].data, err);
        if (one->role != LEAT__ROLE_BOXES) continue;
        leat__moved_boxes b = {0};
        rc = mosaic_boxes(&b, f, one, follow->count - i, drawn, size, err);
        leat__moved_close(&b);
    }
    return rc;
}

static int mosaic(const leat__mixing *m, const leat__op_spec *op, leat__frame *f, uint64_t position,
                  uint32_t index, leat_error *err)
{
    const uint32_t n = f->batch.samples;
    const leat__output_spec *first = leat__pipeline_output(m->images[0].pipeline);
    const leat__size size = {first->width, first->height};
    leat__rng rng;
    int rc = 0;

    if (n == 0) return 0;
    leat__mosaic *drawn = LEAT_NEW_ARRAY(SCRATCH, leat__mosaic, n);
    if (drawn == NULL) return leat__fail_nomem(err, n * sizeof *drawn, "a mosaic");
    leat__mix_rng(&rng, m->seed, f->batch.epoch, position, index);
    leat__mosaic_draw(drawn, n, op, size.width, size.height, &rng);
    for (uint32_t i = 0; i < m->image_count && rc == 0; i++) {
        const leat__output_spec *o = leat__pipeline_output(m->images[i].pipeline);
        const bool woven = o->layout == LEAT__LAYOUT_NHWC;
        rc = mosaic_rows(drawn, n, size, woven ? 1 : o->channels,
                         leat_dtype_size(o->dtype) * (woven ? o->channels : 1),
                         f->tensors[m->images[i].column].data, err);
    }
    if (rc == 0) rc = mosaic_followers(m, f, drawn, size, err);
    leat__free(drawn);
    return rc;
}

/* Records what rows of shrinking columns use now: a batch that is delivered in part moves them again. */
static void note_used(leat__frame *f)
{
    for (uint32_t c = 0; c < f->shape->count; c++)
        for (uint32_t row = 0; f->shape->columns[c].shrinks > 0 && row < f->batch.samples; row++)
            leat__frame_used(f, c, row,
                             (uint64_t)(f->tensors[c].offsets[row + 1] - f->tensors[c].offsets[row]));
}

int leat__mixing_apply(const leat__mixing *m, leat__frame *f, leat_error *err)
{
    const uint64_t position = f->batch.position * m->world + m->rank;
    const uint32_t n = f->batch.samples;

    if (m->images == NULL) return 0;
    const leat__pipeline *first = m->images[0].pipeline;
    for (uint32_t k = 0; k < leat__pipeline_batch_ops(first); k++) {
        const leat__op_spec *op = leat__pipeline_batch_op(first, k);
        leat__mix mix;
        if (leat__mosaic_is(op)) {
            LEAT_TRY(mosaic(m, op, f, position, k, err));
            continue;
        }
        if (leat__paste_is(op)) {
            LEAT_TRY(leat__paste_batch(m, op, f, position, k, err));
            continue;
        }
        leat__mixing_draw(m, f, k, &mix);
        for (uint32_t i = 0; i < m->image_count; i++)
            leat__mix_pixels(&mix, leat__pipeline_output(m->images[i].pipeline),
                             f->tensors[m->images[i].column].data, n,
                             f->shape->columns[m->images[i].column].row_bytes);
        if (m->classes > 0) leat__mix_targets(&mix, f->tensors[m->label].data, n, m->classes);
        else leat__mixing_pairs(m, &mix, f);
    }
    note_used(f);
    return 0;
}
