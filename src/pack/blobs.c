/* SPDX-License-Identifier: Apache-2.0
 *
 * A small sorted array of named blobs: see blobs.h. Blobs are compressed when they are set,
 * because a set of shards writes them into every file.
 */
#include "pack/blobs.h"

#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/layout.h"

#define LEVEL 19 /* blobs are few and small, and written once */

void leat__blobs_reset(leat__blobs *b)
{
    for (size_t i = 0; i < b->count; i++) {
        leat__free(b->items[i].name);
        leat__free(b->items[i].data);
        leat__free(b->items[i].packed);
    }
    leat__free(b->items);
    memset(b, 0, sizeof *b);
}

/* Returns the position of `name`, or where to insert it. */
static size_t position(const leat__blobs *b, const char *name, bool *found)
{
    size_t lo = 0, hi = b->count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(b->items[mid].name, name);
        if (order == 0) {
            *found = true;
            return mid;
        }
        if (order < 0) lo = mid + 1;
        else hi = mid;
    }
    *found = false;
    return lo;
}

const leat__blob *leat__blobs_find(const leat__blobs *b, const char *name)
{
    bool found;
    size_t at = position(b, name, &found);
    return found ? &b->items[at] : NULL;
}

static int grow(leat__blobs *b, leat_error *err)
{
    if (b->count < b->capacity) return 0;
    size_t want = b->capacity == 0 ? 8 : b->capacity * 2;
    leat__blob *items = leat__realloc(LEAT__MEM_PACK, b->items, want * sizeof *items);
    if (items == NULL) return leat__fail_nomem(err, want * sizeof *items, "blobs");
    b->items = items;
    b->capacity = want;
    return 0;
}

/* Compresses a blob. The frame is dropped when it saves nothing. */
static int pack(leat__blob *blob, leat_error *err)
{
    blob->packed = NULL;
    blob->packed_size = 0;
    if (blob->size == 0 || blob->size > LEAT__PACK_PACKED_MAX) return 0;
    void *frame = leat__alloc(LEAT__MEM_PACK, blob->size);
    if (frame == NULL) return leat__fail_nomem(err, blob->size, "a blob");
    size_t n = ZSTD_compress(frame, blob->size, blob->data, blob->size, LEVEL);
    if (ZSTD_isError(n) || n >= blob->size) {
        leat__free(frame);
    } else {
        blob->packed = frame;
        blob->packed_size = n;
    }
    return 0;
}

bool leat__blob_unpack(const void *frame, size_t frame_size, void *out, size_t size)
{
    if (ZSTD_findFrameCompressedSize(frame, frame_size) != frame_size) return false;
    return ZSTD_decompress(out, size, frame, frame_size) == size;
}

int leat__blobs_set(leat__blobs *b, const char *name, const void *data, size_t size, leat_error *err)
{
    size_t len = strlen(name);
    if (len == 0 || len > LEAT__PACK_NAME_MAX)
        return leat__fail(err, LEAT_EINVAL, "blob: name must have 1 to %u bytes", LEAT__PACK_NAME_MAX);
    if (size > LEAT__PACK_BLOB_MAX || b->count >= LEAT__PACK_BLOBS_MAX)
        return leat__fail(err, LEAT_ELIMIT, "blob \"%s\": too large or one too many", name);
    bool found;
    size_t at = position(b, name, &found);
    LEAT_TRY(grow(b, err));
    leat__blob own = {.name = found ? NULL : leat__strdup(LEAT__MEM_PACK, name),
                      .data = leat__alloc(LEAT__MEM_PACK, size),
                      .size = size};
    int rc =
        (own.name == NULL && !found) || own.data == NULL ? leat__fail_nomem(err, len + size, "a blob") : 0;
    if (rc == 0 && size > 0) memcpy(own.data, data, size);
    if (rc == 0) rc = pack(&own, err);
    if (rc != 0) {
        leat__free(own.name);
        leat__free(own.data);
        return rc;
    }
    leat__blob *item = &b->items[at];
    if (found) {
        own.name = item->name;
        leat__free(item->data);
        leat__free(item->packed);
    } else {
        memmove(item + 1, item, (b->count - at) * sizeof *item);
        b->count++;
    }
    *item = own;
    return 0;
}

char *leat__blob_classes_name(const char *field)
{
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_PACK, 2 * LEAT__PACK_NAME_MAX);
    (void)leat__buf_printf(&b, "classes/%s", field);
    char *name = leat__buf_status(&b) == 0 ? leat__buf_take(&b, NULL) : NULL;
    leat__buf_reset(&b);
    return name;
}
