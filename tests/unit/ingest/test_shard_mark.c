/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/shard_mark.h"

static bool ours(bool tar, const void *data, size_t len)
{
    bool found = false;
    char path[4096];
    snprintf(path, sizeof path, "%s", in_box("shard"));
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, len, f), len);
    fclose(f);
    assert_int_equal(leat__shard_ours(path, tar, &found, NULL), 0);
    assert_int_equal(leat__shard_replaceable(path, tar, NULL), found ? 0 : LEAT_EINVAL);
    return found;
}

static void tar_files(void **state)
{
    char head[512] = "a.jpg";
    (void)state;
    memcpy(head + 257, "ustar", 6);
    assert_false(ours(true, head, sizeof head));
    memcpy(head + 265, "leather", 8);
    assert_false(ours(true, head, sizeof head));
    memcpy(head + 265, "leat", 5);
    assert_true(ours(true, head, sizeof head));
    assert_false(ours(true, head, 200));
    assert_false(ours(true, head, 0));
    head[257] = 'x';
    assert_false(ours(true, head, sizeof head));
}

static void parquet_files(void **state)
{
    char data[] = "PAR1\x18\x04leat\x18\x06"
                  "export\x0e\0\0\0PAR1";
    const size_t len = sizeof data - 1;
    (void)state;
    assert_true(ours(false, data, len));
    data[len - 8] = 13; /* the pair is not in the metadata */
    assert_false(ours(false, data, len));
    data[len - 8] = 100; /* metadata longer than the file */
    assert_false(ours(false, data, len));
    assert_false(ours(false, data, 4));
    assert_false(ours(false, data, 0));
}

static void other_paths(void **state)
{
    bool found = true;
    (void)state;
    assert_int_equal(leat__shard_replaceable(in_box("absent"), true, NULL), 0);
    assert_int_equal(leat__shard_ours(in_box("."), true, &found, NULL), LEAT_EINVAL);
    assert_false(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tar_files),
        cmocka_unit_test(parquet_files),
        cmocka_unit_test(other_paths),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
