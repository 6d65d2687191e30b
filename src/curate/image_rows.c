/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of all packs and their descriptors in memory: about 230 bytes an image. See image_dedup.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/image_dedup.h"

#define WINDOWS 3 /* each way */
#define WINDOW_SIDE 0.75f
#define ENTRY_BYTES (LEAT__COARSE_BYTES + LEAT__FINE_BYTES + 5)

int leat__image_pairs_add(leat__image_pairs *p, const leat__image_pair *pair, leat_error *err)
{
    if (p->count == p->room) {
        const uint64_t room = p->room ? 2 * p->room : 1024;
        leat__image_pair *more = leat__realloc(LEAT__MEM_CURATE, p->pair, (size_t)room * sizeof *more);
        if (!more) return leat__fail_nomem(err, (size_t)room * sizeof *more, "pairs");
        p->pair = more;
        p->room = room;
    }
    p->pair[p->count++] = *pair;
    return 0;
}

static int grow(leat__dedup_rows *r, leat_error *err)
{
    if (r->entries < r->entry_room) return 0;
    const size_t room = r->entry_room ? (size_t)r->entry_room + r->entry_room / 2 : 4096;
    void **const parts[] = {(void **)&r->coarse, (void **)&r->fine, (void **)&r->owner, (void **)&r->window};
    static const size_t sizes[] = {LEAT__COARSE_BYTES, LEAT__FINE_BYTES, sizeof(uint32_t), 1};
    if (room > UINT32_MAX / 2)
        return leat__fail(err, LEAT_ELIMIT, "more than %u descriptors", UINT32_MAX / 2);
    for (size_t i = 0; i < LEAT_COUNT(parts); i++) {
        void *more = leat__realloc(LEAT__MEM_CURATE, *parts[i], room * sizes[i]);
        if (!more) return leat__fail_nomem(err, room * sizes[i], "descriptors");
        *parts[i] = more;
    }
    r->entry_room = (uint32_t)room;
    return 0;
}

static int add_entry(leat__dedup_rows *r, uint32_t owner, const int8_t *coarse, const int8_t *fine,
                     uint32_t *number, leat_error *err)
{
    *number = LEAT__DEDUP_NONE;
    if (coarse[LEAT__COARSE_FLAGS] & LEAT__SIGN_FLAT) return 0;
    LEAT_TRY(grow(r, err));
    const uint32_t at = r->entries++;
    memcpy(r->coarse + (size_t)at * LEAT__COARSE_BYTES, coarse, LEAT__COARSE_BYTES);
    if (fine) memcpy(r->fine + (size_t)at * LEAT__FINE_BYTES, fine, LEAT__FINE_BYTES);
    else memset(r->fine + (size_t)at * LEAT__FINE_BYTES, 0, LEAT__FINE_BYTES);
    r->owner[at] = owner;
    r->window[at] = fine == NULL;
    *number = at;
    return 0;
}

static int add_windows(leat__dedup_rows *r, uint32_t owner, const uint8_t *thumb, leat_error *err)
{
    const float step = (1 - WINDOW_SIDE) / (WINDOWS - 1);
    for (int i = 0; i < WINDOWS * WINDOWS; i++) {
        int8_t coarse[LEAT__COARSE_BYTES];
        uint32_t number;
        const float left = step * (float)(i % WINDOWS), top = step * (float)(i / WINDOWS);
        leat__image_sign_part(thumb, left, top, WINDOW_SIDE, coarse);
        LEAT_TRY(add_entry(r, owner, coarse, NULL, &number, err));
    }
    return 0;
}

static int add_row(leat__dedup_rows *r, uint32_t at, uint32_t pack, const leat__image_facts *f, bool windows,
                   leat_error *err)
{
    leat__dedup_row *row = &r->row[at];
    *row = (leat__dedup_row){.content_hash = f->content_hash,
                             .size = f->score[LEAT__LOOK_SIZE],
                             .quality = f->score[LEAT__LOOK_QUALITY],
                             .bytes = f->bytes,
                             .pack = pack,
                             .entry = LEAT__DEDUP_NONE,
                             .trimmed = LEAT__DEDUP_NONE};
    if (!f->is_signed) return 0;
    LEAT_TRY(add_entry(r, at, f->sign.coarse, f->sign.fine, &row->entry, err));
    if (f->sign.has_trimmed)
        LEAT_TRY(add_entry(r, at, f->sign.trimmed, f->sign.trimmed + LEAT__COARSE_BYTES, &row->trimmed, err));
    if (windows && row->entry != LEAT__DEDUP_NONE) LEAT_TRY(add_windows(r, at, f->sign.thumb, err));
    return 0;
}

static int read_pack(leat__dedup_rows *r, uint32_t pack, const char *path, bool windows, leat_error *err)
{
    leat__image_columns c;
    leat__image_facts f;
    int rc = 0;
    LEAT_TRY(leat__image_columns_open(&c, path, err));
    r->first_entry[pack] = r->entries;
    for (uint64_t i = 0; i < c.count && rc == 0; i++) {
        rc = leat__image_columns_read(&c, i, &f, err);
        if (rc == 0) rc = add_row(r, r->first[pack] + (uint32_t)i, pack, &f, windows, err);
    }
    leat__image_columns_close(&c);
    return rc;
}

/* Counts the rows of all packs, and refuses more than fit the memory. */
static int count_rows(leat__dedup_rows *r, const char *const *paths, bool windows, uint64_t memory,
                      leat_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < r->packs; i++) {
        leat__image_columns c;
        LEAT_TRY(leat__image_columns_open(&c, paths[i], err));
        r->first[i] = (uint32_t)total;
        total += c.count;
        leat__image_columns_close(&c);
        if (total >= UINT32_MAX / 16)
            return leat__fail(err, LEAT_ELIMIT, "more than %u images", UINT32_MAX / 16);
    }
    r->first[r->packs] = r->count = (uint32_t)total;
    const uint64_t entries = total * (windows ? 11 : 1) + total / 4;
    const uint64_t need =
        total * (sizeof *r->row + 8) + entries * ENTRY_BYTES * 5 / 4 + leat__image_index_bytes(entries);
    if (memory > 0 && need > memory)
        return leat__fail(err, LEAT_EBUDGET,
                          "%llu images need %llu bytes of memory, more than the %llu given",
                          (unsigned long long)total, (unsigned long long)need, (unsigned long long)memory);
    return 0;
}

int leat__dedup_rows_read(leat__dedup_rows *r, const char *const *paths, uint32_t count, bool windows,
                          uint64_t memory, leat_error *err)
{
    memset(r, 0, sizeof *r);
    r->packs = count;
    r->first = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)count + 1);
    r->first_entry = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)count + 1);
    if (!r->first || !r->first_entry) return leat__fail_nomem(err, 4 * (size_t)count, "rows");
    LEAT_TRY(count_rows(r, paths, windows, memory, err));
    r->row = LEAT_NEW_ARRAY(CURATE, leat__dedup_row, LEAT_MAX(r->count, 1));
    if (!r->row) return leat__fail_nomem(err, r->count * sizeof *r->row, "rows");
    for (uint32_t i = 0; i < count; i++) LEAT_TRY(read_pack(r, i, paths[i], windows, err));
    return 0;
}

void leat__dedup_rows_reset(leat__dedup_rows *r)
{
    leat__free(r->row);
    leat__free(r->first);
    leat__free(r->first_entry);
    leat__free(r->coarse);
    leat__free(r->fine);
    leat__free(r->owner);
    leat__free(r->window);
    memset(r, 0, sizeof *r);
}
