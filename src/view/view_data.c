/* SPDX-License-Identifier: Apache-2.0
 *
 * See view_data.h: sources, the list of columns, and which columns are kept in memory.
 */
#include "view/view_data.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/selection.h"

#define NAMES_MAX 4096u
#define BITS_MAX 53u /* bits that a double represents exactly */

/* ---- the list of columns ---- */

leat__view_column *leat__view_find(const leat__view_data *d, const char *name)
{
    for (uint32_t i = 0; name && i < d->column_count; i++)
        if (strcmp(d->column[i].name, name) == 0) return &d->column[i];
    return NULL;
}

/* Sets the name: "width", or "photos.check.width" when another source already uses "width". */
static int name_column(leat__view_data *d, leat__view_column *c, const char *name, leat_error *err)
{
    leat__buf text;
    leat__buf_init(&text, LEAT__MEM_MISC, 1u << 20);
    leat__buf_puts(&text, name);
    for (unsigned n = 1; leat__buf_status(&text) == 0 && leat__view_find(d, leat__buf_str(&text)); n++) {
        leat__buf_clear(&text);
        leat__buf_printf(&text, "%s.%s", d->source[c->source].name, name);
        if (n > 1) leat__buf_printf(&text, " (%u)", n);
    }
    int rc = leat__buf_status(&text);
    c->name = rc == 0 ? leat__strdup(LEAT__MEM_MISC, leat__buf_str(&text)) : NULL;
    leat__buf_reset(&text);
    return c->name ? 0 : leat__fail_nomem(err, strlen(name), "a name");
}

static int add_column(leat__view_data *d, leat__view_column c, const char *name, leat__view_column **added,
                      leat_error *err)
{
    if (added) *added = NULL;
    if (d->column_count == LEAT__VIEW_COLUMNS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %d columns", LEAT__VIEW_COLUMNS_MAX);
    LEAT_TRY(name_column(d, &c, name, err));
    d->column[d->column_count] = c;
    if (added) *added = &d->column[d->column_count];
    d->column_count++;
    return 0;
}

static int set_names(leat__view_column *c, const char *const *names, uint64_t count, leat_error *err)
{
    if (count == 0 || count > NAMES_MAX) return 0;
    c->names = LEAT_NEW_ARRAY(MISC, char *, count);
    if (!c->names) return leat__fail_nomem(err, count * sizeof *c->names, "names");
    for (c->name_count = 0; c->name_count < count; c->name_count++) {
        c->names[c->name_count] = leat__strdup(LEAT__MEM_MISC, names[c->name_count]);
        if (!c->names[c->name_count]) return leat__fail_nomem(err, strlen(names[c->name_count]), "names");
    }
    return 0;
}

/* Reads the names of the bits of "issues", which leat check stores with them. */
static int name_bits(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    const void *blob;
    size_t size;
    const char *names[BITS_MAX];
    uint32_t count = 0;
    leat_pack *pack = d->source[c->source].pack;
    if (strcmp(leat_pack_field(pack, c->field)->name, "issues") != 0) return 0;
    if (leat_pack_blob(pack, "issues", &blob, &size, NULL) != 0) return 0;
    json_t *root = json_loadb(blob, size, 0, NULL);
    while (count < LEAT_MIN(json_array_size(root), BITS_MAX)) {
        names[count] = json_string_value(json_object_get(json_array_get(root, count), "name"));
        if (!names[count++]) {
            count = 0;
            break;
        }
    }
    int rc = set_names(c, names, count, err);
    c->bits = c->name_count > 0;
    json_decref(root);
    return rc;
}

static bool is_float(uint32_t dtype)
{
    return dtype == LEAT_DTYPE_F16 || dtype == LEAT_DTYPE_BF16 || dtype == LEAT_DTYPE_F32 ||
           dtype == LEAT_DTYPE_F64;
}

static int add_field(leat__view_data *d, uint32_t source, uint32_t field, leat_error *err)
{
    leat_pack *pack = d->source[source].pack;
    const leat_field *f = leat_pack_field(pack, field);
    leat__view_column c = {.source = source, .field = field}, *added;
    const char *const *names;
    uint64_t count;
    if (f->type == LEAT_FIELD_INT || f->type == LEAT_FIELD_FLOAT) {
        c.kind = LEAT__VIEW_NUMBER;
        c.whole = f->type == LEAT_FIELD_INT;
    } else if (f->type == LEAT_FIELD_TEXT || f->type == LEAT_FIELD_JSON) {
        c.kind = LEAT__VIEW_TEXT;
    } else if (f->type == LEAT_FIELD_ARRAY && f->ndim == 1 && is_float(f->dtype) && f->shape[0] > 1 &&
               f->shape[0] <= 65536) {
        c.kind = LEAT__VIEW_VECTOR;
        c.dim = (uint32_t)f->shape[0];
        c.dtype = f->dtype;
    } else {
        return 0;
    }
    LEAT_TRY(add_column(d, c, f->name, &added, err));
    if (!c.whole) return 0;
    LEAT_TRY(leat_pack_classes(pack, field, &names, &count, err));
    LEAT_TRY(set_names(added, names, count, err));
    return added->names ? 0 : name_bits(d, added, err);
}

static int list_columns(leat__view_data *d, leat_error *err)
{
    static const struct {
        const char *name;
        leat__view_origin origin;
    } facts[] = {{"width", LEAT__VIEW_WIDTH}, {"height", LEAT__VIEW_HEIGHT}, {"bytes", LEAT__VIEW_BYTES}};
    d->column = LEAT_NEW_ARRAY(MISC, leat__view_column, LEAT__VIEW_COLUMNS_MAX);
    if (!d->column) return leat__fail_nomem(err, LEAT__VIEW_COLUMNS_MAX * sizeof *d->column, "columns");
    const leat__view_column key = {.kind = LEAT__VIEW_TEXT, .origin = LEAT__VIEW_KEY};
    LEAT_TRY(add_column(d, key, "key", NULL, err));
    for (size_t i = 0; i < LEAT_COUNT(facts); i++) {
        const leat__view_column c = {
            .kind = LEAT__VIEW_NUMBER, .origin = facts[i].origin, .field = d->image, .whole = true};
        LEAT_TRY(add_column(d, c, facts[i].name, NULL, err));
    }
    for (uint32_t s = 0; s < d->source_count; s++)
        for (uint32_t f = 0; f < leat_pack_field_count(d->source[s].pack); f++)
            LEAT_TRY(add_field(d, s, f, err));
    return 0;
}

/* ---- sources ---- */

static int open_source(leat__view_data *d, const char *path, leat_error *err)
{
    if (d->source_count == LEAT__VIEW_SOURCES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %d packs of columns", LEAT__VIEW_SOURCES_MAX - 1);
    leat__view_source *s = &d->source[d->source_count++];
    LEAT_TRY(leat_pack_open(&s->pack, path, NULL, err));
    LEAT_TRY(leat_sample_open(&s->sample, s->pack, err));
    size_t len;
    const char *stem = leat__path_stem(path, &len);
    s->name = leat__strndup(LEAT__MEM_MISC, stem, len);
    return s->name ? 0 : leat__fail_nomem(err, len, "a name");
}

static int find_images(leat__view_data *d, const char *field, leat_error *err)
{
    leat_pack *pack = d->source[0].pack;
    for (d->image = 0; d->image < leat_pack_field_count(pack); d->image++) {
        const leat_field *f = leat_pack_field(pack, d->image);
        if (f->type == LEAT_FIELD_IMAGE && (!field || strcmp(f->name, field) == 0)) return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "%s: has no image field%s%s", leat_pack_path(pack), field ? " " : "",
                      field ? field : "");
}

int leat__view_data_open(leat__view_data *d, const char *pack, const char *const *with, uint32_t with_count,
                         const char *field, uint64_t budget, leat_error *err)
{
    int rc;
    memset(d, 0, sizeof *d);
    d->budget = budget;
    LEAT_GO(rc, out, open_source(d, pack, err));
    LEAT_GO(rc, out, find_images(d, field, err));
    if (!leat__u64_to_u32(leat_pack_count(d->source[0].pack), &d->rows) || d->rows == UINT32_MAX)
        LEAT_GO(rc, out,
                leat__fail(err, LEAT_ELIMIT, "%s: has too many samples for a view, which shows at most %u",
                           pack, UINT32_MAX - 1));
    if (d->rows == 0) LEAT_GO(rc, out, leat__fail(err, LEAT_EDATA, "%s: has no samples", pack));
    for (uint32_t i = 0; i < with_count; i++) {
        LEAT_GO(rc, out, open_source(d, with[i], err));
        leat__view_source *s = &d->source[d->source_count - 1];
        LEAT_GO(rc, out, leat__pack_bind(s->pack, d->source[0].pack, &s->first, err));
    }
    rc = list_columns(d, err);
out:
    if (rc != 0) leat__view_data_close(d);
    return rc;
}

/* ---- what is held ---- */

static void drop(leat__view_data *d, leat__view_column *c)
{
    leat__free(c->number);
    leat__free(c->start);
    leat__free(c->text);
    leat__free(c->rank);
    leat__free(c->vector);
    leat__free(c->norm);
    leat__free(c->plane);
    c->number = NULL;
    c->start = NULL;
    c->text = NULL;
    c->rank = NULL;
    c->vector = NULL;
    c->norm = NULL;
    c->plane = NULL;
    d->held -= c->held;
    c->held = 0;
}

void leat__view_data_close(leat__view_data *d)
{
    for (uint32_t i = 0; i < d->column_count; i++) {
        leat__view_column *c = &d->column[i];
        drop(d, c);
        for (uint32_t n = 0; n < c->name_count; n++) leat__free(c->names[n]);
        leat__free(c->names);
        leat__free(c->name);
    }
    leat__free(d->column);
    for (uint32_t i = 0; i < d->source_count; i++) {
        leat_sample_close(&d->source[i].sample);
        leat_pack_close(&d->source[i].pack);
        leat__free(d->source[i].name);
    }
    memset(d, 0, sizeof *d);
}

int leat__view_charge(leat__view_data *d, uint64_t bytes, const leat__view_column *keep, leat_error *err)
{
    while (d->held + bytes > d->budget) {
        leat__view_column *oldest = NULL;
        for (uint32_t i = 0; i < d->column_count; i++) {
            leat__view_column *c = &d->column[i];
            if (c->held > 0 && c != keep && (!oldest || c->used < oldest->used)) oldest = c;
        }
        if (!oldest)
            return leat__fail(err, LEAT_EBUDGET,
                              "the view needs %llu bytes of memory for this request, but `memory` is %llu",
                              (unsigned long long)(d->held + bytes), (unsigned long long)d->budget);
        drop(d, oldest);
    }
    d->held += bytes;
    return 0;
}

void leat__view_release(leat__view_data *d, uint64_t bytes)
{
    d->held -= bytes;
}

int leat__view_load(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    c->used = ++d->clock;
    return c->held > 0 ? 0 : leat__view_read(d, c, err);
}

/* ---- order of texts ---- */

static int compare_text(const leat__view_column *c, uint32_t a, uint32_t b)
{
    const size_t x = (size_t)(c->start[a + 1] - c->start[a]), y = (size_t)(c->start[b + 1] - c->start[b]);
    const int order = memcmp(c->text + c->start[a], c->text + c->start[b], LEAT_MIN(x, y));
    return order ? order : (x > y) - (x < y);
}

static int by_text(const void *a, const void *b, void *column)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    const int order = compare_text(column, x, y);
    return order ? order : (x > y) - (x < y);
}

static int rank_text(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    const uint64_t bytes = (uint64_t)d->rows * sizeof *c->rank;
    LEAT_TRY(leat__view_charge(d, 2 * bytes, c, err)); /* twice: sorting needs a second array */
    uint32_t *order = leat__alloc_array(LEAT__MEM_MISC, d->rows, sizeof *order);
    uint32_t *rank = leat__alloc_array(LEAT__MEM_MISC, d->rows, sizeof *rank);
    if (!order || !rank) {
        leat__free(order);
        leat__free(rank);
        leat__view_release(d, 2 * bytes);
        return leat__fail_nomem(err, 2 * bytes, "the order of a column");
    }
    for (uint32_t i = 0; i < d->rows; i++) order[i] = i;
    qsort_r(order, d->rows, sizeof *order, by_text, c);
    c->ranks = d->rows > 0;
    for (uint32_t i = 0; i < d->rows; i++) {
        if (i > 0 && compare_text(c, order[i - 1], order[i]) != 0) c->ranks++;
        rank[order[i]] = c->ranks - 1;
    }
    leat__free(order);
    leat__view_release(d, bytes);
    c->rank = rank;
    c->held += bytes;
    return 0;
}

int leat__view_load_order(leat__view_data *d, leat__view_column *c, leat_error *err)
{
    LEAT_TRY(leat__view_load(d, c, err));
    return c->kind == LEAT__VIEW_TEXT && !c->rank ? rank_text(d, c, err) : 0;
}
