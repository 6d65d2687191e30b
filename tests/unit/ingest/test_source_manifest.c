/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <math.h>

static leat__source *source;
static leat__records_pool spare;
static leat__records *run;
static leat__record *rec;

static void begin(const char *name, const char *text, leat_ingest_opts *opts)
{
    static const char *paths[1];
    put_text("m/img/a.jpg", "aaa");
    put_text("m/img/b.jpg", "bbbb");
    put_text(name, text);
    paths[0] = in_box(name);
    source = open_source(paths, 1, opts);
    leat__records_pool_init(&spare, source->field_count, 2);
}

static void end(void)
{
    leat__records_pool_reset(&spare);
    leat__source_close(&source);
}

static bool next(void)
{
    return next_record(source, &spare, &run, &rec);
}

static void done(void)
{
    leat__records_pool_give(&spare, run);
}

static const leat__item *item(const char *field, uint32_t type)
{
    int f = leat__source_field_find(source, field);
    assert_true(f >= 0);
    assert_int_equal(source->fields[f].type, type);
    return &rec->items[f];
}

static void expect_text(const char *field, uint32_t type, const char *text)
{
    const leat__item *i = item(field, type);
    assert_false(i->absent);
    assert_int_equal(i->size, strlen(text));
    assert_memory_equal(leat__records_data(run, i), text, i->size);
}

static void csv_with_class_names(void **state)
{
    begin("m/list.csv",
          "path,label,score,count,note\n"
          "img/b.jpg,dog,0.5,3,\"hello, you\"\n"
          "./img/a.jpg,cat,,-4,\n",
          NULL);
    assert_int_equal(source->class_count, 2);
    assert_string_equal(source->classes[0], "cat");
    assert_int_equal(source->total, 2);
    assert_true(next());
    assert_false(rec->failed);
    assert_string_equal(leat__records_str(run, rec->key), "img/b.jpg");
    assert_int_equal(item("label", LEAT_FIELD_INT)->i, 1);
    assert_true(item("score", LEAT_FIELD_FLOAT)->f == 0.5);
    assert_int_equal(item("count", LEAT_FIELD_INT)->i, 3);
    expect_text("note", LEAT_FIELD_TEXT, "hello, you");
    expect_text("image", LEAT_FIELD_IMAGE, "bbbb");
    done();
    assert_true(next());
    assert_string_equal(leat__records_str(run, rec->key), "img/a.jpg");
    assert_int_equal(item("label", LEAT_FIELD_INT)->i, 0);
    assert_true(isnan(item("score", LEAT_FIELD_FLOAT)->f));
    assert_true(item("note", LEAT_FIELD_TEXT)->absent);
    expect_text("image", LEAT_FIELD_IMAGE, "aaa");
    done();
    assert_false(next());
    end();
}

/* Blanks around names of the header and numbers are ignored; text keeps them. */
static void csv_with_blanks(void **state)
{
    for (int shuffle = 0; shuffle < 2; shuffle++) {
        leat_ingest_opts opts = {.struct_size = sizeof opts, .shuffle = (uint32_t)shuffle};
        opts.output = in_box("blanks.leat");
        begin("m/blanks.csv",
              "path, label ,count,\" score\",note\n"
              "img/a.jpg, 10,\t2 , 0.5, so\n"
              "img/b.jpg,10 , +3,  ,so \n",
              &opts);
        assert_int_equal(source->class_count, 0);
        assert_int_equal(source->blank_labels, 0);
        for (int i = 0; i < 2; i++) {
            assert_true(next());
            assert_false(rec->failed);
            bool a = strcmp(leat__records_str(run, rec->key), "img/a.jpg") == 0;
            assert_int_equal(item("label", LEAT_FIELD_INT)->i, 10);
            assert_int_equal(item("count", LEAT_FIELD_INT)->i, a ? 2 : 3);
            assert_true(a ? item("score", LEAT_FIELD_FLOAT)->f == 0.5
                          : isnan(item("score", LEAT_FIELD_FLOAT)->f));
            expect_text("note", LEAT_FIELD_TEXT, a ? " so" : "so ");
            done();
        }
        assert_false(next());
        end();
    }
    begin("m/names.csv", "path,label\nimg/a.jpg,cat\nimg/b.jpg, cat\nimg/b.jpg,dog \n", NULL);
    assert_int_equal(source->class_count, 3);
    assert_int_equal(source->blank_labels, 2);
    assert_int_equal(source->blank_label_line, 3);
    end();
}

static void csv_with_numbers_and_bad_rows(void **state)
{
    begin("m/bad.csv",
          "filename,class\n"
          "img/a.jpg,5\n"
          "img/b.jpg\n"
          "img/x\"y.jpg,1\n"
          "img/missing.jpg,6\n"
          ",7\n"
          "././,7\n"
          "img/b.jpg,8\n",
          NULL);
    assert_int_equal(source->class_count, 0);
    static const char *const why[] = {NULL, "1 cells", "quote", "missing.jpg", "no path", "no path", NULL};
    static const int64_t labels[] = {5, 0, 0, 0, 0, 0, 8};
    for (int i = 0; i < 7; i++) {
        assert_true(next());
        assert_int_equal(rec->failed, why[i] != NULL);
        if (why[i] && !strstr(rec->error->message, why[i]))
            fail_msg("%s, not %s", rec->error->message, why[i]);
        assert_true(rec->key_size > 0);
        if (!why[i]) assert_int_equal(item("label", LEAT_FIELD_INT)->i, labels[i]);
        done();
    }
    assert_false(next());
    end();
}

static void json_lines(void **state)
{
    begin("m/list.jsonl",
          "{\"image\":\"img/a.jpg\",\"label\":3,\"box\":[1,2],\"w\":1,\"t\":\"x\"}\n"
          "not json\n"
          "[1]\n"
          "{\"image\":\"img/b.jpg\",\"label\":4,\"box\":null,\"w\":2.5,\"late\":true}\n",
          NULL);
    assert_true(next());
    assert_false(rec->failed);
    assert_int_equal(item("label", LEAT_FIELD_INT)->i, 3);
    expect_text("box", LEAT_FIELD_JSON, "[1,2]");
    expect_text("t", LEAT_FIELD_TEXT, "x");
    assert_true(item("w", LEAT_FIELD_FLOAT)->f == 1);
    assert_true(isnan(item("late", LEAT_FIELD_FLOAT)->f));
    done();
    for (int i = 0; i < 2; i++) {
        assert_true(next());
        assert_true(rec->failed);
        assert_int_equal(rec->error->code, LEAT_EDATA);
        assert_true(rec->error->offset > 0);
        done();
    }
    assert_true(next());
    assert_false(rec->failed);
    expect_text("box", LEAT_FIELD_JSON, "null");
    assert_true(item("t", LEAT_FIELD_TEXT)->absent);
    assert_true(item("late", LEAT_FIELD_FLOAT)->f == 1);
    expect_text("image", LEAT_FIELD_IMAGE, "bbbb");
    done();
    assert_false(next());
    end();
}

static void shuffled_rows_are_the_same_rows(void **state)
{
    char text[4000] = "path,label,id\n";
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), 64, "img/%c.jpg,\"c,%d\",%d\n", i & 1 ? 'a' : 'b', i % 3, i);
    leat_ingest_opts opts = {
        .struct_size = sizeof opts, .output = in_box("out.leat"), .shuffle = 1, .shuffle_seed = 3};
    begin("m/many.csv", text, &opts);
    uint64_t seen[2] = {0};
    int in_place = 0;
    for (int n = 0; next(); n++) {
        assert_false(rec->failed);
        int64_t id = item("id", LEAT_FIELD_INT)->i;
        assert_int_equal(item("label", LEAT_FIELD_INT)->i, id % 3);
        assert_string_equal(leat__records_str(run, rec->key), id & 1 ? "img/a.jpg" : "img/b.jpg");
        assert_false(seen[id / 64] >> (id % 64) & 1);
        seen[id / 64] |= UINT64_C(1) << (id % 64);
        in_place += id == n;
        done();
    }
    assert_true(seen[0] == UINT64_MAX && seen[1] == (UINT64_C(1) << 36) - 1);
    assert_true(in_place < 20);
    end();
}

/* Digits are never lost: numbers too long for int64 become text, too long for a float are an
 * error. */
static void long_numbers_are_kept(void **state)
{
    begin("m/long.csv",
          "path,id,part\n"
          "img/a.jpg,123456789012345678901234567890,9007199254740993\n"
          "img/b.jpg,7,\n",
          NULL);
    assert_true(next());
    assert_true(rec->failed);
    assert_non_null(strstr(rec->error->message, "too long for the column's floats"));
    done();
    assert_true(next());
    assert_false(rec->failed);
    expect_text("id", LEAT_FIELD_TEXT, "7");
    assert_true(isnan(item("part", LEAT_FIELD_FLOAT)->f));
    done();
    end();
}

static void a_manifest_without_paths_is_refused(void **state)
{
    put_text("m/none.csv", "name,label\nx,1\n");
    const char *paths[] = {in_box("m/none.csv")};
    leat_ingest_opts opts = {.struct_size = sizeof opts, .sources = paths, .source_count = 1};
    leat_error err = {0};
    assert_int_equal(leat__source_open(&source, &opts, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "no column"));
    assert_non_null(strstr(err.message, "of its first line are \"name\", \"label\""));
    put_text("m/empty.csv", "");
    paths[0] = in_box("m/empty.csv");
    assert_int_equal(leat__source_open(&source, &opts, &err), LEAT_EDATA);
    /* no line is JSON: the first one's error, not a missing column */
    put_text("m/nan.jsonl", "{\"path\":\"img/a.jpg\",\"s\":NaN}\n{\"path\":1,\"path\":2}\n");
    paths[0] = in_box("m/nan.jsonl");
    assert_int_equal(leat__source_open(&source, &opts, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "nan.jsonl:1: invalid token near 'NaN'"));
}

/* One odd label must not renumber the others. */
/* docs/formats.md names these columns. labels and cls are labels only with whole numbers. */
static void labels_have_several_names(void **state)
{
    for (size_t i = 0; i < LEAT__SOURCE_LABEL_NAMES; i++) {
        const char *name = leat__source_label_names[i];
        const bool numbers = strcmp(name, "labels") == 0 || strcmp(name, "cls") == 0;
        char text[128];
        for (int words = 0; words < 2; words++) {
            snprintf(text, sizeof text, "path,%s\nimg/a.jpg,%s\n", name, words ? "cat" : "7");
            begin("m/names.csv", text, NULL);
            assert_int_equal(source->label_field >= 0, !(words && numbers));
            assert_int_equal(leat__source_field_find(source, "label") >= 0, !(words && numbers));
            end();
        }
    }
    begin("m/lists.jsonl", "{\"path\":\"img/a.jpg\",\"labels\":[1,2],\"category\":3}\n", NULL);
    assert_true(next());
    assert_int_equal(item("label", LEAT_FIELD_INT)->i, 3);
    done();
    end();
}

static void numbers_and_names_do_not_mix(void **state)
{
    leat_error err = {0};
    put_text("m/odd.csv", "path,label\nimg/a.jpg,0\nimg/a.jpg,10\nimg/a.jpg,N/A\n");
    const char *paths[] = {in_box("m/odd.csv")};
    leat_ingest_opts opts = {.struct_size = sizeof opts, .sources = paths, .source_count = 1};
    leat__source *s = NULL;
    assert_int_equal(leat__source_open(&s, &opts, &err), LEAT_EDATA);
    assert_non_null(strstr(err.message, "a whole number in line 2 and other text in line 4"));
    put_text("m/odd.csv", "path,class_name\nimg/a.jpg,0\nimg/a.jpg,10\nimg/a.jpg,N/A\n");
    assert_int_equal(leat__source_open(&s, &opts, &err), 0);
    assert_int_equal(s->class_count, 3);
    leat__source_close(&s);
}

/* An empty label is an error of its row, with the line, and not a class without a name. */
static void empty_labels_are_errors(void **state)
{
    static const char *const texts[] = {
        "path,class\nimg/a.jpg,cat\nimg/b.jpg,\nimg/b.jpg,dog\n",
        "path,class\nimg/a.jpg,0\nimg/b.jpg,\nimg/b.jpg,1\n",
        "{\"path\":\"img/a.jpg\",\"class\":\"cat\"}\n{\"path\":\"img/b.jpg\",\"class\":\"\"}\n"
        "{\"path\":\"img/b.jpg\",\"class\":\"dog\"}\n",
        "{\"path\":\"img/a.jpg\",\"class\":0}\n{\"path\":\"img/b.jpg\",\"class\":null}\n"
        "{\"path\":\"img/b.jpg\",\"class\":1}\n",
        "{\"path\":\"img/a.jpg\",\"class\":0}\n{\"path\":\"img/b.jpg\"}\n"
        "{\"path\":\"img/b.jpg\",\"class\":1}\n"};
    for (size_t i = 0; i < LEAT_COUNT(texts); i++) {
        begin(i < 2 ? "m/blank.csv" : "m/blank.jsonl", texts[i], NULL);
        assert_int_equal(source->class_count, i == 0 || i == 2 ? 2 : 0);
        for (int k = 0; k < 3; k++) {
            assert_true(next());
            assert_int_equal(rec->failed, k == 1);
            if (k != 1) assert_int_equal(item("label", LEAT_FIELD_INT)->i, k / 2);
            else if (!strstr(rec->error->message, i < 2 ? "blank.csv:3: the label is empty (column class)"
                                                        : "blank.jsonl:2: the label is empty (column class)"))
                fail_msg("%zu: %s", i, rec->error->message);
            done();
        }
        assert_false(next());
        end();
    }
}

/* A column `key` is the key, not a field of that name; the same image may be there several times. */
static void rows_may_have_keys(void **state)
{
    static const char *const texts[] = {
        "path,key,note\nimg/a.jpg,first,x\nimg/a.jpg,7,y\nimg/b.jpg,,z\n",
        "{\"path\": \"img/a.jpg\", \"key\": \"first\"}\n{\"path\": \"img/a.jpg\", \"key\": 7}\n"
        "{\"path\": \"img/b.jpg\"}\n"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        static const char *const keys[] = {"first", "7"};
        begin(i == 0 ? "m/keys.csv" : "m/keys.jsonl", texts[i], NULL);
        assert_int_equal(leat__source_field_find(source, "key"), -1);
        for (int k = 0; k < 2; k++) {
            assert_true(next());
            assert_string_equal(leat__records_str(run, rec->key), keys[k]);
            done();
        }
        assert_true(next());
        assert_int_equal(rec->error->code, LEAT_EDATA);
        assert_non_null(strstr(rec->error->message, "no key"));
        done();
        end();
    }
}

/* U+0000 is kept in texts and JSON; a path, key or label ends there in C, so it is refused. */
static void json_lines_with_nul(void **state)
{
    (void)state;
    begin("m/nul.jsonl",
          "{\"path\":\"img/a.jpg\",\"class\":\"x\",\"key\":\"1\",\"t\":\"a\\u0000b\",\"j\":[\"\\u0000\"]}\n"
          "{\"path\":\"img/a.jpg\\u0000\",\"class\":\"x\",\"key\":\"2\"}\n"
          "{\"path\":\"img/a.jpg\",\"class\":\"x\\u0000y\",\"key\":\"3\"}\n"
          "{\"path\":\"img/a.jpg\",\"class\":\"x\",\"key\":\"4\\u0000\"}\n"
          "{\"path\":\"img/a.jpg\",\"class\":\"x\",\"key\":\"5\",\"a\\u0000b\":1}\n",
          NULL);
    assert_int_equal(source->class_count, 1);
    assert_true(next());
    const leat__item *t = item("t", LEAT_FIELD_TEXT);
    assert_int_equal(t->size, 3);
    assert_memory_equal(leat__records_data(run, t), "a\0b", 3);
    expect_text("j", LEAT_FIELD_JSON, "[\"\\u0000\"]");
    done();
    static const char *const why[] = {"nul.jsonl:2: a path or key with", "nul.jsonl:3: a label with",
                                      "nul.jsonl:4: a path or key with",
                                      "nul.jsonl:5: NUL byte in object key"};
    for (int i = 0; i < 4; i++) {
        assert_true(next());
        assert_true(rec->failed);
        if (!strstr(rec->error->message, why[i])) fail_msg("%d: %s", i, rec->error->message);
        done();
    }
    assert_false(next());
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_with_class_names),
        cmocka_unit_test(csv_with_blanks),
        cmocka_unit_test(rows_may_have_keys),
        cmocka_unit_test(json_lines_with_nul),
        cmocka_unit_test(csv_with_numbers_and_bad_rows),
        cmocka_unit_test(json_lines),
        cmocka_unit_test(shuffled_rows_are_the_same_rows),
        cmocka_unit_test(long_numbers_are_kept),
        cmocka_unit_test(a_manifest_without_paths_is_refused),
        cmocka_unit_test(labels_have_several_names),
        cmocka_unit_test(numbers_and_names_do_not_mix),
        cmocka_unit_test(empty_labels_are_errors),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
