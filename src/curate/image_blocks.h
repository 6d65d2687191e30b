/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries for near descriptors, in memory or from disk. From disk, descriptors are divided into parts in the
 * order of their lists, and rows into blocks: the queries of a block search one part after the other. They
 * find what a search in memory finds.
 */
#ifndef LEAT_CURATE_IMAGE_BLOCKS_H
#define LEAT_CURATE_IMAGE_BLOCKS_H

#include "curate/image_dedup.h"

#define LEAT__DEDUP_ROOM 96 /* descriptors that a query finds */
#define LEAT__DEDUP_WINDOW (UINT32_C(1) << 31)

typedef struct leat__dedup_ask {
    const leat__dedup_rows *rows;
    const leat__image_index *index;
    const leat__dedup_entries *from; /* descriptors of the index's lists */
    bool across;                     /* all rows of other packs, not earlier rows */
} leat__dedup_ask;

/* A query: a descriptor of rows->entry, turned. */
typedef struct leat__dedup_question {
    uint32_t row, entry; /* entry: one of the row's */
    unsigned orientation;
} leat__dedup_question;

/* Adds the nearest descriptors of `n` queries, at most LEAT__NEAR_QUERIES, to heaps of LEAT__DEDUP_ROOM. Of
 * each, `owner` is the row, with LEAT__DEDUP_WINDOW when it is a window, and `rank` the distance of the fine
 * descriptors, or of the coarse ones when one is a window. `scratch` as for leat__image_index_scan. */
void leat__dedup_ask_some(const leat__dedup_ask *ask, const leat__dedup_question *question,
                          leat__near_heap *heap, uint32_t n, void *scratch);

typedef struct leat__dedup_blocks leat__dedup_blocks;

/* The rows have their descriptors in files; more files are written beside them. rows->memory is for all of
 * it, rows included. */
int leat__dedup_blocks_open(leat__dedup_blocks **b, const leat__dedup_search *search,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_blocks_close(leat__dedup_blocks **b);
/* Searches for the next rows [*first, *end) and loads their descriptors into rows->entry. first = end after
 * the last. */
int leat__dedup_blocks_next(leat__dedup_blocks *b, uint32_t *first, uint32_t *end,
                            leat_error *err) LEAT_MUST_CHECK;
/* Removes the files that a killed run left in the folder, and the folder if nothing else is in it. */
void leat__dedup_blocks_forget(const char *folder);
/* The heap of a descriptor of the block. */
leat__near_heap *leat__dedup_blocks_found(const leat__dedup_blocks *b, uint32_t entry, unsigned orientation);

#endif
