/* SPDX-License-Identifier: Apache-2.0
 *
 * TFRecord files of tf.train.Example, plain or compressed. A record is
 *
 *   length (8 bytes), its checksum (4), data, its checksum (4)
 *
 * The first LEARN records of the first file determine the fields, in the order of their names:
 *
 *   one whole number       int       several, or none      ragged i64
 *   one float              float     several, or none      ragged f32
 *   bytes, all images      image     bytes, all UTF-8      text     other bytes    bytes
 *   several bytes values   json, a list of texts
 *
 * The image becomes the field "image" and the class the field "label", whatever their names in
 * the file (list below); other fields keep their names. Keys are the numbers of the records.
 * Records are read in file order; a damaged record is one skipped sample, a damaged length ends
 * its file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "codec/codec.h"
#include "ingest/source.h"
#include "ingest/stream.h"
#include "ingest/tf_example.h"

#define LEARN 64
#define COLUMNS_MAX 1024

typedef struct column {
    char *name;
    leat__tf_kind kind;
    bool several, image, text; /* true if all values seen so far fit */
    uint32_t rows;
    int field;
} column;

typedef struct tf_source {
    leat__source base;
    const char *const *paths; /* owned by the caller */
    uint32_t path_count, path_at;
    leat__stream *stream;
    leat__buf record;
    uint64_t number; /* number of the current record */
    uint64_t offset; /* start of the record in the decompressed file */
    bool named;      /* the last error already names file and record */
    column *columns;
    uint32_t column_count, learned;
    /* Used while a record is filled. */
    leat__records *run;
    leat__record *to;
} tf_source;

static int bad(tf_source *s, const char *what, leat_error *err)
{
    s->named = true;
    leat__fail(err, LEAT_EDATA, "%s: record %llu: %s", leat__stream_name(s->stream),
               (unsigned long long)s->number, what);
    leat__error_at(err, NULL, -1, (int64_t)s->offset);
    return LEAT_EDATA;
}

static int read_exactly(tf_source *s, void *to, size_t len, leat_error *err)
{
    size_t got;
    LEAT_TRY(leat__stream_read(s->stream, to, len, &got, err));
    return got == len ? 0 : bad(s, "the file ends early (truncated)", err);
}

/* Reads the next record into s->record. *whole: its checksum matches. */
static int read_record(tf_source *s, bool *end, bool *whole, leat_error *err)
{
    uint8_t head[12], tail[4];
    uint64_t len;
    uint32_t sum;
    size_t got = 0;
    *end = false;
    while (got == 0) {
        if (!s->stream) {
            *end = s->path_at == s->path_count;
            if (*end) return 0;
            LEAT_TRY(leat__stream_open(&s->stream, s->paths[s->path_at++], err));
        }
        s->offset = leat__stream_offset(s->stream);
        LEAT_TRY(leat__stream_read(s->stream, head, 1, &got, err));
        if (got == 0) leat__stream_close(&s->stream);
    }
    LEAT_TRY(read_exactly(s, head + 1, 11, err));
    memcpy(&len, head, 8);
    memcpy(&sum, head + 8, 4);
    if (leat__tf_checksum(head, 8) != sum) return bad(s, "damaged length, or not a TFRecord file", err);
    if (len > s->base.max_sample) return bad(s, "more bytes than the limit allows", err);
    leat__buf_clear(&s->record);
    if (leat__buf_zeros(&s->record, (size_t)len) != 0) return leat__fail_nomem(err, len, "a record");
    LEAT_TRY(read_exactly(s, s->record.data, (size_t)len, err));
    LEAT_TRY(read_exactly(s, tail, 4, err));
    memcpy(&sum, tail, 4);
    *whole = leat__tf_checksum(s->record.data, (size_t)len) == sum;
    return 0;
}

/* Parses the record. Adds the file and the record's number to errors of the message itself; errors of
 * `each` already have them. */
static int parse(tf_source *s, leat__tf_fn each, leat_error *err)
{
    leat_error why = {0};
    s->named = false;
    int rc = leat__tf_example(s->record.data, s->record.len, each, s, &why);
    if (rc == LEAT_EDATA && !s->named) return bad(s, why.message, err);
    if (rc != 0 && err) *err = why;
    return rc;
}

/* ---- fields ------------------------------------------------------------------------------ */

static column *find(tf_source *s, const char *name, size_t len)
{
    for (uint32_t i = 0; i < s->column_count; i++)
        if (strlen(s->columns[i].name) == len && memcmp(s->columns[i].name, name, len) == 0)
            return &s->columns[i];
    return NULL;
}

static int learn_feature(void *cookie, const leat__tf_feature *f, leat_error *err)
{
    tf_source *s = cookie;
    column *c = find(s, f->name, f->name_len);
    if (!c) {
        if (s->column_count == COLUMNS_MAX) return bad(s, "more than 1024 features", err);
        c = &s->columns[s->column_count];
        *c = (column){.image = true, .text = true, .field = -1};
        c->name = leat__strndup(LEAT__MEM_INGEST, f->name, f->name_len);
        if (!c->name) return leat__fail_nomem(err, f->name_len, "a name");
        s->column_count++;
    }
    if (f->kind == LEAT__TF_NONE) return 0;
    if (c->kind != LEAT__TF_NONE && c->kind != f->kind) return bad(s, "a feature changes its type", err);
    c->kind = f->kind;
    c->rows++;
    c->several |= f->count != 1;
    for (size_t i = 0; f->kind == LEAT__TF_BYTES && i < f->count; i++) {
        size_t len;
        const uint8_t *data = leat__tf_bytes(f, i, &len);
        c->image &= leat__codec_sniff(data, len) != LEAT__CODEC_NONE;
        c->text &= leat__utf8_valid((const char *)data, len, NULL) && !memchr(data, 0, len);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const column *)a)->name, ((const column *)b)->name);
}

static leat_field_type type_of(const tf_source *s, const column *c)
{
    bool single = !c->several && c->rows == s->learned;
    switch (c->kind) {
    case LEAT__TF_INTS: return single ? LEAT_FIELD_INT : LEAT_FIELD_RAGGED;
    case LEAT__TF_FLOATS: return single ? LEAT_FIELD_FLOAT : LEAT_FIELD_RAGGED;
    case LEAT__TF_BYTES:
        if (c->several) return LEAT_FIELD_JSON;
        return c->image ? LEAT_FIELD_IMAGE : c->text ? LEAT_FIELD_TEXT : LEAT_FIELD_BYTES;
    default: return LEAT_FIELD_BYTES;
    }
}

/* Returns the column of this type with one of the names; with `any`, else the first of that type. */
static const column *choose(tf_source *s, const char *const *names, size_t n, leat_field_type type, bool any)
{
    for (size_t i = 0; i < n; i++) {
        const column *c = find(s, names[i], strlen(names[i]));
        if (c && type_of(s, c) == type) return c;
    }
    for (uint32_t i = 0; any && i < s->column_count; i++)
        if (type_of(s, &s->columns[i]) == type) return &s->columns[i];
    return NULL;
}

static int make_fields(tf_source *s, leat_error *err)
{
    static const char *const images[] = {"image", "image/encoded", "image_raw", "jpg", "jpeg", "png", "img"};
    static const char *const tf_labels[] = {"image/class/label"};
    qsort(s->columns, s->column_count, sizeof *s->columns, by_name);
    const column *image = choose(s, images, LEAT_COUNT(images), LEAT_FIELD_IMAGE, true);
    const column *label =
        choose(s, leat__source_label_names, LEAT__SOURCE_LABEL_NAMES, LEAT_FIELD_INT, false);
    if (!label) label = choose(s, tf_labels, LEAT_COUNT(tf_labels), LEAT_FIELD_INT, false);
    for (uint32_t i = 0; i < s->column_count; i++) {
        column *c = &s->columns[i];
        leat_field_type type = type_of(s, c);
        const char *name = c == image ? "image" : c == label ? "label" : c->name;
        int n = leat__source_field(&s->base, name, type, err);
        if (n < 0) return n;
        c->field = n;
        if (type == LEAT_FIELD_RAGGED) {
            s->base.fields[n].dtype = c->kind == LEAT__TF_INTS ? LEAT_DTYPE_I64 : LEAT_DTYPE_F32;
            s->base.fields[n].ndim = 1;
        }
        if (c == image) s->base.image_field = n;
        if (c == label) s->base.label_field = n;
    }
    if (s->base.field_count == 0) return leat__fail(err, LEAT_EDATA, "%s: no features", s->paths[0]);
    return 0;
}

/* Fails when the feature contradicts its column; changes nothing. */
static int check_feature(void *cookie, const leat__tf_feature *f, leat_error *err)
{
    tf_source *s = cookie;
    const column *c = find(s, f->name, f->name_len);
    if (c && f->kind != LEAT__TF_NONE && c->kind != LEAT__TF_NONE && c->kind != f->kind)
        return bad(s, "a feature changes its type", err);
    return 0;
}

/* Learns the fields from one record. A damaged record is ignored: it is reported, or skipped, when it
 * is packed. */
static int learn_record(tf_source *s, bool *end, leat_error *why)
{
    bool whole = false;
    int rc = read_record(s, end, &whole, why);
    if (rc == LEAT_EDATA) leat__stream_close(&s->stream); /* the rest cannot be read */
    if (rc != 0 || *end) return rc;
    rc = whole ? parse(s, check_feature, why) : bad(s, "damaged (its checksum differs)", why);
    if (rc == 0) rc = parse(s, learn_feature, why);
    if (rc == 0) s->learned++;
    s->number++;
    return rc;
}

static int learn(tf_source *s, leat_error *err)
{
    bool end = false;
    leat_error first = {0};
    while (s->learned < LEARN && !end && (s->path_at <= 1 || s->learned == 0)) {
        leat_error why = {0};
        int rc = learn_record(s, &end, &why);
        if (rc != 0 && first.code == 0) first = why;
        if (rc == 0 || rc == LEAT_EDATA) continue;
        if (err) *err = why;
        return rc;
    }
    if (s->learned == 0 && first.code != 0) {
        if (err) *err = first;
        return first.code;
    }
    if (s->learned == 0) return leat__fail(err, LEAT_EDATA, "%s: no records", s->paths[0]);
    LEAT_TRY(make_fields(s, err));
    leat__stream_close(&s->stream);
    s->path_at = 0;
    s->number = 0;
    return 0;
}

/* ---- records ----------------------------------------------------------------------------- */

static int no_memory(leat_error *err)
{
    return leat__fail_nomem(err, 0, "a record");
}

static int put_numbers(tf_source *s, const leat__tf_feature *f, leat__item *item, leat_error *err)
{
    size_t size = f->kind == LEAT__TF_INTS ? 8 : 4;
    uint8_t *to = leat__records_bytes(s->run, item, NULL, f->count * size);
    if (!to) return no_memory(err);
    void *values = leat__alloc(LEAT__MEM_INGEST, f->count * size + 1); /* aligned */
    if (!values) return no_memory(err);
    if (f->kind == LEAT__TF_INTS) leat__tf_ints(f, values);
    else leat__tf_floats(f, values);
    memcpy(to, values, f->count * size);
    leat__free(values);
    item->shape[0] = f->count;
    return 0;
}

static int put_texts(tf_source *s, const leat__tf_feature *f, leat__item *item, leat_error *err)
{
    leat__buf text;
    leat__json j;
    int rc = 0;
    leat__buf_init(&text, LEAT__MEM_INGEST, (size_t)s->base.max_sample);
    leat__json_init(&j, &text, 0);
    leat__json_array(&j);
    for (size_t i = 0; i < f->count && rc == 0; i++) {
        size_t len;
        const char *data = (const char *)leat__tf_bytes(f, i, &len);
        if (!leat__utf8_valid(data, len, NULL)) rc = bad(s, "a list of bytes that are not UTF-8", err);
        else leat__json_strn(&j, data, len);
    }
    leat__json_end(&j);
    if (rc == 0 && (leat__buf_status(&text) != 0 || !leat__records_bytes(s->run, item, text.data, text.len)))
        rc = no_memory(err);
    leat__buf_reset(&text);
    return rc;
}

static int put_feature(void *cookie, const leat__tf_feature *f, leat_error *err)
{
    tf_source *s = cookie;
    const column *c = find(s, f->name, f->name_len);
    if (!c) return bad(s, "a feature that the first records do not have", err);
    if (f->kind == LEAT__TF_NONE) return 0;
    if (f->kind != c->kind) return bad(s, "a feature of another type than in the first records", err);
    leat__item *item = &s->to->items[c->field];
    if (!item->absent) return bad(s, "a feature appears twice", err);
    leat_field_type type = (leat_field_type)s->base.fields[c->field].type;
    if (type == LEAT_FIELD_RAGGED) return put_numbers(s, f, item, err);
    if (type == LEAT_FIELD_JSON) return put_texts(s, f, item, err);
    if (f->count == 0) return 0;
    if (f->count > 1) return bad(s, "several values where the first records have one", err);
    item->absent = false;
    float number;
    if (type == LEAT_FIELD_INT) return (leat__tf_ints(f, &item->i), 0);
    if (type == LEAT_FIELD_FLOAT) return (leat__tf_floats(f, &number), item->f = number, 0);
    size_t len;
    const uint8_t *data = leat__tf_bytes(f, 0, &len);
    if (type == LEAT_FIELD_TEXT && !leat__utf8_valid((const char *)data, len, NULL))
        return bad(s, "bytes where the first records have UTF-8 text", err);
    return leat__records_bytes(s->run, item, data, len) ? 0 : no_memory(err);
}

/* Handles numbers missing in the record: a float becomes NaN, an int is an error. */
static int fill_missing(tf_source *s, leat__record *r, leat_error *err)
{
    for (uint32_t f = 0; f < s->base.field_count; f++) {
        leat__item *item = &r->items[f];
        if (!item->absent) continue;
        if (s->base.fields[f].type == LEAT_FIELD_INT) return bad(s, "a whole number is missing", err);
        if (s->base.fields[f].type != LEAT_FIELD_FLOAT) continue;
        item->absent = false;
        item->f = NAN;
    }
    return 0;
}

static int set_key(leat__records *run, leat__record *r, uint64_t number, leat_error *err)
{
    char key[24];
    int len = snprintf(key, sizeof key, "%08llu", (unsigned long long)number);
    return leat__records_key(run, r, key, (size_t)len, err);
}

static int tf_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    tf_source *s = (tf_source *)base;
    leat_error why = {0};
    bool whole = true;
    int rc = read_record(s, end, &whole, &why);
    if (rc == LEAT_EDATA) { /* the rest of the file cannot be read: counts as one skipped sample */
        const char *path = s->paths[s->path_at - 1];
        leat__records_fail(r, &why);
        leat__stream_close(&s->stream);
        return leat__source_key(run, r, path, err);
    }
    if (rc != 0 && err) *err = why;
    if (rc != 0 || *end) return rc;
    LEAT_TRY(set_key(run, r, s->number, err));
    r->place = s->offset;
    r->bytes_in = s->record.len;
    s->run = run;
    s->to = r;
    if (!whole) rc = bad(s, "damaged (its checksum differs)", &why);
    else if (!base->skim) rc = parse(s, put_feature, &why);
    if (rc == 0 && !base->skim) rc = fill_missing(s, r, &why);
    s->number++;
    if (rc == LEAT_ENOMEM) {
        if (err) *err = why;
        return rc;
    }
    if (rc != 0) leat__records_fail(r, &why);
    return 0;
}

static void tf_close(leat__source *base)
{
    tf_source *s = (tf_source *)base;
    leat__stream_close(&s->stream);
    leat__buf_reset(&s->record);
    for (uint32_t i = 0; i < s->column_count; i++) leat__free(s->columns[i].name);
    leat__free(s->columns);
}

static const leat__source_ops ops = {.kind = "tfrecord", .next = tf_next, .load = NULL, .close = tf_close};

int leat__source_tfrecord(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    tf_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    s->paths = opts->sources;
    s->path_count = opts->source_count;
    leat__buf_init(&s->record, LEAT__MEM_INGEST, SIZE_MAX / 2);
    s->columns = LEAT_NEW_ARRAY(INGEST, column, COLUMNS_MAX);
    int rc = s->columns ? learn(s, err) : no_memory(err);
    if (rc == 0) *out = base;
    else leat__source_close(&base);
    return rc;
}
