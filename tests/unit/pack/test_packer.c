/* SPDX-License-Identifier: Apache-2.0
 *
 * The packer's public interface: appended samples can be read back, files do not depend on how
 * they were made, and wrong use is refused with a message.
 */
#include "packtest.h"

#include "pack/packer.h"
#include "pack/page.h"
#include "pack/selection.h"

static void test_round_trip(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer_stats stats;
    leat_error err;
    assert_int_equal(pt_write(path, &o, 500, 4000, &stats, &err), 0);
    assert_int_equal(stats.samples, 500);
    assert_int_equal(stats.shards, 1);
    assert_int_equal(stats.duplicate_keys, 0);
    assert_true(stats.pages > 20);
    assert_int_equal(access(pt_path(dir, "a.leat.journal"), F_OK), -1);
    assert_int_equal(access(pt_path(dir, "a.leat.partial"), F_OK), -1);
    pt_check(path, 500, 4000);
    assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    pt_rmdir(dir);
}

static void test_empty_pack(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "empty.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    assert_int_equal(pt_write(path, &o, 0, 10, NULL, &err), 0);
    pt_check(path, 0, 10);
    assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    pt_rmdir(dir);
}

static void test_same_bytes(void **state)
{
    char *dir = pt_dir();
    leat_packer_opts o = pt_opts();
    leat_error err;
    size_t n1, n2;
    assert_int_equal(pt_write(pt_path(dir, "a.leat"), &o, 300, 3000, NULL, &err), 0);
    o.no_sync = 0;
    assert_int_equal(pt_write(pt_path(dir, "b.leat"), &o, 300, 3000, NULL, &err), 0);
    uint8_t *a = pt_load(pt_path(dir, "a.leat"), &n1), *b = pt_load(pt_path(dir, "b.leat"), &n2);
    assert_int_equal(n1, n2);
    assert_memory_equal(a, b, n1);
    free(a);
    free(b);
    pt_rmdir(dir);
}

/* Pages built one ahead and sealed elsewhere give the same file as append. */
static void test_pages_by_hand(void **state)
{
    char *dir = pt_dir();
    leat_packer_opts o = pt_opts();
    leat_error err;
    leat_packer *p;
    leat__page *pages[2];
    int at = 0;
    assert_int_equal(pt_write(pt_path(dir, "a.leat"), &o, 300, 3000, NULL, &err), 0);
    assert_int_equal(leat_packer_open(&p, pt_path(dir, "b.leat"), &o, &err), 0);
    assert_int_equal(pt_blobs(p, &err), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(leat__page_open(&pages[i], p->schema, p->page_bytes, &err), 0);
    for (uint64_t i = 0; i < 300; i++) {
        pt_sample s;
        uint64_t size;
        pt_make(&s, i, 3000);
        assert_int_equal(leat__sample_measure(p->schema, &s.sample, &size, &err), 0);
        if (!leat__page_fits(pages[at], &s.sample, size)) {
            leat__page_seal(pages[at]);
            assert_int_equal(leat__packer_put(p, pages[at], &err), 0);
            at = !at;
        }
        assert_int_equal(leat__page_add(pages[at], &s.sample, &err), 0);
        pt_free(&s);
    }
    assert_int_equal(leat__packer_put(p, pages[at], &err), 0);
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
    for (int i = 0; i < 2; i++) leat__page_close(&pages[i]);
    size_t n1, n2;
    uint8_t *a = pt_load(pt_path(dir, "a.leat"), &n1), *b = pt_load(pt_path(dir, "b.leat"), &n2);
    assert_int_equal(n1, n2);
    assert_memory_equal(a, b, n1);
    free(a);
    free(b);
    pt_rmdir(dir);
}

static void test_shards(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "s.leat");
    leat_packer_opts o = pt_opts();
    leat_packer_stats stats;
    leat_error err;
    o.shard_bytes = 1 << 20;
    assert_int_equal(pt_write(path, &o, 1000, 4000, &stats, &err), 0);
    assert_true(stats.shards >= 4);
    pt_check(path, 1000, 4000);
    assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    for (unsigned i = 0; i < stats.shards; i++) {
        size_t n;
        char *shard = pt_shard(dir, "s", i);
        free(pt_load(shard, &n));
        assert_true(n <= 1 << 20);
        assert_int_equal(leat_pack_verify(shard, NULL, NULL, &err), 0);
    }
    /* A shard that is not the listed one is refused. */
    assert_int_equal(rename(pt_shard(dir, "s", 1), pt_shard(dir, "s", 0)), 0);
    leat_pack *p;
    assert_int_equal(leat_pack_open(&p, path, NULL, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "not the shard"));
    pt_rmdir(dir);
}

static void test_refusals(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer *p = NULL, *q = NULL;
    leat_error err;
    assert_int_equal(pt_write(path, &o, 10, 100, NULL, &err), 0);
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EEXIST);
    o.replace = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    o.resume = 1;
    assert_int_equal(leat_packer_open(&q, path, &o, &err), LEAT_ESTATE); /* in use */
    assert_int_equal(pt_append(p, 0, 5, 100, &err), 0);
    assert_int_equal(leat_packer_blob(p, "note", "x", 1, &err), 0); /* something to resume */
    pt_sample s;
    pt_make(&s, 5, 100);
    s.values[PT_TEXT].data = "\xff\xfe";
    s.values[PT_TEXT].size = 2;
    assert_int_equal(leat_packer_append(p, &s.sample, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "caption"));
    s.values[PT_TEXT].size = 0;
    s.values[PT_META].size = 3;
    assert_int_equal(leat_packer_append(p, &s.sample, &err), LEAT_EINVAL);
    s.values[PT_META].absent = 1;
    s.values[PT_VEC].size = 23;
    assert_int_equal(leat_packer_append(p, &s.sample, &err), LEAT_EINVAL);
    pt_free(&s);
    leat_packer_close(&p);
    pt_check(path, 10, 100); /* the old pack is untouched until finish */

    o.resume = o.replace = 0;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "unfinished"));
    o.resume = o.replace = 1;
    o.identity = 99;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_ESTATE);
    assert_int_equal(leat_packer_discard(path, &err), 0);
    assert_int_equal(access(pt_path(dir, "a.leat.journal"), F_OK), -1);
    assert_int_equal(access(pt_path(dir, "a.leat.partial"), F_OK), -1);
    o.page_bytes = 1000;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), LEAT_EINVAL);
    pt_rmdir(dir);
}

/* Columns are not resumed: the next run discards the files of a killed one. Files of other unfinished packs
 * stay. */
static void test_columns_start_again(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_packer *p = NULL;
    leat_error err;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(leat__packer_open_once(&p, path, &o, &err), 0);
        assert_int_equal(pt_append(p, 0, 50, 4000, &err), 0);
        leat_packer_close(&p); /* leaves the files that a killed run leaves */
        assert_int_equal(access(pt_path(dir, "a.leat.journal"), F_OK), 0);
    }
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    assert_int_equal(pt_append(p, 0, 50, 4000, &err), 0);
    leat_packer_close(&p);
    assert_int_equal(leat__packer_open_once(&p, path, &o, &err), LEAT_EEXIST);
    pt_rmdir(dir);
}

static void test_duplicate_keys_are_counted(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    leat_packer *p;
    leat_packer_stats stats;
    leat_error err;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    for (int i = 0; i < 100000; i++) {
        char key[32];
        int n = snprintf(key, sizeof key, "%d", i % 99990);
        leat_pack_value v = {.i = i};
        leat_pack_sample s = {.key = key, .key_size = (size_t)n, .values = &v};
        assert_int_equal(leat_packer_append(p, &s, &err), 0);
    }
    assert_int_equal(leat_packer_finish(p, &stats, &err), 0);
    assert_int_equal(stats.duplicate_keys, 10);
    assert_int_equal(stats.pages, 2); /* samples without payload close pages too */
    leat_packer_close(&p);
    leat_pack *r;
    uint64_t found;
    assert_int_equal(leat_pack_open(&r, path, NULL, &err), 0);
    assert_int_equal(leat_pack_find(r, "3", 1, &found, &err), 0);
    assert_int_equal(found, 3);
    assert_int_equal(leat_pack_find(r, "99995", 5, &found, &err), LEAT_ENOENT);
    int64_t *labels = malloc(100000 * sizeof *labels);
    assert_int_equal(leat_pack_ints(r, 0, 0, 100000, labels, &err), 0);
    for (int i = 0; i < 100000; i++) assert_int_equal(labels[i], i);
    free(labels);
    leat_pack_close(&r);
    assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    pt_rmdir(dir);
}

/* Options that change the bytes change the identity; where and how the pack is written does not. */
static void test_identity(void **state)
{
    leat_packer_opts o = pt_opts();
    uint64_t first, other;
    (void)state;
    assert_int_equal(leat__packer_identity(&o, &first, NULL), 0);
    o.no_sync = !o.no_sync;
    o.resume = 1;
    assert_int_equal(leat__packer_identity(&o, &other, NULL), 0);
    assert_true(first == other);
    o.provenance = "{\"source\": 2}";
    assert_int_equal(leat__packer_identity(&o, &other, NULL), 0);
    assert_true(first != other);
    o = pt_opts();
    o.page_bytes = 1 << 21;
    assert_int_equal(leat__packer_identity(&o, &other, NULL), 0);
    assert_true(first != other);
    o = pt_opts();
    o.field_count--;
    assert_int_equal(leat__packer_identity(&o, &other, NULL), 0);
    assert_true(first != other);
    o.page_bytes = 5;
    assert_int_equal(leat__packer_identity(&o, &other, NULL), LEAT_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_empty_pack),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_pages_by_hand),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_columns_start_again),
        cmocka_unit_test(test_duplicate_keys_are_counted),
        cmocka_unit_test(test_identity),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
