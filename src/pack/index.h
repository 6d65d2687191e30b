/* SPDX-License-Identifier: Apache-2.0
 *
 * One pack file opened for reading: its footer, its directory, and reads of its index that
 * are checked on first touch. Nothing is kept per sample: one bit and one pointer per 64 KiB
 * of index, and the first chunks that were touched, up to `cache_limit` bytes, never evicted
 * (eviction would thrash under a permutation). Any number of threads may read.
 *
 * The index is read with pread, never through a mapping: a file cut short under a reader is
 * an error then, not a signal, and the resident size stays that of a few buffers. The price,
 * one system call per run of rows, is a fraction of a microsecond.
 */
#ifndef LEAT_PACK_INDEX_H
#define LEAT_PACK_INDEX_H

#include <stdatomic.h>

#include "io/file.h"
#include "pack/layout.h"

typedef struct leat__index {
    leat__file *file;
    leat__footer footer;
    leat__section *sections; /* footer.sections of them */
    const leat__section *first[LEAT__SECTION_DROPS + 1]; /* of each kind, or NULL */
    uint64_t *roots;         /* one per chunk of the checks */
    uint64_t chunk_count, root_count;
    _Atomic(uint64_t *) *checks; /* per chunk of the checks: its content, once verified */
    _Atomic uint64_t *verified;  /* one bit per chunk of the index */
    _Atomic(uint8_t *) *cache;   /* per chunk of the index: its content, or NULL */
    _Atomic uint64_t cached;     /* bytes of all of them */
    uint64_t cache_limit;
} leat__index;

/* Opens and checks header, footer, roots and directory. */
int leat__index_open(leat__index **x, leat__file_pool *pool, const char *path, bool direct,
                     uint64_t cache_limit, leat_error *err) LEAT_MUST_CHECK;
void leat__index_close(leat__index **x);

/* The first section of a kind, NULL when there is none. Which one a reader needs of several
 * (columns, blobs) it finds once, at open. */
static inline const leat__section *leat__index_section(const leat__index *x, uint32_t kind)
{
    return x->first[kind];
}

/* Bytes of a section. LEAT_EDATA when they or their chunk are damaged; the range must lie
 * inside the section (LEAT_EINVAL). */
int leat__index_read(leat__index *x, const leat__section *s, uint64_t offset, void *buf,
                     size_t len, leat_error *err) LEAT_MUST_CHECK;
/* Asks the CPU for the kept bytes of a section that will be read soon: only a hint. */
void leat__index_touch(const leat__index *x, const leat__section *s, uint64_t offset, size_t len);
/* A whole section into a new block with `padding` zeros behind it (leat__free), aligned to
 * 64 bytes. */
int leat__index_load(leat__index *x, const leat__section *s, size_t max, size_t padding,
                     void **data, size_t *len, leat_error *err) LEAT_MUST_CHECK;

/* Reads chunk `chunk` of the index anew and checks it, whatever was known about it. `data`
 * has LEAT__PACK_CHUNK bytes. */
int leat__index_verify_chunk(leat__index *x, uint64_t chunk, uint8_t *data,
                             leat_error *err) LEAT_MUST_CHECK;

/* One page or sample, checked against the rest of the file. */
int leat__index_page(leat__index *x, uint64_t page, leat__page_entry *e, uint64_t *samples,
                     leat_error *err) LEAT_MUST_CHECK;
/* Entries first … first+count-1, each with the place of its page; *key_start is where the
 * key of `first` begins. */
typedef struct leat__sample_place {
    leat__sample_entry e;
    uint64_t page_offset; /* in the file */
} leat__sample_place;
int leat__index_samples(leat__index *x, uint64_t first, size_t count,
                        leat__sample_place *places, uint64_t *key_start,
                        leat_error *err) LEAT_MUST_CHECK;
/* The first sample with this key from `least` on; LEAT_ENOENT when there is none. */
int leat__index_find(leat__index *x, const void *key, size_t size, uint64_t least, uint64_t *sample,
                     leat_error *err) LEAT_MUST_CHECK;

#endif
