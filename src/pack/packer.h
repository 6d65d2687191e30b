/* SPDX-License-Identifier: Apache-2.0
 *
 * The packer's state, shared by packer.c (open, append, put), resume.c (replaying the journal), publish.c
 * (finish), append.c (generations) and kind.c (kinds of images). One thread at a time.
 *
 *   pages --put--> NAME.partial + NAME.journal --close_shard--> index and footer
 *         --publish--> header, rename; sets: the set file last
 */
#ifndef LEAT_PACK_PACKER_H
#define LEAT_PACK_PACKER_H

#include <leat/pack.h>

#include "io/write_behind.h"
#include "pack/blobs.h"
#include "pack/indexer.h"
#include "pack/journal.h"
#include "pack/kind.h"
#include "pack/page.h"
#include "pack/schema.h"

/* Totals so far; a copy is kept from the start of each file. */
typedef struct leat__packer_totals {
    uint64_t samples, pages, payload;
    uint64_t marks[LEAT_PACKER_MARKS];
} leat__packer_totals;

struct leat_packer {
    char *path;
    leat__schema *schema;
    char *provenance; /* whole JSON text */
    uint64_t page_bytes, shard_bytes;
    bool replace, sync;
    leat_pack *base;       /* the pack appended to, or NULL: append.c */
    bool blobs_changed;    /* blobs differ from those of the base */
    leat__buf drops;       /* dropped samples of the base, a leat__drop_word each */
    char *base_provenance; /* provenance of the set: that of the base, and the added names */
    leat__journal journal;
    leat__blobs blobs;
    leat__page *page;           /* filled by append */
    leat__write_behind *writer; /* writes pages; drained before any other change to a file */

    /* the file being written */
    leat__file *file;
    uint32_t shard;
    uint64_t samples, pages, keys_bytes, data_end, max_page, max_sample;
    uint64_t journal_from; /* the file's first record in the journal */
    uint64_t unsynced;     /* bytes of pages since the last SYNC record */
    uint64_t reserved;     /* end of the space reserved ahead of the pages */
    leat__packer_totals at_start;

    leat__packer_totals totals, resumed;
    leat__journal_shard *done; /* files that have their footer */
    size_t done_count, done_capacity;
    char *old_shards; /* JSON list of the replaced set, from the journal; or NULL */
    bool finishing;   /* FINISH is in the journal: only publishing remains */
    bool finished;
    char damage[400]; /* damage found by resume, or "" */
    struct {
        leat__image_kind kind;
        bool known;
        char by[LEAT__KIND_KEY]; /* key of the sample that decided, truncated */
    } * kinds;                   /* per field: kind of its images, decided by the first one */
};

/* Takes the kinds of images from a page of the journal that a resumed run keeps (kind.c). */
void leat__packer_learn_kinds(leat_packer *p, const leat__journal_page *page);

/* Return new strings (leat__free); NULL: out of memory. A shard's name contains its fingerprint, so the
 * shards of a new set never collide with those of the set it replaces. */
char *leat__packer_partial_path(const leat_packer *p, uint32_t shard);
char *leat__packer_final_path(const leat_packer *p, const leat__journal_shard *s);
char *leat__path_with(const char *path, const char *suffix);

void leat__packer_forget_shard(leat_packer *p); /* resets the counters of the current file */
int leat__packer_add_done(leat_packer *p, const leat__journal_shard *s, leat_error *err) LEAT_MUST_CHECK;

/* Makes the provenance of a file, with the caller's text inside; free with leat__free. */
int leat__packer_provenance(const char *source, char **whole, leat_error *err) LEAT_MUST_CHECK;

/* Hashes the options that affect the bytes: resume refuses a pack that was begun with other options. */
int leat__packer_identity(const leat_packer_opts *o, uint64_t *id, leat_error *err) LEAT_MUST_CHECK;

/* resume.c: brings an opened packer to the state of its journal. */
int leat__packer_replay(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* publish.c: writes headers and names, in an order that is safe against crashes. */
int leat__packer_publish(leat_packer *p, uint64_t *file_bytes, leat_error *err) LEAT_MUST_CHECK;

/* publish.c: records the shards of the set that is about to be replaced. */
int leat__packer_note_old(leat_packer *p, leat_error *err) LEAT_MUST_CHECK;
/* publish.c: removes the files recorded in the journal, except those that a published set lists.
 * The journal itself stays. */
int leat__packer_discard_files(const char *path, leat__journal *held, leat_error *err) LEAT_MUST_CHECK;

#endif
