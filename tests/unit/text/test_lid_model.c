/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "text/lid.h"
#include "text/lid_box.h"

static leat_error err;

static int open_buf(const leat__buf *b, size_t len, leat__lid **lid)
{
    memset(&err, 0, sizeof err);
    return leat__lid_open(lid, lid_box_copy(b, len), len, "m.bin", &err);
}

static void begin(leat__buf *out)
{
    leat__buf_init(out, LEAT__MEM_MISC, 1u << 26);
}

static void labels_are_read(void **state)
{
    for (int kind = 0; kind < 4; kind++) {
        lid_box b = lid_box_new();
        leat__buf out;
        leat__lid *lid = NULL;
        begin(&out);
        b.quantised = kind >= 2;
        b.setting[BOX_BUCKET] = kind == 0 ? 0 : 10;
        b.setting[BOX_MAXN] = kind == 0 ? 0 : 3;
        b.pruned = kind == 3 ? 4 : -1;
        lid_box_write(&b, &out);
        if (open_buf(&out, out.len, &lid) != 0) fail_msg("%d: %s", kind, err.message);
        assert_int_equal(leat__lid_labels(lid), 2);
        assert_string_equal(leat__lid_label(lid, 0), "en");
        assert_int_equal(leat__lid_find(lid, "de"), 1);
        assert_int_equal(leat__lid_find(lid, "__label__de"), -1);
        assert_true(leat__lid_bytes(lid) > out.len && leat__lid_bytes(lid) < out.len + 4096);
        leat__lid_close(&lid);
        /* every truncation is one line, and nothing is read past the end */
        for (size_t n = 0; n < out.len; n++) {
            assert_int_equal(open_buf(&out, n, &lid), LEAT_EDATA);
            assert_null(lid);
            assert_non_null(strstr(err.message, "m.bin: "));
        }
        leat__buf_reset(&out);
    }
}

/* Writes 4 or 8 bytes at an offset of a valid model and expects a failure. */
static void expect_damage(lid_box b, size_t at, int64_t value, size_t size, const char *message)
{
    leat__buf out;
    leat__lid *lid = NULL;
    begin(&out);
    lid_box_write(&b, &out);
    memcpy(out.data + at, &value, size);
    int rc = open_buf(&out, out.len, &lid);
    if (rc != LEAT_EDATA || !strstr(err.message, message)) fail_msg("%zu: %d %s", at, rc, err.message);
    leat__buf_reset(&out);
}

static size_t setting(int i)
{
    return 8 + 4 * (size_t)i;
}

static void damage_is_refused(void **state)
{
    lid_box b = lid_box_new(), n = b, q = b;
    leat__buf out;
    begin(&out);
    lid_box_write(&b, &out);
    leat__buf_reset(&out);
    n.setting[BOX_BUCKET] = q.setting[BOX_BUCKET] = 10;
    n.setting[BOX_MAXN] = q.setting[BOX_MAXN] = 3;
    q.quantised = 1;
    q.pruned = 4;
    begin(&out);
    lid_box_write(&q, &out);
    leat__buf_reset(&out);
    size_t d = b.dictionary, m = b.matrix;
    expect_damage(b, 0, 1, 4, "not a fastText model");
    expect_damage(b, 4, 13, 4, "version 13");
    expect_damage(b, setting(BOX_MODEL), 2, 4, "word vectors");
    expect_damage(b, setting(BOX_DIM), 0, 4, "dimension");
    expect_damage(b, setting(BOX_DIM), INT32_MAX, 4, "size of a matrix");
    expect_damage(b, setting(BOX_LOSS), 9, 4, "loss");
    expect_damage(n, setting(BOX_BUCKET), -1, 4, "negative");
    expect_damage(n, setting(BOX_BUCKET), 0, 4, "without buckets");
    expect_damage(n, setting(BOX_BUCKET), INT32_MAX, 4, "too few rows");
    expect_damage(b, setting(BOX_NGRAMS), 65, 4, "too long");
    expect_damage(n, setting(BOX_MAXN), 65, 4, "too long");
    expect_damage(b, d, INT32_MAX, 4, "numbers of words");
    expect_damage(b, d + 4, INT32_MAX, 4, "numbers of words");
    expect_damage(b, d + 8, -2, 4, "numbers of words");
    expect_damage(b, d + 20, INT64_MAX, 8, "truncated");
    expect_damage(b, d + 20, 0, 8, "without quantisation");
    expect_damage(b, d + 28 + 5 + 8, 1, 1, "not in order");
    expect_damage(b, m + 1, INT64_MAX, 8, "truncated");
    expect_damage(b, m + 1, -1, 8, "size of a matrix");
    expect_damage(b, m + 1, 2, 8, "");
    expect_damage(b, m + 9, 3, 8, "size of a matrix");
    expect_damage(q, q.matrix - 4, 4, 4, "row of an n-gram");
    expect_damage(q, q.matrix + 2, 8, 8, "number of codes");
    expect_damage(q, q.matrix + 2, INT64_MAX, 8, "number of codes");
    expect_damage(q, q.matrix + 18, -1, 4, "number of codes");
    expect_damage(q, q.matrix + 18, INT32_MAX, 4, "truncated");
    expect_damage(q, q.matrix + 22 + 7 + 4, 2, 4, "parts of a quantiser");
    expect_damage(q, q.matrix + 22 + 7 + 8, 0, 4, "parts of a quantiser");
}

/* Weights that are not finite are refused, in every matrix and with their offset. */
static void weights_are_finite(void **state)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    lid_box b = lid_box_new(), q = b;
    leat__buf out;
    char message[80];
    q.setting[BOX_BUCKET] = 10;
    q.setting[BOX_MAXN] = 3;
    q.quantised = 1;
    q.pruned = 4;
    begin(&out);
    lid_box_write(&b, &out);
    const size_t last = out.len - sizeof(float);
    leat__buf_clear(&out);
    lid_box_write(&q, &out);
    leat__buf_reset(&out);
    const size_t places[] = {b.matrix + 17, b.matrix + 17 + 3 * sizeof(float), last};
    for (size_t i = 0; i < LEAT_COUNT(wrong); i++) {
        int64_t value = 0;
        memcpy(&value, &wrong[i], sizeof wrong[i]);
        for (size_t k = 0; k < LEAT_COUNT(places); k++) {
            snprintf(message, sizeof message, "m.bin: damaged fastText model at offset %zu: a weight is not",
                     places[k]);
            expect_damage(b, places[k], value, sizeof wrong[i], message);
        }
        expect_damage(q, q.matrix + 22 + 7 + 16, value, sizeof wrong[i], "a weight is not a finite number");
    }
}

/* Huge counts in a dictionary: both numbers agree, but the file does not have that many entries. */
static void counts_are_not_believed(void **state)
{
    lid_box b = lid_box_new();
    leat__buf out;
    leat__lid *lid = NULL;
    int32_t entries = INT32_MAX, words = INT32_MAX - 2;
    begin(&out);
    lid_box_write(&b, &out);
    memcpy(out.data + b.dictionary, &entries, 4);
    memcpy(out.data + b.dictionary + 4, &words, 4);
    assert_int_equal(open_buf(&out, out.len, &lid), LEAT_EDATA);
    assert_non_null(strstr(err.message, "truncated"));
    leat__buf_reset(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_read),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(weights_are_finite),
        cmocka_unit_test(counts_are_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
