/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes everything after the pages of a file: the index from the journal in one pass, its
 * checks, the directory, the footer. Memory does not grow with the number of samples. The packer
 * writes the header, as the last step. One thread.
 */
#ifndef LEAT_PACK_INDEXER_H
#define LEAT_PACK_INDEXER_H

#include "io/file.h"
#include "pack/blobs.h"
#include "pack/journal.h"
#include "pack/layout.h"
#include "pack/schema.h"

typedef struct leat__indexer {
    uint32_t kind; /* leat__pack_kind */
    const leat__schema *schema;
    const char *provenance; /* JSON */
    const char *shards;     /* JSON, sets only */
    const leat__buf *drops; /* sets only: dropped samples in order, or NULL */
    const leat__blobs *blobs;
    leat__journal *journal; /* packs only: page records of `shard` from `journal_from` on */
    uint64_t journal_from;
    uint32_t shard;
    uint64_t samples, pages, keys_bytes;
    uint64_t data_end; /* end of the pages */
    uint64_t page_bytes, max_page_bytes, max_sample_bytes;
    size_t sort_memory; /* 0 = default */
} leat__indexer;

/* Computes the size of the finished file. */
int leat__indexer_size(const leat__indexer *x, uint64_t *file_bytes, leat_error *err) LEAT_MUST_CHECK;
/* Writes the index and everything after it, and truncates the file to its size; fills *footer. */
int leat__indexer_write(const leat__indexer *x, leat__file *file, leat__footer *footer,
                        uint64_t *duplicate_keys, leat_error *err) LEAT_MUST_CHECK;

#endif
