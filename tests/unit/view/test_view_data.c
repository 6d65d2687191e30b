/* SPDX-License-Identifier: Apache-2.0 */
#include "view_box.h"

static void all_columns_have_unique_names(void **state)
{
    leat__view_data d;
    static const char *const with[] = {BOX_COLUMNS, "more.leat"};
    box_pack(BOX_PACK);
    box_columns(BOX_COLUMNS, "label", BOX_ROWS, "{\"fingerprint\":\"%llx\"}");
    box_columns("more.leat", "label", BOX_ROWS, "{\"fingerprint\":\"%llx\"}");
    assert_ok(leat__view_data_open(&d, BOX_PACK, with, 2, NULL, 1 << 20, NULL));
    static const char *const names[] = {"key",   "width",   "height", "bytes",         "label",
                                        "score", "caption", "vector", "columns.label", "more.label"};
    assert_int_equal(d.column_count, LEAT_COUNT(names));
    for (size_t i = 0; i < LEAT_COUNT(names); i++) assert_string_equal(d.column[i].name, names[i]);
    assert_int_equal(leat__view_find(&d, "label")->name_count, 4);
    assert_int_equal(leat__view_find(&d, "vector")->dim, BOX_DIM);
    assert_null(leat__view_find(&d, "none"));
    assert_null(leat__view_find(&d, NULL));
    leat__view_data_close(&d);
    assert_no_leaks();
}

static void columns_are_dropped_to_stay_within_the_budget(void **state)
{
    leat__view_data d;
    leat_error err = {0};
    box_open(&d, 2 * BOX_ROWS * sizeof(double) + 50);
    leat__view_column *width = leat__view_find(&d, "width"), *score = leat__view_find(&d, "score"),
                      *label = leat__view_find(&d, "label");
    assert_ok(leat__view_load(&d, width, NULL));
    assert_ok(leat__view_load(&d, score, NULL));
    assert_ok(leat__view_load(&d, width, NULL));
    assert_ok(leat__view_load(&d, label, NULL));
    assert_non_null(width->number);
    assert_null(score->number); /* used least recently */
    assert_true(d.held <= d.budget);
    assert_code(LEAT_EBUDGET, leat__view_load(&d, leat__view_find(&d, "caption"), &err));
    assert_contains(err.message, "but memory is");
    assert_true(d.held <= d.budget);
    leat__view_data_close(&d);
    assert_no_leaks();
}

static void texts_are_ranked(void **state)
{
    leat__view_data d;
    box_open(&d, 1 << 20);
    leat__view_column *key = leat__view_find(&d, "key"), *caption = leat__view_find(&d, "caption");
    assert_ok(leat__view_load_order(&d, key, NULL));
    assert_int_equal(key->ranks, BOX_ROWS);
    for (uint32_t i = 0; i < BOX_ROWS; i++) assert_int_equal(key->rank[i], BOX_ROWS - 1 - i);
    assert_ok(leat__view_load_order(&d, caption, NULL));
    assert_int_equal(caption->ranks, 6); /* "An ODD one", "even 0" to "even 4" */
    assert_int_equal(caption->rank[1], 0);
    assert_int_equal(caption->rank[0], caption->rank[2]);
    leat__view_data_close(&d);
    assert_no_leaks();
}

static void packs_without_images_are_refused(void **state)
{
    leat__view_data d;
    leat_error err = {0};
    box_pack(BOX_PACK);
    box_columns(BOX_COLUMNS, "a", 3, "{}");
    assert_code(LEAT_EINVAL, leat__view_data_open(&d, BOX_COLUMNS, NULL, 0, NULL, 1 << 20, &err));
    assert_contains(err.message, "has no image field");
    assert_code(LEAT_EINVAL, leat__view_data_open(&d, BOX_PACK, NULL, 0, "label", 1 << 20, &err));
    assert_code(LEAT_ENOENT, leat__view_data_open(&d, "none.leat", NULL, 0, NULL, 1 << 20, &err));
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_columns_have_unique_names),
                                       cmocka_unit_test(columns_are_dropped_to_stay_within_the_budget),
                                       cmocka_unit_test(texts_are_ranked),
                                       cmocka_unit_test(packs_without_images_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
