/* SPDX-License-Identifier: Apache-2.0
 *
 * Fields and their cells: see schema.h. The JSON comes from files, so the parser trusts nothing.
 */
#include "pack/schema.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "pack/layout.h"

static const char *const type_names[] = {
#define TYPE_ROW(id, value, name) [value] = name,
    LEAT_FIELD_MAP(TYPE_ROW)
#undef TYPE_ROW
};

static const struct {
    const char *name;
    uint32_t size;
} dtypes[] = {
#define DTYPE_ROW(id, value, name, bytes) [value] = {name, bytes},
    LEAT_DTYPE_MAP(DTYPE_ROW)
#undef DTYPE_ROW
};

uint32_t leat_dtype_size(uint32_t dtype)
{
    return dtype < LEAT_COUNT(dtypes) ? dtypes[dtype].size : 0;
}

const char *leat_dtype_name(uint32_t dtype)
{
    return dtype < LEAT_COUNT(dtypes) ? dtypes[dtype].name : NULL;
}

const char *leat_field_type_name(uint32_t type)
{
    return type < LEAT_COUNT(type_names) ? type_names[type] : NULL;
}

static uint32_t type_of_name(const char *name)
{
    for (uint32_t i = 1; i < LEAT_COUNT(type_names); i++)
        if (strcmp(type_names[i], name) == 0) return i;
    return 0;
}

static uint32_t dtype_of_name(const char *name)
{
    for (uint32_t i = 1; i < LEAT_COUNT(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0) return i;
    return LEAT_DTYPE_NONE;
}

static bool has_elements(const leat_field *f)
{
    return f->type == LEAT_FIELD_ARRAY || f->type == LEAT_FIELD_RAGGED;
}

bool leat__field_is_payload(const leat_field *f)
{
    return f->type != LEAT_FIELD_INT && f->type != LEAT_FIELD_FLOAT;
}

uint32_t leat__field_width(const leat_field *f)
{
    if (f->type == LEAT_FIELD_IMAGE) return LEAT__PACK_IMAGE_WIDTH;
    return leat__field_is_payload(f) ? LEAT__PACK_PAYLOAD_WIDTH : LEAT__PACK_NUMBER_WIDTH;
}

static bool shape_bytes(const leat_field *f, uint64_t *bytes)
{
    *bytes = leat_dtype_size(f->dtype);
    for (uint32_t d = 0; d < f->ndim; d++)
        if (f->shape[d] > INT64_MAX || !leat__mul_u64(*bytes, f->shape[d], bytes)) return false;
    return *bytes <= LEAT__PACK_SAMPLE_MAX;
}

uint64_t leat__field_array_bytes(const leat_field *f)
{
    uint64_t bytes = 0;
    return shape_bytes(f, &bytes) ? bytes : 0; /* leat__schema_make has refused overflows */
}

uint32_t leat__field_shape_bytes(const leat_field *f)
{
    return (f->ndim * 8 + LEAT__PACK_ALIGN - 1) & ~(LEAT__PACK_ALIGN - 1);
}

static int check_field(const leat_field *f, uint32_t number, leat_error *err)
{
    size_t len = f->name != NULL ? strlen(f->name) : 0, good;
    if (len == 0 || len > LEAT__PACK_NAME_MAX || !leat__utf8_valid(f->name, len, &good))
        return leat__fail(err, LEAT_EINVAL, "schema: field %u: name must be UTF-8 of 1 to %u bytes", number,
                          LEAT__PACK_NAME_MAX);
    if (leat_field_type_name(f->type) == NULL)
        return leat__fail(err, LEAT_EFORMAT, "schema: field \"%s\": unknown type %u", f->name, f->type);
    if (!has_elements(f)) return 0;
    if (leat_dtype_size(f->dtype) == 0)
        return leat__fail(err, LEAT_EFORMAT, "schema: field \"%s\": unknown dtype %u", f->name, f->dtype);
    uint64_t bytes;
    if (f->ndim > LEAT_NDIM_MAX)
        return leat__fail(err, LEAT_ELIMIT, "schema: field \"%s\": more than %d dimensions", f->name,
                          LEAT_NDIM_MAX);
    if (f->type == LEAT_FIELD_ARRAY && !shape_bytes(f, &bytes))
        return leat__fail(err, LEAT_EOVERFLOW, "schema: field \"%s\": shape is too large", f->name);
    return 0;
}

static int name_cmp(const void *a, const void *b)
{
    return strcmp((*(const leat_field *const *)a)->name, (*(const leat_field *const *)b)->name);
}

static int check_unique(const leat__schema *s, leat_error *err)
{
    const leat_field **order = LEAT_NEW_ARRAY(PACK, const leat_field *, s->count);
    if (order == NULL) return leat__fail_nomem(err, s->count * sizeof *order, "the schema");
    for (uint32_t i = 0; i < s->count; i++) order[i] = &s->fields[i];
    qsort(order, s->count, sizeof *order, name_cmp);
    int rc = 0;
    for (uint32_t i = 1; i < s->count && rc == 0; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            rc = leat__fail(err, LEAT_EINVAL, "schema: field \"%s\" appears twice", order[i]->name);
    leat__free(order);
    return rc;
}

int leat__schema_make(leat__schema **out, const leat_field *fields, uint32_t count, leat_error *err)
{
    *out = NULL;
    if (count > LEAT__PACK_FIELDS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "schema: more than %u fields", LEAT__PACK_FIELDS_MAX);
    leat__schema *s = LEAT_NEW(PACK, leat__schema);
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "the schema");
    int rc = 0;
    s->fields = LEAT_NEW_ARRAY(PACK, leat_field, count);
    if (s->fields == NULL) {
        rc = leat__fail_nomem(err, count * sizeof *fields, "the schema");
        goto out;
    }
    for (uint32_t i = 0; i < count; i++) {
        LEAT_GO(rc, out, check_field(&fields[i], i, err));
        leat_field *f = &s->fields[i];
        f->type = fields[i].type;
        if (has_elements(&fields[i])) {
            f->dtype = fields[i].dtype;
            f->ndim = fields[i].ndim;
            if (f->type == LEAT_FIELD_ARRAY) memcpy(f->shape, fields[i].shape, sizeof f->shape);
            for (uint32_t d = f->ndim; d < LEAT_NDIM_MAX; d++) f->shape[d] = 0;
        }
        f->name = leat__strdup(LEAT__MEM_PACK, fields[i].name);
        if (f->name == NULL) {
            rc = leat__fail_nomem(err, strlen(fields[i].name) + 1, "the schema");
            goto out;
        }
        s->count++;
        s->row_bytes += leat__field_width(f);
    }
    LEAT_GO(rc, out, check_unique(s, err));
    *out = s;
    s = NULL;
out:
    leat__schema_close(&s);
    return rc;
}

void leat__schema_close(leat__schema **schema)
{
    leat__schema *s = *schema;
    if (s == NULL) return;
    for (uint32_t i = 0; i < s->count; i++) leat__free((char *)s->fields[i].name);
    leat__free(s->fields);
    leat__free(s);
    *schema = NULL;
}

int leat__schema_json(const leat__schema *s, leat__buf *out)
{
    leat__json j;
    leat__json_init(&j, out, 0);
    leat__json_object(&j);
    leat__json_ku64(&j, "version", 1);
    leat__json_key(&j, "fields");
    leat__json_array(&j);
    for (uint32_t i = 0; i < s->count; i++) {
        const leat_field *f = &s->fields[i];
        leat__json_object(&j);
        leat__json_kstr(&j, "name", f->name);
        leat__json_kstr(&j, "type", leat_field_type_name(f->type));
        if (has_elements(f)) leat__json_kstr(&j, "dtype", leat_dtype_name(f->dtype));
        if (f->type == LEAT_FIELD_RAGGED) leat__json_ku64(&j, "ndim", f->ndim);
        if (f->type == LEAT_FIELD_ARRAY) {
            leat__json_key(&j, "shape");
            leat__json_array(&j);
            for (uint32_t d = 0; d < f->ndim; d++) leat__json_u64(&j, f->shape[d]);
            leat__json_end(&j);
        }
        leat__json_end(&j);
    }
    leat__json_end(&j);
    leat__json_end(&j);
    return leat__buf_status(out);
}

/* ---- parsing --------------------------------------------------------------------------- */

static int malformed(leat_error *err, uint32_t number, const char *what)
{
    return leat__fail(err, LEAT_EDATA, "schema: field %u: %s", number, what);
}

static int parse_shape(const json_t *shape, uint32_t number, leat_field *f, leat_error *err)
{
    size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > LEAT_NDIM_MAX) return malformed(err, number, "bad shape");
    f->ndim = (uint32_t)n;
    for (size_t d = 0; d < n; d++) {
        const json_t *v = json_array_get(shape, d);
        if (!json_is_integer(v) || json_integer_value(v) < 0) return malformed(err, number, "bad shape");
        f->shape[d] = (uint64_t)json_integer_value(v);
    }
    return 0;
}

static int parse_field(const json_t *obj, uint32_t number, leat_field *f, leat_error *err)
{
    const char *name = json_string_value(json_object_get(obj, "name"));
    const char *type = json_string_value(json_object_get(obj, "type"));
    if (name == NULL || type == NULL) return malformed(err, number, "no name or no type");
    f->name = name;
    f->type = type_of_name(type);
    if (f->type == 0)
        return leat__fail(err, LEAT_EFORMAT, "schema: field \"%s\": unknown type \"%s\"", name, type);
    if (!has_elements(f)) return 0;
    const char *dtype = json_string_value(json_object_get(obj, "dtype"));
    if (dtype == NULL) return malformed(err, number, "no dtype");
    f->dtype = dtype_of_name(dtype);
    if (f->type == LEAT_FIELD_ARRAY) return parse_shape(json_object_get(obj, "shape"), number, f, err);
    const json_t *ndim = json_object_get(obj, "ndim");
    if (!json_is_integer(ndim) || json_integer_value(ndim) < 0 || json_integer_value(ndim) > LEAT_NDIM_MAX)
        return malformed(err, number, "bad ndim");
    f->ndim = (uint32_t)json_integer_value(ndim);
    return 0;
}

int leat__schema_parse(leat__schema **s, const char *text, size_t len, leat_error *err)
{
    *s = NULL;
    json_error_t jerr;
    leat_field *fields = NULL;
    int rc;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &jerr);
    if (root == NULL)
        return leat__fail(err, LEAT_EDATA, "schema: not JSON: %s (byte %d)", jerr.text, jerr.position);
    const json_t *list = json_object_get(root, "fields");
    size_t count = json_array_size(list);
    if (json_integer_value(json_object_get(root, "version")) != 1) {
        rc = leat__fail(err, LEAT_EFORMAT, "schema: unknown version");
        goto out;
    }
    if (!json_is_array(list) || count > LEAT__PACK_FIELDS_MAX) {
        rc = leat__fail(err, LEAT_EDATA, "schema: no list of fields, or too many");
        goto out;
    }
    fields = LEAT_NEW_ARRAY(PACK, leat_field, count);
    if (fields == NULL) {
        rc = leat__fail_nomem(err, count * sizeof *fields, "the schema");
        goto out;
    }
    for (size_t i = 0; i < count; i++)
        LEAT_GO(rc, out, parse_field(json_array_get(list, i), (uint32_t)i, &fields[i], err));
    rc = leat__schema_make(s, fields, (uint32_t)count, err);
out:
    leat__free(fields);
    json_decref(root);
    return rc;
}

/* ---- cells ----------------------------------------------------------------------------- */

void leat__cell_store(const leat_field *f, uint8_t *p, const leat_pack_cell *cell)
{
    if (f->type == LEAT_FIELD_INT) {
        leat__store_u64(p, (uint64_t)cell->i);
        return;
    }
    if (f->type == LEAT_FIELD_FLOAT) {
        memcpy(p, &cell->f, sizeof cell->f);
        return;
    }
    leat__store_u64(p, cell->absent ? 0 : cell->start);
    leat__store_u64(p + 8, cell->absent ? LEAT__PACK_ABSENT : cell->length);
    if (f->type != LEAT_FIELD_IMAGE) return;
    leat_pack_image image = {0};
    if (!cell->absent) image = cell->image;
    leat__store_u32(p + 16, image.width);
    leat__store_u32(p + 20, image.height);
    p[24] = image.codec;
    p[25] = image.channels;
    p[26] = image.orientation;
    p[27] = image.flags;
    leat__store_u32(p + 28, image.cost);
}

bool leat__cell_load(const leat_field *f, const uint8_t *p, uint64_t size, leat_pack_cell *cell)
{
    memset(cell, 0, sizeof *cell);
    if (f->type == LEAT_FIELD_INT) {
        cell->i = (int64_t)leat__load_u64(p);
        return true;
    }
    if (f->type == LEAT_FIELD_FLOAT) {
        memcpy(&cell->f, p, sizeof cell->f);
        return true;
    }
    cell->start = leat__load_u64(p);
    cell->length = leat__load_u64(p + 8);
    if (cell->length == LEAT__PACK_ABSENT) {
        cell->absent = 1;
        cell->length = 0;
        return cell->start == 0;
    }
    if (cell->start % LEAT__PACK_ALIGN != 0 || !leat__range_inside(cell->start, cell->length, size))
        return false;
    if (f->type == LEAT_FIELD_ARRAY) return cell->length == leat__field_array_bytes(f);
    if (f->type == LEAT_FIELD_RAGGED) return cell->length >= leat__field_shape_bytes(f);
    if (f->type != LEAT_FIELD_IMAGE) return true;
    cell->image.width = leat__load_u32(p + 16);
    cell->image.height = leat__load_u32(p + 20);
    cell->image.codec = p[24];
    cell->image.channels = p[25];
    cell->image.orientation = p[26];
    cell->image.flags = p[27];
    cell->image.cost = leat__load_u32(p + 28);
    return true;
}

const uint8_t *leat__cell_entries(const leat_pack_cell *cell, const uint8_t *sample, uint64_t size,
                                  size_t *entries_size)
{
    uint64_t at;
    *entries_size = 0;
    if (cell->absent || !(cell->image.flags & LEAT_PACK_IMAGE_ENTRIES)) return NULL;
    if (!leat__align_up_u64(cell->start + cell->length, LEAT__PACK_ALIGN, &at) ||
        !leat__range_inside(at, LEAT__PACK_ENTRIES_FRONT, size))
        return NULL;
    uint64_t length = leat__load_u32(sample + at);
    at += LEAT__PACK_ENTRIES_FRONT;
    if (length == 0 || !leat__range_inside(at, length, size)) return NULL;
    *entries_size = (size_t)length;
    return sample + at;
}
