/* SPDX-License-Identifier: Apache-2.0
 *
 * See vectors.h.
 */
#include "curate/vectors.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"

#define LENGTH_MAX 65536

static bool is_vector(const leat_field *f)
{
    return f->type == LEAT_FIELD_ARRAY && f->ndim == 1 && f->shape[0] > 0 && f->shape[0] <= LENGTH_MAX &&
           (f->dtype == LEAT_DTYPE_F16 || f->dtype == LEAT_DTYPE_F32 || f->dtype == LEAT_DTYPE_F64);
}

static int wrong_field(const leat_pack *pack, const char *name, leat_error *err)
{
    leat__buf list;
    uint32_t found = 0;
    int rc;
    leat__buf_init(&list, LEAT__MEM_CURATE, 1u << 16);
    for (uint32_t f = 0; f < leat_pack_field_count(pack); f++)
        if (is_vector(leat_pack_field(pack, f)))
            leat__buf_printf(&list, "%s%s", found++ ? ", " : "", leat_pack_field(pack, f)->name);
    if (found == 0)
        rc = leat__fail(err, LEAT_EINVAL, "%s: has no field of vectors (leat embed writes them)",
                        leat_pack_path(pack));
    else if (name)
        rc = leat__fail(err, LEAT_EINVAL, "%s: '%s' is not a field of vectors; there is %s",
                        leat_pack_path(pack), name, leat__buf_str(&list));
    else
        rc = leat__fail(err, LEAT_EINVAL, "%s: has several fields of vectors (%s): name the field",
                        leat_pack_path(pack), leat__buf_str(&list));
    leat__buf_reset(&list);
    return rc;
}

int leat__vectors_field(const leat_pack *pack, const char *name, uint32_t *field, leat_error *err)
{
    uint32_t found = 0;
    for (uint32_t f = 0; f < leat_pack_field_count(pack); f++) {
        const leat_field *is = leat_pack_field(pack, f);
        if (!is_vector(is) || (name && strcmp(name, is->name) != 0)) continue;
        *field = f;
        found++;
    }
    return found == 1 ? 0 : wrong_field(pack, name, err);
}

size_t leat__vectors_dim(const leat_pack *pack, uint32_t field)
{
    const size_t length = (size_t)leat_pack_field(pack, field)->shape[0];
    return (length + LEAT__DISTANCE_LANES - 1) / LEAT__DISTANCE_LANES * LEAT__DISTANCE_LANES;
}

static double half_to_double(uint16_t h)
{
    const int exponent = h >> 10 & 31;
    const double fraction = h & 1023, sign = h >> 15 ? -1 : 1;
    if (exponent == 31) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double number_at(const void *data, uint32_t dtype, size_t i)
{
    if (dtype == LEAT_DTYPE_F16) {
        uint16_t h;
        memcpy(&h, (const char *)data + 2 * i, sizeof h);
        return half_to_double(h);
    }
    if (dtype == LEAT_DTYPE_F32) {
        float f;
        memcpy(&f, (const char *)data + 4 * i, sizeof f);
        return f;
    }
    double d;
    memcpy(&d, (const char *)data + 8 * i, sizeof d);
    return d;
}

/* Scales a vector to unit length. Leaves the zeros of `to` when it is zeros or not finite. The sum of squares
 * is a double, added in order. */
static void normalise(const void *data, uint32_t dtype, size_t length, float *to)
{
    double sum = 0;
    for (size_t i = 0; i < length; i++) {
        const double x = number_at(data, dtype, i);
        sum += x * x;
    }
    if (!isfinite(sum) || sum <= 0) return;
    const double by = 1 / sqrt(sum);
    for (size_t i = 0; i < length; i++) to[i] = (float)(number_at(data, dtype, i) * by);
}

int leat__vectors_read_one(leat_sample *s, uint32_t field, const leat_pack *pack, uint64_t row, float *to,
                           size_t dim, leat_error *err)
{
    const leat_field *f = leat_pack_field(pack, field);
    leat_view view;
    LEAT_TRY(leat_sample_read(s, row, err));
    LEAT_TRY(leat_sample_field(s, field, &view, err));
    if (!view.data || view.size != f->shape[0] * leat_dtype_size(f->dtype))
        return leat__fail(err, LEAT_EDATA, "%s: row %llu has no vector", leat_pack_path(pack),
                          (unsigned long long)row);
    memset(to, 0, dim * sizeof *to);
    normalise(view.data, f->dtype, (size_t)f->shape[0], to);
    return 0;
}

int leat__vectors_read(leat__vectors *v, leat_pack *pack, const char *name, leat_error *err)
{
    leat_sample *s = NULL;
    uint32_t field = 0;
    size_t bytes;
    int rc = 0;
    memset(v, 0, sizeof *v);
    LEAT_TRY(leat__vectors_field(pack, name, &field, err));
    v->count = leat_pack_count(pack);
    v->length = (size_t)leat_pack_field(pack, field)->shape[0];
    v->dim = leat__vectors_dim(pack, field);
    if (v->count >= UINT32_MAX || !leat__mul_size((size_t)v->count, v->dim * sizeof *v->row, &bytes))
        return leat__fail(err, LEAT_ELIMIT, "%s: more than %u rows", leat_pack_path(pack), UINT32_MAX - 1);
    v->row = leat__alloc(LEAT__MEM_CURATE, bytes);
    if (!v->row) return leat__fail_nomem(err, bytes, "vectors");
    rc = leat_sample_open(&s, pack, err);
    for (uint64_t i = 0; i < v->count && rc == 0; i++)
        rc = leat__vectors_read_one(s, field, pack, i, v->row + i * v->dim, v->dim, err);
    leat_sample_close(&s);
    if (rc != 0) leat__vectors_reset(v);
    return rc;
}

void leat__vectors_reset(leat__vectors *v)
{
    leat__free(v->row);
    memset(v, 0, sizeof *v);
}
