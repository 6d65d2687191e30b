/* SPDX-License-Identifier: Apache-2.0
 *
 * See keysort.h. Hashes are uniform, so equal ranges of values contain nearly equal numbers of keys. A
 * range that still does not fit (many equal keys) gets more memory. Within a range, a stable radix sort
 * keeps equal hashes in sample order.
 */
#include "pack/keysort.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/num.h"
#include "pack/layout.h"

#define MEMORY_DEFAULT (96u << 20)
#define IO_ENTRIES 8192u
#define RADIX_BITS 11u
#define RADIX (1u << RADIX_BITS)

typedef struct entry {
    uint64_t hash;
    uint64_t row;
} entry;

typedef struct run {
    const leat__keysort *k;
    entry *entries, *spare; /* of `capacity` each */
    size_t capacity, count;
    uint64_t done, duplicates, last;
    uint8_t io[IO_ENTRIES * 8];
    uint8_t io_rows[IO_ENTRIES * 4];
} run;

static int resize(run *r, size_t capacity, leat_error *err)
{
    LEAT_ASSERT(capacity >= r->count);
    entry *a = leat__realloc(LEAT__MEM_PACK, r->entries, capacity * sizeof *a);
    if (a == NULL) return leat__fail_nomem(err, capacity * sizeof *a, "sorting keys");
    r->entries = a;
    entry *b = leat__realloc(LEAT__MEM_PACK, r->spare, capacity * sizeof *b);
    if (b == NULL) return leat__fail_nomem(err, capacity * sizeof *b, "sorting keys");
    r->spare = b;
    r->capacity = capacity;
    return 0;
}

/* Collects all hashes in [low, high] with their rows. */
static int collect(run *r, uint64_t low, uint64_t high, leat_error *err)
{
    r->count = 0;
    for (uint64_t at = 0; at < r->k->count;) {
        size_t n = (size_t)LEAT_MIN(r->k->count - at, IO_ENTRIES);
        LEAT_TRY(leat__file_pread(r->k->file, r->io, n * 8, r->k->from + at * 8, err));
        for (size_t i = 0; i < n; i++) {
            uint64_t hash = leat__load_u64(r->io + i * 8);
            if (hash < low || hash > high) continue;
            if (r->count == r->capacity) LEAT_TRY(resize(r, r->capacity * 2, err));
            r->entries[r->count++] = (entry){hash, at + i};
        }
        at += n;
    }
    return 0;
}

static void radix_sort(run *r)
{
    for (unsigned shift = 0; shift < 64; shift += RADIX_BITS) {
        size_t start[RADIX] = {0};
        for (size_t i = 0; i < r->count; i++) start[(r->entries[i].hash >> shift) % RADIX]++;
        size_t sum = 0;
        for (unsigned d = 0; d < RADIX; d++) {
            size_t n = start[d];
            start[d] = sum;
            sum += n;
        }
        for (size_t i = 0; i < r->count; i++) {
            entry e = r->entries[i];
            r->spare[start[(e.hash >> shift) % RADIX]++] = e;
        }
        entry *t = r->entries;
        r->entries = r->spare;
        r->spare = t;
    }
}

static int emit(run *r, leat_error *err)
{
    for (size_t at = 0; at < r->count;) {
        size_t n = LEAT_MIN(r->count - at, (size_t)IO_ENTRIES);
        for (size_t i = 0; i < n; i++) {
            const entry *e = &r->entries[at + i];
            if (r->done + i > 0 && e->hash == r->last) r->duplicates++;
            r->last = e->hash;
            leat__store_u64(r->io + i * 8, e->hash);
            leat__store_u32(r->io_rows + i * 4, (uint32_t)e->row);
        }
        LEAT_TRY(leat__file_pwrite(r->k->file, r->io, n * 8, r->k->hashes_to + r->done * 8, err));
        LEAT_TRY(leat__file_pwrite(r->k->file, r->io_rows, n * 4, r->k->rows_to + r->done * 4, err));
        r->done += n;
        at += n;
    }
    return 0;
}

int leat__keysort_run(const leat__keysort *k, uint64_t *duplicates, leat_error *err)
{
    *duplicates = 0;
    if (k->count == 0) return 0;
    run *r = LEAT_NEW(PACK, run);
    if (r == NULL) return leat__fail_nomem(err, sizeof *r, "sorting keys");
    r->k = k;
    /* Ranges are sized for 15/16 of the memory, because equal ranges differ a little. */
    uint64_t room = LEAT_MAX((k->memory ? k->memory : MEMORY_DEFAULT) / (2 * sizeof(entry)), UINT64_C(64));
    uint64_t passes = leat__ceil_div(k->count, room - room / 16);
    uint64_t width = passes > 1 ? UINT64_MAX / passes : UINT64_MAX;
    int rc;
    LEAT_GO(rc, out, resize(r, (size_t)LEAT_MIN(room, k->count), err));
    for (uint64_t pass = 0; pass < passes; pass++) {
        uint64_t low = pass * width;
        uint64_t high = pass + 1 == passes ? UINT64_MAX : low + width - 1;
        LEAT_GO(rc, out, collect(r, low, high, err));
        radix_sort(r);
        LEAT_GO(rc, out, emit(r, err));
    }
    *duplicates = r->duplicates;
out:
    leat__free(r->entries);
    leat__free(r->spare);
    leat__free(r);
    return rc;
}
