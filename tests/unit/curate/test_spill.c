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
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 512, NULL, NULL, NULL), 0);
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
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 512, lengths, NULL, NULL), 0);
    assert_int_equal(leat__spill_put(&s, 0, "z", 1, NULL), 0);
    assert_int_equal(leat__spill_flush(&s, false, NULL), 0);
    expect(&s, 0, "aaz");
    expect(&s, 1, "bbbbb");
    expect(&s, 2, "");
    leat__spill_reset(&s);
    lengths[2] = 100;
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 512, lengths, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "expected 100"));
    assert_int_equal(leat__spill_open(&s, sandbox, "x", 3, 512, NULL, NULL, NULL), 0);
    expect(&s, 0, "");
    assert_int_equal(leat__spill_remove(&s, NULL), 0);
    assert_int_not_equal(access(in_box("x-0"), F_OK), 0);
    leat__spill_reset(&s);
}

/* The checksum is that of the bytes, however they were put, and after files were opened again. */
static void checksums_find_damage(void **state)
{
    leat__spill s;
    uint8_t data[5000];
    leat_error err = {0};
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 256);
    const uint64_t sum = leat__spill_sum_of(data, sizeof data, 0);
    for (size_t step = 1; step < sizeof data; step = step * 3 + 1) {
        uint64_t length = 0, before = 0;
        bool again = false;
        for (size_t at = 0; at < sizeof data;) {
            assert_int_equal(leat__spill_open(&s, sandbox, "sum", 1, 700, again ? &length : NULL,
                                              again ? &before : NULL, NULL),
                             0);
            for (int k = 0; k < 9 && at < sizeof data; k++) {
                size_t n = LEAT_MIN(step, sizeof data - at);
                assert_int_equal(leat__spill_put(&s, 0, data + at, n, NULL), 0);
                at += n;
                if (k % 2) assert_int_equal(leat__spill_flush(&s, false, NULL), 0);
            }
            assert_int_equal(leat__spill_flush(&s, true, NULL), 0);
            length = s.length[0];
            before = leat__spill_sum(&s, 0);
            again = true;
            leat__spill_reset(&s);
        }
        assert_int_equal(length, sizeof data);
        assert_int_equal(before, sum);
        assert_int_equal(leat__spill_verify(in_box("sum-0"), length, sum, NULL), 0);
    }
    FILE *f = fopen(in_box("sum-0"), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, 4321, SEEK_SET), 0);
    fputc(data[4321] ^ 4, f);
    fclose(f);
    assert_int_equal(leat__spill_verify(in_box("sum-0"), sizeof data, sum, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "sum-0: is damaged"));
    assert_int_equal(truncate(in_box("sum-0"), 100), 0);
    assert_int_equal(leat__spill_verify(in_box("sum-0"), sizeof data, sum, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "sum-0: is 100 bytes, expected "));
    assert_non_null(strstr(err.message, "(use force to start over)"));
    assert_int_equal(unlink(in_box("sum-0")), 0);
    assert_int_equal(leat__spill_verify(in_box("sum-0"), sizeof data, sum, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "sum-0: is missing (use force to start over)"));
}

static void files_of_a_killed_run_are_removed(void **state)
{
    leat__spill s;
    assert_int_equal(leat__spill_open(&s, sandbox, "left", 4, 512, NULL, NULL, NULL), 0);
    leat__spill_reset(&s);
    assert_int_equal(unlink(in_box("left-0")), 0); /* some may be gone already */
    assert_int_equal(leat__spill_open(&s, sandbox, "other", 1, 512, NULL, NULL, NULL), 0);
    leat__spill_clear(sandbox, "left", 3);
    assert_int_not_equal(access(in_box("left-2"), F_OK), 0);
    assert_int_equal(access(in_box("left-3"), F_OK), 0);
    assert_int_equal(access(in_box("other-0"), F_OK), 0);
    leat__spill_reset(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(records_reach_their_files),
                                       cmocka_unit_test(checksums_find_damage),
                                       cmocka_unit_test(files_of_a_killed_run_are_removed)};
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
