/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "base/rng.h"
#include "loader/order.h"
#include "loader/state.h"

/* A pack of `pages` pages with 1 to 40 samples each, and as many samples as come together. */
static uint32_t *some_pages(uint64_t pages, uint64_t seed, uint64_t *count)
{
    uint32_t *samples = malloc(pages * sizeof *samples);
    leat__rng r;
    leat__rng_init(&r, seed, 0, 0, 0);
    *count = 0;
    for (uint64_t i = 0; i < pages; i++) {
        samples[i] = 1 + (uint32_t)leat__rng_below(&r, 40);
        *count += samples[i];
    }
    return samples;
}

static leat__order_opts quasi(uint64_t count, uint64_t pages, const uint32_t *page_samples, uint32_t streams,
                              uint32_t window)
{
    return (leat__order_opts){.kind = LEAT_ORDER_QUASI,
                              .seed = 7,
                              .count = count,
                              .pages = pages,
                              .page_samples = page_samples,
                              .streams = streams,
                              .window_pages = window};
}

static void check_permutation(const leat__order *o, uint64_t count)
{
    unsigned char *seen = calloc(count, 1);
    for (uint64_t p = 0; p < count; p++) {
        uint64_t s = leat__order_at(o, p), found;
        assert_true(s < count);
        assert_true(leat__order_position(o, s, &found));
        assert_int_equal(found, p);
        assert_int_equal(seen[s], 0);
        seen[s] = 1;
    }
    free(seen);
}

static void every_order_visits_each_sample_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < LEAT__ORDER_COUNT; kind++) {
        for (uint64_t pages = 1; pages < 60; pages += 7) {
            static const uint32_t shapes[][2] = {{1, 1},     {1, 8}, {4, 8},  {64, 64},
                                                 {64, 4096}, {3, 2}, {5, 40}, {64, 24}};
            uint64_t count;
            uint32_t *samples = some_pages(pages, pages, &count);
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                leat__order_opts opts = quasi(count, pages, samples, shapes[s][0], shapes[s][1]);
                leat__order *o;
                opts.kind = (leat_order)kind;
                assert_ok(leat__order_open(&o, &opts, NULL));
                for (uint64_t epoch = 0; epoch < 3; epoch++) {
                    leat__order_epoch(o, epoch);
                    check_permutation(o, count);
                }
                leat__order_close(&o);
            }
            free(samples);
        }
    }
    assert_no_leaks();
}

/* Orders that do not shuffle are the same for every seed and epoch. */
static void an_order_is_a_function_of_seed_and_epoch(void **state)
{
    uint64_t count;
    uint32_t *samples = some_pages(100, 3, &count);
    (void)state;
    for (int kind = 0; kind < LEAT__ORDER_COUNT; kind++) {
        uint64_t same = 0;
        leat__order_opts opts = quasi(count, 100, samples, 8, 32);
        leat__order *a, *b;
        opts.kind = (leat_order)kind;
        assert_ok(leat__order_open(&a, &opts, NULL));
        assert_ok(leat__order_open(&b, &opts, NULL));
        leat__order_epoch(a, 9);
        leat__order_epoch(b, 2); /* history does not matter */
        leat__order_epoch(b, 9);
        for (uint64_t p = 0; p < count; p++) assert_int_equal(leat__order_at(a, p), leat__order_at(b, p));
        leat__order_epoch(b, 10);
        for (uint64_t p = 0; p < count; p++) same += leat__order_at(a, p) == leat__order_at(b, p);
        leat__order_close(&b);
        opts.seed = 8;
        assert_ok(leat__order_open(&b, &opts, NULL));
        leat__order_epoch(b, 9);
        for (uint64_t p = 0; p < count; p++) same += leat__order_at(a, p) == leat__order_at(b, p);
        leat__order_close(&a);
        leat__order_close(&b);
        if (leat__order_shuffled((leat_order)kind)) assert_true(same < 40); /* about one each by chance */
        else assert_int_equal(same, 2 * count);
    }
    free(samples);
}

/* The column `shuffled` of LEAT_ORDER_MAP says what the function does: readahead relies on it. */
static void orders_that_do_not_shuffle_keep_neighbours(void **state)
{
    uint64_t count;
    uint32_t *samples = some_pages(100, 3, &count);
    (void)state;
    for (int kind = 0; kind < LEAT__ORDER_COUNT; kind++) {
        leat__order_opts opts = quasi(count, 100, samples, 8, 32);
        uint64_t neighbours = 0;
        leat__order *o;
        opts.kind = (leat_order)kind;
        assert_ok(leat__order_open(&o, &opts, NULL));
        for (uint64_t p = 1; p < count; p++) {
            int64_t step = (int64_t)leat__order_at(o, p) - (int64_t)leat__order_at(o, p - 1);
            neighbours += step == 1 || step == -1;
        }
        leat__order_close(&o);
        if (leat__order_shuffled((leat_order)kind)) assert_true(neighbours < count / 20);
        else assert_int_equal(neighbours, count - 1);
    }
    free(samples);
}

/* All ranks together see each sample once, whatever the world size: the order does not depend on it. Up to
 * one window of pages, it is the random order itself. */
static void small_packs_come_in_the_random_order(void **state)
{
    static const uint64_t sizes[] = {1, 2, 9, 65, 4096};
    (void)state;
    for (size_t n = 0; n < LEAT_COUNT(sizes); n++) {
        uint64_t count;
        uint32_t *samples = some_pages(sizes[n], 3, &count);
        leat__order_opts opts = quasi(count, sizes[n], samples, 64, LEAT__ORDER_WINDOW_PAGES);
        leat__order *q, *r;
        assert_ok(leat__order_open(&q, &opts, NULL));
        opts.kind = LEAT_ORDER_RANDOM;
        assert_ok(leat__order_open(&r, &opts, NULL));
        leat__order_epoch(q, 5);
        leat__order_epoch(r, 5);
        for (uint64_t p = 0; p < count; p++) assert_int_equal(leat__order_at(q, p), leat__order_at(r, p));
        leat__order_close(&q);
        leat__order_close(&r);
        free(samples);
    }
}

/* The default window holds 2 GiB of pages: large pages must not make it larger than memory. */
static void the_default_window_follows_the_page_size(void **state)
{
    (void)state;
    assert_int_equal(leat__order_window(64u << 10), 4096);
    assert_int_equal(leat__order_window(512u << 10), 4096);
    assert_int_equal(leat__order_window(4u << 20), 512);
    assert_int_equal(leat__order_window(256u << 20), 64);
    assert_int_equal(leat__order_window(0), 4096);
}

/* At any time only about window_pages pages are between their first and last use. */
static void open_pages_stay_within_the_window(void **state)
{
    enum { PAGES = 4000, WINDOW = 256 };
    uint64_t count;
    uint32_t *samples = some_pages(PAGES, 5, &count);
    leat__order_opts opts = quasi(count, PAGES, samples, 16, WINDOW);
    leat__order *o;
    uint32_t *page_of = malloc(count * sizeof *page_of), *left = malloc(PAGES * sizeof *left);
    uint64_t open = 0, most = 0;
    (void)state;
    for (uint64_t page = 0, s = 0; page < PAGES; page++)
        for (uint32_t i = 0; i < samples[page]; i++) page_of[s++] = (uint32_t)page;
    memcpy(left, samples, PAGES * sizeof *left);
    assert_ok(leat__order_open(&o, &opts, NULL));
    for (uint64_t p = 0; p < count; p++) {
        uint32_t page = page_of[leat__order_at(o, p)];
        open += left[page] == samples[page];
        most = open > most ? open : most;
        left[page]--;
        open -= left[page] == 0;
    }
    print_message("window of %d pages: at most %llu open\n", WINDOW, (unsigned long long)most);
    assert_true(most <= WINDOW * 3 / 2);
    leat__order_close(&o);
    free(page_of);
    free(left);
    free(samples);
}

typedef struct mix {
    uint64_t count, page; /* samples of the pack, and of a page */
    uint64_t classes;     /* the pack is sorted by class */
    uint32_t window;
} mix;

/* Distinct classes in batches of `batch` samples, and in an epoch, of the ranks of a world: means over
 * the first, a middle and the last rank. World 1 takes 300 batches of its epoch. */
static void measure_mix(const mix *m, leat_order kind, uint32_t world, uint32_t batch, double out[2])
{
    uint64_t pages = (m->count + m->page - 1) / m->page, batches = 0, ranks = 0;
    uint64_t each = (m->count + m->classes - 1) / m->classes;
    uint32_t *samples = malloc(pages * sizeof *samples);
    unsigned char *seen = malloc(m->classes), *in_batch = malloc(m->classes);
    leat__order *o;
    for (uint64_t i = 0; i < pages; i++)
        samples[i] = (uint32_t)(i + 1 < pages ? m->page : m->count - i * m->page);
    leat__order_opts opts = quasi(m->count, pages, samples, LEAT__ORDER_STREAMS, m->window);
    opts.kind = kind;
    assert_ok(leat__order_open(&o, &opts, NULL));
    out[0] = out[1] = 0;
    uint64_t epochs = m->count < 5000 ? 20 : 1;
    for (uint64_t epoch = 0; epoch < epochs; epoch++) {
        leat__order_epoch(o, epoch);
        for (uint32_t third = 0; third < (world > 2 ? 3u : 1u); third++, ranks++) {
            uint32_t rank = (world - 1) * third / 2;
            uint64_t rows = leat__share_count(m->count, rank, world);
            uint64_t size = rows < batch ? rows : batch;
            if (size == 0) continue;
            uint64_t skip = rows / size > 300 && world == 1 ? rows / size / 300 : 1;
            memset(seen, 0, m->classes);
            for (uint64_t first = 0; first + size <= rows; first += size * skip, batches++) {
                memset(in_batch, 0, m->classes);
                for (uint64_t row = first; row < first + size; row++) {
                    uint64_t c = leat__order_at(o, row * world + rank) / each;
                    out[0] += !in_batch[c];
                    out[1] += !seen[c];
                    in_batch[c] = seen[c] = 1;
                }
            }
        }
    }
    assert_true(batches > 0);
    out[0] /= (double)batches;
    out[1] /= (double)ranks;
    leat__order_close(&o);
    free(samples);
    free(seen);
    free(in_batch);
}

/* Class-sorted packs from 50 samples to 100 GB, and small windows: batches and ranks see at least 97 % of
 * the classes that the random order shows them. */
static void batches_and_ranks_are_as_mixed_as_random_ones(void **state)
{
    static const mix packs[] = {{50, 50, 10, 4096},      {60, 60, 20, 4096},       {5000, 2500, 10, 4096},
                                {40000, 170, 100, 4096}, {40000, 170, 10, 128},    {200000, 40, 100, 1024},
                                {25000, 5, 100, 4096}, /* 2.5 GB: just above one window */
                                {300000, 5, 1000, 4096}, {1000000, 5, 1000, 4096}, {1000000, 5, 10000, 4096}};
    static const struct {
        uint32_t world, batch;
    } runs[] = {{1, 16}, {1, 256}, {3, 64}, {8, 16}, {64, 64}};
    (void)state;
    for (size_t i = 0; i < LEAT_COUNT(packs); i++) {
        for (size_t k = 0; k < LEAT_COUNT(runs); k++) {
            double random[2], quasi_random[2];
            measure_mix(&packs[i], LEAT_ORDER_RANDOM, runs[k].world, runs[k].batch, random);
            measure_mix(&packs[i], LEAT_ORDER_QUASI, runs[k].world, runs[k].batch, quasi_random);
            print_message("%8llu samples, %5llu classes, world %2u, batch %3u: batch %.1f of %.1f, rank "
                          "%.1f of %.1f\n",
                          (unsigned long long)packs[i].count, (unsigned long long)packs[i].classes,
                          runs[k].world, runs[k].batch, quasi_random[0], random[0], quasi_random[1],
                          random[1]);
            for (int what = 0; what < 2; what++) assert_true(quasi_random[what] >= 0.97 * random[what]);
        }
    }
}

static void weights_are_obeyed(void **state)
{
    enum { N = 10, DRAWS = 200000 };
    double weights[N], sum = 0;
    unsigned seen[N] = {0};
    leat__order *o;
    leat_error err;
    (void)state;
    for (int i = 0; i < N; i++) sum += weights[i] = i == 3 ? 0 : i * i + 0.5;
    leat__order_opts opts = {
        .kind = LEAT_ORDER_RANDOM, .seed = 1, .count = DRAWS, .weights = weights, .weight_count = N};
    assert_ok(leat__order_open(&o, &opts, NULL));
    for (uint64_t p = 0; p < DRAWS; p++) seen[leat__order_at(o, p)]++;
    for (int i = 0; i < N; i++) {
        double expect = DRAWS * weights[i] / sum;
        assert_true(fabs(seen[i] - expect) <= 5 * sqrt(expect) + 1e-9);
    }
    leat__order_close(&o);
    weights[2] = -1;
    assert_code(LEAT_EINVAL, leat__order_open(&o, &opts, &err));
    assert_contains(err.message, "number 2");
    memset(weights, 0, sizeof weights);
    assert_code(LEAT_EINVAL, leat__order_open(&o, &opts, &err));
    assert_no_leaks();
}

static void subsets_and_failures(void **state)
{
    static const uint64_t indices[] = {5, 9, 100, 7};
    leat__order_opts opts = {.kind = LEAT_ORDER_RANDOM, .seed = 1, .count = 4, .indices = indices};
    leat__order *o;
    uint64_t sum = 0;
    (void)state;
    assert_ok(leat__order_open(&o, &opts, NULL));
    for (uint64_t p = 0; p < 4; p++) sum += leat__order_at(o, p);
    assert_int_equal(sum, 121);
    assert_true(leat__order_memory(o) > 0);
    leat__order_close(&o);
    leat__order_close(&o);
    assert_int_equal(leat__share_count(10, 0, 4) + leat__share_count(10, 3, 4), 5);
    if (!leat__fault_available()) skip();
    uint64_t count;
    uint32_t *samples = some_pages(10, 5, &count);
    leat__order_opts q = quasi(count, 10, samples, 2, 4);
    double weights[4] = {1, 2, 3, 4};
    opts.weights = weights;
    opts.weight_count = 4;
    for (uint64_t n = 1; n <= 4; n++) {
        leat__fault_arm(LEAT__FAULT_ALLOC, n, true);
        if (n <= 3) assert_code(LEAT_ENOMEM, leat__order_open(&o, &q, NULL));
        leat__fault_arm(LEAT__FAULT_ALLOC, n, true);
        assert_code(LEAT_ENOMEM, leat__order_open(&o, &opts, NULL));
        leat__fault_disarm();
    }
    free(samples);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_visits_each_sample_once),
        cmocka_unit_test(an_order_is_a_function_of_seed_and_epoch),
        cmocka_unit_test(orders_that_do_not_shuffle_keep_neighbours),
        cmocka_unit_test(small_packs_come_in_the_random_order),
        cmocka_unit_test(the_default_window_follows_the_page_size),
        cmocka_unit_test(open_pages_stay_within_the_window),
        cmocka_unit_test(batches_and_ranks_are_as_mixed_as_random_ones),
        cmocka_unit_test(weights_are_obeyed),
        cmocka_unit_test(subsets_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
