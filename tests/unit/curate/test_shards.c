/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <sys/stat.h>

#include "curate/shards.h"
#include "ingest/stream.h"

static bool there(const char *name)
{
    return access(in_box(name), F_OK) == 0;
}

static void files_appear_on_commit(void **state)
{
    leat__shards s;
    put_text("out/kept-00000.jsonl", "old");
    put_text("out/kept-00002.jsonl", "old");
    put_text("out/kept-00003.jsonl", "old");
    assert_int_equal(leat__shards_open(&s, in_box("out"), "kept", 10, LEAT__COMPRESS_NONE, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "123456\n", 7, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "12345678901234567890\n", 21, NULL), 0);
    assert_false(there("out/kept-00001.jsonl"));
    assert_true(there("out/kept-00001.jsonl.partial"));
    assert_int_equal(leat__shards_commit(&s, NULL), 0);
    assert_int_equal(s.count, 2);
    leat__shards_reset(&s);
    assert_true(there("out/kept-00001.jsonl"));
    assert_false(there("out/kept-00001.jsonl.partial"));
    assert_false(there("out/kept-00002.jsonl")); /* of an earlier run */
    assert_false(there("out/kept-00003.jsonl"));
}

/* A run that was killed can leave temporary files and gaps between numbers. */
static void leftovers_are_removed(void **state)
{
    static const char *const old[] = {"kept-00000.jsonl.partial", "kept-00007.jsonl", "kept-00009.jsonl.gz",
                                      "kept-123456.jsonl.zst.partial", "kept-00003.jsonl.gz.partial"};
    static const char *const others[] = {"kept-0007.jsonl", "kept-00007.jsonl.txt", "kept-.jsonl",
                                         "kept.jsonl",      "other-00007.jsonl",    "kept-00007.json"};
    leat__shards s;
    char name[64];
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        snprintf(name, sizeof name, "left/%s", old[i]);
        put_text(name, "old");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(name, sizeof name, "left/%s", others[i]);
        put_text(name, "mine");
    }
    assert_int_equal(leat__shards_open(&s, in_box("left"), "kept", 100, LEAT__COMPRESS_NONE, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "123456\n", 7, NULL), 0);
    assert_int_equal(leat__shards_commit(&s, NULL), 0);
    leat__shards_reset(&s);
    assert_true(there("left/kept-00000.jsonl"));
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        snprintf(name, sizeof name, "left/%s", old[i]);
        assert_false(there(name));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(name, sizeof name, "left/%s", others[i]);
        assert_true(there(name));
    }
}

/* Files are split between lines, however many lines come at once. */
static void files_are_split_at_lines(void **state)
{
    leat__shards s;
    struct stat at;
    put_text("cut/kept-00000.jsonl.gz", "old"); /* a run with another compression */
    assert_int_equal(leat__shards_open(&s, in_box("cut"), "kept", 10, LEAT__COMPRESS_NONE, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "1234\n1234\n12345678901234\n12\n", 28, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "123\n12345\n", 10, NULL), 0);
    assert_int_equal(leat__shards_commit(&s, NULL), 0);
    static const int sizes[] = {10, 15, 7, 6};
    assert_int_equal(s.count, 4);
    assert_int_equal(s.bytes, 38);
    leat__shards_reset(&s);
    for (int i = 0; i < 4; i++) {
        char name[40];
        snprintf(name, sizeof name, "cut/kept-0000%d.jsonl", i);
        assert_int_equal(stat(in_box(name), &at), 0);
        assert_int_equal(at.st_size, sizes[i]);
    }
    assert_false(there("cut/kept-00000.jsonl.gz"));
    assert_int_equal(leat__shards_trim(in_box("cut"), "kept", LEAT__COMPRESS_NONE, 0, NULL), 0);
    assert_false(there("cut/kept-00003.jsonl"));
}

/* A sixth digit would change the order in which a folder is read. */
static void numbers_have_five_digits(void **state)
{
    leat__shards s;
    leat_error err = {0};
    put_text("many/other", "");
    assert_int_equal(leat__shards_open(&s, in_box("many"), "kept", 3, LEAT__COMPRESS_NONE, NULL), 0);
    s.count = 99999;
    assert_int_equal(leat__shards_put(&s, "12\n", 3, NULL), 0);
    assert_true(there("many/kept-99999.jsonl.partial"));
    assert_int_equal(leat__shards_put(&s, "12\n", 3, &err), LEAT_ELIMIT);
    assert_non_null(strstr(err.message, "many: more than 100,000 shards (raise shard_bytes)"));
    leat__shards_reset(&s);
    assert_false(there("many/kept-99999.jsonl.partial") || there("many/kept-100000.jsonl.partial"));
}

static void nothing_is_left_without_commit(void **state)
{
    leat__shards s;
    assert_int_equal(leat__shards_open(&s, in_box("out"), "bad", 0, LEAT__COMPRESS_NONE, NULL), 0);
    assert_int_equal(leat__shards_put(&s, "x\n", 2, NULL), 0);
    leat__shards_reset(&s);
    assert_false(there("out/bad.jsonl"));
    assert_false(there("out/bad.jsonl.partial"));
    assert_int_equal(leat__shards_open(&s, in_box("out"), "bad", 0, LEAT__COMPRESS_NONE, NULL), 0);
    assert_int_equal(leat__shards_commit(&s, NULL), 0);
    leat__shards_reset(&s);
    assert_true(there("out/bad.jsonl")); /* empty */
}

static void compressed_chunks_follow_each_other(void **state)
{
    static const leat__compress how[] = {LEAT__COMPRESS_GZIP, LEAT__COMPRESS_ZSTD};
    static const char *const names[] = {"z-00000.jsonl.gz", "z-00000.jsonl.zst"};
    for (int i = 0; i < 2; i++) {
        leat__shards s;
        leat__buf b;
        char back[64];
        size_t got;
        assert_int_equal(leat__shards_open(&s, sandbox, "z", 1000, how[i], NULL), 0);
        for (int k = 0; k < 2; k++) {
            leat__buf_init(&b, LEAT__MEM_CURATE, 1000);
            leat__buf_puts(&b, k ? "second\n" : "first\n");
            assert_int_equal(leat__compress_buf(&b, how[i], NULL), 0);
            if (how[i] == LEAT__COMPRESS_ZSTD) assert_true(b.data[4] & 4); /* the frame has a checksum */
            assert_int_equal(leat__shards_put(&s, b.data, b.len, NULL), 0);
            leat__buf_reset(&b);
        }
        assert_int_equal(leat__shards_commit(&s, NULL), 0);
        leat__shards_reset(&s);
        leat__stream *in = NULL;
        assert_int_equal(leat__stream_open(&in, in_box(names[i]), NULL), 0);
        assert_int_equal(leat__stream_read(in, back, sizeof back, &got, NULL), 0);
        assert_int_equal(got, 13);
        assert_memory_equal(back, "first\nsecond\n", 13);
        leat__stream_close(&in);
    }
}

/* Two tasks that write the same part do not disturb each other. */
static void parts_have_their_own_names(void **state)
{
    leat__shards a, b;
    uint64_t frame;
    assert_int_equal(leat__shards_open_part(&a, in_box("p"), "part-1", "x", LEAT__COMPRESS_ZSTD, NULL), 0);
    put_text("p/other", "");
    assert_int_equal(leat__shards_open_part(&b, in_box("p"), "part-1", "y", LEAT__COMPRESS_ZSTD, NULL), 0);
    assert_int_equal(leat__shards_put(&a, "123", 3, NULL), 0);
    assert_int_equal(leat__shards_put(&b, "123", 3, NULL), 0);
    assert_int_equal(leat__shards_put(&a, "4567", 4, NULL), 0);
    assert_int_equal(leat__shards_commit(&a, NULL), 0);
    assert_int_equal(a.frames.len, 16);
    memcpy(&frame, a.frames.data + 8, 8);
    assert_int_equal(frame, 4);
    leat__shards_reset(&b); /* killed */
    leat__shards_reset(&a);
    struct stat at;
    assert_int_equal(stat(in_box("p/part-1"), &at), 0);
    assert_int_equal(at.st_size, 7);
    assert_false(there("p/part-1.x.tmp"));
    assert_false(there("p/part-1.y.tmp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_appear_on_commit),
        cmocka_unit_test(leftovers_are_removed),
        cmocka_unit_test(files_are_split_at_lines),
        cmocka_unit_test(numbers_have_five_digits),
        cmocka_unit_test(nothing_is_left_without_commit),
        cmocka_unit_test(compressed_chunks_follow_each_other),
        cmocka_unit_test(parts_have_their_own_names),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
