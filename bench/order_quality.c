/* SPDX-License-Identifier: Apache-2.0
 *
 * How random is quasi_random? Packs are sorted by class. Two tables, one JSON line per row;
 * bench/order_quality.py draws the first.
 *
 *  1. Windows from one page per stream up to all pages; 1,000 classes of 1,300 samples, about five
 *     samples to a page: distinct classes per batch of 256 (true random: 226), and how often a sample
 *     shares its class with the next one of the order, and with the next one of a rank of a world of 64
 *     (true random: 0.1 % both).
 *  2. Packs from 50 samples to 100 GB, worlds of 1 to 64 ranks, the default window: distinct classes per
 *     batch and per rank and epoch, relative to the random order. The last line has the minimum of
 *     both; the exit status is 1 when it is below 0.97.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "loader/order.h"

enum { CLASSES = 1000, EACH = 1300, BATCH = 256, STREAMS = LEAT__ORDER_STREAMS };

typedef struct quality {
    double distinct, next, next_of_rank;
} quality;

static quality measure(const leat__order *o, uint64_t count)
{
    quality q = {0};
    uint64_t batches = 0, pairs = 0;
    for (uint64_t first = 0; first + BATCH <= count; first += BATCH * 17, batches++) {
        unsigned char seen[CLASSES] = {0};
        uint64_t class[BATCH];
        for (uint64_t i = 0; i < BATCH; i++) {
            class[i] = leat__order_at(o, first + i) / EACH;
            q.distinct += !seen[class[i]];
            seen[class[i]] = 1;
        }
        for (uint64_t i = 0; i + STREAMS < BATCH; i++, pairs++) {
            q.next += class[i] == class[i + 1];
            q.next_of_rank += class[i] == class[i + STREAMS];
        }
    }
    q.distinct /= (double)batches;
    q.next /= (double)pairs;
    q.next_of_rank /= (double)pairs;
    return q;
}

static void print(const char *order, uint64_t window, const quality *q)
{
    printf("{\"order\": \"%s\", \"window_pages\": %llu, \"distinct\": %.2f, \"next\": %.5f, "
           "\"next_of_rank\": %.5f}\n",
           order, (unsigned long long)window, q->distinct, q->next, q->next_of_rank);
}

/* ---- 2. packs and worlds ---------------------------------------------------------------------- */

typedef struct mix {
    double batch, rank; /* distinct classes */
} mix;

#define ROWS_MAX 300000u /* rows per rank that are checked, from the start of the epoch */

#define EPOCHS 16u /* for small packs: a few batches alone are mostly noise */

static mix measure_mix(leat__order *o, uint64_t count, uint64_t each, uint64_t classes, uint32_t world,
                       uint32_t batch)
{
    unsigned char *seen = malloc(classes), *in_batch = malloc(classes);
    uint64_t batches = 0, ranks = 0;
    mix m = {0, 0};
    uint32_t parts = world > 2 ? 3 : 1, epochs = count / world < ROWS_MAX / EPOCHS ? EPOCHS : 1;
    for (uint32_t part = 0; part < parts * epochs; part++, ranks++) {
        uint32_t rank = (world - 1) * (part % parts) / 2;
        leat__order_epoch(o, part / parts);
        uint64_t rows = leat__share_count(count, rank, world);
        if (rows > ROWS_MAX) rows = ROWS_MAX;
        uint64_t size = rows < batch ? rows : batch;
        memset(seen, 0, classes);
        for (uint64_t first = 0; size > 0 && first + size <= rows; first += size, batches++) {
            memset(in_batch, 0, classes);
            for (uint64_t row = first; row < first + size; row++) {
                uint64_t c = leat__order_at(o, row * world + rank) / each;
                m.batch += !in_batch[c];
                m.rank += !seen[c];
                in_batch[c] = seen[c] = 1;
            }
        }
    }
    if (batches > 0) m.batch /= (double)batches;
    m.rank /= (double)ranks;
    free(seen);
    free(in_batch);
    return m;
}

static int compare_pack(uint64_t count, uint64_t bytes, uint64_t classes, mix *least)
{
    static const uint32_t worlds[] = {1, 2, 3, 8, 16, 64}, batches[] = {16, 256};
    uint64_t page = LEAT_MAX(1u, (512u << 10) / bytes), pages = (count + page - 1) / page;
    uint64_t each = (count + classes - 1) / classes;
    uint32_t *samples = calloc(pages, sizeof *samples);
    leat__order *orders[2];

    for (uint64_t i = 0; i < pages; i++) samples[i] = (uint32_t)(i + 1 < pages ? page : count - i * page);
    for (int kind = 0; kind < 2; kind++) {
        leat__order_opts opts = {.kind = kind == 0 ? LEAT_ORDER_RANDOM : LEAT_ORDER_QUASI,
                                 .seed = 7,
                                 .count = count,
                                 .pages = pages,
                                 .page_samples = samples,
                                 .streams = STREAMS,
                                 .window_pages = LEAT__ORDER_WINDOW_PAGES};
        if (leat__order_open(&orders[kind], &opts, NULL) != 0) return 1;
    }
    for (size_t w = 0; w < LEAT_COUNT(worlds); w++) {
        for (size_t b = 0; b < LEAT_COUNT(batches); b++) {
            mix r = measure_mix(orders[0], count, each, classes, worlds[w], batches[b]);
            mix q = measure_mix(orders[1], count, each, classes, worlds[w], batches[b]);
            mix ratio = {q.batch / r.batch, q.rank / r.rank};
            least->batch = LEAT_MIN(least->batch, ratio.batch);
            least->rank = LEAT_MIN(least->rank, ratio.rank);
            printf("{\"samples\": %llu, \"megabytes\": %.1f, \"classes\": %llu, \"world\": %u, "
                   "\"batch\": %u, \"per_batch\": %.4f, \"per_rank\": %.4f}\n",
                   (unsigned long long)count, (double)(count * bytes) / 1e6, (unsigned long long)classes,
                   worlds[w], batches[b], ratio.batch, ratio.rank);
        }
    }
    leat__order_close(&orders[0]);
    leat__order_close(&orders[1]);
    free(samples);
    return 0;
}

static int compare_packs(void)
{
    static const struct {
        uint64_t count, bytes, classes;
    } packs[] = {{50, 100000, 10},        {60, 3000, 20},         {1000, 100000, 10},
                 {5000, 100, 10},         {40000, 3000, 100},     {60000, 3000, 10},
                 {30000, 110000, 100},    {300000, 110000, 1000}, {910000, 110000, 1000},
                 {910000, 110000, 20000}, {33000000, 3000, 1000}, {200000, 500000, 1000}};
    mix least = {1e9, 1e9};
    for (size_t i = 0; i < LEAT_COUNT(packs); i++) {
        if (compare_pack(packs[i].count, packs[i].bytes, packs[i].classes, &least) != 0) return 1;
    }
    printf("{\"least_per_batch\": %.4f, \"least_per_rank\": %.4f}\n", least.batch, least.rank);
    return least.batch < 0.97 || least.rank < 0.97;
}

static int compare_windows(void)
{
    uint64_t count = (uint64_t)CLASSES * EACH, pages = 0, filled = 0;
    uint32_t *samples = calloc(count, sizeof *samples);
    leat__rng r;

    leat__rng_init(&r, 1, 0, 0, 0);
    while (filled < count) {
        uint32_t n = 3 + (uint32_t)leat__rng_below(&r, 4);
        if (n > count - filled) n = (uint32_t)(count - filled);
        samples[pages++] = n;
        filled += n;
    }
    for (uint64_t window = STREAMS; window <= pages * 2; window *= 2) {
        leat__order_opts opts = {.kind = LEAT_ORDER_QUASI,
                                 .seed = 7,
                                 .count = count,
                                 .pages = pages,
                                 .page_samples = samples,
                                 .streams = STREAMS,
                                 .window_pages = (uint32_t)window};
        leat__order *o;
        if (leat__order_open(&o, &opts, NULL) != 0) return 1;
        quality q = measure(o, count);
        print("quasi_random", window, &q);
        leat__order_close(&o);
    }
    leat__order_opts opts = {.kind = LEAT_ORDER_RANDOM, .seed = 7, .count = count};
    leat__order *o;
    if (leat__order_open(&o, &opts, NULL) != 0) return 1;
    quality q = measure(o, count);
    print("random", 0, &q);
    leat__order_close(&o);
    free(samples);
    return 0;
}

int main(void)
{
    return compare_windows() != 0 || compare_packs() != 0;
}
