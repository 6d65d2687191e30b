/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of a pack as an Arrow C stream, so that pandas, Polars, DuckDB and pyarrow read its columns.
 * The structures are those of the Arrow C data and stream interfaces; Arrow's specification asks each
 * implementation to declare them itself.
 *
 * One batch holds up to 65,536 rows: sample_id, key, and for each field what the index contains (numbers
 * themselves; sizes of everything else; width, height … of images). No page is read.
 *
 * Consumers call from any thread and without the GIL: nothing here touches Python except the capsule.
 */
#include "py_leat.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"

#define ROWS_PER_BATCH 65536

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* ---- columns -------------------------------------------------------------------------------- */

/* The part of its field that a column shows. */
typedef enum part {
    PART_ID,
    PART_KEY,
    PART_VALUE, /* for INT and FLOAT */
    PART_BYTES, /* size of the payload; null when absent */
    PART_WIDTH,
    PART_HEIGHT,
    PART_CHANNELS,
    PART_CODEC,
    PART_COST
} part;

typedef struct column {
    part part;
    uint32_t field;
    bool nullable;
    const char *format;
    char *name; /* owned */
} column;

typedef struct stream {
    py_pack_handle *pack;
    uint64_t at;
    uint32_t count;
    column *columns;
    leat_error error;
} stream;

static bool add(stream *s, part p, uint32_t field, const char *format, bool nullable, const char *name,
                const char *suffix)
{
    size_t size = strlen(name) + strlen(suffix) + 1;
    column *c = &s->columns[s->count];
    *c = (column){p, field, nullable, format, leat__alloc(LEAT__MEM_PACK, size)};
    if (c->name == NULL) return false;
    snprintf(c->name, size, "%s%s", name, suffix);
    s->count++;
    return true;
}

static bool add_field(stream *s, uint32_t i)
{
    const leat_field *f = leat_pack_field(s->pack->pack, i);

    if (f->type == LEAT_FIELD_INT) return add(s, PART_VALUE, i, "l", false, f->name, "");
    if (f->type == LEAT_FIELD_FLOAT) return add(s, PART_VALUE, i, "g", false, f->name, "");
    bool ok = add(s, PART_BYTES, i, "L", true, f->name, ".bytes");
    if (f->type != LEAT_FIELD_IMAGE) return ok;
    return ok && add(s, PART_WIDTH, i, "I", true, f->name, ".width") &&
           add(s, PART_HEIGHT, i, "I", true, f->name, ".height") &&
           add(s, PART_CHANNELS, i, "C", true, f->name, ".channels") &&
           add(s, PART_CODEC, i, "u", true, f->name, ".codec") &&
           add(s, PART_COST, i, "I", true, f->name, ".cost_us");
}

static void stream_free(stream *s)
{
    if (s == NULL) return;
    for (uint32_t i = 0; i < s->count; i++) leat__free(s->columns[i].name);
    leat__free(s->columns);
    py_pack_drop(s->pack);
    leat__free(s);
}

static stream *stream_new(py_pack_handle *h)
{
    stream *s = LEAT_NEW(PACK, stream);
    uint32_t fields = leat_pack_field_count(h->pack);
    if (s == NULL) return NULL;
    py_pack_ref(h);
    s->pack = h;
    s->columns = LEAT_NEW_ARRAY(PACK, column, 2 + (uint64_t)fields * 6);
    bool ok = s->columns != NULL && add(s, PART_ID, 0, "L", false, "sample_id", "") &&
              add(s, PART_KEY, 0, "u", false, "key", "");
    for (uint32_t i = 0; ok && i < fields; i++) ok = add_field(s, i);
    if (!ok) {
        stream_free(s);
        return NULL;
    }
    return s;
}

/* ---- schema --------------------------------------------------------------------------------- */

static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        struct ArrowSchema *child = schema->children[i];
        if (child == NULL) continue;
        if (child->release != NULL) child->release(child);
        leat__free(child);
    }
    leat__free(schema->children);
    leat__free(schema->private_data); /* the name */
    schema->release = NULL;
}

static int schema_fill(struct ArrowSchema *out, const char *format, const char *name, bool nullable,
                       uint32_t children)
{
    *out = (struct ArrowSchema){.format = format, .flags = nullable ? 2 : 0, .release = schema_release};
    char *copy = leat__strdup(LEAT__MEM_PACK, name);
    out->private_data = copy;
    out->name = copy;
    out->children = LEAT_NEW_ARRAY(PACK, struct ArrowSchema *, children + 1);
    if (copy == NULL || out->children == NULL) {
        schema_release(out);
        return ENOMEM;
    }
    return 0;
}

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    const stream *s = self->private_data;

    int rc = schema_fill(out, "+s", "", false, s->count);
    if (rc != 0) return rc;
    for (uint32_t i = 0; i < s->count; i++) {
        const column *c = &s->columns[i];
        struct ArrowSchema *child = LEAT_NEW(PACK, struct ArrowSchema);
        if (child == NULL || schema_fill(child, c->format, c->name, c->nullable, 0) != 0) {
            leat__free(child);
            schema_release(out);
            return ENOMEM;
        }
        out->children[i] = child;
        out->n_children = i + 1;
    }
    return 0;
}

/* ---- arrays --------------------------------------------------------------------------------- */

/* Buffers of an array: validity, then values; or validity, offsets, bytes. */
typedef struct buffers {
    const void *list[3];
    void *owned[3];
} buffers;

static void array_release(struct ArrowArray *array)
{
    buffers *b = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        if (child == NULL) continue;
        if (child->release != NULL) child->release(child);
        leat__free(child);
    }
    leat__free(array->children);
    for (int i = 0; b != NULL && i < 3; i++) leat__free(b->owned[i]);
    leat__free(b);
    array->release = NULL;
}

static int array_start(struct ArrowArray *out, uint64_t rows, int64_t n_buffers, uint32_t children)
{
    buffers *b = LEAT_NEW(PACK, buffers);
    *out = (struct ArrowArray){.length = (int64_t)rows, .n_buffers = n_buffers, .release = array_release};
    out->private_data = b;
    out->children = LEAT_NEW_ARRAY(PACK, struct ArrowArray *, children + 1);
    if (b == NULL || out->children == NULL) {
        array_release(out);
        return LEAT_ENOMEM;
    }
    out->buffers = b->list;
    return 0;
}

static void *array_buffer(struct ArrowArray *a, int i, size_t bytes)
{
    buffers *b = a->private_data;
    b->owned[i] = leat__zalloc(LEAT__MEM_PACK, bytes + 8);
    b->list[i] = b->owned[i];
    return b->owned[i];
}

/* Marks the rows that have a value and counts those without. */
static int fill_validity(struct ArrowArray *a, const leat_pack_cell *cells, uint64_t rows)
{
    uint8_t *bits = array_buffer(a, 0, rows / 8 + 1);
    if (bits == NULL) return LEAT_ENOMEM;
    for (uint64_t i = 0; i < rows; i++) {
        if (cells[i].absent) a->null_count++;
        else bits[i / 8] |= (uint8_t)(1u << i % 8);
    }
    return 0;
}

/* Replaces invalid UTF-8 by question marks: keys are any bytes, Arrow's strings are UTF-8. */
static void make_utf8(char *text, size_t size)
{
    size_t good;
    while (!leat__utf8_valid(text, size, &good)) {
        text[good] = '?';
        text += good;
        size -= good;
    }
}

static int fill_keys(struct ArrowArray *a, stream *s, uint64_t rows)
{
    leat_pack_row row;
    uint64_t total = 0;

    for (uint64_t i = 0; i < rows; i++) {
        LEAT_TRY(leat_pack_rows(s->pack->pack, s->at + i, 1, &row, &s->error));
        if (!leat__add_u64(total, row.key_size, &total) || total > INT32_MAX)
            return leat__fail(&s->error, LEAT_ELIMIT, "the keys of one batch exceed 2 GiB");
    }
    int32_t *offsets = array_buffer(a, 1, (rows + 1) * sizeof *offsets);
    char *text = array_buffer(a, 2, total + 1);
    if (offsets == NULL || text == NULL) return LEAT_ENOMEM;
    size_t at = 0, size;
    for (uint64_t i = 0; i < rows; i++) {
        offsets[i] = (int32_t)at;
        LEAT_TRY(leat_pack_key(s->pack->pack, s->at + i, text + at, total + 1 - at, &size, &s->error));
        make_utf8(text + at, size);
        at += size;
    }
    offsets[rows] = (int32_t)at;
    return 0;
}

static int fill_codecs(struct ArrowArray *a, const leat_pack_cell *cells, uint64_t rows)
{
    int32_t *offsets = array_buffer(a, 1, (rows + 1) * sizeof *offsets);
    size_t longest = 0;
    for (int id = 1; id < LEAT__CODEC_COUNT; id++)
        longest = LEAT_MAX(longest, strlen(leat__codec_name((leat__codec_id)id)));
    char *text = array_buffer(a, 2, rows * longest + 1);
    int32_t at = 0;

    if (offsets == NULL || text == NULL) return LEAT_ENOMEM;
    for (uint64_t i = 0; i < rows; i++) {
        uint8_t codec = cells[i].image.codec;
        const bool known = codec != LEAT__CODEC_NONE && codec < LEAT__CODEC_COUNT;
        const char *name = known ? leat__codec_name((leat__codec_id)codec) : "";
        offsets[i] = at;
        memcpy(text + at, name, strlen(name));
        at += (int32_t)strlen(name);
    }
    offsets[rows] = at;
    return 0;
}

static int fill_numbers(struct ArrowArray *a, const column *c, const leat_pack_cell *cells, uint64_t rows,
                        uint64_t first)
{
    uint64_t *wide = array_buffer(a, 1, rows * 8);
    if (wide == NULL) return LEAT_ENOMEM;
    uint32_t *narrow = (uint32_t *)wide;
    uint8_t *bytes = (uint8_t *)wide;
    for (uint64_t i = 0; i < rows; i++) {
        switch (c->part) {
        case PART_ID: wide[i] = first + i; break;
        case PART_VALUE:
            memcpy(&wide[i], c->format[0] == 'g' ? (const void *)&cells[i].f : (const void *)&cells[i].i, 8);
            break;
        case PART_BYTES: wide[i] = cells[i].absent ? 0 : cells[i].length; break;
        case PART_WIDTH: narrow[i] = cells[i].image.width; break;
        case PART_HEIGHT: narrow[i] = cells[i].image.height; break;
        case PART_COST: narrow[i] = cells[i].image.cost; break;
        default: bytes[i] = cells[i].image.channels; break;
        }
    }
    return 0;
}

static int fill_column(struct ArrowArray *a, stream *s, const column *c, uint64_t rows, leat_pack_cell *cells)
{
    bool text = c->part == PART_KEY || c->part == PART_CODEC;

    LEAT_TRY(array_start(a, rows, text ? 3 : 2, 0));
    if (c->part == PART_KEY) return fill_keys(a, s, rows);
    if (c->part == PART_ID) return fill_numbers(a, c, cells, rows, s->at);
    LEAT_TRY(leat_pack_cells(s->pack->pack, c->field, s->at, rows, cells, &s->error));
    if (c->nullable) LEAT_TRY(fill_validity(a, cells, rows));
    return c->part == PART_CODEC ? fill_codecs(a, cells, rows) : fill_numbers(a, c, cells, rows, s->at);
}

static int errno_of(stream *s, int rc)
{
    if (s->error.code == 0) leat__fail_nomem(&s->error, 0, "a batch of the index");
    return rc == LEAT_ENOMEM ? ENOMEM : EIO;
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    stream *s = self->private_data;
    uint64_t left = leat_pack_count(s->pack->pack) - s->at;
    uint64_t rows = left < ROWS_PER_BATCH ? left : ROWS_PER_BATCH;
    int rc = 0;

    memset(out, 0, sizeof *out);
    leat__error_reset(&s->error);
    if (rows == 0) return 0; /* a released array marks the end */
    leat_pack_cell *cells = LEAT_NEW_ARRAY(PACK, leat_pack_cell, rows);
    if (cells == NULL) return errno_of(s, LEAT_ENOMEM);
    LEAT_GO(rc, out, array_start(out, rows, 1, s->count));
    for (uint32_t i = 0; i < s->count; i++) {
        out->children[i] = LEAT_NEW(PACK, struct ArrowArray);
        if (out->children[i] == NULL) LEAT_GO(rc, out, LEAT_ENOMEM);
        out->n_children = i + 1;
        LEAT_GO(rc, out, fill_column(out->children[i], s, &s->columns[i], rows, cells));
    }
    s->at += rows;
out:
    leat__free(cells);
    if (rc == 0) return 0;
    if (out->release != NULL) out->release(out);
    return errno_of(s, rc);
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    const stream *s = self->private_data;
    return s->error.code != 0 ? s->error.message : NULL;
}

static void stream_release(struct ArrowArrayStream *self)
{
    stream_free(self->private_data);
    self->release = NULL;
}

static void capsule_free(PyObject *capsule)
{
    struct ArrowArrayStream *a = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (a->release != NULL) a->release(a); /* no consumer took it */
    leat__free(a);
}

PyObject *py_arrow_stream(py_pack_handle *h)
{
    struct ArrowArrayStream *a = LEAT_NEW(PACK, struct ArrowArrayStream);
    stream *s = stream_new(h);
    PyObject *capsule = NULL;

    if (a != NULL && s != NULL) {
        *a = (struct ArrowArrayStream){get_schema, get_next, get_last_error, stream_release, s};
        capsule = PyCapsule_New(a, "arrow_array_stream", capsule_free);
        if (capsule != NULL) return capsule;
    } else {
        PyErr_NoMemory();
    }
    stream_free(s);
    leat__free(a);
    return NULL;
}
