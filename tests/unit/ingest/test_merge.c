/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging packs: equal keys under every rule, against a model; names, fields and classes that do not fit.
 */
#include "sandbox.h"

#include <leat/pack.h>

#include "ingest/merge.h"

/* A pack with the keys, whose labels are `first`, `first` + 1 … `flip`: its fields in the other order. */
static void make(const char *path, const char *const *keys, int n, int first, bool flip)
{
    leat_field fields[2] = {{.name = "label", .type = LEAT_FIELD_INT},
                            {.name = "note", .type = LEAT_FIELD_TEXT}};
    leat_packer_opts o = LEAT_PACKER_OPTS_INIT;
    leat_packer *p = NULL;
    leat_error err = {0};
    if (flip) {
        leat_field f = fields[0];
        fields[0] = fields[1];
        fields[1] = f;
    }
    o.fields = fields;
    o.field_count = 2;
    o.no_sync = o.replace = 1;
    assert_int_equal(leat_packer_open(&p, path, &o, &err), 0);
    for (int i = 0; i < n; i++) {
        leat_pack_value v[2] = {0};
        v[flip].i = first + i;
        v[!flip].data = keys[i];
        v[!flip].size = strlen(keys[i]);
        leat_pack_sample s = {.key = keys[i], .key_size = strlen(keys[i]), .values = v};
        assert_int_equal(leat_packer_append(p, &s, &err), 0);
    }
    assert_int_equal(leat_packer_finish(p, NULL, &err), 0);
    leat_packer_close(&p);
}

static const char *const in_a[] = {"x/1.jpg", "x/2.jpg", "y", "z.b/c", "y-2"};
static const char *const in_b[] = {"n", "x/2.jpg", "y", "y", "z.b/c", ".d"};
static const char *const in_c[] = {"y", ".d", "m"};

static int merge(uint32_t keys, const char *where, leat_ingest_stats *st, leat_error *err)
{
    const char *paths[] = {in_box("a.leat"), in_box("b.leat"), in_box("c.leat")};
    leat_ingest_opts o;
    make(paths[0], in_a, LEAT_COUNT(in_a), 0, false);
    make(paths[1], in_b, LEAT_COUNT(in_b), 10, true);
    make(paths[2], in_c, LEAT_COUNT(in_c), 20, false);
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 3;
    o.output = in_box("m.leat");
    o.merge = keys;
    o.where = where;
    o.no_sync = o.replace = 1;
    *st = (leat_ingest_stats){.struct_size = sizeof *st};
    return leat_ingest(&o, st, err);
}

/* The merged pack has these samples, "KEY LABEL" each, in this order. */
static void has(const char *const *want, uint64_t n)
{
    leat_pack *pack;
    leat_error err = {0};
    assert_int_equal(leat_pack_open(&pack, in_box("m.leat"), NULL, &err), 0);
    assert_int_equal(leat_pack_count(pack), n);
    for (uint64_t i = 0; i < n; i++) {
        char key[64], line[96];
        size_t size;
        int64_t label;
        assert_int_equal(leat_pack_key(pack, i, key, sizeof key, &size, &err), 0);
        assert_int_equal(leat_pack_ints(pack, 0, i, 1, &label, &err), 0);
        snprintf(line, sizeof line, "%.*s %d", (int)size, key, (int)label);
        assert_string_equal(line, want[i]);
    }
    leat_pack_close(&pack);
}

static void equal_keys_are_settled_by_every_rule(void **state)
{
    leat_ingest_stats st;
    leat_error err = {0};
    static const char *const first[] = {"x/1.jpg 0", "x/2.jpg 1", "y 2",   "z.b/c 3",
                                        "y-2 4",     "n 10",      ".d 15", "m 22"};
    static const char *const last[] = {"x/1.jpg 0", "y-2 4", "n 10",  "x/2.jpg 11",
                                       "z.b/c 14",  "y 20",  ".d 21", "m 22"};
    static const char *const renamed[] = {"x/1.jpg 0", "x/2.jpg 1",    "y 2",     "z.b/c 3", "y-2 4",
                                          "n 10",      "x/2-2.jpg 11", "y-3 12",  "y-4 13",  "z.b/c-2 14",
                                          ".d 15",     "y-5 20",       ".d-2 21", "m 22"};
    assert_int_equal(merge(LEAT_MERGE_FIRST, NULL, &st, &err), 0);
    has(first, LEAT_COUNT(first));
    assert_int_equal(st.existing, 6);
    assert_int_equal(merge(LEAT_MERGE_LAST, NULL, &st, &err), 0);
    has(last, LEAT_COUNT(last));
    assert_int_equal(st.existing, 6);
    assert_int_equal(merge(LEAT_MERGE_RENAME, NULL, &st, &err), 0);
    has(renamed, LEAT_COUNT(renamed));
    assert_int_equal(st.existing, 6);
    assert_int_equal(st.duplicate_keys, 0);
    assert_int_equal(merge(LEAT_MERGE_ERROR, NULL, &st, &err), LEAT_EEXIST);
    assert_non_null(strstr(err.message, "\"x/2.jpg\" is the key of a sample in"));
    assert_non_null(strstr(err.message, "b.leat"));
    has(renamed, LEAT_COUNT(renamed)); /* the pack that was there stays */
}

static void conditions_come_before_equal_keys(void **state)
{
    leat_ingest_stats st;
    leat_error err = {0};
    static const char *const want[] = {"n 10", "x/2.jpg 11", "y 12", "z.b/c 14", ".d 15"};
    assert_int_equal(merge(LEAT_MERGE_FIRST, "10 <= label < 16", &st, &err), 0);
    has(want, LEAT_COUNT(want));
    assert_int_equal(st.existing, 1);
    assert_int_equal(st.filtered, 8);
    assert_int_equal(merge(LEAT_MERGE_ERROR, "label < 10", &st, &err), 0);
    assert_int_equal(st.samples, LEAT_COUNT(in_a));
    assert_int_equal(merge(LEAT_MERGE_FIRST, "label > 99", &st, &err), LEAT_EDATA);
}

static void fields_that_do_not_fit_are_named(void **state)
{
    static const leat_field other[] = {{.name = "label", .type = LEAT_FIELD_FLOAT}};
    const char *paths[] = {in_box("a.leat"), in_box("f.leat")};
    leat_packer_opts p = LEAT_PACKER_OPTS_INIT;
    leat_packer *packer = NULL;
    leat_error err = {0};
    leat_ingest_opts o;
    make(paths[0], in_a, 3, 0, false);
    p.fields = other;
    p.field_count = 1;
    p.no_sync = 1;
    assert_int_equal(leat_packer_open(&packer, paths[1], &p, &err), 0);
    assert_int_equal(leat_packer_append(
                         packer,
                         &(leat_pack_sample){.key = "k", .key_size = 1, .values = &(leat_pack_value){.f = 1}},
                         &err),
                     0);
    assert_int_equal(leat_packer_finish(packer, NULL, &err), 0);
    leat_packer_close(&packer);
    leat_ingest_opts_init(&o);
    o.sources = paths;
    o.source_count = 2;
    o.output = in_box("m.leat");
    o.merge = LEAT_MERGE_FIRST;
    assert_int_equal(leat_ingest(&o, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "field 'label' is int in"));
    assert_non_null(strstr(err.message, "and float in"));
    paths[0] = in_box("f.leat");
    paths[1] = in_box("f.leat");
    assert_int_equal(leat_ingest(&o, NULL, &err), 0); /* the same pack twice */
    for (uint32_t bad = 0; bad < 3; bad++) {
        leat_ingest_opts b = o;
        if (bad == 0) b.merge = LEAT_MERGE_RENAME + 1;
        else if (bad == 1) b.quality = 90;
        else b.append = LEAT_APPEND_SKIP;
        assert_int_equal(leat_ingest(&b, NULL, &err), LEAT_EINVAL);
    }
}

static void names_get_numbers_before_their_ending(void **state)
{
    static const char *const pairs[][2] = {{"a.jpg", "a-12.jpg"}, {"a", "a-12"},   {"d.e/a", "d.e/a-12"},
                                           {"d/.a", "d/.a-12"},   {".a", ".a-12"}, {"a.b.png", "a.b-12.png"},
                                           {"", "-12"},           {"a.", "a-12."}};
    for (size_t i = 0; i < LEAT_COUNT(pairs); i++) {
        leat__buf key;
        leat__buf_init(&key, LEAT__MEM_INGEST, 1u << 10);
        assert_int_equal(leat__buf_puts(&key, pairs[i][0]), 0);
        assert_int_equal(leat__merge_rename(&key, 12, NULL), 0);
        assert_int_equal(key.len, strlen(pairs[i][1]));
        assert_memory_equal(key.data, pairs[i][1], key.len);
        leat__buf_reset(&key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_keys_are_settled_by_every_rule, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(conditions_come_before_equal_keys, sandbox_open, sandbox_close),
        cmocka_unit_test_setup_teardown(fields_that_do_not_fit_are_named, sandbox_open, sandbox_close),
        cmocka_unit_test(names_get_numbers_before_their_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
