/* SPDX-License-Identifier: Apache-2.0
 *
 * The page builder: see page.h.
 *
 *   data   | sample 0 | pad to 16 | sample 1 | … | pad to 16 |
 *   rows   | entry 0, cells 0 | entry 1, cells 1 | …
 */
#include "pack/page.h"

#include <jansson.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

/* Checks the invariants of a page between two calls. */
static void check(const leat__page *p)
{
    LEAT_ASSERT(p->lent != NULL || p->used <= p->capacity);
    LEAT_ASSERT(p->rows.len == p->samples * (LEAT__PACK_SAMPLE_WIDTH + p->schema->row_bytes));
    LEAT_ASSERT(!p->sealed || (p->samples > 0 && p->bytes >= p->used && p->bytes % LEAT__PACK_ALIGN == 0));
    LEAT_ASSERT(p->payload >= p->max_sample);
}

int leat__page_open(leat__page **out, const leat__schema *schema, uint64_t page_bytes, leat_error *err)
{
    leat__page *p = LEAT_NEW(PACK, leat__page);
    *out = p;
    if (p == NULL) return leat__fail_nomem(err, sizeof *p, "a page");
    p->schema = schema;
    p->target = page_bytes;
    leat__buf_init(&p->rows, LEAT__MEM_PACK, SIZE_MAX / 2);
    leat__buf_init(&p->keys, LEAT__MEM_PACK, SIZE_MAX / 2);
    return 0;
}

void leat__page_close(leat__page **page)
{
    leat__page *p = *page;
    if (p == NULL) return;
    leat__free(p->data);
    leat__buf_reset(&p->rows);
    leat__buf_reset(&p->keys);
    leat__free(p);
    *page = NULL;
}

void leat__page_clear(leat__page *p)
{
    if (p->capacity > p->target) { /* grown for one large sample: free the memory */
        leat__free(p->data);
        p->data = NULL;
        p->capacity = 0;
    }
    p->used = p->bytes = p->check = p->max_sample = p->payload = 0;
    p->samples = 0;
    p->sealed = false;
    p->lent = NULL;
    leat__buf_clear(&p->rows);
    leat__buf_clear(&p->keys);
    memset(p->marks, 0, sizeof p->marks);
}

/* ---- measuring ------------------------------------------------------------------------- */

static int bad_value(leat_error *err, const leat_pack_sample *sample, const leat_field *f, const char *what)
{
    int key_len = (int)LEAT_MIN(sample->key_size, 200u);
    return leat__fail(err, LEAT_EINVAL, "sample \"%.*s\", field \"%s\": %s", key_len,
                      (const char *)sample->key, f->name, what);
}

static bool ragged_bytes(const leat_field *f, const leat_pack_value *v, uint64_t *bytes)
{
    *bytes = leat_dtype_size(f->dtype);
    for (uint32_t d = 0; d < f->ndim; d++)
        if (!leat__mul_u64(*bytes, v->shape[d], bytes)) return false;
    return true;
}

const char *leat__page_json_fault(const void *data, size_t size)
{
    json_error_t why;
    /* only checked: whole numbers may have any length */
    json_t *root = json_loadb(data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
    json_decref(root);
    if (root != NULL) return NULL;
    switch (json_error_code(&why)) {
    case json_error_null_byte_in_key: return "a JSON object has a name with \\u0000, which is not supported";
    case json_error_stack_overflow: return "its JSON value is nested too deeply";
    case json_error_numeric_overflow: return "its JSON value has a number too large for a double";
    default: return "not a JSON value";
    }
}

static int check_value(const leat_pack_sample *sample, const leat_field *f, const leat_pack_value *v,
                       leat_error *err)
{
    uint64_t bytes;
    size_t good;
    const char *fault;
    if (v->data == NULL && v->size > 0) return bad_value(err, sample, f, "size without data");
    switch (f->type) {
    case LEAT_FIELD_IMAGE:
        if (v->image.codec == 0) return bad_value(err, sample, f, "image without a codec");
        if (v->entries_size > UINT32_MAX || (v->entries_size > 0 && v->entries == NULL))
            return bad_value(err, sample, f, "invalid entry points");
        break;
    case LEAT_FIELD_TEXT:
        if (!leat__utf8_valid(v->data, v->size, &good)) return bad_value(err, sample, f, "text is not UTF-8");
        break;
    case LEAT_FIELD_JSON:
        fault = leat__page_json_fault(v->data, v->size);
        if (fault) return bad_value(err, sample, f, fault);
        break;
    case LEAT_FIELD_ARRAY:
        if (v->size != leat__field_array_bytes(f))
            return bad_value(err, sample, f, "size does not match the shape");
        break;
    case LEAT_FIELD_RAGGED:
        if (!ragged_bytes(f, v, &bytes) || v->size != bytes)
            return bad_value(err, sample, f, "size does not match the shape");
        break;
    default: break;
    }
    return 0;
}

static uint64_t round_up(uint64_t v, uint64_t align) /* only for small sizes */
{
    return (v + align - 1) & ~(align - 1);
}

static bool has_entries(const leat_field *f, const leat_pack_value *v)
{
    return f->type == LEAT_FIELD_IMAGE && v->entries_size > 0;
}

/* Computes start and length of a payload placed at `pos`; moves *pos past it. */
static void place(const leat_field *f, const leat_pack_value *v, uint64_t *pos, leat_pack_cell *cell)
{
    memset(cell, 0, sizeof *cell);
    cell->i = v->i;
    cell->f = v->f;
    cell->image = v->image;
    if (!leat__field_is_payload(f)) return;
    cell->absent = v->absent != 0;
    if (cell->absent) return;
    cell->start = round_up(*pos, LEAT__PACK_ALIGN);
    cell->length = v->size;
    if (f->type == LEAT_FIELD_RAGGED) cell->length += leat__field_shape_bytes(f);
    *pos = cell->start + cell->length;
    cell->image.flags &= (uint8_t)~LEAT_PACK_IMAGE_ENTRIES;
    if (!has_entries(f, v)) return;
    cell->image.flags |= LEAT_PACK_IMAGE_ENTRIES;
    *pos = round_up(*pos, LEAT__PACK_ALIGN) + LEAT__PACK_ENTRIES_FRONT + v->entries_size;
}

int leat__sample_measure(const leat__schema *schema, const leat_pack_sample *sample, uint64_t *size,
                         leat_error *err)
{
    *size = 0;
    if (sample->key_size > LEAT__PACK_KEY_MAX)
        return leat__fail(err, LEAT_ELIMIT, "key of %llu bytes, at most %u are allowed",
                          (unsigned long long)sample->key_size, LEAT__PACK_KEY_MAX);
    for (uint32_t i = 0; i < schema->count; i++) {
        const leat_field *f = &schema->fields[i];
        const leat_pack_value *v = &sample->values[i];
        leat_pack_cell cell;
        if (!leat__field_is_payload(f) || v->absent) continue;
        LEAT_TRY(check_value(sample, f, v, err));
        if (v->size > LEAT__PACK_SAMPLE_MAX) return bad_value(err, sample, f, "too large");
        place(f, v, size, &cell);
        if (*size > LEAT__PACK_SAMPLE_MAX) return bad_value(err, sample, f, "sample too large");
    }
    return 0;
}

bool leat__page_fits(const leat__page *p, const leat_pack_sample *sample, uint64_t size)
{
    if (p->samples == 0) return true;
    return p->samples < LEAT__PAGE_SAMPLES_MAX && p->keys.len + sample->key_size <= p->target &&
           round_up(p->used, LEAT__PACK_ALIGN) + size <= p->target;
}

/* ---- filling --------------------------------------------------------------------------- */

static uint64_t sealed_bytes(const leat__page *p)
{
    return LEAT_MAX(round_up(p->used, LEAT__PACK_ALIGN), LEAT__PACK_ALIGN);
}

static int reserve(leat__page *p, uint64_t bytes, leat_error *err)
{
    if (bytes <= p->capacity) return 0;
    uint64_t want = LEAT_MAX(round_up(bytes, LEAT__PACK_BLOCK), p->target);
    size_t size;
    if (!leat__u64_to_size(want, &size)) return leat__fail_nomem(err, want, "a page");
    uint8_t *data = leat__alloc_aligned(LEAT__MEM_PACK, size, LEAT__PACK_BLOCK);
    if (data == NULL) return leat__fail_nomem(err, want, "a page");
    if (p->used > 0) memcpy(data, p->data, p->used);
    leat__free(p->data);
    p->data = data;
    p->capacity = want;
    return 0;
}

/* Copies the entry points after the last copied image. */
static void copy_entries(leat__page *p, uint64_t sample_at, const leat_pack_value *v)
{
    uint64_t at = sample_at + round_up(p->used - sample_at, LEAT__PACK_ALIGN);
    LEAT_ASSERT(at >= p->used && at + LEAT__PACK_ENTRIES_FRONT + v->entries_size <= p->capacity);
    memset(p->data + p->used, 0, at - p->used);
    leat__store_u32(p->data + at, (uint32_t)v->entries_size);
    memcpy(p->data + at + LEAT__PACK_ENTRIES_FRONT, v->entries, v->entries_size);
    p->used = at + LEAT__PACK_ENTRIES_FRONT + v->entries_size;
}

static void copy_payload(leat__page *p, uint64_t sample_at, const leat_field *f, const leat_pack_value *v,
                         const leat_pack_cell *cell)
{
    uint64_t at = sample_at + cell->start;
    LEAT_ASSERT(at >= p->used && at + v->size <= p->capacity);
    memset(p->data + p->used, 0, at - p->used);
    if (f->type == LEAT_FIELD_RAGGED) {
        uint32_t head = leat__field_shape_bytes(f);
        memset(p->data + at, 0, head);
        for (uint32_t d = 0; d < f->ndim; d++) leat__store_u64(p->data + at + 8 * d, v->shape[d]);
        at += head;
    }
    if (v->size > 0) memcpy(p->data + at, v->data, v->size);
    p->used = at + v->size;
    if (has_entries(f, v)) copy_entries(p, sample_at, v);
}

/* Allocates everything first, so that a failure leaves the page unchanged. */
static int reserve_row(leat__page *p, const leat_pack_sample *sample, leat_error *err)
{
    size_t row_bytes = LEAT__PACK_SAMPLE_WIDTH + p->schema->row_bytes;
    if (leat__buf_reserve(&p->rows, row_bytes) == 0 && leat__buf_reserve(&p->keys, sample->key_size) == 0)
        return 0;
    p->rows.status = p->keys.status = 0;
    return leat__fail_nomem(err, row_bytes + sample->key_size, "the index of a page");
}

/* Adds key, entry and cells of the sample at `at`, and copies its payloads unless lent. */
static void add_row(leat__page *p, const leat_pack_sample *sample, uint64_t at, uint64_t size, bool copy)
{
    if (sample->key_size > 0) (void)leat__buf_append(&p->keys, sample->key, sample->key_size);
    leat__sample_entry entry = {0, (uint32_t)at, size, 0, p->keys.len};
    uint8_t bytes[LEAT__PACK_SAMPLE_WIDTH];
    leat__sample_entry_store(bytes, &entry);
    (void)leat__buf_append(&p->rows, bytes, sizeof bytes);
    uint64_t pos = 0;
    for (uint32_t i = 0; i < p->schema->count; i++) {
        const leat_field *f = &p->schema->fields[i];
        leat_pack_cell cell;
        place(f, &sample->values[i], &pos, &cell);
        if (copy && leat__field_is_payload(f) && !cell.absent)
            copy_payload(p, at, f, &sample->values[i], &cell);
        leat__cell_store(f, bytes, &cell);
        (void)leat__buf_append(&p->rows, bytes, leat__field_width(f));
    }
    p->samples++;
    p->payload += size;
    p->max_sample = LEAT_MAX(p->max_sample, size);
    memcpy(p->marks, sample->marks, sizeof p->marks);
}

int leat__page_add(leat__page *p, const leat_pack_sample *sample, leat_error *err)
{
    uint64_t size;
    if (p->sealed) return leat__fail(err, LEAT_ESTATE, "page is sealed");
    LEAT_TRY(leat__sample_measure(p->schema, sample, &size, err));
    uint64_t at = round_up(p->used, LEAT__PACK_ALIGN);
    LEAT_TRY(reserve(p, LEAT_MAX(at + size, 1u), err)); /* a page is never empty */
    LEAT_TRY(reserve_row(p, sample, err));
    memset(p->data + p->used, 0, at - p->used);
    p->used = at;
    add_row(p, sample, at, size, true);
    check(p);
    return 0;
}

/* ---- lending ---------------------------------------------------------------------------- */

typedef int (*piece_fn)(void *cookie, const void *data, size_t len);

static int zeros(uint64_t count, piece_fn piece, void *cookie)
{
    static const uint8_t none[LEAT__PACK_BLOCK];
    while (count > 0) {
        size_t n = (size_t)LEAT_MIN(count, sizeof none);
        LEAT_TRY(piece(cookie, none, n));
        count -= n;
    }
    return 0;
}

static int lent_sample(const leat__page *p, piece_fn piece, void *cookie)
{
    LEAT_ASSERT(p->lent != NULL);
    uint64_t pos = 0, done = 0;
    for (uint32_t i = 0; i < p->schema->count; i++) {
        const leat_field *f = &p->schema->fields[i];
        const leat_pack_value *v = &p->lent->values[i];
        leat_pack_cell cell;
        place(f, v, &pos, &cell);
        if (!leat__field_is_payload(f) || cell.absent) continue;
        LEAT_TRY(zeros(cell.start - done, piece, cookie));
        if (f->type == LEAT_FIELD_RAGGED) {
            uint8_t shape[LEAT_NDIM_MAX * 8 + LEAT__PACK_ALIGN] = {0};
            for (uint32_t d = 0; d < f->ndim; d++) leat__store_u64(shape + 8 * d, v->shape[d]);
            LEAT_TRY(piece(cookie, shape, leat__field_shape_bytes(f)));
        }
        if (v->size > 0) LEAT_TRY(piece(cookie, v->data, v->size));
        done = cell.start + cell.length;
        if (!has_entries(f, v)) continue;
        uint8_t front[LEAT__PACK_ENTRIES_FRONT];
        leat__store_u32(front, (uint32_t)v->entries_size);
        LEAT_TRY(zeros(round_up(done, LEAT__PACK_ALIGN) - done, piece, cookie));
        LEAT_TRY(piece(cookie, front, sizeof front));
        LEAT_TRY(piece(cookie, v->entries, v->entries_size));
        done = pos;
    }
    return 0;
}

int leat__page_lent_bytes(const leat__page *p, piece_fn piece, void *cookie)
{
    LEAT_ASSERT(p->sealed && p->bytes >= p->used);
    LEAT_TRY(lent_sample(p, piece, cookie));
    return zeros(p->bytes - p->used, piece, cookie);
}

static int hash_piece(void *cookie, const void *data, size_t len)
{
    leat__hasher_update(cookie, data, len);
    return 0;
}

int leat__page_lend(leat__page *p, const leat_pack_sample *sample, leat_error *err)
{
    uint64_t size;
    LEAT_TRY(leat__sample_measure(p->schema, sample, &size, err));
    if (p->samples > 0) return leat__fail(err, LEAT_ESTATE, "page is not empty");
    LEAT_TRY(reserve_row(p, sample, err));
    leat__hasher *h = leat__hasher_open(0);
    if (h == NULL) return leat__fail_nomem(err, 0, "a checksum");
    add_row(p, sample, 0, size, false);
    p->lent = sample;
    p->used = size;
    p->bytes = sealed_bytes(p);
    (void)lent_sample(p, hash_piece, h);
    leat__sample_entry e;
    leat__sample_entry_load((uint8_t *)p->rows.data, &e);
    e.check = leat__hasher_value64(h);
    leat__sample_entry_store((uint8_t *)p->rows.data, &e);
    (void)zeros(p->bytes - p->used, hash_piece, h);
    p->check = leat__hasher_value64(h);
    leat__hasher_close(&h);
    p->sealed = true;
    check(p);
    return 0;
}

void leat__page_seal(leat__page *p)
{
    if (p->sealed || p->samples == 0) return;
    size_t row_bytes = LEAT__PACK_SAMPLE_WIDTH + p->schema->row_bytes;
    for (uint32_t i = 0; i < p->samples; i++) {
        uint8_t *row = (uint8_t *)p->rows.data + i * row_bytes;
        leat__sample_entry e;
        leat__sample_entry_load(row, &e);
        e.check = leat__hash64(p->data + e.offset, e.size, 0);
        leat__sample_entry_store(row, &e);
    }
    p->bytes = sealed_bytes(p); /* reserve() rounds to blocks, so the padding is inside */
    memset(p->data + p->used, 0, p->bytes - p->used);
    p->check = leat__hash64(p->data, p->bytes, 0);
    p->sealed = true;
    check(p);
}
