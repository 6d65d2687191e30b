/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal: records are read as written; any truncation or flipped byte ends it cleanly.
 */
#include "packtest.h"

#include <fcntl.h>

#include "pack/journal.h"

static void write_journal(const char *path)
{
    leat__journal j;
    leat_error err;
    assert_int_equal(leat__journal_create(&j, path, 5, &err), 0);
    leat__journal_page page = {.shard = 1,
                               .samples = 2,
                               .offset = 4096,
                               .bytes = 8192,
                               .check = 9,
                               .max_sample = 10,
                               .payload = 11,
                               .marks = {1, 2, 3, 4},
                               .rows_bytes = 6,
                               .keys_bytes = 4,
                               .rows = (const uint8_t *)"rowsrr",
                               .keys = (const uint8_t *)"keys"};
    assert_int_equal(leat__journal_put_blob(&j, "name", "data", 4, &err), 0);
    assert_int_equal(leat__journal_put_page(&j, &page, &err), 0);
    assert_int_equal(leat__journal_put_mark(&j, LEAT__RECORD_SYNC, &err), 0);
    leat__journal_shard shard = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(leat__journal_put_shard(&j, &shard, &err), 0);
    assert_int_equal(leat__journal_put_mark(&j, LEAT__RECORD_FINISH, &err), 0);
    assert_int_equal(leat__journal_sync(&j, &err), 0);
    leat__journal_reset(&j);
}

/* Returns the number of complete records. */
static int count(const char *path)
{
    leat__journal j;
    leat__journal_record r;
    leat_error err;
    int n = 0;
    if (leat__journal_resume(&j, path, 5, &err) == 0)
        for (uint64_t at = leat__journal_first(); leat__journal_read(&j, at, &r, &err) == 0; n++) at = r.next;
    leat__journal_reset(&j);
    return n;
}

static void test_records(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "j");
    leat__journal j;
    leat__journal_record r;
    leat_error err;
    write_journal(path);
    assert_int_equal(leat__journal_resume(&j, path, 6, &err), LEAT_ESTATE);
    leat__journal_reset(&j);
    assert_int_equal(leat__journal_resume(&j, path, 5, &err), 0);
    assert_int_equal(leat__journal_read(&j, leat__journal_first(), &r, &err), 0);
    assert_int_equal(r.kind, LEAT__RECORD_BLOB);
    assert_string_equal(r.blob_name, "name");
    assert_int_equal(r.blob_bytes, 4);
    assert_int_equal(leat__journal_read(&j, r.next, &r, &err), 0);
    assert_int_equal(r.kind, LEAT__RECORD_PAGE);
    assert_int_equal(r.page.shard, 1);
    assert_int_equal(r.page.samples, 2);
    assert_int_equal(r.page.payload, 11);
    assert_int_equal(r.page.marks[3], 4);
    assert_memory_equal(r.page.rows, "rowsrrkeys", 10);
    assert_int_equal(leat__journal_read(&j, r.next, &r, &err), 0);
    assert_int_equal(r.kind, LEAT__RECORD_SYNC);
    uint64_t shard_at = r.next;
    assert_int_equal(leat__journal_read(&j, r.next, &r, &err), 0);
    assert_int_equal(r.kind, LEAT__RECORD_SHARD);
    assert_int_equal(r.shard.duplicate_keys, 8);
    assert_int_equal(leat__journal_read(&j, r.next, &r, &err), 0);
    assert_int_equal(r.kind, LEAT__RECORD_FINISH);
    assert_int_equal(leat__journal_read(&j, r.next, &r, &err), LEAT_ENOENT);
    assert_int_equal(leat__journal_cut(&j, shard_at, &err), 0);
    leat__journal_reset(&j);
    assert_int_equal(count(path), 3);
    pt_rmdir(dir);
}

static void test_damage_ends_it(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "j");
    size_t size;
    write_journal(path);
    uint8_t *good = pt_load(path, &size);
    assert_int_equal(count(path), 5);
    for (size_t i = 0; i < size; i++) {
        pt_store(path, good, i);
        assert_true(count(path) < 5);
        good[i] ^= 0x40;
        pt_store(path, good, size);
        assert_true(count(path) < 5);
        good[i] ^= 0x40;
    }
    free(good);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_damage_ends_it)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
