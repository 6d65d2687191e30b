/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading evaluation sets.
 */
#include "curate/eval_table.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "curate/text_line.h"
#include "text/sketch.h"

#define MAX_LINE (UINT64_C(64) << 20)

typedef struct reading {
    leat__eval_table *t;
    leat__text_files files;
    leat__line_names names;
    leat__jsonl_field field[LEAT__EVAL_FIELDS + 1]; /* the last one is the id */
    size_t fields;
    bool seen[LEAT__EVAL_FIELDS]; /* in some line, as a string */
    leat__sketcher sketcher;
    uint64_t memory;
} reading;

static int split_fields(reading *r, const char *names, const char *id_field, leat_error *err)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ",");
        if (r->fields == LEAT__EVAL_FIELDS)
            return leat__fail(err, LEAT_EINVAL, "more than %d fields", LEAT__EVAL_FIELDS);
        if (n > 0) r->field[r->fields++] = (leat__jsonl_field){.name = p, .name_len = n};
        p += n + (p[n] == ',');
    }
    if (r->fields == 0) return leat__fail(err, LEAT_EINVAL, "no field of the evaluation sets was named");
    r->field[r->fields] = (leat__jsonl_field){.name = id_field, .name_len = strlen(id_field)};
    return 0;
}

static uint64_t place(const leat__eval_table *t, uint64_t hash)
{
    uint64_t i = hash & (t->slots - 1);
    while (t->slot[i].text != 0 && t->slot[i].hash != hash) i = (i + 1) & (t->slots - 1);
    return i;
}

static int grow(reading *r, leat_error *err)
{
    leat__eval_table *t = r->t, old = *t;
    uint64_t slots = t->slots ? 2 * t->slots : 4096;
    if (slots * sizeof *t->slot > r->memory)
        return leat__fail(err, LEAT_EBUDGET,
                          "the n-grams of the evaluation sets need %llu MiB (raise `memory`)",
                          (unsigned long long)(4 * slots * sizeof *t->slot >> 20) + 1);
    leat__eval_slot *slot = leat__zalloc_array(LEAT__MEM_CURATE, slots, sizeof *slot);
    if (!slot) return leat__fail_nomem(err, slots * sizeof *slot, "n-grams");
    t->slot = slot;
    t->slots = slots;
    for (uint64_t i = 0; i < old.slots; i++)
        if (old.slot[i].text != 0) t->slot[place(t, old.slot[i].hash)] = old.slot[i];
    leat__free(old.slot);
    return 0;
}

/* Adds the n-grams of one string. Sets *any when there are some. */
static int add_string(reading *r, const leat__jsonl_field *field, bool *any, leat_error *err)
{
    leat__eval_table *t = r->t;
    uint64_t lone = 0;
    uint32_t n;
    LEAT_TRY(leat__sketcher_reserve(&r->sketcher, field->raw_len, err));
    size_t len = leat__jsonl_text(field, r->sketcher.text, &lone);
    LEAT_TRY(leat__sketcher_shingles(&r->sketcher, len, &n, err));
    if (r->sketcher.word_count < r->sketcher.words) return 0;
    *any = true;
    for (uint32_t i = 0; i < n; i++) {
        if (t->used >= t->slots / 2) LEAT_TRY(grow(r, err));
        leat__eval_slot *s = &t->slot[place(t, r->sketcher.shingle[i])];
        if (s->text != 0) continue;
        *s = (leat__eval_slot){r->sketcher.shingle[i], t->texts + 1};
        t->used++;
    }
    return 0;
}

static int add_line(reading *r, const leat__text_chunk *c, const leat__line *line, leat_error *err)
{
    leat__eval_table *t = r->t;
    size_t at, strings = 0;
    bool any = false;
    if (leat__jsonl_read(line->text, line->len, r->field, r->fields + 1, &at) != NULL) {
        t->bad++;
        return 0;
    }
    for (size_t i = 0; i < r->fields; i++) {
        if (r->field[i].kind != LEAT__JSONL_STRING) continue;
        strings++;
        r->seen[i] = true;
        LEAT_TRY(add_string(r, &r->field[i], &any, err));
    }
    t->bad += strings == 0;
    if (strings == 0) return 0;
    leat__record_fields f = {.id = r->field[r->fields]};
    leat__line_id_json(&r->names, c, line, &f, &t->ids);
    uint64_t end = t->ids.len;
    leat__buf_append(&t->ends, &end, sizeof end);
    if (t->ids.status != 0 || t->ends.status != 0)
        return leat__fail_nomem(err, t->ids.len, "the ids of evaluation sets");
    t->texts++;
    t->texts_short += !any;
    return t->texts < LEAT__EVAL_NONE - 1 ? 0 : leat__fail(err, LEAT_ELIMIT, "too many evaluation texts");
}

static int read_all(reading *r, leat_error *err)
{
    int rc = 0;
    leat__text_chunk *c = leat__text_chunk_new();
    if (!c) return leat__fail_nomem(err, sizeof *c, "a chunk");
    for (bool end = false; !end && rc == 0;) {
        leat__line line;
        size_t at = 0;
        leat__text_chunk_clear(c);
        rc = leat__text_files_read(&r->files, c, &end, err);
        if (rc != 0 || end) break;
        r->t->bad += c->too_long > 0;
        while (rc == 0 && leat__text_chunk_next(c, &at, &line)) rc = add_line(r, c, &line, err);
    }
    leat__text_chunk_free(c);
    return rc;
}

int leat__eval_table_read(leat__eval_table *t, const char *const *inputs, uint32_t count, const char *fields,
                          const char *id_field, uint32_t ngram, uint64_t memory, leat_error *err)
{
    reading r = {.t = t, .memory = memory};
    int rc;
    memset(t, 0, sizeof *t);
    leat__buf_init(&t->ids, LEAT__MEM_CURATE, (size_t)1 << 32);
    leat__buf_init(&t->ends, LEAT__MEM_CURATE, (size_t)1 << 36);
    LEAT_GO(rc, out, split_fields(&r, fields, id_field, err));
    LEAT_GO(rc, out, grow(&r, err));
    LEAT_GO(rc, out, leat__sketcher_init(&r.sketcher, ngram, 0, err));
    LEAT_GO(rc, out, leat__text_files_open(&r.files, inputs, count, MAX_LINE, err));
    r.names = (leat__line_names){.id_field = id_field, .path = r.files.path};
    LEAT_GO(rc, out, read_all(&r, err));
    for (size_t i = r.fields; i-- > 0;)
        if (!r.seen[i]) {
            leat__free(t->missing);
            t->missing = leat__strndup(LEAT__MEM_CURATE, r.field[i].name, r.field[i].name_len);
        }
out:
    leat__text_files_reset(&r.files);
    leat__sketcher_reset(&r.sketcher);
    if (rc != 0) leat__eval_table_reset(t);
    return rc;
}

void leat__eval_table_reset(leat__eval_table *t)
{
    leat__free(t->slot);
    leat__free(t->missing);
    leat__buf_reset(&t->ids);
    leat__buf_reset(&t->ends);
    memset(t, 0, sizeof *t);
}

uint64_t leat__eval_table_bytes(const leat__eval_table *t)
{
    return t->slots * sizeof *t->slot + t->ids.cap + t->ends.cap;
}

uint32_t leat__eval_table_find(const leat__eval_table *t, uint64_t hash)
{
    return t->slot[place(t, hash)].text - 1; /* 0 - 1 is LEAT__EVAL_NONE */
}

void leat__eval_table_id(const leat__eval_table *t, uint32_t text, leat__buf *out)
{
    uint64_t from = text > 0 ? leat__load_u64(t->ends.data + 8 * ((size_t)text - 1)) : 0;
    leat__buf_append(out, t->ids.data + from, leat__load_u64(t->ends.data + 8 * (size_t)text) - from);
}
