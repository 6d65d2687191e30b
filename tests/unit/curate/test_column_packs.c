/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/select_box.h"

#include <sys/stat.h>

#include "curate/column_packs.h"

enum { ROWS = 3000 };

static void fill_more(uint32_t row, leat_pack_value *v, void *cookie)
{
    v[0].i = -(int64_t)row;
    v[1].f = row;
    v[2].f = row == 5 ? (double)NAN : 0.5 * row;
}

static const char *put_more(const char *name, uint32_t rows)
{
    static const leat_field fields[] = {{.name = "minus", .type = LEAT_FIELD_INT},
                                        {.name = "score", .type = LEAT_FIELD_FLOAT}, /* also in the pack */
                                        {.name = "half", .type = LEAT_FIELD_FLOAT}};
    put_pack(in_box(name), fields, 3, rows, fill_more, NULL);
    return in_box(name);
}

static leat__column_packs open_ok(void)
{
    leat__column_packs s;
    leat_error err = {0};
    const char *columns[] = {put_more("more.leat", ROWS)};
    if (leat__column_packs_open(&s, put_rows("p.leat", ROWS), columns, 1, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static void columns_are_found_by_name(void **state)
{
    leat__column_packs s = open_ok();
    static double x[ROWS];
    leat_error err = {0};
    assert_ok(leat__column_packs_numbers(&s, "minus", x, NULL));
    assert_true(x[2999] == -2999);
    assert_ok(leat__column_packs_numbers(&s, "p.score", x, NULL));
    assert_true(x[7] == score_of(7));
    assert_ok(leat__column_packs_numbers(&s, "more.score", x, NULL));
    assert_true(x[7] == 7);
    assert_ok(leat__column_packs_numbers(&s, "more.half", x, NULL));
    assert_ok(leat__column_packs_numbers(&s, "half", x, NULL));
    assert_true(x[7] == 3.5 && isnan(x[5]));
    assert_ok(leat__column_packs_numbers(&s, "`p.score`", x, NULL));
    assert_true(x[7] == score_of(7));
    assert_code(LEAT_ENOFIELD, leat__column_packs_numbers(&s, "p.scroe", x, &err));
    assert_contains(err.message, "no column 'p.scroe'; did you mean 'p.score'?");
    assert_code(LEAT_ENOFIELD, leat__column_packs_numbers(&s, "something", x, &err));
    assert_contains(err.message,
                    "no int or float column 'something' (there are label, p.score, minus, more.score, half)");
    leat__column_packs_close(&s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void check_clash(const char *main, const char *beside, const char *other, const char *name,
                        const char *message)
{
    static double x[4];
    static bool meets[4];
    leat__column_packs s;
    leat_error err = {0};
    const char *columns[2] = {put_more(beside, 4), other ? put_more(other, 4) : NULL};
    assert_ok(leat__column_packs_open(&s, put_rows(main, 4), columns, other ? 2 : 1, NULL));
    assert_code(LEAT_EINVAL, leat__column_packs_numbers(&s, name, x, &err));
    assert_contains(err.message, message);
    char where[64];
    snprintf(where, sizeof where, "`%s` > 3", name);
    assert_code(LEAT_EINVAL, leat__column_packs_where(&s, where, meets, &err));
    assert_contains(err.message, message);
    leat__column_packs_close(&s);
}

static void names_of_several_packs_are_refused(void **state)
{
    assert_int_equal(mkdir(in_box("a"), 0777) | mkdir(in_box("b"), 0777), 0);
    check_clash("p.leat", "q.leat", NULL, "score", "q.leat; write 'p.score' or 'q.score'");
    check_clash("p.leat", "q.leat", "r.leat", "score", "; write 'p.score', 'q.score' or 'r.score'");
    check_clash("p.leat", "q.leat", "r.leat", "minus", "r.leat; write 'q.minus' or 'r.minus'");
    check_clash("p.leat", "q.v2.leat", "2 r.leat", "minus", "; write 'q.v2.minus' or `2 r.minus`");
    check_clash("p.leat", "a/q.leat", "b/q.leat", "minus", "b/q.leat: two files have the same name");
    check_clash("p.leat", "a/q.leat", "b/q.leat", "q.minus", "column 'minus' is in ");
    check_clash("p.leat", "a/q.leat", "b/q.leat", "q.half", "rename one of them");
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void fill_one(uint32_t row, leat_pack_value *v, void *cookie)
{
    v[0].i = 1;
}

static void own_names_that_are_full_names_are_refused(void **state)
{
    static const leat_field fields[] = {{.name = "more.half", .type = LEAT_FIELD_INT}};
    static double x[ROWS];
    leat_error err = {0};
    leat__column_packs s;
    put_pack(in_box("dot.leat"), fields, 1, ROWS, fill_one, NULL);
    const char *columns[] = {put_more("more.leat", ROWS)};
    assert_ok(leat__column_packs_open(&s, in_box("dot.leat"), columns, 1, NULL));
    assert_code(LEAT_EINVAL, leat__column_packs_numbers(&s, "more.half", x, &err));
    assert_contains(err.message, "'more.half' is a column of ");
    assert_contains(err.message, "dot.leat, and the full name of 'half' of ");
    assert_contains(err.message, "more.leat; write 'dot.more.half' for the first one");
    assert_ok(leat__column_packs_numbers(&s, "dot.more.half", x, NULL));
    assert_true(x[9] == 1);
    assert_ok(leat__column_packs_numbers(&s, "half", x, NULL));
    assert_true(x[9] == 4.5);
    leat__column_packs_close(&s);
}

static void codes_are_numbers_or_folders(void **state)
{
    leat__column_packs s = open_ok();
    static int64_t x[ROWS];
    int64_t code;
    leat_error err = {0};
    assert_ok(leat__column_packs_codes(&s, "label", x, NULL));
    assert_int_equal(x[10], label_of(10));
    assert_ok(leat__column_packs_code_of(&s, "label", "owl", &code, NULL));
    assert_int_equal(code, 2);
    const char *const *names;
    uint64_t count;
    assert_ok(leat__column_packs_classes(&s, "label", &names, &count, NULL));
    assert_true(count == 4 && strcmp(names[1], "dog") == 0);
    assert_ok(leat__column_packs_classes(&s, "minus", &names, &count, NULL));
    assert_int_equal(count, 0);
    assert_ok(leat__column_packs_code_of(&s, "label", "-7", &code, NULL));
    assert_int_equal(code, -7);
    assert_code(LEAT_ENOCLASS, leat__column_packs_code_of(&s, "label", "bee", &code, &err));
    assert_contains(err.message, "'bee' is neither a class name nor a number");
    assert_ok(leat__column_packs_codes(&s, "folder", x, NULL));
    assert_true(x[0] == x[3] && x[0] != x[1] && x[1] == x[2998]);
    assert_ok(leat__column_packs_code_of(&s, "folder", "f0", &code, NULL));
    assert_true(code == x[0]);
    assert_code(LEAT_EINVAL, leat__column_packs_codes(&s, "half", x, &err));
    assert_contains(err.message, "only int columns have groups");
    leat__column_packs_close(&s);
}

static void class_names_of_every_pack_are_known(void **state)
{
    static bool meets[8];
    leat__column_packs s;
    leat_error err = {0};
    const char *columns[] = {put_rows("q.leat", 8)};
    assert_ok(leat__column_packs_open(&s, put_rows("p.leat", 8), columns, 1, NULL));
    memset(meets, true, sizeof meets);
    assert_ok(leat__column_packs_where(&s, "q.label in ['dog', 'owl'] and p.label != 'owl'", meets, NULL));
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(meets[i], label_of(i) == 1);
    assert_code(LEAT_ENOCLASS, leat__column_packs_where(&s, "q.label == 'bee'", meets, &err));
    assert_contains(err.message, "no class of the name 'bee' (there are ");
    assert_code(LEAT_ENOCLASS, leat__column_packs_where(&s, "q.score == 'dog'", meets, &err));
    assert_contains(err.message, "text compared with a field without class names");
    leat__column_packs_close(&s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void conditions_use_all_columns(void **state)
{
    leat__column_packs s = open_ok();
    static bool meets[ROWS];
    leat_error err = {0};
    memset(meets, true, sizeof meets);
    assert_ok(leat__column_packs_where(
        &s, "minus > -2000 and half >= 2 and label != 'cat' and key != 'f1/00004.jpg'", meets, NULL));
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(meets[i], i < 2000 && i >= 4 && i != 5 && label_of(i) != 0 && i != 4);
    memset(meets, true, sizeof meets);
    assert_ok(
        leat__column_packs_where(&s, "more.score < 10 and p.score>=0 and more.half in 1..4", meets, NULL));
    for (uint32_t i = 0; i < ROWS; i++) assert_int_equal(meets[i], i >= 2 && i <= 8 && i != 5);
    assert_code(LEAT_ENOFIELD, leat__column_packs_where(&s, "nothing > 3", meets, &err));
    assert_contains(err.message,
                    "no field 'nothing' (there are key, label, p.score, minus, more.score, half)");
    assert_code(LEAT_EINVAL, leat__column_packs_where(&s, "half >", meets, &err));
    leat__column_packs_close(&s);
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

static void columns_of_other_rows_are_refused(void **state)
{
    leat__column_packs s;
    leat_error err = {0};
    const char *columns[] = {put_more("fewer.leat", 10)};
    assert_code(LEAT_EINVAL, leat__column_packs_open(&s, put_rows("p.leat", 12), columns, 1, &err));
    assert_contains(err.message, "fewer.leat has 10 rows");
    assert_code(LEAT_ENOENT, leat__column_packs_open(&s, in_box("nothing"), columns, 1, &err));
    assert_int_equal(leat__mem_blocks(), test_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(names_of_several_packs_are_refused),
        cmocka_unit_test(own_names_that_are_full_names_are_refused),
        cmocka_unit_test(codes_are_numbers_or_folders),
        cmocka_unit_test(class_names_of_every_pack_are_known),
        cmocka_unit_test(conditions_use_all_columns),
        cmocka_unit_test(columns_of_other_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
