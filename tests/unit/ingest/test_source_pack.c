/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest/sandbox.h"

#include <leat/pack.h>

/* A pack of n samples with a label, a ragged array and a text that may be absent. */
static void make_pack(const char *path, const char *const *classes, uint64_t class_count, int n)
{
    static const leat_field fields[] = {
        {.name = "label", .type = LEAT_FIELD_INT},
        {.name = "box", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_F32, .ndim = 2},
        {.name = "note", .type = LEAT_FIELD_TEXT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    o.fields = fields;
    o.field_count = 3;
    o.no_sync = o.replace = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, NULL), 0);
    assert_int_equal(leat_packer_classes(p, 0, classes, class_count, NULL), 0);
    for (int i = 0; i < n; i++) {
        char key[32];
        float box[8] = {(float)i, 1, 2, 3, 4, 5, 6, 7};
        leat_pack_value v[3] = {{.i = i % (int)class_count},
                                {.data = box, .size = 16u * (unsigned)(i % 3)},
                                {.data = "text", .size = 4}};
        v[1].shape[0] = (uint64_t)(i % 3);
        v[1].shape[1] = 4;
        if (i % 2) v[2] = (leat_pack_value){.absent = 1};
        snprintf(key, sizeof key, "%c%d", classes[0][0], i);
        leat_pack_sample s = {.key = key, .key_size = strlen(key), .values = v};
        assert_int_equal(leat_packer_append(p, &s, NULL), 0);
    }
    assert_int_equal(leat_packer_finish(p, NULL, NULL), 0);
    leat_packer_close(&p);
}

static const char *const first[] = {"cat", "dog"};
static const char *const second[] = {"dog", "eel", "cat"};

static void packs_are_joined_with_their_classes(void **state)
{
    make_pack(in_box("a.leat"), first, 2, 6);
    make_pack(in_box("b.leat"), second, 3, 6);
    const char *paths[] = {in_box("a.leat"), in_box("b.leat")};
    leat__source *s = open_source(paths, 2, NULL);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    assert_int_equal(s->total, 12);
    assert_int_equal(s->class_count, 3);
    assert_string_equal(s->classes[2], "eel");
    assert_non_null(leat__source_pack_of(s, 1));
    assert_null(leat__source_pack_of(s, 2));
    static const int64_t relabel[] = {1, 2, 0};
    for (int i = 0; i < 12; i++) {
        int k = i % 6;
        assert_true(next_record(s, &spare, &run, &r));
        assert_false(r->failed);
        assert_int_equal(leat__records_str(run, r->key)[0], i < 6 ? 'c' : 'd');
        assert_int_equal(r->items[0].i, i < 6 ? k % 2 : relabel[k % 3]);
        assert_int_equal(r->items[1].size, 16 * (k % 3));
        assert_int_equal(r->items[1].shape[0], k % 3);
        assert_int_equal(r->items[1].shape[1], 4);
        float f;
        if (k % 3) {
            memcpy(&f, leat__records_data(run, &r->items[1]), 4);
            assert_true(f == (float)k);
        }
        assert_int_equal(r->items[2].absent, k % 2);
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

static void lists_of_keys_and_shuffles(void **state)
{
    make_pack(in_box("a.leat"), first, 2, 6);
    put_text("keys", "c4\r\nc9\n\nc0\n");
    const char *paths[] = {in_box("a.leat")};
    leat_ingest_opts o = {.struct_size = sizeof o, .keys = in_box("keys")};
    leat__source *s = open_source(paths, 1, &o);
    leat__records_pool spare;
    leat__records *run;
    leat__record *r;
    leat__records_pool_init(&spare, s->field_count, 2);
    static const char *const want[] = {"c4", "c9", "c0"};
    for (int i = 0; i < 3; i++) {
        assert_true(next_record(s, &spare, &run, &r));
        assert_string_equal(leat__records_str(run, r->key), want[i]);
        assert_int_equal(r->failed, i == 1);
        leat__records_pool_give(&spare, run);
    }
    assert_false(next_record(s, &spare, &run, &r));
    leat__source_close(&s);
    o = (leat_ingest_opts){.struct_size = sizeof o, .shuffle = 1, .shuffle_seed = 5};
    s = open_source(paths, 1, &o);
    unsigned seen = 0;
    while (next_record(s, &spare, &run, &r)) {
        seen |= 1u << (leat__records_str(run, r->key)[1] - '0');
        leat__records_pool_give(&spare, run);
    }
    assert_int_equal(seen, 63);
    leat__records_pool_reset(&spare);
    leat__source_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_are_joined_with_their_classes),
        cmocka_unit_test(lists_of_keys_and_shuffles),
    };
    return cmocka_run_group_tests(tests, sandbox_open, sandbox_close);
}
