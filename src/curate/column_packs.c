/* SPDX-License-Identifier: Apache-2.0
 *
 * See column_packs.h.
 */
#include "curate/column_packs.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "ingest/where.h"
#include "io/url.h"
#include "pack/selection.h"

#define CHUNK 1024
#define NAMES_MAX 4096
#define KEY_MAX_ ((size_t)2 << 20)

static bool is_number(const leat_field *f)
{
    return f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT;
}

/* ---- the list of columns ---- */

static int add_column(leat__column_packs *s, uint32_t pack, uint32_t field, leat_error *err)
{
    leat__pack_column *c = &s->column[s->columns];
    size_t len;
    const char *stem = leat__path_stem(leat_pack_path(s->pack[pack]), &len);
    *c = (leat__pack_column){s->pack[pack], s->first[pack], field, leat_pack_field(s->pack[pack], field)};
    const size_t size = len + strlen(c->is->name) + 2;
    c->full = leat__alloc(LEAT__MEM_CURATE, size);
    if (!c->full) return leat__fail_nomem(err, size, "a name");
    snprintf(c->full, size, "%.*s.%s", (int)len, stem, c->is->name);
    for (uint32_t i = 0; i < s->columns; i++)
        if (strcmp(s->column[i].is->name, c->is->name) == 0) s->column[i].shared = c->shared = true;
    s->columns++;
    return 0;
}

static int list_columns(leat__column_packs *s, leat_error *err)
{
    size_t count = 0;
    for (uint32_t p = 0; p < s->count; p++) count += leat_pack_field_count(s->pack[p]);
    s->column = LEAT_NEW_ARRAY(CURATE, leat__pack_column, count + 1);
    if (!s->column) return leat__fail_nomem(err, count * sizeof *s->column, "columns");
    for (uint32_t p = 0; p < s->count; p++)
        for (uint32_t f = 0; f < leat_pack_field_count(s->pack[p]); f++)
            if (is_number(leat_pack_field(s->pack[p], f))) LEAT_TRY(add_column(s, p, f, err));
    return 0;
}

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
    rc = list_columns(s, err);
out:
    if (rc != 0) leat__column_packs_close(s);
    return rc;
}

void leat__column_packs_close(leat__column_packs *s)
{
    for (uint32_t i = 0; i < s->columns; i++) leat__free(s->column[i].full);
    leat__free(s->column);
    for (uint32_t i = 0; s->pack && i < s->count; i++) leat_pack_close(&s->pack[i]);
    leat__free(s->pack);
    leat__free(s->first);
    memset(s, 0, sizeof *s);
}

/* ---- names ---- */

static bool is_called(const char *text, const char *name, size_t size)
{
    return strlen(text) == size && memcmp(text, name, size) == 0;
}

/* True for the field's own name, or, with `full`, for the name with that of the file. */
static bool matches(const leat__pack_column *c, const char *name, size_t size, bool full)
{
    return is_called(full ? c->full : c->is->name, name, size);
}

/* Fails because `n` columns have the name. Names the packs, and a name for each column. */
static int fail_shared(const leat__column_packs *s, const char *name, size_t size, bool full, uint32_t n,
                       leat_error *err)
{
    leat__buf packs, names;
    const char *last = NULL;
    bool same = false; /* two files have the same name */
    leat__buf_init(&packs, LEAT__MEM_CURATE, NAMES_MAX);
    leat__buf_init(&names, LEAT__MEM_CURATE, NAMES_MAX);
    for (uint32_t i = 0, k = 0; i < s->columns; i++) {
        const leat__pack_column *c = &s->column[i];
        if (!matches(c, name, size, full)) continue;
        const char quote = leat__where_is_name(c->full) ? '\'' : '`'; /* the quote that a condition needs */
        leat__buf_printf(&packs, "%s%s", k == 0 ? "" : k + 1 < n ? ", " : " and ", leat_pack_path(c->pack));
        leat__buf_printf(&names, "%s%c%s%c", k == 0 ? "" : k + 1 < n ? ", " : " or ", quote, c->full, quote);
        for (uint32_t j = 0; j < i; j++) same = same || strcmp(s->column[j].full, c->full) == 0;
        last = c->is->name;
        k++;
    }
    int rc = same ? leat__fail(err, LEAT_EINVAL,
                               "column '%s' is in %s: two files have the same name, so rename one of them",
                               last, leat__buf_str(&packs))
                  : leat__fail(err, LEAT_EINVAL, "column '%s' is in %s; write %s", last,
                               leat__buf_str(&packs), leat__buf_str(&names));
    leat__buf_reset(&packs);
    leat__buf_reset(&names);
    return rc;
}

/* Fails because the name is the own name of a column and the full name of another. */
static int fail_both(const leat__pack_column *own, const leat__pack_column *full, leat_error *err)
{
    const char quote = leat__where_is_name(own->full) ? '\'' : '`'; /* the quote that a condition needs */
    return leat__fail(
        err, LEAT_EINVAL,
        "'%s' is a column of %s, and the full name of '%s' of %s; write %c%s%c for the first one, "
        "or rename the second file",
        own->is->name, leat_pack_path(own->pack), full->is->name, leat_pack_path(full->pack), quote,
        own->full, quote);
}

/* Finds a column by its own name or its full name. Returns LEAT_ENOFIELD, without a message, when there
 * is none. */
static int look_up(const void *cookie, const char *name, size_t size, uint32_t *found, leat_error *err)
{
    const leat__column_packs *s = cookie;
    uint32_t n[2] = {0}, at[2] = {0}; /* by own names, by full names */
    for (uint32_t i = 0; i < s->columns; i++)
        for (int full = 0; full < 2; full++)
            if (matches(&s->column[i], name, size, full)) {
                at[full] = i;
                n[full]++;
            }
    const int full = n[0] == 0;
    if (n[full] > 1) return fail_shared(s, name, size, full, n[full], err);
    if (n[0] > 0 && n[1] > 0) return fail_both(&s->column[at[0]], &s->column[at[1]], err);
    *found = at[full];
    return n[full] > 0 ? 0 : LEAT_ENOFIELD;
}

static const char *shown_name(const leat__pack_column *c)
{
    return c->shared ? c->full : c->is->name;
}

static int find(const leat__column_packs *s, const char *name, const leat__pack_column **found,
                leat_error *err)
{
    uint32_t at = 0;
    const size_t size = strlen(name);
    const bool quoted = size > 2 && name[0] == '`' && name[size - 1] == '`'; /* as in a condition */
    int rc = quoted ? look_up(s, name + 1, size - 2, &at, err) : look_up(s, name, size, &at, err);
    *found = &s->column[at];
    if (rc != LEAT_ENOFIELD) return rc;
    const char **names = LEAT_NEW_ARRAY(CURATE, const char *, (size_t)s->columns + 1);
    if (!names) return leat__fail_nomem(err, s->columns * sizeof *names, "columns");
    leat__names list = {0};
    for (uint32_t i = 0; i < s->columns; i++) {
        names[i] = shown_name(&s->column[i]);
        leat__names_add(&list, names[i]);
    }
    const char *near = leat__str_nearest(name, names, s->columns);
    if (near) leat__fail(err, LEAT_ENOFIELD, "there is no column '%s'; did you mean '%s'?", name, near);
    else
        leat__fail(err, LEAT_ENOFIELD, "there is no int or float column '%s' (there are %s)", name,
                   leat__names_end(&list));
    leat__free(names);
    return rc;
}

int leat__column_packs_numbers(leat__column_packs *s, const char *name, double *out, leat_error *err)
{
    const leat__pack_column *at;
    int rc = find(s, name, &at, err);
    if (rc != 0) return rc;
    if (at->is->type == LEAT_FIELD_FLOAT)
        return s->rows > 0 ? leat_pack_floats(at->pack, at->field, at->first, (size_t)s->rows, out, err) : 0;
    int64_t value[CHUNK];
    for (uint64_t i = 0; i < s->rows; i += CHUNK) {
        const size_t n = (size_t)LEAT_MIN(s->rows - i, CHUNK);
        LEAT_TRY(leat_pack_ints(at->pack, at->field, at->first + i, n, value, err));
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
    const leat__pack_column *at;
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) return folder_codes(s, out, err);
    if (rc != 0) return rc;
    if (at->is->type != LEAT_FIELD_INT)
        return leat__fail(err, LEAT_EINVAL, "column '%s' of %s is float: only int columns have groups", name,
                          leat_pack_path(at->pack));
    return s->rows > 0 ? leat_pack_ints(at->pack, at->field, at->first, (size_t)s->rows, out, err) : 0;
}

int leat__column_packs_code_of(leat__column_packs *s, const char *name, const char *text, int64_t *code,
                               leat_error *err)
{
    const leat__pack_column *at;
    const char *const *classes = NULL;
    uint64_t count = 0;
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) {
        *code = folder_code(text, strlen(text));
        return 0;
    }
    if (rc != 0) return rc;
    LEAT_TRY(leat_pack_classes(at->pack, at->field, &classes, &count, err));
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
    const leat__pack_column *at;
    *names = NULL;
    *count = 0;
    int rc = find(s, name, &at, err);
    if (rc == LEAT_ENOFIELD && strcmp(name, "folder") == 0) return 0;
    if (rc != 0) return rc;
    return leat_pack_classes(at->pack, at->field, names, count, err);
}

/* ---- conditions ---- */

typedef struct testing {
    const leat__column_packs *s;
    leat_field *fields;
    leat__item *items; /* one per column */
    int64_t *ints;     /* CHUNK values per column */
    double *floats;
    leat__where *where;
    leat__buf key;
} testing;

static int class_names(const void *cookie, uint32_t column, const char *const **names, uint64_t *count,
                       leat_error *err)
{
    const leat__pack_column *c = &((const leat__column_packs *)cookie)->column[column];
    return leat_pack_classes(c->pack, c->field, names, count, err);
}

static int open_testing(testing *t, const char *text, leat_error *err)
{
    const leat__column_packs *s = t->s;
    t->fields = LEAT_NEW_ARRAY(CURATE, leat_field, (size_t)s->columns + 1);
    t->items = LEAT_NEW_ARRAY(CURATE, leat__item, (size_t)s->columns + 1);
    t->ints = LEAT_NEW_ARRAY(CURATE, int64_t, ((size_t)s->columns + 1) * CHUNK);
    t->floats = LEAT_NEW_ARRAY(CURATE, double, ((size_t)s->columns + 1) * CHUNK);
    if (!t->fields || !t->items || !t->ints || !t->floats)
        return leat__fail_nomem(err, s->columns * (CHUNK * 16 + sizeof *t->items), "columns");
    for (uint32_t i = 0; i < s->columns; i++) {
        const leat__pack_column *c = &s->column[i];
        t->fields[i] = *c->is;
        t->fields[i].name = shown_name(c);
    }
    const leat__where_names names = {
        .fields = t->fields, .field_count = s->columns, .classes = class_names, .find = look_up, .cookie = s};
    return leat__where_open(&t->where, text, &names, err);
}

static int read_chunk(testing *t, uint64_t first, size_t n, leat_error *err)
{
    for (uint32_t c = 0; c < t->s->columns; c++) {
        const leat__pack_column *p = &t->s->column[c];
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
            for (uint32_t c = 0; c < t->s->columns; c++) {
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
    testing t = {.s = s};
    leat__buf_init(&t.key, LEAT__MEM_CURATE, KEY_MAX_);
    int rc = open_testing(&t, where, err);
    if (rc == 0) rc = test_rows(s, &t, out, err);
    leat__where_close(&t.where);
    leat__buf_reset(&t.key);
    leat__free(t.fields);
    leat__free(t.items);
    leat__free(t.ints);
    leat__free(t.floats);
    return rc;
}
