/* SPDX-License-Identifier: Apache-2.0
 *
 * Mixed sources against references that deal out one position after the other.
 */
#include "leat_test.h"

#include <math.h>

#include "base/num.h"
#include "base/perm.h"
#include "base/rng.h"
#include "loader/order.h"
#include "loader/state.h"

#define MOST 8

typedef struct mixed {
    leat__share_source sources[MOST];
    leat__shares_opts opts;
    uint64_t total;
} mixed;

static mixed make(uint32_t n, const uint64_t *size, const uint64_t *draws, leat_order order,
                  leat_mix_batches batches, uint64_t global_batch)
{
    mixed m = {.opts = {.order = order,
                        .seed = 11,
                        .count = n,
                        .batches = batches,
                        .global_batch = global_batch,
                        .streams = 4,
                        .window_pages = 16}};
    uint64_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        m.sources[i] = (leat__share_source){.first = first, .size = size[i], .draws = draws[i]};
        first += size[i];
        m.total += draws[i];
    }
    return m;
}

static leat__shares *open_shares(mixed *m)
{
    leat__shares *s;
    m->opts.sources = m->sources;
    assert_ok(leat__shares_open(&s, &m->opts, NULL));
    return s;
}

static uint64_t at(const leat__shares *s, uint64_t position, uint64_t *salt)
{
    uint64_t place;
    leat__shares_fill(s, position, 1, 1, &place, salt);
    return place;
}

static uint32_t source_at(const mixed *m, uint64_t place)
{
    uint32_t i = 0;
    while (place >= m->sources[i].first + m->sources[i].size || m->sources[i].size == 0) i++;
    return i;
}

/* Webster, one seat after the other: the next goes to the source with the smallest (2k + 1) / n. */
static void reference_counts(const mixed *m, uint64_t t, uint64_t *counts)
{
    memset(counts, 0, MOST * sizeof *counts);
    for (uint64_t seat = 0; seat < t; seat++) {
        uint32_t best = MOST;
        for (uint32_t i = 0; i < m->opts.count; i++) {
            uint64_t n = m->sources[i].draws;
            if (counts[i] == n) continue;
            if (best == MOST || (2 * counts[i] + 1) * m->sources[best].draws < (2 * counts[best] + 1) * n)
                best = i;
        }
        counts[best]++;
    }
}

static void every_batch_has_the_proportions(void **state)
{
    static const uint64_t size[] = {1000, 300, 1, 77}, draws[] = {700, 200, 30, 70};
    (void)state;
    for (uint64_t batch = 1; batch <= 130; batch += 43) {
        for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
            mixed m = make(4, size, draws, (leat_order)order, LEAT_MIX_STRATIFIED, batch);
            leat__shares *s = open_shares(&m);
            uint64_t seen[MOST] = {0}, want[MOST], salt;
            assert_int_equal(leat__shares_count(s), 1000);
            for (uint64_t p = 0; p < 1000; p++) {
                seen[source_at(&m, at(s, p, &salt))]++;
                if ((p + 1) % batch != 0 && p + 1 != 1000) continue;
                reference_counts(&m, p + 1, want);
                assert_memory_equal(seen, want, sizeof seen);
                for (uint32_t i = 0; i < 4; i++)
                    assert_true(fabs((double)seen[i] - (double)(p + 1) * (double)draws[i] / 1000) <= 1);
            }
            leat__shares_close(&s);
        }
    }
}

/* Over epochs each sample comes as often as any other of its pack, give or take one. */
static void draws_continue_from_epoch_to_epoch(void **state)
{
    static const uint64_t size[] = {100, 40, 7}, draws[] = {30, 60, 23};
    (void)state;
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        for (int batches = LEAT_MIX_SHUFFLED; batches <= LEAT_MIX_STRATIFIED; batches++) {
            mixed m = make(3, size, draws, (leat_order)order, (leat_mix_batches)batches, 8);
            leat__shares *s = open_shares(&m);
            uint32_t seen[147] = {0};
            for (uint64_t epoch = 0; epoch < 40; epoch++) {
                uint64_t salt, of[3] = {0}, last_salts[147];
                memset(last_salts, 0xff, sizeof last_salts);
                leat__shares_epoch(s, epoch);
                for (uint64_t p = 0; p < m.total; p++) {
                    uint64_t place = at(s, p, &salt);
                    assert_int_not_equal(salt, last_salts[place]); /* each time another augmentation */
                    last_salts[place] = salt;
                    seen[place]++;
                    of[source_at(&m, place)]++;
                }
                for (uint32_t i = 0; i < 3; i++) {
                    assert_int_equal(of[i], draws[i]);
                    uint32_t low = UINT32_MAX, high = 0;
                    for (uint64_t k = 0; k < size[i]; k++) {
                        low = LEAT_MIN(low, seen[m.sources[i].first + k]);
                        high = LEAT_MAX(high, seen[m.sources[i].first + k]);
                    }
                    assert_true(high - low <= 1);
                }
            }
            leat__shares_close(&s);
        }
    }
}

/* The packs take turns by their shares, and each gives neighbours, pass after pass. */
static void orders_that_do_not_shuffle_draw_nothing(void **state)
{
    static const uint64_t size[] = {100, 40, 7}, draws[] = {200, 60, 23};
    (void)state;
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        mixed m = make(3, size, draws, (leat_order)order, LEAT_MIX_SHUFFLED, 8);
        leat__shares *s = open_shares(&m);
        uint64_t seen[MOST] = {0}, want[MOST], salt, in_turn = 0, far = 0, last[3] = {0};
        for (uint64_t p = 0; p < m.total; p++) {
            uint64_t place = at(s, p, &salt);
            uint32_t source = source_at(&m, place);
            int64_t step = (int64_t)place - (int64_t)last[source];
            far += seen[source] % size[source] != 0 && step != 1 && step != -1; /* else a pass begins */
            last[source] = place;
            seen[source]++;
            reference_counts(&m, p + 1, want);
            in_turn += memcmp(seen, want, sizeof seen) == 0;
        }
        leat__shares_close(&s);
        if (leat__order_shuffled((leat_order)order)) {
            assert_true(in_turn < m.total / 2);
            assert_true(far > m.total / 2);
            continue;
        }
        assert_int_equal(in_turn, m.total);
        assert_int_equal(far, 0);
    }
}

static void a_batch_comes_from_one_source(void **state)
{
    static const uint64_t size[] = {100, 40, 7}, draws[] = {300, 160, 43};
    (void)state;
    for (int order = 0; order < LEAT__ORDER_COUNT; order++) {
        mixed m = make(3, size, draws, (leat_order)order, LEAT_MIX_SINGLE, 10);
        leat__shares *s = open_shares(&m);
        uint64_t batches[3] = {0}, salt, changes = 0;
        assert_int_equal(leat__shares_count(s), 500);
        uint32_t before = 3;
        for (uint64_t b = 0; b < 50; b++) {
            uint32_t source = source_at(&m, at(s, b * 10, &salt));
            for (uint64_t i = 1; i < 10; i++)
                assert_int_equal(source_at(&m, at(s, b * 10 + i, &salt)), source);
            batches[source]++;
            changes += source != before;
            before = source;
        }
        assert_int_equal(batches[0], 30);
        assert_int_equal(batches[1], 16);
        assert_int_equal(batches[2], 4);
        assert_true(changes > 12); /* batches of a source do not all come together */
        assert_int_equal(leat__shares_left_out(s, &before), 3);
        assert_int_equal(before, 0);
        leat__shares_close(&s);
    }
    mixed large = make(3, size, draws, LEAT_ORDER_RANDOM, LEAT_MIX_SINGLE, 200);
    leat__shares *few = open_shares(&large);
    uint32_t never;
    assert_int_equal(leat__shares_count(few), 400); /* 1 batch of the first, 1 of the second */
    assert_int_equal(leat__shares_left_out(few, &never), 143);
    assert_int_equal(never, 1);
    leat__shares_close(&few);
    mixed m = make(3, size, draws, LEAT_ORDER_RANDOM, LEAT_MIX_SINGLE, 1000);
    leat__shares *s;
    leat_error err;
    m.opts.sources = m.sources;
    assert_code(LEAT_EINVAL, leat__shares_open(&s, &m.opts, &err));
    assert_non_null(strstr(err.message, "global batch"));
}

/* A million draws: the counts are exact, and with replacement samples are as a fair die gives them. */
static void a_million_draws(void **state)
{
    static const uint64_t size[] = {100000, 1000, 50}, draws[] = {700000, 200000, 100000};
    (void)state;
    for (int replacement = 0; replacement < 2; replacement++) {
        mixed m = make(3, size, draws, LEAT_ORDER_RANDOM, LEAT_MIX_SHUFFLED, 256);
        m.opts.replacement = replacement != 0;
        leat__shares *s = open_shares(&m);
        uint64_t of[3] = {0}, half[3] = {0}, places[1000], salts[1000];
        uint32_t *seen = calloc(101050, sizeof *seen);
        for (uint64_t p = 0; p < 1000000; p += 1000) {
            leat__shares_fill(s, p, 1, 1000, places, salts);
            for (uint32_t i = 0; i < 1000; i++) {
                uint32_t source = source_at(&m, places[i]);
                of[source]++;
                half[source] += p < 500000;
                seen[places[i]]++;
            }
        }
        double chi = 0;
        for (uint64_t k = 0; k < 1000; k++) {
            double off = seen[100000 + k] - 200.0;
            chi += off * off / 200;
        }
        if (replacement) assert_true(fabs(chi - 999) < 6 * sqrt(2 * 999.0));
        else assert_true(chi == 0);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(of[i], draws[i]);
            double share = (double)draws[i] / 1e6, sd = sqrt(0.25e6 * share * (1 - share));
            assert_true(fabs((double)half[i] - (double)draws[i] / 2) < 6 * sd); /* shuffled over the epoch */
        }
        free(seen);
        leat__shares_close(&s);
    }
}

static void filling_is_asking_one_by_one(void **state)
{
    static const uint64_t size[] = {100, 0, 40, 7}, draws[] = {300, 0, 160, 43};
    (void)state;
    for (int batches = 0; batches < 3; batches++) {
        mixed m = make(4, size, draws, LEAT_ORDER_RANDOM, (leat_mix_batches)batches, 12);
        leat__shares *s = open_shares(&m);
        uint64_t count = leat__shares_count(s), places[600], salts[600], salt;
        for (uint64_t world = 1; world <= 64; world *= 4) {
            for (uint64_t rank = 0; rank < LEAT_MIN(world, 5u); rank++) {
                uint32_t n = (uint32_t)leat__share_count(count, (uint32_t)rank, (uint32_t)world);
                leat__shares_fill(s, rank, world, n, places, salts);
                for (uint32_t i = 0; i < n; i++) {
                    assert_int_equal(places[i], at(s, i * world + rank, &salt));
                    assert_int_equal(salts[i], salt);
                }
            }
        }
        leat__shares_close(&s);
    }
}

/* Large packs in the quasi-random order: pages are read together, and each sample once per pass. */
static void quasi_keeps_pages_together(void **state)
{
    enum { PAGES = 200, EACH = 50 };
    uint32_t page_samples[PAGES];
    static const uint64_t size[] = {PAGES * EACH, 100}, draws[] = {2 * PAGES * EACH, 100};
    (void)state;
    for (uint32_t i = 0; i < PAGES; i++) page_samples[i] = EACH;
    mixed m = make(2, size, draws, LEAT_ORDER_QUASI, LEAT_MIX_SHUFFLED, 64);
    m.sources[0].pages = PAGES;
    m.sources[0].page_samples = page_samples;
    leat__shares *s = open_shares(&m);
    assert_true(leat__shares_memory(s) > PAGES * 16);
    uint8_t *seen = calloc(PAGES * EACH, 1);
    uint64_t distinct = 0, salt;
    for (uint64_t from = 0; from < 8000; from += 4000) {
        uint8_t open[PAGES] = {0};
        for (uint64_t p = from; p < from + 100; p++) {
            uint64_t place = at(s, p, &salt);
            if (place < PAGES * EACH) open[place / EACH] = 1;
        }
        for (uint32_t i = 0; i < PAGES; i++) distinct += open[i];
    }
    assert_true(distinct < 2 * 64); /* of 200 pages; 100 samples at random would touch about 79 each time */
    for (uint64_t p = 0; p < leat__shares_count(s); p++) {
        uint64_t place = at(s, p, &salt);
        if (place < PAGES * EACH) seen[place]++;
    }
    for (uint64_t i = 0; i < PAGES * EACH; i++) assert_int_equal(seen[i], 2);
    free(seen);
    leat__shares_close(&s);
}

static void draws_are_what_was_asked_for(void **state)
{
    const uint64_t size[] = {1000, 10, 0};
    uint64_t draws[3];
    leat_error err;
    leat_loader_source w[3] = {{"a", 0.7, 0, 0}, {"b", 0.3, 0, 0}, {"c", 0, 0, 0}};
    (void)state;
    assert_ok(leat__shares_draws(w, size, 3, 0, draws, NULL));
    assert_true(draws[0] == 707 && draws[1] == 303 && draws[2] == 0);
    assert_ok(leat__shares_draws(w, size, 3, 7, draws, NULL));
    assert_true(draws[0] == 5 && draws[1] == 2 && draws[2] == 0); /* 4.9 and 2.1 */
    w[0].weight = 7e6, w[1].weight = 3e6;                         /* relative */
    assert_ok(leat__shares_draws(w, size, 3, 1000, draws, NULL));
    assert_true(draws[0] == 700 && draws[1] == 300);
    leat_loader_source r[3] = {{"a", 0, 0.5, 0}, {"b", 0, 2.25, 0}, {"c", 0, 3, 0}};
    assert_ok(leat__shares_draws(r, size, 3, 0, draws, NULL));
    assert_true(draws[0] == 500 && draws[1] == 23 && draws[2] == 0);
    leat_loader_source c[3] = {{"a", 0, 0, 5}, {"b", 0, 0, LEAT_CHOOSE_NONE}, {"c", 0, 0, 0}};
    assert_ok(leat__shares_draws(c, size, 3, 0, draws, NULL));
    assert_true(draws[0] == 5 && draws[1] == 0 && draws[2] == 0);

    static const struct {
        leat_loader_source s;
        const char *says;
    } bad[] = {{{"c", 1, 0, 0}, "no samples"},     {{"c", -1, 0, 0}, "weight"},
               {{"c", NAN, 0, 0}, "weight"},       {{"c", INFINITY, 0, 0}, "weight"},
               {{"c", 0, 2, 0}, "either weights"}, {{"c", 0, 0, 3}, "either weights"}};
    for (size_t i = 0; i < LEAT_COUNT(bad); i++) {
        w[2] = bad[i].s;
        assert_code(LEAT_EINVAL, leat__shares_draws(w, size, 3, 0, draws, &err));
        assert_non_null(strstr(err.message, bad[i].says));
    }
    r[1] = (leat_loader_source){"b", 0, 2, 3};
    assert_code(LEAT_EINVAL, leat__shares_draws(r, size, 3, 0, draws, &err));
    r[1] = (leat_loader_source){"b", 0, NAN, 0};
    assert_code(LEAT_EINVAL, leat__shares_draws(r, size, 3, 0, draws, &err));
    r[1] = (leat_loader_source){"b", 0, 1e300, 0};
    assert_code(LEAT_EINVAL, leat__shares_draws(r, size, 3, 0, draws, &err));
    r[1] = (leat_loader_source){"b", 0, 1, 0};
    assert_code(LEAT_EINVAL, leat__shares_draws(r, size, 3, 100, draws, &err));
    assert_non_null(strstr(err.message, "epoch_size"));
}

/* Many sources, tiny and huge shares, epochs far away: counts stay right. */
static void odd_mixes(void **state)
{
    leat__rng r;
    (void)state;
    leat__rng_init(&r, 3, 0, 0, 0);
    for (int round = 0; round < 200; round++) {
        uint32_t n = 1 + (uint32_t)leat__rng_below(&r, MOST);
        uint64_t size[MOST], draws[MOST], seen[MOST] = {0}, salt;
        for (uint32_t i = 0; i < n; i++) {
            size[i] = 1 + leat__rng_below(&r, 20);
            draws[i] = leat__rng_below(&r, 4) == 0 ? 0 : leat__rng_below(&r, 60);
        }
        draws[0]++;
        mixed m = make(n, size, draws, (leat_order)leat__rng_below(&r, 3),
                       (leat_mix_batches)leat__rng_below(&r, 2), 1 + leat__rng_below(&r, 9));
        m.opts.replacement = leat__rng_below(&r, 2) != 0;
        leat__shares *s = open_shares(&m);
        leat__shares_epoch(s, round % 2 ? UINT64_C(1) << 62 : (uint64_t)round);
        assert_int_equal(leat__shares_count(s), m.total);
        for (uint64_t p = 0; p < m.total; p++) seen[source_at(&m, at(s, p, &salt))]++;
        assert_memory_equal(seen, draws, n * sizeof *seen);
        leat__shares_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_has_the_proportions),
        cmocka_unit_test(draws_continue_from_epoch_to_epoch),
        cmocka_unit_test(orders_that_do_not_shuffle_draw_nothing),
        cmocka_unit_test(a_batch_comes_from_one_source),
        cmocka_unit_test(a_million_draws),
        cmocka_unit_test(filling_is_asking_one_by_one),
        cmocka_unit_test(quasi_keeps_pages_together),
        cmocka_unit_test(draws_are_what_was_asked_for),
        cmocka_unit_test(odd_mixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
