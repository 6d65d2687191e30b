/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditions: their meaning, and the messages for wrong ones.
 */
#include "leat_test.h"

#include <math.h>
#include <string.h>

#include "ingest/where.h"

static const leat_field fields[] = {
    {.name = "image", .type = LEAT_FIELD_IMAGE}, {.name = "label", .type = LEAT_FIELD_INT},
    {.name = "score", .type = LEAT_FIELD_FLOAT}, {.name = "odd name", .type = LEAT_FIELD_INT},
    {.name = "nothing", .type = LEAT_FIELD_INT}, {.name = "not.in", .type = LEAT_FIELD_INT},
};
static const char *const classes[] = {"cat", "dog", "and"};
static const char *const kinds[] = {"bird", "dog"};

static int class_names(const void *cookie, uint32_t field, const char *const **found, uint64_t *count,
                       leat_error *err)
{
    *found = field == 1 ? classes : kinds;
    *count = field == 1 ? 3 : field == 5 ? 2 : 0;
    return 0;
}

static const leat__where_names names = {.fields = fields, .field_count = 6, .classes = class_names};

static bool holds(const char *text)
{
    leat__item items[6] = {{0}, {.i = 1}, {.f = 0.5}, {.i = INT64_MAX}, {.i = -7}, {.i = 8}};
    leat__where *w;
    leat_error err;
    int rc = leat__where_open(&w, text, &names, &err);
    if (rc != 0) fail_msg("%s", err.message);
    bool match = leat__where_match(w, "dir/b.jpg", 9, items);
    leat__where_close(&w);
    return match;
}

static void test_meaning(void **state)
{
    static const char *const yes[] = {"label == 1",
                                      "label = 1",
                                      "not.in == 8 and not not.in<8",
                                      "not.in not in [7]",
                                      "label in nothing..not.in",
                                      "label != 2",
                                      "label<2",
                                      "label <= 1",
                                      "label > 0",
                                      "label>=1",
                                      "1 == label",
                                      "score == 0.5",
                                      "score < 1",
                                      "score < label",
                                      "0 <= label < 10",
                                      "0 < score <= 0.5 < label",
                                      "label in [3, 2, 1]",
                                      "label in (1)",
                                      "label not in [2]",
                                      "label in 1..1",
                                      "score in 0.5..0.5",
                                      "score in 0..1",
                                      "label in -3..+3",
                                      "not label == 2",
                                      "!label == 2",
                                      "not not label == 1",
                                      "label == 2 or label == 1",
                                      "label == 1 || score > 9 && score > 9",
                                      "(label == 2 or label == 1) and score < 1",
                                      "key == 'dir/b.jpg'",
                                      "key == \"dir/b.jpg\"",
                                      "key < 'dir/c'",
                                      "key > 'dir/b'",
                                      "key in ['x', 'dir/b.jpg']",
                                      "key in 'dir/'..'dir0'",
                                      "label == 'dog'",
                                      "'dog' == label",
                                      "label in ['cat', 'dog']",
                                      "label in ['and', 1]",
                                      "label == 'dog' and not.in > 'dog'",
                                      "not.in not in ['bird', 'dog']",
                                      "`odd name` == 9223372036854775807",
                                      "`odd name` != 9223372036854775806",
                                      "nothing == -7",
                                      "nothing < -6.5",
                                      "score == 5e-1",
                                      "score == .5",
                                      "\tlabel\n==\r1 "};
    static const char *const no[] = {"label == 2",
                                     "score > 0.5",
                                     "label in [2, 3]",
                                     "label in 2..9",
                                     "key == 'dir/b'",
                                     "label == 1 and score > 1",
                                     "not (label == 1 or score > 1)",
                                     "10 > label > 5",
                                     "label == 'cat'",
                                     "label not in 0..5"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!holds(yes[i])) fail_msg("%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (holds(no[i])) fail_msg("%s", no[i]);
}

/* Beyond 2^53 a double has no room for every whole number. */
static void test_large_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t label;
        double score;
        bool holds;
    } cases[] = {
        {"label == 9007199254740992.0", 9007199254740993, 0, false},
        {"label == 9007199254740993.0", 9007199254740993, 0, true},
        {"label == 9007199254740993.0", 9007199254740992, 0, false},
        {"label == 9007199254740993.", 9007199254740993, 0, true},
        {"label in 9007199254740993..9007199254740993", 9007199254740993, 0, true},
        {"label in 9007199254740993..9007199254740993", 9007199254740992, 0, false},
        {"label == score", 9007199254740993, 9007199254740992.0, false},
        {"score < label", 9007199254740993, 9007199254740992.0, true},
        {"label > score", 9007199254740993, 9007199254740992.0, true},
        {"label == score", 9007199254740992, 9007199254740992.0, true},
        {"label < 1e19", INT64_MAX, 0, true},
        {"label > -1e19", INT64_MIN, 0, true},
        {"label == 9223372036854775808e0", INT64_MAX, 0, false},
        {"label == score", INT64_MIN, -0x1p63, true},
        {"label < score", INT64_MAX, 0x1p63, true},
        {"label > score", INT64_MIN, -INFINITY, true},
        {"label < 1.5", 1, 0, true},
        {"label > -1.5", -1, 0, true},
        {"label <= -1.5", -1, 0, false},
        {"label == -0.0", 0, 0, true},
        {"label != score", 1, NAN, true},
        {"label <= score", 1, NAN, false},
        {"score >= label", 1, NAN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__item items[6] = {{0}, {.i = cases[i].label}, {.f = cases[i].score}, {0}, {0}};
        leat__where *w;
        leat_error err;
        assert_int_equal(leat__where_open(&w, cases[i].text, &names, &err), 0);
        if (leat__where_match(w, "k", 1, items) != cases[i].holds) fail_msg("%zu: %s", i, cases[i].text);
        leat__where_close(&w);
    }
}

static void test_nan(void **state)
{
    static const char *const texts[] = {"score == 0", "score < 1", "score >= 0", "score in 0..1",
                                        "score != 0"};
    for (int i = 0; i < 5; i++) {
        leat__item items[6] = {{0}, {0}, {.f = NAN}, {0}, {0}};
        leat__where *w;
        leat_error err;
        assert_int_equal(leat__where_open(&w, texts[i], &names, &err), 0);
        assert_int_equal(leat__where_match(w, "k", 1, items), i == 4);
        leat__where_close(&w);
    }
}

static void test_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *message;
        int code; /* 0: LEAT_EINVAL */
    } cases[] = {
        {"", "column 1: something is missing"},
        {"label", "column 6: a comparison is expected"},
        {"label <", "column 8: something is missing"},
        {"lable < 3", "column 1: no field 'lable' (there are key, label, score", LEAT_ENOFIELD},
        {"image == 3", "column 1: a field that is not a number", LEAT_ENOFIELD},
        {"label == 1 label", "column 12: and, or, or the end"},
        {"label == 'zebra'", "column 10: no class of the name 'zebra' (there are cat, dog", LEAT_ENOCLASS},
        {"label == 'catt'", "column 10: no class of the name 'catt'; did you mean 'cat'?", LEAT_ENOCLASS},
        {"score == 'cat'", "column 10: text compared with a field", LEAT_ENOCLASS},
        {"key == 3", "column 8: a number compared with text"},
        {"(label == 1", "column 12: no closing parenthesis"},
        {"label == 'cat", "column 10: no closing quote"},
        {"label in [1, 2", "column 15: the list is not closed"},
        {"label in 3", "column 11: a list [1, 2] or a range"},
        {"label == 99999999999999999999", "column 10: not a number"},
        {"label == 1x", "column 10: not a number"},
        {"label == 1.2.3", "column 10: not a number"},
        {"label & 1", "column 7: a comparison is expected"},
        {"label == 1 and", "column 15: something is missing"},
        {"label == $HOME", "column 10: a name, number or text"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        leat__where *w;
        leat_error err;
        assert_int_equal(leat__where_open(&w, cases[i].text, &names, &err),
                         cases[i].code ? cases[i].code : LEAT_EINVAL);
        assert_null(w);
        if (strstr(err.message, cases[i].message) == NULL) fail_msg("%s: %s", cases[i].text, err.message);
    }
}

/* Hostile text is refused, and long chains do not need a deep stack. */
static void test_size(void **state)
{
    static char text[200000];
    leat__where *w;
    leat_error err;
    memset(text, '(', 100000);
    assert_int_equal(leat__where_open(&w, text, &names, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "nested too deeply"));
    text[0] = '\0';
    for (int i = 0; i < 9000; i++) memcpy(text + 15 * i, "label == 1 and ", 16);
    memcpy(text + 15 * 9000, " label == 1", 12);
    assert_true(holds(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meaning), cmocka_unit_test(test_large_numbers),
        cmocka_unit_test(test_nan),     cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
