/* SPDX-License-Identifier: Apache-2.0
 *
 * The shards of a set: reading the list and opening each file beside the set, which must be
 * exactly the one that is listed. Names in the list are bare names: a set cannot point out
 * of its folder.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "io/url.h"
#include "pack/reader_impl.h"

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
        return leat__fail(err, LEAT_EDATA, "%s: shard \"%s\" is not a plain file name", p->path,
                          l->file);
    return 0;
}

static int path_of(const leat_pack *p, const char *file, char **path, leat_error *err)
{
    char *set = NULL;
    if (!leat__path_remote(p->source)) /* beside the set, not beside a link to it */
        LEAT_TRY(leat__path_resolve(p->source, &set, err));
    *path = leat__path_beside(set != NULL ? set : p->source, file);
    leat__free(set);
    return *path != NULL ? 0 : leat__fail_nomem(err, strlen(file), "a path");
}

static int open_one(leat_pack *p, const listed *l, size_t share, leat_error *err)
{
    leat__index *x = NULL;
    char *path;
    LEAT_TRY(path_of(p, l->file, &path, err));
    int rc = leat__index_open(&x, path, p->direct, p->cache_limit / share, err);
    leat__free(path);
    LEAT_TRY(rc);
    char fingerprint[17];
    const leat__footer *f = &x->footer;
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)f->check);
    if (f->kind != LEAT__PACK_FILE || f->file_bytes != l->bytes || f->samples != l->samples ||
        f->pages != l->pages || strcmp(fingerprint, l->fingerprint) != 0) {
        rc = leat__fail(err, LEAT_EDATA, "%s: not the shard that %s lists",
                        leat__file_path(x->file), p->path);
        leat__index_close(&x);
        return rc;
    }
    return leat__pack_add_shard(p, x, err);
}

int leat__pack_open_shards(leat_pack *p, leat_error *err)
{
    void *text;
    size_t len;
    json_error_t jerr;
    listed l = {0};
    LEAT_TRY(leat__index_load(p->set, leat__index_section(p->set, LEAT__SECTION_SHARDS),
                              LEAT__PACK_JSON_MAX, 1, &text, &len, err));
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &jerr);
    leat__free(text);
    const json_t *list = json_object_get(root, "shards");
    size_t count = json_array_size(list);
    int rc = 0;
    if (!json_is_array(list) || count == 0 || count > LEAT__PACK_SHARDS_MAX ||
        json_integer_value(json_object_get(root, "version")) != 1)
        rc = leat__fail(err, LEAT_EDATA, "%s: malformed list of shards", p->path);
    if (rc == 0) {
        p->shards = LEAT_NEW_ARRAY(PACK, leat__shard, count);
        if (p->shards == NULL) rc = leat__fail_nomem(err, count * sizeof *p->shards, "shards");
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = parse_entry(p, json_array_get(list, i), &l, err);
        if (rc == 0) rc = open_one(p, &l, count, err);
    }
    json_decref(root);
    return rc;
}
