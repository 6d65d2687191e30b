/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation with a category. All heap memory of leat is allocated here. So memory use per category is always
 * known (modules without one use MISC), a process-wide hard limit can be set, and tests can fail the n-th
 * call. Blocks are aligned to 16 bytes, or as requested (powers of two up to 2 MiB). Any thread may allocate,
 * and any thread may free a block.
 */
#ifndef LEAT_BASE_MEM_H
#define LEAT_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include <leat/export.h>

#define LEAT_MEM_MAP(X)                                                                                      \
    X(MISC)                                                                                                  \
    X(PROBE)                                                                                                 \
    X(IO)                                                                                                    \
    X(ENGINE)                                                                                                \
    X(PACK)                                                                                                  \
    X(PAGE)                                                                                                  \
    X(CODEC)                                                                                                 \
    X(SCRATCH)                                                                                               \
    X(OP)                                                                                                    \
    X(BATCH)                                                                                                 \
    X(LOADER)                                                                                                \
    X(INGEST)                                                                                                \
    X(PLAN)                                                                                                  \
    X(DOCTOR)                                                                                                \
    X(CURATE)

typedef enum leat__mem_cat {
#define LEAT_MEM_ENUM(name) LEAT__MEM_##name,
    LEAT_MEM_MAP(LEAT_MEM_ENUM)
#undef LEAT_MEM_ENUM
        LEAT__MEM_CATS
} leat__mem_cat;

/* Return NULL when out of memory, over the limit, or when a fault is injected. A size of 0 gives a unique
 * block. The _array forms multiply with an overflow check; zalloc forms return zeroed memory. */
void *leat__alloc(leat__mem_cat cat, size_t size) LEAT_MUST_CHECK;
void *leat__zalloc(leat__mem_cat cat, size_t size) LEAT_MUST_CHECK;
void *leat__alloc_array(leat__mem_cat cat, size_t count, size_t size) LEAT_MUST_CHECK;
void *leat__zalloc_array(leat__mem_cat cat, size_t count, size_t size) LEAT_MUST_CHECK;
void *leat__alloc_aligned(leat__mem_cat cat, size_t size, size_t align) LEAT_MUST_CHECK;

/* Grows or shrinks a block of the default alignment. On failure returns NULL and leaves `ptr`
 * unchanged. */
void *leat__realloc(leat__mem_cat cat, void *ptr, size_t size) LEAT_MUST_CHECK;
void leat__free(void *ptr); /* NULL is fine */

/* Asks the system for small pages for a block that was not written to yet. */
void leat__mem_small_pages(void *ptr);
/* Faults in memory now, on this thread, so that the first writer does not take the page faults. */
void leat__mem_populate(void *data, size_t size);

char *leat__strdup(leat__mem_cat cat, const char *s) LEAT_MUST_CHECK;
char *leat__strndup(leat__mem_cat cat, const char *s, size_t n) LEAT_MUST_CHECK;

/* LEAT_NEW(CAT, type) allocates a zeroed object, LEAT_NEW_ARRAY(CAT, type, n) a zeroed array of
 * n. */
#define LEAT_NEW(cat, type) ((type *)leat__zalloc(LEAT__MEM_##cat, sizeof(type)))
#define LEAT_NEW_ARRAY(cat, type, n) ((type *)leat__zalloc_array(LEAT__MEM_##cat, (n), sizeof(type)))

/* Bytes in use and their peak, for one category, or for all with LEAT__MEM_CATS. Counts requested
 * bytes, not the allocator's overhead. */
uint64_t leat__mem_used(leat__mem_cat cat);
uint64_t leat__mem_peak(leat__mem_cat cat);
uint64_t leat__mem_blocks(void); /* live blocks: 0 once everything is closed */
void leat__mem_peak_reset(void);

/* Sets the process-wide hard limit in bytes, 0 = none. Allocations that would exceed it fail. */
void leat__mem_limit_set(uint64_t bytes);

#endif
