/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include "ingest/source_reader.h"

static const leat_field fields[] = {
    {.name = "image", .type = LEAT_FIELD_IMAGE},
    {.name = "label", .type = LEAT_FIELD_INT},
    {.name = "v", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_U8, .ndim = 1},
    {.name = "j", .type = LEAT_FIELD_JSON},
    {.name = "kind", .type = LEAT_FIELD_INT}};
static const char *const names[] = {"b", "a"}; /* their order is kept */
static const char *const kinds[] = {"c"};
static const leat__reader_classes classes[5] = {
    [1] = {.names = names, .count = 2}, [4] = {.names = kinds, .count = 1}};
static int at, closed;
static char path[512];

static int next(void *cookie, leat__row *row, bool *end, leat_error *err)
{
    static leat_pack_value values[5];
    assert_ptr_equal(cookie, &at);
    memset(values, 0, sizeof values);
    *end = at == 5;
    if (at == 3 && path[0] == 'x') return leat__fail(err, LEAT_EDATA, "broken in the middle");
    if (*end) return 0;
    row->key = "k";
    row->key_size = 1;
    if (at == 1) row->wrong = "this one cannot be read";
    if (at == 2) row->path = in_box("file");
    values[0] = (leat_pack_value){.data = "img", .size = 3, .absent = at == 2};
    values[1].i = at;
    values[2] = (leat_pack_value){.data = "1234", .size = 4, .shape = {4}};
    values[3] =
        (leat_pack_value){.data = at == 4 ? "{\"\\u0000\":1}" : "\"\\u0000\"", .size = at == 4 ? 12 : 8};
    row->values = values;
    at++;
    return 0;
}

static void close_it(void *cookie)
{
    (void)cookie;
    closed++;
}

static int open_it(leat__reader *r, const char *const *paths, uint32_t count, const char *members,
                   leat_error *err)
{
    (void)count, (void)members, (void)err;
    if (strstr(paths[0], ".mine") == NULL) return LEAT_EAGAIN;
    at = 0;
    *r = (leat__reader){.kind = "mine",
                        .fields = fields,
                        .field_count = 5,
                        .classes = classes,
                        .total = 5,
                        .ignored = 2,
                        .ignored_first = ".x",
                        .cookie = &at,
                        .next = next,
                        .close = close_it};
    return 0;
}

static void rows_become_records(void **state)
{
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    (void)state;
    put_text("a.mine", "x");
    put_text("file", "from a file");
    leat__reader_register(open_it);
    const char *paths[] = {in_box("a.mine")};
    leat_ingest_opts o;
    leat__source *s = NULL;
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 1;
    assert_int_equal(leat__source_open(&s, &o, NULL), 0);
    assert_string_equal(s->ops->kind, "mine");
    assert_int_equal(s->image_field, 0);
    assert_int_equal(s->label_field, 1);
    assert_int_equal(s->ignored, 2);
    assert_string_equal(s->ignored_first, ".x");
    assert_true(s->takes_members);
    assert_string_equal(s->classes[0], "b");
    const char *const *other;
    uint64_t count;
    assert_int_equal(s->ops->class_names(s, 4, &other, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_string_equal(other[0], "c");
    leat__records_pool_init(&spare, 4, 2);
    for (int i = 0; i < 5; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_int_equal(r->failed, i == 1 || i == 4);
        if (i == 1) assert_string_equal(r->error->message, "this one cannot be read");
        if (i == 4) {
            assert_int_equal(r->error->code, LEAT_EDATA);
            assert_non_null(strstr(r->error->message, "field 'j': a JSON object has a name with"));
        }
        if (i != 1) {
            assert_int_equal(r->items[1].i, i);
            assert_int_equal(r->items[2].shape[0], 4);
            const char *wanted = i == 2 ? "from a file" : "img";
            assert_memory_equal(leat__records_data(run, &r->items[0]), wanted, strlen(wanted));
        }
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
    assert_int_equal(closed, 1);
}

static void unknown_paths_are_left_to_other_kinds(void **state)
{
    leat_ingest_opts o;
    leat__source *s = NULL;
    leat_error err = {0};
    (void)state;
    put_text("a.beton", "x");
    put_text("a.mine", "x");
    const char *paths[] = {in_box("a.beton")};
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 1;
    leat__reader_register(open_it);
    assert_int_equal(leat__source_open(&s, &o, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "python -m leat pack"));
    paths[0] = in_box("a.mine");
    o.shuffle = 1;
    assert_int_equal(leat__source_open(&s, &o, &err), LEAT_EINVAL);
    assert_null(s);
    leat__reader_register(NULL);
    o.shuffle = 0;
    assert_int_equal(leat__source_open(&s, &o, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "not a folder"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_become_records, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(unknown_paths_are_left_to_other_kinds, sandbox_open, sandbox_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
