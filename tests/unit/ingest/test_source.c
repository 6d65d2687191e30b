/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

static const leat__source_ops no_ops;

static void close_nothing(leat__source *s)
{
}

static leat__source *bare(void)
{
    static leat__source_ops ops;
    leat_ingest_opts o = {.struct_size = sizeof o, .max_sample_bytes = 10};
    ops = no_ops;
    ops.close = close_nothing;
    leat__source *s = leat__source_new(&ops, sizeof *s, &o);
    assert_non_null(s);
    return s;
}

static void fields_have_one_name_each(void **state)
{
    leat__source *s = bare();
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "field%d", i);
        assert_int_equal(leat__source_field(s, name, LEAT_FIELD_TEXT, NULL), i);
    }
    assert_int_equal(leat__source_field_find(s, "field7"), 7);
    assert_int_equal(leat__source_field_find(s, "field"), -1);
    assert_int_equal(leat__source_field(s, "field3", LEAT_FIELD_INT, NULL), LEAT_EDATA);
    leat__source_close(&s);
}

static void classes_are_sorted_by_bytes_and_unique(void **state)
{
    static const char *const names[] = {"b", "B", "10", "9", "b", "\xc3\xa4", "B"};
    leat__source *s = bare();
    for (int i = 0; i < 7; i++) assert_true(leat__source_class(s, names[i], NULL) >= 0);
    leat__source_classes_sort(s);
    assert_int_equal(s->class_count, 5);
    static const char *const want[] = {"10", "9", "B", "b", "\xc3\xa4"};
    for (int i = 0; i < 5; i++) {
        assert_string_equal(s->classes[i], want[i]);
        assert_int_equal(leat__source_class_find(s, want[i]), i);
    }
    assert_int_equal(leat__source_class_find(s, "c"), -1);
    leat__source_close(&s);
}

static void files_over_the_limit_are_refused(void **state)
{
    leat__source *s = bare();
    leat__records_pool spare;
    leat_error err = {0};
    leat__records_pool_init(&spare, 1, 1);
    put_text("ten", "0123456789");
    put_text("eleven", "0123456789a");
    leat__records *run = leat__records_pool_take(&spare);
    leat__record *r = leat__records_add(run);
    r->path = leat__records_text(run, in_box("ten"), strlen(in_box("ten")));
    assert_int_equal(leat__source_load_file(s, run, r, &err), 0);
    assert_memory_equal(leat__records_data(run, &r->items[0]), "0123456789", 10);
    r = leat__records_add(run);
    r->path = leat__records_text(run, in_box("eleven"), strlen(in_box("eleven")));
    assert_int_equal(leat__source_load_file(s, run, r, &err), LEAT_ELIMIT);
    assert_non_null(strstr(err.message, "eleven"));
    leat__records_pool_give(&spare, run);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static void kinds_are_detected_by_path(void **state)
{
    put_text("k/a/x.jpg", "x");
    put_text("k.csv", "path\nx\n");
    leat__buf t;
    leat__buf_init(&t, LEAT__MEM_INGEST, 1u << 20);
    tar_text(&t, "1.txt", "x");
    tar_end(&t);
    put_file("k.TAR", t.data, t.len);
    leat__buf_reset(&t);
    const struct {
        const char *path, *kind;
    } cases[] = {{in_box("k"), "folder"}, {in_box("k.csv"), "manifest"}, {in_box("k.TAR"), "tar"}};
    for (int i = 0; i < 3; i++) {
        leat__source *s = open_source(&cases[i].path, 1, NULL);
        assert_string_equal(s->ops->kind, cases[i].kind);
        assert_null(leat__source_pack_of(s, 0));
        leat__source_close(&s);
    }
    const char *mixed[] = {cases[0].path, cases[1].path};
    leat_ingest_opts o = {.struct_size = sizeof o, .sources = mixed, .source_count = 2};
    leat__source *s = NULL;
    leat_error err = {0};
    assert_int_equal(leat__source_open(&s, &o, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "different kinds"));
    o.sources = &cases[2].path;
    o.source_count = 1;
    o.shuffle = 1;
    assert_int_equal(leat__source_open(&s, &o, &err), LEAT_EINVAL);
}

/* Without the Python package they would become folders of classes, without boxes and values. */
static void folders_of_other_formats_are_refused(void **state)
{
    put_text("voc/Annotations/1.xml", "x");
    put_text("voc/JPEGImages/1.jpg", "x");
    put_text("lmdb/data.mdb", "x");
    put_text("lmdb/1.jpg", "x");
    put_text("photos/JPEGImages/1.jpg", "x");
    static const char *const names[] = {"voc", "lmdb", "photos"};
    for (int i = 0; i < 3; i++) {
        const char *path = in_box(names[i]);
        leat_ingest_opts o = {.struct_size = sizeof o, .sources = &path, .source_count = 1};
        leat__source *s = NULL;
        leat_error err = {0};
        assert_int_equal(leat__source_open(&s, &o, &err), i < 2 ? LEAT_ENOTSUP : 0);
        if (i < 2) assert_non_null(strstr(err.message, "read by the Python package"));
        leat__source_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_have_one_name_each),
        cmocka_unit_test(classes_are_sorted_by_bytes_and_unique),
        cmocka_unit_test(files_over_the_limit_are_refused),
        cmocka_unit_test(kinds_are_detected_by_path),
        cmocka_unit_test(folders_of_other_formats_are_refused),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
