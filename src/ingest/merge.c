/* SPDX-License-Identifier: Apache-2.0
 *
 * See merge.h. Equal keys are found by sorting hashes: 16 bytes of memory per sample. Keys with equal
 * hashes are read and compared, so that a hash collision is never taken for a duplicate.
 */
#include "ingest/merge.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

#define CELLS 256u

typedef struct hashed {
    uint64_t hash, sample;
} hashed;

typedef struct search {
    leat__source *packs;
    const leat__where *where;
    uint32_t keys; /* leat_merge_keys */
    hashed *all;
    uint64_t count;
    leat__buf key, other;
    leat__item *items; /* one per field */
    leat_pack_cell *cells;
    leat__merge *out;
    uint64_t capacity;
} search;

static int read_key(leat_pack *pack, uint64_t sample, leat__buf *key, leat_error *err)
{
    size_t size = 0;
    leat__buf_clear(key);
    for (size_t room = 256;; room = size + 1) {
        if (leat__buf_reserve(key, room) != 0) return leat__fail_nomem(err, room, "a key");
        int rc = leat_pack_key(pack, sample, key->data, room, &size, err);
        if (rc == 0) key->len = size;
        if (rc != LEAT_ELIMIT || size < room) return rc;
    }
}

/* Returns the pack that holds a sample, and changes *sample to its number there. */
static leat_pack *pack_of(const search *s, uint64_t *sample)
{
    for (uint32_t i = 0;; i++) {
        leat_pack *pack = leat__source_pack_of(s->packs, i);
        if (pack == NULL || *sample < leat_pack_count(pack)) return pack;
        *sample -= leat_pack_count(pack);
    }
}

static int key_of(search *s, uint64_t sample, leat__buf *key, leat_error *err)
{
    leat_pack *pack = pack_of(s, &sample);
    return read_key(pack, sample, key, err);
}

/* ---- the keys ---- */

/* Reads the numbers of one sample for the condition. */
static int read_numbers(search *s, uint32_t which, uint64_t sample, leat_error *err)
{
    leat_pack *pack = leat__source_pack_of(s->packs, which);
    for (uint32_t f = 0; f < s->packs->field_count; f++) {
        uint32_t type = s->packs->fields[f].type;
        if (type != LEAT_FIELD_INT && type != LEAT_FIELD_FLOAT) continue;
        uint32_t there = leat__source_pack_field(s->packs, which, f);
        leat_pack_cell *cells = s->cells + (size_t)f * CELLS;
        if (sample % CELLS == 0) {
            size_t n = (size_t)LEAT_MIN(leat_pack_count(pack) - sample, CELLS);
            LEAT_TRY(leat_pack_cells(pack, there, sample, n, cells, err));
        }
        leat__source_pack_number(s->packs, which, f, &cells[sample % CELLS], &s->items[f]);
    }
    return 0;
}

static int hash_pack(search *s, uint32_t which, uint64_t first, leat_error *err)
{
    leat_pack *pack = leat__source_pack_of(s->packs, which);
    for (uint64_t i = 0; i < leat_pack_count(pack); i++) {
        LEAT_TRY(read_key(pack, i, &s->key, err));
        if (s->where != NULL) {
            LEAT_TRY(read_numbers(s, which, i, err));
            if (!leat__where_match(s->where, s->key.data, s->key.len, s->items)) continue;
        }
        s->all[s->count++] = (hashed){leat__hash64(s->key.data, s->key.len, 0), first + i};
    }
    return 0;
}

static int hash_all(search *s, leat_error *err)
{
    uint64_t total = s->packs->total, first = 0;
    s->all = LEAT_NEW_ARRAY(INGEST, hashed, total + 1);
    s->items = LEAT_NEW_ARRAY(INGEST, leat__item, (uint64_t)s->packs->field_count + 1);
    s->cells = LEAT_NEW_ARRAY(INGEST, leat_pack_cell, (uint64_t)s->packs->field_count * CELLS + 1);
    if (s->all == NULL || s->items == NULL || s->cells == NULL)
        return leat__fail_nomem(err, total * sizeof *s->all, "hashes of keys");
    for (uint32_t i = 0; leat__source_pack_of(s->packs, i) != NULL; i++) {
        LEAT_TRY(hash_pack(s, i, first, err));
        first += leat_pack_count(leat__source_pack_of(s->packs, i));
    }
    return 0;
}

static int by_hash(const void *a, const void *b)
{
    const hashed *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

static int by_sample(const void *a, const void *b)
{
    const leat__merge_step *x = a, *y = b;
    return x->sample < y->sample ? -1 : x->sample > y->sample;
}

/* ---- steps ---- */

static int add_step(search *s, uint64_t sample, uint64_t rename, leat_error *err)
{
    leat__merge *m = s->out;
    if (m->count == s->capacity) {
        uint64_t more = s->capacity == 0 ? 64 : s->capacity * 2;
        leat__merge_step *grown = leat__realloc(LEAT__MEM_INGEST, m->steps, (size_t)more * sizeof *grown);
        if (grown == NULL) return leat__fail_nomem(err, more * sizeof *grown, "equal keys");
        m->steps = grown;
        s->capacity = more;
    }
    m->steps[m->count++] = (leat__merge_step){sample, rename};
    return 0;
}

int leat__merge_rename(leat__buf *key, uint64_t n, leat_error *err)
{
    char number[24];
    size_t end = key->len, dot;
    snprintf(number, sizeof number, "-%llu", (unsigned long long)n);
    for (dot = end; dot > 0 && key->data[dot - 1] != '.' && key->data[dot - 1] != '/'; dot--) continue;
    /* "a/.b" and "a/b" have no extension */
    bool ending = dot > 1 && key->data[dot - 1] == '.' && key->data[dot - 2] != '/';
    size_t at = ending ? dot - 1 : end, len = strlen(number);
    if (leat__buf_append(key, number, len) != 0) return leat__fail_nomem(err, len, "a key");
    memmove(key->data + at + len, key->data + at, end - at);
    memcpy(key->data + at, number, len);
    return 0;
}

static int is_there(search *s, const leat__buf *key, bool *there, leat_error *err)
{
    *there = false;
    for (uint32_t i = 0; leat__source_pack_of(s->packs, i) != NULL && !*there; i++) {
        uint64_t found;
        int rc = leat_pack_find(leat__source_pack_of(s->packs, i), key->data, key->len, &found, err);
        if (rc != 0 && rc != LEAT_ENOENT) return rc;
        *there = rc == 0;
    }
    return 0;
}

/* Finds the first number from *n on whose key exists in no pack. */
static int free_number(search *s, const leat__buf *key, uint64_t *n, leat_error *err)
{
    for (bool there = true; there; ++*n) {
        leat__buf_clear(&s->other);
        if (leat__buf_append(&s->other, key->data, key->len) != 0)
            return leat__fail_nomem(err, key->len, "a key");
        LEAT_TRY(leat__merge_rename(&s->other, *n, err));
        LEAT_TRY(is_there(s, &s->other, &there, err));
    }
    return 0;
}

/* Fails, naming the key that two samples have. */
static int refuse(search *s, uint64_t a, uint64_t b, leat_error *err)
{
    LEAT_TRY(key_of(s, a, &s->key, err));
    const char *first = leat_pack_path(pack_of(s, &a)), *second = leat_pack_path(pack_of(s, &b));
    if (leat__str_eq(first, second))
        return leat__fail(err, LEAT_EEXIST,
                          "%s is given twice, so each of its keys would occur twice: give it once, or choose "
                          "what happens to such samples (`duplicates` first, last or rename)",
                          first);
    return leat__fail(err, LEAT_EEXIST,
                      "\"%.*s\" is the key of a sample in %s and of one in %s: choose "
                      "what happens to such samples "
                      "(`duplicates` first, last or rename)",
                      (int)LEAT_MIN(s->key.len, 200u), s->key.data, first, second);
}

/* Decides about the n samples with the key in s->key, which are in order. */
static int settle_key(search *s, const uint64_t *same, uint64_t n, leat_error *err)
{
    uint64_t number = 2;
    if (s->keys == LEAT_MERGE_ERROR) return add_step(s, same[1], same[0], err);
    for (uint64_t i = 0; i < n; i++) {
        bool kept = s->keys == LEAT_MERGE_LAST ? i + 1 == n : i == 0;
        if (kept) continue;
        if (s->keys == LEAT_MERGE_RENAME) LEAT_TRY(free_number(s, &s->key, &number, err));
        LEAT_TRY(add_step(s, same[i], s->keys == LEAT_MERGE_RENAME ? number - 1 : 0, err));
    }
    return 0;
}

/* Decides about the n samples of a group, which have the same hash, key by key. */
static int settle_hash(search *s, hashed *group, uint64_t n, leat_error *err)
{
    uint64_t *same = LEAT_NEW_ARRAY(INGEST, uint64_t, n);
    int rc = same == NULL ? leat__fail_nomem(err, n * sizeof *same, "equal keys") : 0;
    while (n > 1 && rc == 0) {
        uint64_t equal = 0, others = 0;
        LEAT_GO(rc, out, key_of(s, group[0].sample, &s->key, err));
        for (uint64_t i = 0; i < n; i++) {
            LEAT_GO(rc, out, key_of(s, group[i].sample, &s->other, err));
            if (s->other.len == s->key.len && memcmp(s->other.data, s->key.data, s->key.len) == 0)
                same[equal++] = group[i].sample;
            else group[others++] = group[i];
        }
        if (equal > 1) rc = settle_key(s, same, equal, err);
        n = others;
    }
out:
    leat__free(same);
    return rc;
}

static int settle_all(search *s, leat_error *err)
{
    qsort(s->all, (size_t)s->count, sizeof *s->all, by_hash);
    for (uint64_t first = 0, end; first < s->count; first = end) {
        for (end = first + 1; end < s->count && s->all[end].hash == s->all[first].hash; end++) continue;
        if (end - first > 1) LEAT_TRY(settle_hash(s, s->all + first, end - first, err));
    }
    const leat__merge *m = s->out;
    if (m->count > 0) qsort(m->steps, (size_t)m->count, sizeof *m->steps, by_sample);
    if (m->count > 0 && s->keys == LEAT_MERGE_ERROR)
        return refuse(s, m->steps[0].rename, m->steps[0].sample, err);
    return 0;
}

int leat__merge_open(leat__merge *m, leat__source *packs, uint32_t keys, const leat__where *where,
                     leat_error *err)
{
    search s = {.packs = packs, .where = where, .keys = keys, .out = m};
    leat__buf_init(&s.key, LEAT__MEM_INGEST, 4u << 20);
    leat__buf_init(&s.other, LEAT__MEM_INGEST, 4u << 20);
    int rc = hash_all(&s, err);
    if (rc == 0) rc = settle_all(&s, err);
    leat__buf_reset(&s.key);
    leat__buf_reset(&s.other);
    leat__free(s.all);
    leat__free(s.items);
    leat__free(s.cells);
    return rc;
}

void leat__merge_close(leat__merge *m)
{
    leat__free(m->steps);
    *m = (leat__merge){0};
}

const leat__merge_step *leat__merge_step_of(leat__merge *m, uint64_t sample)
{
    while (m->next < m->count && m->steps[m->next].sample < sample) m->next++;
    return m->next < m->count && m->steps[m->next].sample == sample ? &m->steps[m->next] : NULL;
}

/* ---- what is not a sample ---- */

int leat__merge_blobs(leat_packer *packer, leat__source *packs, leat_error *err)
{
    for (uint32_t i = 0; leat__source_pack_of(packs, i) != NULL; i++) {
        leat_pack *pack = leat__source_pack_of(packs, i);
        for (uint32_t b = 0; b < leat_pack_blob_count(pack); b++) {
            const char *name = leat_pack_blob_name(pack, b);
            const void *data;
            size_t size;
            if (leat_packer_blob_view(packer, name, &data, &size) == 0) continue;
            LEAT_TRY(leat_pack_blob(pack, name, &data, &size, err));
            LEAT_TRY(leat_packer_blob(packer, name, data, size, err));
        }
    }
    return 0;
}

/* Finds the longest list of names that a pack has for a field. The lists of the others must be a
 * prefix of it. */
int leat__merge_class_names(leat__source *packs, uint32_t field, const char *const **names, uint64_t *count,
                            leat_error *err)
{
    *count = 0;
    for (uint32_t i = 0; leat__source_pack_of(packs, i) != NULL; i++) {
        leat_pack *pack = leat__source_pack_of(packs, i);
        const char *const *here;
        uint64_t n;
        LEAT_TRY(leat_pack_classes(pack, leat__source_pack_field(packs, i, field), &here, &n, err));
        for (uint64_t k = 0; k < LEAT_MIN(n, *count); k++)
            if (strcmp(here[k], (*names)[k]) != 0)
                return leat__fail(err, LEAT_EINVAL,
                                  "%s: class %llu of field '%s' is \"%s\", but \"%s\" in an earlier pack",
                                  leat_pack_path(pack), (unsigned long long)k, packs->fields[field].name,
                                  here[k], (*names)[k]);
        if (n <= *count) continue;
        *names = here;
        *count = n;
    }
    return 0;
}

/* Adds the source names of `next` to `all`. Returns false when the provenances differ in anything else. */
static bool join_sources(json_t *all, json_t *next)
{
    json_t *names = json_incref(json_object_get(all, "names")),
           *more = json_incref(json_object_get(next, "names"));
    bool same = json_is_array(names) && json_is_array(more);
    if (same) {
        json_t *left = json_copy(all), *right = json_copy(next);
        json_object_del(left, "names");
        json_object_del(right, "names");
        same = json_equal(left, right) != 0 && json_array_extend(names, more) == 0;
        json_decref(left);
        json_decref(right);
    }
    json_decref(names);
    json_decref(more);
    return same;
}

static json_t *source_of(const leat_pack *pack)
{
    json_t *whole = json_loads(leat_pack_provenance(pack), 0, NULL);
    json_t *source = json_incref(json_object_get(whole, "source"));
    json_decref(whole);
    return source != NULL ? source : json_object();
}

static json_t *join_provenance(leat__source *packs)
{
    json_t *all = source_of(leat__source_pack_of(packs, 0)), *sources = json_array();
    bool same = true;
    for (uint32_t i = 0; leat__source_pack_of(packs, i) != NULL; i++) {
        json_t *next = source_of(leat__source_pack_of(packs, i));
        if (i > 0) same = same && join_sources(all, next);
        (void)json_array_append_new(sources, next);
    }
    if (same) {
        json_decref(sources);
        return all;
    }
    json_decref(all);
    return json_pack("{s:s, s:o}", "kind", "merge", "sources", sources);
}

int leat__merge_provenance(leat__source *packs, const char *where, leat__buf *out, leat_error *err)
{
    json_t *all = join_provenance(packs), *settings = json_object_get(all, "settings");
    if (where != NULL)
        (void)json_object_set_new(json_is_object(settings) ? settings : all, "where", json_string(where));
    size_t size = all != NULL ? json_dumpb(all, NULL, 0, JSON_COMPACT) : 0;
    int rc =
        size == 0 || leat__buf_reserve(out, size + 1) != 0 ? leat__fail_nomem(err, size, "provenance") : 0;
    if (rc == 0) {
        out->len = json_dumpb(all, out->data, size, JSON_COMPACT);
        out->data[out->len] = '\0';
    }
    json_decref(all);
    return rc;
}
