/* SPDX-License-Identifier: Apache-2.0
 *
 * A pack and the column packs beside it, as one table whose int and float fields are read by name.
 * A name that several columns have is refused when it is used. The full name says which one is meant: the
 * name of the file without its folder and ".leat", a dot, the name of the field ("photos.check.blur").
 */
#ifndef LEAT_CURATE_COLUMN_PACKS_H
#define LEAT_CURATE_COLUMN_PACKS_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/error.h"

typedef struct leat__pack_column {
    leat_pack *pack;
    uint64_t first; /* first row of the pack */
    uint32_t field;
    const leat_field *is;
    char *full;
    bool shared; /* another pack has a column of this name too */
} leat__pack_column;

typedef struct leat__column_packs {
    leat_pack **pack;
    uint64_t *first; /* number of the first row of each pack */
    uint32_t count;
    leat__pack_column *column; /* int and float fields of all packs */
    uint32_t columns;
    uint64_t rows;
} leat__column_packs;

/* Opens the pack at `path` and its `columns`, which may be several packs. Fails with LEAT_EINVAL when one of
 * them has other rows than the main pack. */
int leat__column_packs_open(leat__column_packs *s, const char *path, const char *const *columns,
                            uint32_t count, leat_error *err) LEAT_MUST_CHECK;
void leat__column_packs_close(leat__column_packs *s);

/* Reads a column as numbers, one per row. LEAT_ENOFIELD: no column has the name; LEAT_EINVAL: several have
 * it.
 */
int leat__column_packs_numbers(leat__column_packs *s, const char *name, double *out,
                               leat_error *err) LEAT_MUST_CHECK;

/* Reads an int column. The name `folder`, when no column has it, gives the hash of the folder of each key. */
int leat__column_packs_codes(leat__column_packs *s, const char *name, int64_t *out,
                             leat_error *err) LEAT_MUST_CHECK;
/* Returns the code of a value given as text: a class name, a number, or a folder. */
int leat__column_packs_code_of(leat__column_packs *s, const char *name, const char *text, int64_t *code,
                               leat_error *err) LEAT_MUST_CHECK;

/* Returns the class names of an int column; *count is 0 when it has none. The names live as long as `s`. */
int leat__column_packs_classes(leat__column_packs *s, const char *name, const char *const **names,
                               uint64_t *count, leat_error *err) LEAT_MUST_CHECK;

/* Sets out[row] to false for each row that does not meet the condition (ingest/where.h).
 */
int leat__column_packs_where(leat__column_packs *s, const char *where, bool *out,
                             leat_error *err) LEAT_MUST_CHECK;

#endif
