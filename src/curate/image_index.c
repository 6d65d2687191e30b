/* SPDX-License-Identifier: Apache-2.0
 *
 * See image_index.h. All computation is on int8 with int32 sums, so the result does not depend on the
 * order of summation.
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
#define ROUNDS 8          /* rounds of k-means */
#define TRAIN_PER_LIST 32 /* descriptors per list used to find the centres */
#define PROBES_LEAST 8
#define CENTRE_LENGTH 220.0f
#define GROUP LEAT__ALIGN_GROUP
#define CHUNK 256  /* products computed at a time */
#define SAMPLED 8  /* one of this many centres is sampled to estimate the least product */
#define PIECE 4096 /* descriptors between two calls of `stop` */

struct leat__image_index {
    uint32_t count, room, lists;
    uint32_t from, to; /* range that contains all non-empty lists */
    uint8_t *codes;    /* list by list, in groups; each list starts a new group */
    float *scale;      /* 1 / length of each code */
    uint32_t *entry;   /* number of each code */
    uint32_t *begin;   /* position of each list's first code, and one past its last */
    uint32_t *end;
    int8_t *centres;
    uint8_t *groups; /* centres, in groups */
    const leat__align_dsp *dsp;
};

static float length_of(const leat__image_index *x, const int8_t *code)
{
    int32_t square;
    x->dsp->products(code, code, DIM, 1, &square);
    return sqrtf((float)square);
}

_Static_assert(DIM == LEAT__ALIGN_CODE && CHUNK % GROUP == 0, "descriptors are the codes of groups");

static size_t rounded(size_t count)
{
    return (count + GROUP - 1) / GROUP * GROUP;
}

/* Stores a code at position `at` of the groups. */
static void put_code(uint8_t *groups, size_t at, const int8_t *code)
{
    uint8_t *to = groups + at / GROUP * GROUP * DIM + at % GROUP * 4;
    for (int i = 0; i < DIM; i++) to[i / 4 * GROUP * 4 + i % 4] = (uint8_t)(code[i] + 128);
}

static uint32_t lists_of(uint32_t count)
{
    return count < 256 ? 1 : 4 * (uint32_t)sqrt((double)count);
}

uint64_t leat__image_index_bytes(uint64_t count, uint64_t filled)
{
    const uint64_t lists = lists_of((uint32_t)LEAT_MIN(count, UINT32_MAX));
    const uint64_t gaps = LEAT_MIN(filled, lists) * GROUP / 2;
    return (filled + gaps) * (DIM + 4 + 4) + lists * (2 * DIM + 4 + 4) +
           LEAT_MAX(filled * 4, LEAT_MIN(count, lists * TRAIN_PER_LIST) * (DIM + 4) + lists * DIM * 4);
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
        x->dsp->group_products(code, x->groups + (size_t)l * DIM, rounded(n) / GROUP, product);
        int32_t top = INT32_MIN; /* branch-free, so that compilers vectorise it */
        for (uint32_t i = 0; i < n; i++) top = LEAT_MAX(top, product[i]);
        if (top <= most) continue;
        most = top;
        for (best = l; product[best - l] != top;) best++;
    }
    return best;
}

/* Turns the sums of the members into centres of standard length; an empty list keeps its centre. */
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
        put_code(x->groups, l, x->centres + (size_t)l * DIM);
    }
}

uint32_t leat__image_index_sample(uint32_t count)
{
    return (uint32_t)LEAT_MIN((uint64_t)count, (uint64_t)lists_of(count) * TRAIN_PER_LIST);
}

static void copy_code(int8_t *to, const int8_t *from)
{
    memcpy(to, from, DIM);
    to[LEAT__COARSE_FLAGS] = 0;
}

void leat__image_index_assign(const leat__image_index *x, const int8_t *codes, uint32_t n, uint32_t *list)
{
    for (uint32_t i = 0; i < n; i++) {
        int8_t code[DIM];
        copy_code(code, codes + (size_t)i * DIM);
        list[i] = nearest(x, code);
    }
}

typedef struct piece {
    const leat__image_index *x;
    const int8_t *codes;
    uint32_t n, *list;
} piece;

static void assign_some(void *cookie, uint32_t member, uint32_t members)
{
    const piece *p = cookie;
    const uint32_t from = p->n * member / members, to = p->n * (member + 1) / members;
    leat__image_index_assign(p->x, p->codes + (size_t)from * DIM, to - from, p->list + from);
}

/* Assigns codes to lists with all threads of `work`. */
static int assign(const leat__image_index *x, const int8_t *codes, uint32_t n, uint32_t *list,
                  const leat__index_work *work, leat_error *err)
{
    for (uint32_t at = 0; at < n; at += PIECE) {
        piece p = {x, codes + (size_t)at * DIM, LEAT_MIN(n - at, PIECE), list + at};
        if (work && work->stop && work->stop(work->cookie))
            return leat__fail(err, LEAT_ECANCELED, "the run was stopped");
        if (work && work->team) leat__thread_team_run(work->team, assign_some, &p);
        else assign_some(&p, 0, 1);
    }
    return 0;
}

/* Runs k-means on the sample; `list` and `sums` are scratch memory. */
static int find_centres(leat__image_index *x, const int8_t *sample, uint32_t train, uint32_t *list,
                        int32_t *sums, const leat__index_work *work, leat_error *err)
{
    for (uint32_t l = 0; l < x->lists && train > 0; l++) {
        copy_code(x->centres + (size_t)l * DIM, sample + (size_t)((uint64_t)l * train / x->lists) * DIM);
        put_code(x->groups, l, x->centres + (size_t)l * DIM);
    }
    for (int round = 0; round < ROUNDS && x->lists > 1; round++) {
        memset(sums, 0, (size_t)x->lists * DIM * sizeof *sums);
        LEAT_TRY(assign(x, sample, train, list, work, err));
        for (uint32_t i = 0; i < train; i++) {
            int8_t code[DIM];
            copy_code(code, sample + (size_t)i * DIM);
            int32_t *s = sums + (size_t)list[i] * DIM;
            for (int k = 0; k < DIM; k++) s[k] += code[k];
        }
        move_centres(x, sums);
    }
    return 0;
}

int leat__image_index_train(leat__image_index **out, const int8_t *sample, uint32_t count,
                            const leat__index_work *work, leat_error *err)
{
    const uint32_t train = leat__image_index_sample(count);
    leat__image_index *x = LEAT_NEW(CURATE, leat__image_index);
    if (!x) return leat__fail_nomem(err, sizeof *x, "an index");
    x->dsp = leat__align_dsp_for(leat__cpu_flags());
    x->lists = lists_of(count);
    x->begin = LEAT_NEW_ARRAY(CURATE, uint32_t, x->lists);
    x->end = LEAT_NEW_ARRAY(CURATE, uint32_t, x->lists);
    x->centres = leat__zalloc_array(LEAT__MEM_CURATE, x->lists, DIM);
    x->groups = leat__zalloc_array(LEAT__MEM_CURATE, rounded(x->lists), DIM);
    int32_t *sums = LEAT_NEW_ARRAY(CURATE, int32_t, (size_t)x->lists * DIM);
    uint32_t *list = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(train, 1));
    int rc = x->begin && x->end && x->centres && x->groups && sums && list
                 ? find_centres(x, sample, train, list, sums, work, err)
                 : leat__fail_nomem(err, (size_t)x->lists * DIM, "centres");
    leat__free(sums);
    leat__free(list);
    if (rc != 0) leat__image_index_close(&x);
    *out = x;
    return rc;
}

static int make_room(leat__image_index *x, uint32_t places, leat_error *err)
{
    if (x->room >= places && x->codes) return 0;
    leat__free(x->codes);
    leat__free(x->scale);
    leat__free(x->entry);
    x->room = LEAT_MAX(places, 1);
    x->codes = leat__alloc_array(LEAT__MEM_CURATE, x->room, DIM);
    x->scale = leat__alloc_array(LEAT__MEM_CURATE, x->room, sizeof *x->scale);
    x->entry = leat__alloc_array(LEAT__MEM_CURATE, x->room, sizeof *x->entry);
    if (!x->codes || !x->scale || !x->entry)
        return leat__fail_nomem(err, (size_t)x->room * (DIM + 8), "an index of descriptors");
    return 0;
}

int leat__image_index_fill(leat__image_index *x, const leat__index_part *part, leat_error *err)
{
    size_t places = 0;
    memset(x->end, 0, x->lists * sizeof *x->end);
    for (uint32_t i = 0; i < part->count; i++) x->end[part->list[i]]++;
    for (uint32_t l = 0; l < x->lists; l++) {
        x->begin[l] = (uint32_t)places;
        places += rounded(x->end[l]);
        x->end[l] = x->begin[l];
    }
    if (places > UINT32_MAX) return leat__fail(err, LEAT_ELIMIT, "more than %u descriptors", UINT32_MAX);
    LEAT_TRY(make_room(x, (uint32_t)places, err));
    x->count = part->count;
    for (uint32_t i = 0; i < part->count; i++) {
        int8_t code[DIM];
        const uint32_t at = x->end[part->list[i]]++;
        copy_code(code, part->codes + (size_t)i * DIM);
        put_code(x->codes, at, code);
        x->scale[at] = 1 / (length_of(x, code) + 1e-6f);
        x->entry[at] = part->number ? part->number[i] : i;
    }
    for (x->from = 0; x->from < x->lists && x->end[x->from] == x->begin[x->from];) x->from++;
    for (x->to = x->lists; x->to > x->from && x->end[x->to - 1] == x->begin[x->to - 1];) x->to--;
    return 0;
}

/* Copies the training sample out of all descriptors. */
static int8_t *take_sample(const int8_t *codes, uint32_t count)
{
    const uint32_t train = leat__image_index_sample(count);
    int8_t *sample = leat__alloc_array(LEAT__MEM_CURATE, LEAT_MAX(train, 1), DIM);
    for (uint32_t i = 0; sample && i < train; i++)
        memcpy(sample + (size_t)i * DIM, codes + (size_t)((uint64_t)i * count / train) * DIM, DIM);
    return sample;
}

int leat__image_index_open(leat__image_index **out, const int8_t *codes, uint32_t count,
                           const leat__index_work *work, leat_error *err)
{
    int8_t *sample = take_sample(codes, count);
    *out = NULL;
    if (!sample) return leat__fail_nomem(err, (size_t)count * DIM, "descriptors");
    int rc = leat__image_index_train(out, sample, count, work, err);
    leat__free(sample);
    if (rc != 0) return rc;
    uint32_t *list = LEAT_NEW_ARRAY(CURATE, uint32_t, LEAT_MAX(count, 1));
    if (!list) rc = leat__fail_nomem(err, (size_t)count * 4, "lists");
    if (rc == 0) rc = assign(*out, codes, count, list, work, err);
    if (rc == 0)
        rc = leat__image_index_fill(*out, &(leat__index_part){.codes = codes, .list = list, .count = count},
                                    err);
    leat__free(list);
    if (rc != 0) leat__image_index_close(out);
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
    leat__free(x->end);
    leat__free(x->centres);
    leat__free(x->groups);
    leat__free(x);
    *index = NULL;
}

/* ---- search ---- */

static bool is_nearer(leat__near a, leat__near b)
{
    return a.distance != b.distance ? a.distance < b.distance : a.entry < b.entry;
}

/* Restores the heap of the nearest `room` entries, which has the furthest on top. */
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

static void keep(leat__near_heap *h, leat__near found)
{
    leat__near *heap = h->near;
    if (h->count < h->room) {
        uint32_t at = h->count++;
        heap[at] = found;
        while (at > 0 && is_nearer(heap[(at - 1) / 2], heap[at])) {
            const leat__near t = heap[at];
            heap[at] = heap[(at - 1) / 2];
            heap[(at - 1) / 2] = t;
            at = (at - 1) / 2;
        }
    } else if (is_nearer(found, heap[0])) {
        heap[0] = found;
        sink(heap, h->count, 0);
    }
}

static int by_distance(const void *a, const void *b)
{
    return is_nearer(*(const leat__near *)a, *(const leat__near *)b) ? -1 : 1;
}

/* Returns the product at place `rank` when sorted from high to low (quickselect). */
static int32_t select_product(int32_t *products, uint32_t count, uint32_t rank)
{
    uint32_t low = 0, high = count - 1;
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
        if (rank <= k) high = k;
        else low = k + 1;
    }
    return products[rank];
}

/* Returns the product of the query with the centre of the last list to search. A sample bounds it, so
 * that it can usually be selected among a few. */
static int32_t least_product(const int32_t *products, int32_t *room, uint32_t lists, uint32_t probes)
{
    const uint32_t count = lists / SAMPLED, rank = probes / SAMPLED * 3 / 2 + 4;
    uint32_t few = 0;
    if (probes >= lists) return INT32_MIN;
    if (rank < count / 2) {
        for (uint32_t i = 0; i < count; i++) room[i] = products[i * SAMPLED];
        const int32_t guess = select_product(room, count, rank);
        for (uint32_t l = 0; l < lists; l++) {
            room[few] = products[l];
            few += products[l] >= guess;
        }
        if (few >= probes) return select_product(room, few, probes - 1);
    }
    memcpy(room, products, lists * sizeof *room);
    return select_product(room, lists, probes - 1);
}

/* Returns the first of entries [from, to) that is not below `before`. Entries ascend evenly enough in
 * a list for interpolation; a binary search would miss the cache several times per list. */
static uint32_t end_before(const leat__image_index *x, uint32_t from, uint32_t to, uint32_t before)
{
    if (from == to || x->entry[to - 1] < before) return to;
    const uint32_t first = x->entry[from], last = x->entry[to - 1];
    if (first >= before) return from;
    const uint32_t guess = from + (uint32_t)((uint64_t)(to - 1 - from) * (before - first) / (last - first));
    uint32_t step = 4;
    if (x->entry[guess] < before) {
        from = guess + 1;
        while (step < to - from && x->entry[from + step] < before) from += step, step *= 2;
        to = step < to - from ? from + step : to;
    } else {
        to = guess;
        while (step < to - from && x->entry[to - step] >= before) to -= step, step *= 2;
        from = step < to - from ? to - step : from;
    }
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (x->entry[middle] < before) from = middle + 1;
        else to = middle;
    }
    return to;
}

void leat__near_sort(leat__near *near, uint32_t n)
{
    qsort(near, n, sizeof *near, by_distance);
}

#define WORDS (LEAT__NEAR_QUERIES / 64)

/* Scratch memory of a scan: for each list a bit per query that searches it, and products with the centres. */
typedef struct scanning {
    uint64_t *wanted[WORDS];
    int32_t *product, *order;
    float own[LEAT__NEAR_QUERIES]; /* 1 / length of each query */
    int8_t code[LEAT__NEAR_QUERIES][DIM];
} scanning;

size_t leat__image_index_scratch(const leat__image_index *x)
{
    return sizeof(scanning) + rounded(x->lists) * (WORDS * sizeof(uint64_t) + 2 * sizeof(int32_t));
}

static scanning *divide_scratch(const leat__image_index *x, void *scratch)
{
    scanning *s = scratch;
    uint64_t *words = (uint64_t *)(s + 1);
    for (int w = 0; w < WORDS; w++) s->wanted[w] = words + (size_t)w * x->lists;
    s->product = (int32_t *)(words + (size_t)WORDS * x->lists);
    s->order = s->product + rounded(x->lists);
    memset(words, 0, (size_t)WORDS * x->lists * sizeof *words);
    return s;
}

/* Computes the products with the centres of the part's lists. For the first part it uses all centres,
 * which give the least product. */
static void choose_lists(const leat__image_index *x, const int8_t *q, float share, leat__near_heap *heap,
                         scanning *s)
{
    if (heap->begun) {
        const uint32_t from = x->from / GROUP * GROUP;
        x->dsp->group_products(q, x->groups + (size_t)from * DIM, rounded(x->to - from) / GROUP,
                               s->product + from);
        return;
    }
    const uint32_t probes = LEAT_MAX((uint32_t)(share * (float)x->lists), PROBES_LEAST);
    x->dsp->group_products(q, x->groups, rounded(x->lists) / GROUP, s->product);
    heap->least = least_product(s->product, s->order, x->lists, probes);
    heap->begun = true;
}

/* Adds those of `n` codes from `at` on that are nearer than `limit`, except those before `first`. */
static void take_near(const leat__image_index *x, uint32_t at, const int32_t *product, uint32_t n, float own,
                      float limit, uint32_t first, leat__near_heap *heap)
{
    float distance[CHUNK];
    uint32_t near[CHUNK];
    if (heap->count == heap->room) /* entries at an equal distance also count: their number decides */
        limit = LEAT_MIN(limit, nextafterf(heap->near[0].distance, INFINITY));
    const size_t found = x->dsp->nearer(product, x->scale + at, n, own, limit, near, distance);
    for (size_t i = 0; i < found; i++)
        if (at + near[i] >= first)
            keep(heap, (leat__near){x->entry[at + near[i]], distance[near[i]], LEAT__NEAR_NEW, 0});
}

/* Searches positions [first, end) of a list. Products are computed for whole groups. */
static void scan_places(const leat__image_index *x, uint32_t first, uint32_t end, float limit,
                        const int8_t *code, float own, leat__near_heap *heap)
{
    int32_t product[CHUNK];
    for (uint32_t at = first / GROUP * GROUP; at < end; at += CHUNK) {
        const uint32_t some = LEAT_MIN(end - at, CHUNK);
        x->dsp->group_products(code, x->codes + (size_t)at * DIM, rounded(some) / GROUP, product);
        take_near(x, at, product, some, own, limit, first, heap);
    }
}

static void scan_list(const leat__image_index *x, uint32_t list, const leat__near_query *query,
                      const int8_t *code, float own, leat__near_heap *heap)
{
    const uint32_t begin = x->begin[list], end = x->end[list],
                   before = end_before(x, begin, end, query->before);
    scan_places(x, begin, before, query->limit, code, own, heap);
    if (query->after > 0)
        scan_places(x, end_before(x, before, end, query->after), end, query->limit, code, own, heap);
}

void leat__image_index_scan(const leat__image_index *x, const leat__near_query *query, leat__near_heap *heap,
                            uint32_t n, void *scratch)
{
    scanning *s = divide_scratch(x, scratch);
    for (uint32_t i = 0; i < n && x->count > 0; i++) {
        if (heap[i].room == 0 || (query[i].before == 0 && query[i].after == 0)) continue;
        copy_code(s->code[i], query[i].code);
        s->own[i] = 1 / (length_of(x, s->code[i]) + 1e-6f);
        choose_lists(x, s->code[i], query[i].share, &heap[i], s);
        for (uint32_t l = x->from; l < x->to; l++)
            if (s->product[l] >= heap[i].least) s->wanted[i / 64][l] |= UINT64_C(1) << i % 64;
    }
    for (uint32_t l = x->from; l < x->to; l++)
        for (uint32_t w = 0; w < WORDS; w++)
            for (uint64_t bits = s->wanted[w][l]; bits; bits &= bits - 1) {
                const uint32_t i = 64 * w + (uint32_t)__builtin_ctzll(bits);
                scan_list(x, l, &query[i], s->code[i], s->own[i], &heap[i]);
            }
}
