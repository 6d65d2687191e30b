/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading evaluation sets.
 */
#include "curate/eval_table.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "curate/text_flow.h"
#include "curate/text_line.h"
#include "text/sketch.h"

#define SMALL_LINE (256u << 10) /* lines up to this size are always read */

typedef struct reading {
    leat__eval_table *t;
    const leat__eval_sets *sets;
    leat__text_files files;
    leat__line_names names;
    leat__jsonl_field field[LEAT__EVAL_FIELDS + 1]; /* the last one is the id */
    size_t fields;
    bool seen[LEAT__EVAL_FIELDS]; /* some line has the field as a string */
    leat__sketcher sketcher;
    uint64_t beyond; /* n-grams that did not fit; counted for the message */
} reading;

static int split_fields(reading *r, leat_error *err)
{
    const char *id_field = r->sets->id_field;
    for (const char *p = r->sets->fields; *p;) {
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

/* True when the memory allows to double the table. */
static bool may_grow(const reading *r)
{
    return 4 * (leat__eval_table_bytes(r->t) + r->t->slots * sizeof *r->t->slot) <= r->sets->memory;
}

/* Returns the bytes of the table when it has this many more n-grams. */
static uint64_t table_bytes(const leat__eval_table *t, uint64_t more)
{
    uint64_t slots = t->slots;
    while (slots / 2 <= t->used + more) slots *= 2;
    return leat__eval_table_bytes(t) + (slots - t->slots) * sizeof *t->slot;
}

/* Called after the last line: names a limit that is enough for the counted n-grams. */
static int check_memory(const reading *r, leat_error *err)
{
    const leat__eval_table *t = r->t;
    char had[24];
    if (r->beyond == 0 && 4 * leat__eval_table_bytes(t) <= r->sets->memory) return 0;
    return leat__fail(err, LEAT_EBUDGET,
                      "the n-grams of the evaluation sets do not fit a quarter of the memory limit of %s "
                      "(raise `memory` to %lluM)",
                      leat__format_bytes(r->sets->memory, had, sizeof had),
                      (unsigned long long)leat__ceil_div(4 * table_bytes(t, r->beyond), 1u << 20));
}

static int grow(reading *r, leat_error *err)
{
    leat__eval_table *t = r->t, old = *t;
    uint64_t slots = t->slots ? 2 * t->slots : 4096;
    leat__eval_slot *slot = leat__zalloc_array(LEAT__MEM_CURATE, slots, sizeof *slot);
    if (!slot) return leat__fail_nomem(err, slots * sizeof *slot, "n-grams");
    t->slot = slot;
    t->slots = slots;
    for (uint64_t i = 0; i < old.slots; i++)
        if (old.slot[i].text != 0) t->slot[place(t, old.slot[i].hash)] = old.slot[i];
    leat__free(old.slot);
    return 0;
}

/* Adds the n-grams of one string. Sets *any when it has some. */
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
        if (r->beyond > 0 || (t->used >= t->slots / 2 && !may_grow(r))) {
            r->beyond += n - i;
            return 0;
        }
        if (t->used >= t->slots / 2) LEAT_TRY(grow(r, err));
        leat__eval_slot *s = &t->slot[place(t, r->sketcher.shingle[i])];
        if (s->text != 0) continue;
        *s = (leat__eval_slot){r->sketcher.shingle[i], t->texts + 1};
        t->used++;
    }
    return 0;
}

static int bad_line(reading *r, uint32_t file, uint64_t number, uint64_t offset, const char *why,
                    leat_error *err)
{
    if (r->sets->fail_on_bad)
        return leat__fail(err, LEAT_EDATA, "%s: line %llu, offset %llu: %s", r->files.path[file],
                          (unsigned long long)number, (unsigned long long)offset, why);
    r->t->bad++;
    leat__line_bad_json(&r->names, file, number, offset, why, &r->t->bad_list);
    return r->t->bad_list.status == 0 ? 0 : leat__fail_nomem(err, r->t->bad_list.len, "bad lines");
}

static int add_line(reading *r, const leat__text_chunk *c, const leat__line *line, leat_error *err)
{
    leat__eval_table *t = r->t;
    size_t at, strings = 0;
    bool any = false;
    if (line->len > r->files.max_line)
        return bad_line(r, c->file, line->number, line->offset, LEAT__LINE_TOO_LONG, err);
    const char *wrong = leat__jsonl_read(line->text, line->len, r->field, r->fields + 1, &at);
    if (wrong) return bad_line(r, c->file, line->number, line->offset + at, wrong, err);
    for (size_t i = 0; i < r->fields; i++) {
        if (r->field[i].kind != LEAT__JSONL_STRING) continue;
        strings++;
        r->seen[i] = true;
        LEAT_TRY(add_string(r, &r->field[i], &any, err));
    }
    t->without += strings == 0;
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

/* Returns the bytes needed to read a line: the chunk, the data read after it, and the words. */
static uint64_t need(const reading *r, uint64_t line)
{
    return 2 * (LEAT__CHUNK_BYTES + 2 * line) + leat__sketcher_need(&r->sketcher, line);
}

/* Limits the length of lines to the memory that the table leaves. */
static void set_room(reading *r)
{
    uint64_t low = SMALL_LINE, high = LEAT_MAX(r->files.max_line, low) + 1;
    uint64_t room = r->sets->memory - r->sets->memory / 4;
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        if (need(r, mid) <= room) low = mid;
        else high = mid;
    }
    r->files.room_line = low;
}

/* Returns a memory limit that is enough for a line of an evaluation set with its n-grams. A corpus that
 * contains its text has a line of this length, too. */
static uint64_t need_limit(const reading *r, uint64_t line, uint64_t words)
{
    uint64_t table = table_bytes(r->t, words), limit = need(r, line) / 3 * 4;
    limit = LEAT_MAX(limit, 4 * table);
    limit = LEAT_MAX(limit, table + r->sets->corpus_need(r->sets->cookie, line));
    return limit + (1u << 20);
}

static int check_room(const reading *r, const leat__text_chunk *c, leat_error *err)
{
    uint64_t bytes = c->no_room ? c->skipped_bytes : c->longest, number = c->line;
    leat__line line;
    if (!c->no_room && c->longest <= r->files.room_line) return 0;
    for (size_t at = 0; !c->no_room && leat__text_chunk_next(c, &at, &line);)
        if (line.len == c->longest) number = line.number;
    uint64_t limit = need_limit(r, bytes, c->no_room ? c->skipped_words : bytes / 2);
    return leat__text_refuse_line(&r->files, c->file, number, bytes, r->sets->memory, limit, err);
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
        rc = check_room(r, c, err);
        if (rc == 0 && c->too_long > 0)
            rc = bad_line(r, c->file, c->line, c->offset, LEAT__LINE_TOO_LONG, err);
        while (rc == 0 && leat__text_chunk_next(c, &at, &line)) rc = add_line(r, c, &line, err);
    }
    leat__text_chunk_free(c);
    return rc;
}

int leat__eval_table_read(leat__eval_table *t, const leat__eval_sets *sets, leat_error *err)
{
    reading r = {.t = t, .sets = sets};
    int rc;
    memset(t, 0, sizeof *t);
    leat__buf_init(&t->ids, LEAT__MEM_CURATE, (size_t)1 << 32);
    leat__buf_init(&t->ends, LEAT__MEM_CURATE, (size_t)1 << 36);
    leat__buf_init(&t->bad_list, LEAT__MEM_CURATE, (size_t)1 << 36);
    LEAT_GO(rc, out, split_fields(&r, err));
    LEAT_GO(rc, out, grow(&r, err));
    LEAT_GO(rc, out, leat__sketcher_init(&r.sketcher, sets->ngram, 0, err));
    LEAT_GO(rc, out, leat__text_files_open(&r.files, sets->inputs, sets->count, sets->max_line, err));
    r.names = (leat__line_names){.id_field = sets->id_field, .path = r.files.path};
    set_room(&r);
    LEAT_GO(rc, out, read_all(&r, err));
    LEAT_GO(rc, out, check_memory(&r, err));
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
    leat__buf_reset(&t->bad_list);
    leat__buf_reset(&t->ids);
    leat__buf_reset(&t->ends);
    memset(t, 0, sizeof *t);
}

uint64_t leat__eval_table_bytes(const leat__eval_table *t)
{
    return t->slots * sizeof *t->slot + t->ids.cap + t->ends.cap + t->bad_list.cap;
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
