/* SPDX-License-Identifier: Apache-2.0 */
#include "curate/image_box.h"

#include <fcntl.h>
#include <unistd.h>

#include "curate/image_spool.h"
#include "io/file.h"

enum { ROWS = 700 }; /* three blocks */

static leat__image_facts row_of(uint64_t row)
{
    leat__image_facts f;
    memset(&f, 0, sizeof f);
    f.bytes = row;
    f.is_signed = row % 7 != 0;
    if (row % 7 == 0) leat__image_facts_fail(&f, LEAT__VERDICT_DAMAGED, row % 2 ? "odd" : "even");
    for (int i = 0; i < LEAT__LOOKS; i++) f.score[i] = (double)row + 1000.0 * i;
    memset(f.sign.thumb, (int)(row % 251), sizeof f.sign.thumb);
    return f;
}

static leat__check_counts counts;

static void put_some(leat__image_spool *s, uint64_t from, uint64_t rows)
{
    for (uint64_t row = from; row < rows; row++) {
        char key[32];
        const int size = snprintf(key, sizeof key, "%*llu", (int)(row % 9), (unsigned long long)row);
        const leat__image_facts f = row_of(row);
        counts.samples = row + 1;
        counts.chain = row * 31;
        assert_ok(leat__image_spool_put(s, key, (size_t)size, &f, &counts, NULL));
    }
}

static void put_rows(leat__image_spool *s, uint64_t rows)
{
    put_some(s, 0, rows);
    assert_ok(leat__image_spool_finish(s, NULL));
}

/* Reads all rows of a spool and its scores, and compares. */
static void compare_rows(leat__image_spool *s, uint64_t rows)
{
    leat__image_facts f;
    const char *key;
    size_t size, n = 99, ok = 0;
    double scores[ROWS];
    assert_int_equal(leat__image_spool_count(s), rows);
    assert_ok(leat__image_spool_scores(s, LEAT__LOOK_BLUR, scores, &n, NULL));
    for (uint64_t row = 0; row < rows; row++) {
        const leat__image_facts want = row_of(row);
        char text[32];
        const int len = snprintf(text, sizeof text, "%*llu", (int)(row % 9), (unsigned long long)row);
        assert_ok(leat__image_spool_next(s, &f, &key, &size, NULL));
        assert_int_equal(size, len);
        assert_string_equal(key, text);
        assert_memory_equal(&f, &want, offsetof(leat__image_facts, reason));
        assert_string_equal(f.reason, want.reason);
        if (f.verdict == LEAT__VERDICT_OK) assert_true(scores[ok++] == want.score[LEAT__LOOK_BLUR]);
    }
    assert_int_equal(n, ok);
    assert_ok(leat__image_spool_next(s, &f, &key, &size, NULL));
    assert_null(key);
}

static void rows_and_scores_come_back(void **state)
{
    static const uint64_t sizes[] = {0, 1, 256, ROWS};
    for (size_t c = 0; c < LEAT_COUNT(sizes); c++) {
        leat__image_spool *s = NULL;
        assert_ok(leat__image_spool_open(&s, in_box("a.scores"), 0, &counts, NULL));
        put_rows(s, sizes[c]);
        compare_rows(s, sizes[c]);
        leat__image_spool_close(&s);
        assert_int_not_equal(access(in_box("a.scores"), F_OK), 0);
    }
    assert_no_leaks();
}

/* Opens what was left with `key`, and returns how many rows stayed. */
static uint64_t reopen(leat__image_spool **s, uint64_t key)
{
    assert_ok(leat__image_spool_open(s, in_box("c.scores"), key, &counts, NULL));
    assert_int_equal(leat__image_spool_count(*s), counts.samples);
    if (counts.samples > 0) assert_int_equal(counts.chain, (counts.samples - 1) * 31);
    return counts.samples;
}

static void an_interrupted_run_is_continued(void **state)
{
    leat__image_spool *s = NULL;
    char *data = NULL;
    size_t len = 0;
    assert_int_equal(reopen(&s, 7), 0);
    put_some(s, 0, 600);
    assert_ok(leat__file_load(in_box("c.scores"), 1u << 26, 0, &data, &len, NULL)); /* killed here */
    leat__image_spool_close(&s);
    assert_ok(leat__file_store(in_box("c.scores"), data, len, NULL));
    assert_int_equal(reopen(&s, 7), 512); /* whole blocks */
    put_some(s, 512, 530);
    leat__image_spool_leave(&s); /* stopped: all rows are kept */
    assert_int_equal(reopen(&s, 7), 530);
    put_some(s, 530, ROWS);
    assert_ok(leat__image_spool_finish(s, NULL));
    compare_rows(s, ROWS);
    leat__image_spool_leave(&s);
    assert_int_equal(reopen(&s, 7), ROWS);
    assert_ok(leat__image_spool_clear(s, NULL));
    assert_int_equal(leat__image_spool_count(s), 0);
    put_rows(s, 3);
    compare_rows(s, 3);
    leat__image_spool_leave(&s);
    assert_int_equal(reopen(&s, 8), 0); /* another key */
    leat__image_spool_close(&s);
    for (size_t at = 0; at < len; at += 4093) { /* damaged: blocks before it stay */
        data[at] ^= 4;
        assert_ok(leat__file_store(in_box("c.scores"), data, len, NULL));
        const uint64_t rows = reopen(&s, 7);
        assert_true(rows == (at < 16 ? 0 : rows) && rows % 256 == 0 && rows < 512);
        assert_ok(leat__image_spool_finish(s, NULL));
        compare_rows(s, rows);
        leat__image_spool_close(&s);
        data[at] ^= 4;
    }
    for (size_t part = 0; part < len; part += 9973) { /* truncated */
        assert_ok(leat__file_store(in_box("c.scores"), data, part, NULL));
        assert_true(reopen(&s, 7) <= 512);
        leat__image_spool_close(&s);
    }
    leat__free(data);
    assert_no_leaks();
}

/* What a killed run left is replaced; a file that changes while it is in use is noticed. */
static void leftovers_and_changes(void **state)
{
    leat__image_spool *s = NULL;
    leat__image_facts f;
    const char *key;
    size_t size;
    leat_error err = {0};
    int fd = open(in_box("b.scores"), O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "left", 4), 4);
    close(fd);
    assert_ok(leat__image_spool_open(&s, in_box("b.scores"), 5, &counts, NULL));
    put_rows(s, 10);
    fd = open(in_box("b.scores"), O_WRONLY);
    assert_int_equal(lseek(fd, -100, SEEK_END) > 0, 1);
    assert_int_equal(write(fd, "other", 5), 5);
    close(fd);
    assert_code(LEAT_EDATA, leat__image_spool_next(s, &f, &key, &size, &err));
    leat__image_spool_close(&s);
    assert_code(LEAT_ENOENT, leat__image_spool_open(&s, in_box("none/b.scores"), 5, &counts, NULL));
    assert_null(s);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_scores_come_back),
        cmocka_unit_test(an_interrupted_run_is_continued),
        cmocka_unit_test(leftovers_and_changes),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
