/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation with a category. Each block has a small header in front of it:
 *
 *      start of malloc'ed block        ptr returned (aligned)
 *      |                               |
 *      [ … padding …      ][ header    ][ size bytes … ]
 *
 * The header stores the start of the malloc'ed block, the requested size and the category, so
 * free() subtracts from the right total. Totals are relaxed atomics: sums are exact, but there is
 * no ordering between categories.
 */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fault.h"
#include "base/num.h"

#define DEFAULT_ALIGN 16
#define MAX_ALIGN                                                                                            \
    ((size_t)2 << 20)            /* the size of a huge page: blocks with this alignment                      \
                                  * should be in huge pages */
#define GRAIN ((size_t)64 << 10) /* a multiple of every machine's page size */
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
/* Blocks of at least this size are mapped. Never under AddressSanitizer, which checks only the heap, or
 * ThreadSanitizer, which does not see mremap and reports two owners of one address as a race. */
#define LARGE (SANITIZED ? SIZE_MAX : (size_t)256 << 10)
/* The same for page-aligned blocks: encoded samples, of all sizes and with short lives. In the heaps of
 * several threads they left gaps: 11 MiB beside a budget of 24 MiB. */
#define LARGE_ALIGNED (SANITIZED ? SIZE_MAX : (size_t)32 << 10)
#define PAGE 4096u
/* Page-aligned blocks of at least this size request huge pages, because they are filled completely. */
#define HUGE ((size_t)8 << 20)
#define LIVE_MARK 0x6c656174u /* "leat": debug builds detect frees of foreign or freed blocks */

typedef struct header {
    void *start;
    uint64_t size;
    uint32_t cat;
    uint32_t mark;
    uint64_t mapped; /* bytes of the mapping, 0 = from the heap */
} header;

_Static_assert(sizeof(header) % DEFAULT_ALIGN == 0, "the default alignment must survive");

static _Atomic uint64_t used[LEAT__MEM_CATS + 1];
static _Atomic uint64_t peak[LEAT__MEM_CATS + 1];
static _Atomic uint64_t blocks;
static _Atomic uint64_t limit;

static header *header_of(void *ptr)
{
    return (header *)ptr - 1;
}

static void raise_peak(int slot, uint64_t now)
{
    uint64_t old = atomic_load_explicit(&peak[slot], memory_order_relaxed);
    while (now > old && !atomic_compare_exchange_weak_explicit(&peak[slot], &old, now, memory_order_relaxed,
                                                               memory_order_relaxed)) {
    }
}

/* Adds `size` to the totals; false when that would exceed the limit. */
static bool charge(leat__mem_cat cat, uint64_t size)
{
    uint64_t max = atomic_load_explicit(&limit, memory_order_relaxed);
    uint64_t all = atomic_fetch_add_explicit(&used[LEAT__MEM_CATS], size, memory_order_relaxed) + size;
    if (max != 0 && all > max) {
        atomic_fetch_sub_explicit(&used[LEAT__MEM_CATS], size, memory_order_relaxed);
        return false;
    }
    uint64_t one = atomic_fetch_add_explicit(&used[cat], size, memory_order_relaxed) + size;
    raise_peak((int)cat, one);
    raise_peak(LEAT__MEM_CATS, all);
    atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    return true;
}

static void discharge(leat__mem_cat cat, uint64_t size)
{
    LEAT_ASSERT(atomic_load_explicit(&used[cat], memory_order_relaxed) >= size);
    atomic_fetch_sub_explicit(&used[cat], size, memory_order_relaxed);
    atomic_fetch_sub_explicit(&used[LEAT__MEM_CATS], size, memory_order_relaxed);
    atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
}

static char *get_memory(size_t total, bool mapped, bool zero)
{
    if (!mapped) return zero ? calloc(1, total) : malloc(total);
    void *start = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start != MAP_FAILED ? start : NULL;
}

/* Trims a mapping to a block that is aligned to huge pages, with its header in front. No huge
 * page then extends past the block. Returns the new start. */
static char *trim_mapping(char *start, size_t *total, char *ptr, size_t size)
{
    LEAT_ASSERT((uintptr_t)ptr % MAX_ALIGN == 0);
    LEAT_ASSERT(ptr > start && ptr + size <= start + *total);
    char *end = start + *total;
    char *first = LEAT_MAX(start, ptr - GRAIN);
    char *last = LEAT_MIN(end, ptr + (size + GRAIN - 1) / GRAIN * GRAIN);

    if (first > start) munmap(start, (size_t)(first - start));
    if (end > last) munmap(last, (size_t)(end - last));
    *total = (size_t)(last - first);
    (void)madvise(ptr, size, MADV_HUGEPAGE);
    return first;
}

static void *allocate(leat__mem_cat cat, size_t size, size_t align, bool zero)
{
    size_t total;

    LEAT_ASSERT((unsigned)cat < LEAT__MEM_CATS);
    LEAT_ASSERT(leat__is_pow2(align) && align <= MAX_ALIGN);
    if (align < DEFAULT_ALIGN) align = DEFAULT_ALIGN;
    size_t extra = sizeof(header) + (align > DEFAULT_ALIGN ? align : 0);
    if (!leat__add_size(size, extra, &total)) return NULL;
    if (LEAT_FAULT(LEAT__FAULT_ALLOC)) return NULL;
    if (!charge(cat, size)) return NULL;
    const bool mapped = total >= (align >= PAGE ? LARGE_ALIGNED : LARGE);
    char *start = get_memory(total, mapped, zero);
    if (start == NULL) {
        discharge(cat, size);
        return NULL;
    }
    uintptr_t at = (uintptr_t)start + sizeof(header);
    at = (at + align - 1) & ~(uintptr_t)(align - 1);
    void *ptr = (void *)at;
    if (mapped && align == MAX_ALIGN) start = trim_mapping(start, &total, ptr, size);
    else if (align >= PAGE && total >= HUGE) (void)madvise(start, total, MADV_HUGEPAGE);
    *header_of(ptr) = (header){
        .start = start, .size = size, .cat = (uint32_t)cat, .mark = LIVE_MARK, .mapped = mapped ? total : 0};
    return ptr;
}

void *leat__alloc(leat__mem_cat cat, size_t size)
{
    return allocate(cat, size, DEFAULT_ALIGN, false);
}

void *leat__zalloc(leat__mem_cat cat, size_t size)
{
    return allocate(cat, size, DEFAULT_ALIGN, true);
}

void *leat__alloc_array(leat__mem_cat cat, size_t count, size_t size)
{
    size_t total;
    return leat__mul_size(count, size, &total) ? leat__alloc(cat, total) : NULL;
}

void *leat__zalloc_array(leat__mem_cat cat, size_t count, size_t size)
{
    size_t total;
    return leat__mul_size(count, size, &total) ? leat__zalloc(cat, total) : NULL;
}

void *leat__alloc_aligned(leat__mem_cat cat, size_t size, size_t align)
{
    return allocate(cat, size, align, false);
}

void leat__free(void *ptr)
{
    if (ptr == NULL) return;
    header *h = header_of(ptr);
    LEAT_ASSERT(h->mark == LIVE_MARK);
    discharge((leat__mem_cat)h->cat, h->size);
    h->mark = 0;
    if (h->mapped != 0) munmap(h->start, h->mapped);
    else free(h->start);
}

void leat__mem_small_pages(void *ptr)
{
    const header *h = header_of(ptr);
    LEAT_ASSERT(h->mark == LIVE_MARK);
    if (h->mapped != 0) (void)madvise(h->start, h->mapped, MADV_NOHUGEPAGE);
}

void leat__mem_populate(void *data, size_t size)
{
#ifdef MADV_POPULATE_WRITE /* glibc 2.35; a kernel older than 5.14 refuses, and pages are faulted in later   \
                            */
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                    start = ((uintptr_t)data + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)data + size) & ~(page - 1);
    if (end > start) (void)madvise((void *)start, end - start, MADV_POPULATE_WRITE);
#else
    (void)data;
    (void)size;
#endif
}

/* Resizes a heap block or a mapping; NULL when the block has to move between the two. */
static char *change_memory(header *h, size_t total)
{
    if (h->mapped == 0) return total < LARGE ? realloc(h->start, total) : NULL;
    if (total < LARGE) return NULL;
    void *start = mremap(h->start, h->mapped, total, MREMAP_MAYMOVE);
    return start != MAP_FAILED ? start : NULL;
}

/* Moves a block from the heap to a mapping or back: a new block and a copy. */
static void *move_block(leat__mem_cat cat, void *ptr, size_t size)
{
    LEAT_ASSERT(header_of(ptr)->mark == LIVE_MARK);
    void *fresh = allocate(cat, size, DEFAULT_ALIGN, false);
    if (fresh == NULL) return NULL;
    memcpy(fresh, ptr, LEAT_MIN(size, header_of(ptr)->size));
    leat__free(ptr);
    return fresh;
}

void *leat__realloc(leat__mem_cat cat, void *ptr, size_t size)
{
    if (ptr == NULL) return leat__alloc(cat, size);

    header *h = header_of(ptr);
    LEAT_ASSERT(h->mark == LIVE_MARK);
    LEAT_ASSERT((char *)h == (char *)h->start); /* default alignment only */
    uint64_t old_size = h->size;
    leat__mem_cat old_cat = (leat__mem_cat)h->cat;
    size_t total;
    if (!leat__add_size(size, sizeof(header), &total)) return NULL;
    if ((h->mapped != 0) != (total >= LARGE)) return move_block(cat, ptr, size);
    if (LEAT_FAULT(LEAT__FAULT_ALLOC)) return NULL;
    if (!charge(cat, size)) return NULL;
    char *start = change_memory(h, total);
    if (start == NULL) {
        discharge(cat, size);
        return NULL;
    }
    discharge(old_cat, old_size);
    h = (header *)start;
    h->start = start;
    h->size = size;
    h->cat = (uint32_t)cat;
    h->mapped = total < LARGE ? 0 : total;
    return h + 1;
}

char *leat__strndup(leat__mem_cat cat, const char *s, size_t n)
{
    size_t total;
    if (!leat__add_size(n, 1, &total)) return NULL;
    char *copy = leat__alloc(cat, total);
    if (copy == NULL) return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}

char *leat__strdup(leat__mem_cat cat, const char *s)
{
    return leat__strndup(cat, s, strlen(s));
}

uint64_t leat__mem_used(leat__mem_cat cat)
{
    LEAT_ASSERT((unsigned)cat <= LEAT__MEM_CATS);
    return atomic_load_explicit(&used[cat], memory_order_relaxed);
}

uint64_t leat__mem_peak(leat__mem_cat cat)
{
    LEAT_ASSERT((unsigned)cat <= LEAT__MEM_CATS);
    return atomic_load_explicit(&peak[cat], memory_order_relaxed);
}

uint64_t leat__mem_blocks(void)
{
    return atomic_load_explicit(&blocks, memory_order_relaxed);
}

void leat__mem_peak_reset(void)
{
    for (int slot = 0; slot <= LEAT__MEM_CATS; slot++) {
        atomic_store_explicit(&peak[slot], atomic_load_explicit(&used[slot], memory_order_relaxed),
                              memory_order_relaxed);
    }
}

void leat__mem_limit_set(uint64_t bytes)
{
    atomic_store_explicit(&limit, bytes, memory_order_relaxed);
}
