/* SPDX-License-Identifier: Apache-2.0
 *
 * Named blobs and class names of an open pack. Names are read at open, contents on first use. Returned data
 * stays in place until the pack is closed, so views need no lock. `lock` protects the loading.
 */
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "pack/blobs.h"
#include "pack/reader_impl.h"

static int read_names(leat_pack *p, const char *names, size_t len, leat_error *err)
{
    const leat__index *x = leat__pack_meta(p);
    uint32_t n = 0;
    for (uint64_t i = 0; i < x->footer.sections; i++) {
        const leat__section *s = &x->sections[i];
        if (s->kind != LEAT__SECTION_BLOB) continue;
        if (!leat__range_inside(s->name_offset, s->name_length, len) || s->name_length == 0 ||
            memchr(names + s->name_offset, '\0', s->name_length) != NULL)
            return leat__fail(err, LEAT_EDATA, "%s: a blob has an impossible name", p->path);
        leat__loaded_blob *b = &p->blobs[n];
        b->section = s;
        b->name = leat__strndup(LEAT__MEM_PACK, names + s->name_offset, s->name_length);
        if (b->name == NULL) return leat__fail_nomem(err, s->name_length, "a blob");
        p->blob_count = ++n;
        if (n > 1 && strcmp(p->blobs[n - 2].name, b->name) >= 0)
            return leat__fail(err, LEAT_EDATA, "%s: names of blobs are out of order", p->path);
    }
    return 0;
}

int leat__pack_open_blobs(leat_pack *p, leat_error *err)
{
    leat__index *x = leat__pack_meta(p);
    size_t count = 0, len;
    void *names;
    leat__mutex_init(&p->lock);
    p->lock_ready = true;
    for (uint64_t i = 0; i < x->footer.sections; i++)
        if (x->sections[i].kind == LEAT__SECTION_BLOB) count++;
    if (count > LEAT__PACK_BLOBS_MAX) return leat__fail(err, LEAT_ELIMIT, "%s: too many blobs", p->path);
    p->blobs = LEAT_NEW_ARRAY(PACK, leat__loaded_blob, count);
    if (p->blobs == NULL) return leat__fail_nomem(err, count * sizeof *p->blobs, "blobs");
    LEAT_TRY(leat__index_load(x, leat__index_section(x, LEAT__SECTION_BLOB_NAMES),
                              (size_t)LEAT__PACK_BLOBS_MAX * LEAT__PACK_NAME_MAX, 1, &names, &len, err));
    int rc = read_names(p, names, len, err);
    leat__free(names);
    return rc;
}

void leat__pack_close_blobs(leat_pack *p)
{
    for (uint32_t i = 0; i < p->blob_count; i++) {
        leat__free(p->blobs[i].name);
        leat__free(p->blobs[i].data);
        leat__free(p->blobs[i].classes);
    }
    leat__free(p->blobs);
    if (p->lock_ready) leat__mutex_destroy(&p->lock);
}

static leat__loaded_blob *find(const leat_pack *p, const char *name)
{
    uint32_t lo = 0, hi = p->blob_count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int order = strcmp(p->blobs[mid].name, name);
        if (order == 0) return &p->blobs[mid];
        if (order < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}

static int unpack(leat_pack *p, leat__loaded_blob *b, const void *frame, size_t frame_size, leat_error *err)
{
    size_t size = (size_t)b->section->unpacked; /* small: the directory limits it */
    uint8_t *data = leat__alloc_aligned(LEAT__MEM_PACK, size + LEAT_PACK_PADDING, 64);
    if (data == NULL) return leat__fail_nomem(err, size, "a blob");
    if (!leat__blob_unpack(frame, frame_size, data, size)) {
        leat__free(data);
        return leat__fail(err, LEAT_EDATA, "%s: blob \"%s\" does not decompress (byte %llu)", p->path,
                          b->name, (unsigned long long)b->section->offset);
    }
    memset(data + size, 0, LEAT_PACK_PADDING);
    b->data = data;
    b->size = size;
    return 0;
}

static int load_locked(leat_pack *p, leat__loaded_blob *b, leat_error *err)
{
    if (b->data != NULL) return 0;
    void *bytes;
    size_t len;
    LEAT_TRY(leat__index_load(leat__pack_meta(p), b->section, LEAT__PACK_BLOB_MAX, LEAT_PACK_PADDING, &bytes,
                              &len, err));
    if (b->section->unpacked == 0) {
        b->data = bytes;
        b->size = len;
        return 0;
    }
    int rc = unpack(p, b, bytes, len, err);
    leat__free(bytes);
    return rc;
}

int leat_pack_blob(leat_pack *p, const char *name, const void **data, size_t *size, leat_error *err)
{
    LEAT_REQUIRE(p != NULL && name != NULL && data != NULL && size != NULL, err);
    *data = NULL;
    *size = 0;
    leat__loaded_blob *b = find(p, name);
    if (b == NULL) return leat__fail(err, LEAT_ENOENT, "%s: no blob \"%s\"", p->path, name);
    leat__mutex_lock(&p->lock);
    int rc = load_locked(p, b, err);
    if (rc == 0) {
        *data = b->data;
        *size = b->size;
    }
    leat__mutex_unlock(&p->lock);
    return rc;
}

uint32_t leat_pack_blob_count(const leat_pack *p)
{
    if (p == NULL) return 0;
    return p->blob_count;
}

const char *leat_pack_blob_name(const leat_pack *p, uint32_t blob)
{
    if (p == NULL) return NULL;
    return blob < p->blob_count ? p->blobs[blob].name : NULL;
}

/* Pointers and strings in one block, so that there is only one to free. */
static int build_classes(leat_pack *p, leat__loaded_blob *b, const json_t *list, leat_error *err)
{
    size_t count = json_array_size(list), bytes = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) {
        const json_t *s = json_array_get(list, i);
        if (!json_is_string(s)) return leat__fail(err, LEAT_EDATA, "%s: malformed class names", p->path);
        bytes += json_string_length(s) + 1;
    }
    const char **names = leat__zalloc(LEAT__MEM_PACK, bytes);
    if (names == NULL) return leat__fail_nomem(err, bytes, "class names");
    char *text = (char *)(names + count + 1);
    for (size_t i = 0; i < count; i++) {
        const json_t *s = json_array_get(list, i);
        memcpy(text, json_string_value(s), json_string_length(s) + 1);
        names[i] = text;
        text += json_string_length(s) + 1;
    }
    b->classes = names;
    b->class_count = count;
    return 0;
}

static int classes_locked(leat_pack *p, leat__loaded_blob *b, leat_error *err)
{
    if (b->classes != NULL) return 0;
    LEAT_TRY(load_locked(p, b, err));
    json_error_t jerr;
    json_t *list = json_loadb(b->data, b->size, 0, &jerr);
    int rc = json_is_array(list) ? build_classes(p, b, list, err)
                                 : leat__fail(err, LEAT_EDATA, "%s: malformed class names", p->path);
    json_decref(list);
    return rc;
}

int leat_pack_classes(leat_pack *p, uint32_t field, const char *const **names, uint64_t *count,
                      leat_error *err)
{
    LEAT_REQUIRE(p != NULL && names != NULL && count != NULL, err);
    *names = NULL;
    *count = 0;
    if (field >= p->schema->count) return leat__fail(err, LEAT_EINVAL, "%s: no field %u", p->path, field);
    if (p->parts != NULL) return leat__pack_join_classes(p, field, names, count, err);
    char *name = leat__blob_classes_name(p->schema->fields[field].name);
    if (name == NULL) return leat__fail_nomem(err, LEAT__PACK_NAME_MAX, "class names");
    leat__loaded_blob *b = find(p, name);
    leat__free(name);
    if (b == NULL) return 0;
    leat__mutex_lock(&p->lock);
    int rc = classes_locked(p, b, err);
    if (rc == 0) {
        *names = b->classes;
        *count = b->class_count;
    }
    leat__mutex_unlock(&p->lock);
    return rc;
}
