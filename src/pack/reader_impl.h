/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of an open pack, shared by reader.c (open, index calls, reads), names.c (blobs and
 * classes) and verify.c. Immutable after open except for the cached blobs, which have a lock.
 */
#ifndef LEAT_PACK_READER_IMPL_H
#define LEAT_PACK_READER_IMPL_H

#include "base/thread.h"
#include "pack/index.h"
#include "pack/reader.h"
#include "pack/schema.h"

typedef struct leat__shard {
    leat__index *index;
    const leat__section **columns;     /* one per field; NULL: a joined pack, and this part lacks the field */
    uint64_t first_sample, first_page; /* in the whole pack; dropped samples do not count */
    const uint64_t *drops;             /* its part of leat_pack.drops: rows are the low 32 bits */
    uint64_t drop_count;
    uint32_t part; /* joined packs: the part it belongs to */
} leat__shard;

typedef struct leat__loaded_blob {
    char *name;
    const leat__section *section;
    void *data; /* NULL until first used */
    size_t size;
    const char **classes; /* NULL until first used: one block with the strings after it */
    uint64_t class_count;
} leat__loaded_blob;

struct leat_pack {
    char *path, *source; /* path: for messages, without secrets; source: as given */
    bool verify, direct;
    uint64_t cache_limit;         /* per index */
    leat__index *set;             /* NULL for a single pack */
    leat__file_pool *descriptors; /* shared by the shards; NULL when each keeps its own */
    leat__shard *shards;
    uint32_t shard_count;
    uint64_t samples, pages;
    uint64_t *drops; /* dropped samples in order, leat__drop_word; or NULL */
    uint64_t drop_count;
    leat__schema *schema;
    char *schema_text, *provenance;
    leat__mutex lock; /* protects the contents of blobs */
    bool lock_ready;
    leat__loaded_blob *blobs; /* sorted by name, as in the file */
    uint32_t blob_count;
    /* joined packs (join.c); the shards' indices belong to the parts */
    leat_pack **parts; /* NULL for a pack or a set */
    uint32_t part_count;
    uint64_t *part_first; /* part_count + 1: first sample of each, and the end */
    leat_pack_cell *fill; /* per field: the value for a part without it */
    uint32_t *lacking;    /* per field: 1 + the first part that lacks a field of that name
                           * and type; or 0 */
};

/* Returns the file with the metadata of the whole pack: the set, or the only shard. Not for joined packs. */
static inline leat__index *leat__pack_meta(const leat_pack *p)
{
    return p->set != NULL ? p->set : p->shards[0].index;
}

/* Returns how many samples of a shard are not dropped. */
static inline uint64_t leat__shard_samples(const leat__shard *s)
{
    return s->index->footer.samples - s->drop_count;
}

/* drops_before returns how many rows of a shard before `row` are dropped; dropped tells whether `row` is. */
uint64_t leat__shard_drops_before(const leat__shard *s, uint64_t row);
bool leat__shard_dropped(const leat__shard *s, uint64_t row);

/* Return the shard that contains a sample or a page. The caller has checked the range. */
const leat__shard *leat__pack_shard_of_sample(const leat_pack *p, uint64_t sample);
const leat__shard *leat__pack_shard_of_page(const leat_pack *p, uint64_t page);

/* names.c */
int leat__pack_open_blobs(leat_pack *p, leat_error *err) LEAT_MUST_CHECK;
void leat__pack_close_blobs(leat_pack *p);

/* set.c: opens the shards that the set lists. */
int leat__pack_open_shards(leat_pack *p, leat_error *err) LEAT_MUST_CHECK;
/* join.c */
int leat__pack_join_info(const leat_pack *p, leat_pack_info *info, uint32_t struct_size);
int leat__pack_join_classes(leat_pack *p, uint32_t field, const char *const **names, uint64_t *count,
                            leat_error *err) LEAT_MUST_CHECK;

/* Gives the shard its part of the dropped samples. */
int leat__shard_take_drops(leat_pack *p, leat__shard *s, leat_error *err) LEAT_MUST_CHECK;
/* Adds an opened file as the next shard; owns it even on failure. */
int leat__pack_add_shard(leat_pack *p, leat__index *index, leat_error *err) LEAT_MUST_CHECK;

/* Reads a page, up to six times if it is remote and arrives damaged. *whole: its checksum matches; else `buf`
 * has the damaged bytes. */
int leat__pack_page_fetch(const leat_pack *p, const leat_pack_page *info, void *buf, bool *whole,
                          leat_error *err) LEAT_MUST_CHECK;

#endif
