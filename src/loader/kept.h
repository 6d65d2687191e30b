/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a pack that a loader keeps in memory besides its batches: the index, and the bytes of tiny
 * samples. Shuffled orders read a few bytes at a random place for every sample, and a system call for each
 * would cost more than everything else.
 *
 * Samples are kept as parts of their file, each copied from the OS page cache when its first
 * sample is requested; nothing here waits for a disk, and nothing is released before close. The
 * bytes are charged to the budget when the loader is opened. Any thread may copy.
 */
#ifndef LEAT_LOADER_KEPT_H
#define LEAT_LOADER_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#include <leat/loader.h>
#include <leat/pack.h>

#define LEAT__KEPT_PART 16384u           /* bytes of a file, kept together */
#define LEAT__TINY_SAMPLE UINT64_C(1024) /* mean bytes up to which samples are kept */

#define LEAT__INDEX_FREE (UINT64_C(16) << 20) /* index bytes that every pack may cache outside the budget */

typedef struct leat__kept leat__kept;

/* Opens an object that keeps at most `limit` bytes. The pack must outlive it. */
int leat__kept_open(leat__kept **kept, leat_pack *pack, uint64_t limit, leat_error *err) LEAT_MUST_CHECK;
void leat__kept_close(leat__kept **kept);

/* True when the bytes are kept; then also prefetches them into the CPU cache. */
bool leat__kept_has(const leat__kept *kept, uint32_t shard, uint64_t offset, uint64_t len);

/* Copies bytes of a shard's file, and keeps their parts if there is room. False when they are not in the OS
 * page cache; then nothing is copied. */
bool leat__kept_copy(leat__kept *kept, uint32_t shard, uint64_t offset, void *to, uint64_t len);

/* Bytes held now. */
uint64_t leat__kept_bytes(const leat__kept *kept);

/* Returns how many of the `total` bytes of a remote index a loader with this budget keeps. Those beyond
 * LEAT__INDEX_FREE are charged. */
uint64_t leat__kept_index(uint64_t limit, uint64_t floor, uint64_t total);

/* Decides what a loader keeps, once its floor is known, and charges its budget for it. */
int leat__loader_keep(leat_loader *l, leat_error *err) LEAT_MUST_CHECK;

#endif
