/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs whose rows correspond: columns beside a pack, and selections of its rows.
 */
#ifndef LEAT_PACK_SELECTION_H
#define LEAT_PACK_SELECTION_H

#include <leat/pack.h>

#include "base/buf.h"
#include "base/json.h"

/* Reads the key of a sample, of any length, into a buffer whose maximum is 2 MiB or more. */
int leat__pack_key_read(leat_pack *pack, uint64_t sample, leat__buf *key, leat_error *err) LEAT_MUST_CHECK;

/* Opens a packer for columns. They are not resumed after a crash: the next run discards the files of a killed
 * one. */
int leat__packer_open_once(leat_packer **packer, const char *path, const leat_packer_opts *opts,
                           leat_error *err) LEAT_MUST_CHECK;

/* Finds the row in `columns` at which the rows of `pack` begin. LEAT_EINVAL, with the first difference, when
 * the columns name the fingerprint of another pack, or their number of rows or a key differs. */
int leat__pack_bind(leat_pack *columns, leat_pack *pack, uint64_t *first, leat_error *err) LEAT_MUST_CHECK;
/* Like leat__pack_bind, for columns of this pack alone. */
int leat__pack_match_rows(leat_pack *columns, leat_pack *pack, leat_error *err) LEAT_MUST_CHECK;
/* Adds "fingerprint" to the provenance of columns made from `pack`. */
void leat__pack_describe(const leat_pack *pack, leat__json *j);
/* Copies the fingerprint of the pack from the provenance of `columns`, for columns made from columns. Adds
 * nothing when the provenance names no pack. */
void leat__pack_pass_on(const leat_pack *columns, leat__json *j);

/* LEAT_EINVAL when `output` is the file of `input`: a result must not replace its input. Either may be
 * NULL. */
int leat__pack_spare_input(const char *output, const char *input, leat_error *err) LEAT_MUST_CHECK;
/* The same for the shards of a set, while the set itself may be replaced. */
int leat__pack_spare_shards(const char *output, const char *set, leat_error *err) LEAT_MUST_CHECK;
/* LEAT_EINVAL when two results have the same name. Either may be NULL. */
int leat__pack_spare_result(const char *output, const char *other, leat_error *err) LEAT_MUST_CHECK;

/* Finds the field that marks the selected rows: the int field 'selected', or 'keep'. */
int leat__selection_field(const leat_pack *selection, uint32_t *field, leat_error *err) LEAT_MUST_CHECK;

/* Returns the rows that a selection marks (leat_pack_select), for the caller to free. LEAT_EINVAL when there
 * are none. */
int leat__selection_rows(leat_pack *pack, const char *path, uint64_t **rows, uint64_t *count,
                         leat_error *err) LEAT_MUST_CHECK;

#endif
