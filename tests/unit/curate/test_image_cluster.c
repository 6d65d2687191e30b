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
    static const uint32_t best[] = {1, 1, 0, 2}; /* by rule */
    for (uint32_t keep = 0; keep < 4; keep++) {
        uint32_t kept[6];
        assert_ok(leat__dedup_clusters(&rows, &pairs, keep, kept, NULL));
        for (int i = 0; i < 4; i++) assert_int_equal(kept[i], best[keep]);
        assert_true(kept[4] == 4 && kept[5] == 5); /* probable pairs are kept */
    }
    assert_no_leaks();
}

/* A quality that is not known is neither the best nor the worst: then the qualities of others do not count.
 */
static void unknown_qualities_do_not_win(void **state)
{
    static const struct {
        leat__dedup_row row[3];
        uint32_t best;
    } cases[] = {
        {{{.quality = 10, .size = 9, .bytes = 9}, {.quality = 95, .size = 5}, {.quality = 90, .size = 7}}, 1},
        {{{.quality = 90, .size = 5}, {.quality = 90, .size = 6}, {.quality = 80, .size = 7}}, 1},
        /* WebP of fewer bytes, of more pixels; the order of rows does not matter */
        {{{.quality = -1, .size = 9, .bytes = 3}, {.quality = 95, .size = 9, .bytes = 9}, {.quality = 5}}, 1},
        {{{.quality = 95, .size = 9, .bytes = 9}, {.quality = 5}, {.quality = -1, .size = 9, .bytes = 3}}, 0},
        {{{.quality = 90, .size = 5}, {.quality = 80, .size = 7}, {.quality = -1, .size = 6}}, 1},
        {{{.quality = -1, .size = 6}, {.quality = 80, .size = 7}, {.quality = 90, .size = 5}}, 1},
        /* PNG of equally many pixels, and of fewer */
        {{{.quality = 95, .size = 9, .bytes = 9}, {.quality = -1, .size = 9, .lossless = 1}, {.size = 1}}, 1},
        {{{.quality = 95, .size = 9}, {.quality = -1, .size = 8, .lossless = 1}, {.size = 1}}, 0}};
    leat__image_pair pair[] = {{.a = 0, .b = 1, .similarity = 0.9f}, {.a = 1, .b = 2, .similarity = 0.8f}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat__dedup_row row[3];
        uint32_t kept[3];
        memcpy(row, cases[i].row, sizeof row);
        const leat__dedup_rows rows = {.count = 3, .row = row};
        const leat__image_pairs pairs = {.pair = pair, .count = 2};
        assert_ok(leat__dedup_clusters(&rows, &pairs, LEAT_KEEP_IMAGE_QUALITY, kept, NULL));
        for (int k = 0; k < 3; k++) assert_int_equal(kept[k], cases[i].best);
    }
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chains_are_one_cluster),
                                       cmocka_unit_test(unknown_qualities_do_not_win)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
