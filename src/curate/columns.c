/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing and writing of columns. Values of input keys are copied unchanged from their line.
 */
#include "curate/columns.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "curate/reasons.h"

enum { FIELD_TEXT = -1, FIELD_ID = -2 };

static int add_score(leat__columns *c, const char *name, leat_error *err)
{
    const char *known[256];
    int score = leat__str_eq(name, "lang") ? LEAT__COLUMN_LABEL : leat__score_find(name, strlen(name));
    if (score >= 0) {
        c->name[c->count] = name;
        c->score[c->count++] = score;
        return 0;
    }
    unsigned n = 0;
    for (; n < leat__score_total && n < 256; n++) known[n] = leat__scores[n].name;
    const char *near = leat__str_nearest(name, known, n);
    return leat__fail(err, LEAT_EINVAL, "`columns`: there is no score \"%s\"%s%s%s", name,
                      near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static void add_key(leat__columns *c, const char *name, const char *text_field, const char *id_field)
{
    int field = (int)c->wanted_count;
    if (leat__str_eq(name, text_field)) field = FIELD_TEXT;
    else if (leat__str_eq(name, id_field)) field = FIELD_ID;
    else c->wanted[c->wanted_count++] = (leat__jsonl_field){.name = name, .name_len = strlen(name)};
    c->name[c->count] = name;
    c->score[c->count] = -1;
    c->field[c->count++] = field;
}

/* When whole lines are written, a score replaces the value of an input key with its name. The text
 * and the id must not be replaced. */
static int replace_keys(leat__columns *c, const char *text_field, const char *id_field, leat_error *err)
{
    for (unsigned i = 0; i < c->count; i++) {
        const char *name = c->name[i];
        if (leat__str_eq(name, text_field) || leat__str_eq(name, id_field))
            return leat__fail(
                err, LEAT_EINVAL,
                "`columns`: +%s would replace \"%s\", the key of the text or the id (also name the "
                "keys to write)",
                name, name);
        c->field[i] = (int)c->wanted_count;
        c->wanted[c->wanted_count++] = (leat__jsonl_field){.name = name, .name_len = strlen(name)};
    }
    return 0;
}

int leat__columns_parse(leat__columns *c, const char *text, const char *text_field, const char *id_field,
                        leat_error *err)
{
    memset(c, 0, sizeof *c);
    c->names = leat__strdup(LEAT__MEM_CURATE, text);
    if (!c->names) return leat__fail_nomem(err, strlen(text), "columns");
    c->whole = true;
    for (char *name = c->names, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = 0;
        bool score = name[0] == '+';
        if (name[score] == 0) return leat__fail(err, LEAT_EINVAL, "`columns`: a name is empty");
        if (c->count == LEAT__COLUMNS_MAX)
            return leat__fail(err, LEAT_ELIMIT, "`columns`: more than %d", LEAT__COLUMNS_MAX);
        if (score) LEAT_TRY(add_score(c, name + 1, err));
        else add_key(c, name, text_field, id_field);
        c->whole = c->whole && score;
        for (unsigned i = 0; i + 1 < c->count; i++)
            if (leat__str_eq(c->name[i], c->name[c->count - 1]))
                return leat__fail(err, LEAT_EINVAL, "`columns`: \"%s\" appears twice", c->name[i]);
    }
    return c->whole ? replace_keys(c, text_field, id_field, err) : 0;
}

void leat__columns_reset(leat__columns *c)
{
    leat__free(c->names);
    memset(c, 0, sizeof *c);
}

bool leat__columns_scored(const leat__columns *c)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->score[i] >= 0) return true;
    return false;
}

bool leat__columns_lang(const leat__columns *c)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->score[i] >= (int)leat__score_total) return true;
    return false;
}

static void put_score(const leat__columns *c, unsigned i, const leat__counts *counts, leat__buf *out)
{
    if (c->score[i] == LEAT__COLUMN_LABEL) {
        const char *lang = counts->lang ? counts->lang : "";
        leat__buf_puts(out, "\"lang\":");
        leat__json_text(out, lang, strlen(lang));
        return;
    }
    leat__buf_printf(out, "\"%s\":", c->name[i]);
    leat__reason_score((unsigned)c->score[i], counts, out);
}

/* A part of the line to replace by the score of a column, or by the new text. */
typedef struct replaced {
    const uint8_t *from, *to;
    int column; /* -1 = the text */
} replaced;

/* Lists the parts of a whole line to replace, in the order of the line; returns their number. */
static unsigned find_replaced(const leat__columns *c, const leat__record_fields *r, bool text, replaced *out)
{
    unsigned n = 0;
    if (text) out[n++] = (replaced){r->text.raw - 1, r->text.raw + r->text.raw_len + 1, -1};
    for (unsigned i = 0; i < c->count; i++) {
        const leat__jsonl_field *f = &r->column[c->field[i]];
        if (f->kind == LEAT__JSONL_ABSENT) continue;
        unsigned at = n++;
        for (; at > 0 && out[at - 1].from > f->member; at--) out[at] = out[at - 1];
        out[at] = (replaced){f->member, f->member + f->member_len, (int)i};
    }
    return n;
}

/* Writes the whole line. A score replaces the value of its key, or is added before the closing brace. */
static void put_whole(const leat__columns *c, const leat__line *line, const leat__record_fields *r,
                      const char *now, size_t len, const leat__counts *counts, leat__buf *out)
{
    replaced parts[LEAT__COLUMNS_MAX + 1];
    const uint8_t *at = line->text, *end = line->text + line->len;
    while (end[-1] != '}') end--; /* the line is a JSON object */
    const unsigned n = find_replaced(c, r, now != NULL, parts);
    for (unsigned i = 0; i < n; i++) {
        leat__buf_append(out, at, (size_t)(parts[i].from - at));
        if (parts[i].column < 0) leat__json_text(out, now, len);
        else put_score(c, (unsigned)parts[i].column, counts, out);
        at = parts[i].to;
    }
    leat__buf_append(out, at, (size_t)(end - 1 - at));
    for (unsigned i = 0; i < c->count; i++) {
        if (r->column[c->field[i]].kind != LEAT__JSONL_ABSENT) continue;
        leat__buf_putc(out, ',');
        put_score(c, i, counts, out);
    }
    leat__buf_puts(out, "}\n");
}

void leat__columns_put(leat__columns *c, const leat__line *line, const leat__record_fields *r,
                       const char *now, size_t len, const leat__counts *counts, leat__buf *out)
{
    const char *before = "{";
    if (c->whole) {
        put_whole(c, line, r, now, len, counts, out);
        return;
    }
    for (unsigned i = 0; i < c->count; i++) {
        const leat__jsonl_field *f = c->field[i] == FIELD_TEXT ? &r->text
                                     : c->field[i] == FIELD_ID ? &r->id
                                                               : &r->column[c->field[i]];
        if (c->score[i] < 0 && f->kind == LEAT__JSONL_ABSENT) continue;
        if (!atomic_load_explicit(
                &c->found[i],
                memory_order_relaxed)) /* written only once, because workers share the cache line */
            atomic_store_explicit(&c->found[i], true, memory_order_relaxed);
        leat__buf_puts(out, before);
        before = ",";
        if (c->score[i] >= 0) {
            put_score(c, i, counts, out);
        } else if (now && c->field[i] == FIELD_TEXT) {
            leat__buf_append(out, f->member, (size_t)(f->raw - 1 - f->member));
            leat__json_text(out, now, len);
        } else {
            leat__buf_append(out, f->member, f->member_len);
        }
    }
    leat__buf_puts(out, before[0] == '{' ? "{}\n" : "}\n");
}

const char *leat__columns_missing(leat__columns *c, unsigned *i)
{
    while (!c->whole && *i < c->count) {
        const unsigned at = (*i)++;
        const bool found = atomic_load_explicit(&c->found[at], memory_order_relaxed);
        if (c->score[at] < 0 && !found) return c->name[at];
    }
    return NULL;
}
