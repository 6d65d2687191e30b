/* SPDX-License-Identifier: Apache-2.0
 *
 * A source whose rows come from a registered reader: see source_reader.h.
 */
#include "ingest/source_reader.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "pack/page.h"

typedef struct reader_source {
    leat__source base;
    leat__source_ops ops; /* with the reader's `kind` */
    leat__reader reader;
    bool open;
} reader_source;

static _Atomic(leat__reader_opener) opener;

void leat__reader_register(leat__reader_opener open)
{
    atomic_store(&opener, open);
}

bool leat__reader_registered(void)
{
    return atomic_load(&opener) != NULL;
}

static int put_value(leat__source *s, leat__records *run, leat__record *r, uint32_t f,
                     const leat_pack_value *v, leat_error *err)
{
    leat__item *item = &r->items[f];
    uint32_t type = s->fields[f].type;
    if (v->absent) return 0;
    item->absent = false;
    item->i = v->i;
    item->f = v->f;
    if (type == LEAT_FIELD_INT || type == LEAT_FIELD_FLOAT || s->skim) return 0;
    memcpy(item->shape, v->shape, sizeof item->shape);
    if (leat__records_bytes(run, item, v->data, v->size) == NULL)
        return leat__fail_nomem(err, v->size, "a value");
    r->bytes_in += v->size;
    const char *fault = type == LEAT_FIELD_JSON ? leat__page_json_fault(v->data, v->size) : NULL;
    if (!fault) return 0;
    leat_error why = {0};
    leat__fail(&why, LEAT_EDATA, "field '%s': %s", s->fields[f].name, fault);
    leat__records_fail(r, &why);
    return 0;
}

static int reader_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    reader_source *s = (reader_source *)base;
    leat__row row = {0};
    LEAT_TRY(s->reader.next(s->reader.cookie, &row, end, err));
    if (*end) return 0;
    LEAT_TRY(leat__records_key(run, r, row.key, row.key_size, err));
    if (row.wrong != NULL) {
        leat_error why = {0};
        leat__fail(&why, LEAT_EDATA, "%s", row.wrong);
        leat__records_fail(r, &why);
        return 0;
    }
    for (uint32_t f = 0; f < base->field_count; f++)
        LEAT_TRY(put_value(base, run, r, f, &row.values[f], err));
    if (row.path == NULL) return 0;
    r->path = leat__records_text(run, row.path, strlen(row.path));
    r->path_field = (uint32_t)base->image_field;
    r->size_hint = 128u << 10;
    return r->path == LEAT__RECORDS_NOWHERE ? leat__fail_nomem(err, strlen(row.path), "a path") : 0;
}

static int reader_load(leat__source *base, leat__records *run, leat__record *r, leat_error *err)
{
    return r->path == LEAT__RECORDS_NOWHERE ? 0 : leat__source_load_file(base, run, r, err);
}

static void reader_close(leat__source *base)
{
    reader_source *s = (reader_source *)base;
    if (s->open) s->reader.close(s->reader.cookie);
}

static int reader_class_names(leat__source *base, uint32_t field, const char *const **names, uint64_t *count,
                              leat_error *err)
{
    const reader_source *s = (const reader_source *)base;
    (void)err;
    *names = s->reader.classes ? s->reader.classes[field].names : NULL;
    *count = s->reader.classes ? s->reader.classes[field].count : 0;
    return 0;
}

static int take_fields(reader_source *s, leat_error *err)
{
    for (uint32_t i = 0; i < s->reader.field_count; i++) {
        const leat_field *f = &s->reader.fields[i];
        int n = leat__source_field(&s->base, f->name, (leat_field_type)f->type, err);
        if (n < 0) return n;
        leat_field *own = &s->base.fields[n];
        own->dtype = f->dtype;
        own->ndim = f->ndim;
        memcpy(own->shape, f->shape, sizeof own->shape);
        if (f->type == LEAT_FIELD_IMAGE && s->base.image_field < 0) s->base.image_field = n;
        if (f->type == LEAT_FIELD_INT && strcmp(f->name, "label") == 0) s->base.label_field = n;
    }
    if (s->base.label_field < 0 || !s->reader.classes) return 0;
    const leat__reader_classes *c = &s->reader.classes[s->base.label_field];
    for (uint64_t i = 0; i < c->count; i++) {
        int64_t n = leat__source_class(&s->base, c->names[i], err);
        if (n < 0) return (int)n;
    }
    return 0;
}

int leat__source_reader(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    static const leat__source_ops ops = {
        .next = reader_next, .load = reader_load, .close = reader_close, .class_names = reader_class_names};
    leat__reader_opener open = atomic_load(&opener);
    if (open == NULL) return LEAT_EAGAIN;
    reader_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    int rc = open(&s->reader, opts->sources, opts->source_count, opts->members, err);
    s->open = rc == 0;
    s->ops = ops;
    s->ops.kind = s->reader.kind;
    base->ops = &s->ops;
    base->total = s->reader.total;
    base->takes_members = true;
    base->ignored = s->reader.ignored;
    memcpy(base->ignored_first, s->reader.ignored_first, sizeof base->ignored_first);
    if (rc == 0) rc = take_fields(s, err);
    if (rc == 0) *out = base;
    else leat__source_close(&base);
    return rc;
}
