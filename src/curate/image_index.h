/* SPDX-License-Identifier: Apache-2.0
 *
 * Searches for near descriptors with an inverted file: coarse descriptors are put into lists
 * around k-means centres, and a query searches only the nearest lists. Built by one thread, and
 * deterministic; then any number of threads may search.
 */
#ifndef LEAT_CURATE_IMAGE_INDEX_H
#define LEAT_CURATE_IMAGE_INDEX_H

#include "base/error.h"
#include "curate/image_sign.h"

typedef struct leat__image_index leat__image_index;

/* `codes`: `count` descriptors of LEAT__COARSE_BYTES, whose last byte is ignored; copied. */
int leat__image_index_open(leat__image_index **index, const int8_t *codes, uint32_t count,
                           leat_error *err) LEAT_MUST_CHECK;
void leat__image_index_close(leat__image_index **index);

/* Memory for `count` descriptors. */
uint64_t leat__image_index_bytes(uint64_t count);
uint32_t leat__image_index_lists(const leat__image_index *index);

typedef struct leat__near {
    uint32_t entry;
    float distance;
} leat__near;

typedef struct leat__near_query {
    const int8_t *code;
    float limit;     /* only entries nearer than this */
    float share;     /* of the lists to search; at least 8 are */
    uint32_t before; /* only entries below this number */
} leat__near_query;

/* Writes the nearest entries to out[room], nearest first; equal ones by number. Returns how many. `scratch`
 * has room for two numbers per list. */
uint32_t leat__image_index_find(const leat__image_index *index, const leat__near_query *query,
                                leat__near *out, uint32_t room, int32_t *scratch);

#endif
