/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads columns: numbers from the index, text and vectors from the samples.
 */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/num.h"
#include "view/view_data.h"

#define CHUNK 1024u
#define TEXT_MAX ((size_t)1 << 40)

static int check_stop(const leat__view_data *d, leat_error *err)
{
    return atomic_load(&d->stopping) ? leat__fail(err, LEAT_ECANCELED, "the view was closed") : 0;
}

/* ---- numbers ---- */

static int read_facts(leat_pack *pack, const leat__view_column *c, uint64_t at, size_t n, double *out,
                      leat_error *err)
{
    leat_pack_cell cells[CHUNK];
    LEAT_TRY(leat_pack_cells(pack, c->field, at, n, cells, err));
    for (size_t i = 0; i < n; i++) {
        const leat_pack_image *image = &cells[i].image;
        const bool turned = image->orientation >= 5;
        if (cells[i].absent) out[i] = NAN;
        else if (c->origin == LEAT__VIEW_BYTES) out[i] = (double)cells[i].length;
        else out[i] = (c->origin == LEAT__VIEW_WIDTH) != turned ? image->width : image->height;
    }
    return 0;
}

static int read_numbers(leat_pack *pack, const leat__view_column *c, uint64_t at, size_t n, double *out,
                        leat_error *err)
{
    int64_t whole[CHUNK];
    if (c->origin != LEAT__VIEW_FIELD) return read_facts(pack, c, at, n, out, err);
    if (!c->whole) return leat_pack_floats(pack, c->field, at, n, out, err);
    LEAT_TRY(leat_pack_ints(pack, c->field, at, n, whole, err));
    for (size_t i = 0; i < n; i++) out[i] = (double)whole[i];
    return 0;
}

static int load_numbers(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    leat__view_source *s = &d->source[c->source];
    const uint64_t bytes = (uint64_t)d->rows * sizeof *c->number;
    LEAT_TRY(leat__view_charge(d, bytes, NULL, err));
    double *number = leat__alloc_array(LEAT__MEM_MISC, d->rows, sizeof *number);
    int rc = number ? 0 : leat__fail_nomem(err, bytes, "a column");
    for (uint64_t at = 0; at < d->rows && rc == 0; at += CHUNK) {
        const size_t n = (size_t)LEAT_MIN(d->rows - at, CHUNK);
        rc = read_numbers(s->pack, c, s->first + at, n, number + at, err);
        if (rc == 0) rc = check_stop(d, err);
    }
    if (rc != 0) {
        leat__free(number);
        leat__view_release(d, bytes);
        return rc;
    }
    c->number = number;
    c->held = bytes;
    return 0;
}

/* ---- text ---- */

static int append_text(const leat__view_source *s, const leat__view_column *c, uint64_t row, leat__buf *text,
                       leat_error *err)
{
    leat_view v;
    size_t size = 0;
    if (c->origin == LEAT__VIEW_KEY) {
        for (size_t room = 256;; room = size + 1) {
            if (leat__buf_reserve(text, room) != 0) return leat__fail_nomem(err, room, "a key");
            int rc = leat_pack_key(s->pack, row, text->data + text->len, room, &size, err);
            if (rc == 0) text->len += size;
            if (rc != LEAT_ELIMIT || size < room) return rc;
        }
    }
    LEAT_TRY(leat_sample_read(s->sample, row, err));
    LEAT_TRY(leat_sample_field(s->sample, c->field, &v, err));
    if (v.data && leat__buf_append(text, v.data, v.size) != 0) return leat__fail_nomem(err, v.size, "a text");
    return 0;
}

static int fill_text(leat__view_data *d, leat__view_column *c, leat__buf *text, uint64_t *charged,
                     leat_error *err)
{
    for (uint32_t row = 0; row < d->rows; row++) {
        c->start[row] = text->len;
        LEAT_TRY(append_text(&d->source[c->source], c, leat__view_row_of(d, c->source, row), text, err));
        if (text->cap > *charged) {
            LEAT_TRY(leat__view_charge(d, text->cap - *charged, NULL, err));
            *charged = text->cap;
        }
        if (row % CHUNK == 0) LEAT_TRY(check_stop(d, err));
    }
    c->start[d->rows] = text->len;
    return 0;
}

static int load_text(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    leat__buf text;
    const uint64_t bytes = ((uint64_t)d->rows + 1) * sizeof *c->start;
    uint64_t charged = 0;
    size_t len;
    LEAT_TRY(leat__view_charge(d, bytes, NULL, err));
    leat__buf_init(&text, LEAT__MEM_MISC, TEXT_MAX);
    c->start = leat__alloc(LEAT__MEM_MISC, bytes);
    int rc = c->start ? fill_text(d, c, &text, &charged, err) : leat__fail_nomem(err, bytes, "a column");
    if (rc == 0) c->text = leat__buf_take(&text, &len);
    if (rc == 0 && !c->text) rc = leat__fail_nomem(err, text.len, "a column");
    leat__buf_reset(&text);
    if (rc == 0) {
        c->held = bytes + charged;
        return 0;
    }
    leat__free(c->start);
    c->start = NULL;
    leat__view_release(d, bytes + charged);
    return rc;
}

/* ---- vectors ---- */

static float from_half(uint16_t h)
{
    const uint32_t e = h >> 10 & 31, m = h & 1023;
    const float sign = h >> 15 ? -1.0f : 1.0f;
    if (e == 31) return m ? NAN : sign * INFINITY;
    return sign * (e ? ldexpf(1.0f + (float)m / 1024, (int)e - 15) : ldexpf((float)m / 1024, -14));
}

bool leat__view_floats(uint32_t dtype, const void *data, size_t count, float *out)
{
    const char *from = data;
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        uint32_t bits;
        double wide;
        if (dtype == LEAT_DTYPE_F32) {
            memcpy(&out[i], from + 4 * i, 4);
        } else if (dtype == LEAT_DTYPE_F64) {
            memcpy(&wide, from + 8 * i, 8);
            out[i] = (float)wide;
        } else if (dtype == LEAT_DTYPE_F16 || dtype == LEAT_DTYPE_BF16) {
            memcpy(&half, from + 2 * i, 2);
            bits = (uint32_t)half << 16;
            if (dtype == LEAT_DTYPE_F16) out[i] = from_half(half);
            else memcpy(&out[i], &bits, 4);
        } else {
            return false;
        }
    }
    return true;
}

/* Stores a row with 8 bits per number, which is exact enough for a map and for finding candidates.
 * Returns its length. */
static float put_vector(const float *from, uint32_t dim, int8_t *to)
{
    float most = 0;
    int64_t sum = 0;
    for (uint32_t i = 0; i < dim; i++) {
        if (!isfinite(from[i])) {
            memset(to, 0, dim);
            return 0;
        }
        most = fmaxf(most, fabsf(from[i]));
    }
    for (uint32_t i = 0; i < dim; i++) {
        to[i] = most > 0 ? (int8_t)lrintf(from[i] / most * 127) : 0;
        sum += to[i] * to[i];
    }
    return sqrtf((float)sum);
}

static int fill_vectors(leat__view_data *d, leat__view_column *c, float *row_of, leat_error *err)
{
    const leat__view_source *s = &d->source[c->source];
    const size_t bytes = (size_t)c->dim * leat_dtype_size(c->dtype);
    for (uint32_t row = 0; row < d->rows; row++) {
        leat_view v;
        int8_t *to = c->vector + (size_t)row * c->dim;
        LEAT_TRY(leat_sample_read(s->sample, leat__view_row_of(d, c->source, row), err));
        LEAT_TRY(leat_sample_field(s->sample, c->field, &v, err));
        const bool there = v.data && v.size == bytes && leat__view_floats(c->dtype, v.data, c->dim, row_of);
        if (there) c->norm[row] = put_vector(row_of, c->dim, to);
        else memset(to, 0, c->dim), c->norm[row] = 0;
        if (row % CHUNK == 0) LEAT_TRY(check_stop(d, err));
    }
    return 0;
}

static int load_vectors(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    const uint64_t bytes = (uint64_t)d->rows * (c->dim + sizeof *c->norm);
    LEAT_TRY(leat__view_charge(d, bytes, NULL, err));
    c->vector = leat__alloc_array(LEAT__MEM_MISC, d->rows, c->dim);
    c->norm = leat__alloc_array(LEAT__MEM_MISC, d->rows, sizeof *c->norm);
    float *row = leat__alloc_array(LEAT__MEM_MISC, c->dim, sizeof *row);
    int rc =
        c->vector && c->norm && row ? fill_vectors(d, c, row, err) : leat__fail_nomem(err, bytes, "vectors");
    leat__free(row);
    if (rc == 0) {
        c->held = bytes;
        return 0;
    }
    leat__free(c->vector);
    leat__free(c->norm);
    c->vector = NULL;
    c->norm = NULL;
    leat__view_release(d, bytes);
    return rc;
}

int leat__view_read(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    if (c->kind == LEAT__VIEW_NUMBER) return load_numbers(d, c, err);
    return c->kind == LEAT__VIEW_TEXT ? load_text(d, c, err) : load_vectors(d, c, err);
}
