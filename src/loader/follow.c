/* SPDX-License-Identifier: Apache-2.0
 *
 * Followers: see follow.h. Boxes and labels lose rows, so their columns are sized for the pack's
 * values and compacted when the batch is complete (leat__frame_used).
 */
#include "loader/follow.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/oriented.h"
#include "op/mosaic.h"
#include "op/paste.h"
#include "op/spec.h"
#include "op/targets.h"
#include "pack/kind.h"
#include "pack/schema.h"

/* ---- opening ------------------------------------------------------------------------------ */

static bool has_word(const char *name, const char *word)
{
    return strstr(name, word) != NULL;
}

/* Guesses the role of a field that `follow` names without one. */
static int guess_role(const leat_field *field, leat__role *role, leat_error *err)
{
    const char *name = field->name;
    const bool list = field->type == LEAT_FIELD_RAGGED || field->type == LEAT_FIELD_ARRAY;

    if (field->type == LEAT_FIELD_IMAGE) *role = LEAT__ROLE_MASK;
    else if (list && has_word(name, "box")) *role = LEAT__ROLE_BOXES;
    else if (list && (has_word(name, "point") || has_word(name, "landmark"))) *role = LEAT__ROLE_POINTS;
    else if (list && (has_word(name, "label") || has_word(name, "categor") || has_word(name, "class")))
        *role = LEAT__ROLE_LABELS;
    else
        return leat__fail(err, LEAT_EINVAL,
                          "`follow`: say what field '%s' is: Mask(), Boxes(), Keypoints() or Labels()", name);
    return 0;
}

static void set_defaults(leat__op_spec *op)
{
    for (uint32_t i = 0; i < op->def->param_count; i++)
        leat__param_default(&op->def->params[i], &op->value[i]);
}

static bool number_type(uint32_t dtype)
{
    return dtype == LEAT_DTYPE_F32 || dtype == LEAT_DTYPE_F64 || dtype == LEAT_DTYPE_I32 ||
           dtype == LEAT_DTYPE_I64;
}

/* Checks that the field can have this role. */
static int check_type(const leat_field *field, leat__role role, leat_error *err)
{
    const char *name = field->name;
    const bool ragged = field->type == LEAT_FIELD_RAGGED;

    switch (role) {
    case LEAT__ROLE_MASK:
        if (field->type == LEAT_FIELD_IMAGE) return 0;
        return leat__fail(err, LEAT_EINVAL, "`follow`: field '%s' is not an image: it cannot be a Mask",
                          name);
    case LEAT__ROLE_BOXES:
        if (ragged && field->ndim == 2 && number_type(field->dtype)) return 0;
        return leat__fail(err, LEAT_EINVAL,
                          "`follow`: Boxes need a ragged field of shape (n, 4) of f32, f64, i32 or i64: "
                          "'%s' is not one",
                          name);
    case LEAT__ROLE_POINTS:
        if ((ragged || field->type == LEAT_FIELD_ARRAY) && field->ndim >= 1 && number_type(field->dtype) &&
            (ragged || field->shape[field->ndim - 1] == 2 || field->shape[field->ndim - 1] == 3))
            return 0;
        return leat__fail(err, LEAT_EINVAL,
                          "`follow`: Keypoints need an array of f32, f64, i32 or i64 whose last size is 2 or "
                          "3: '%s' is not one",
                          name);
    default:
        if (ragged && field->ndim >= 1) return 0;
        return leat__fail(err, LEAT_EINVAL,
                          "`follow`: Labels need a ragged field with one row per box: '%s' is not one", name);
    }
}

/* Refuses masks of more than 8 bits, because masks are transformed as bytes. */
static int check_mask(leat_pack *pack, uint32_t field, leat_error *err)
{
    char text[LEAT__KIND_TEXT];
    leat__image_kind kind;

    LEAT_TRY(leat__pack_image_kind(pack, field, &kind, err));
    if (kind == 0) return 0;
    return leat__fail(err, LEAT_EINVAL, "`follow`: field '%s' has %s: a Mask is an 8-bit image",
                      leat_pack_field(pack, field)->name, leat__kind_text(kind, text));
}

/* Checks the batch ops. Boxes and masks can follow Mosaic and CopyPaste, but nothing can follow ops that
 * blend samples. */
static int check_batch_ops(const leat__follower *f, leat_error *err)
{
    for (uint32_t i = 0; i < leat__pipeline_batch_ops(f->pipeline); i++) {
        const leat__op_spec *const op = leat__pipeline_batch_op(f->pipeline, i);
        if (!leat__mosaic_is(op) && !leat__paste_is(op))
            return leat__fail(err, LEAT_EINVAL,
                              "`follow`: '%s' cannot follow an image that MixUp or CutMix changes",
                              f->spec.field);
        if (f->role == LEAT__ROLE_POINTS)
            return leat__fail(err, LEAT_EINVAL, "`follow`: '%s': points cannot follow %s", f->spec.field,
                              op->def->name);
    }
    return 0;
}

static int find_image(leat__follower *f, const leat__shape *shape, const leat__followed *images,
                      uint32_t count, leat_error *err)
{
    const char *name = f->role == LEAT__ROLE_LABELS ? "" : f->spec.op.text;

    for (uint32_t i = 0; i < count; i++) {
        if (*name != '\0' && strcmp(shape->columns[images[i].column].tensor.name, name) != 0) continue;
        f->image = images[i].column;
        f->image_field = images[i].field;
        f->pipeline = images[i].pipeline;
        if (images[i].field == f->field)
            return leat__fail(err, LEAT_EINVAL, "`follow`: '%s' cannot follow itself", f->spec.field);
        const char *splits = leat__pipeline_splits(f->pipeline);
        if (splits != NULL)
            return leat__fail(err, LEAT_EINVAL,
                              "`follow`: '%s' cannot follow %s, which makes several images of one",
                              f->spec.field, splits);
        return check_batch_ops(f, err);
    }
    return leat__fail(err, LEAT_EINVAL, "`follow`: there is no image%s%s%s for '%s' to follow",
                      *name != '\0' ? " '" : "", name, *name != '\0' ? "'" : "", f->spec.field);
}

static int open_one(leat__follower *f, const leat__role_spec *spec, leat_pack *pack, leat_error *err)
{
    int field = leat_pack_field_find(pack, spec->field);

    if (field < 0)
        return leat__fail(err, LEAT_EINVAL, "%s: there is no field '%s' to follow an image",
                          leat_pack_path(pack), spec->field);
    *f = (leat__follower){.spec = *spec, .field = (uint32_t)field};
    const leat_field *info = leat_pack_field(pack, f->field);
    if (spec->op.def == NULL) {
        LEAT_TRY(guess_role(info, &f->role, err));
        f->spec.op.def = &leat__ops_roles[f->role];
        set_defaults(&f->spec.op);
    }
    f->role = (leat__role)(f->spec.op.def - leat__ops_roles);
    LEAT_TRY(check_type(info, f->role, err));
    return f->role == LEAT__ROLE_MASK ? check_mask(pack, f->field, err) : 0;
}

/* Finds the boxes that the labels of follower `at` belong to. */
static int find_boxes(leat__follower *all, uint32_t count, uint32_t at, leat_error *err)
{
    const char *name = all[at].spec.op.text;
    uint32_t found = 0;

    for (uint32_t k = 0; k < count; k++) {
        if (all[k].role != LEAT__ROLE_BOXES) continue;
        if (*name != '\0' && strcmp(all[k].spec.field, name) != 0) continue;
        all[at].boxes = k;
        found++;
    }
    if (found == 1) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      found == 0 ? "`follow`: '%s' has no boxes to belong to"
                                 : "`follow`: say which boxes '%s' belongs to: Labels(boxes=NAME)",
                      all[at].spec.field);
}

/* Puts labels after their boxes, because they use the rows that the last boxes kept. */
static int order_followers(leat__follow *f, leat__follower *all, uint32_t count, leat_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (all[i].role == LEAT__ROLE_LABELS) LEAT_TRY(find_boxes(all, count, i, err));
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].role == LEAT__ROLE_LABELS) continue;
        f->list[f->count++] = all[i];
        for (uint32_t k = 0; k < count && all[i].role == LEAT__ROLE_BOXES; k++)
            if (all[k].role == LEAT__ROLE_LABELS && all[k].boxes == i) f->list[f->count++] = all[k];
    }
    return 0;
}

/* Finds the first boxes that crops of their image depend on. */
static void find_guide(leat__follow *f)
{
    for (uint32_t i = f->count; i-- > 0;)
        if (f->list[i].role == LEAT__ROLE_BOXES && leat__pipeline_needs_boxes(f->list[i].pipeline) != NULL)
            f->guide = i + 1;
}

int leat__follow_open(leat__follow *f, leat_pack *pack, const char *text, const leat__shape *shape,
                      const leat__followed *images, uint32_t image_count, leat_error *err)
{
    leat__role_spec *specs = LEAT_NEW_ARRAY(LOADER, leat__role_spec, LEAT__SPEC_OPS_MAX);
    leat__follower *all = NULL;
    uint32_t count = 0;
    int rc = 0;

    *f = (leat__follow){0};
    if (specs == NULL) return leat__fail_nomem(err, sizeof *specs * LEAT__SPEC_OPS_MAX, "roles");
    LEAT_GO(rc, out, leat__spec_parse_roles(text, specs, &count, err));
    if (count == 0) LEAT_GO(rc, out, leat__fail(err, LEAT_EINVAL, "`follow`: no field is named"));
    f->list = LEAT_NEW_ARRAY(LOADER, leat__follower, count);
    all = LEAT_NEW_ARRAY(LOADER, leat__follower, count);
    if (f->list == NULL || all == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, count * sizeof *all, "followers"));
    for (uint32_t i = 0; i < count; i++) {
        LEAT_GO(rc, out, open_one(&all[i], &specs[i], pack, err));
        LEAT_GO(rc, out, find_image(&all[i], shape, images, image_count, err));
    }
    LEAT_GO(rc, out, order_followers(f, all, count, err));
    find_guide(f);
out:
    leat__free(specs);
    leat__free(all);
    return rc;
}

void leat__follow_reset(leat__follow *f)
{
    leat__free(f->list);
    *f = (leat__follow){0};
}

leat__follower *leat__follow_of(const leat__follow *f, uint32_t field)
{
    for (uint32_t i = 0; i < f->count; i++)
        if (f->list[i].field == field) return &f->list[i];
    return NULL;
}

int leat__follow_column(leat__follower *f, leat_pack *pack, uint32_t rows, leat__shape *shape,
                        uint32_t column, leat_error *err)
{
    const leat_field *field = leat_pack_field(pack, f->field);
    leat__column *c = &shape->columns[column];
    leat_tensor *t = &c->tensor;

    f->column = column;
    c->field = f->field;
    c->kind = field->type == LEAT_FIELD_RAGGED ? LEAT__COLUMN_RAGGED : LEAT__COLUMN_FIXED;
    c->follows = true;
    t->type = field->type;
    t->dtype = f->role == LEAT__ROLE_LABELS ? field->dtype : LEAT_DTYPE_F32;
    t->ndim = 1;
    t->shape[0] = rows;
    if (f->role == LEAT__ROLE_MASK) {
        const leat__output_spec *out = leat__pipeline_output(f->pipeline);
        t->type = LEAT_FIELD_ARRAY;
        t->dtype = LEAT_DTYPE_U8;
        t->ndim = 3;
        t->shape[1] = out->height;
        t->shape[2] = out->width;
        c->row_bytes = (uint64_t)out->width * out->height;
    } else if (c->kind == LEAT__COLUMN_RAGGED) {
        t->ragged_ndim = c->ragged_ndim = field->ndim;
        if (f->role != LEAT__ROLE_POINTS) c->shrinks = ++shape->shrinking;
    } else {
        if (field->ndim + 1 > LEAT_NDIM_MAX)
            return leat__fail(err, LEAT_ENOTSUP, "field '%s' has too many dimensions to batch", field->name);
        t->ndim = field->ndim + 1;
        c->row_bytes = sizeof(float);
        for (uint32_t d = 0; d < field->ndim; d++) {
            t->shape[d + 1] = (int64_t)field->shape[d];
            c->row_bytes *= field->shape[d];
        }
    }
    return 0;
}

/* ---- filling ------------------------------------------------------------------------------ */

void leat__follow_scratch_reset(leat__follow_scratch *s)
{
    leat__free(s->recipe);
    leat__free(s->keep);
    leat__free(s->corners);
    *s = (leat__follow_scratch){0};
}

static int draw(const leat__follower *f, const leat__follow_sample *in, leat__follow_scratch *s,
                leat_error *err)
{
    uint32_t width, height;

    if (s->recipe == NULL) s->recipe = LEAT_NEW(LOADER, leat__recipe);
    if (s->recipe == NULL) return leat__fail_nomem(err, sizeof *s->recipe, "a recipe");
    leat__oriented(&in->cells[f->image_cell].image, in->as_stored, &width, &height);
    return leat__pipeline_draw(f->pipeline, &in->key, width, height, s->recipe, err);
}

static int fill_mask(const leat__follower *f, const leat__follow_scratch *s, leat__pipeline_worker *w,
                     const leat__follow_sample *in, uint8_t *out, leat_error *err)
{
    const leat_pack_cell *cell = &in->cells[f->cell];
    const uint8_t *data = in->bytes + cell->start;
    leat__image_info info;

    if (cell->absent || cell->length == 0) return leat__fail_absent(f->spec.field, err);
    LEAT_TRY(leat__codec_probe((leat__codec_id)cell->image.codec, data, cell->length, &info, err));
    leat__image_as_indices(&info);
    const leat__encoded mask = {.info = &info,
                                .data = data,
                                .len = cell->length,
                                .tables = in->tables,
                                .orientation = in->as_stored ? 1 : cell->image.orientation};
    int rc =
        leat__pipeline_run_mask(w, s->recipe, &mask, (uint8_t)f->spec.op.value[LEAT__MASK_FILL].i, out, err);
    if (rc != 0) leat__error_context(err, "field '%s'", f->spec.field);
    return rc;
}

/* Converts n numbers of any dtype to float. */
static void to_floats(const uint8_t *from, uint32_t dtype, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++) {
        double d;
        int32_t i32;
        int64_t i64;
        switch (dtype) {
        case LEAT_DTYPE_F32: memcpy(&out[i], from + 4 * i, 4); continue;
        case LEAT_DTYPE_F64: memcpy(&d, from + 8 * i, 8); break;
        case LEAT_DTYPE_I32: memcpy(&i32, from + 4 * i, 4), d = i32; break;
        default: memcpy(&i64, from + 8 * i, 8), d = (double)i64;
        }
        out[i] = (float)d;
    }
}

/* The elements of an array or ragged field. */
typedef struct elements {
    const uint8_t *data;
    uint64_t count;
    int64_t shape[LEAT_NDIM_MAX];
} elements;

static int read_elements(const leat__follower *f, const leat__follow_sample *in, elements *e, leat_error *err)
{
    const leat_field *field = leat_pack_field(in->pack, f->field);
    const leat_pack_cell *cell = &in->cells[f->cell];
    const bool ragged = field->type == LEAT_FIELD_RAGGED;
    const uint64_t size = leat_dtype_size(field->dtype), lead = ragged ? leat__field_shape_bytes(field) : 0;

    if (cell->absent || cell->length < lead) return leat__fail_absent(f->spec.field, err);
    e->data = in->bytes + cell->start + lead;
    e->count = 1;
    for (uint32_t d = 0; d < field->ndim; d++) {
        e->shape[d] = (int64_t)field->shape[d];
        if (ragged) memcpy(&e->shape[d], in->bytes + cell->start + 8 * d, 8);
        if (e->shape[d] < 0 || !leat__mul_u64(e->count, (uint64_t)e->shape[d], &e->count))
            e->count = UINT64_MAX / 16;
    }
    if (e->count != (cell->length - lead) / size)
        return leat__fail(err, LEAT_EDATA, "field '%s': shape does not match the size", f->spec.field);
    return 0;
}

/* Finds the elements of a sample; fails when the row has no room for them. */
static int find_elements(const leat__follower *f, const leat__follow_sample *in, const leat__frame *frame,
                         uint32_t row, elements *e, leat_error *err)
{
    const leat_field *field = leat_pack_field(in->pack, f->field);
    const leat_tensor *t = &frame->tensors[f->column];

    LEAT_TRY(read_elements(f, in, e, err));
    if (field->type != LEAT_FIELD_RAGGED) return 0;
    if (e->count != (uint64_t)(t->offsets[row + 1] - t->offsets[row]))
        return leat__fail(err, LEAT_EDATA, "field '%s': shape does not match the size", f->spec.field);
    memcpy((int64_t *)t->ragged_shapes + (uint64_t)row * field->ndim, e->shape,
           field->ndim * sizeof(int64_t));
    return 0;
}

static int check_box_width(const leat__follower *f, const elements *e, leat_error *err)
{
    if (e->shape[1] == 4 || e->count == 0) return 0;
    return leat__fail(err, LEAT_EDATA, "field '%s': boxes have 4 numbers, not %lld", f->spec.field,
                      (long long)e->shape[1]);
}

leat__box_rule leat__follow_rule(const leat__follower *f)
{
    const leat__value *const v = f->spec.op.value;
    return (leat__box_rule){.format = (leat__box_format)v[LEAT__BOXES_FORMAT].i,
                            .relative = v[LEAT__BOXES_RELATIVE].i != 0,
                            .min_visible = (float)v[LEAT__BOXES_VISIBLE].f,
                            .min_size = (float)v[LEAT__BOXES_SIZE].f};
}

int leat__follow_guide(const leat__follow *follow, leat__follow_scratch *s, leat__follow_sample *in,
                       leat_error *err)
{
    elements e;
    uint32_t width, height;

    if (follow->guide == 0) return 0;
    const leat__follower *f = &follow->list[follow->guide - 1];
    const leat__box_rule rule = leat__follow_rule(f);
    LEAT_TRY(read_elements(f, in, &e, err));
    LEAT_TRY(check_box_width(f, &e, err));
    if (2 * e.count > s->corners_cap) {
        leat__free(s->corners);
        s->corners_cap = 0;
        s->corners = LEAT_NEW_ARRAY(LOADER, float, 2 * e.count);
        if (s->corners == NULL) return leat__fail_nomem(err, 2 * e.count * sizeof(float), "boxes");
        s->corners_cap = 2 * e.count;
    }
    leat__oriented(&in->cells[f->image_cell].image, in->as_stored, &width, &height);
    to_floats(e.data, leat_pack_field(in->pack, f->field)->dtype, e.count, s->corners);
    for (uint64_t i = 0; i < e.count; i += 4) leat__box_corners(&rule, width, height, s->corners + i);
    in->key.boxes = s->corners;
    in->key.moved = s->corners + e.count;
    in->key.box_count = (uint32_t)(e.count / 4);
    return 0;
}

/* Records that `kept` rows of `width` elements are left of a ragged value. */
static void set_used(const leat__follower *f, leat__frame *frame, uint32_t row, uint64_t kept, uint64_t width)
{
    const leat_tensor *t = &frame->tensors[f->column];
    ((int64_t *)t->ragged_shapes)[(uint64_t)row * t->ragged_ndim] = (int64_t)kept;
    leat__frame_used(frame, f->column, row, kept * width);
}

static int fill_boxes(const leat__follower *f, leat__follow_scratch *s, const leat__follow_sample *in,
                      leat__frame *frame, uint32_t row, leat_error *err)
{
    const leat__box_rule rule = leat__follow_rule(f);
    float *const out = leat__frame_row(frame, f->column, row);
    elements e;
    uint64_t kept = 0;

    LEAT_TRY(find_elements(f, in, frame, row, &e, err));
    LEAT_TRY(check_box_width(f, &e, err));
    const uint64_t n = e.count / 4;
    if (n > s->keep_cap) {
        leat__free(s->keep);
        s->keep_cap = 0;
        s->keep = LEAT_NEW_ARRAY(LOADER, bool, n);
        if (s->keep == NULL) return leat__fail_nomem(err, n, "boxes");
        s->keep_cap = n;
    }
    to_floats(e.data, leat_pack_field(in->pack, f->field)->dtype, e.count, out);
    leat__recipe_boxes(s->recipe, &rule, out, s->keep, n);
    for (uint64_t i = 0; i < n; i++) {
        if (!s->keep[i]) continue;
        memmove(out + 4 * kept++, out + 4 * i, 4 * sizeof *out);
    }
    s->boxes = n;
    set_used(f, frame, row, kept, 4);
    return 0;
}

/* Copies the labels of the boxes that the last boxes follower kept. */
static int fill_labels(const leat__follower *f, const leat__follow_scratch *s, const leat__follow_sample *in,
                       leat__frame *frame, uint32_t row, leat_error *err)
{
    uint8_t *const out = leat__frame_row(frame, f->column, row);
    const uint64_t size = leat_dtype_size(leat_pack_field(in->pack, f->field)->dtype);
    elements e;
    uint64_t kept = 0;

    LEAT_TRY(find_elements(f, in, frame, row, &e, err));
    if ((uint64_t)e.shape[0] != s->boxes)
        return leat__fail(err, LEAT_EDATA, "field '%s' has %lld rows for %llu boxes", f->spec.field,
                          (long long)e.shape[0], (unsigned long long)s->boxes);
    const uint64_t width = s->boxes > 0 ? e.count / s->boxes : 0;
    for (uint64_t i = 0; i < s->boxes; i++) {
        if (!s->keep[i]) continue;
        memcpy(out + kept++ * width * size, e.data + i * width * size, width * size);
    }
    set_used(f, frame, row, kept, width);
    return 0;
}

static int fill_points(const leat__follower *f, const leat__follow_scratch *s, const leat__follow_sample *in,
                       leat__frame *frame, uint32_t row, leat_error *err)
{
    const leat_field *field = leat_pack_field(in->pack, f->field);
    float *const out = leat__frame_row(frame, f->column, row);
    elements e;

    LEAT_TRY(find_elements(f, in, frame, row, &e, err));
    const int64_t width = e.shape[field->ndim - 1];
    if (e.count > 0 && width != 2 && width != 3)
        return leat__fail(err, LEAT_EDATA, "field '%s': points have 2 or 3 numbers, not %lld", f->spec.field,
                          (long long)width);
    if (e.count == 0) return 0;
    const leat__point_rule rule = {.relative = f->spec.op.value[LEAT__POINTS_RELATIVE].i != 0,
                                   .stride = (uint32_t)width};
    to_floats(e.data, field->dtype, e.count, out);
    leat__recipe_points(s->recipe, &rule, out, e.count / (uint64_t)width);
    return 0;
}

int leat__follow_fill(const leat__follow *follow, leat__follow_scratch *s, leat__pipeline_worker *w,
                      const leat__follow_sample *in, leat__frame *frame, uint32_t row, leat_error *err)
{
    const leat__pipeline *drawn = NULL;

    for (uint32_t i = 0; i < follow->count; i++) {
        const leat__follower *f = &follow->list[i];
        if (f->role != LEAT__ROLE_LABELS && f->pipeline != drawn) {
            LEAT_TRY(draw(f, in, s, err));
            drawn = f->pipeline;
        }
        switch (f->role) {
        case LEAT__ROLE_MASK:
            LEAT_TRY(fill_mask(f, s, w, in, leat__frame_row(frame, f->column, row), err));
            break;
        case LEAT__ROLE_BOXES: LEAT_TRY(fill_boxes(f, s, in, frame, row, err)); break;
        case LEAT__ROLE_POINTS: LEAT_TRY(fill_points(f, s, in, frame, row, err)); break;
        default: LEAT_TRY(fill_labels(f, s, in, frame, row, err));
        }
    }
    return 0;
}
