/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <math.h>

#include "ingest/tf_example.h"

/* ---- writing messages: everything here is shorter than 128 bytes ---- */

static void nest(leat__buf *to, uint8_t tag, const leat__buf *from)
{
    uint8_t head[2] = {tag, (uint8_t)from->len};
    assert_true(from->len < 128);
    leat__buf_append(to, head, 2);
    leat__buf_append(to, from->data, from->len);
}

static void feature(leat__buf *features, const char *name, uint8_t kind, const void *list, size_t len)
{
    leat__buf part[4];
    for (int i = 0; i < 4; i++) leat__buf_init(&part[i], LEAT__MEM_INGEST, 1024);
    leat__buf_append(&part[0], list, len);
    if (kind != 0) nest(&part[1], (uint8_t)(kind << 3 | 2), &part[0]);
    uint8_t head[2] = {0x0a, (uint8_t)strlen(name)};
    leat__buf_append(&part[2], head, 2);
    leat__buf_puts(&part[2], name);
    nest(&part[2], 0x12, &part[1]);
    nest(features, 0x0a, &part[2]);
    for (int i = 0; i < 4; i++) leat__buf_reset(&part[i]);
}

static void record(leat__buf *file, const leat__buf *features)
{
    leat__buf example;
    leat__buf_init(&example, LEAT__MEM_INGEST, 1024);
    if (features) nest(&example, 0x0a, features);
    uint64_t len = example.len;
    uint32_t sum = leat__tf_checksum(&len, 8);
    leat__buf_append(file, &len, 8);
    leat__buf_append(file, &sum, 4);
    leat__buf_append(file, example.data, example.len);
    sum = leat__tf_checksum(example.data, example.len);
    leat__buf_append(file, &sum, 4);
    leat__buf_reset(&example);
}

/* One whole number "n", text "t", floats "v"; `more` floats. */
static void sample(leat__buf *file, uint8_t n, const char *text, int more)
{
    leat__buf f, list;
    leat__buf_init(&f, LEAT__MEM_INGEST, 1024);
    leat__buf_init(&list, LEAT__MEM_INGEST, 1024);
    uint8_t number[] = {0x08, n};
    feature(&f, "n", 3, number, 2);
    uint8_t head[2] = {0x0a, (uint8_t)strlen(text)};
    leat__buf_append(&list, head, 2);
    leat__buf_puts(&list, text);
    feature(&f, "t", 1, list.data, list.len);
    leat__buf_clear(&list);
    for (int i = 0; i < more; i++) leat__buf_append(&list, "\x0d\0\0\x80\x3f", 5);
    feature(&f, "v", 2, list.data, list.len);
    record(file, &f);
    leat__buf_reset(&f);
    leat__buf_reset(&list);
}

static leat__source *open_file(const leat__buf *file, leat_error *err)
{
    static const char *paths[1];
    leat_ingest_opts o;
    leat__source *s = NULL;
    put_file("a.tfrecord", file->data, file->len);
    paths[0] = in_box("a.tfrecord");
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 1;
    int rc = leat__source_open(&s, &o, err);
    assert_true((rc == 0) == (s != NULL));
    return s;
}

static void values_and_order(void **state)
{
    leat__buf file;
    leat__records *run;
    leat__record *r;
    leat__records_pool spare;
    (void)state;
    leat__buf_init(&file, LEAT__MEM_INGEST, 1u << 20);
    for (uint8_t i = 0; i < 5; i++) sample(&file, i, i % 2 ? "odd" : "", i);
    leat__source *s = open_file(&file, NULL);
    assert_string_equal(s->ops->kind, "tfrecord");
    leat__records_pool_init(&spare, s->field_count, 2);
    int n = leat__source_field_find(s, "n"), t = leat__source_field_find(s, "t");
    int v = leat__source_field_find(s, "v");
    assert_int_equal(s->fields[n].type, LEAT_FIELD_INT);
    assert_int_equal(s->fields[t].type, LEAT_FIELD_TEXT);
    assert_int_equal(s->fields[v].type, LEAT_FIELD_RAGGED);
    for (uint32_t i = 0; i < 5; i++) {
        char key[16];
        assert_true(next_record(s, &spare, &run, &r));
        snprintf(key, sizeof key, "%08u", i);
        assert_string_equal(leat__records_str(run, r->key), key);
        assert_int_equal(r->items[n].i, i);
        assert_int_equal(r->items[t].size, i % 2 ? 3 : 0);
        assert_int_equal(r->items[v].shape[0], i);
        assert_int_equal(r->items[v].size, 4 * i);
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    leat__buf_reset(&file);
}

/* What is damaged among the records that settle the fields is left out like any other. */
static void damage_at_the_beginning(void **state)
{
    leat__buf file;
    leat__records *run;
    leat__record *r;
    leat__records_pool spare;
    (void)state;
    for (int way = 0; way < 3; way++) {
        leat__buf_init(&file, LEAT__MEM_INGEST, 1u << 20);
        for (uint8_t i = 0; i < 3; i++) sample(&file, i, "text", 1);
        size_t one = file.len / 3;
        leat__buf bad;
        leat__buf_init(&bad, LEAT__MEM_INGEST, 1024);
        leat__buf_append(&bad, "\x12\x7fzz", 4); /* longer than the message */
        if (way == 1) leat__buf_clear(&bad), feature(&bad, "n", 2, "\x0d\0\0\x80\x3f", 5); /* a float */
        if (way < 2) record(&file, &bad);
        else file.data[one + 1] ^= 1; /* a length */
        sample(&file, 9, "text", 1);
        leat__source *s = open_file(&file, NULL);
        assert_non_null(s);
        leat__records_pool_init(&spare, s->field_count, 2);
        assert_int_equal(s->fields[leat__source_field_find(s, "n")].type, LEAT_FIELD_INT);
        assert_int_equal(s->fields[leat__source_field_find(s, "v")].type, LEAT_FIELD_FLOAT);
        uint32_t failed = 0, good = 0;
        while (next_record(s, &spare, &run, &r)) {
            failed += r->failed;
            good += !r->failed;
            leat__records_pool_give(&spare, run);
        }
        assert_int_equal(failed, 1);
        assert_int_equal(good, way == 2 ? 1 : 4);
        leat__records_pool_reset(&spare);
        leat__source_close(&s);
        leat__buf_reset(&bad);
        leat__buf_reset(&file);
    }
    leat_error err = {0};
    leat__buf_init(&file, LEAT__MEM_INGEST, 1024);
    leat__buf_append(&file, "not a TFRecord file at all", 26);
    assert_null(open_file(&file, &err));
    assert_non_null(strstr(err.message, "record 0: damaged length, or not a TFRecord file"));
    leat__buf_reset(&file);
}

/* A damaged record is left out and the next follows; a damaged length ends the file. */
static void damage(void **state)
{
    leat__buf file;
    leat__records *run;
    leat__record *r;
    leat__records_pool spare;
    (void)state;
    leat__buf_init(&file, LEAT__MEM_INGEST, 1u << 20);
    for (uint8_t i = 0; i < 70; i++) sample(&file, i, "text", 1);
    size_t one = file.len / 70;
    file.data[65 * one + 30] ^= 1;
    file.data[67 * one + 1] ^= 1;
    leat__source *s = open_file(&file, NULL);
    leat__records_pool_init(&spare, s->field_count, 2);
    for (uint32_t i = 0; i < 68; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_int_equal(r->failed, i == 65 || i == 67);
        if (i == 65) assert_non_null(strstr(r->error->message, "record 65: damaged"));
        if (i == 67) assert_non_null(strstr(r->error->message, "damaged length"));
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    /* several values instead of one, or a new feature: only that sample fails */
    leat__buf_clear(&file);
    for (uint8_t i = 0; i < 64; i++) sample(&file, i, "text", 1);
    sample(&file, 64, "text", 2);
    sample(&file, 65, "text", 1);
    s = open_file(&file, NULL);
    leat__records_pool_init(&spare, s->field_count, 2);
    for (uint32_t i = 0; i < 66; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_int_equal(r->failed, i == 64);
        leat__records_pool_give(&spare, run);
    }
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    leat__buf_reset(&file);
}

static void what_is_not_one(void **state)
{
    leat__buf file;
    leat_error err = {0};
    (void)state;
    leat__buf_init(&file, LEAT__MEM_INGEST, 1u << 20);
    leat__buf_puts(&file, "hello, this is some text");
    assert_null(open_file(&file, &err));
    assert_non_null(strstr(err.message, "not a TFRecord file"));
    leat__buf_clear(&file);
    record(&file, NULL);
    assert_null(open_file(&file, &err));
    assert_non_null(strstr(err.message, "no features"));
    /* a valid record with other content is named by file and number */
    static const uint8_t other[] = {0xff, 0xff, 0xff, 0xff};
    leat__buf_clear(&file);
    sample(&file, 1, "text", 1);
    uint64_t len = sizeof other;
    uint32_t sum = leat__tf_checksum(&len, 8);
    leat__buf_append(&file, &len, 8);
    leat__buf_append(&file, &sum, 4);
    leat__buf_append(&file, other, sizeof other);
    sum = leat__tf_checksum(other, sizeof other);
    leat__buf_append(&file, &sum, 4);
    leat__records *run;
    leat__record *r;
    leat__records_pool spare;
    leat__source *s = open_file(&file, &err);
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_true(next_record(s, &spare, &run, &r));
    assert_false(r->failed);
    leat__records_pool_give(&spare, run);
    assert_true(next_record(s, &spare, &run, &r));
    assert_non_null(strstr(r->error->message, "a.tfrecord: record 1: not a tf.train.Example"));
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    leat__buf_reset(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_and_order, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(damage_at_the_beginning, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(damage, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(what_is_not_one, sandbox_open, sandbox_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
