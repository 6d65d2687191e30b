/* SPDX-License-Identifier: Apache-2.0
 *
 * Buckets: see buckets.h.
 */
#include "loader/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/perm.h"
#include "base/rng.h"

enum { TWEAK_BATCHES = 0x62, TWEAK_BUCKET = 0x63 };

/* A bucket, and the totals of the buckets before it: full batches, and leftover samples. */
typedef struct bucket {
    uint64_t first, size;
    uint64_t batches_before, left_before;
    leat__perm shuffle;
} bucket;

struct leat__buckets {
    uint64_t seed, batch;
    uint64_t full; /* full batches, each from one bucket */
    uint64_t all;  /* `full` plus the batches of leftover samples, without a smaller last one */
    uint32_t count;
    leat__perm shuffle; /* shuffles the batches */
    bucket bucket[];    /* `count` buckets, and one that marks the end */
};

int leat__buckets_open(leat__buckets **out, uint64_t seed, uint64_t global_batch, const uint64_t *ends,
                       uint32_t count, leat_error *err)
{
    const size_t bytes = sizeof(leat__buckets) + (count + (size_t)1) * sizeof(bucket);
    leat__buckets *b = leat__zalloc(LEAT__MEM_LOADER, bytes);

    *out = b;
    if (b == NULL) return leat__fail_nomem(err, bytes, "buckets");
    LEAT_ASSERT(count > 0 && ends[count - 1] > 0 && global_batch > 0);
    b->seed = seed;
    b->batch = global_batch;
    b->count = count;
    for (uint32_t i = 0; i < count; i++) {
        bucket *one = &b->bucket[i], *next = one + 1;
        one->size = ends[i] - one->first;
        next->first = ends[i];
        LEAT_ASSERT(ends[i] >= one->first);
        next->batches_before = one->batches_before + one->size / global_batch;
        next->left_before = one->left_before + one->size % global_batch;
    }
    b->full = b->bucket[count].batches_before;
    b->all = b->full + b->bucket[count].left_before / global_batch;
    leat__buckets_epoch(b, 0);
    return 0;
}

void leat__buckets_close(leat__buckets **b)
{
    leat__free(*b);
    *b = NULL;
}

static uint64_t tweak_of(uint64_t epoch, uint64_t use, uint64_t number)
{
    return leat__mix64(epoch ^ use << 56) ^ leat__mix64(number ^ 0x6275);
}

void leat__buckets_epoch(leat__buckets *b, uint64_t epoch)
{
    if (b->all > 0) leat__perm_init(&b->shuffle, b->all, b->seed, tweak_of(epoch, TWEAK_BATCHES, 0));
    for (uint32_t i = 0; i < b->count; i++) {
        bucket *one = &b->bucket[i];
        if (one->size > 0)
            leat__perm_init(&one->shuffle, one->size, b->seed, tweak_of(epoch, TWEAK_BUCKET, i));
    }
}

/* Finds the bucket of batch (or leftover sample) number `at`. */
static const bucket *find(const leat__buckets *b, uint64_t at, bool left)
{
    uint32_t low = 0, high = b->count; /* before[low] <= at < before[high] */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const bucket *m = &b->bucket[middle];
        if ((left ? m->left_before : m->batches_before) <= at) low = middle;
        else high = middle;
    }
    return &b->bucket[low];
}

uint64_t leat__buckets_at(const leat__buckets *b, uint64_t position)
{
    LEAT_ASSERT(position < b->bucket[b->count].first);
    uint64_t number = position / b->batch, at = position % b->batch;
    const bucket *one;

    if (number < b->all) number = leat__perm_at(&b->shuffle, number);
    if (number < b->full) {
        one = find(b, number, false);
        at += (number - one->batches_before) * b->batch;
    } else {
        at += (number - b->full) * b->batch;
        one = find(b, at, true);
        at += one->size / b->batch * b->batch - one->left_before;
    }
    LEAT_ASSERT(at < one->size);
    return one->first + leat__perm_at(&one->shuffle, at);
}

uint64_t leat__buckets_memory(const leat__buckets *b)
{
    return sizeof *b + (b->count + (uint64_t)1) * sizeof *b->bucket;
}

/* ---- sorting -------------------------------------------------------------------------------- */

typedef struct entry {
    double value;
    uint64_t sample;
} entry;

static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return (x->sample > y->sample) - (x->sample < y->sample);
}

int leat__buckets_sort(uint64_t *samples, const double *values, uint64_t count, const double *edges,
                       uint32_t buckets, uint64_t **ends, uint32_t *end_count, leat_error *err)
{
    LEAT_ASSERT(buckets > 0);
    entry *list = LEAT_NEW_ARRAY(LOADER, entry, count);
    uint64_t at = 0;
    int rc = 0;

    *end_count = 0;
    *ends = LEAT_NEW_ARRAY(LOADER, uint64_t, buckets);
    if (list == NULL || *ends == NULL)
        LEAT_GO(rc, out, leat__fail_nomem(err, count * sizeof *list, "buckets"));
    for (uint64_t i = 0; i < count; i++) list[i] = (entry){values[i], samples[i]};
    qsort(list, count, sizeof *list, compare);
    for (uint64_t i = 0; i < count; i++) samples[i] = list[i].sample;
    for (uint32_t i = 0; i < buckets; i++) {
        uint64_t end = count * (i + UINT64_C(1)) / buckets, before = at;
        if (edges == NULL || i + 1 == buckets) at = end;
        else
            while (at < count && list[at].value < edges[i]) at++;
        if (at > before) (*ends)[(*end_count)++] = at;
    }
out:
    leat__free(list);
    return rc;
}
