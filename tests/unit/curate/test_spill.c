/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "curate/spill.h"

static void expect(const leat__spill *s, uint32_t file, const char *text)
{
    leat__file *f = NULL;
    char data[64] = {0};
    assert_int_equal(leat__spill_file(s, file, &f, NULL), 0);
    assert_int_equal(leat__file_size_at_open(f), strlen(text));
    assert_int_equal(leat__file_pread(f, data, strlen(text), 0, NULL), 0);
    assert_string_equal(data, text);
    leat__file_close(&f);
}

static void records_reach_their_files(void **state)
{
    leat__spill s;
    leat_error err = {0};
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 8, NULL, NULL), 0);
    for (int i = 0; i < 5; i++)
        for (uint32_t k = 0; k < 3; k++) assert_int_equal(leat__spill_put(&s, k, &"abc"[k], 1, NULL), 0);
    assert_int_equal(leat__spill_put(&s, 1, "a long record", 13, NULL), 0); /* more than a buffer */
    assert_int_equal(leat__spill_flush(&s, true, NULL), 0);
    assert_int_equal(leat__spill_bytes(&s), 15 + 13);
    expect(&s, 0, "aaaaa");
    expect(&s, 1, "bbbbba long record");
    leat__spill_reset(&s);
    /* back to earlier lengths */
    uint64_t lengths[] = {2, 5, 0};
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 8, lengths, NULL), 0);
    assert_int_equal(leat__spill_put(&s, 0, "z", 1, NULL), 0);
    assert_int_equal(leat__spill_flush(&s, false, NULL), 0);
    expect(&s, 0, "aaz");
    expect(&s, 1, "bbbbb");
    expect(&s, 2, "");
    leat__spill_reset(&s);
    lengths[2] = 100;
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 8, lengths, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "expected 100"));
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 8, NULL, NULL), 0);
    expect(&s, 0, "");
    assert_int_equal(leat__spill_remove(&s, NULL), 0);
    assert_int_not_equal(access(in_box("x-0"), F_OK), 0);
    leat__spill_reset(&s);
}

static void files_of_a_killed_run_are_removed(void **state)
{
    leat__spill s;
    assert_int_equal(leat__spill_open(&s, sandbox, "left", 4, 8, NULL, NULL), 0);
    leat__spill_reset(&s);
    assert_int_equal(unlink(in_box("left-0")), 0); /* some may be gone already */
    assert_int_equal(leat__spill_open(&s, sandbox, "other", 1, 8, NULL, NULL), 0);
    leat__spill_clear(sandbox, "left", 3);
    assert_int_not_equal(access(in_box("left-2"), F_OK), 0);
    assert_int_equal(access(in_box("left-3"), F_OK), 0);
    assert_int_equal(access(in_box("other-0"), F_OK), 0);
    leat__spill_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_reach_their_files),
                                       cmocka_unit_test(files_of_a_killed_run_are_removed)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
