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

static void put_rows(leat__image_spool *s, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++) {
        char key[32];
        const int size = snprintf(key, sizeof key, "%*llu", (int)(row % 9), (unsigned long long)row);
        const leat__image_facts f = row_of(row);
        assert_ok(leat__image_spool_put(s, key, (size_t)size, &f, NULL));
    }
    assert_ok(leat__image_spool_finish(s, NULL));
}

static void rows_and_scores_come_back(void **state)
{
    static const uint64_t counts[] = {0, 1, 256, ROWS};
    for (size_t c = 0; c < LEAT_COUNT(counts); c++) {
        leat__image_spool *s = NULL;
        leat__image_facts f;
        const char *key;
        size_t size, n = 99;
        double scores[ROWS];
        assert_ok(leat__image_spool_open(&s, in_box("a.scores"), NULL));
        put_rows(s, counts[c]);
        assert_int_equal(leat__image_spool_count(s), counts[c]);
        assert_ok(leat__image_spool_scores(s, LEAT__LOOK_BLUR, scores, &n, NULL));
        size_t ok = 0;
        for (uint64_t row = 0; row < counts[c]; row++) {
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
        leat__image_spool_close(&s);
        assert_int_not_equal(access(in_box("a.scores"), F_OK), 0);
    }
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
    assert_ok(leat__image_spool_open(&s, in_box("b.scores"), NULL));
    put_rows(s, 10);
    fd = open(in_box("b.scores"), O_WRONLY);
    assert_int_equal(lseek(fd, -100, SEEK_END) > 0, 1);
    assert_int_equal(write(fd, "other", 5), 5);
    close(fd);
    assert_code(LEAT_EDATA, leat__image_spool_next(s, &f, &key, &size, &err));
    leat__image_spool_close(&s);
    assert_code(LEAT_ENOENT, leat__image_spool_open(&s, in_box("none/b.scores"), NULL));
    assert_null(s);
    assert_no_leaks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_scores_come_back),
        cmocka_unit_test(leftovers_and_changes),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
