/* SPDX-License-Identifier: Apache-2.0
 *
 * One pack file opened for reading: its footer, its directory, and reads of its index, which is verified on
 * first access. Nothing is kept per sample. In memory are one bit and one pointer per 64 KiB of index, and
 * the chunks read first, up to `cache_limit` bytes. They are never evicted: eviction would thrash under a
 * permutation. Any number of threads may read.
 *
 * The index is read with pread, never through a mapping. So a truncated file is an error, not a signal, and
 * the resident size is only a few buffers. The cost is one system call per sequence of rows: a fraction of
 * a microsecond.
 */
#ifndef LEAT_PACK_INDEX_H
#define LEAT_PACK_INDEX_H

#include <stdatomic.h>

#include "io/file.h"
#include "pack/layout.h"

typedef struct leat__index {
    leat__file *file;
    leat__footer footer;
    leat__section *sections;                             /* footer.sections of them */
    const leat__section *first[LEAT__SECTION_DROPS + 1]; /* first section of each kind, or NULL */
    uint64_t *roots;                                     /* one per chunk of the checks */
    uint64_t chunk_count, root_count;
    _Atomic(uint64_t *) *checks; /* per chunk of the checks: its content, once verified */
    _Atomic uint64_t *verified;  /* one bit per chunk of the index */
    _Atomic(uint8_t *) *cache;   /* per chunk of the index: its content, or NULL */
    _Atomic uint64_t cached;     /* total bytes cached */
    uint64_t cache_limit;
} leat__index;

/* Opens the file and checks header, footer, roots and directory. */
int leat__index_open(leat__index **x, leat__file_pool *pool, const char *path, bool direct,
                     uint64_t cache_limit, leat_error *err) LEAT_MUST_CHECK;
void leat__index_close(leat__index **x);

/* Returns the first section of a kind, or NULL. Readers that need another one (columns, blobs) find it once,
 * at open. */
static inline const leat__section *leat__index_section(const leat__index *x, uint32_t kind)
{
    return x->first[kind];
}

/* Reads bytes of a section. LEAT_EDATA when they or their chunk are damaged; the range must be
 * inside the section (LEAT_EINVAL). */
int leat__index_read(leat__index *x, const leat__section *s, uint64_t offset, void *buf, size_t len,
                     leat_error *err) LEAT_MUST_CHECK;
/* Prefetches cached bytes of a section into the CPU cache: only a hint. */
void leat__index_touch(const leat__index *x, const leat__section *s, uint64_t offset, size_t len);
/* Loads a whole section into a new block followed by `padding` zeros (leat__free), aligned to 64
 * bytes. */
int leat__index_load(leat__index *x, const leat__section *s, size_t max, size_t padding, void **data,
                     size_t *len, leat_error *err) LEAT_MUST_CHECK;

/* Reads chunk `chunk` of the index again and verifies it, even if it was verified before. `data`
 * has LEAT__PACK_CHUNK bytes. */
int leat__index_verify_chunk(leat__index *x, uint64_t chunk, uint8_t *data, leat_error *err) LEAT_MUST_CHECK;

/* Reads the entry of one page and checks it against the rest of the file. */
int leat__index_page(leat__index *x, uint64_t page, leat__page_entry *e, uint64_t *samples,
                     leat_error *err) LEAT_MUST_CHECK;
/* Reads entries first … first+count-1, each with the location of its page; *key_start is where the key of
 * `first` begins. */
typedef struct leat__sample_place {
    leat__sample_entry e;
    uint64_t page_offset; /* in the file */
} leat__sample_place;
int leat__index_samples(leat__index *x, uint64_t first, size_t count, leat__sample_place *places,
                        uint64_t *key_start, leat_error *err) LEAT_MUST_CHECK;
/* Finds the first sample with this key, at or after `least`; LEAT_ENOENT when there is none. */
int leat__index_find(leat__index *x, const void *key, size_t size, uint64_t least, uint64_t *sample,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
