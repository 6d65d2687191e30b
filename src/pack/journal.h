/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal of an unfinished pack: NAME.journal. Append-only records, each with its own check,
 * one per page with all its index data. It has two uses: resume replays it to find out which pages are
 * safe, and the index is built from it, so a packer keeps nothing per sample in memory. One thread at a
 * time.
 *
 *   | magic, identity, check | record | record | … (an incomplete last record is truncated)
 *   record: u32 kind, u32 0, u64 body bytes, u64 check (of kind, size and body), body
 */
#ifndef LEAT_PACK_JOURNAL_H
#define LEAT_PACK_JOURNAL_H

#include <leat/pack.h>

#include "base/buf.h"
#include "io/file.h"

typedef enum leat__record_kind {
    LEAT__RECORD_PAGE = 1,   /* a page was written */
    LEAT__RECORD_SYNC = 2,   /* all earlier pages are on stable storage */
    LEAT__RECORD_BLOB = 3,   /* a blob was set */
    LEAT__RECORD_SHARD = 4,  /* a file got its index and footer */
    LEAT__RECORD_FINISH = 5, /* all files are complete except for headers and names */
    LEAT__RECORD_OLD = 6,    /* the shards of the replaced set: removed at the end */
    LEAT__RECORD_ONCE = 7    /* this run appends, compacts or splits: it cannot be resumed */
} leat__record_kind;

typedef struct leat__journal_page {
    uint32_t shard, samples;
    uint64_t offset, bytes, check, max_sample, payload;
    uint64_t marks[LEAT_PACKER_MARKS];
    uint64_t rows_bytes, keys_bytes;
    const uint8_t *rows, *keys; /* views */
} leat__journal_page;

typedef struct leat__journal_shard {
    uint32_t shard;
    uint64_t file_bytes, samples, pages, fingerprint;
    uint64_t max_page_bytes, max_sample_bytes, duplicate_keys;
} leat__journal_shard;

typedef struct leat__journal {
    leat__file *file;
    uint64_t end;  /* offset of the next record */
    leat__buf buf; /* of the record being read or written */
} leat__journal;

typedef struct leat__journal_record {
    leat__record_kind kind;
    uint64_t at, next; /* in the journal */
    leat__journal_page page;
    leat__journal_shard shard;
    const char *blob_name; /* NUL-terminated view */
    const uint8_t *blob;
    uint64_t blob_bytes;
    const char *old_shards; /* NUL-terminated view: the JSON list of a set */
} leat__journal_record;

/* Create an empty journal, or open one to resume it: LEAT_ESTATE when its identity differs or another process
 * holds it, LEAT_EDATA when its head is damaged. */
int leat__journal_create(leat__journal *j, const char *path, uint64_t identity,
                         leat_error *err) LEAT_MUST_CHECK;
int leat__journal_resume(leat__journal *j, const char *path, uint64_t identity,
                         leat_error *err) LEAT_MUST_CHECK;
/* Opens a journal to inspect or remove it, whatever its identity; takes its lock. */
int leat__journal_hold(leat__journal *j, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Empties a journal that is held and writes a new head. */
int leat__journal_restart(leat__journal *j, uint64_t identity, leat_error *err) LEAT_MUST_CHECK;
void leat__journal_reset(leat__journal *j);

uint64_t leat__journal_first(void); /* position of the first record */
/* Reads the record at `at`; LEAT_ENOENT at the end or at an incomplete record. Views live until the next call
 * on the journal. */
int leat__journal_read(leat__journal *j, uint64_t at, leat__journal_record *r,
                       leat_error *err) LEAT_MUST_CHECK;
/* LEAT_EINVAL when the held file is not empty and not a journal: it belongs to the user. */
int leat__journal_known(const leat__journal *held, const char *path, leat_error *err) LEAT_MUST_CHECK;
/* Sets *once when the run cannot be resumed or has not written anything yet. */
int leat__journal_once(leat__journal *held, bool *once, leat_error *err) LEAT_MUST_CHECK;
int leat__journal_cut(leat__journal *j, uint64_t at, leat_error *err) LEAT_MUST_CHECK;
int leat__journal_sync(leat__journal *j, leat_error *err) LEAT_MUST_CHECK;

int leat__journal_put_page(leat__journal *j, const leat__journal_page *page, leat_error *err) LEAT_MUST_CHECK;
int leat__journal_put_blob(leat__journal *j, const char *name, const void *data, size_t size,
                           leat_error *err) LEAT_MUST_CHECK;
int leat__journal_put_shard(leat__journal *j, const leat__journal_shard *shard,
                            leat_error *err) LEAT_MUST_CHECK;
int leat__journal_put_old(leat__journal *j, const char *shards, leat_error *err) LEAT_MUST_CHECK;
int leat__journal_put_mark(leat__journal *j, leat__record_kind kind,
                           leat_error *err) LEAT_MUST_CHECK; /* SYNC, FINISH, ONCE */

#endif
