/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs as a source, to re-encode images, select samples by a list of keys, join several packs, or
 * shuffle. All packs must have the same fields, in any order. Class names are joined: those of the first
 * pack keep their numbers, new ones follow, and labels are renumbered. `load` reads samples on any thread.
 */
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/perm.h"
#include "base/str.h"
#include "ingest/csv.h"
#include "ingest/merge.h"
#include "ingest/source.h"
#include "pack/schema.h"
#include "pack/selection.h"

typedef struct origin {
    leat_pack *pack;
    uint64_t first;   /* number of its first sample over all packs */
    uint32_t *field;  /* field of the result -> field of this pack */
    int64_t *relabel; /* class number in this pack -> in the result; NULL when the same */
    uint64_t classes;
} origin;

typedef struct pack_source {
    leat__source base;
    origin *origins;
    uint32_t origin_count;
    uint64_t samples, given;
    leat__perm perm;
    bool shuffled;
    leat__merge merge;
    leat__stream *keys; /* the list of keys, or NULL */
    leat__csv lines;
    bool reading_keys;
    uint64_t *chosen; /* selected rows over all packs, or NULL */
    leat__buf key;
} pack_source;

static int open_origin(pack_source *s, const char *path, leat_error *err)
{
    origin *o = &s->origins[s->origin_count];
    LEAT_TRY(leat_pack_open(&o->pack, path, NULL, err));
    s->origin_count++;
    o->first = s->samples;
    if (!leat__add_u64(s->samples, leat_pack_count(o->pack), &s->samples))
        return leat__fail(err, LEAT_EOVERFLOW, "%s: too many samples", path);
    return 0;
}

static int copy_fields(pack_source *s, leat_error *err)
{
    leat_pack *pack = s->origins[0].pack;
    for (uint32_t i = 0; i < leat_pack_field_count(pack); i++) {
        const leat_field *f = leat_pack_field(pack, i);
        int n = leat__source_field(&s->base, f->name, (leat_field_type)f->type, err);
        if (n < 0) return n;
        const char *name = s->base.fields[n].name;
        s->base.fields[n] = *f;
        s->base.fields[n].name = name;
        if (f->type == LEAT_FIELD_IMAGE && s->base.image_field < 0) s->base.image_field = n;
        if (f->type == LEAT_FIELD_INT && strcmp(f->name, "label") == 0) s->base.label_field = n;
    }
    return 0;
}

static int refuse_fields(const leat_pack *has, const leat_pack *lacks, const char *name, leat_error *err)
{
    return leat__fail(err, LEAT_EINVAL, "%s has no field '%s', which %s has", leat_pack_path(lacks), name,
                      leat_pack_path(has));
}

/* Matches fields by name; all packs must have the same fields with the same types. */
static int match_fields(const pack_source *s, origin *o, leat_error *err)
{
    const leat_pack *first = s->origins[0].pack;
    uint32_t n = leat_pack_field_count(first);
    o->field = LEAT_NEW_ARRAY(INGEST, uint32_t, (uint64_t)n + 1);
    if (!o->field) return leat__fail_nomem(err, n * 4u, "fields");
    for (uint32_t i = 0; i < n; i++) {
        const leat_field *f = leat_pack_field(first, i);
        int at = leat_pack_field_find(o->pack, f->name);
        if (at < 0) return refuse_fields(first, o->pack, f->name, err);
        const leat_field *there = leat_pack_field(o->pack, (uint32_t)at);
        if (there->type != f->type || there->dtype != f->dtype || there->ndim != f->ndim ||
            memcmp(there->shape, f->shape, sizeof f->shape) != 0)
            return leat__fail(err, LEAT_EINVAL,
                              there->type != f->type
                                  ? "field '%s' is %s in %s and %s in %s"
                                  : "field '%s' is %s in %s and %s of another type or shape in %s",
                              f->name, leat_field_type_name(f->type), leat_pack_path(first),
                              leat_field_type_name(there->type), leat_pack_path(o->pack));
        o->field[i] = (uint32_t)at;
    }
    for (uint32_t i = 0; i < leat_pack_field_count(o->pack); i++) {
        const char *name = leat_pack_field(o->pack, i)->name;
        if (leat_pack_field_find(first, name) < 0) return refuse_fields(o->pack, first, name, err);
    }
    return 0;
}

static int64_t class_number(const leat__source *s, const char *name)
{
    for (uint64_t i = 0; i < s->class_count; i++) /* once per pack, not per sample */
        if (strcmp(s->classes[i], name) == 0) return (int64_t)i;
    return -1;
}

static int join_classes(pack_source *s, origin *o, leat_error *err)
{
    const char *const *names;
    if (s->base.label_field < 0) return 0;
    LEAT_TRY(leat_pack_classes(o->pack, o->field[s->base.label_field], &names, &o->classes, err));
    if (o->classes == 0) return 0;
    o->relabel = LEAT_NEW_ARRAY(INGEST, int64_t, o->classes);
    if (!o->relabel) return leat__fail_nomem(err, o->classes * 8, "class numbers");
    for (uint64_t i = 0; i < o->classes; i++) {
        int64_t n = o == s->origins ? -1 : class_number(&s->base, names[i]);
        if (n < 0) n = leat__source_class(&s->base, names[i], err);
        if (n < 0) return (int)n;
        o->relabel[i] = n;
    }
    return 0;
}

static int find_key(pack_source *s, uint32_t *which, uint64_t *sample, bool *end, leat_error *err)
{
    LEAT_TRY(leat__csv_next_key(&s->lines, end, err));
    if (*end) return 0;
    for (*which = 0; *which < s->origin_count; ++*which) {
        int rc = leat_pack_find(s->origins[*which].pack, s->lines.row.data, s->lines.row.len, sample, err);
        if (rc != LEAT_ENOENT) return rc;
    }
    return LEAT_ENOENT;
}

static void locate(const pack_source *s, uint64_t at, uint32_t *which, uint64_t *sample)
{
    *which = s->origin_count - 1;
    while (*which > 0 && s->origins[*which].first > at) --*which;
    *sample = at - s->origins[*which].first;
}

static int pack_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    pack_source *s = (pack_source *)base;
    const leat__merge_step *step = NULL;
    uint32_t which = 0;
    uint64_t sample = 0;
    if (s->reading_keys) {
        int rc = find_key(s, &which, &sample, end, err);
        if (rc == 0 && *end) return 0;
        if (rc == LEAT_ENOENT) {
            leat_error why = {0};
            leat__fail(&why, LEAT_ENOENT, "no sample with the key \"%s\"", leat__buf_str(&s->lines.row));
            leat__records_fail(r, &why);
            return leat__records_key(run, r, s->lines.row.data, s->lines.row.len, err);
        }
        if (rc != 0) return rc;
    } else {
        while (s->given < s->samples && (step = leat__merge_step_of(&s->merge, s->given)) && !step->rename)
            s->given++;
        if (s->given == s->samples) {
            *end = true;
            return 0;
        }
        uint64_t at = s->given++;
        if (s->shuffled) at = leat__perm_at(&s->perm, at);
        locate(s, s->chosen ? s->chosen[at] : at, &which, &sample);
    }
    leat_pack_row row;
    leat_pack *pack = s->origins[which].pack;
    LEAT_TRY(leat_pack_rows(pack, sample, 1, &row, err));
    LEAT_TRY(leat__pack_key_read(pack, sample, &s->key, err));
    if (step) LEAT_TRY(leat__merge_rename(&s->key, step->rename, err));
    r->origin = which;
    r->sample = sample;
    r->size_hint = row.size;
    r->place = sample;
    return leat__records_key(run, r, s->key.data, s->key.len, err);
}

/* Splits a ragged array, which the pack stores as its shape followed by its elements. */
static int split_ragged(const leat_field *f, leat__records *run, leat__item *item, leat_error *err)
{
    uint32_t front = leat__field_shape_bytes(f);
    if (item->size < front || f->ndim > LEAT_NDIM_MAX)
        return leat__fail(err, LEAT_EDATA, "field %s: array without its shape", f->name);
    memcpy(item->shape, leat__records_data(run, item), f->ndim * sizeof(uint64_t));
    item->at += front;
    item->size -= front;
    return 0;
}

/* Copies the entry points of an image; the encoder keeps them if it does not parse the file. */
static int copy_entries(leat__records *run, leat__item *item, const leat_pack_cell *cell, size_t base_at,
                        uint64_t size, leat_error *err)
{
    const uint8_t *sample = (const uint8_t *)run->in.data + base_at;
    const uint8_t *entries = leat__cell_entries(cell, sample, size, &item->entries_size);
    item->entries_at = run->out.len;
    if (!entries || leat__buf_append(&run->out, entries, item->entries_size) == 0) return 0;
    return leat__fail_nomem(err, item->entries_size, "entry points");
}

static void set_number(const pack_source *s, const origin *o, uint32_t field, const leat_pack_cell *cell,
                       leat__item *item)
{
    uint32_t type = s->base.fields[field].type;
    item->absent = cell->absent && type != LEAT_FIELD_INT && type != LEAT_FIELD_FLOAT;
    item->i = cell->i;
    item->f = cell->f;
    if ((int)field == s->base.label_field && o->relabel && item->i >= 0 && (uint64_t)item->i < o->classes)
        item->i = o->relabel[item->i];
}

static int set_item(const pack_source *s, const origin *o, leat__records *run, leat__item *item,
                    uint32_t field, const leat_pack_cell *cell, size_t base_at, uint64_t size,
                    leat_error *err)
{
    const leat_field *f = &s->base.fields[field];
    set_number(s, o, field, cell, item);
    item->image = cell->image;
    if (f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT || cell->absent) return 0;
    if (!leat__range_inside(cell->start, cell->length, size))
        return leat__fail(err, LEAT_EDATA, "field %s is outside its sample", f->name);
    item->coded = false;
    item->at = base_at + (size_t)cell->start;
    item->size = (size_t)cell->length;
    if (f->type == LEAT_FIELD_RAGGED) return split_ragged(f, run, item, err);
    return f->type == LEAT_FIELD_IMAGE ? copy_entries(run, item, cell, base_at, size, err) : 0;
}

static int pack_load(leat__source *base, leat__records *run, leat__record *r, leat_error *err)
{
    pack_source *s = (pack_source *)base;
    origin *o = &s->origins[r->origin];
    leat_pack_row row;
    leat__item whole = {0};
    LEAT_TRY(leat_pack_rows(o->pack, r->sample, 1, &row, err));
    if (row.size > base->max_sample)
        return leat__fail(err, LEAT_ELIMIT, "%s is over the limit of %s", leat__as_size(row.size).text,
                          leat__as_size(base->max_sample).text);
    uint8_t *to = leat__records_bytes(run, &whole, NULL, (size_t)row.size);
    if (!to) return leat__fail_nomem(err, row.size, "a sample");
    LEAT_TRY(leat_pack_read(o->pack, r->sample, to, (size_t)row.size + LEAT_PACK_PADDING, err));
    r->bytes_in += row.size;
    for (uint32_t f = 0; f < base->field_count; f++) {
        leat_pack_cell cell;
        LEAT_TRY(leat_pack_cells(o->pack, o->field[f], r->sample, 1, &cell, err));
        LEAT_TRY(set_item(s, o, run, &r->items[f], f, &cell, whole.at, row.size, err));
    }
    return 0;
}

static void pack_close(leat__source *base)
{
    pack_source *s = (pack_source *)base;
    if (s->reading_keys) leat__csv_reset(&s->lines);
    leat__stream_close(&s->keys);
    for (uint32_t i = 0; i < s->origin_count; i++) {
        leat_pack_close(&s->origins[i].pack);
        leat__free(s->origins[i].relabel);
        leat__free(s->origins[i].field);
    }
    leat__merge_close(&s->merge);
    leat__free(s->chosen);
    leat__free(s->origins);
    leat__buf_reset(&s->key);
}

leat_pack *leat__source_pack_of(leat__source *base, uint32_t which)
{
    if (strcmp(base->ops->kind, "pack") != 0) return NULL;
    pack_source *s = (pack_source *)base;
    return which < s->origin_count ? s->origins[which].pack : NULL;
}

uint32_t leat__source_pack_field(leat__source *base, uint32_t which, uint32_t field)
{
    return ((pack_source *)base)->origins[which].field[field];
}

void leat__source_pack_number(leat__source *base, uint32_t which, uint32_t field, const leat_pack_cell *cell,
                              leat__item *item)
{
    const pack_source *s = (pack_source *)base;
    set_number(s, &s->origins[which], field, cell, item);
}

leat__merge *leat__source_pack_merge(leat__source *base)
{
    return &((pack_source *)base)->merge;
}

static const leat__source_ops ops = {
    .kind = "pack",
    .next = pack_next,
    .load = pack_load,
    .close = pack_close,
    .class_names = leat__merge_class_names,
};

/* Reads the rows of the selection. With several packs, rows are numbered over all of them. */
static int read_selection(pack_source *s, const leat_ingest_opts *opts, leat_error *err)
{
    leat_pack *all = NULL;
    LEAT_TRY(leat_pack_open_many(&all, opts->sources, opts->source_count, NULL, err));
    int rc = leat__selection_rows(all, opts->select, &s->chosen, &s->samples, err);
    leat_pack_close(&all);
    return rc;
}

static int set_up(pack_source *s, const leat_ingest_opts *opts, leat_error *err)
{
    s->origins = LEAT_NEW_ARRAY(INGEST, origin, opts->source_count);
    if (!s->origins) return leat__fail_nomem(err, 0, "a source");
    for (uint32_t i = 0; i < opts->source_count; i++) LEAT_TRY(open_origin(s, opts->sources[i], err));
    LEAT_TRY(copy_fields(s, err));
    for (uint32_t i = 0; i < s->origin_count; i++) {
        LEAT_TRY(match_fields(s, &s->origins[i], err));
        LEAT_TRY(join_classes(s, &s->origins[i], err));
    }
    if (opts->select) LEAT_TRY(read_selection(s, opts, err));
    s->base.total = s->samples;
    if (opts->keys) {
        LEAT_TRY(leat__stream_open(&s->keys, opts->keys, err));
        LEAT_TRY(leat__csv_init(&s->lines, s->keys, 0, err));
        s->reading_keys = true;
        s->base.total = 0;
    } else if (opts->shuffle && s->samples > 0) {
        if (s->samples > LEAT__PERM_MAX) return leat__fail(err, LEAT_ELIMIT, "too many samples to shuffle");
        leat__perm_init(&s->perm, s->samples, opts->shuffle_seed, 0);
        s->shuffled = true;
    }
    return 0;
}

int leat__source_pack(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    pack_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    leat__buf_init(&s->key, LEAT__MEM_INGEST, 2u << 20);
    int rc = set_up(s, opts, err);
    if (rc == 0) *out = base;
    else leat__source_close(&base);
    return rc;
}
