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

/* Two members, of 0 and 5 bytes, and the end; an added member would be lost. */
static void tar_files(void **state)
{
    char tar[5 * 512 + 1024] = "a.jpg";
    char *second = tar + 512;
    (void)state;
    memcpy(tar + 124, "00000000000", 12);
    memcpy(tar + 257, "ustar", 6);
    memcpy(tar + 265, "leat", 5);
    memcpy(second, tar, 512);
    memcpy(second + 124, "00000000005", 12);
    assert_true(ours(true, tar, 3 * 512 + 1024));
    assert_false(ours(true, tar, 3 * 512 + 512)); /* truncated */
    assert_false(ours(true, tar, 5 * 512 + 1024));
    memcpy(second + 1024, tar, 512);
    assert_true(ours(true, tar, 4 * 512 + 1024));
    memcpy(second + 1024 + 265, "root", 5); /* added */
    assert_false(ours(true, tar, 4 * 512 + 1024));
    memcpy(tar + 265, "leather", 8);
    assert_false(ours(true, tar, 3 * 512 + 1024));
    memcpy(tar + 265, "leat", 5);
    memcpy(tar + 124, "77777777777", 12); /* beyond the file */
    assert_false(ours(true, tar, 3 * 512 + 1024));
    memcpy(tar + 124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    assert_false(ours(true, tar, 3 * 512 + 1024));
    tar[124] = 'x';
    assert_false(ours(true, tar, 3 * 512 + 1024));
    assert_false(ours(true, tar, 200));
    assert_false(ours(true, tar, 0));
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
