/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <jansson.h>

#include "ingest/skipped_list.h"

static char *content(const char *path, size_t *len)
{
    char *data = NULL;
    assert_int_equal(leat__file_load(path, 1 << 20, 1, &data, len, NULL), 0);
    return data;
}

static void lines_are_json(void **state)
{
    leat__skipped_list r;
    leat_error why = {.code = LEAT_EDATA, .offset = 17, .message = "broken \"here\""};
    size_t len;
    const char *path = in_box("left.jsonl");
    assert_int_equal(leat__skipped_list_open(&r, path, 0, NULL), 0);
    assert_int_equal(leat__skipped_list_add(&r, "a\nb", 3, &why, NULL), 0);
    why.offset = -1;
    assert_int_equal(leat__skipped_list_add(&r, "c", 1, &why, NULL), 0);
    assert_int_equal(leat__skipped_list_add(&r, "d", 1, NULL, NULL), 0);
    leat__skipped_list_close(&r, false);
    char *text = content(in_box("left.jsonl.partial"), &len), *line = text;
    static const char *const keys[] = {"a\nb", "c", "d"};
    for (int i = 0; i < 3; i++) {
        char *stop = strchr(line, '\n');
        assert_non_null(stop);
        json_t *o = json_loadb(line, (size_t)(stop - line), 0, NULL);
        assert_non_null(o);
        assert_string_equal(json_string_value(json_object_get(o, "key")), keys[i]);
        assert_int_equal(json_integer_value(json_object_get(o, "offset")), i == 0 ? 17 : 0);
        if (i == 0) assert_string_equal(json_string_value(json_object_get(o, "reason")), why.message);
        json_decref(o);
        line = stop + 1;
    }
    leat__free(text);

    /* a resumed run keeps the valid lines and appends after them */
    assert_int_equal(leat__skipped_list_open(&r, path, 2, NULL), 0);
    assert_int_equal(leat__skipped_list_add(&r, "new", 3, &why, NULL), 0);
    assert_int_equal(leat__skipped_list_publish(&r, NULL), 0);
    leat__skipped_list_close(&r, false);
    text = content(path, &len);
    assert_non_null(strstr(text, "\"c\""));
    assert_null(strstr(text, "\"d\""));
    assert_non_null(strstr(text, "\"new\""));
    leat__free(text);
}

static void without_a_path_there_is_no_report(void **state)
{
    leat__skipped_list r;
    leat_error why = {.code = LEAT_EDATA};
    assert_int_equal(leat__skipped_list_open(&r, NULL, 0, NULL), 0);
    assert_int_equal(leat__skipped_list_add(&r, "a", 1, &why, NULL), 0);
    leat__skipped_list_close(&r, false);
    assert_int_equal(leat__skipped_list_open(&r, in_box("no/such/folder"), 0, NULL), LEAT_ENOENT);
}

static void only_an_earlier_list_is_replaced(void **state)
{
    const char *path = in_box("replaced.jsonl");
    leat__skipped_list r;
    assert_int_equal(leat__skipped_list_check(NULL, false, false, NULL), 0);
    assert_int_equal(leat__skipped_list_check(path, false, false, NULL), 0);
    put_text("replaced.jsonl", "{\"key\":\"x\"}\n");
    assert_int_equal(leat__skipped_list_check(path, false, false, NULL), LEAT_EEXIST);
    assert_int_equal(leat__skipped_list_check(path, false, true, NULL), LEAT_EEXIST);
    assert_int_equal(leat__skipped_list_check(path, true, false, NULL), 0);
    /* a run that was allowed to replace it is resumed */
    assert_int_equal(leat__skipped_list_open(&r, path, 0, NULL), 0);
    leat__skipped_list_close(&r, false);
    assert_int_equal(leat__skipped_list_check(path, false, true, NULL), 0);
    put_text("replaced.jsonl", "an image");
    assert_int_equal(leat__skipped_list_check(path, true, true, NULL), LEAT_EINVAL);
    assert_int_equal(leat__skipped_list_open(&r, path, 0, NULL), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_json),
        cmocka_unit_test(without_a_path_there_is_no_report),
        cmocka_unit_test(only_an_earlier_list_is_replaced),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
