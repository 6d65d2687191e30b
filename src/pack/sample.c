/* SPDX-License-Identifier: Apache-2.0
 *
 * leat_sample: one sample at a time, with its own growing buffer. One per thread.
 */
#include <string.h>

#include <leat/pack.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/reader_impl.h"

struct leat_sample {
    leat_pack *pack;
    uint8_t *data;
    size_t capacity;
    char *key;
    size_t key_size, key_capacity;
    uint64_t number, size;
    bool loaded;
    leat_pack_cell *cells; /* one per field */
    uint32_t *fields;      /* 0, 1, 2 …: all fields, for leat_pack_look */
};

int leat_sample_open(leat_sample **out, leat_pack *pack, leat_error *err)
{
    LEAT_REQUIRE(out != NULL, err);
    *out = NULL;
    LEAT_REQUIRE(pack != NULL, err);
    leat_sample *s = LEAT_NEW(PACK, leat_sample);
    *out = s;
    if (s == NULL) return leat__fail_nomem(err, sizeof *s, "a sample");
    s->pack = pack;
    uint32_t count = pack->schema->count;
    s->cells = LEAT_NEW_ARRAY(PACK, leat_pack_cell, count);
    s->fields = LEAT_NEW_ARRAY(PACK, uint32_t, count);
    if (s->cells == NULL || s->fields == NULL) {
        leat_sample_close(out);
        return leat__fail_nomem(err, count * sizeof *s->cells, "a sample");
    }
    for (uint32_t i = 0; i < count; i++) s->fields[i] = i;
    return 0;
}

void leat_sample_close(leat_sample **sample)
{
    if (sample == NULL) return;
    leat_sample *s = *sample;
    if (s == NULL) return;
    leat__free(s->data);
    leat__free(s->key);
    leat__free(s->cells);
    leat__free(s->fields);
    leat__free(s);
    *sample = NULL;
}

/* Grows `*block` to at least `want` bytes; the old content is lost. */
static int grow(void **block, size_t *capacity, uint64_t want, leat_error *err)
{
    if (want <= *capacity) return 0;
    size_t size;
    if (!leat__u64_to_size(want, &size) || want > SIZE_MAX / 2)
        return leat__fail_nomem(err, want, "a sample");
    size += size / 4;
    void *fresh = leat__alloc_aligned(LEAT__MEM_PACK, size, 64);
    if (fresh == NULL) return leat__fail_nomem(err, size, "a sample");
    leat__free(*block);
    *block = fresh;
    *capacity = size;
    return 0;
}

int leat_sample_read(leat_sample *s, uint64_t sample, leat_error *err)
{
    LEAT_REQUIRE(s != NULL, err);
    leat_pack_row row;
    s->loaded = false;
    LEAT_TRY(leat_pack_look(s->pack, sample, &row, s->fields, s->pack->schema->count, s->cells, err));
    LEAT_TRY(grow((void **)&s->data, &s->capacity, row.size + LEAT_PACK_PADDING, err));
    LEAT_TRY(grow((void **)&s->key, &s->key_capacity, row.key_size + 1, err));
    LEAT_TRY(leat_pack_key(s->pack, sample, s->key, s->key_capacity, &s->key_size, err));
    LEAT_TRY(leat__pack_read_row(s->pack, sample, &row, s->data, s->capacity, err));
    s->number = sample;
    s->size = row.size;
    s->loaded = true;
    return 0;
}

const char *leat_sample_key(const leat_sample *s, size_t *size)
{
    if (s == NULL) return NULL;
    if (size != NULL) *size = s->loaded ? s->key_size : 0;
    return s->loaded ? s->key : "";
}

/* Reads a ragged value. The shape comes before the elements; both together must fill the payload exactly. */
static int ragged(const leat_sample *s, const leat_field *f, const leat_pack_cell *c, leat_view *v,
                  leat_error *err)
{
    const uint8_t *p = s->data + c->start;
    uint64_t bytes = leat_dtype_size(f->dtype), head = leat__field_shape_bytes(f);
    bool fits = true;
    v->ndim = f->ndim;
    for (uint32_t d = 0; d < f->ndim; d++) {
        v->shape[d] = leat__load_u64(p + 8 * d);
        fits = fits && leat__mul_u64(bytes, v->shape[d], &bytes);
    }
    if (!fits || bytes != c->length - head) {
        leat__fail(err, LEAT_EDATA,
                   "%s: sample %llu \"%s\", field \"%s\": shape does not match"
                   " the size",
                   leat_pack_path(s->pack), (unsigned long long)s->number, s->key, f->name);
        leat__error_at(err, s->key, (int64_t)s->number, (int64_t)c->start);
        return LEAT_EDATA;
    }
    v->data = p + head;
    v->size = (size_t)bytes;
    return 0;
}

int leat_sample_field(const leat_sample *s, uint32_t field, leat_view *view, leat_error *err)
{
    LEAT_REQUIRE(s != NULL && view != NULL, err);
    memset(view, 0, sizeof *view);
    if (!s->loaded) return leat__fail(err, LEAT_ESTATE, "sample: nothing was read");
    const leat_field *f = leat_pack_field(s->pack, field);
    if (f == NULL) return leat__fail(err, LEAT_EINVAL, "sample: no field %u", field);
    const leat_pack_cell *c = &s->cells[field];
    if (f->type == LEAT_FIELD_INT) {
        view->data = &c->i;
        view->size = sizeof c->i;
        return 0;
    }
    if (f->type == LEAT_FIELD_FLOAT) {
        view->data = &c->f;
        view->size = sizeof c->f;
        return 0;
    }
    if (c->absent) return 0;
    if (f->type == LEAT_FIELD_RAGGED) return ragged(s, f, c, view, err);
    view->data = s->data + c->start;
    view->size = (size_t)c->length;
    view->image = c->image;
    view->entries = leat__cell_entries(c, s->data, s->size, &view->entries_size);
    if (f->type == LEAT_FIELD_ARRAY) {
        view->ndim = f->ndim;
        memcpy(view->shape, f->shape, sizeof view->shape);
    }
    return 0;
}
