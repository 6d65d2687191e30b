/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets with hostile or broken lists of shards. The lists are written by the indexer itself,
 * so every check is right and only the list is wrong.
 */
#include "packtest.h"

#include "pack/indexer.h"

static void write_set(const char *path, const char *shards)
{
    leat__schema *schema;
    leat__file *f;
    leat__footer footer;
    leat__blobs blobs = {0};
    leat_error err;
    uint64_t none;
    uint8_t block[LEAT__PACK_BLOCK];
    assert_int_equal(leat__schema_make(&schema, pt_fields, PT_FIELDS, &err), 0);
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE |
                                                   LEAT__FILE_TRUNCATE, &err), 0);
    leat__indexer x = {.kind = LEAT__PACK_SET, .schema = schema, .provenance = "{}",
                       .shards = shards, .blobs = &blobs, .data_end = 4096, .page_bytes = 65536};
    assert_int_equal(leat__indexer_write(&x, f, &footer, &none, &err), 0);
    leat__header_encode(&footer, block);
    assert_int_equal(leat__file_pwrite(f, block, sizeof block, 0, &err), 0);
    leat__file_close(&f);
    leat__schema_close(&schema);
}

static void test_lists(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "s.leat"), text[2000];
    leat_packer_opts o = pt_opts();
    leat_pack *p;
    leat_pack_info info;
    leat_error err;
    assert_int_equal(pt_write(pt_path(dir, "one.leat"), &o, 20, 100, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "one.leat"), NULL, &err), 0);
    leat_pack_info_read(p, &info, sizeof info);
    leat_pack_close(&p);
    const char *fmt = "{\"version\":1,\"shards\":[{\"file\":\"%s\",\"bytes\":%llu,\"samples\":%llu,"
                      "\"pages\":%llu,\"fingerprint\":\"%016llx\"}]}";
#define LIST(file, db, ds, dp, df)                                                         \
    (snprintf(text, sizeof text, fmt, file, (unsigned long long)info.bytes + (db),         \
              (unsigned long long)info.samples + (ds), (unsigned long long)info.pages + (dp), \
              (unsigned long long)info.fingerprint + (df)),                                \
     write_set(path, text), leat_pack_open(&p, path, NULL, &err))
    assert_int_equal(LIST("one.leat", 0, 0, 0, 0), 0);
    assert_int_equal(leat_pack_count(p), 20);
    leat_pack_close(&p);
    assert_int_equal(LIST("one.leat", 1, 0, 0, 0), LEAT_EDATA);
    assert_int_equal(LIST("one.leat", 0, 1, 0, 0), LEAT_EDATA);
    assert_int_equal(LIST("one.leat", 0, 0, 1, 0), LEAT_EDATA);
    assert_int_equal(LIST("one.leat", 0, 0, 0, 1), LEAT_EDATA);
    assert_int_equal(LIST("two.leat", 0, 0, 0, 0), LEAT_ENOENT);
    assert_int_equal(LIST("../one.leat", 0, 0, 0, 0), LEAT_EDATA);
    assert_non_null(strstr(err.message, "plain file name"));
    assert_int_equal(LIST("/etc/passwd", 0, 0, 0, 0), LEAT_EDATA);
    assert_int_equal(LIST("s.leat", 0, 0, 0, 0), LEAT_EDATA); /* itself: sets do not nest */
    const char *const broken[] = {"", "{", "[]", "{\"version\":1}", "{\"version\":1,\"shards\":[]}",
                                  "{\"version\":9,\"shards\":[{}]}", "{\"version\":1,\"shards\":[{}]}",
                                  "{\"version\":1,\"shards\":[3]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_set(path, broken[i]);
        assert_int_equal(leat_pack_open(&p, path, NULL, &err), LEAT_EDATA);
    }
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
