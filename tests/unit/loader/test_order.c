/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>

#include "base/rng.h"
#include "loader/order.h"

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

static leat__order_opts quasi(uint64_t count, uint64_t pages, const uint32_t *page_samples,
                              uint32_t streams, uint32_t window)
{
    return (leat__order_opts){.kind = LEAT_ORDER_QUASI, .seed = 7, .count = count, .pages = pages,
                              .page_samples = page_samples, .streams = streams,
                              .window_pages = window};
}

static void check_permutation(const leat__order *o, uint64_t count)
{
    unsigned char *seen = calloc(count, 1);
    for (uint64_t p = 0; p < count; p++) {
        uint64_t s = leat__order_at(o, p);
        assert_true(s < count);
        assert_int_equal(seen[s], 0);
        seen[s] = 1;
    }
    free(seen);
}

static void every_order_visits_each_sample_once(void **state)
{
    (void)state;
    for (int kind = LEAT_ORDER_SEQUENTIAL; kind <= LEAT_ORDER_QUASI; kind++) {
        for (uint64_t pages = 1; pages < 60; pages += 7) {
            static const uint32_t shapes[][2] = {{1, 1}, {1, 8}, {4, 8}, {64, 64}, {64, 4096}, {3, 2}};
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

static void an_order_is_a_function_of_seed_and_epoch(void **state)
{
    uint64_t count, same = 0;
    uint32_t *samples = some_pages(100, 3, &count);
    (void)state;
    for (int kind = LEAT_ORDER_RANDOM; kind <= LEAT_ORDER_QUASI; kind++) {
        leat__order_opts opts = quasi(count, 100, samples, 8, 32);
        leat__order *a, *b;
        opts.kind = (leat_order)kind;
        assert_ok(leat__order_open(&a, &opts, NULL));
        assert_ok(leat__order_open(&b, &opts, NULL));
        leat__order_epoch(a, 9);
        leat__order_epoch(b, 2); /* history does not matter */
        leat__order_epoch(b, 9);
        for (uint64_t p = 0; p < count; p++)
            assert_int_equal(leat__order_at(a, p), leat__order_at(b, p));
        leat__order_epoch(b, 10);
        for (uint64_t p = 0; p < count; p++) same += leat__order_at(a, p) == leat__order_at(b, p);
        leat__order_close(&b);
        opts.seed = 8;
        assert_ok(leat__order_open(&b, &opts, NULL));
        leat__order_epoch(b, 9);
        for (uint64_t p = 0; p < count; p++) same += leat__order_at(a, p) == leat__order_at(b, p);
        leat__order_close(&a);
        leat__order_close(&b);
    }
    assert_true(same < 40); /* about one per comparison by chance */
    free(samples);
}

/* A rank whose world divides the streams touches only its own pages, but for the two at the
 * ends of each of its streams. */
static void ranks_read_their_own_pages(void **state)
{
    enum { PAGES = 2000, STREAMS = 16 };
    uint64_t count;
    uint32_t *samples = some_pages(PAGES, 5, &count);
    leat__order_opts opts = quasi(count, PAGES, samples, STREAMS, 128);
    leat__order *o;
    uint32_t *page_of = malloc(count * sizeof *page_of);
    (void)state;
    for (uint64_t page = 0, s = 0; page < PAGES; page++)
        for (uint32_t i = 0; i < samples[page]; i++) page_of[s++] = (uint32_t)page;
    assert_ok(leat__order_open(&o, &opts, NULL));
    for (uint32_t world = 1; world <= STREAMS; world *= 2) {
        uint64_t touched = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            unsigned char *seen = calloc(PAGES, 1);
            for (uint64_t p = rank; p < count; p += world) {
                uint32_t page = page_of[leat__order_at(o, p)];
                touched += !seen[page];
                seen[page] = 1;
            }
            free(seen);
        }
        assert_in_range(touched, PAGES, PAGES + STREAMS);
    }
    leat__order_close(&o);
    free(page_of);
    free(samples);
}

/* At any moment only about window_pages pages are between their first and last use. */
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

/* ImageNet in small: 1,000 classes sorted, 1,300 samples each, about 5 samples per page. */
static void batches_are_as_mixed_as_random_ones(void **state)
{
    enum { CLASSES = 1000, EACH = 1300, BATCH = 256, BATCHES = 200 };
    uint64_t count = (uint64_t)CLASSES * EACH, pages = 0, filled = 0;
    uint32_t *samples = malloc(count * sizeof *samples);
    leat__rng r;
    double distinct[2] = {0, 0};
    (void)state;
    leat__rng_init(&r, 1, 0, 0, 0);
    while (filled < count) {
        uint32_t n = 3 + (uint32_t)leat__rng_below(&r, 4);
        if (n > count - filled) n = (uint32_t)(count - filled);
        samples[pages++] = n;
        filled += n;
    }
    for (int kind = 0; kind < 2; kind++) {
        leat__order_opts opts = quasi(count, pages, samples, LEAT__ORDER_STREAMS,
                                      LEAT__ORDER_WINDOW_PAGES);
        leat__order *o;
        opts.kind = kind == 0 ? LEAT_ORDER_RANDOM : LEAT_ORDER_QUASI;
        assert_ok(leat__order_open(&o, &opts, NULL));
        for (uint64_t b = 0; b < BATCHES; b++) {
            unsigned char seen[CLASSES] = {0};
            uint64_t first = b * (count / BATCHES / BATCH) * BATCH;
            for (uint64_t i = 0; i < BATCH; i++) {
                uint64_t c = leat__order_at(o, first + i) / EACH;
                distinct[kind] += !seen[c];
                seen[c] = 1;
            }
        }
        distinct[kind] /= BATCHES;
        leat__order_close(&o);
    }
    print_message("distinct classes per batch of 256: random %.1f, quasi_random %.1f (%.1f %%)\n",
                  distinct[0], distinct[1], 100 * distinct[1] / distinct[0]);
    assert_true(distinct[1] > 0.95 * distinct[0]);
    free(samples);
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
    leat__order_opts opts = {.kind = LEAT_ORDER_RANDOM, .seed = 1, .count = DRAWS,
                             .weights = weights, .weight_count = N};
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
        cmocka_unit_test(ranks_read_their_own_pages),
        cmocka_unit_test(open_pages_stay_within_the_window),
        cmocka_unit_test(batches_are_as_mixed_as_random_ones),
        cmocka_unit_test(weights_are_obeyed),
        cmocka_unit_test(subsets_and_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
