/* SPDX-License-Identifier: Apache-2.0
 *
 * Blobs and class names of an open pack.
 */
#include "packtest.h"

static void test_blobs_and_classes(void **state)
{
    for (int shards = 0; shards < 2; shards++) {
        char *dir = pt_dir();
        char *path = pt_path(dir, "a.leat");
        leat_packer_opts o = pt_opts();
        leat_pack *p;
        leat_error err;
        const void *data, *again;
        size_t size;
        const char *const *names;
        uint64_t count;
        o.shard_bytes = shards ? 1 << 20 : 0;
        assert_int_equal(pt_write(path, &o, 30, 100, NULL, &err), 0);
        assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
        assert_int_equal(leat_pack_blob_count(p), 3);
        assert_string_equal(leat_pack_blob_name(p, 0), "classes/label");
        assert_string_equal(leat_pack_blob_name(p, 1), "tile-tables");
        assert_string_equal(leat_pack_blob_name(p, 2), "words");
        assert_null(leat_pack_blob_name(p, 3));
        assert_int_equal(leat_pack_blob(p, "words", &data, &size, &err), 0);
        assert_int_equal(size, sizeof pt_words);
        assert_memory_equal(data, pt_words, size);
        assert_int_equal(leat_pack_blob(p, "tile-tables", &data, &size, &err), 0);
        assert_int_equal(size, 11);
        assert_memory_equal(data, "some tables", 11);
        assert_int_equal((uintptr_t)data % 64, 0);
        for (int i = 0; i < LEAT_PACK_PADDING; i++) assert_int_equal(((const uint8_t *)data)[11 + i], 0);
        assert_int_equal(leat_pack_blob(p, "tile-tables", &again, &size, &err), 0);
        assert_ptr_equal(data, again); /* a view for the life of the pack */
        assert_int_equal(leat_pack_blob(p, "nothing", &data, &size, &err), LEAT_ENOENT);
        assert_int_equal(leat_pack_classes(p, PT_LABEL, &names, &count, &err), 0);
        assert_int_equal(count, 5);
        for (int i = 0; i < 5; i++) assert_string_equal(names[i], pt_classes[i]);
        assert_int_equal(leat_pack_classes(p, PT_IMAGE, &names, &count, &err), 0);
        assert_int_equal(count, 0);
        assert_int_equal(leat_pack_classes(p, 99, &names, &count, &err), LEAT_EINVAL);
        leat_pack_close(&p);
        pt_rmdir(dir);
    }
}

/* A compressed blob is decompressed and is then like any other in memory. */
static void test_packed_blob(void **state)
{
    enum { SIZE = 30000 };
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    static char text[SIZE];
    leat_packer_opts o = pt_opts();
    leat_packer *w;
    leat_pack *p;
    leat_pack_info info;
    leat_error err;
    const void *data;
    size_t size;
    for (int i = 0; i < SIZE; i++) text[i] = "one two three four "[i * (i / 100 + 1) % 19];
    assert_int_equal(leat_packer_open(&w, path, &o, &err), 0);
    assert_int_equal(leat_packer_blob(w, "text", text, SIZE, &err), 0);
    assert_int_equal(leat_packer_blob_view(w, "text", &data, &size), 0);
    assert_int_equal(size, SIZE);
    assert_int_equal(pt_append(w, 0, 5, 100, &err), 0);
    assert_int_equal(leat_packer_finish(w, NULL, &err), 0);
    leat_packer_close(&w);
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
    assert_int_equal(leat_pack_info_read(p, &info, sizeof info), 0);
    assert_true(info.bytes < SIZE / 2);
    assert_int_equal(leat_pack_blob(p, "text", &data, &size, &err), 0);
    assert_int_equal(size, SIZE);
    assert_memory_equal(data, text, SIZE);
    assert_int_equal((uintptr_t)data % 64, 0);
    for (int i = 0; i < LEAT_PACK_PADDING; i++) assert_int_equal(((const uint8_t *)data)[SIZE + i], 0);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blobs_and_classes),
                                       cmocka_unit_test(test_packed_blob)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
