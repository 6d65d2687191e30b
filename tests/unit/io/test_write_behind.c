/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes in flight: every byte is written at its offset, blocks are returned, large ones are not
 * kept, and a failure is reported by every later call.
 */
#include "iotest.h"

#include "io/write_behind.h"

#define BLOCK 65536u

static void fill(leat__write_block *b, uint64_t at, size_t len)
{
    if (b->capacity < len) {
        leat__free(b->data);
        b->data = leat__alloc_aligned(LEAT__MEM_IO, len, LEAT__IO_ALIGN);
        b->capacity = len;
        assert_non_null(b->data);
    }
    for (size_t i = 0; i < len; i++) b->data[i] = it_byte(at + i);
}

static void assert_file(const char *path, uint64_t size)
{
    char *data;
    size_t len;
    leat_error err;
    assert_int_equal(leat__file_load(path, 1u << 30, 0, &data, &len, &err), 0);
    assert_int_equal(len, size);
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)data[i] != it_byte(i)) fail_msg("byte %zu", i);
    leat__free(data);
}

static void write_all(bool reserve)
{
    char *dir = it_dir(), *path = it_path(dir, "a");
    leat__file *f;
    leat__write_behind *w;
    leat__write_block block = {0};
    leat_error err;
    uint64_t at = 0;
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, &err), 0);
    assert_int_equal(leat__write_behind_open(&w, BLOCK, &err), 0);
    if (reserve) leat__file_reserve(f, 0, 200 * BLOCK);
    for (int i = 0; i < 100; i++) {
        size_t len = i % 10 == 9 ? 3 * BLOCK : BLOCK; /* occasionally a large one */
        if (i == 99) len = 1234;                      /* an unaligned end */
        else if (i >= 50) len -= 16u * (uint32_t)i;   /* neighbours in a block */
        fill(&block, at, len);
        assert_int_equal(leat__write_behind_put(w, f, at, len, &block, &err), 0);
        at += len;
    }
    assert_int_equal(leat__write_behind_drain(w, &err), 0);
    assert_int_equal(leat__file_truncate(f, at, &err), 0);
    assert_int_equal(leat__file_sync(f, &err), 0);
    assert_file(path, at);
    /* Four slots, each within its limit, and ours. */
    assert_true(leat__mem_used(LEAT__MEM_IO) < 5 * BLOCK + block.capacity + 8192);
    leat__write_behind_close(&w);
    leat__file_close(&f);
    leat__free(block.data);
    it_rmdir(dir);
    assert_int_equal(leat__mem_used(LEAT__MEM_IO), 0);
}

static void test_reserved(void **state)
{
    write_all(true);
}

static void test_plain(void **state)
{
    write_all(false);
}

/* Closing without a drain still writes all blocks. */
static void test_close_waits(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "a");
    leat__file *f;
    leat__write_behind *w;
    leat__write_block block = {0};
    leat_error err;
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_WRITE | LEAT__FILE_CREATE, &err), 0);
    assert_int_equal(leat__write_behind_open(&w, BLOCK, &err), 0);
    for (uint64_t i = 0; i < 20; i++) {
        fill(&block, i * BLOCK, BLOCK);
        assert_int_equal(leat__write_behind_put(w, f, i * BLOCK, BLOCK, &block, &err), 0);
    }
    leat__write_behind_close(&w);
    assert_file(path, 20 * BLOCK);
    leat__file_close(&f);
    leat__free(block.data);
    it_rmdir(dir);
}

/* A file that cannot be written to (it was opened for reading). */
static void test_failure_stays(void **state)
{
    char *dir = it_dir(), *path = it_path(dir, "a");
    leat__file *f;
    leat__write_behind *w;
    leat__write_block block = {0};
    leat_error err;
    it_make(path, 4096);
    assert_int_equal(leat__file_open(&f, path, LEAT__FILE_READ, &err), 0);
    assert_int_equal(leat__write_behind_open(&w, BLOCK, &err), 0);
    fill(&block, 0, BLOCK);
    assert_int_equal(leat__write_behind_put(w, f, 0, BLOCK, &block, &err), 0);
    assert_int_equal(leat__write_behind_drain(w, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "at byte 0"));
    fill(&block, 0, BLOCK);
    uint8_t *mine = block.data;
    assert_int_equal(leat__write_behind_put(w, f, 0, BLOCK, &block, &err), LEAT_EIO);
    assert_ptr_equal(block.data, mine);
    assert_int_equal(leat__write_behind_drain(w, NULL), LEAT_EIO);
    leat__write_behind_close(&w);
    leat__file_close(&f);
    leat__free(block.data);
    assert_file(path, 4096);
    it_rmdir(dir);
}

static void test_no_thread(void **state)
{
    leat__write_behind *w = (leat__write_behind *)state;
    leat_error err;
    if (!leat__fault_available()) skip();
    for (uint64_t n = 1; n <= 2; n++) {
        leat__fault_arm(LEAT__FAULT_THREAD, n, false);
        assert_int_equal(leat__write_behind_open(&w, BLOCK, &err), LEAT_ETHREAD);
        leat__fault_disarm();
        assert_null(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved),    cmocka_unit_test(test_plain),
        cmocka_unit_test(test_close_waits), cmocka_unit_test(test_failure_stays),
        cmocka_unit_test(test_no_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
