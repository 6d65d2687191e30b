/* SPDX-License-Identifier: Apache-2.0
 *
 * See view_query.h. Conditions are applied one at a time to a bit per row, so that only one column must be
 * loaded at a time.
 */
#include "view/view_query.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"

#define CONDITIONS_MAX 32u
#define VALUES_MAX 1024u

static bool get_bit(const uint8_t *bits, uint32_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

static void clear_bit(uint8_t *bits, uint32_t i)
{
    bits[i >> 3] &= (uint8_t) ~(1u << (i & 7));
}

/* ---- conditions ---- */

static uint8_t lower(char c)
{
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* True when the text contains `part`, which is in lower case. */
static bool contains(const char *text, size_t len, const char *part, size_t part_len)
{
    if (part_len == 0) return true;
    for (size_t i = 0; i + part_len <= len; i++) {
        size_t k = 0;
        while (k < part_len && lower(text[i + k]) == (uint8_t)part[k]) k++;
        if (k == part_len) return true;
    }
    return false;
}

static bool is_text_in(const char *text, size_t len, const json_t *values)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *v = json_array_get(values, i);
        if (json_is_string(v) && json_string_length(v) == len && memcmp(json_string_value(v), text, len) == 0)
            return true;
    }
    return false;
}

static int keep_texts(leat__view_data *d, const leat__view_column *c, const json_t *cond, uint8_t *keep,
                      leat_error *err)
{
    char part[4096];
    const json_t *has = json_object_get(cond, "has"), *in = json_object_get(cond, "in");
    const size_t len = json_string_length(has);
    if (len > sizeof part || (!json_is_string(has) && !json_is_array(in)))
        return leat__fail(err, LEAT_EINVAL, "a condition on the text \"%s\" needs \"has\" or \"in\"",
                          c->name);
    for (size_t i = 0; i < len; i++) part[i] = (char)lower(json_string_value(has)[i]);
    for (uint32_t i = 0; i < d->rows; i++) {
        if (!get_bit(keep, i)) continue;
        const char *text = c->text + c->start[i];
        const size_t size = (size_t)(c->start[i + 1] - c->start[i]);
        if (json_is_string(has) ? !contains(text, size, part, len) : !is_text_in(text, size, in))
            clear_bit(keep, i);
    }
    return 0;
}

typedef struct number_cond {
    double min, max;
    int bit; /* -1 = not tested */
    double in[VALUES_MAX];
    size_t in_count;
    bool any; /* there is no `in` */
} number_cond;

static bool is_number_ok(const number_cond *n, double v)
{
    if (!(v >= n->min && v <= n->max)) return false; /* also for NaN */
    if (n->bit >= 0) return fabs(v) < 9e18 && ((uint64_t)(int64_t)v >> n->bit & 1);
    for (size_t i = 0; i < n->in_count; i++)
        if (n->in[i] == v) return true;
    return n->any;
}

static int keep_numbers(leat__view_data *d, const leat__view_column *c, const json_t *cond, uint8_t *keep,
                        leat_error *err)
{
    static const double far = INFINITY;
    const json_t *min = json_object_get(cond, "min"), *max = json_object_get(cond, "max"),
                 *in = json_object_get(cond, "in"), *bit = json_object_get(cond, "bit");
    number_cond n = {.min = json_is_number(min) ? json_number_value(min) : -far,
                     .max = json_is_number(max) ? json_number_value(max) : far,
                     .bit = -1,
                     .any = in == NULL};
    if (!json_is_number(min) && !json_is_number(max) && !json_is_array(in) && !json_is_integer(bit))
        return leat__fail(err, LEAT_EINVAL,
                          "a condition on the number \"%s\" needs \"min\", \"max\", \"in\" "
                          "or \"bit\"",
                          c->name);
    if (bit && (!c->whole || json_integer_value(bit) < 0 || json_integer_value(bit) > 52))
        return leat__fail(err, LEAT_EINVAL, "\"%s\": \"bit\" must be 0 to 52, of a column of whole numbers",
                          c->name);
    if (bit) n.bit = (int)json_integer_value(bit);
    if (json_array_size(in) > VALUES_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %u values", VALUES_MAX);
    for (; n.in_count < json_array_size(in); n.in_count++)
        n.in[n.in_count] = json_number_value(json_array_get(in, n.in_count));
    for (uint32_t i = 0; i < d->rows; i++)
        if (get_bit(keep, i) && !is_number_ok(&n, c->number[i])) clear_bit(keep, i);
    return 0;
}

static int keep_rows(leat__view_data *d, const json_t *cond, const uint8_t *selected, uint8_t *keep,
                     leat_error *err)
{
    const json_t *chosen = json_object_get(cond, "selected");
    if (json_is_boolean(chosen)) {
        const uint8_t flip = json_is_true(chosen) ? 0 : 255;
        for (size_t i = 0; i < ((size_t)d->rows + 7) / 8; i++) keep[i] &= (uint8_t)(selected[i] ^ flip);
        return 0;
    }
    const char *name = json_string_value(json_object_get(cond, "column"));
    leat__view_column *c = leat__view_find(d, name);
    if (!c) return leat__fail(err, LEAT_EINVAL, "there is no column \"%s\"", name ? name : "");
    if (c->kind == LEAT__VIEW_VECTOR)
        return leat__fail(err, LEAT_EINVAL, "\"%s\": a column of vectors has no conditions", c->name);
    LEAT_TRY(leat__view_load(d, c, err));
    if (c->kind == LEAT__VIEW_TEXT) return keep_texts(d, c, cond, keep, err);
    return keep_numbers(d, c, cond, keep, err);
}

/* ---- rows ---- */

void leat__view_rows_reset(leat__view_data *d, leat__view_rows *rows)
{
    leat__free(rows->row);
    leat__view_release(d, rows->bytes);
    memset(rows, 0, sizeof *rows);
}

static int collect(leat__view_data *d, const uint8_t *keep, leat__view_rows *out, leat_error *err)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->rows; i++) count += get_bit(keep, i);
    const uint64_t bytes = (uint64_t)LEAT_MAX(count, 1u) * sizeof *out->row;
    LEAT_TRY(leat__view_charge(d, bytes, NULL, err));
    out->bytes = bytes;
    out->row = leat__alloc(LEAT__MEM_MISC, bytes);
    if (!out->row) return leat__fail_nomem(err, bytes, "rows");
    for (uint32_t i = 0; i < d->rows; i++)
        if (get_bit(keep, i)) out->row[out->count++] = i;
    return 0;
}

static double value_of(const leat__view_column *c, uint32_t row)
{
    return c->kind == LEAT__VIEW_NUMBER ? c->number[row] : c->rank[row];
}

/* Sorts rows by a column, which must be loaded. */
static int order_by(leat__view_data *d, const leat__view_column *c, bool descending, leat__view_rows *rows,
                    leat_error *err)
{
    const uint64_t bytes = (uint64_t)LEAT_MAX(rows->count, 1u) * sizeof(leat__view_pair);
    LEAT_TRY(leat__view_charge(d, 2 * bytes, c, err));
    leat__view_pair *a = leat__alloc(LEAT__MEM_MISC, bytes), *b = leat__alloc(LEAT__MEM_MISC, bytes);
    int rc = a && b ? 0 : leat__fail_nomem(err, 2 * bytes, "sorting");
    for (uint32_t i = 0; i < rows->count && rc == 0; i++)
        a[i] = (leat__view_pair){leat__view_key(value_of(c, rows->row[i]), descending), rows->row[i]};
    const leat__view_pair *sorted = rc == 0 ? leat__view_sort(a, b, rows->count) : NULL;
    for (uint32_t i = 0; i < rows->count && rc == 0; i++) rows->row[i] = sorted[i].row;
    leat__free(a);
    leat__free(b);
    leat__view_release(d, 2 * bytes);
    return rc;
}

static int sort_rows(leat__view_data *d, const json_t *query, leat__view_rows *rows, leat_error *err)
{
    const json_t *sort = json_object_get(query, "sort");
    if (!sort || json_is_null(sort)) return 0;
    leat__view_column *c = leat__view_find(d, json_string_value(sort));
    if (!c || c->kind == LEAT__VIEW_VECTOR)
        return leat__fail(err, LEAT_EINVAL, "cannot sort by \"%s\"",
                          json_is_string(sort) ? json_string_value(sort) : "");
    LEAT_TRY(leat__view_load_order(d, c, err));
    return order_by(d, c, json_is_true(json_object_get(query, "desc")), rows, err);
}

static int run(leat__view_data *d, const json_t *query, const uint8_t *selected, uint8_t *keep,
               leat__view_rows *out, leat_error *err)
{
    const json_t *where = json_object_get(query, "where");
    if (!json_is_object(query) || (where && !json_is_array(where)))
        return leat__fail(err, LEAT_EINVAL, "not a query");
    if (json_array_size(where) > CONDITIONS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "more than %u conditions", CONDITIONS_MAX);
    for (size_t i = 0; i < json_array_size(where); i++)
        LEAT_TRY(keep_rows(d, json_array_get(where, i), selected, keep, err));
    LEAT_TRY(collect(d, keep, out, err));
    return sort_rows(d, query, out, err);
}

int leat__view_query(leat__view_data *d, const char *query, const uint8_t *selected, leat__view_rows *out,
                     leat_error *err)
{
    const size_t bytes = ((size_t)d->rows + 7) / 8;
    memset(out, 0, sizeof *out);
    json_t *root = json_loads(query && query[0] ? query : "{}", 0, NULL);
    uint8_t *keep = leat__alloc(LEAT__MEM_MISC, bytes);
    int rc = keep ? 0 : leat__fail_nomem(err, bytes, "rows");
    if (rc == 0) memset(keep, 255, bytes);
    if (rc == 0) rc = run(d, root, selected, keep, out, err);
    if (rc != 0) leat__view_rows_reset(d, out);
    leat__free(keep);
    json_decref(root);
    return rc;
}

bool leat__view_query_selects(const char *query)
{
    return query && strstr(query, "\"selected\"") != NULL;
}

/* ---- groups ---- */

static bool same(const leat__view_column *c, uint32_t a, uint32_t b)
{
    return value_of(c, a) == value_of(c, b);
}

/* Finds the groups and returns their number; start NULL only counts them. */
static uint32_t walk_groups(const leat__view_column *c, const leat__view_rows *rows, uint32_t *start,
                            uint32_t *size)
{
    uint32_t groups = 0;
    for (uint32_t i = 0, next; i < rows->count; i = next) {
        const double v = value_of(c, rows->row[i]);
        for (next = i + 1; next < rows->count && same(c, rows->row[i], rows->row[next]); next++) {
        }
        if (isnan(v) || v < 0 || next - i < 2) continue;
        if (start) {
            start[groups] = i;
            size[groups] = next - i;
        }
        groups++;
    }
    return groups;
}

int leat__view_group(leat__view_data *d, leat__view_column *c, leat__view_rows *rows, leat__view_groups *out,
                     leat_error *err)
{
    memset(out, 0, sizeof *out);
    if (c->kind == LEAT__VIEW_VECTOR)
        return leat__fail(err, LEAT_EINVAL, "\"%s\": a column of vectors has no groups", c->name);
    LEAT_TRY(leat__view_load_order(d, c, err));
    LEAT_TRY(order_by(d, c, false, rows, err));
    out->count = walk_groups(c, rows, NULL, NULL);
    out->bytes = 2 * (uint64_t)LEAT_MAX(out->count, 1u) * sizeof *out->start;
    int rc = leat__view_charge(d, out->bytes, c, err);
    if (rc != 0) out->bytes = 0;
    if (rc == 0) out->start = leat__alloc(LEAT__MEM_MISC, out->bytes);
    if (rc == 0 && !out->start) rc = leat__fail_nomem(err, out->bytes, "groups");
    if (rc != 0) {
        leat__view_groups_reset(d, out);
        return rc;
    }
    out->size = out->start + LEAT_MAX(out->count, 1u);
    walk_groups(c, rows, out->start, out->size);
    return 0;
}

void leat__view_groups_reset(leat__view_data *d, leat__view_groups *g)
{
    leat__free(g->start);
    leat__view_release(d, g->bytes);
    memset(g, 0, sizeof *g);
}
