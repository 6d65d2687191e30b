/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_index.h. All computation is on int8 with int32 sums, so the result does not depend on
 * the order.
 */
#include "curate/image_index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "dsp/align.h"
#include "probe/cpu.h"

#define DIM LEAT__COARSE_BYTES
#define ROUNDS 8          /* of k-means */
#define TRAIN_PER_LIST 32 /* descriptors used to find the centres */
#define PROBES_LEAST 8
#define CENTRE_LENGTH 220.0f
#define CHUNK 256 /* products at a time */

struct leat__image_index {
    uint32_t count, lists;
    int8_t *codes;   /* list by list */
    float *scale;    /* 1 / length of each */
    uint32_t *entry; /* number of each */
    uint32_t *begin; /* of each list, and the end */
    int8_t *centres;
    const leat__align_dsp *dsp;
};

static float length_of(const leat__image_index *x, const int8_t *code)
{
    int32_t square;
    x->dsp->products(code, code, DIM, 1, &square);
    return sqrtf((float)square);
}

uint64_t leat__image_index_bytes(uint64_t count)
{
    const uint64_t lists = 4 * (uint64_t)sqrt((double)count) + 1;
    return count * (2 * DIM + 4 + 4 + 4) + lists * (DIM + 4 + DIM * 4 + 8);
}

uint32_t leat__image_index_lists(const leat__image_index *x)
{
    return x->lists;
}

static uint32_t nearest(const leat__image_index *x, const int8_t *code)
{
    uint32_t best = 0;
    int32_t most = INT32_MIN, product[CHUNK];
    for (uint32_t l = 0; l < x->lists; l += CHUNK) {
        const uint32_t n = LEAT_MIN(x->lists - l, CHUNK);
        x->dsp->products(code, x->centres + (size_t)l * DIM, DIM, n, product);
        for (uint32_t i = 0; i < n; i++) {
            if (product[i] <= most) continue;
            most = product[i];
            best = l + i;
        }
    }
    return best;
}

/* Turns the sums of the members into centres of the usual length; an empty list keeps its
 * centre. */
static void move_centres(leat__image_index *x, const int32_t *sums)
{
    for (uint32_t l = 0; l < x->lists; l++) {
        const int32_t *s = sums + (size_t)l * DIM;
        double length = 0;
        for (int i = 0; i < DIM; i++) length += (double)s[i] * s[i];
        if (length <= 0) continue;
        const double by = CENTRE_LENGTH / sqrt(length);
        for (int i = 0; i < DIM; i++) {
            const double v = s[i] * by;
            x->centres[(size_t)l * DIM + i] = (int8_t)(v > 127 ? 127 : v < -127 ? -127 : lrint(v));
        }
    }
}

/* K-means on an evenly spaced sample of the descriptors. */
static int find_centres(leat__image_index *x, const int8_t *codes, leat_error *err)
{
    const uint32_t train = (uint32_t)LEAT_MIN((uint64_t)x->count, (uint64_t)x->lists * TRAIN_PER_LIST);
    int32_t *sums = LEAT_NEW_ARRAY(CURATE, int32_t, (size_t)x->lists * DIM);
    if (!sums) return leat__fail_nomem(err, (size_t)x->lists * DIM * 4, "centres");
    for (uint32_t l = 0; l < x->lists; l++)
        memcpy(x->centres + (size_t)l * DIM, codes + (size_t)((uint64_t)l * x->count / x->lists) * DIM, DIM);
    for (int round = 0; round < ROUNDS && x->lists > 1; round++) {
        memset(sums, 0, (size_t)x->lists * DIM * sizeof *sums);
        for (uint32_t i = 0; i < train; i++) {
            const int8_t *code = codes + (size_t)((uint64_t)i * x->count / train) * DIM;
            int32_t *s = sums + (size_t)nearest(x, code) * DIM;
            for (int k = 0; k < DIM; k++) s[k] += code[k];
        }
        move_centres(x, sums);
    }
    leat__free(sums);
    return 0;
}

static int fill_lists(leat__image_index *x, const int8_t *codes, leat_error *err)
{
    uint32_t *list = LEAT_NEW_ARRAY(CURATE, uint32_t, x->count);
    if (!list) return leat__fail_nomem(err, (size_t)x->count * 4, "lists");
    for (uint32_t i = 0; i < x->count; i++) {
        list[i] = nearest(x, codes + (size_t)i * DIM);
        x->begin[list[i] + 1]++;
    }
    for (uint32_t l = 0; l < x->lists; l++) x->begin[l + 1] += x->begin[l];
    for (uint32_t i = x->count; i-- > 0;) { /* backwards: begin[l + 1] moves to the start of
                                             * its list */
        const uint32_t at = --x->begin[list[i] + 1];
        const int8_t *code = codes + (size_t)i * DIM;
        memcpy(x->codes + (size_t)at * DIM, code, DIM);
        x->scale[at] = 1 / (length_of(x, code) + 1e-6f);
        x->entry[at] = i;
    }
    memmove(x->begin, x->begin + 1, x->lists * sizeof *x->begin);
    x->begin[x->lists] = x->count;
    leat__free(list);
    return 0;
}

static int build(leat__image_index *x, const int8_t *codes, leat_error *err)
{
    x->codes = leat__alloc_array(LEAT__MEM_CURATE, x->count, DIM);
    x->scale = LEAT_NEW_ARRAY(CURATE, float, x->count);
    x->entry = LEAT_NEW_ARRAY(CURATE, uint32_t, x->count);
    x->begin = LEAT_NEW_ARRAY(CURATE, uint32_t, (size_t)x->lists + 2);
    x->centres = leat__zalloc_array(LEAT__MEM_CURATE, x->lists, DIM);
    if (!x->codes || !x->scale || !x->entry || !x->begin || !x->centres)
        return leat__fail_nomem(err, (size_t)x->count * (DIM + 8), "an index of descriptors");
    LEAT_TRY(find_centres(x, codes, err));
    return fill_lists(x, codes, err);
}

int leat__image_index_open(leat__image_index **out, const int8_t *codes, uint32_t count, leat_error *err)
{
    leat__image_index *x = LEAT_NEW(CURATE, leat__image_index);
    if (!x) return leat__fail_nomem(err, sizeof *x, "an index");
    x->count = count;
    x->dsp = leat__align_dsp_for(leat__cpu_flags());
    x->lists = count < 256 ? 1 : 4 * (uint32_t)sqrt((double)count);
    int8_t *bare = leat__alloc_array(LEAT__MEM_CURATE, LEAT_MAX(count, 1), DIM);
    int rc = bare ? 0 : leat__fail_nomem(err, (size_t)count * DIM, "descriptors");
    if (rc == 0) {
        if (count > 0) memcpy(bare, codes, (size_t)count * DIM);
        for (uint32_t i = 0; i < count; i++) bare[(size_t)i * DIM + LEAT__COARSE_FLAGS] = 0;
        rc = build(x, bare, err);
    }
    leat__free(bare);
    if (rc != 0) leat__image_index_close(&x);
    *out = x;
    return rc;
}

void leat__image_index_close(leat__image_index **index)
{
    leat__image_index *x = *index;
    if (!x) return;
    leat__free(x->codes);
    leat__free(x->scale);
    leat__free(x->entry);
    leat__free(x->begin);
    leat__free(x->centres);
    leat__free(x);
    *index = NULL;
}

/* ---- search ---- */

static bool is_nearer(leat__near a, leat__near b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.entry < b.entry;
}

/* Keeps the nearest `room`: a heap with the furthest on top. */
static void sink(leat__near *heap, uint32_t n, uint32_t at)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && is_nearer(heap[child], heap[child + 1])) child++;
        if (!is_nearer(heap[at], heap[child])) return;
        const leat__near t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
        at = child;
    }
}

static void keep(leat__near *heap, uint32_t *n, uint32_t room, leat__near found)
{
    if (*n < room) {
        uint32_t at = (*n)++;
        heap[at] = found;
        while (at > 0 && is_nearer(heap[(at - 1) / 2], heap[at])) {
            const leat__near t = heap[at];
            heap[at] = heap[(at - 1) / 2];
            heap[(at - 1) / 2] = t;
            at = (at - 1) / 2;
        }
    } else if (is_nearer(found, heap[0])) {
        heap[0] = found;
        sink(heap, *n, 0);
    }
}

static int by_distance(const void *a, const void *b)
{
    return is_nearer(*(const leat__near *)a, *(const leat__near *)b) ? -1 : 1;
}

/* The product of the query with the centre of the last list to be searched: quickselect. */
static int32_t least_product(int32_t *products, uint32_t lists, uint32_t probes)
{
    uint32_t low = 0, high = lists - 1;
    if (probes >= lists) return INT32_MIN;
    while (low < high) {
        const int32_t pivot = products[low + (high - low) / 2];
        uint32_t i = low, k = high;
        for (;;) {
            while (products[i] > pivot) i++;
            while (products[k] < pivot) k--;
            if (i >= k) break;
            const int32_t t = products[i];
            products[i++] = products[k];
            products[k--] = t;
        }
        if (probes - 1 <= k) high = k;
        else low = k + 1;
    }
    return products[probes - 1];
}

/* The first of the entries from `from` to `to` that is not below `before`: they ascend in a list. */
static uint32_t end_before(const leat__image_index *x, uint32_t from, uint32_t to, uint32_t before)
{
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (x->entry[middle] < before) from = middle + 1;
        else to = middle;
    }
    return to;
}

uint32_t leat__image_index_find(const leat__image_index *x, const leat__near_query *query, leat__near *out,
                                uint32_t room, int32_t *scratch)
{
    int8_t q[DIM];
    int32_t product[CHUNK], *order = scratch + x->lists;
    uint32_t n = 0;
    memcpy(q, query->code, DIM);
    q[LEAT__COARSE_FLAGS] = 0;
    if (x->count == 0 || room == 0) return 0;
    const float own = 1 / (length_of(x, q) + 1e-6f);
    const uint32_t probes = LEAT_MAX((uint32_t)(query->share * (float)x->lists), PROBES_LEAST);
    x->dsp->products(q, x->centres, DIM, x->lists, scratch);
    memcpy(order, scratch, x->lists * sizeof *order);
    const int32_t least = least_product(order, x->lists, probes);
    for (uint32_t l = 0; l < x->lists; l++) {
        if (scratch[l] < least) continue;
        const uint32_t end = end_before(x, x->begin[l], x->begin[l + 1], query->before);
        for (uint32_t at = x->begin[l]; at < end; at += CHUNK) {
            const uint32_t some = LEAT_MIN(end - at, CHUNK);
            x->dsp->products(q, x->codes + (size_t)at * DIM, DIM, some, product);
            for (uint32_t i = 0; i < some; i++) {
                const float d = 1 - (float)product[i] * own * x->scale[at + i];
                if (d < query->limit) keep(out, &n, room, (leat__near){x->entry[at + i], d});
            }
        }
    }
    qsort(out, n, sizeof *out, by_distance);
    return n;
}
