/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the packs in a search. The index is approximate, each row keeps only some candidates,
 * and equal distances are ordered by row, so packs in another order would give other pairs. The search
 * therefore takes the packs in the order of their fingerprints, and the result is renumbered. See
 * image_dedup.h.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "curate/image_dedup.h"

typedef struct placed {
    uint64_t fingerprint;
    uint32_t number;
} placed;

static int by_fingerprint(const void *x, const void *y)
{
    const placed *a = x, *b = y;
    if (a->fingerprint != b->fingerprint) return a->fingerprint < b->fingerprint ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

int leat__dedup_order_find(const char *const *columns, uint32_t count, uint32_t *order, leat_error *err)
{
    placed *p = LEAT_NEW_ARRAY(CURATE, placed, LEAT_MAX(count, 1));
    int rc = p ? 0 : leat__fail_nomem(err, count * sizeof *p, "inputs");
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        leat_pack *pack = NULL;
        leat_pack_info info = {.struct_size = sizeof info};
        rc = leat_pack_open(&pack, columns[i], NULL, err);
        if (rc == 0) (void)leat_pack_info_read(pack, &info, sizeof info);
        leat_pack_close(&pack);
        p[i] = (placed){info.fingerprint, i};
    }
    if (rc == 0) qsort(p, count, sizeof *p, by_fingerprint);
    for (uint32_t i = 0; i < count && rc == 0; i++) order[i] = p[i].number;
    leat__free(p);
    return rc;
}

typedef struct renumbering {
    leat__dedup_rows *rows;
    const uint32_t *order;
    const uint32_t *first; /* first row of each pack in the order given, and the end */
} renumbering;

static uint32_t place_of(const renumbering *x, uint32_t row, uint32_t pack)
{
    return x->first[x->order[pack]] + row - x->rows->first[pack];
}

/* Moves each row to its place along the cycles of the permutation. In place, as rows may fill the memory. */
#define MOVED (UINT32_C(1) << 31) /* a bit of `pack` */
static void move_rows(const renumbering *x)
{
    leat__dedup_row *row = x->rows->row;
    const uint32_t count = x->rows->count;
    for (uint32_t i = 0; i < count; i++) {
        leat__dedup_row moving = row[i];
        if (moving.pack & MOVED) continue;
        uint32_t at = i;
        do {
            at = place_of(x, at, moving.pack);
            const leat__dedup_row next = row[at];
            moving.pack = x->order[moving.pack] | MOVED;
            row[at] = moving;
            moving = next;
        } while (at != i);
    }
    for (uint32_t i = 0; i < count; i++) row[i].pack &= ~MOVED;
}

int leat__dedup_order_restore(leat__dedup_rows *rows, leat__image_pairs *pairs, const uint32_t *order,
                              leat_error *err)
{
    const uint32_t packs = rows->packs;
    uint32_t *first = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)packs + 1);
    if (!first) return leat__fail_nomem(err, 4 * (size_t)packs, "inputs");
    for (uint32_t i = 0; i < packs; i++) first[order[i] + 1] = rows->first[i + 1] - rows->first[i];
    for (uint32_t i = 0; i < packs; i++) first[i + 1] += first[i];
    const renumbering x = {rows, order, first};
    for (uint64_t i = 0; i < pairs->count; i++) {
        leat__image_pair *p = &pairs->pair[i];
        const uint8_t probable = p->probable;
        *p = leat__image_pair_of(place_of(&x, p->b, rows->row[p->b].pack),
                                 place_of(&x, p->a, rows->row[p->a].pack), p->orientation, p->similarity);
        p->probable = probable;
    }
    leat__image_pairs_sort(pairs);
    move_rows(&x);
    for (uint32_t i = 0; i <= packs; i++) rows->first[i] = first[i];
    leat__free(first);
    return 0;
}
