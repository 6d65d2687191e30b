/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets with hostile or broken lists of shards. The indexer writes the lists, so every check is
 * valid and only the list is wrong.
 */
#include "packtest.h"

#include <sys/resource.h>

#include "base/buf.h"
#include "io/aio.h"
#include "pack/indexer.h"
#include "pack/reader.h"

#define MANY 200u

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
    assert_int_equal(
        leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE | LEAT__FILE_TRUNCATE, &err), 0);
    leat__indexer x = {.kind = LEAT__PACK_SET,
                       .schema = schema,
                       .provenance = "{}",
                       .shards = shards,
                       .blobs = &blobs,
                       .data_end = 4096,
                       .page_bytes = 65536};
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
#define LIST(file, db, ds, dp, df)                                                                           \
    (snprintf(text, sizeof text, fmt, file, (unsigned long long)info.bytes + (db),                           \
              (unsigned long long)info.samples + (ds), (unsigned long long)info.pages + (dp),                \
              (unsigned long long)info.fingerprint + (df)),                                                  \
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
    const char *const broken[] = {"",
                                  "{",
                                  "[]",
                                  "{\"version\":1}",
                                  "{\"version\":1,\"shards\":[]}",
                                  "{\"version\":9,\"shards\":[{}]}",
                                  "{\"version\":1,\"shards\":[{}]}",
                                  "{\"version\":1,\"shards\":[3]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        write_set(path, broken[i]);
        assert_int_equal(leat_pack_open(&p, path, NULL, &err), LEAT_EDATA);
    }
    pt_rmdir(dir);
}

/* A set of many links to one shard. */
static void write_many(const char *dir, const char *path)
{
    leat_packer_opts o = pt_opts();
    leat_pack_info info;
    leat_pack *p;
    leat_error err;
    leat__buf list;
    assert_int_equal(pt_write(pt_path(dir, "one.leat"), &o, 20, 100, NULL, &err), 0);
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "one.leat"), NULL, &err), 0);
    leat_pack_info_read(p, &info, sizeof info);
    leat_pack_close(&p);
    leat__buf_init(&list, LEAT__MEM_MISC, 1 << 20);
    (void)leat__buf_puts(&list, "{\"version\":1,\"shards\":[");
    for (unsigned i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u.leat", i);
        assert_int_equal(link(pt_path(dir, "one.leat"), pt_path(dir, name)), 0);
        (void)leat__buf_printf(&list,
                               "%s{\"file\":\"%s\",\"bytes\":%llu,\"samples\":%llu,"
                               "\"pages\":%llu,\"fingerprint\":\"%016llx\"}",
                               i ? "," : "", name, (unsigned long long)info.bytes,
                               (unsigned long long)info.samples, (unsigned long long)info.pages,
                               (unsigned long long)info.fingerprint);
    }
    (void)leat__buf_puts(&list, "]}");
    assert_int_equal(leat__buf_status(&list), 0);
    write_set(path, leat__buf_str(&list));
    leat__buf_reset(&list);
}

/* Reads the first blocks of all shards at once: more reads than descriptors. */
static void read_at_once(leat_pack *p, leat__aio_kind kind)
{
    leat__aio_opts opts = {.kind = kind, .depth = 64, .max_depth = 64};
    leat__aio *a;
    leat_error err;
    uint8_t *blocks = leat__alloc_aligned(LEAT__MEM_MISC, MANY * 4096, 4096);
    leat__aio_req *reqs = LEAT_NEW_ARRAY(MISC, leat__aio_req, MANY), *r;
    int rc = leat__aio_open(&a, &opts, &err);
    if (rc == 0) {
        for (unsigned i = 0; i < MANY; i++) {
            reqs[i] = (leat__aio_req){.file = leat__pack_file(p, i), .buf = blocks + i * 4096, .len = 4096};
            leat__aio_submit(a, &reqs[i]);
        }
        for (unsigned i = 0; i < MANY; i++) {
            assert_int_equal(leat__aio_wait(a, &r, UINT64_MAX), 0);
            assert_int_equal(r->rc, 0);
        }
        for (unsigned i = 1; i < MANY; i++) assert_memory_equal(blocks, blocks + i * 4096, 4096);
        leat__aio_close(&a);
    } else {
        assert_int_equal(rc, LEAT_ENOTSUP); /* no io_uring here */
    }
    leat__free(reqs);
    leat__free(blocks);
}

static void few_descriptors_are_enough(void **state)
{
    char *dir = pt_dir(), path[512];
    struct rlimit before;
    snprintf(path, sizeof path, "%s/s.leat", dir);
    write_many(dir, path);
    getrlimit(RLIMIT_NOFILE, &before);
    for (uint32_t direct = 0; direct < 2; direct++) {
        struct rlimit few = {64, before.rlim_max};
        leat_pack_opts opts = LEAT_PACK_OPTS_INIT;
        leat_pack *p;
        leat_error err;
        static uint8_t page[1 << 20];
        opts.direct = direct;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(leat_pack_open(&p, path, &opts, &err), 0);
        assert_int_equal(leat_pack_count(p), 20 * MANY);
        leat_pack_info info;
        leat_pack_info_read(p, &info, sizeof info);
        for (uint64_t i = 0; i < info.pages; i++)
            assert_int_equal(leat_pack_page_read(p, i, page, sizeof page, &err), 0);
        read_at_once(p, LEAT__AIO_THREADS);
        read_at_once(p, LEAT__AIO_URING);
        leat_pack_close(&p);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    }
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists),
                                       cmocka_unit_test(few_descriptors_are_enough)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
