/* SPDX-License-Identifier: Apache-2.0
 *
 * Manifests: a CSV (or TSV) file with a header, or one JSON object per line. One column names the image
 * file, relative to the manifest. One may be the label: all whole numbers, or class names. One may be the
 * key of the sample, which is otherwise the path. All others become fields. The file is read twice: first
 * to find the types of the columns, then row by row.
 *
 *   path    path, image, image_path, file, file_name, filename
 *   label   label, labels, cls, class, class_name, target, category
 *   key     key
 *   extra   int when every cell is a whole number, float when every cell is a number or empty
 *           (empty is NaN), else text; in JSON lines also json, for lists, objects and mixes
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/perm.h"
#include "base/str.h"
#include "ingest/csv.h"
#include "ingest/name_list.h"
#include "ingest/source.h"
#include "io/url.h"

enum { SAW_INT = 1, SAW_NUMBER = 2, SAW_TEXT = 4, SAW_OTHER = 8, SAW_NOTHING = 16 };

typedef struct column {
    char *name;
    unsigned saw;
    uint64_t rows;                /* number of rows that have it */
    uint64_t int_line, text_line; /* first line with a whole number; with other text; 0: none */
    int field;                    /* -1 for the path and the key */
} column;

typedef struct manifest_source {
    leat__source base;
    const char *path; /* owned by the caller */
    char *shown;      /* the path without the query of a signed URL */
    leat__buf folder; /* folder of the manifest, with a slash, or empty */
    bool json;
    char delimiter;
    leat__stream *stream;
    leat__csv csv;
    bool reading;
    column *columns;
    uint32_t column_count, column_capacity;
    int path_column, label_column, key_column;
    leat_error bad; /* error of the first line that is not a JSON object; code 0: none */
    /* With shuffle: all rows, each with its line number, its offset and the content of csv.row. */
    leat__name_list rows;
    leat__buf row; /* the current row, in that form */
    uint64_t given;
    leat__perm perm;
    bool shuffled;
} manifest_source;

static const char *const path_names[] = {"path", "image", "image_path", "file", "file_name", "filename"};

static int no_memory(leat_error *err)
{
    return leat__fail_nomem(err, 0, "a manifest");
}

static int add_column(manifest_source *s, const char *name, leat_error *err)
{
    if (s->column_count == s->column_capacity) {
        uint32_t capacity = s->column_capacity ? s->column_capacity * 2 : 16;
        column *grown = leat__realloc(LEAT__MEM_INGEST, s->columns, capacity * sizeof *grown);
        if (!grown) return no_memory(err);
        s->columns = grown;
        s->column_capacity = capacity;
    }
    char *copy = leat__strdup(LEAT__MEM_INGEST, name);
    if (!copy) return no_memory(err);
    s->columns[s->column_count++] = (column){.name = copy, .field = -1};
    return 0;
}

static int find_column(const manifest_source *s, const char *name)
{
    for (uint32_t i = 0; i < s->column_count; i++)
        if (strcmp(s->columns[i].name, name) == 0) return (int)i;
    return -1;
}

static int choose(const manifest_source *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int found = find_column(s, names[i]);
        if (found >= 0) return found;
    }
    return -1;
}

/* ---- rows ---- */

static void stop_reading(manifest_source *s)
{
    if (s->reading) leat__csv_reset(&s->csv);
    s->reading = false;
    leat__stream_close(&s->stream);
}

static int start_reading(manifest_source *s, leat_error *err)
{
    stop_reading(s);
    LEAT_TRY(leat__stream_open(&s->stream, s->path, err));
    LEAT_TRY(leat__csv_init(&s->csv, s->stream, s->delimiter, err));
    s->reading = true;
    bool end = false;
    if (!s->json) LEAT_TRY(leat__csv_next(&s->csv, &end, err)); /* skip the header */
    if (end) return leat__fail(err, LEAT_EDATA, "%s is empty", s->shown);
    return 0;
}

static int next_row(manifest_source *s, bool *end, leat_error *err)
{
    return s->json ? leat__csv_next_line(&s->csv, end, err) : leat__csv_next(&s->csv, end, err);
}

static int row_error(const manifest_source *s, const char *what, leat_error *err)
{
    leat__fail(err, LEAT_EDATA, "%s:%llu: %s", s->shown, (unsigned long long)s->csv.line, what);
    leat__error_at(err, NULL, -1, (int64_t)s->csv.offset);
    return LEAT_EDATA;
}

static int parse_line(const manifest_source *s, json_t **object, leat_error *err)
{
    json_error_t why;
    *object =
        json_loadb(leat__buf_str(&s->csv.row), s->csv.row.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!*object) return row_error(s, why.text, err);
    if (json_is_object(*object)) return 0;
    json_decref(*object);
    *object = NULL;
    return row_error(s, "not a JSON object", err);
}

static int check_cells(const manifest_source *s, leat_error *err)
{
    if (s->csv.cells == s->column_count) return 0;
    char text[80];
    snprintf(text, sizeof text, "%u cells where the header has %u", s->csv.cells, s->column_count);
    return row_error(s, text, err);
}

static bool is_blank(char ch)
{
    return ch == ' ' || ch == '\t';
}

/* Removes the blanks around the text of a cell of the current row, which changes the row. */
static const char *trim(const char *cell)
{
    char *text = (char *)cell; /* a cell of s->csv.row */
    while (is_blank(*text)) text++;
    size_t n = strlen(text);
    while (n > 0 && is_blank(text[n - 1])) n--;
    if (text[n] != 0) text[n] = 0;
    return text;
}

/* ---- first pass ---- */

static void look_at_text(column *c, const char *cell, uint64_t line)
{
    const char *text = trim(cell);
    int64_t i;
    double f;
    unsigned before = c->saw;
    c->rows++;
    if (text[0] == 0) c->saw |= SAW_NOTHING;
    else if (leat__str_to_i64(text, &i)) c->saw |= SAW_INT;
    else if (text[strspn(text, "+-0123456789")] == 0) /* too long for int64: stored as text */
        c->saw |= SAW_TEXT;
    else if (leat__str_to_double(text, &f)) c->saw |= SAW_NUMBER;
    else c->saw |= SAW_TEXT;
    if (c->saw & ~before & SAW_INT) c->int_line = line;
    if (c->saw & ~before & SAW_TEXT) c->text_line = line;
}

static void look_at_json(column *c, const json_t *value)
{
    c->rows++;
    switch (json_typeof(value)) {
    case JSON_INTEGER:
    case JSON_TRUE:
    case JSON_FALSE: c->saw |= SAW_INT; break;
    case JSON_REAL: c->saw |= SAW_NUMBER; break;
    case JSON_STRING: c->saw |= SAW_TEXT; break;
    case JSON_NULL: c->saw |= SAW_NOTHING; break;
    default: c->saw |= SAW_OTHER;
    }
}

/* Adds the columns of an object, since the first line of a JSON file need not have all of them. */
static int look_at_object(manifest_source *s, json_t *object, leat_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        int i = find_column(s, key);
        if (i < 0) {
            LEAT_TRY(add_column(s, key, err));
            i = (int)s->column_count - 1;
        }
        look_at_json(&s->columns[i], value);
    }
    return 0;
}

static int keep_row(manifest_source *s, leat_error *err)
{
    uint64_t where[2] = {s->csv.line, s->csv.offset};
    leat__buf_clear(&s->row);
    leat__buf_append(&s->row, where, sizeof where);
    leat__buf_append(&s->row, s->csv.row.data, s->csv.row.len);
    if (leat__buf_status(&s->row) != 0) return no_memory(err);
    return leat__name_list_add(&s->rows, s->row.data, s->row.len, err);
}

/* Determines the column types. Skips bad rows, which the second pass counts. */
static int look_at_all(manifest_source *s, bool keep, leat_error *err)
{
    for (;;) {
        leat_error why = {0};
        bool end;
        int rc = next_row(s, &end, &why);
        if (rc == LEAT_EDATA && s->stream) {
            if (keep) return (*err = why, rc); /* a shuffle needs every row */
            s->base.total++;
            continue;
        }
        if (rc != 0) return (*err = why, rc);
        if (end) return 0;
        s->base.total++;
        if (keep) LEAT_TRY(keep_row(s, err));
        if (s->json) {
            json_t *object = NULL;
            if (parse_line(s, &object, &why) != 0) {
                if (s->bad.code == 0) s->bad = why;
                continue;
            }
            rc = look_at_object(s, object, err);
            json_decref(object);
            if (rc != 0) return rc;
        } else if (check_cells(s, NULL) == 0) {
            for (uint32_t i = 0; i < s->column_count; i++)
                look_at_text(&s->columns[i], leat__csv_cell(&s->csv, i), s->csv.line);
        }
    }
}

static leat_field_type type_of(const manifest_source *s, const column *c)
{
    bool everywhere = c->rows == s->base.total;
    if (c->saw & SAW_OTHER) return LEAT_FIELD_JSON;
    if ((c->saw & SAW_TEXT) && (c->saw & (SAW_INT | SAW_NUMBER)) && s->json) return LEAT_FIELD_JSON;
    if (c->saw & SAW_TEXT) return LEAT_FIELD_TEXT;
    if (c->saw == SAW_INT && everywhere) return LEAT_FIELD_INT;
    if (c->saw & (SAW_INT | SAW_NUMBER)) return LEAT_FIELD_FLOAT;
    return LEAT_FIELD_TEXT;
}

/* Chooses the label column. `labels` and `cls` are labels only if they have whole numbers: they may also be
 * lists or text. */
static int choose_label(const manifest_source *s)
{
    for (size_t i = 0; i < LEAT__SOURCE_LABEL_NAMES; i++) {
        const char *name = leat__source_label_names[i];
        int found = find_column(s, name);
        bool number = leat__str_eq(name, "labels") || leat__str_eq(name, "cls");
        if (found >= 0 && (!number || type_of(s, &s->columns[found]) == LEAT_FIELD_INT)) return found;
    }
    return -1;
}

/* Fails and names the columns that were found, which shows a missing header or another separator. */
static int fail_path(const manifest_source *s, leat_error *err)
{
    char found[200] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < s->column_count && n < sizeof found - 1; i++) {
        char shown[64];
        n += (size_t)snprintf(found + n, sizeof found - n, "%s\"%s\"", i > 0 ? ", " : "",
                              leat__str_shown(s->columns[i].name, shown, sizeof shown));
    }
    return leat__fail(err, LEAT_EDATA,
                      "%s has no column that names the image: path, image, image_path, file, file_name or "
                      "filename; %s %s%s",
                      s->shown, s->json ? "its keys are" : "the columns of its first line are", found,
                      n >= sizeof found ? " …" : "");
}

static int make_fields(manifest_source *s, leat_error *err)
{
    s->path_column = choose(s, path_names, LEAT_COUNT(path_names));
    s->label_column = choose_label(s);
    s->key_column = find_column(s, "key");
    if (s->path_column < 0 && s->column_count == 0 && s->bad.code != 0) {
        if (err) *err = s->bad; /* no line could be read */
        return s->bad.code;
    }
    if (s->path_column < 0) return fail_path(s, err);
    int n = leat__source_field(&s->base, "image", LEAT_FIELD_IMAGE, err);
    if (n < 0) return n;
    s->base.image_field = n;
    for (uint32_t i = 0; i < s->column_count; i++) {
        column *c = &s->columns[i];
        if ((int)i == s->path_column || (int)i == s->key_column) continue;
        if (c->name[0] == 0 && !s->json)
            return leat__fail(err, LEAT_EDATA, "%s: column %u has no name in the first line", s->shown,
                              i + 1);
        bool label = (int)i == s->label_column;
        n = leat__source_field(&s->base, label ? "label" : c->name, label ? LEAT_FIELD_INT : type_of(s, c),
                               err);
        if (n < 0) {
            leat__error_context(err, "%s", s->shown);
            return n;
        }
        c->field = n;
        if (label) s->base.label_field = n;
    }
    return 0;
}

/* ---- classes: names when the labels are not all whole numbers ---- */

static bool labels_are_names(const manifest_source *s)
{
    return s->label_column >= 0 && (s->columns[s->label_column].saw & SAW_TEXT);
}

/* Fails when only some labels are whole numbers. All would be taken as names, and each name would get a new
 * number. */
static int check_labels(const manifest_source *s, leat_error *err)
{
    if (s->label_column < 0 || s->json) return 0;
    const column *c = &s->columns[s->label_column];
    if (c->int_line == 0 || c->text_line == 0 || leat__str_eq(c->name, "class_name")) return 0;
    return leat__fail(err, LEAT_EDATA,
                      "%s: column %s has a whole number in line %llu and other text in line %llu: "
                      "correct one of them, or call the column class_name if all are names",
                      s->shown, c->name, (unsigned long long)c->int_line, (unsigned long long)c->text_line);
}

/* True for a string that is longer than it appears to C. */
static bool has_nul(const json_t *value)
{
    return json_is_string(value) && strlen(json_string_value(value)) < json_string_length(value);
}

static int collect_class(manifest_source *s, const char *name, leat_error *err)
{
    if (name[0] == '\0') return 0; /* an empty name is an error, reported with its row */
    if ((is_blank(name[0]) || is_blank(name[strlen(name) - 1])) && s->base.blank_labels++ == 0)
        s->base.blank_label_line = s->csv.line;
    int64_t n = leat__source_class(&s->base, name, err);
    if (n < 0) {
        leat__error_context(err, "%s:%llu", s->shown, (unsigned long long)s->csv.line);
        return (int)n;
    }
    /* names repeat: remove duplicates at intervals */
    if (s->base.class_count >= 65536 && (s->base.class_count & 65535) == 0)
        leat__source_classes_sort(&s->base);
    return 0;
}

static int collect_classes(manifest_source *s, leat_error *err)
{
    LEAT_TRY(start_reading(s, err));
    for (;;) {
        bool end;
        leat_error why = {0};
        int rc = next_row(s, &end, &why);
        if (rc == LEAT_EDATA) continue;
        if (rc != 0) return (*err = why, rc);
        if (end) break;
        if (s->json) {
            json_t *object = NULL;
            if (parse_line(s, &object, NULL) != 0) continue;
            const json_t *name = json_object_get(object, s->columns[s->label_column].name);
            if (json_is_string(name) && !has_nul(name)) rc = collect_class(s, json_string_value(name), err);
            json_decref(object);
            if (rc != 0) return rc;
        } else if (check_cells(s, NULL) == 0) {
            LEAT_TRY(collect_class(s, leat__csv_cell(&s->csv, (uint32_t)s->label_column), err));
        }
    }
    leat__source_classes_sort(&s->base);
    return 0;
}

/* ---- second pass ---- */

static int empty_label(const manifest_source *s, leat_error *err)
{
    char text[160];
    snprintf(text, sizeof text, "the label is empty (column %.60s): fill it in, or leave the row out",
             s->columns[s->label_column].name);
    return row_error(s, text, err);
}

static int set_label(manifest_source *s, leat__item *item, const char *text, leat_error *err)
{
    if (text[0] == '\0') return empty_label(s, err);
    item->absent = false;
    if (labels_are_names(s)) {
        item->i = leat__source_class_find(&s->base, text);
        return item->i >= 0 ? 0
                            : row_error(s, "a label that was not in the file when it was first read", err);
    }
    text = trim(text);
    if (text[0] == '\0') return empty_label(s, err);
    return leat__str_to_i64(text, &item->i) ? 0 : row_error(s, leat__str_i64_fault(text), err);
}

static int set_text(manifest_source *s, leat__records *run, leat__item *item, const char *text, size_t len,
                    leat_error *err)
{
    if (!leat__utf8_valid(text, len, NULL)) return row_error(s, "text that is not UTF-8", err);
    return leat__records_bytes(run, item, text, len) ? 0 : no_memory(err);
}

/* True when a double represents the number exactly, for whole numbers in a column with fractions or
 * missing cells. */
static bool float_holds(int64_t number)
{
    double f = (double)number;
    return f < 0x1p63 && (int64_t)f == number;
}

static int set_float(manifest_source *s, leat__item *item, const char *text, leat_error *err)
{
    int64_t whole;
    item->absent = false;
    item->f = NAN;
    if (text[0] == 0) return 0;
    if (!leat__str_to_double(text, &item->f)) return row_error(s, "not a number", err);
    if (leat__str_to_i64(text, &whole) && !float_holds(whole))
        return row_error(s, "a whole number too long for the column's floats", err);
    return 0;
}

static int set_cell(manifest_source *s, leat__records *run, leat__record *r, uint32_t i, const char *text,
                    leat_error *err)
{
    int field = s->columns[i].field;
    leat__item *item = &r->items[field];
    if ((int)i == s->label_column) return set_label(s, item, text, err);
    switch (s->base.fields[field].type) {
    case LEAT_FIELD_INT:
        item->absent = false;
        text = trim(text);
        return leat__str_to_i64(text, &item->i) ? 0 : row_error(s, leat__str_i64_fault(text), err);
    case LEAT_FIELD_FLOAT: return set_float(s, item, trim(text), err);
    default: return text[0] ? set_text(s, run, item, text, strlen(text), err) : 0;
    }
}

static int append_text(const char *text, size_t len, void *buf)
{
    return leat__buf_append(buf, text, len) == 0 ? 0 : -1;
}

static int set_value(leat__records *run, leat__item *item, const json_t *value, leat_error *err)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_INGEST, LEAT__CSV_ROW_MAX * 2);
    bool fits =
        json_dump_callback(value, append_text, &text, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) == 0 &&
        leat__records_bytes(run, item, text.data, text.len) != NULL;
    leat__buf_reset(&text);
    return fits ? 0 : no_memory(err);
}

static int set_json(manifest_source *s, leat__records *run, leat__record *r, uint32_t i, const json_t *value,
                    leat_error *err)
{
    int field = s->columns[i].field;
    leat__item *item = &r->items[field];
    bool whole = json_is_integer(value) || json_is_boolean(value);
    int64_t number = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    if ((int)i == s->label_column) {
        if (has_nul(value)) return row_error(s, "a label with \\u0000", err);
        if (json_is_string(value)) return set_label(s, item, json_string_value(value), err);
        if (value == NULL || json_is_null(value)) return empty_label(s, err);
        if (!whole || labels_are_names(s)) return row_error(s, "a label of another kind", err);
        item->absent = false;
        item->i = number;
        return 0;
    }
    switch (s->base.fields[field].type) {
    case LEAT_FIELD_INT:
        item->absent = false;
        item->i = number;
        return whole ? 0 : row_error(s, "not a whole number", err);
    case LEAT_FIELD_FLOAT:
        item->absent = false;
        item->f = whole ? (double)number : json_is_real(value) ? json_real_value(value) : NAN;
        if (whole && !float_holds(number))
            return row_error(s, "a whole number too long for the column's floats", err);
        return 0;
    case LEAT_FIELD_TEXT:
        if (!json_is_string(value)) return 0;
        return set_text(s, run, item, json_string_value(value), json_string_length(value), err);
    default: return value ? set_value(run, item, value, err) : 0;
    }
}

/* Returns the path without "./" at its start. */
static const char *plain_path(const char *path)
{
    while (path[0] == '.' && path[1] == '/') path += 2;
    return path;
}

/* Sets the key of the sample: that of its row, else its path. */
static int set_key(manifest_source *s, leat__records *run, leat__record *r, const char *path, const char *key,
                   leat_error *err)
{
    if (s->key_column >= 0) {
        if (key == NULL || key[0] == 0) return row_error(s, "no key", err);
        if (!leat__utf8_valid(key, strlen(key), NULL)) return row_error(s, "a key that is not UTF-8", err);
        return leat__records_key(run, r, key, strlen(key), err);
    }
    return leat__source_key(run, r, plain_path(path), err);
}

static int set_path(manifest_source *s, leat__records *run, leat__record *r, const char *path,
                    const char *key, leat_error *err)
{
    if (path == NULL || plain_path(path)[0] == 0) return row_error(s, "no path", err);
    LEAT_TRY(set_key(s, run, r, path, key, err));
    leat__buf full;
    leat__buf_init(&full, LEAT__MEM_INGEST, 1u << 20);
    const bool relative = path[0] != '/' && !leat__path_remote(path);
    if (relative) leat__buf_append(&full, s->folder.data, s->folder.len);
    if (relative && leat__path_scheme(s->path) >= LEAT__SCHEME_HTTP) (void)leat__url_fit(&full, path);
    else leat__buf_puts(&full, path);
    int rc = leat__buf_status(&full);
    if (rc == 0 && !leat__path_remote(path)) { /* servers take "../x" literally */
        (void)leat__buf_str(&full);
        leat__url_resolve(full.data);
        full.len = strlen(full.data);
    }
    r->path = rc == 0 ? leat__records_text(run, full.data, full.len) : LEAT__RECORDS_NOWHERE;
    leat__buf_reset(&full);
    r->path_field = (uint32_t)s->base.image_field;
    r->size_hint = 128u << 10; /* the size is unknown until the file is opened */
    return r->path == LEAT__RECORDS_NOWHERE ? no_memory(err) : 0;
}

static int fill_from_object(manifest_source *s, leat__records *run, leat__record *r, const json_t *object,
                            leat_error *err)
{
    const json_t *path = json_object_get(object, s->columns[s->path_column].name);
    const json_t *key = json_object_get(object, "key");
    char number[24];
    if (has_nul(path) || has_nul(key)) return row_error(s, "a path or key with \\u0000", err);
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(key));
    const char *text = json_is_integer(key) ? number : json_string_value(key);
    LEAT_TRY(set_path(s, run, r, json_string_value(path), text, err));
    for (uint32_t i = 0; i < s->column_count; i++)
        if (s->columns[i].field >= 0)
            LEAT_TRY(set_json(s, run, r, i, json_object_get(object, s->columns[i].name), err));
    return 0;
}

static int fill(manifest_source *s, leat__records *run, leat__record *r, leat_error *err)
{
    r->place = s->csv.line;
    if (s->json) {
        json_t *object = NULL;
        LEAT_TRY(parse_line(s, &object, err));
        int rc = fill_from_object(s, run, r, object, err);
        json_decref(object);
        return rc;
    }
    LEAT_TRY(check_cells(s, err));
    const char *key = s->key_column >= 0 ? leat__csv_cell(&s->csv, (uint32_t)s->key_column) : NULL;
    LEAT_TRY(set_path(s, run, r, leat__csv_cell(&s->csv, (uint32_t)s->path_column), key, err));
    for (uint32_t i = 0; i < s->column_count; i++)
        if (s->columns[i].field >= 0) LEAT_TRY(set_cell(s, run, r, i, leat__csv_cell(&s->csv, i), err));
    return 0;
}

/* Restores a stored row to the state of a row that was just read. */
static int recall_row(manifest_source *s, bool *end, leat_error *err)
{
    *end = s->given == s->rows.count;
    if (*end) return 0;
    uint64_t where[2];
    LEAT_TRY(leat__name_list_at(&s->rows, leat__perm_at(&s->perm, s->given++), &s->row, err));
    memcpy(where, s->row.data, sizeof where); /* stored with every row */
    leat__buf_clear(&s->csv.row);
    if (leat__buf_append(&s->csv.row, s->row.data + sizeof where, s->row.len - sizeof where) != 0)
        return no_memory(err);
    s->csv.line = where[0];
    s->csv.offset = where[1];
    s->csv.cells = 0;
    for (size_t at = 0; !s->json && at < s->csv.row.len && s->csv.cells < LEAT__CSV_CELLS_MAX;
         at += strlen(s->csv.row.data + at) + 1)
        s->csv.start[s->csv.cells++] = at;
    return 0;
}

static int manifest_next(leat__source *base, leat__records *run, leat__record *r, bool *end, leat_error *err)
{
    manifest_source *s = (manifest_source *)base;
    leat_error why = {0};
    int rc = s->shuffled ? recall_row(s, end, &why) : next_row(s, end, &why);
    if (rc == 0 && *end) return 0;
    if (rc == 0) rc = fill(s, run, r, &why);
    if (rc == LEAT_EDATA) {
        leat__records_fail(r, &why);
        if (r->key_size > 0) return 0;
        char line[32];
        leat__buf key;
        snprintf(line, sizeof line, ":%llu", (unsigned long long)s->csv.line);
        leat__buf_init(&key, LEAT__MEM_INGEST, 1u << 20);
        leat__buf_puts(&key, s->shown);
        leat__buf_puts(&key, line);
        rc = leat__records_key(run, r, leat__buf_str(&key), key.len, err);
        leat__buf_reset(&key);
        return rc;
    }
    if (rc != 0 && err) *err = why;
    return rc;
}

static void manifest_close(leat__source *base)
{
    manifest_source *s = (manifest_source *)base;
    stop_reading(s);
    for (uint32_t i = 0; i < s->column_count; i++) leat__free(s->columns[i].name);
    leat__free(s->columns);
    leat__free(s->shown);
    leat__buf_reset(&s->folder);
    leat__name_list_reset(&s->rows);
    leat__buf_reset(&s->row);
}

static const leat__source_ops ops = {
    .kind = "manifest",
    .next = manifest_next,
    .load = leat__source_load_file,
    .close = manifest_close,
};

static int learn(manifest_source *s, const leat_ingest_opts *opts, leat_error *err)
{
    LEAT_TRY(start_reading(s, err));
    for (uint32_t i = 0; !s->json && i < s->csv.cells; i++)
        LEAT_TRY(add_column(s, trim(leat__csv_cell(&s->csv, i)), err));
    if (opts->shuffle) LEAT_TRY(leat__name_list_open(&s->rows, opts->output, err));
    LEAT_TRY(look_at_all(s, opts->shuffle, err));
    LEAT_TRY(make_fields(s, err));
    LEAT_TRY(check_labels(s, err));
    if (labels_are_names(s)) LEAT_TRY(collect_classes(s, err));
    LEAT_TRY(start_reading(s, err));
    if (opts->shuffle && s->rows.count > 0) {
        LEAT_TRY(leat__name_list_close_adding(&s->rows, err));
        leat__perm_init(&s->perm, s->rows.count, opts->shuffle_seed, 0);
        s->shuffled = true;
    }
    return 0;
}

int leat__source_manifest(leat__source **out, const leat_ingest_opts *opts, leat_error *err)
{
    manifest_source *s = leat__source_new(&ops, sizeof *s, opts);
    if (!s) return leat__fail_nomem(err, sizeof *s, "a source");
    leat__source *base = &s->base;
    s->path = opts->sources[0];
    s->shown = leat__path_plain(s->path);
    const char *name = s->shown ? s->shown : "";
    s->json = leat__str_ends_nocase(name, ".jsonl") || leat__str_ends_nocase(name, ".ndjson");
    s->delimiter = leat__str_ends_nocase(name, ".tsv") ? '\t' : ',';
    leat__buf_init(&s->folder, LEAT__MEM_INGEST, 1u << 20);
    leat__buf_init(&s->row, LEAT__MEM_INGEST, LEAT__CSV_ROW_MAX + 64u);
    leat_error why = {0};
    size_t folder = leat__source_name_len(s->path);
    while (folder > 0 && s->path[folder - 1] != '/') folder--;
    int rc = leat__buf_append(&s->folder, s->path, folder);
    base->remote = leat__path_remote(s->path);
    if (rc != 0 || !s->shown) rc = no_memory(&why);
    else rc = learn(s, opts, &why);
    if (rc == 0) *out = base;
    else leat__source_close(&base);
    if (rc != 0 && err) *err = why;
    return rc;
}
