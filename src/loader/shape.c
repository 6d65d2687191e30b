/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the columns of the batches from the options of a loader and the fields of its pack, and checks their
 * names. Runs once, on the opening thread, and again for a change.
 */
#include "loader/setup.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/defaults.h"
#include "loader/sizes.h"
#include "loader/sources.h"
#include "pack/kind.h"
#include "pack/reader.h"
#include "pack/schema.h"

static int name_column(leat__column *c, const char *name, leat_error *err)
{
    c->tensor.name = leat__strdup(LEAT__MEM_LOADER, name);
    return c->tensor.name != NULL ? 0 : leat__fail_nomem(err, strlen(name), "a name");
}

static void row_major(leat_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t d = t->ndim; d-- > 0;) {
        t->strides[d] = stride;
        stride *= t->shape[d];
    }
}

static int image_column(leat__column *c, const leat_loader *l, uint32_t field, const leat__output_spec *out,
                        const char *name, leat_error *err)
{
    leat_tensor *t = &c->tensor;

    LEAT_TRY(name_column(c, name, err));
    c->kind = LEAT__COLUMN_IMAGE;
    c->field = field;
    c->row_bytes = out->bytes;
    t->type = LEAT_FIELD_IMAGE;
    t->dtype = out->dtype;
    t->shape[0] = l->opts.batch_size;
    if (l->opts.collate != LEAT_COLLATE_STACK)
        return leat__sizes_column(c, &l->opts, l->pipeline_count - 1, out->channels,
                                  out->layout == LEAT__LAYOUT_NHWC, l->opts.pad_value, err);
    const uint32_t at = out->crops > 0 ? 2 : 1;
    t->ndim = at + 3;
    if (out->crops > 0) t->shape[1] = out->crops;
    t->shape[at] = out->layout == LEAT__LAYOUT_NCHW ? out->channels : out->height;
    t->shape[at + 1] = out->layout == LEAT__LAYOUT_NCHW ? out->height : out->width;
    t->shape[at + 2] = out->layout == LEAT__LAYOUT_NCHW ? out->width : out->channels;
    row_major(t);
    return 0;
}

/* Refuses ragged fields with on_error replace: a replacement may be larger than the sample whose space it
 * gets. */
static int refuse_ragged(const leat_loader *l, const char *name, leat_error *err)
{
    if (l->opts.on_error != LEAT_ON_ERROR_REPLACE) return 0;
    return leat__fail(err, LEAT_EINVAL,
                      "`on_error` replace needs fields of fixed size: leave out '%s' or use skip", name);
}

static int plain_column(leat__column *c, const leat_loader *l, uint32_t field, leat_error *err)
{
    const leat_field *f = leat_pack_field(l->pack, field);
    leat_tensor *t = &c->tensor;

    LEAT_TRY(name_column(c, f->name, err));
    c->kind = LEAT__COLUMN_FIXED;
    c->field = field;
    t->type = f->type;
    t->ndim = 1;
    t->shape[0] = l->opts.batch_size;
    switch (f->type) {
    case LEAT_FIELD_INT:
        t->dtype = LEAT_DTYPE_I64;
        c->row_bytes = 8;
        break;
    case LEAT_FIELD_FLOAT:
        t->dtype = LEAT_DTYPE_F64;
        c->row_bytes = 8;
        break;
    case LEAT_FIELD_ARRAY:
        if (f->ndim + 1 > LEAT_NDIM_MAX)
            return leat__fail(err, LEAT_ENOTSUP, "field '%s' has too many dimensions to batch", f->name);
        t->dtype = f->dtype;
        t->ndim = f->ndim + 1;
        for (uint32_t d = 0; d < f->ndim; d++) t->shape[d + 1] = (int64_t)f->shape[d];
        c->row_bytes = leat__field_array_bytes(f);
        break;
    default:
        c->kind = LEAT__COLUMN_RAGGED;
        t->dtype = f->type == LEAT_FIELD_RAGGED ? f->dtype : LEAT_DTYPE_U8;
        c->ragged_ndim = f->type == LEAT_FIELD_RAGGED ? f->ndim : 0;
        t->ragged_ndim = c->ragged_ndim;
        LEAT_TRY(refuse_ragged(l, f->name, err));
    }
    row_major(t);
    return 0;
}

static bool wanted(const leat_loader_opts *given, const char *name)
{
    if (given->fields == NULL) return true;
    for (uint32_t i = 0; i < given->field_count; i++) {
        if (strcmp(given->fields[i], name) == 0) return true;
    }
    return false;
}

static int find_image_field(const leat_loader *l, const char *name, uint32_t *field, leat_error *err)
{
    for (uint32_t f = 0; f < leat_pack_field_count(l->pack); f++) {
        const leat_field *info = leat_pack_field(l->pack, f);
        if (info->type == LEAT_FIELD_IMAGE && (name == NULL || strcmp(info->name, name) == 0)) {
            *field = f;
            return 0;
        }
    }
    return leat__fail(err, LEAT_EINVAL, "%s: there is no image field%s%s%s", leat_pack_path(l->pack),
                      name != NULL ? " '" : "", name != NULL ? name : "", name != NULL ? "'" : "");
}

/* Adds the pipeline to the group of its field, creating the group for the first one. */
static int join_group(leat_loader *l, uint32_t field, uint32_t column, const leat__pipeline *p,
                      leat_error *err)
{
    leat__run_env *env = &l->env;
    leat__image_group *g = NULL;

    for (uint32_t i = 0; i < env->group_count; i++) {
        if (env->groups[i].field == field) g = &env->groups[i];
    }
    if (g == NULL) {
        g = &env->groups[env->group_count++];
        g->field = field;
        g->columns = LEAT_NEW_ARRAY(LOADER, uint32_t, LEAT__RUN_MAX);
        g->pipelines = LEAT_NEW_ARRAY(LOADER, const leat__pipeline *, LEAT__RUN_MAX);
        if (g->columns == NULL || g->pipelines == NULL) return leat__fail_nomem(err, 256, "views");
    }
    if (g->count == LEAT__RUN_MAX)
        return leat__fail(err, LEAT_EINVAL, "more than %d views of one image field", LEAT__RUN_MAX);
    g->columns[g->count] = column;
    g->pipelines[g->count++] = p;
    return 0;
}

static uint32_t views_of(const leat_loader *l, uint32_t field)
{
    for (uint32_t i = 0; i < l->env.group_count; i++) {
        if (l->env.groups[i].field == field) return l->env.groups[i].count;
    }
    return 0;
}

static int set_up_images(leat_loader *l, const leat_loader_opts *given, leat__shape *shape, leat_error *err)
{
    leat_loader_image single = {.ops = given->ops != NULL ? given->ops : LEAT__DEFAULT_OPS};
    const leat_loader_image *images = given->image_count > 0 ? given->images : &single;
    uint32_t n = given->image_count > 0 ? given->image_count : 1, field = 0;

    if (given->image_count == 0 && given->ops == NULL && find_image_field(l, NULL, &field, NULL) != 0)
        return 0; /* a pack without images is allowed if none was requested */
    l->pipelines = LEAT_NEW_ARRAY(LOADER, leat__pipeline *, n);
    l->env.groups = LEAT_NEW_ARRAY(LOADER, leat__image_group, n);
    if (l->pipelines == NULL || l->env.groups == NULL) return leat__fail_nomem(err, n * 64, "images");
    for (uint32_t i = 0; i < n; i++) {
        LEAT_TRY(find_image_field(l, images[i].field, &field, err));
        const char *name = leat_pack_field(l->pack, field)->name;
        if (images[i].name == NULL && !wanted(given, name)) {
            if (images[i].ops == NULL || (given->image_count == 0 && given->ops == NULL)) continue;
            return leat__fail(err, LEAT_EINVAL, "image '%s' has a pipeline but is not among fields", name);
        }
        leat__image_kind kind;
        LEAT_TRY(leat__pack_image_kind(l->pack, field, &kind, err));
        leat__pipeline_opts o = {.ops = images[i].ops != NULL ? images[i].ops : LEAT__DEFAULT_OPS,
                                 .view = views_of(l, field),
                                 .any_size = l->opts.collate != 0,
                                 .kind = {leat__kind_type(kind), leat__kind_channels(kind)},
                                 .field = name};
        LEAT_TRY(leat__pipeline_open(&l->pipelines[l->pipeline_count], &o, err));
        leat__pipeline *p = l->pipelines[l->pipeline_count++];
        LEAT_TRY(join_group(l, field, shape->count, p, err));
        shape->count++; /* counted first, so that reset frees it */
        LEAT_TRY(image_column(&shape->columns[shape->count - 1], l, field, leat__pipeline_output(p),
                              images[i].name != NULL ? images[i].name : name, err));
    }
    if (l->opts.collate != LEAT_COLLATE_STACK) shape->sized = l->pipeline_count;
    return 0;
}

/* Checks that crops that depend on boxes have a field of boxes. */
static int check_boxes(const leat_loader *l, const leat__shape *shape, leat_error *err)
{
    for (uint32_t i = 0; i < l->pipeline_count && l->env.follow.guide == 0; i++) {
        const char *op = leat__pipeline_needs_boxes(l->pipelines[i]);
        if (op != NULL)
            return leat__fail(err, LEAT_EINVAL, "%s needs boxes: let a field follow image '%s' as Boxes()",
                              op, shape->columns[i].tensor.name);
    }
    return 0;
}

static int set_up_follow(leat_loader *l, const leat_loader_opts *given, const leat__shape *shape,
                         leat_error *err)
{
    if (given->follow == NULL) return check_boxes(l, shape, err);
    leat__followed *images = LEAT_NEW_ARRAY(LOADER, leat__followed, (uint64_t)l->pipeline_count + 1);
    if (images == NULL) return leat__fail_nomem(err, l->pipeline_count * sizeof *images, "images");
    for (uint32_t i = 0; i < l->pipeline_count; i++)
        images[i] =
            (leat__followed){.column = i, .field = shape->columns[i].field, .pipeline = l->pipelines[i]};
    int rc = leat__follow_open(&l->env.follow, l->pack, given->follow, shape, images, l->pipeline_count, err);
    leat__free(images);
    return rc != 0 ? rc : check_boxes(l, shape, err);
}

static int follow_column(leat_loader *l, leat__follower *f, leat__shape *shape, leat_error *err)
{
    leat__column *c = &shape->columns[shape->count - 1];

    LEAT_TRY(name_column(c, f->spec.field, err));
    LEAT_TRY(leat__follow_column(f, l->pack, l->opts.batch_size, shape, shape->count - 1, err));
    if (f->role == LEAT__ROLE_MASK && shape->sized > 0)
        return leat__sizes_column(c, &l->opts, f->image, 0, false,
                                  (double)f->spec.op.value[LEAT__MASK_FILL].i, err);
    if (c->kind == LEAT__COLUMN_RAGGED) LEAT_TRY(refuse_ragged(l, f->spec.field, err));
    row_major(&c->tensor);
    return 0;
}

/* Refuses two fields with different random crops or rotations: an image and its mask would not match. */
static int check_geometry(const leat_loader *l, const leat__shape *shape, leat_error *err)
{
    const leat__image_group *g = l->env.groups;
    bool differ = false;

    for (uint32_t a = 0; a < l->env.group_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            for (uint32_t v = 0; v < LEAT_MIN(g[a].count, g[b].count); v++) {
                if (leat__pipeline_same_geometry(g[a].pipelines[v], g[b].pipelines[v])) continue;
                differ = true;
                if (l->opts.independent) continue;
                return leat__fail(err, LEAT_EINVAL,
                                  "images '%s' and '%s' would be cropped and turned differently: give "
                                  "both the same geometry, or say that they are independent",
                                  shape->columns[g[b].columns[v]].tensor.name,
                                  shape->columns[g[a].columns[v]].tensor.name);
            }
        }
    }
    if (l->opts.independent && !differ)
        return leat__fail(err, LEAT_EINVAL,
                          "independent has no effect: no two image fields are cropped differently");
    return 0;
}

/* Checks that image fields requested by name have a pipeline. */
static int check_fields(const leat_loader *l, const leat_loader_opts *given, const leat__shape *shape,
                        leat_error *err)
{
    for (uint32_t i = 0; i < given->field_count && given->fields != NULL; i++) {
        uint32_t field = (uint32_t)leat_pack_field_find(l->pack, given->fields[i]), c = 0;
        while (c < shape->count && shape->columns[c].field != field) c++;
        if (c == shape->count)
            return leat__fail(err, LEAT_EINVAL, "field '%s' is an image: give it a pipeline",
                              given->fields[i]);
    }
    return 0;
}

static int check_names(const leat_loader *l, const leat__shape *shape, leat_error *err)
{
    for (uint32_t a = 1; a < shape->count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            const char *name = shape->columns[a].tensor.name;
            if (!leat__str_eq(name, shape->columns[b].tensor.name)) continue;
            return leat__fail(err, LEAT_EINVAL,
                              "%s: two outputs are named '%s': give the image another name, or leave out the "
                              "field (fields)",
                              leat_pack_path(l->pack), name);
        }
    }
    return 0;
}

static int set_up_mixing(leat_loader *l, leat__shape *shape, leat_error *err)
{
    leat__mixed_image *images = LEAT_NEW_ARRAY(LOADER, leat__mixed_image, (uint64_t)l->pipeline_count + 1);

    if (images == NULL) return leat__fail_nomem(err, l->pipeline_count * sizeof *images, "images");
    for (uint32_t i = 0; i < l->pipeline_count; i++)
        images[i] = (leat__mixed_image){.column = i, .pipeline = l->pipelines[i]}; /* images come first */
    int rc = leat__mixing_open(&l->mixing, l->pack, &l->opts, shape, images, l->pipeline_count,
                               &l->env.follow, err);
    leat__free(images);
    l->env.mixed = l->mixing.images != NULL;
    return rc;
}

/* Fails, listing the fields of the pack. */
static int unknown_field(const leat_pack *pack, const char *name, leat_error *err)
{
    leat__names list = {0};
    for (uint32_t i = 0; i < leat_pack_field_count(pack); i++)
        leat__names_add(&list, leat_pack_field(pack, i)->name);
    return leat__fail(err, LEAT_EINVAL, "%s: there is no field '%s'; it has %s", leat_pack_path(pack), name,
                      leat__names_end(&list));
}

static int set_up_shape(leat_loader *l, const leat_loader_opts *given, leat__shape *shape, leat_error *err)
{
    uint32_t fields = leat_pack_field_count(l->pack);

    uint64_t most = fields + 3 * (uint64_t)given->image_count + 5;
    shape->columns = LEAT_NEW_ARRAY(LOADER, leat__column, most);
    if (shape->columns == NULL) return leat__fail_nomem(err, fields * sizeof(leat__column), "fields");
    for (uint32_t i = 0; i < given->field_count && given->fields != NULL; i++) {
        if (leat_pack_field_find(l->pack, given->fields[i]) < 0)
            return unknown_field(l->pack, given->fields[i], err);
    }
    LEAT_TRY(set_up_images(l, given, shape, err));
    LEAT_TRY(set_up_follow(l, given, shape, err));
    for (uint32_t f = 0; f < fields; f++) {
        const leat_field *info = leat_pack_field(l->pack, f);
        leat__follower *follower = leat__follow_of(&l->env.follow, f);
        if (follower == NULL && (info->type == LEAT_FIELD_IMAGE || !wanted(given, info->name))) continue;
        shape->count++;
        if (follower != NULL) LEAT_TRY(follow_column(l, follower, shape, err));
        else LEAT_TRY(plain_column(&shape->columns[shape->count - 1], l, f, err));
    }
    LEAT_TRY(check_fields(l, given, shape, err));
    LEAT_TRY(check_geometry(l, shape, err));
    LEAT_TRY(leat__sizes_extra(&l->opts, l->pipelines, l->pipeline_count, shape, err));
    LEAT_TRY(set_up_mixing(l, shape, err));
    LEAT_TRY(check_names(l, shape, err));
    if (given->sample_fn != NULL && shape->count > LEAT_SAMPLE_FN_FIELDS)
        return leat__fail(err, LEAT_EINVAL, "a sample function gets at most %d fields, not %u",
                          LEAT_SAMPLE_FN_FIELDS, shape->count);
    return 0;
}

/* Lists the fields of the pack that columns use, each once; columns get their index in the list. */
static int list_fields(leat_loader *l, leat__shape *shape, leat_error *err)
{
    leat__run_env *env = &l->env;

    env->fields = LEAT_NEW_ARRAY(LOADER, uint32_t, shape->count + 1);
    if (env->fields == NULL) return leat__fail_nomem(err, shape->count * 4, "the fields");
    for (uint32_t c = 0; c < shape->count; c++) {
        uint32_t at = 0;
        while (at < env->field_count && env->fields[at] != shape->columns[c].field) at++;
        if (at == env->field_count) env->fields[env->field_count++] = shape->columns[c].field;
        shape->columns[c].cell = at;
    }
    for (uint32_t i = 0; i < env->follow.count; i++) {
        leat__follower *f = &env->follow.list[i];
        f->cell = shape->columns[f->column].cell;
        f->image_cell = shape->columns[f->image].cell;
    }
    for (uint32_t g = 0; g < env->group_count; g++) {
        leat__image_group *group = &env->groups[g];
        group->cell = shape->columns[group->columns[0]].cell;
        group->use = leat__scratch_use_of(group->pipelines, group->count);
        if (shape->sized > 0) group->use.any_size = group->pipelines;
    }
    return 0;
}

int leat__loader_shape(leat_loader *l, const leat_loader_opts *given, leat__shape *shape, leat_error *err)
{
    LEAT_TRY(set_up_shape(l, given, shape, err));
    LEAT_TRY(leat__sources_check(l, shape, given, err));
    return list_fields(l, shape, err);
}
