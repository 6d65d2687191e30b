/* SPDX-License-Identifier: Apache-2.0
 *
 * The shards of a set: reads the list and opens each file beside the set, which must be exactly
 * the listed one. The list has bare names, so a set cannot point outside its folder.
 */
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/reader_impl.h"

#define OPENERS 16u /* shards of a remote set opened in parallel */

typedef struct listed {
    const char *file;
    uint64_t bytes, samples, pages;
    const char *fingerprint;
} listed;

static bool get_u64(const json_t *obj, const char *key, uint64_t *v)
{
    const json_t *n = json_object_get(obj, key);
    if (!json_is_integer(n) || json_integer_value(n) < 0) return false;
    *v = (uint64_t)json_integer_value(n);
    return true;
}

static int parse_entry(const leat_pack *p, const json_t *obj, listed *l, leat_error *err)
{
    l->file = json_string_value(json_object_get(obj, "file"));
    l->fingerprint = json_string_value(json_object_get(obj, "fingerprint"));
    if (l->file == NULL || l->fingerprint == NULL || !get_u64(obj, "bytes", &l->bytes) ||
        !get_u64(obj, "samples", &l->samples) || !get_u64(obj, "pages", &l->pages))
        return leat__fail(err, LEAT_EDATA, "%s: malformed list of shards", p->path);
    if (!leat__path_relative_safe(l->file, strlen(l->file)) || strchr(l->file, '/') != NULL)
        return leat__fail(err, LEAT_EDATA, "%s: shard \"%s\" is not a plain file name", p->path, l->file);
    return 0;
}

static int path_of(const leat_pack *p, const char *file, char **path, leat_error *err)
{
    char *set = NULL;
    if (!leat__path_remote(p->source)) /* beside the set itself, not beside a link to it */
        LEAT_TRY(leat__path_resolve(p->source, &set, err));
    *path = leat__path_beside(set != NULL ? set : p->source, file);
    leat__free(set);
    return *path != NULL ? 0 : leat__fail_nomem(err, strlen(file), "a path");
}

static int open_index(leat_pack *p, const listed *l, size_t share, leat__index **x, leat_error *err)
{
    char *path;
    LEAT_TRY(path_of(p, l->file, &path, err));
    int rc = leat__index_open(x, p->descriptors, path, p->direct, p->cache_limit / share, err);
    if (rc == LEAT_ENOENT) /* most often only the set was copied */
        rc = leat__fail(err, rc,
                        "%s: is a set, and its file %s is not there: copy it along "
                        "(leat compact makes one file of a set)",
                        p->path, l->file);
    leat__free(path);
    return rc;
}

/* Adds a shard; `x` was opened in advance, or is NULL. */
static int open_one(leat_pack *p, const listed *l, size_t share, leat__index *x, leat_error *err)
{
    int rc;
    if (x == NULL) LEAT_TRY(open_index(p, l, share, &x, err));
    char fingerprint[17];
    const leat__footer *f = &x->footer;
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)f->check);
    if (f->kind != LEAT__PACK_FILE || f->file_bytes != l->bytes || f->samples != l->samples ||
        f->pages != l->pages || strcmp(fingerprint, l->fingerprint) != 0) {
        rc =
            leat__fail(err, LEAT_EDATA, "%s: not the shard that %s lists", leat__file_path(x->file), p->path);
        leat__index_close(&x);
        return rc;
    }
    return leat__pack_add_shard(p, x, err);
}

/* ---- remote sets: opening a shard takes a few round trips, so many are opened at once
 * ------- */

typedef struct opening {
    leat_pack *pack;
    const json_t *list;
    leat__index **opened; /* one per shard; NULL where it could not be opened */
    size_t count;
    atomic_size_t next;
} opening;

static void open_some(void *arg)
{
    opening *o = arg;
    for (size_t i; (i = atomic_fetch_add(&o->next, 1)) < o->count;) {
        listed l = {0};
        leat__index *x = NULL;
        void *text;
        size_t len;
        if (parse_entry(o->pack, json_array_get(o->list, i), &l, NULL) != 0 ||
            open_index(o->pack, &l, o->count, &x, NULL) != 0)
            continue; /* opened again later, in order, which reports the error */
        /* reads the part of the index that adding the shard needs */
        if (leat__index_load(x, leat__index_section(x, LEAT__SECTION_SCHEMA), LEAT__PACK_JSON_MAX, 1, &text,
                             &len, NULL) == 0)
            leat__free(text);
        o->opened[i] = x;
    }
}

static void open_ahead(leat_pack *p, const json_t *list, size_t count, leat__index **opened)
{
    opening o = {.pack = p, .list = list, .opened = opened, .count = count};
    leat__thread threads[OPENERS];
    size_t started = 0, want = LEAT_MIN(count, OPENERS);
    memset(threads, 0, sizeof threads);
    while (started < want && leat__thread_start(&threads[started], "leat-open", open_some, &o, NULL) == 0)
        started++;
    for (size_t i = 0; i < started; i++) leat__thread_join(&threads[i]);
}

/* ---- dropped samples ----------------------------------------------------------------------- */

static int load_drops(leat_pack *p, leat_error *err)
{
    const leat__section *section = leat__index_section(p->set, LEAT__SECTION_DROPS);
    void *data;
    size_t len;
    if (section == NULL) return 0;
    if (section->width != 8 || p->set->footer.major < LEAT__PACK_MAJOR_DROPS)
        return leat__fail(err, LEAT_EDATA, "%s: malformed list of dropped samples", p->path);
    LEAT_TRY(leat__index_load(p->set, section, LEAT__PACK_DROPS_MAX, 0, &data, &len, err));
    p->drops = data;
    p->drop_count = len / 8;
    for (uint64_t i = 0; i < p->drop_count; i++) p->drops[i] = leat__load_u64((const uint8_t *)&p->drops[i]);
    for (uint64_t i = 1; i < p->drop_count; i++)
        if (p->drops[i - 1] >= p->drops[i])
            return leat__fail(err, LEAT_EDATA, "%s: dropped samples are out of order", p->path);
    return 0;
}

/* Returns the position of the first of the sorted words that is not below `word`. */
static uint64_t lower_bound(const uint64_t *words, uint64_t count, uint64_t word)
{
    uint64_t lo = 0;
    while (lo < count) {
        uint64_t mid = lo + (count - lo) / 2;
        if (words[mid] < word) lo = mid + 1;
        else count = mid;
    }
    return lo;
}

int leat__shard_take_drops(leat_pack *p, leat__shard *s, leat_error *err)
{
    LEAT_ASSERT(s >= p->shards);
    uint32_t shard = (uint32_t)(s - p->shards);
    uint64_t first = lower_bound(p->drops, p->drop_count, leat__drop_word(shard, 0));
    uint64_t end = lower_bound(p->drops, p->drop_count, leat__drop_word(shard + 1, 0));
    s->drops = first < end ? p->drops + first : NULL;
    s->drop_count = end - first;
    LEAT_ASSERT(first <= end);
    if (first == end || (p->drops[end - 1] & UINT32_MAX) < s->index->footer.samples) return 0;
    return leat__fail(err, LEAT_EDATA, "%s: a dropped sample is not in %s", p->path,
                      leat__file_path(s->index->file));
}

uint64_t leat__shard_drops_before(const leat__shard *s, uint64_t row)
{
    LEAT_ASSERT(row <= UINT32_MAX);
    if (s->drop_count == 0) return 0;
    return lower_bound(s->drops, s->drop_count, (s->drops[0] & ~(uint64_t)UINT32_MAX) + row);
}

bool leat__shard_dropped(const leat__shard *s, uint64_t row)
{
    uint64_t at = leat__shard_drops_before(s, row);
    return at < s->drop_count && (s->drops[at] & UINT32_MAX) == row;
}

/* ---- opening ------------------------------------------------------------------------------- */

int leat__pack_open_shards(leat_pack *p, leat_error *err)
{
    void *text;
    size_t len;
    json_error_t jerr;
    listed l = {0};
    leat__index **opened = NULL;
    LEAT_TRY(leat__index_load(p->set, leat__index_section(p->set, LEAT__SECTION_SHARDS), LEAT__PACK_JSON_MAX,
                              1, &text, &len, err));
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &jerr);
    leat__free(text);
    const json_t *list = json_object_get(root, "shards");
    size_t count = json_array_size(list);
    int rc = 0;
    if (!json_is_array(list) || count == 0 || count > LEAT__PACK_SHARDS_MAX ||
        json_integer_value(json_object_get(root, "version")) != 1)
        rc = leat__fail(err, LEAT_EDATA, "%s: malformed list of shards", p->path);
    if (rc == 0) rc = load_drops(p, err);
    if (rc == 0 && p->drop_count > 0 && p->drops[p->drop_count - 1] >> 32 >= count)
        rc = leat__fail(err, LEAT_EDATA, "%s: a dropped sample is in no shard", p->path);
    if (rc == 0) {
        p->shards = LEAT_NEW_ARRAY(PACK, leat__shard, count);
        opened = LEAT_NEW_ARRAY(PACK, leat__index *, count);
        if (p->shards == NULL || opened == NULL)
            rc = leat__fail_nomem(err, count * sizeof *p->shards, "shards");
    }
    if (rc == 0 && leat__path_remote(p->source)) open_ahead(p, list, count, opened);
    else if (rc == 0) rc = leat__file_pool_open(&p->descriptors, count, p->direct, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = parse_entry(p, json_array_get(list, i), &l, err);
        if (rc == 0) {
            leat__index *x = opened[i];
            opened[i] = NULL; /* owned by the pack from here on */
            rc = open_one(p, &l, count, x, err);
        }
    }
    for (size_t i = 0; opened != NULL && i < count; i++) leat__index_close(&opened[i]);
    leat__free(opened);
    json_decref(root);
    return rc;
}
