/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes rows, histograms, groups, maps, neighbours and single samples as JSON (points as
 * bytes).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/selection.h"
#include "view/view_impl.h"
#include "view/view_vector.h"

#define ROWS_MOST 2000u
#define GROUPS_MOST 200u
#define GROUP_SHOWN 24u
#define SIMILAR_MOST 500u
#define POINTS_MOST 1000000u
#define TEXT_SHOWN 65536u
#define KEY_BYTES_MAX ((size_t)2 << 20)

int leat__view_number_arg(const leat__httpd_request *r, const char *name, uint64_t fallback, uint64_t most,
                          uint64_t *value, leat_error *err)
{
    const char *text = r->arg(r->from, name);
    *value = fallback;
    if (!text) return 0;
    if (!leat__str_to_u64(text, value) || *value > most)
        return leat__fail(err, LEAT_EINVAL, "%s: not a number up to %llu", name, (unsigned long long)most);
    return 0;
}

/* Finds the column that an argument names. */
static int column_arg(leat__view *v, const leat__httpd_request *r, const char *name,
                      leat__view_column **column, leat_error *err)
{
    const char *text = r->arg(r->from, name);
    *column = leat__view_find(&v->data, text);
    return *column ? 0 : leat__fail(err, LEAT_EINVAL, "%s: there is no such column", name);
}

static int finish(const leat__httpd_answer *a, leat_error *err)
{
    return leat__buf_status(&a->body) == 0 ? 0 : leat__fail_nomem(err, a->body.len, "an answer");
}

static int put_key(leat__json *j, leat_pack *pack, uint64_t row, leat_error *err)
{
    leat__buf key;
    leat__buf_init(&key, LEAT__MEM_MISC, KEY_BYTES_MAX);
    int rc = leat__pack_key_read(pack, row, &key, err);
    leat__json_key(j, "key");
    leat__json_strn(j, leat__buf_str(&key), rc == 0 ? key.len : 0);
    leat__buf_reset(&key);
    return rc;
}

static void put_value(leat__json *j, const leat__view_column *c, uint32_t row)
{
    leat__json_key(j, "value");
    if (c->kind == LEAT__VIEW_TEXT) {
        const size_t size = (size_t)(c->start[row + 1] - c->start[row]);
        leat__json_strn(j, c->text + c->start[row], LEAT_MIN(size, 200));
    } else {
        leat__json_double(j, c->number[row]);
    }
}

/* Writes {"row":5,"key":"a.jpg","width":640,"height":480,"selected":false,"value":…}. */
static int put_row(leat__view *v, leat__json *j, uint32_t row, const leat__view_column *c, leat_error *err)
{
    leat_pack *pack = v->data.source[0].pack;
    leat_pack_cell cell;
    LEAT_TRY(leat_pack_cells(pack, v->data.image, row, 1, &cell, err));
    const bool turned = cell.image.orientation >= 5;
    leat__json_object(j);
    leat__json_ku64(j, "row", row);
    LEAT_TRY(put_key(j, pack, row, err));
    leat__json_ku64(j, "width", turned ? cell.image.height : cell.image.width);
    leat__json_ku64(j, "height", turned ? cell.image.width : cell.image.height);
    leat__json_kbool(j, "selected", leat__view_selected(&v->selection, row));
    if (c && c->kind != LEAT__VIEW_VECTOR) put_value(j, c, row);
    leat__json_end(j);
    return 0;
}

/* Loads the column "show", whose values are sent with the rows; NULL when none is requested. */
static int load_shown(leat__view *v, const leat__httpd_request *r, leat__view_column **c, leat_error *err)
{
    *c = NULL;
    if (!r->arg(r->from, "show") || !r->arg(r->from, "show")[0]) return 0;
    LEAT_TRY(column_arg(v, r, "show", c, err));
    return (*c)->kind == LEAT__VIEW_VECTOR ? 0 : leat__view_load(&v->data, *c, err);
}

int leat__view_answer_rows(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                           leat_error *err)
{
    uint64_t from, count;
    leat__view_rows *rows;
    leat__view_column *shown;
    leat__json j;
    LEAT_TRY(leat__view_number_arg(r, "from", 0, UINT32_MAX, &from, err));
    LEAT_TRY(leat__view_number_arg(r, "count", 100, ROWS_MOST, &count, err));
    LEAT_TRY(leat__view_rows_for(v, r->arg(r->from, "q"), &rows, err));
    LEAT_TRY(load_shown(v, r, &shown, err));
    from = LEAT_MIN(from, rows->count);
    count = LEAT_MIN(count, rows->count - from);
    leat__json_init(&j, &a->body, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "matched", rows->count);
    leat__json_ku64(&j, "from", from);
    leat__json_key(&j, "rows");
    leat__json_array(&j);
    for (uint64_t i = 0; i < count; i++) LEAT_TRY(put_row(v, &j, rows->row[from + i], shown, err));
    leat__json_end(&j);
    leat__json_end(&j);
    return finish(a, err);
}

int leat__view_answer_histogram(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                                leat_error *err)
{
    leat__view_column *c;
    leat__view_rows *rows;
    leat__json j;
    LEAT_TRY(column_arg(v, r, "column", &c, err));
    LEAT_TRY(leat__view_rows_for(v, r->arg(r->from, "q"), &rows, err));
    leat__json_init(&j, &a->body, 0);
    LEAT_TRY(leat__view_histogram(&v->data, c, rows, &j, err));
    return finish(a, err);
}

/* ---- groups ---- */

static int put_group(leat__view *v, leat__json *j, const leat__view_column *c, const leat__view_column *shown,
                     const uint32_t *row, uint32_t size, leat_error *err)
{
    leat__json_object(j);
    put_value(j, c, row[0]);
    leat__json_ku64(j, "size", size);
    leat__json_key(j, "rows");
    leat__json_array(j);
    for (uint32_t i = 0; i < LEAT_MIN(size, GROUP_SHOWN); i++) LEAT_TRY(put_row(v, j, row[i], shown, err));
    leat__json_end(j);
    leat__json_end(j);
    return 0;
}

static int put_groups(leat__view *v, const leat__view_column *c, const leat__view_column *shown,
                      const leat__view_rows *rows, const leat__view_groups *g, uint64_t from, uint64_t count,
                      leat__buf *out, leat_error *err)
{
    leat__json j;
    if (shown && shown->held == 0) shown = NULL; /* dropped to make room for the groups */
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "groups", g->count);
    leat__json_key(&j, "list");
    leat__json_array(&j);
    for (uint64_t i = from; i < g->count && i - from < count; i++)
        LEAT_TRY(put_group(v, &j, c, shown, rows->row + g->start[i], g->size[i], err));
    leat__json_end(&j);
    leat__json_end(&j);
    return 0;
}

int leat__view_answer_groups(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                             leat_error *err)
{
    uint64_t from, count;
    leat__view_column *c, *shown;
    leat__view_rows *all, rows = {0};
    leat__view_groups groups;
    LEAT_TRY(leat__view_number_arg(r, "from", 0, UINT32_MAX, &from, err));
    LEAT_TRY(leat__view_number_arg(r, "count", 20, GROUPS_MOST, &count, err));
    LEAT_TRY(column_arg(v, r, "column", &c, err));
    LEAT_TRY(load_shown(v, r, &shown, err));
    LEAT_TRY(leat__view_rows_for(v, r->arg(r->from, "q"), &all, err));
    LEAT_TRY(leat__view_charge(&v->data, all->bytes, NULL, err));
    rows = (leat__view_rows){.count = all->count, .bytes = all->bytes};
    rows.row = leat__alloc(LEAT__MEM_MISC, all->bytes);
    int rc = rows.row ? 0 : leat__fail_nomem(err, all->bytes, "groups");
    if (rc == 0) memcpy(rows.row, all->row, all->count * sizeof *rows.row);
    if (rc == 0) rc = leat__view_group(&v->data, c, &rows, &groups, err);
    if (rc == 0) {
        rc = put_groups(v, c, shown, &rows, &groups, from, count, &a->body, err);
        leat__view_groups_reset(&v->data, &groups);
    }
    leat__view_rows_reset(&v->data, &rows);
    return rc == 0 ? finish(a, err) : rc;
}

/* ---- the map ---- */

/* One axis of the map: a coordinate per row, from the embedding or from a column. */
typedef struct axis {
    double *number;     /* owned */
    const float *plane; /* pairs of coordinates; the axis uses every second number */
    double lo, hi;
} axis;

static double place(const axis *x, uint32_t row)
{
    return x->number ? x->number[row] : x->plane[2 * (size_t)row];
}

static void measure(axis *x, const leat__view_rows *rows)
{
    x->lo = INFINITY;
    x->hi = -INFINITY;
    for (uint32_t i = 0; i < rows->count; i++) {
        const double v = place(x, rows->row[i]);
        if (isfinite(v)) x->lo = fmin(x->lo, v), x->hi = fmax(x->hi, v);
    }
}

static uint16_t quantise(const axis *x, double v)
{
    return x->hi > x->lo ? (uint16_t)((v - x->lo) / (x->hi - x->lo) * 65535 + 0.5) : 32768;
}

/* Writes u32 count, u32 matched, then per point u32 row, u16 x, u16 y; with colours, then a u16 per
 * point, 0 for no value. Little-endian. */
static void put_points(const axis *x, const axis *y, const axis *colour, const leat__view_rows *rows,
                       leat__buf *out)
{
    const uint32_t step = rows->count / POINTS_MOST + 1;
    uint32_t count = 0;
    const size_t head = out->len;
    uint8_t bytes[8] = {0};
    (void)!leat__buf_append(out, bytes, 8);
    for (int colours = 0; colours < (colour->number ? 2 : 1); colours++)
        for (uint64_t i = 0; i < rows->count; i += step) {
            const uint32_t row = rows->row[i];
            const double left = place(x, row), top = place(y, row);
            if (!isfinite(left) || !isfinite(top)) continue;
            if (colours) {
                const double v = place(colour, row);
                leat__store_u16(bytes, isfinite(v) ? LEAT_MAX(quantise(colour, v), 1) : 0);
            } else {
                leat__store_u32(bytes, row);
                leat__store_u16(bytes + 4, quantise(x, left));
                leat__store_u16(bytes + 6, quantise(y, top));
                count++;
            }
            (void)!leat__buf_append(out, bytes, colours ? 2 : 8);
        }
    if (leat__buf_status(out) != 0) return;
    leat__store_u32((uint8_t *)out->data + head, count);
    leat__store_u32((uint8_t *)out->data + head + 4, rows->count);
}

/* Copies a column's values, because loading the next column may drop them. */
static int copy_numbers(leat__view *v, const leat__httpd_request *r, const char *name, axis *to,
                        leat_error *err)
{
    leat__view_column *c;
    const size_t bytes = (size_t)v->data.rows * sizeof *c->number;
    LEAT_TRY(column_arg(v, r, name, &c, err));
    if (c->kind != LEAT__VIEW_NUMBER)
        return leat__fail(err, LEAT_EINVAL, "%s: not a column of numbers", name);
    LEAT_TRY(leat__view_load(&v->data, c, err));
    to->number = leat__alloc(LEAT__MEM_MISC, bytes);
    if (!to->number) return leat__fail_nomem(err, bytes, "a map");
    memcpy(to->number, c->number, bytes);
    return 0;
}

static int place_points(leat__view *v, const leat__httpd_request *r, axis at[3], leat_error *err)
{
    leat__view_column *c;
    if (r->arg(r->from, "colour")) LEAT_TRY(copy_numbers(v, r, "colour", &at[2], err));
    if (!r->arg(r->from, "column")) {
        LEAT_TRY(copy_numbers(v, r, "x", &at[0], err));
        return copy_numbers(v, r, "y", &at[1], err);
    }
    LEAT_TRY(column_arg(v, r, "column", &c, err));
    if (c->kind != LEAT__VIEW_VECTOR) return leat__fail(err, LEAT_EINVAL, "column: not a column of vectors");
    LEAT_TRY(leat__view_load_plane(&v->data, c, err));
    at[0].plane = c->plane;
    at[1].plane = c->plane + 1;
    return 0;
}

int leat__view_answer_map(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a, leat_error *err)
{
    leat__view_rows *rows;
    axis at[3] = {{0}};
    const uint64_t bytes = 3 * (uint64_t)v->data.rows * sizeof *at[0].number;
    a->type = "application/octet-stream";
    LEAT_TRY(leat__view_rows_for(v, r->arg(r->from, "q"), &rows, err));
    LEAT_TRY(leat__view_charge(&v->data, bytes, NULL, err));
    int rc = place_points(v, r, at, err);
    for (int i = 0; i < 3 && rc == 0; i++)
        if (at[i].number || at[i].plane) measure(&at[i], rows);
    if (rc == 0) put_points(&at[0], &at[1], &at[2], rows, &a->body);
    for (int i = 0; i < 3; i++) leat__free(at[i].number);
    leat__view_release(&v->data, bytes);
    return rc == 0 ? finish(a, err) : rc;
}

int leat__view_answer_similar(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                              leat_error *err)
{
    leat__view_near near[SIMILAR_MOST];
    uint64_t row, most;
    uint32_t count;
    leat__view_column *c;
    leat__json j;
    LEAT_TRY(leat__view_number_arg(r, "row", UINT64_MAX, v->data.rows - 1, &row, err));
    LEAT_TRY(leat__view_number_arg(r, "count", 40, SIMILAR_MOST, &most, err));
    LEAT_TRY(column_arg(v, r, "column", &c, err));
    if (row == UINT64_MAX) return leat__fail(err, LEAT_EINVAL, "row: missing");
    if (c->kind != LEAT__VIEW_VECTOR) return leat__fail(err, LEAT_EINVAL, "column: not a column of vectors");
    LEAT_TRY(leat__view_similar(&v->data, c, (uint32_t)row, near, (uint32_t)most, &count, err));
    leat__json_init(&j, &a->body, 0);
    leat__json_array(&j);
    for (uint32_t i = 0; i < count; i++) {
        leat__json_object(&j);
        leat__json_kdouble(&j, "cosine", near[i].cosine);
        leat__json_key(&j, "row");
        LEAT_TRY(put_row(v, &j, near[i].row, NULL, err));
        leat__json_end(&j);
    }
    leat__json_end(&j);
    return finish(a, err);
}

/* ---- one sample ---- */

static const char *name_of(const leat__view *v, uint32_t source, uint32_t field)
{
    for (uint32_t i = 0; i < v->data.column_count; i++) {
        const leat__view_column *c = &v->data.column[i];
        if (c->origin == LEAT__VIEW_FIELD && c->source == source && c->field == field) return c->name;
    }
    return NULL;
}

static void put_number(leat__json *j, const leat__view *v, const char *column, const leat_field *f,
                       const leat_view *view)
{
    int64_t i = 0;
    double d = 0;
    char text[32];
    leat__json_key(j, "value");
    if (f->type == LEAT_FIELD_FLOAT) {
        memcpy(&d, view->data, sizeof d);
        leat__json_double(j, d);
        return;
    }
    memcpy(&i, view->data, sizeof i);
    snprintf(text, sizeof text, "%lld", (long long)i); /* as text: numbers in JavaScript have 53 bits */
    leat__json_str(j, text);
    const leat__view_column *c = leat__view_find(&v->data, column);
    if (!c || !c->names) return;
    leat__json_key(j, "names");
    leat__json_array(j);
    for (uint32_t n = 0; n < c->name_count; n++)
        if (c->bits ? ((uint64_t)i >> n & 1) != 0 : (int64_t)n == i) leat__json_str(j, c->names[n]);
    leat__json_end(j);
}

static int put_field(leat__view *v, leat__json *j, uint32_t source, uint32_t field, leat_error *err)
{
    const leat__view_source *s = &v->data.source[source];
    const leat_field *f = leat_pack_field(s->pack, field);
    const char *column = name_of(v, source, field);
    leat_view view;
    LEAT_TRY(leat_sample_field(s->sample, field, &view, err));
    leat__json_object(j);
    leat__json_kstr(j, "name", column ? column : f->name);
    leat__json_kstr(j, "source", s->name);
    leat__json_kstr(j, "type", leat_field_type_name(f->type));
    if (!view.data) {
    } else if (f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT) {
        put_number(j, v, column, f, &view);
    } else if (f->type == LEAT_FIELD_TEXT || f->type == LEAT_FIELD_JSON) {
        leat__json_key(j, "value");
        leat__json_strn(j, view.data, LEAT_MIN(view.size, TEXT_SHOWN));
    } else {
        leat__json_ku64(j, "bytes", view.size);
    }
    leat__json_end(j);
    return 0;
}

int leat__view_answer_sample(leat__view *v, const leat__httpd_request *r, leat__httpd_answer *a,
                             leat_error *err)
{
    uint64_t row;
    leat__json j;
    LEAT_TRY(leat__view_number_arg(r, "row", UINT64_MAX, v->data.rows - 1, &row, err));
    if (row == UINT64_MAX) return leat__fail(err, LEAT_EINVAL, "row: missing");
    leat__json_init(&j, &a->body, 0);
    leat__json_object(&j);
    leat__json_key(&j, "row");
    LEAT_TRY(put_row(v, &j, (uint32_t)row, NULL, err));
    leat__json_key(&j, "fields");
    leat__json_array(&j);
    for (uint32_t s = 0; s < v->data.source_count; s++) {
        const leat__view_source *source = &v->data.source[s];
        LEAT_TRY(leat_sample_read(source->sample, leat__view_row_of(&v->data, s, (uint32_t)row), err));
        for (uint32_t f = 0; f < leat_pack_field_count(source->pack); f++)
            LEAT_TRY(put_field(v, &j, s, f, err));
    }
    leat__json_end(&j);
    leat__json_end(&j);
    return finish(a, err);
}
