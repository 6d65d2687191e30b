/* SPDX-License-Identifier: Apache-2.0
 *
 * How random is quasi_random? A class-sorted pack in small: 1,000 classes of 1,300 samples, about
 * five samples to a page. For windows from one page per stream up to all pages: distinct classes
 * per batch of 256 (true random: 226), and how often a sample shares its class with the next one
 * of the order, and with the next one of its stream (true random: 0.1 % both). One JSON line per
 * window; bench/order_quality.py draws them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "loader/order.h"

enum { CLASSES = 1000, EACH = 1300, BATCH = 256, STREAMS = LEAT__ORDER_STREAMS };

typedef struct quality {
    double distinct, next, next_in_stream;
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
            q.next_in_stream += class[i] == class[i + STREAMS];
        }
    }
    q.distinct /= (double)batches;
    q.next /= (double)pairs;
    q.next_in_stream /= (double)pairs;
    return q;
}

static void print(const char *order, uint64_t window, const quality *q)
{
    printf("{\"order\": \"%s\", \"window_pages\": %llu, \"distinct\": %.2f, \"next\": %.5f, "
           "\"next_in_stream\": %.5f}\n",
           order, (unsigned long long)window, q->distinct, q->next, q->next_in_stream);
}

int main(void)
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
        leat__order_opts opts = {.kind = LEAT_ORDER_QUASI, .seed = 7, .count = count, .pages = pages,
                                 .page_samples = samples, .streams = STREAMS,
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
