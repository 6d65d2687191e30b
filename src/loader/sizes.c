/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes: see sizes.h. A row whose recipe cannot be drawn (a crop larger than its image), or whose image
 * is over the limit on pixels, has size 0 here and is handled where it is decoded.
 */
#include "loader/sizes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "loader/buckets.h"
#include "loader/oriented.h"
#include "loader/sources.h"

/* ---- options and columns -------------------------------------------------------------------- */

static int check_pad_opts(const leat_loader_opts *o, leat_error *err)
{
    const char *name = o->pad_multiple > 1 ? "pad_multiple"
                       : o->pad_value != 0 ? "pad_value"
                       : o->pad_mask != 0  ? "pad_mask"
                                           : NULL;
    if (name != NULL && o->collate != LEAT_COLLATE_PAD)
        return leat__fail(err, LEAT_EINVAL, "`%s` has no effect: `collate` is not pad", name);
    if (o->pad_multiple > LEAT_PAD_MULTIPLE_MAX)
        return leat__fail(err, LEAT_EINVAL, "`pad_multiple` %u: at most %d", o->pad_multiple,
                          LEAT_PAD_MULTIPLE_MAX);
    if (!isfinite(o->pad_value)) return leat__fail(err, LEAT_EINVAL, "`pad_value` is not a finite number");
    if (o->pad_mask > 1) return leat__fail(err, LEAT_EINVAL, "`pad_mask`: %u is not 0 or 1", o->pad_mask);
    return 0;
}

static int check_bucket_opts(const leat_loader_opts *o, leat_error *err)
{
    if (o->bucket == LEAT_BUCKET_NONE) {
        if (o->bucket_count == 0 && o->bucket_edge_count == 0) return 0;
        return leat__fail(err, LEAT_EINVAL, "`%s` has no effect: `bucket` is not given",
                          o->bucket_count != 0 ? "buckets" : "bucket_edges");
    }
    if (o->bucket_count != 0 && o->bucket_edge_count != 0)
        return leat__fail(err, LEAT_EINVAL, "give either `buckets` or `bucket_edges`, not both");
    if (o->bucket_count > LEAT_BUCKETS_MAX || o->bucket_edge_count >= LEAT_BUCKETS_MAX)
        return leat__fail(err, LEAT_EINVAL, "at most %d buckets", LEAT_BUCKETS_MAX);
    if (o->order != LEAT_ORDER_RANDOM || o->weights != NULL || o->balance != NULL || leat__sources_mixed(o))
        return leat__fail(err, LEAT_EINVAL,
                          "`bucket` needs `order` random, without weights, `balance` or mixed packs");
    if (o->bucket_edge_count > 0 && o->bucket_edges == NULL)
        return leat__fail(err, LEAT_EINVAL, "`bucket_edges`: there are none");
    for (uint32_t i = 0; i < o->bucket_edge_count; i++) {
        if (!isfinite(o->bucket_edges[i]) || (i > 0 && o->bucket_edges[i] <= o->bucket_edges[i - 1]))
            return leat__fail(err, LEAT_EINVAL, "`bucket_edges` must be finite numbers in rising order");
    }
    return 0;
}

int leat__sizes_check(const leat_loader_opts *o, leat_error *err)
{
    LEAT_TRY(check_pad_opts(o, err));
    LEAT_TRY(check_bucket_opts(o, err));
    if (o->collate == LEAT_COLLATE_STACK) return 0;
    if (o->device != NULL && strcmp(o->device, "cpu") != 0)
        return leat__fail(
            err, LEAT_ENOTSUP,
            "images of different size stay on the host: with `device`, `collate` must be stack");
    if (o->sample_fn != NULL)
        return leat__fail(err, LEAT_EINVAL, "sample_fn needs images of one size: `collate` must be stack");
    if (o->on_error == LEAT_ON_ERROR_REPLACE)
        return leat__fail(err, LEAT_EINVAL,
                          "`on_error` replace needs images of one size, another image may not fit: use skip, "
                          "or `collate` stack");
    return 0;
}

/* Sets c->fill to one element of the column's type with this value. */
static int set_fill(leat__column *c, double fill, leat_error *err)
{
    const bool whole = leat__output_whole(c->tensor.dtype);
    const int most = c->tensor.dtype == LEAT_DTYPE_U16 ? 65535 : 255;
    if (whole && (fill < 0 || fill > most || fill != floor(fill)))
        return leat__fail(err, LEAT_EINVAL, "`pad_value` %g: '%s' has whole numbers from 0 to %d", fill,
                          c->tensor.name, most);
    leat__column one = {.tensor.dtype = c->tensor.dtype, .row_bytes = leat_dtype_size(c->tensor.dtype)};
    leat__column_fill(&one, (int64_t)fill, fill, c->fill);
    return 0;
}

int leat__sizes_column(leat__column *c, const leat_loader_opts *o, uint32_t of, uint32_t channels,
                       bool channels_last, double fill, leat_error *err)
{
    leat_tensor *t = &c->tensor;
    const uint32_t dims = channels > 0 ? 3 : 2;

    c->of = of;
    c->channels = channels;
    c->channels_last = channels_last;
    c->multiple = LEAT_MAX(o->pad_multiple, 1u);
    c->row_bytes = 0;
    if (o->collate != LEAT_COLLATE_PAD) {
        c->kind = LEAT__COLUMN_RAGGED;
        c->sizing = LEAT__SIZING_OWN;
        c->ragged_ndim = t->ragged_ndim = dims;
        t->ndim = 1;
        t->strides[0] = 1;
        return 0;
    }
    c->sizing = LEAT__SIZING_PADDED;
    t->ndim = dims + 1;
    for (uint32_t d = 1; d <= dims; d++) t->shape[d] = -1;
    if (channels > 0) t->shape[channels_last ? 3 : 1] = channels;
    for (uint32_t d = 0; d <= dims; d++) t->strides[d] = 0;
    return set_fill(c, fill, err);
}

static int extra_column(leat__shape *shape, uint32_t of, const char *ending, leat_error *err)
{
    const leat__column *image = &shape->columns[of];
    char name[320];

    snprintf(name, sizeof name, "%s_%s", image->tensor.name, ending);
    for (uint32_t c = 0; c < shape->count; c++) {
        if (strcmp(shape->columns[c].tensor.name, name) == 0)
            return leat__fail(err, LEAT_EINVAL, "`collate` pad adds a field '%s': there is one already",
                              name);
    }
    leat__column *c = &shape->columns[shape->count];
    *c = (leat__column){
        .kind = LEAT__COLUMN_FIXED, .field = image->field, .of = of, .multiple = image->multiple};
    c->tensor = (leat_tensor){.name = leat__strdup(LEAT__MEM_LOADER, name),
                              .type = LEAT_FIELD_ARRAY,
                              .shape = {image->tensor.shape[0]}};
    if (c->tensor.name == NULL) return leat__fail_nomem(err, strlen(name), "a name");
    shape->count++;
    return 0;
}

int leat__sizes_extra(const leat_loader_opts *o, leat__pipeline *const *images, uint32_t count,
                      leat__shape *shape, leat_error *err)
{
    if (o->collate == LEAT_COLLATE_STACK) return 0;
    if (count == 0) return leat__fail(err, LEAT_EINVAL, "`collate` has no effect: there are no images");
    for (uint32_t i = 0; i < count; i++) {
        if (leat__pipeline_batch_ops(images[i]) > 0)
            return leat__fail(err, LEAT_EINVAL, "%s needs images of one size: `collate` must be stack",
                              leat__pipeline_batch_op(images[i], 0)->def->name);
    }
    for (uint32_t i = 0; i < count && o->collate == LEAT_COLLATE_PAD; i++) {
        LEAT_TRY(extra_column(shape, i, "size", err));
        leat__column *c = &shape->columns[shape->count - 1];
        c->sizing = LEAT__SIZING_NOTE;
        c->row_bytes = 2 * sizeof(int64_t);
        c->tensor.dtype = LEAT_DTYPE_I64;
        c->tensor.ndim = 2;
        c->tensor.shape[1] = c->tensor.strides[0] = 2;
        c->tensor.strides[1] = 1;
        if (o->pad_mask == 0) continue;
        LEAT_TRY(extra_column(shape, i, "mask", err));
        c = &shape->columns[shape->count - 1];
        c->sizing = LEAT__SIZING_SEEN;
        c->tensor.dtype = LEAT_DTYPE_BOOL;
        c->tensor.ndim = 3;
        c->tensor.shape[1] = c->tensor.shape[2] = -1;
    }
    return 0;
}

int leat__sizes_open(leat_loader *l, leat_error *err)
{
    const uint64_t images = leat__frames_shape(l->frames)->sized;

    if (images == 0) return 0;
    l->feed.sizes = LEAT_NEW_ARRAY(LOADER, leat__size, images * l->opts.batch_size);
    l->feed.recipe = LEAT_NEW(LOADER, leat__recipe);
    if (l->feed.sizes == NULL || l->feed.recipe == NULL)
        return leat__fail_nomem(err, images * l->opts.batch_size * sizeof *l->feed.sizes, "sizes");
    return 0;
}

/* ---- a batch -------------------------------------------------------------------------------- */

static uint64_t elements_of(const leat__column *c, uint64_t width, uint64_t height)
{
    return width * height * LEAT_MAX(c->channels, 1u);
}

/* Computes height and width of a padded column. */
static leat__size largest(const leat__column *c, const leat__size *sizes, uint32_t rows)
{
    leat__size most = {0};
    for (uint32_t row = 0; row < rows; row++) {
        most.width = LEAT_MAX(most.width, sizes[row].width);
        most.height = LEAT_MAX(most.height, sizes[row].height);
    }
    most.width = leat__ceil_div(most.width, c->multiple) * c->multiple;
    most.height = leat__ceil_div(most.height, c->multiple) * c->multiple;
    return most;
}

/* True when a worker can decode the image. One that it refuses needs no room in a batch. */
static bool decodable(const leat_pack_cell *cell)
{
    return !cell->absent && !leat__decode_over(cell->image.width, cell->image.height);
}

/* Finds the sizes of one row in all views of a field. */
static void find_sizes(leat_loader *l, const leat__image_group *g, uint32_t row, uint32_t rows)
{
    leat__feed *feed = &l->feed;
    const leat__draw_key key = leat__sample_key(&l->env, feed->ids[row], feed->salts[row]);
    leat_pack_cell cell;
    uint32_t width = 0, height = 0;

    bool there = leat_pack_cells(l->pack, g->field, feed->ids[row], 1, &cell, NULL) == 0 && decodable(&cell);
    if (there) leat__oriented(&cell.image, l->opts.orientation == LEAT_ORIENTATION_IGNORE, &width, &height);
    for (uint32_t v = 0; v < g->count; v++) {
        leat__size *s = &feed->sizes[(size_t)g->columns[v] * rows + row];
        *s = (leat__size){0};
        if (there && leat__pipeline_draw(g->pipelines[v], &key, width, height, feed->recipe, NULL) == 0)
            *s = (leat__size){feed->recipe->width, feed->recipe->height};
    }
}

int leat__sizes_plan(leat_loader *l, uint32_t rows, leat_error *err)
{
    const leat__shape *shape = l->env.shape;

    if (shape->sized == 0) return 0;
    for (uint32_t g = 0; g < l->env.group_count; g++)
        for (uint32_t row = 0; row < rows; row++) find_sizes(l, &l->env.groups[g], row, rows);
    for (uint32_t i = 0; i < shape->count; i++) {
        const leat__column *c = &shape->columns[i];
        const leat__size *sizes = l->feed.sizes + (size_t)c->of * rows;
        const uint64_t size = leat_dtype_size(c->tensor.dtype);
        uint64_t sum = 0;
        if (c->sizing == LEAT__SIZING_OWN) {
            for (uint32_t row = 0; row < rows; row++)
                sum += elements_of(c, sizes[row].width, sizes[row].height) * size;
        } else if (leat__column_padded(c)) {
            leat__size most = largest(c, sizes, rows);
            if (!leat__mul_u64(elements_of(c, most.width, most.height) * size, rows, &sum))
                return leat__fail(err, LEAT_EOVERFLOW, "a batch is too large");
        } else {
            continue;
        }
        l->feed.ragged[i] = sum;
    }
    return 0;
}

static void set_shape(leat_tensor *t, const leat__column *c, leat__size s)
{
    const uint32_t at = c->channels > 0 && !c->channels_last ? 2 : 1; /* dimension of the height */
    int64_t stride = 1;
    t->shape[at] = s.height;
    t->shape[at + 1] = s.width;
    for (uint32_t d = t->ndim; d-- > 0;) {
        t->strides[d] = stride;
        stride *= t->shape[d];
    }
}

static void lay_own(const leat__column *c, const leat__size *sizes, uint32_t rows, leat_tensor *t)
{
    int64_t *offsets = (int64_t *)t->offsets, *shapes = (int64_t *)t->ragged_shapes, at = 0;
    const uint32_t first = c->channels > 0 && !c->channels_last ? 1 : 0; /* dimension of the height */

    for (uint32_t row = 0; row < rows; row++, shapes += c->ragged_ndim) {
        offsets[row] = at;
        at += (int64_t)elements_of(c, sizes[row].width, sizes[row].height);
        shapes[first] = sizes[row].height;
        shapes[first + 1] = sizes[row].width;
        if (c->channels > 0) shapes[c->channels_last ? 2 : 0] = c->channels;
    }
    offsets[rows] = at;
}

void leat__sizes_lay(const leat_loader *l, leat__frame *f)
{
    const leat__shape *shape = l->env.shape;

    if (shape->sized == 0) return;
    memcpy(f->sizes, l->feed.sizes, (size_t)shape->sized * f->rows * sizeof *f->sizes);
    for (uint32_t i = 0; i < shape->count; i++) {
        const leat__column *c = &shape->columns[i];
        const leat__size *sizes = f->sizes + (size_t)c->of * f->rows;
        if (c->sizing == LEAT__SIZING_OWN) lay_own(c, sizes, f->rows, &f->tensors[i]);
        else if (leat__column_padded(c)) set_shape(&f->tensors[i], c, largest(c, sizes, f->rows));
    }
}

/* ---- bounds --------------------------------------------------------------------------------- */

typedef struct most {
    const leat__column *column;
    const leat__pipeline *pipeline;
    bool as_stored;
    leat__size side; /* the largest size so far */
} most;

static uint64_t reach_bytes(void *arg, const leat_pack_cell *cell)
{
    most *m = arg;
    uint32_t width, height;

    if (!decodable(cell)) return 0;
    leat__oriented(&cell->image, m->as_stored, &width, &height);
    leat__pipeline_reach(m->pipeline, width, height, &width, &height);
    m->side.width = LEAT_MAX(m->side.width, width);
    m->side.height = LEAT_MAX(m->side.height, height);
    return elements_of(m->column, width, height) * leat_dtype_size(m->column->tensor.dtype);
}

int leat__sizes_bound(leat_loader *l, uint32_t column, uint32_t rows, bool repeats, leat__ragged_bound *out,
                      leat_error *err)
{
    const leat__column *c = &leat__frames_shape(l->frames)->columns[column];
    const leat__column *image = &leat__frames_shape(l->frames)->columns[c->of];
    most m = {.column = c,
              .pipeline = l->pipelines[c->of],
              .as_stored = l->opts.orientation == LEAT_ORIENTATION_IGNORE};
    const leat__measured what = {.pack = l->pack,
                                 .field = image->field,
                                 .indices = l->indices,
                                 .count = l->universe,
                                 .value = reach_bytes,
                                 .arg = &m};

    LEAT_TRY(leat__values_measure(&what, rows, repeats, out, err));
    if (!leat__column_padded(c)) return 0;
    leat__size side = largest(c, &m.side, 1);
    out->value = elements_of(c, side.width, side.height) * leat_dtype_size(c->tensor.dtype);
    if (!leat__mul_u64(out->value, rows, &out->batch)) out->batch = UINT64_MAX;
    return 0;
}

/* ---- buckets -------------------------------------------------------------------------------- */

static int first_image(const leat_loader *l, const leat_loader_opts *given, uint32_t *field, leat_error *err)
{
    const char *name = given->image_count > 0 ? given->images[0].field : NULL;

    for (uint32_t f = 0; f < leat_pack_field_count(l->pack); f++) {
        const leat_field *info = leat_pack_field(l->pack, f);
        if (info->type != LEAT_FIELD_IMAGE || (name != NULL && strcmp(info->name, name) != 0)) continue;
        *field = f;
        return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "`bucket`: there is no image field to sort by");
}

/* Returns the sort value of an image; 0 for one without a size. */
static double shape_of(leat_loader *l, const leat_loader_opts *given, uint32_t field, uint64_t sample)
{
    leat_pack_cell cell;
    uint32_t width, height;

    if (leat_pack_cells(l->pack, field, sample, 1, &cell, NULL) != 0 || cell.absent) return 0;
    leat__oriented(&cell.image, given->orientation == LEAT_ORIENTATION_IGNORE, &width, &height);
    if (width == 0 || height == 0) return 0;
    return given->bucket == LEAT_BUCKET_ASPECT ? (double)width / height : (double)width * height;
}

int leat__sizes_buckets(leat_loader *l, const leat_loader_opts *given, uint64_t **ends, uint32_t *count,
                        leat_error *err)
{
    uint32_t field = 0, buckets = given->bucket_edge_count + 1;
    double *values = NULL;
    int rc = 0;

    LEAT_TRY(first_image(l, given, &field, err));
    if (given->bucket_edge_count == 0)
        buckets = given->bucket_count != 0 ? given->bucket_count : LEAT_BUCKETS;
    values = LEAT_NEW_ARRAY(LOADER, double, l->universe);
    if (l->indices == NULL) {
        l->indices = LEAT_NEW_ARRAY(LOADER, uint64_t, l->universe);
        for (uint64_t i = 0; l->indices != NULL && i < l->universe; i++) l->indices[i] = i;
    }
    if (values == NULL || l->indices == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, l->universe * sizeof *values, "buckets"));
    for (uint64_t i = 0; i < l->universe; i++) values[i] = shape_of(l, given, field, l->indices[i]);
    LEAT_GO(rc, out,
            leat__buckets_sort(l->indices, values, l->universe,
                               given->bucket_edge_count > 0 ? given->bucket_edges : NULL, buckets, ends,
                               count, err));
    l->mix = leat__hash64(*ends, *count * sizeof **ends, UINT64_C(11) + given->bucket);
    snprintf(l->mix_text, sizeof l->mix_text, "%u bucket%s by %s", *count, leat__plural(*count),
             given->bucket == LEAT_BUCKET_ASPECT ? "aspect" : "size");
out:
    leat__free(values);
    return rc;
}
