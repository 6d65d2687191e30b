/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs whose rows belong together: columns beside a pack, and selections of its rows.
 */
#ifndef LEAT_PACK_SELECTION_H
#define LEAT_PACK_SELECTION_H

#include <leat/pack.h>

#include "base/buf.h"

/* The key of a sample, of any length, into a buffer whose maximum is 2 MiB or more. */
int leat__pack_key_read(leat_pack *pack, uint64_t sample, leat__buf *key,
                        leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EINVAL, with the first difference, when `columns` has other rows than `pack`:
 * another number, or another key somewhere. */
int leat__pack_match_rows(leat_pack *columns, leat_pack *pack,
                          leat_error *err) LEAT_MUST_CHECK;

/* LEAT_EINVAL when `output` is the file of `input`: a result must not replace what it is made from. Either
 * may be NULL. */
int leat__pack_spare_input(const char *output, const char *input, leat_error *err) LEAT_MUST_CHECK;

/* The field that says which rows are selected: the int field 'selected', or 'keep'. */
int leat__selection_field(const leat_pack *selection, uint32_t *field,
                          leat_error *err) LEAT_MUST_CHECK;

#endif
