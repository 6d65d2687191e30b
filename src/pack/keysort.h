/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorts key hashes in bounded memory. The unsorted hashes are in a file in sample order. Each
 * pass picks one range of hash values that fits in memory, sorts it, and writes it after the
 * previous ranges. One thread.
 */
#ifndef LEAT_PACK_KEYSORT_H
#define LEAT_PACK_KEYSORT_H

#include "io/file.h"

typedef struct leat__keysort {
    leat__file *file;
    uint64_t count;
    uint64_t from;      /* unsorted: u64 hash per sample */
    uint64_t hashes_to; /* sorted: u64 hash */
    uint64_t rows_to;   /* sorted: u32 sample, at the same position */
    size_t memory;      /* bytes to use; 0 = 96 MiB */
} leat__keysort;

/* *duplicates: number of entries with the same hash as the previous one. */
int leat__keysort_run(const leat__keysort *k, uint64_t *duplicates, leat_error *err) LEAT_MUST_CHECK;

#endif
