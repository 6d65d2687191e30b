/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls for higher modules, in addition to include/leat/pack.h: the location of a page on disk, so that a
 * loader can read it with its own asynchronous reads, and the check to apply afterwards.
 */
#ifndef LEAT_PACK_READER_H
#define LEAT_PACK_READER_H

#include <leat/pack.h>

#include "io/file.h"

/* Returns the file of a shard: a view that lives as long as the pack. If the pack was opened with direct I/O,
 * reads of the file need LEAT__IO_ALIGN, which pages do not have (leat__span_around). */
const leat__file *leat__pack_file(const leat_pack *pack, uint32_t shard);

/* Returns the bytes of a shard's file before its index: the part with samples. */
uint64_t leat__pack_data_end(const leat_pack *pack, uint32_t shard);
uint32_t leat__pack_shards(const leat_pack *pack);

/* Prefetches cached index entries of samples that will be looked up soon. In a large index, random lookups
 * mostly wait for memory, and prefetching overlaps these waits. Only a hint. */
void leat__pack_touch(const leat_pack *pack, const uint64_t *samples, uint32_t count, const uint32_t *fields,
                      uint32_t field_count);

/* Like leat_pack_read(), for a caller that already has the row. */
int leat__pack_read_row(leat_pack *pack, uint64_t sample, const leat_pack_row *row, void *buf,
                        size_t capacity, leat_error *err) LEAT_MUST_CHECK;

/* Verifies the bytes of a sample that the caller read from row->file_offset of its shard's file
 * (unless no_verify). LEAT_EDATA names file, sample, key and offset. */
int leat__pack_sample_check(leat_pack *pack, uint64_t sample, const leat_pack_row *row, const void *bytes,
                            leat_error *err) LEAT_MUST_CHECK;

/* Verifies bytes that the caller read against the page's checksum (unless no_verify). LEAT_EDATA
 * names file, page and offset. */
int leat__pack_page_check(leat_pack *pack, uint64_t page, const leat_pack_page *info, const void *bytes,
                          leat_error *err) LEAT_MUST_CHECK;

/* Joined packs (leat_pack_open_many): return the part of a shard or a sample; 0 for other packs. */
uint32_t leat__pack_part_of_shard(const leat_pack *pack, uint32_t shard);
uint32_t leat__pack_part_of_sample(const leat_pack *pack, uint64_t sample);
/* Returns a part that lacks this field or has it with another type; NULL when all have it. */
leat_pack *leat__pack_lacking(leat_pack *pack, uint32_t field);
/* Sets the value that leat_pack_cells returns for samples of parts without the field. The cell's `reserved`
 * is 1 there. */
void leat__pack_fill(leat_pack *pack, uint32_t field, int64_t i, double f);

/* Returns the list of a set's shards as JSON text (leat__free); "" for a pack in one file. LEAT_ENOENT: no
 * pack. */
int leat__set_list(const char *path, char **list, leat_error *err) LEAT_MUST_CHECK;
/* True when the set at `path` lists a shard of this name; false also when there is no set. */
bool leat__set_has(const char *path, const char *file);
/* True when the list has a shard of this name. */
bool leat__list_has(const char *list, const char *file);
/* Calls `each` for the shards of the list `old` that the list `kept` does not have. Shards that are not named
 * after the set at `path` are left out: it was copied, and the original needs them. */
void leat__set_replaced(const char *path, const char *old, const char *kept,
                        void (*each)(void *cookie, const char *file), void *cookie);

/* Returns the name of a shard with a tag, "NAME-00000-FINGERPRINT-TAG.leat" (leat__free); the name itself for
 * the tag "". NULL: out of memory. */
char *leat__shard_tagged(const char *file, const char *tag);
/* Writes a copy of an open set to the file `to`, with tagged names of its shards. The set has no dropped
 * samples. */
int leat__set_retag(leat_pack *set, const char *to, const char *tag, leat_error *err) LEAT_MUST_CHECK;
/* Reads the check of the footer, which is the fingerprint of a pack or set. Shards are not opened. */
int leat__pack_check(const char *path, uint64_t *check, leat_error *err) LEAT_MUST_CHECK;

/* index_bytes returns the bytes of the index; index_keep sets how many of them may be cached in memory (never
 * fewer than before). Call before other threads use the pack. */
uint64_t leat__pack_index_bytes(const leat_pack *pack);
void leat__pack_index_keep(leat_pack *pack, uint64_t bytes);
/* Limits the cached bytes of the indexes of remote files, by default up to 1 GiB. */
void leat__pack_index_limit(leat_pack *pack, uint64_t bytes);

#endif
