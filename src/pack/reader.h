/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rooms above need beyond include/leat/pack.h: where a page lies on disk, so that a
 * loader can read it through its own asynchronous lane, and the check to apply afterwards.
 */
#ifndef LEAT_PACK_READER_H
#define LEAT_PACK_READER_H

#include <leat/pack.h>

#include "io/file.h"

/* The file of a shard: a view that lives as long as the pack. Opened with direct I/O when
 * the pack was: then reads need LEAT__IO_ALIGN, which pages do not have (leat__span_around). */
const leat__file *leat__pack_file(const leat_pack *pack, uint32_t shard);

/* Bytes of a shard's file in front of its index: where samples lie. */
uint64_t leat__pack_data_end(const leat_pack *pack, uint32_t shard);
uint32_t leat__pack_shards(const leat_pack *pack);

/* Asks the CPU for the kept index entries of samples that will be looked up soon: at random places
 * of a large index these waits are most of a look-up, and they overlap. Only a hint. */
void leat__pack_touch(const leat_pack *pack, const uint64_t *samples, uint32_t count,
                      const uint32_t *fields, uint32_t field_count);

/* leat_pack_read() for someone who has looked already. */
int leat__pack_read_row(leat_pack *pack, uint64_t sample, const leat_pack_row *row, void *buf,
                        size_t capacity, leat_error *err) LEAT_MUST_CHECK;

/* Checks the bytes of a sample read by someone else from row->file_offset of its shard's file
 * (unless no_verify). LEAT_EDATA names file, sample, key and offset. */
int leat__pack_sample_check(leat_pack *pack, uint64_t sample, const leat_pack_row *row,
                            const void *bytes, leat_error *err) LEAT_MUST_CHECK;

/* Checks bytes read by someone else against the page's checksum (unless no_verify).
 * LEAT_EDATA names file, page and offset. */
int leat__pack_page_check(leat_pack *pack, uint64_t page, const leat_pack_page *info,
                          const void *bytes, leat_error *err) LEAT_MUST_CHECK;

/* Joined packs (leat_pack_open_many): which part a shard or a sample belongs to; 0 for others. */
uint32_t leat__pack_part_of_shard(const leat_pack *pack, uint32_t shard);
uint32_t leat__pack_part_of_sample(const leat_pack *pack, uint64_t sample);
/* A part without this field, or with one of another type; NULL when all have it. */
leat_pack *leat__pack_lacking(leat_pack *pack, uint32_t field);
/* What leat_pack_cells says for the samples of such parts. `reserved` of the cell is 1 there. */
void leat__pack_fill(leat_pack *pack, uint32_t field, int64_t i, double f);

/* Bytes of the index, and how many of them may be kept in memory as they are touched (never fewer
 * than before). Before other threads use the pack. */
uint64_t leat__pack_index_bytes(const leat_pack *pack);
void leat__pack_index_keep(leat_pack *pack, uint64_t bytes);

#endif
