/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting in bounded memory: compared with qsort, in one pass and in many, with many equal hashes.
 */
#include "packtest.h"

#include "base/hash.h"
#include "pack/keysort.h"

typedef struct pair {
    uint64_t hash;
    uint32_t row;
} pair;

static int by_hash_and_row(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void sort_and_compare(const char *path, uint32_t n, uint64_t distinct, size_t memory)
{
    leat__file *f;
    leat_error err;
    uint64_t *hashes = malloc((n + 1) * 8), *sorted = malloc((n + 1) * 8), duplicates, expect = 0;
    uint32_t *rows = malloc((n + 1) * 4);
    pair *want = malloc((n + 1) * sizeof *want);
    for (uint32_t i = 0; i < n; i++) {
        hashes[i] = leat__mix64(leat__mix64(i + 1) % distinct);
        want[i] = (pair){hashes[i], i};
    }
    qsort(want, n, sizeof *want, by_hash_and_row);
    for (uint32_t i = 1; i < n; i++) expect += want[i].hash == want[i - 1].hash;
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, &err), 0);
    assert_int_equal(leat__file_pwrite(f, hashes, n * 8ull, 1 << 24, &err), 0);
    leat__keysort k = {
        .file = f, .count = n, .from = 1 << 24, .hashes_to = 0, .rows_to = 1 << 23, .memory = memory};
    assert_int_equal(leat__keysort_run(&k, &duplicates, &err), 0);
    assert_int_equal(duplicates, expect);
    assert_int_equal(leat__file_pread(f, sorted, n * 8ull, 0, &err), 0);
    assert_int_equal(leat__file_pread(f, rows, n * 4ull, 1 << 23, &err), 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(sorted[i], want[i].hash);
        assert_int_equal(rows[i], want[i].row);
    }
    leat__file_close(&f);
    free(hashes);
    free(sorted);
    free(rows);
    free(want);
}

static void test_sort(void **state)
{
    char *dir = pt_dir();
    char *path = pt_path(dir, "keys");
    sort_and_compare(path, 0, 1, 0);
    sort_and_compare(path, 1, 1, 0);
    sort_and_compare(path, 100000, UINT64_MAX, 0);     /* one pass */
    sort_and_compare(path, 100000, UINT64_MAX, 64000); /* about fifty */
    sort_and_compare(path, 50000, 100, 64000);
    sort_and_compare(path, 50000, 1, 64000); /* all equal: uses more memory than requested */
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sort)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
