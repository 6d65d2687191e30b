/* SPDX-License-Identifier: Apache-2.0
 *
 * LEAT_PERM_DRAWS, LEAT_PERM_KEYS and LEAT_PERM_EXHAUSTIVE set the size of the long runs.
 */
#include "leat_test.h"

#include <math.h>

#include "base/clock.h"
#include "base/perm.h"
#include "base/rng.h"

static void every_small_n_is_a_permutation(void **state)
{
    uint64_t top = test_count("LEAT_PERM_EXHAUSTIVE", 4096);
    unsigned char *seen = calloc(top + 1, 1);
    (void)state;
    for (uint64_t n = 1; n <= top; n++) {
        leat__perm p;
        leat__perm_init(&p, n, n * 77 + 5, n);
        memset(seen, 0, n);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = leat__perm_at(&p, i);
            if (x >= n || seen[x])
                fail_msg("n %llu: position %llu", (unsigned long long)n, (unsigned long long)i);
            seen[x] = 1;
            if (leat__perm_find(&p, x) != i)
                fail_msg("n %llu: not back to %llu", (unsigned long long)n, (unsigned long long)i);
        }
    }
    free(seen);
}

/* Distinct positions must give distinct elements, whatever n: an open-addressing set
 * finds collisions. */
static void no_collision_at_any_size(void **state)
{
    uint64_t draws = test_count("LEAT_PERM_DRAWS", 200000), slots = 1;
    leat__rng r;
    (void)state;
    while (slots < draws * 2) slots *= 2;
    uint64_t *set = malloc(slots * sizeof *set);
    leat__rng_init(&r, 3, 0, 0, 0);
    for (int round = 0; round < 4; round++) {
        uint64_t n =
            round == 0 ? LEAT__PERM_MAX : draws + leat__rng_below(&r, LEAT__PERM_MAX >> (round * 9)) + 1;
        uint64_t start = leat__rng_below(&r, n);
        leat__perm p;
        leat__perm_init(&p, n, leat__rng_u64(&r), 1);
        memset(set, 0xff, slots * sizeof *set);
        for (uint64_t i = 0; i < draws; i++) {
            uint64_t x = leat__perm_at(&p, (start + i) % n);
            assert_true(x < n);
            uint64_t at = (x * 0x9e3779b97f4a7c15u) & (slots - 1);
            while (set[at] != UINT64_MAX) {
                if (set[at] == x)
                    fail_msg("n %llu: %llu twice", (unsigned long long)n, (unsigned long long)x);
                at = (at + 1) & (slots - 1);
            }
            set[at] = x;
        }
    }
    free(set);
}

/* Over many keys, where position 0 (and the pair 0, 1) lands must be uniform. */
static void first_positions_are_uniform_over_keys(void **state)
{
    static const uint64_t sizes[] = {2, 3, 5, 10, 64, 65, 100, 128, 1000};
    uint64_t keys = test_count("LEAT_PERM_KEYS", 100000);
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t n = sizes[s], cells = n * (n - 1) <= 100 ? n * n : n;
        unsigned *seen = calloc(cells, sizeof *seen);
        for (uint64_t key = 0; key < keys; key++) {
            leat__perm p;
            leat__perm_init(&p, n, key, 0);
            uint64_t a = leat__perm_at(&p, 0);
            seen[cells == n ? a : a * n + leat__perm_at(&p, 1)]++;
        }
        uint64_t live = cells == n ? n : n * (n - 1);
        double expect = (double)keys / (double)live, chi = 0;
        for (uint64_t c = 0; c < cells; c++) {
            if (cells != n && c / n == c % n) {
                assert_int_equal(seen[c], 0);
                continue;
            }
            chi += (seen[c] - expect) * (seen[c] - expect) / expect;
        }
        /* Wilson-Hilferty bound for p = 1e-4 */
        double k = (double)live - 1, z = 3.72;
        double bound = k * pow(1 - 2 / (9 * k) + z * sqrt(2 / (9 * k)), 3);
        print_message("n %3llu: chi-square %.1f, bound %.1f (%.0f degrees of freedom)\n",
                      (unsigned long long)n, chi, bound, k);
        assert_true(chi < bound);
        free(seen);
    }
}

static void keys_tweaks_and_sizes_all_matter(void **state)
{
    (void)state;
    uint64_t same = 0;
    for (int bit = 0; bit < 64; bit++) {
        leat__perm a, b, c;
        leat__perm_init(&a, 1000000, 99, 5);
        leat__perm_init(&b, 1000000, 99 ^ UINT64_C(1) << bit, 5);
        leat__perm_init(&c, 1000000, 99, 5 ^ UINT64_C(1) << bit);
        for (uint64_t i = 0; i < 100; i++) {
            same += leat__perm_at(&a, i) == leat__perm_at(&b, i);
            same += leat__perm_at(&a, i) == leat__perm_at(&c, i);
        }
    }
    assert_true(same <= 3); /* 12,800 pairs, one in a million by chance */
}

static void speed_is_printed(void **state)
{
    static const uint64_t sizes[] = {1000, 1281167, UINT64_C(1) << 32, LEAT__PERM_MAX};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        leat__perm p;
        leat__perm_init(&p, sizes[s], 1, 2);
        uint64_t sum = 0, calls = 200000, t = leat__clock_ns();
        for (uint64_t i = 0; i < calls; i++) sum += leat__perm_at(&p, i % sizes[s]);
        t = leat__clock_ns() - t;
        print_message("n %15llu: %.1f ns per call (sum %llu)\n", (unsigned long long)sizes[s],
                      (double)t / (double)calls, (unsigned long long)sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_n_is_a_permutation),
        cmocka_unit_test(no_collision_at_any_size),
        cmocka_unit_test(first_positions_are_uniform_over_keys),
        cmocka_unit_test(keys_tweaks_and_sizes_all_matter),
        cmocka_unit_test(speed_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
