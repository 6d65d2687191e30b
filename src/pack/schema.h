/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a pack: their JSON form, and the form of their cells in the index. Immutable, so
 * any thread may use it.
 */
#ifndef LEAT_PACK_SCHEMA_H
#define LEAT_PACK_SCHEMA_H

#include <stdbool.h>

#include <leat/pack.h>

#include "base/buf.h"
#include "base/error.h"

typedef struct leat__schema {
    uint32_t count;
    leat_field *fields; /* names are owned */
    uint32_t row_bytes; /* sum of the widths of all columns */
} leat__schema;

/* Makes a deep copy after all checks: names are unique and valid, sizes of shapes fit. */
int leat__schema_make(leat__schema **s, const leat_field *fields, uint32_t count,
                      leat_error *err) LEAT_MUST_CHECK;
int leat__schema_parse(leat__schema **s, const char *json, size_t len, leat_error *err) LEAT_MUST_CHECK;
void leat__schema_close(leat__schema **s);

/* Writes the canonical JSON: equal fields always give the same text. */
int leat__schema_json(const leat__schema *s, leat__buf *out); /* returns the buffer's status */

bool leat__field_is_payload(const leat_field *f);      /* has bytes in the page */
uint32_t leat__field_width(const leat_field *f);       /* bytes of a cell in the index */
uint64_t leat__field_array_bytes(const leat_field *f); /* ARRAY: bytes of every value */
/* RAGGED: bytes of the shape, which is before the elements. */
uint32_t leat__field_shape_bytes(const leat_field *f);

/* Store and load a cell of the index. load checks that the payload is inside a sample of `size` bytes. */
void leat__cell_store(const leat_field *f, uint8_t *p, const leat_pack_cell *cell);
bool leat__cell_load(const leat_field *f, const uint8_t *p, uint64_t size, leat_pack_cell *cell);

/* Returns a view of the entry points after an image, in a sample of `size` bytes. NULL and 0 when there are
 * none or they are invalid: they are only an optimisation. */
const uint8_t *leat__cell_entries(const leat_pack_cell *cell, const uint8_t *sample, uint64_t size,
                                  size_t *entries_size);

#endif
