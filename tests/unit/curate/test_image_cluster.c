/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "curate/image_dedup.h"

static void chains_are_one_cluster(void **state)
{
    leat__dedup_row row[6] = {{.size = 10, .pack = 1, .quality = 90},
                              {.size = 30, .pack = 1, .quality = 50},
                              {.size = 20, .pack = 0, .quality = 95},
                              {.size = 5, .pack = 0, .quality = -1},
                              {.size = 9, .pack = 0},
                              {.size = 9, .pack = 0}};
    leat__image_pair pair[] = {{.a = 0, .b = 2, .similarity = 0.9f},
                               {.a = 1, .b = 2, .similarity = 0.8f},
                               {.a = 2, .b = 3, .similarity = 0.8f},
                               {.a = 4, .b = 5, .similarity = 0.65f, .probable = 1}};
    leat__dedup_rows rows = {.count = 6, .row = row};
    leat__image_pairs pairs = {.pair = pair, .count = 4};
    static const uint32_t best[] = {1, 3, 0, 2}; /* by rule */
    for (uint32_t keep = 0; keep < 4; keep++) {
        uint32_t kept[6];
        assert_ok(leat__dedup_clusters(&rows, &pairs, keep, kept, NULL));
        for (int i = 0; i < 4; i++) assert_int_equal(kept[i], best[keep]);
        assert_true(kept[4] == 4 && kept[5] == 5); /* probable pairs are kept */
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains_are_one_cluster)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
