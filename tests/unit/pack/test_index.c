/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked reads of the index: same results with and without cache, damage detected on access, keys found
 * among many.
 */
#include "packtest.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/num.h"
#include "base/thread.h"
#include "pack/index.h"

/* Writes many samples with only labels: an index of several chunks. */
static void write_many(const char *path, uint64_t n)
{
    const leat_field field = {.name = "label", .type = LEAT_FIELD_INT};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p;
    leat_error err;
    o.fields = &field;
    o.field_count = 1;
    o.no_sync = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    for (uint64_t i = 0; i < n; i++) {
        char key[32];
        int size = snprintf(key, sizeof key, "k%llu", (unsigned long long)i);
        leat_pack_value v = {.i = (int64_t)i};
        leat_pack_sample s = {.key = key, .key_size = (size_t)size, .values = &v};
        assert_int_equal(leat_packer_append(p, &s, &err), 0);
    }
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
}

static void test_same_with_any_cache(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    const uint64_t limits[] = {0, 3 * LEAT__PACK_CHUNK, UINT64_MAX / 2};
    write_many(path, 30000);
    for (int k = 0; k < 3; k++) {
        leat__index *x;
        leat_error err;
        leat__sample_place places[300];
        uint64_t key_start, sample;
        assert_int_equal(leat__index_open(&x, NULL, path, false, limits[k], &err), 0);
        for (int round = 0; round < 2; round++) {
            for (uint64_t first = 0; first < 30000; first += 300) {
                assert_int_equal(leat__index_samples(x, first, 300, places, &key_start, &err), 0);
                for (int i = 0; i < 300; i++) assert_int_equal(places[i].e.size, 0);
                assert_true(key_start >= first * 2 || first == 0);
            }
            for (uint64_t i = 0; i < 30000; i += 111) {
                char key[32];
                int size = snprintf(key, sizeof key, "k%llu", (unsigned long long)i);
                assert_int_equal(leat__index_find(x, key, (size_t)size, 0, &sample, &err), 0);
                assert_int_equal(sample, i);
                assert_int_equal(leat__index_find(x, key, (size_t)size - 1, 0, &sample, &err),
                                 i < 10 ? LEAT_ENOENT : 0); /* "k12" is not "k123" */
            }
        }
        assert_true(atomic_load(&x->cached) <= limits[k]);
        leat__index_close(&x);
    }
    pt_rmdir(dir);
}

static void test_bounds(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat__index *x;
    leat_error err;
    leat__sample_place place;
    leat__page_entry page;
    uint64_t n;
    uint8_t b[16];
    write_many(path, 10);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), 0);
    const leat__section *s = leat__index_section(x, LEAT__SECTION_SAMPLES);
    assert_int_equal(leat__index_read(x, s, 319, b, 1, &err), 0);
    assert_int_equal(leat__index_read(x, s, 319, b, 2, &err), LEAT_EINVAL);
    assert_int_equal(leat__index_read(x, s, UINT64_MAX, b, 2, &err), LEAT_EINVAL);
    assert_int_equal(leat__index_samples(x, 9, 2, &place, &n, &err), LEAT_EINVAL);
    assert_int_equal(leat__index_page(x, 1, &page, &n, &err), LEAT_EINVAL);
    assert_int_equal(leat__index_page(x, 0, &page, &n, &err), 0);
    assert_int_equal(n, 10);
    void *data;
    size_t len;
    assert_int_equal(leat__index_load(x, s, 319, 0, &data, &len, &err), LEAT_ELIMIT);
    assert_null(leat__index_section(x, LEAT__SECTION_SHARDS));
    leat__index_close(&x);
    pt_rmdir(dir);
}

/* A damaged chunk is detected when it is read, and only then; its neighbours stay readable. */
static void test_damage_on_touch(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "a.leat");
    leat__index *x;
    leat_error err;
    leat__sample_place place;
    uint64_t n;
    write_many(path, 30000);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), 0);
    const leat__section *s = leat__index_section(x, LEAT__SECTION_SAMPLES);
    uint64_t at = s->offset + 15000 * 32 + 9;
    int fd = open(path, O_RDWR);
    uint8_t byte = 0x55;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
    leat__index_close(&x);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 1 << 20, &err), 0);
    assert_int_equal(leat__index_samples(x, 0, 1, &place, &n, &err), 0);
    assert_int_equal(leat__index_samples(x, 15000, 1, &place, &n, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "index is damaged"));
    assert_int_equal(leat__index_samples(x, 15001, 1, &place, &n, &err), LEAT_EDATA);
    assert_int_equal(leat__index_samples(x, 29999, 1, &place, &n, &err), 0);
    leat__index_close(&x);
    pt_rmdir(dir);
}

/* Writes `value` at `at` of a file with one chunk of index and recomputes all checks. */
static void forge(const char *path, uint64_t at, uint64_t value)
{
    size_t size;
    leat__footer f;
    leat_error err;
    uint8_t *file = pt_load(path, &size), *foot = file + size - LEAT__PACK_BLOCK;
    leat__store_u64(file + at, value);
    assert_int_equal(leat__footer_decode(foot, path, size, &f, &err), 0);
    assert_true(f.index_bytes <= LEAT__PACK_CHUNK);
    uint8_t *checks = file + leat__footer_checks_at(&f), *roots = file + leat__footer_roots_at(&f);
    leat__store_u64(checks, leat__hash64(file + f.index_offset, f.index_bytes, 0));
    leat__store_u64(roots, leat__hash64(checks, f.checks_bytes, 0));
    f.roots_check = leat__hash64(roots, f.roots_bytes, 0);
    leat__footer_encode(&f, foot);
    leat__header_encode(&f, file);
    pt_store(path, file, size);
    free(file);
}

/* Impossible page positions with valid checks: refused at lookup; those that only contradict
 * their neighbours are found by verify. */
static void test_impossible_pages(void **state)
{
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    leat_packer_opts o = pt_opts();
    leat_error err;
    leat__index *x;
    leat__page_entry e, was;
    uint64_t n;
    assert_int_equal(pt_write(path, &o, 60, 4000, NULL, &err), 0);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), 0);
    uint64_t at = leat__index_section(x, LEAT__SECTION_PAGES)->offset + LEAT__PACK_PAGE_WIDTH;
    uint64_t index_offset = x->footer.index_offset, largest = x->footer.max_page_bytes;
    assert_true(x->footer.pages > 3);
    assert_int_equal(leat__index_page(x, 1, &was, &n, &err), 0);
    assert_int_not_equal(was.offset % LEAT__PACK_BLOCK, 0);
    leat__index_close(&x);
    const struct {
        uint64_t at, value, keep;
        bool alone; /* impossible without comparing its neighbours */
    } wrong[] = {
        {at, was.offset + 8, was.offset, true},
        {at, was.offset + 1, was.offset, true},
        {at, LEAT__PACK_BLOCK - 16, was.offset, true},
        {at, index_offset - was.bytes + 16, was.offset, true},
        {at, UINT64_MAX - 15, was.offset, true},
        {at, was.offset + 16, was.offset, false},
        {at, was.offset - 16, was.offset, false},
        {at + 8, was.bytes + 8, was.bytes, true},
        {at + 8, 0, was.bytes, true},
        {at + 8, largest + 16, was.bytes, true},
        {at + 8, UINT64_MAX - 15, was.bytes, true},
        {at + 8, was.bytes - 16, was.bytes, false},
        {at + 8, was.bytes + 16, was.bytes, false},
        {at + 24, UINT64_MAX, was.first, true},
        {at + 24, was.first + 1, was.first, false},
    };
    for (size_t i = 0; i < LEAT_COUNT(wrong); i++) {
        forge(path, wrong[i].at, wrong[i].value);
        assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), 0);
        assert_int_equal(leat__index_page(x, 1, &e, &n, &err), wrong[i].alone ? LEAT_EDATA : 0);
        leat__index_close(&x);
        assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), LEAT_EDATA);
        forge(path, wrong[i].at, wrong[i].keep);
        assert_int_equal(leat_pack_verify(path, NULL, NULL, &err), 0);
    }
    pt_rmdir(dir);
}

/* A header and a footer of different versions do not match. */
static void test_versions_agree(void **state)
{
    char *dir = pt_dir(), *path = pt_path(dir, "a.leat");
    leat_error err;
    leat__index *x;
    leat__footer f;
    size_t size;
    write_many(path, 10);
    uint8_t *file = pt_load(path, &size);
    assert_int_equal(leat__footer_decode(file + size - LEAT__PACK_BLOCK, path, size, &f, &err), 0);
    f.minor++; /* a reader accepts higher minor versions of its major */
    leat__footer_encode(&f, file + size - LEAT__PACK_BLOCK);
    leat__header_encode(&f, file);
    pt_store(path, file, size);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), 0);
    leat__index_close(&x);
    f.minor++;
    leat__header_encode(&f, file);
    pt_store(path, file, size);
    assert_int_equal(leat__index_open(&x, NULL, path, false, 0, &err), LEAT_EDATA);
    free(file);
    pt_rmdir(dir);
}

static leat__index *shared;

static void reader(void *arg)
{
    leat__rng r;
    leat__rng_init(&r, (uint64_t)(uintptr_t)arg, 0, 0, 0);
    for (int i = 0; i < 3000; i++) {
        leat__sample_place place;
        uint64_t key_start, at = leat__rng_below(&r, 30000), sample;
        char key[32];
        int size = snprintf(key, sizeof key, "k%llu", (unsigned long long)at);
        if (leat__index_samples(shared, at, 1, &place, &key_start, NULL) != 0) abort();
        if (leat__index_find(shared, key, (size_t)size, 0, &sample, NULL) != 0) abort();
        if (sample != at || place.e.key_end - key_start != (uint64_t)size) abort();
    }
}

static void test_many_threads(void **state)
{
    char *dir = pt_dir();
    leat_error err;
    leat__thread t[4] = {0};
    write_many(pt_path(dir, "a.leat"), 30000);
    assert_int_equal(leat__index_open(&shared, NULL, pt_path(dir, "a.leat"), false, 400000, &err), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(leat__thread_start(&t[i], "test", reader, (void *)(uintptr_t)i, &err), 0);
    for (int i = 0; i < 4; i++) leat__thread_join(&t[i]);
    assert_true(atomic_load(&shared->cached) <= 400000);
    leat__index_close(&shared);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_with_any_cache), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_damage_on_touch),     cmocka_unit_test(test_impossible_pages),
        cmocka_unit_test(test_versions_agree),      cmocka_unit_test(test_many_threads),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
