/* SPDX-License-Identifier: Apache-2.0
 *
 * See column_packs.h.
 */
#include "curate/column_packs.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "ingest/where.h"
#include "pack/selection.h"

#define CHUNK 1024
#define FIELDS_MAX 4096
#define KEY_MAX_ ((size_t)2 << 20)

int leat__column_packs_open(leat__column_packs *s, const char *path, const char *const *columns,
                            uint32_t count, leat_error *err)
{
    int rc;
    memset(s, 0, sizeof *s);
    s->pack = LEAT_NEW_ARRAY(CURATE, leat_pack *, (size_t)count + 1);
    s->first = LEAT_NEW_ARRAY(CURATE, uint64_t, (size_t)count + 1);
    if (!s->pack || !s->first) LEAT_GO(rc, out, leat__fail_nomem(err, count * sizeof *s->pack, "columns"));
    LEAT_GO(rc, out, leat_pack_open(&s->pack[0], path, NULL, err));
    s->count = 1;
    s->rows = leat_pack_count(s->pack[0]);
    if (s->rows >= UINT32_MAX)
        LEAT_GO(rc, out, leat__fail(err, LEAT_ELIMIT, "%s: more than %u rows", path, UINT32_MAX - 1));
    for (uint32_t i = 0; i < count; i++) {
        LEAT_GO(rc, out, leat_pack_open(&s->pack[i + 1], columns[i], NULL, err));
        s->count++;
        LEAT_GO(rc, out, leat__pack_bind(s->pack[i + 1], s->pack[0], &s->first[i + 1], err));
    }
out:
    if (rc != 0) leat__column_packs_close(s);
    return rc;
}

void leat__column_packs_close(leat__column_packs *s)
{
    for (uint32_t i = 0; s->pack && i < s->count; i++) leat_pack_close(&s->pack[i]);
    leat__free(s->pack);
    leat__free(s->first);
    memset(s, 0, sizeof *s);
}

static bool is_number(const leat_field *f)
{
    return f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT;
}

/* A column of numbers in one of the packs. */
typedef struct place {
    leat_pack *pack;
    uint64_t first; /* first row of the pack */
    uint32_t field;
    const leat_field *is;
} place;

static uint32_t list_columns(const leat__column_packs *s, place *places, const char **names)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < s->count; p++)
        for (uint32_t f = 0; f < leat_pack_field_count(s->pack[p]) && n < FIELDS_MAX; f++) {
            const leat_field *is = leat_pack_field(s->pack[p], f);
            bool shadowed = !is_number(is);
            for (uint32_t i = 0; i < n && !shadowed; i++) shadowed = strcmp(names[i], is->name) == 0;
            if (shadowed) continue;
            places[n] = (place){s->pack[p], s->first[p], f, is};
            names[n++] = is->name;
        }
    return n;
}

static int find(const leat__column_packs *s, const char *name, place *found, leat_error *err)
{
    place *places = LEAT_NEW_ARRAY(CURATE, place, FIELDS_MAX);
    const char **names = LEAT_NEW_ARRAY(CURATE, const char *, FIELDS_MAX);
    int rc = places && names ? LEAT_ENOFIELD : leat__fail_nomem(err, FIELDS_MAX * sizeof *places, "columns");
    const uint32_t n = rc == LEAT_ENOFIELD ? list_columns(s, places, names) : 0;
    for (uint32_t i = 0; i < n && rc == LEAT_ENOFIELD; i++)
        if (strcmp(names[i], name) == 0) {
            *found = places[i];
            rc = 0;
        }
    if (rc == LEAT_ENOFIELD) {
        const char *near = leat__str_nearest(name, names, n);
        if (near) leat__fail(err, LEAT_ENOFIELD, "there is no column '%s'; did you mean '%s'?", name, near);
        else leat__fail(err, LEAT_ENOFIELD, "there is no int or float column '%s'", name);
    }
    leat__free(places);
    leat__free(names);
    return rc;
}

int leat__column_packs_numbers(leat__column_packs *s, const char *name, double *out, leat_error *err)
{
    place at = {0};
    int rc = find(s, name, &at, err);
    if (rc != 0) return rc;
    if (at.is->type == LEAT_FIELD_FLOAT)
        return s->rows > 0 ? leat_pack_floats(at.pack, at.field, at.first, (size_t)s->rows, out, err) : 0;
    int64_t value[CHUNK];
    for (uint64_t i = 0; i < s->rows; i += CHUNK) {
        const size_t n = (size_t)LEAT_MIN(s->rows - i, CHUNK);
        LEAT_TRY(leat_pack_ints(at.pack, at.field, at.first + i, n, value, err));
        for (size_t k = 0; k < n; k++) out[i + k] = (double)value[k];
    }
    return 0;
}

/* ---- codes ---- */

static int64_t folder_code(const char *path, size_t len)
{
    return (int64_t)leat__hash64(path, len, 0);
}

static int folder_codes(leat__column_packs *s, int64_t *out, leat_error *err)
{
    leat__buf key;
    int rc = 0;
    leat__buf_init(&key, LEAT__MEM_CURATE, KEY_MAX_);
    for (uint64_t i = 0; i < s->rows && rc == 0; i++) {
        rc = leat__pack_key_read(s->pack[0], i, &key, err);
        if (rc != 0) break;
        const char *path = leat__buf_str(&key), *slash = strrchr(path, '/');
        out[i] = folder_code(path, slash ? (size_t)(slash - path) : 0);
    }
    leat__buf_reset(&key);
    return rc;
}

int leat__column_packs_codes(leat__column_packs *s, const char *name, int64_t *out, leat_error *err)
{
    place at = {0};
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) return folder_codes(s, out, err);
    if (rc != 0) return rc;
    if (at.is->type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL, "column '%s' of %s is float: only int columns have groups", name,
                          leat_pack_path(at.pack));
    return s->rows > 0 ? leat_pack_ints(at.pack, at.field, at.first, (size_t)s->rows, out, err) : 0;
}

int leat__column_packs_code_of(leat__column_packs *s, const char *name, const char *text, int64_t *code,
                               leat_error *err)
{
    place at = {0};
    const char *const *classes = NULL;
    uint64_t count = 0;
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) {
        *code = folder_code(text, strlen(text));
        return 0;
    }
    if (rc != 0) return rc;
    LEAT_TRY(leat_pack_classes(at.pack, at.field, &classes, &count, err));
    for (uint64_t i = 0; i < count; i++)
        if (strcmp(classes[i], text) == 0) {
            *code = (int64_t)i;
            return 0;
        }
    if (leat__str_to_i64(text, code)) return 0;
    return leat__fail(err, LEAT_ENOCLASS, "'%s' is neither a class name nor a number of column '%s'", text,
                      name);
}

int leat__column_packs_classes(leat__column_packs *s, const char *name, const char *const **names,
                               uint64_t *count, leat_error *err)
{
    place at = {0};
    *names = NULL;
    *count = 0;
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) return 0;
    if (rc != 0) return rc;
    return leat_pack_classes(at.pack, at.field, names, count, err);
}

/* ---- conditions ---- */

typedef struct testing {
    place *places;
    const char **names;
    leat_field *fields;
    leat__item *items; /* one per column */
    int64_t *ints;     /* CHUNK values per column */
    double *floats;
    uint32_t count;
    leat__where *where;
    leat__buf key;
} testing;

static int open_testing(const leat__column_packs *s, testing *t, const char *text, leat_error *err)
{
    const char *const *classes = NULL;
    uint64_t class_count = 0;
    int label = -1;
    t->places = LEAT_NEW_ARRAY(CURATE, place, FIELDS_MAX);
    t->names = LEAT_NEW_ARRAY(CURATE, const char *, FIELDS_MAX);
    if (!t->places || !t->names) return leat__fail_nomem(err, FIELDS_MAX * sizeof *t->places, "columns");
    t->count = list_columns(s, t->places, t->names);
    t->fields = LEAT_NEW_ARRAY(CURATE, leat_field, (size_t)t->count + 1);
    t->items = LEAT_NEW_ARRAY(CURATE, leat__item, (size_t)t->count + 1);
    t->ints = LEAT_NEW_ARRAY(CURATE, int64_t, ((size_t)t->count + 1) * CHUNK);
    t->floats = LEAT_NEW_ARRAY(CURATE, double, ((size_t)t->count + 1) * CHUNK);
    if (!t->fields || !t->items || !t->ints || !t->floats)
        return leat__fail_nomem(err, t->count * (CHUNK * 16 + sizeof *t->items), "columns");
    for (uint32_t i = 0; i < t->count; i++) {
        t->fields[i] = *t->places[i].is;
        if (strcmp(t->names[i], "label") != 0 || t->fields[i].type != LEAT_FIELD_INT) continue;
        LEAT_TRY(leat_pack_classes(t->places[i].pack, t->places[i].field, &classes, &class_count, err));
        label = (int)i;
    }
    const leat__where_names names = {.fields = t->fields,
                                     .field_count = t->count,
                                     .label_field = label,
                                     .classes = classes,
                                     .class_count = class_count};
    return leat__where_open(&t->where, text, &names, err);
}

static int read_chunk(testing *t, uint64_t first, size_t n, leat_error *err)
{
    for (uint32_t c = 0; c < t->count; c++) {
        const place *p = &t->places[c];
        const uint64_t at = p->first + first;
        LEAT_TRY(p->is->type == LEAT_FIELD_INT
                     ? leat_pack_ints(p->pack, p->field, at, n, t->ints + (size_t)c * CHUNK, err)
                     : leat_pack_floats(p->pack, p->field, at, n, t->floats + (size_t)c * CHUNK, err));
    }
    return 0;
}

static int test_rows(leat__column_packs *s, testing *t, bool *out, leat_error *err)
{
    for (uint64_t first = 0; first < s->rows; first += CHUNK) {
        const size_t n = (size_t)LEAT_MIN(s->rows - first, CHUNK);
        LEAT_TRY(read_chunk(t, first, n, err));
        for (size_t i = 0; i < n; i++) {
            for (uint32_t c = 0; c < t->count; c++) {
                t->items[c].i = t->ints[(size_t)c * CHUNK + i];
                t->items[c].f = t->floats[(size_t)c * CHUNK + i];
            }
            LEAT_TRY(leat__pack_key_read(s->pack[0], first + i, &t->key, err));
            if (!leat__where_match(t->where, leat__buf_str(&t->key), t->key.len, t->items))
                out[first + i] = false;
        }
    }
    return 0;
}

int leat__column_packs_where(leat__column_packs *s, const char *where, bool *out, leat_error *err)
{
    testing t = {0};
    leat__buf_init(&t.key, LEAT__MEM_CURATE, KEY_MAX_);
    int rc = open_testing(s, &t, where, err);
    if (rc == 0) rc = test_rows(s, &t, out, err);
    leat__where_close(&t.where);
    leat__buf_reset(&t.key);
    leat__free(t.places);
    leat__free(t.names);
    leat__free(t.fields);
    leat__free(t.items);
    leat__free(t.ints);
    leat__free(t.floats);
    return rc;
}
