/* SPDX-License-Identifier: Apache-2.0
 *
 * The indexer: the predicted size is the written size, for any content of the index, and little memory
 * gives the same bytes as much.
 */
#include "packtest.h"

#include "base/hash.h"
#include "pack/indexer.h"
#include "pack/page.h"

typedef struct bench {
    leat__schema *schema;
    leat__journal journal;
    leat__blobs blobs;
    leat__indexer x;
} bench;

/* Writes a journal of n samples in pages of about ten, without the pages themselves. */
static void prepare(bench *b, const char *dir, uint64_t n)
{
    leat_error err;
    leat__page *page;
    memset(b, 0, sizeof *b);
    assert_int_equal(leat__schema_make(&b->schema, pt_fields, PT_FIELDS, &err), 0);
    assert_int_equal(leat__journal_create(&b->journal, pt_path(dir, "j"), 1, &err), 0);
    assert_int_equal(leat__page_open(&page, b->schema, 65536, &err), 0);
    b->x = (leat__indexer){.kind = LEAT__PACK_FILE,
                           .schema = b->schema,
                           .provenance = "{}",
                           .blobs = &b->blobs,
                           .journal = &b->journal,
                           .journal_from = leat__journal_first(),
                           .data_end = 4096,
                           .page_bytes = 65536};
    for (uint64_t i = 0; i < n; i++) {
        pt_sample s;
        pt_make(&s, i, 50);
        assert_int_equal(leat__page_add(page, &s.sample, &err), 0);
        pt_free(&s);
        if (i % 10 != 9 && i + 1 != n) continue;
        leat__page_seal(page);
        leat__journal_page g = {.samples = page->samples,
                                .offset = b->x.data_end,
                                .bytes = page->bytes,
                                .check = page->check,
                                .rows_bytes = page->rows.len,
                                .keys_bytes = page->keys.len,
                                .rows = (uint8_t *)page->rows.data,
                                .keys = (uint8_t *)page->keys.data};
        assert_int_equal(leat__journal_put_page(&b->journal, &g, &err), 0);
        b->x.samples += page->samples;
        b->x.pages++;
        b->x.keys_bytes += page->keys.len;
        b->x.data_end += page->bytes;
        if (page->bytes > b->x.max_page_bytes) b->x.max_page_bytes = page->bytes;
        if (page->max_sample > b->x.max_sample_bytes) b->x.max_sample_bytes = page->max_sample;
        leat__page_clear(page);
    }
    leat__page_close(&page);
}

static uint8_t *write_index(bench *b, const char *path, size_t *size)
{
    leat__file *f;
    leat__footer footer;
    leat_error err;
    uint64_t foretold, duplicates;
    assert_int_equal(leat__indexer_size(&b->x, &foretold, &err), 0);
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, &err), 0);
    assert_int_equal(leat__indexer_write(&b->x, f, &footer, &duplicates, &err), 0);
    leat__file_close(&f);
    uint8_t *data = pt_load(path, size);
    assert_int_equal(*size, foretold);
    assert_int_equal(footer.file_bytes, foretold);
    assert_int_equal(duplicates, 0);
    return data;
}

static void test_sizes_and_memory(void **state)
{
    const uint64_t counts[] = {0, 1, 10, 2000};
    for (int k = 0; k < 4; k++) {
        char *dir = pt_dir();
        bench b;
        leat_error err;
        size_t n1, n2;
        prepare(&b, dir, counts[k]);
        assert_int_equal(leat__blobs_set(&b.blobs, "blob", "12345", 5, &err), 0);
        uint8_t *one = write_index(&b, pt_path(dir, "one"), &n1);
        b.x.sort_memory = 4096; /* many passes */
        uint8_t *two = write_index(&b, pt_path(dir, "two"), &n2);
        assert_int_equal(n1, n2);
        assert_memory_equal(one, two, n1);
        /* leftovers of an earlier attempt are overwritten */
        memset(two, 0xee, n2);
        pt_store(pt_path(dir, "three"), two, n2);
        free(two);
        two = write_index(&b, pt_path(dir, "three"), &n2);
        assert_int_equal(n1, n2);
        assert_memory_equal(one + b.x.data_end, two + b.x.data_end, n1 - b.x.data_end);
        free(one);
        free(two);
        leat__journal_reset(&b.journal);
        leat__blobs_reset(&b.blobs);
        leat__schema_close(&b.schema);
        pt_rmdir(dir);
    }
}

static void test_journal_must_match(void **state)
{
    char *dir = pt_dir();
    bench b;
    leat__file *f;
    leat__footer footer;
    leat_error err;
    uint64_t duplicates;
    prepare(&b, dir, 100);
    assert_int_equal(leat__file_open(&f, pt_path(dir, "x"), LEAT__FILE_WRITE | LEAT__FILE_CREATE, &err), 0);
    b.x.samples++;
    assert_int_equal(leat__indexer_write(&b.x, f, &footer, &duplicates, &err), LEAT_EDATA);
    b.x.samples--;
    b.x.pages++;
    assert_int_equal(leat__indexer_write(&b.x, f, &footer, &duplicates, &err), LEAT_EDATA);
    leat__file_close(&f);
    leat__journal_reset(&b.journal);
    leat__schema_close(&b.schema);
    pt_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes_and_memory),
                                       cmocka_unit_test(test_journal_must_match)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
