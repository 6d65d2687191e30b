/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include "curate/image_dedup.h"

static void write_pack(const char *path, uint32_t rows)
{
    leat_packer *p = NULL;
    leat_packer_stats stats;
    assert_ok(leat__image_columns_create(&p, path, "{}", true, true, NULL));
    for (uint32_t i = 0; i < rows; i++) {
        const leat__image_facts f = {.codec = LEAT__CODEC_JPEG, .bytes = i};
        assert_ok(leat__image_columns_append(p, &"abcdef"[i], 1, &f, NULL));
    }
    assert_ok(leat_packer_finish(p, &stats, NULL));
    leat_packer_close(&p);
}

static void the_order_does_not_depend_on_the_command(void **state)
{
    const char *paths[] = {in_box("a.leat"), in_box("b.leat"), in_box("c.leat")};
    uint32_t order[3];
    for (uint32_t i = 0; i < 3; i++) write_pack(paths[i], i + 2);
    assert_ok(leat__dedup_order_find(paths, 3, order, NULL));
    const char *first = paths[order[0]], *second = paths[order[1]];
    for (uint32_t i = 0; i < 3; i++) {
        const char *turned[] = {paths[i], paths[(i + 1) % 3], paths[(i + 2) % 3]};
        assert_ok(leat__dedup_order_find(turned, 3, order, NULL));
        assert_true(turned[order[0]] == first && turned[order[1]] == second);
    }
    paths[1] = in_box("none.leat");
    assert_code(LEAT_ENOENT, leat__dedup_order_find(paths, 3, order, NULL));
    assert_no_leaks();
}

/* Packs of 1, 3 and 2 rows, searched in the order 2, 0, 1. */
static void rows_and_pairs_are_renumbered(void **state)
{
    static const uint32_t order[] = {2, 0, 1}, ends[] = {0, 1, 4, 6};
    uint32_t first[] = {0, 2, 3, 6};
    leat__dedup_row row[6];
    leat__image_pair pair[] = {{.a = 0, .b = 2, .similarity = 0.9f, .orientation = 5},
                               {.a = 1, .b = 3, .similarity = 0.8f, .orientation = 1, .probable = 1},
                               {.a = 2, .b = 5, .similarity = 0.7f, .orientation = 6}};
    leat__dedup_rows rows = {.count = 6, .packs = 3, .row = row, .first = first};
    leat__image_pairs pairs = {.pair = pair, .count = 3};
    for (uint32_t i = 0; i < 6; i++) row[i] = (leat__dedup_row){.bytes = i, .pack = (i > 1) + (i > 2)};
    assert_ok(leat__dedup_order_restore(&rows, &pairs, order, NULL));
    static const uint64_t want[] = {2, 3, 4, 5, 0, 1};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(row[i].bytes, want[i]);
        assert_int_equal(row[i].pack, i < 1 ? 0 : i < 4 ? 1 : 2);
    }
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(first[i], ends[i]);
    /* 0-2 is now 4-0, hence turned the other way; 2-5 is 0-3. */
    assert_true(pair[0].a == 0 && pair[0].b == 3 && pair[0].orientation == 6 && !pair[0].probable);
    assert_true(pair[1].a == 0 && pair[1].b == 4 && pair[1].orientation == 6);
    assert_true(pair[2].a == 1 && pair[2].b == 5 && pair[2].orientation == 1 && pair[2].probable);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_order_does_not_depend_on_the_command),
                                       cmocka_unit_test(rows_and_pairs_are_renumbered)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
