/* SPDX-License-Identifier: Apache-2.0
 *
 * See selection.h and leat_pack_select in leat/pack.h.
 */
#include "pack/selection.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"

#define CHUNK 1024

int leat__pack_key_read(leat_pack *pack, uint64_t sample, leat__buf *key, leat_error *err)
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

int leat__selection_field(const leat_pack *selection, uint32_t *field, leat_error *err)
{
    static const char *const names[] = {"selected", "keep"};
    for (size_t i = 0; i < LEAT_COUNT(names); i++) {
        const int at = leat_pack_field_find(selection, names[i]);
        if (at < 0 || leat_pack_field(selection, (uint32_t)at)->type != LEAT_FIELD_INT) continue;
        *field = (uint32_t)at;
        return 0;
    }
    return leat__fail(err, LEAT_EINVAL, "%s: not a selection: it has no int field 'selected' or 'keep'",
                      leat_pack_path(selection));
}

/* The rows of one pack with `total` samples, which begin at row `first` of the selection. */
typedef struct part {
    leat_pack *selection;
    uint64_t first, total;
} part;

static int collect(const part *p, uint32_t field, uint64_t *rows, uint64_t capacity, uint64_t *count,
                   leat_error *err)
{
    int64_t value[CHUNK];
    for (uint64_t at = 0; at < p->total; at += CHUNK) {
        const size_t n = (size_t)LEAT_MIN(p->total - at, CHUNK);
        LEAT_TRY(leat_pack_ints(p->selection, field, p->first + at, n, value, err));
        for (size_t i = 0; i < n; i++) {
            if (value[i] == 0) continue;
            if (rows && *count < capacity) rows[*count] = at + i;
            ++*count;
        }
    }
    return rows && *count > capacity ? leat__fail(err, LEAT_ELIMIT, "%s: %llu rows are selected",
                                                  leat_pack_path(p->selection), (unsigned long long)*count)
                                     : 0;
}

int leat_pack_select(leat_pack *pack, const char *path, uint64_t *rows, uint64_t capacity, uint64_t *count,
                     leat_error *err)
{
    part p = {.selection = NULL};
    uint32_t field = 0;
    LEAT_REQUIRE(pack != NULL && path != NULL && count != NULL, err);
    *count = 0;
    LEAT_TRY(leat_pack_open(&p.selection, path, NULL, err));
    p.total = leat_pack_count(pack);
    int rc = leat__selection_field(p.selection, &field, err);
    if (rc == 0) rc = leat__pack_bind(p.selection, pack, &p.first, err);
    if (rc == 0) rc = collect(&p, field, rows, capacity, count, err);
    leat_pack_close(&p.selection);
    return rc;
}

int leat__selection_rows(leat_pack *pack, const char *path, uint64_t **rows, uint64_t *count, leat_error *err)
{
    *rows = NULL;
    LEAT_TRY(leat_pack_select(pack, path, NULL, 0, count, err));
    if (*count == 0)
        return leat__fail(err, LEAT_EINVAL, "%s: no row of %s is selected", path, leat_pack_path(pack));
    uint64_t *found = LEAT_NEW_ARRAY(PACK, uint64_t, *count);
    if (!found) return leat__fail_nomem(err, *count * sizeof *found, "a selection");
    int rc = leat_pack_select(pack, path, found, *count, count, err);
    if (rc == 0) *rows = found;
    else leat__free(found);
    return rc;
}
