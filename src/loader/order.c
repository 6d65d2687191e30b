/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders. See order.h for a drawing.
 *
 * Memory: sequential and random need none; quasi has one prefix sum per page of the pack (8
 * bytes); weighted drawing has an alias table (12 bytes per sample).
 */
#include "loader/order.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "loader/buckets.h"

#pragma GCC diagnostic error "-Wswitch" /* a new order must be handled here */

/* Each use of the seed gets its own tweak, so that no two permutations are the same. */
enum { TWEAK_SAMPLES = 1, TWEAK_PAGES = 2, TWEAK_WINDOW = 3, TWEAK_TURNS = 4, OP_WEIGHTED = 0x7764 };

/* A stream's window has at least this many pages. With fewer, neighbouring samples of a stream would often
 * come from the same page. */
#define STREAM_PAGES 8u

struct leat__order {
    leat__order_opts opts;
    uint64_t epoch;
    leat__perm shuffle; /* random: shuffles positions; quasi: shuffles pages */
    /* quasi; all 0 when one window holds all pages: then the order is the random one */
    uint64_t streams;
    uint64_t *page_first;  /* pages + 1: first sample of each page in the pack */
    uint64_t *laid_before; /* pages + 1: samples before the i-th page of this epoch */
    uint64_t window;       /* samples per window */
    /* weighted: Vose's alias method */
    double *keep;
    uint32_t *other;
    leat__shares *shares;   /* or NULL */
    leat__buckets *buckets; /* or NULL */
};

static uint64_t tweak_of(uint64_t epoch, uint64_t use, uint64_t stream, uint64_t window)
{
    return leat__mix64(epoch ^ use << 56) ^ leat__mix64(stream << 40 ^ window ^ 0x71);
}

uint32_t leat__order_window(uint64_t page_bytes)
{
    uint64_t pages = LEAT__ORDER_WINDOW_BYTES / LEAT_MAX(page_bytes, UINT64_C(1));
    pages = LEAT_MAX(pages, (uint64_t)LEAT__ORDER_WINDOW_LEAST);
    return (uint32_t)LEAT_MIN(pages, (uint64_t)LEAT__ORDER_WINDOW_PAGES);
}

static int open_quasi(leat__order *o, leat_error *err)
{
    uint64_t n = o->opts.pages;

    if (n <= o->opts.window_pages) {
        o->opts.kind = LEAT_ORDER_RANDOM;
        return 0;
    }
    o->streams = LEAT_MAX(1u, LEAT_MIN(o->opts.streams, o->opts.window_pages / STREAM_PAGES));
    o->page_first = LEAT_NEW_ARRAY(LOADER, uint64_t, n + 1);
    o->laid_before = LEAT_NEW_ARRAY(LOADER, uint64_t, n + 1);
    if (o->page_first == NULL || o->laid_before == NULL)
        return leat__fail_nomem(err, (n + 1) * 16, "the order of pages");
    for (uint64_t page = 0; page < n; page++)
        o->page_first[page + 1] = o->page_first[page] + o->opts.page_samples[page];
    LEAT_ASSERT(o->page_first[n] == o->opts.count);
    /* a window has its share of the open pages, converted to samples by the mean page */
    double pages = (double)o->opts.window_pages / (double)o->streams;
    double samples = ceil(pages * (double)o->opts.count / (double)n);
    o->window = samples < 1 ? 1 : (uint64_t)samples;
    LEAT_ASSERT(o->window > 0 && o->streams > 0);
    return 0;
}

/* Builds the alias table (Vose): cell i gives element i with probability keep[i], else other[i]. */
static int open_weighted(leat__order *o, leat_error *err)
{
    uint64_t n = o->opts.weight_count, small = 0, large = 0;
    double sum = 0;
    uint32_t *stack;

    if (n > UINT32_MAX) return leat__fail(err, LEAT_EINVAL, "weights: more than %u samples", UINT32_MAX);
    for (uint64_t i = 0; i < n; i++) {
        if (!(o->opts.weights[i] >= 0) || !isfinite(o->opts.weights[i]))
            return leat__fail(err, LEAT_EINVAL, "weights: number %llu is %g: it must be 0 or more",
                              (unsigned long long)i, o->opts.weights[i]);
        sum += o->opts.weights[i];
    }
    if (!(sum > 0) || !isfinite(sum)) return leat__fail(err, LEAT_EINVAL, "weights: their sum is %g", sum);
    o->keep = LEAT_NEW_ARRAY(LOADER, double, n);
    o->other = LEAT_NEW_ARRAY(LOADER, uint32_t, n);
    stack = LEAT_NEW_ARRAY(LOADER, uint32_t, n);
    if (o->keep == NULL || o->other == NULL || stack == NULL) {
        leat__free(stack);
        return leat__fail_nomem(err, n * 16, "the weights");
    }
    /* one array for two stacks: small cells from the left, large ones from the right */
    for (uint64_t i = 0; i < n; i++) {
        o->keep[i] = o->opts.weights[i] / sum * (double)n;
        o->other[i] = (uint32_t)i;
        stack[o->keep[i] < 1 ? small++ : n - ++large] = (uint32_t)i;
    }
    while (small > 0 && large > 0) {
        uint32_t s = stack[--small], l = stack[n - large];
        o->other[s] = l;
        o->keep[l] -= 1 - o->keep[s];
        if (o->keep[l] < 1) {
            large--;
            stack[small++] = l;
        }
    }
    while (small > 0) o->keep[stack[--small]] = 1;
    while (large > 0) o->keep[stack[n - large--]] = 1;
    LEAT_ASSERT(small == 0 && large == 0);
    leat__free(stack);
    o->opts.weights = NULL; /* replaced by the table */
    return 0;
}

int leat__order_open(leat__order **out, const leat__order_opts *opts, leat_error *err)
{
    int rc = 0;

    LEAT_ASSERT(opts->count > 0 || opts->shares != NULL);
    leat__order *o = LEAT_NEW(LOADER, leat__order);
    *out = NULL;
    if (o == NULL) return leat__fail_nomem(err, sizeof *o, "an order");
    o->opts = *opts;
    if (opts->shares != NULL) {
        LEAT_GO(rc, out, leat__shares_open(&o->shares, opts->shares, err));
        o->opts.count = leat__shares_count(o->shares);
    } else if (opts->bucket_ends != NULL)
        LEAT_GO(rc, out,
                leat__buckets_open(&o->buckets, opts->seed, opts->global_batch, opts->bucket_ends,
                                   opts->bucket_count, err));
    else if (opts->weights != NULL) LEAT_GO(rc, out, open_weighted(o, err));
    else if (opts->kind == LEAT_ORDER_QUASI) LEAT_GO(rc, out, open_quasi(o, err));
    leat__order_epoch(o, 0);
    *out = o;
    o = NULL;
out:
    leat__order_close(&o);
    return rc;
}

void leat__order_close(leat__order **out)
{
    leat__order *o = *out;
    if (o == NULL) return;
    leat__free(o->page_first);
    leat__free(o->laid_before);
    leat__free(o->keep);
    leat__free(o->other);
    leat__shares_close(&o->shares);
    leat__buckets_close(&o->buckets);
    leat__free(o);
    *out = NULL;
}

static void quasi_epoch(leat__order *o, uint64_t epoch)
{
    leat__perm_init(&o->shuffle, o->opts.pages, o->opts.seed, tweak_of(epoch, TWEAK_PAGES, 0, 0));
    for (uint64_t i = 0; i < o->opts.pages; i++) {
        uint64_t page = leat__perm_at(&o->shuffle, i);
        o->laid_before[i + 1] = o->laid_before[i] + o->opts.page_samples[page];
    }
    LEAT_ASSERT(o->laid_before[o->opts.pages] == o->opts.count);
}

void leat__order_epoch(leat__order *o, uint64_t epoch)
{
    o->epoch = epoch;
    if (o->shares != NULL) {
        leat__shares_epoch(o->shares, epoch);
        return;
    }
    if (o->buckets != NULL) {
        leat__buckets_epoch(o->buckets, epoch);
        return;
    }
    if (o->keep != NULL) return;
    switch (o->opts.kind) {
    case LEAT_ORDER_SEQUENTIAL: break;
    case LEAT_ORDER_RANDOM:
        leat__perm_init(&o->shuffle, o->opts.count, o->opts.seed, tweak_of(epoch, TWEAK_SAMPLES, 0, 0));
        break;
    case LEAT_ORDER_QUASI: quasi_epoch(o, epoch); break;
    }
}

/* Returns the sample at position `at` of the pages concatenated in this epoch's order. */
static uint64_t laid_at(const leat__order *o, uint64_t at)
{
    LEAT_ASSERT(at < o->laid_before[o->opts.pages]);
    uint64_t low = 0, high = o->opts.pages; /* laid_before[low] <= at < laid_before[high] */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (o->laid_before[middle] <= at) low = middle;
        else high = middle;
    }
    LEAT_ASSERT(o->laid_before[low] <= at && at < o->laid_before[low + 1]);
    uint64_t page = leat__perm_at(&o->shuffle, low);
    return o->page_first[page] + (at - o->laid_before[low]);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The order of streams in a round: i -> (step * i + shift) mod n, step coprime to n. A real shuffle would
 * cost 0.4 us per sample and is not needed, because streams are random sets of pages. */
typedef struct turns {
    uint64_t n, step, shift;
} turns;

static turns turns_of(const leat__order *o, uint64_t round)
{
    /* the last round has only the longer streams */
    uint64_t n = round < o->opts.count / o->streams ? o->streams : o->opts.count % o->streams;
    uint64_t draw = leat__mix64(o->opts.seed ^ tweak_of(o->epoch, TWEAK_TURNS, 0, round));
    turns t = {.n = n, .step = 1 + (uint32_t)draw % n, .shift = (draw >> 32) % n};
    while (gcd(t.step, n) != 1) t.step++;
    return t;
}

/* Returns the stream that has turn `i`. */
static uint64_t turn_at(turns t, uint64_t i)
{
    LEAT_ASSERT(i < t.n);
    return (t.step * i + t.shift) % t.n;
}

typedef struct window {
    uint64_t number, from, to; /* rows of the stream */
} window;

/* Finds the window of row `i` of a stream. The first window has 1/2 to 3/2 of the usual length, so that
 * streams move to new pages at different times. A rest of less than half a window joins the last one, because
 * a short window would mix few pages. */
static window window_at(const leat__order *o, uint64_t stream, uint64_t length, uint64_t i)
{
    LEAT_ASSERT(i < length && stream < o->streams && o->window > 0);
    uint64_t size = o->window, half = (size + 1) / 2;
    uint64_t first = half + size * stream / o->streams, last;

    if (length <= first + half) return (window){0, 0, length};
    last = first + (length - half - first) / size * size;
    if (i < first) return (window){0, 0, first};
    if (i >= last) return (window){1 + (last - first) / size, last, length};
    uint64_t number = (i - first) / size;
    return (window){1 + number, first + number * size, first + (number + 1) * size};
}

static uint64_t quasi_at(const leat__order *o, uint64_t position)
{
    uint64_t streams = o->streams, count = o->opts.count;
    uint64_t base = count / streams, extra = count % streams;
    /* Every round takes one sample of each stream; the last round only from the `extra` longer
     * streams. */
    uint64_t i = position / streams;
    uint64_t stream = turn_at(turns_of(o, i), position % streams);
    uint64_t start = stream * base + LEAT_MIN(stream, extra);
    LEAT_ASSERT(stream < streams);
    window w = window_at(o, stream, base + (stream < extra), i);
    LEAT_ASSERT(w.from <= i && i < w.to);

    leat__perm inside;
    leat__perm_init(&inside, w.to - w.from, o->opts.seed, tweak_of(o->epoch, TWEAK_WINDOW, stream, w.number));
    return laid_at(o, start + w.from + leat__perm_at(&inside, i - w.from));
}

static uint64_t at_of_kind(const leat__order *o, uint64_t position)
{
    switch (o->opts.kind) {
    case LEAT_ORDER_SEQUENTIAL: break;
    case LEAT_ORDER_RANDOM: return leat__perm_at(&o->shuffle, position);
    case LEAT_ORDER_QUASI: return quasi_at(o, position);
    }
    return position;
}

uint64_t leat__order_at(const leat__order *o, uint64_t position)
{
    uint64_t at = position;

    LEAT_ASSERT(position < o->opts.count);
    if (o->shares != NULL) {
        uint64_t salt;
        leat__shares_fill(o->shares, position, 1, 1, &at, &salt);
    } else if (o->buckets != NULL) {
        at = leat__buckets_at(o->buckets, position);
    } else if (o->keep != NULL) {
        leat__rng r;
        leat__rng_init(&r, o->opts.seed, o->epoch, position, OP_WEIGHTED);
        uint64_t cell = leat__rng_below(&r, o->opts.weight_count);
        at = leat__rng_double(&r) < o->keep[cell] ? cell : o->other[cell];
    } else {
        at = at_of_kind(o, position);
    }
    LEAT_ASSERT(o->keep == NULL || at < o->opts.weight_count);
    return o->opts.indices != NULL ? o->opts.indices[at] : at;
}

/* Returns the position at which `stream` has its turn in a round. */
static uint64_t position_of(const leat__order *o, uint64_t stream, uint64_t round)
{
    turns t = turns_of(o, round);
    uint64_t i = 0;
    while (turn_at(t, i) != stream) i++;
    return round * o->streams + i;
}

static uint64_t quasi_find(const leat__order *o, uint64_t sample)
{
    uint64_t low = 0, high = o->opts.pages; /* page_first[low] <= sample < page_first[high] */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (o->page_first[middle] <= sample) low = middle;
        else high = middle;
    }
    uint64_t laid = o->laid_before[leat__perm_find(&o->shuffle, low)] + sample - o->page_first[low];
    uint64_t base = o->opts.count / o->streams, extra = o->opts.count % o->streams;
    uint64_t longer = extra * (base + 1); /* samples in the streams that are one longer */
    uint64_t stream = laid < longer ? laid / (base + 1) : extra + (laid - longer) / base;
    uint64_t row = laid - stream * base - LEAT_MIN(stream, extra);
    window w = window_at(o, stream, base + (stream < extra), row);

    leat__perm inside;
    leat__perm_init(&inside, w.to - w.from, o->opts.seed, tweak_of(o->epoch, TWEAK_WINDOW, stream, w.number));
    return position_of(o, stream, w.from + leat__perm_find(&inside, row - w.from));
}

bool leat__order_position(const leat__order *o, uint64_t sample, uint64_t *position)
{
    if (o->shares != NULL || o->buckets != NULL || o->keep != NULL || o->opts.indices != NULL) return false;
    LEAT_ASSERT(sample < o->opts.count);
    switch (o->opts.kind) {
    case LEAT_ORDER_SEQUENTIAL: *position = sample; break;
    case LEAT_ORDER_RANDOM: *position = leat__perm_find(&o->shuffle, sample); break;
    case LEAT_ORDER_QUASI: *position = quasi_find(o, sample); break;
    }
    LEAT_ASSERT(leat__order_at(o, *position) == sample);
    return true;
}

void leat__order_fill(const leat__order *o, uint64_t first, uint64_t step, uint32_t n, uint64_t *samples,
                      uint64_t *salts)
{
    LEAT_ASSERT(n == 0 || first + (n - 1) * step < o->opts.count);
    if (o->shares == NULL) {
        for (uint32_t i = 0; i < n; i++) samples[i] = leat__order_at(o, first + i * step);
        memset(salts, 0, n * sizeof *salts);
        return;
    }
    leat__shares_fill(o->shares, first, step, n, samples, salts);
    for (uint32_t i = 0; o->opts.indices != NULL && i < n; i++) samples[i] = o->opts.indices[samples[i]];
}

uint64_t leat__order_count(const leat__order *o)
{
    return o->opts.count;
}

const leat__shares *leat__order_shares(const leat__order *o)
{
    return o->shares;
}

uint64_t leat__order_memory(const leat__order *o)
{
    uint64_t bytes = sizeof *o;
    if (o->page_first != NULL) bytes += (o->opts.pages + 1) * 16;
    if (o->keep != NULL) bytes += o->opts.weight_count * 12;
    if (o->shares != NULL) bytes += leat__shares_memory(o->shares);
    if (o->buckets != NULL) bytes += leat__buckets_memory(o->buckets);
    return bytes;
}
