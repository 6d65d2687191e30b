/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows that the user selected, one bit each. Saved as a selection: a pack with the rows and keys of
 * the viewed pack, bound to it by its fingerprint, and an int field 'selected'. The caller serialises all
 * calls.
 */
#ifndef LEAT_VIEW_VIEW_SELECT_H
#define LEAT_VIEW_VIEW_SELECT_H

#include "view/view_data.h"

typedef struct leat__view_selection {
    uint8_t *bits;
    uint32_t rows, count;
    uint64_t version; /* incremented by every change */
} leat__view_selection;

int leat__view_selection_init(leat__view_selection *s, uint32_t rows, leat_error *err) LEAT_MUST_CHECK;
void leat__view_selection_reset(leat__view_selection *s);

static inline bool leat__view_selected(const leat__view_selection *s, uint32_t row)
{
    return s->bits[row >> 3] >> (row & 7) & 1;
}
void leat__view_select(leat__view_selection *s, uint32_t row, bool on); /* row < rows */

/* Selects the rows whose 'selected' or else 'keep' is not 0 in the selection at `path`. LEAT_EINVAL
 * when it was not made from `pack`. */
int leat__view_selection_load(leat__view_selection *s, leat_pack *pack, const char *path,
                              leat_error *err) LEAT_MUST_CHECK;
/* Writes BASE.leat or, if that exists, BASE-2.leat …: nothing is ever replaced. *path is a new string
 * (leat__free). LEAT_ECANCELED when *stopping becomes true. */
int leat__view_selection_save(const leat__view_selection *s, leat_pack *pack, const char *base,
                              const atomic_bool *stopping, char **path, leat_error *err) LEAT_MUST_CHECK;

#endif
