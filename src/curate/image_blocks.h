/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries for near descriptors, in memory or from disk. On disk, descriptors are divided into parts
 * in the order of their lists, and rows into blocks. The queries of a block search one part at a
 * time, with the same result as a search in memory.
 */
#ifndef LEAT_CURATE_IMAGE_BLOCKS_H
#define LEAT_CURATE_IMAGE_BLOCKS_H

#include "curate/image_dedup.h"

#define LEAT__DEDUP_ROOM 96 /* maximum descriptors that a query finds */
#define LEAT__DEDUP_WINDOW (UINT32_C(1) << 31)

typedef struct leat__dedup_ask {
    const leat__dedup_rows *rows;
    const leat__image_index *index;
    const leat__dedup_entries *from; /* descriptors in the index's lists */
    bool across;                     /* searches all rows of other packs, instead of earlier rows */
} leat__dedup_ask;

/* A query: a descriptor of rows->entry in one orientation. */
typedef struct leat__dedup_question {
    uint32_t row, entry; /* entry: index among the row's descriptors */
    unsigned orientation;
} leat__dedup_question;

/* Adds the nearest descriptors of `n` queries (at most LEAT__NEAR_QUERIES) to heaps of LEAT__DEDUP_ROOM. For
 * each result, `owner` is the row, plus LEAT__DEDUP_WINDOW for a window. `rank` is the distance of the fine
 * descriptors, or of the coarse ones when one is a window. `scratch`: see leat__image_index_scan. */
void leat__dedup_ask_some(const leat__dedup_ask *ask, const leat__dedup_question *question,
                          leat__near_heap *heap, uint32_t n, void *scratch);

typedef struct leat__dedup_blocks leat__dedup_blocks;

/* Opens a search over rows whose descriptors are in files; more files are written beside them.
 * rows->memory limits everything, including the rows. */
int leat__dedup_blocks_open(leat__dedup_blocks **b, const leat__dedup_search *search,
                            leat_error *err) LEAT_MUST_CHECK;
void leat__dedup_blocks_close(leat__dedup_blocks **b);
/* Searches for the next rows [*first, *end) and loads their descriptors into rows->entry. Sets first
 * = end after the last block. */
int leat__dedup_blocks_next(leat__dedup_blocks *b, uint32_t *first, uint32_t *end,
                            leat_error *err) LEAT_MUST_CHECK;
/* Removes the files that a killed run left in the folder, and the folder if nothing else is in it. */
void leat__dedup_blocks_forget(const char *folder);
/* Returns the heap of a descriptor of the block. */
leat__near_heap *leat__dedup_blocks_found(const leat__dedup_blocks *b, uint32_t entry, unsigned orientation);

#endif
