/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "ingest/sandbox.h"

#include "curate/image_csv.h"

static void fields_are_quoted_where_needed(void **state)
{
    leat__csv_out c;
    char *text = NULL;
    size_t len;
    put_text("out.csv", "plain,a longer text that was there before");
    assert_ok(leat__csv_out_open(&c, in_box("out.csv"), "plain,", NULL));
    leat__csv_out_text(&c, "plain");
    leat__csv_out_text(&c, "a,b");
    leat__csv_out_text(&c, "say \"x\"");
    leat__csv_out_number(&c, 0.25);
    assert_ok(leat__csv_out_line(&c, NULL));
    leat__csv_out_text(&c, "");
    leat__csv_out_text(&c, "two\nlines");
    leat__csv_out_count(&c, 7);
    assert_ok(leat__csv_out_line(&c, NULL));
    assert_ok(leat__csv_out_finish(&c, NULL));
    leat__csv_out_close(&c);
    assert_ok(leat__file_load(in_box("out.csv"), 1u << 20, 1, &text, &len, NULL));
    assert_string_equal(text, "plain,\"a,b\",\"say \"\"x\"\"\",0.25\n,\"two\nlines\",7\n");
    leat__free(text);
    assert_no_leaks();
}

static void without_a_path_nothing_happens(void **state)
{
    leat__csv_out c;
    assert_ok(leat__csv_out_open(&c, NULL, "x", NULL));
    leat__csv_out_text(&c, "x");
    leat__csv_out_number(&c, 1);
    leat__csv_out_count(&c, 1);
    assert_ok(leat__csv_out_line(&c, NULL));
    assert_ok(leat__csv_out_finish(&c, NULL));
    leat__csv_out_close(&c);
    assert_code(LEAT_ENOENT, leat__csv_out_open(&c, in_box("none/out.csv"), "x", NULL));
    assert_no_leaks();
}

static void an_unfinished_file_never_has_the_name(void **state)
{
    leat__csv_out c;
    char *text = NULL;
    size_t len;
    bool exists = true;
    put_text("kept.csv", "a,b\n1,2\n");
    assert_ok(leat__csv_out_open(&c, in_box("kept.csv"), "a,", NULL));
    leat__csv_out_text(&c, "a");
    assert_ok(leat__csv_out_line(&c, NULL));
    leat__csv_out_close(&c);
    assert_ok(leat__file_load(in_box("kept.csv"), 1u << 20, 1, &text, &len, NULL));
    assert_string_equal(text, "a,b\n1,2\n");
    leat__free(text);
    assert_ok(leat__path_exists(in_box("kept.csv.partial"), &exists, NULL));
    assert_false(exists);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_quoted_where_needed),
        cmocka_unit_test(without_a_path_nothing_happens),
        cmocka_unit_test(an_unfinished_file_never_has_the_name),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
