/* SPDX-License-Identifier: Apache-2.0
 *
 * Named blobs: sorted in any order of setting, replaced by name, limits.
 */
#include "packtest.h"

#include "pack/blobs.h"

static void test_sorted(void **state)
{
    leat__blobs b = {0};
    leat_error err;
    const char *const names[] = {"m", "z", "a", "classes/label", "b", "tile-tables", "m"};
    for (size_t i = 0; i < 7; i++) assert_int_equal(leat__blobs_set(&b, names[i], "0123456", i, &err), 0);
    assert_int_equal(b.count, 6);
    for (size_t i = 1; i < b.count; i++) assert_true(strcmp(b.items[i - 1].name, b.items[i].name) < 0);
    assert_int_equal(leat__blobs_find(&b, "m")->size, 6); /* the last one set */
    assert_null(leat__blobs_find(&b, "nothing"));
    assert_int_equal(leat__blobs_set(&b, "", "", 0, &err), LEAT_EINVAL);
    assert_int_equal(leat__blobs_set(&b, "huge", "", (size_t)2 << 30, &err), LEAT_ELIMIT);
    leat__blobs_reset(&b);
    char *name = leat__blob_classes_name("label");
    assert_string_equal(name, "classes/label");
    leat__free(name);
}

/* Stored as a frame only if that is smaller and the blob is small enough. */
static void test_packed(void **state)
{
    enum { LARGE = (1 << 20) + 1 };
    leat__blobs b = {0};
    leat_error err;
    uint8_t *data = calloc(1, LARGE), noise[1000], out[1000];
    pt_fill(noise, sizeof noise, 5);
    assert_int_equal(leat__blobs_set(&b, "a", data, LARGE - 1, &err), 0);
    assert_int_equal(leat__blobs_set(&b, "b", data, LARGE, &err), 0);
    assert_int_equal(leat__blobs_set(&b, "c", noise, sizeof noise, &err), 0);
    assert_int_equal(leat__blobs_set(&b, "d", data, 0, &err), 0);
    assert_int_equal(leat__blobs_set(&b, "e", data, 1000, &err), 0);
    assert_non_null(b.items[0].packed);
    assert_in_range(b.items[0].packed_size, 1, 1000);
    for (int i = 1; i < 4; i++) assert_null(b.items[i].packed);
    const leat__blob *e = &b.items[4];
    memset(out, 1, sizeof out);
    assert_true(leat__blob_unpack(e->packed, e->packed_size, out, 1000));
    assert_memory_equal(out, data, 1000);
    assert_false(leat__blob_unpack(e->packed, e->packed_size, out, 999));
    assert_false(leat__blob_unpack(e->packed, e->packed_size - 1, out, 1000));
    uint8_t twice[100];
    assert_true(e->packed_size <= 50);
    memcpy(twice, e->packed, e->packed_size);
    memcpy(twice + e->packed_size, e->packed, e->packed_size);
    assert_false(leat__blob_unpack(twice, 2 * e->packed_size, out, 1000));
    assert_false(leat__blob_unpack("nonsense", 8, out, 1000));
    /* replaced: the old frame is gone */
    assert_int_equal(leat__blobs_set(&b, "e", noise, 10, &err), 0);
    assert_null(b.items[4].packed);
    leat__blobs_reset(&b);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorted), cmocka_unit_test(test_packed)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
