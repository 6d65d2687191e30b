/* SPDX-License-Identifier: Apache-2.0
 *
 * The public reader: metadata, ranges over shards, buffers, reported damage; golden files.
 */
#include "packtest.h"

#include "base/fault.h"
#include "base/num.h"
#include "io/aio.h"
#include "pack/reader.h"

#define N 900
#define SCALE 4000

static void open_set(char **dir, leat_pack **p, uint32_t direct)
{
    leat_packer_opts o = pt_opts();
    leat_pack_opts r = LEAT_PACK_OPTS_INIT;
    leat_error err;
    r.direct = direct;
    *dir = pt_dir();
    o.shard_bytes = 1 << 20;
    char *path = pt_path(*dir, "s.leat");
    assert_int_equal(pt_write(path, &o, N, SCALE, NULL, &err), 0);
    assert_int_equal(leat_pack_open(p, path, &r, &err), 0);
}

static void test_facts(void **state)
{
    char *dir;
    leat_pack *p;
    leat_pack_info info;
    open_set(&dir, &p, 0);
    assert_int_equal(leat_pack_info_read(p, &info, sizeof info), 0);
    assert_true(info.shards > 3);
    assert_int_equal(info.samples, N);
    assert_int_equal(info.page_bytes, 65536);
    assert_true(info.max_page_bytes >= 40 * SCALE);
    assert_int_equal(info.version_major, 2);
    leat_pack_info small = {.fingerprint = 5};
    assert_int_equal(leat_pack_info_read(p, &small, 16), 0); /* an older caller's struct */
    assert_int_equal(small.samples, N);
    assert_int_equal(small.fingerprint, 5);
    assert_int_equal(leat_pack_field_count(p), PT_FIELDS);
    assert_int_equal(leat_pack_field_find(p, "vec"), PT_VEC);
    assert_int_equal(leat_pack_field_find(p, "vecs"), LEAT_ENOENT);
    assert_null(leat_pack_field(p, PT_FIELDS));
    assert_non_null(strstr(leat_pack_schema(p), "\"caption\""));
    assert_non_null(strstr(leat_pack_provenance(p), "created_with"));
    assert_non_null(strstr(leat_pack_provenance(p), "\"kind\""));
    leat_pack_close(&p);
    pt_rmdir(dir);
}

/* Ranges across shards equal single lookups. */
static void test_ranges(void **state)
{
    char *dir;
    leat_pack *p;
    leat_error err;
    open_set(&dir, &p, 0);
    leat_pack_row *rows = calloc(N, sizeof *rows), row;
    leat_pack_cell *cells = calloc(N, sizeof *cells), two[2];
    int64_t labels[N];
    double weights[N];
    assert_int_equal(leat_pack_rows(p, 0, N, rows, &err), 0);
    assert_int_equal(leat_pack_cells(p, PT_IMAGE, 0, N, cells, &err), 0);
    assert_int_equal(leat_pack_ints(p, PT_LABEL, 0, N, labels, &err), 0);
    assert_int_equal(leat_pack_floats(p, PT_WEIGHT, 0, N, weights, &err), 0);
    const uint32_t fields[] = {PT_IMAGE, PT_LABEL};
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(leat_pack_look(p, i, &row, fields, 2, two, &err), 0);
        assert_memory_equal(&row, &rows[i], sizeof row);
        assert_memory_equal(&two[0], &cells[i], sizeof *two);
        assert_int_equal(two[1].i, labels[i]);
        assert_true(weights[i] == (double)i / 3.0);
        assert_int_equal(cells[i].image.width, i % 640 + 1);
    }
    assert_int_equal(leat_pack_rows(p, N - 1, 2, rows, &err), LEAT_EINVAL);
    assert_int_equal(leat_pack_rows(p, UINT64_MAX, 2, rows, &err), LEAT_EINVAL);
    assert_int_equal(leat_pack_cells(p, 99, 0, 1, cells, &err), LEAT_EINVAL);
    assert_int_equal(leat_pack_ints(p, PT_WEIGHT, 0, 1, labels, &err), LEAT_EINVAL);
    assert_int_equal(leat_pack_rows(p, 0, 0, rows, &err), 0);
    free(rows);
    free(cells);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

static void test_buffers_and_keys(void **state)
{
    char *dir;
    leat_pack *p;
    leat_error err;
    leat_pack_row row;
    char key[64];
    size_t size;
    uint64_t found;
    open_set(&dir, &p, 0);
    assert_int_equal(leat_pack_rows(p, 5, 1, &row, &err), 0);
    uint8_t *buf = malloc(row.size + LEAT_PACK_PADDING);
    memset(buf, 0xff, row.size + LEAT_PACK_PADDING);
    assert_int_equal(leat_pack_read(p, 5, buf, row.size + 63, &err), LEAT_ELIMIT);
    assert_int_equal(leat_pack_read(p, 5, buf, row.size + 64, &err), 0);
    for (int i = 0; i < 64; i++) assert_int_equal(buf[row.size + (size_t)i], 0);
    free(buf);
    assert_int_equal(leat_pack_key(p, 5, key, row.key_size, &size, &err), LEAT_ELIMIT);
    assert_int_equal(size, row.key_size);
    assert_int_equal(leat_pack_key(p, 5, key, row.key_size + 1, &size, &err), 0);
    assert_int_equal(strlen(key), size);
    assert_int_equal(leat_pack_find(p, "no such key", 11, &found, &err), LEAT_ENOENT);
    assert_non_null(strstr(err.message, "no such key"));
    leat_pack_close(&p);
    pt_rmdir(dir);
}

/* Reads pages through the pack, and directly through a lane with verification afterwards. */
static void test_pages(void **state)
{
    for (uint32_t direct = 0; direct < 2; direct++) {
        char *dir;
        leat_pack *p;
        leat_error err;
        leat_pack_info info;
        leat__aio *a;
        leat__aio_req *done;
        open_set(&dir, &p, direct);
        leat_pack_info_read(p, &info, sizeof info);
        size_t capacity = info.max_page_bytes + LEAT_PACK_PADDING;
        uint8_t *one = leat__alloc_aligned(LEAT__MEM_PAGE, capacity, 4096);
        uint8_t *blocks = leat__alloc_aligned(LEAT__MEM_PAGE, capacity + 2 * LEAT__IO_ALIGN, LEAT__IO_ALIGN);
        assert_int_equal(leat__aio_open(&a, NULL, &err), 0);
        uint64_t next = 0, inside = 0;
        for (uint64_t i = 0; i < info.pages; i++) {
            leat_pack_page g;
            assert_int_equal(leat_pack_page_info(p, i, &g, &err), 0);
            assert_int_equal(g.first, next);
            next += g.samples;
            assert_int_equal(leat_pack_page_read(p, i, one, g.bytes + 63, &err), LEAT_ELIMIT);
            assert_int_equal(leat_pack_page_read(p, i, one, capacity, &err), 0);
            leat__span span = leat__span_around(g.offset, g.bytes);
            assert_int_equal(g.offset % 16, 0);
            inside += span.lead > 0;
            leat__aio_req r = {
                .file = leat__pack_file(p, g.shard), .offset = span.offset, .len = span.len, .buf = blocks};
            leat__aio_submit(a, &r);
            assert_int_equal(leat__aio_wait(a, &done, UINT64_MAX), 0);
            assert_int_equal(r.rc, 0);
            uint8_t *two = blocks + span.lead;
            assert_int_equal(leat__pack_page_check(p, i, &g, two, &err), 0);
            assert_memory_equal(one, two, g.bytes);
            leat_pack_row row;
            assert_int_equal(leat_pack_rows(p, g.first, 1, &row, &err), 0);
            assert_int_equal(leat__pack_sample_check(p, g.first, &row, two + row.offset, &err), 0);
            two[row.offset] ^= 1;
            assert_int_equal(leat__pack_page_check(p, i, &g, two, &err), LEAT_EDATA);
            if (row.size > 0)
                assert_int_equal(leat__pack_sample_check(p, g.first, &row, two + row.offset, &err),
                                 LEAT_EDATA);
        }
        assert_int_equal(next, N);
        assert_true(inside > info.pages / 2); /* most pages start inside of a block */
        leat__aio_close(&a);
        leat__free(one);
        leat__free(blocks);
        leat_pack_close(&p);
        pt_rmdir(dir);
    }
}

static void test_not_a_pack(void **state)
{
    char *dir = pt_dir();
    leat_pack *p;
    leat_error err;
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "none"), NULL, &err), LEAT_ENOENT);
    assert_int_equal(leat_pack_open(&p, dir, NULL, &err), LEAT_EINVAL);
    pt_store(pt_path(dir, "empty"), "", 0);
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "empty"), NULL, &err), LEAT_EFORMAT);
    pt_store(pt_path(dir, "text"), "hello", 5);
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "text"), NULL, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "not a leat pack; leat pack makes one"));
    assert_null(p);
    pt_rmdir(dir);
}

/* Packs of all released versions can be read. */
static void test_golden(void **state)
{
    const char *data = getenv("LEAT_TEST_DATA");
    if (data == NULL) skip();
    static const struct {
        const char *name;
        uint32_t major, minor;
        uint64_t samples;
        size_t scale;
    } files[] = {{"pack-1.0.leat", 1, 0, 20, 60},
                 {"pack-1.0-set.leat", 1, 0, 12, 60},
                 {"pack-1.1.leat", 1, 1, 40, 200},
                 {"pack-2.0.leat", 2, 0, 40, 200},
                 {"pack-2.0-set.leat", 2, 0, 12, 60}};
    for (size_t i = 0; i < LEAT_COUNT(files); i++) {
        leat_error err;
        leat_pack *p;
        leat_pack_info info;
        leat_pack_verify_stats stats;
        const void *blob;
        size_t size;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", data, files[i].name);
        pt_check(path, files[i].samples, files[i].scale);
        assert_int_equal(leat_pack_verify(path, NULL, &stats, &err), 0);
        assert_int_equal(stats.samples, files[i].samples);
        assert_int_equal(leat_pack_open(&p, path, NULL, &err), 0);
        assert_int_equal(leat_pack_info_read(p, &info, sizeof info), 0);
        assert_int_equal(info.version_major, files[i].major);
        assert_int_equal(info.version_minor, files[i].minor);
        assert_int_equal(leat_pack_blob(p, "tile-tables", &blob, &size, &err), 0);
        assert_int_equal(size, 11);
        assert_memory_equal(blob, "some tables", 11);
        leat_pack_close(&p);
    }
}

/* Counts the file reads needed to look up every 7th sample. */
static uint64_t reads_of_looks(leat_pack *p)
{
    leat_pack_row row;
    leat__fault_arm(LEAT__FAULT_READ, 0, false);
    for (uint64_t i = 0; i < N; i += 7) assert_int_equal(leat_pack_look(p, i, &row, NULL, 0, NULL, NULL), 0);
    uint64_t reads = leat__fault_count(LEAT__FAULT_READ);
    leat__fault_disarm();
    return reads;
}

static void test_index_kept(void **state)
{
    char *dir;
    leat_pack *p;
    leat_pack_opts o = LEAT_PACK_OPTS_INIT;
    leat_error err;
    (void)state;
    if (!leat__fault_available()) skip();
    open_set(&dir, &p, 0);
    leat_pack_close(&p);
    o.index_cache_bytes = UINT64_MAX; /* none */
    assert_int_equal(leat_pack_open(&p, pt_path(dir, "s.leat"), &o, &err), 0);
    reads_of_looks(p);
    assert_true(reads_of_looks(p) >= N / 7); /* one for each, although everything is verified */
    leat__pack_index_keep(p, leat__pack_index_bytes(p));
    reads_of_looks(p);
    assert_int_equal(reads_of_looks(p), 0);
    leat_pack_close(&p);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_buffers_and_keys),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_not_a_pack),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_index_kept),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
