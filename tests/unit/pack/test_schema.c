/* SPDX-License-Identifier: Apache-2.0
 *
 * Schemas: conversion to text and back, refused input, cells and their bounds.
 */
#include "packtest.h"

#include "base/bytes.h"
#include "pack/layout.h"
#include "pack/schema.h"

static void test_round_trip(void **state)
{
    leat__schema *s, *t;
    leat_error err;
    leat__buf a, b;
    leat__buf_init(&a, LEAT__MEM_PACK, 1 << 20);
    leat__buf_init(&b, LEAT__MEM_PACK, 1 << 20);
    assert_int_equal(leat__schema_make(&s, pt_fields, PT_FIELDS, &err), 0);
    assert_int_equal(leat__schema_json(s, &a), 0);
    assert_int_equal(leat__schema_parse(&t, a.data, a.len, &err), 0);
    assert_int_equal(leat__schema_json(t, &b), 0);
    assert_string_equal(a.data, b.data);
    assert_int_equal(t->count, PT_FIELDS);
    assert_int_equal(t->row_bytes, 32 + 8 + 8 + 32 + 16 * 5);
    assert_int_equal(leat__field_array_bytes(&t->fields[PT_VEC]), 24);
    assert_int_equal(leat__field_shape_bytes(&t->fields[PT_BOXES]), 16);
    leat__schema_close(&s);
    leat__schema_close(&t);
    leat__buf_reset(&a);
    leat__buf_reset(&b);
}

static void test_names(void **state)
{
    assert_string_equal(leat_dtype_name(LEAT_DTYPE_BF16), "bf16");
    assert_int_equal(leat_dtype_size(LEAT_DTYPE_F64), 8);
    assert_int_equal(leat_dtype_size(99), 0);
    assert_null(leat_dtype_name(99));
    assert_string_equal(leat_field_type_name(LEAT_FIELD_RAGGED), "ragged");
    assert_null(leat_field_type_name(99));
}

static void test_refused_fields(void **state)
{
    leat__schema *s;
    leat_error err;
    char long_name[5000];
    memset(long_name, 'a', sizeof long_name);
    long_name[4999] = '\0';
    const struct {
        leat_field f[2];
        uint32_t n;
        int code;
    } cases[] = {
        {{{.name = "", .type = LEAT_FIELD_INT}}, 1, LEAT_EINVAL},
        {{{.name = NULL, .type = LEAT_FIELD_INT}}, 1, LEAT_EINVAL},
        {{{.name = long_name, .type = LEAT_FIELD_INT}}, 1, LEAT_EINVAL},
        {{{.name = "\xff", .type = LEAT_FIELD_INT}}, 1, LEAT_EINVAL},
        {{{.name = "a", .type = 99}}, 1, LEAT_EFORMAT},
        {{{.name = "a", .type = LEAT_FIELD_ARRAY, .dtype = 99}}, 1, LEAT_EFORMAT},
        {{{.name = "a", .type = LEAT_FIELD_RAGGED, .dtype = 1, .ndim = 9}}, 1, LEAT_ELIMIT},
        {{{.name = "a",
           .type = LEAT_FIELD_ARRAY,
           .dtype = 13,
           .ndim = 3,
           .shape = {1u << 31, 1u << 31, 1u << 31}}},
         1,
         LEAT_EOVERFLOW},
        {{{.name = "a", .type = LEAT_FIELD_INT}, {.name = "a", .type = LEAT_FIELD_TEXT}}, 2, LEAT_EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(leat__schema_make(&s, cases[i].f, cases[i].n, &err), cases[i].code);
        assert_null(s);
    }
}

static void test_refused_texts(void **state)
{
    leat__schema *s;
    leat_error err;
    const char *const texts[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"version\":2,\"fields\":[]}",
        "{\"version\":1}",
        "{\"version\":1,\"fields\":[1]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\"}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"pickle\"}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"array\"}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"array\",\"dtype\":\"f32\"}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"array\",\"dtype\":\"f32\",\"shape\":[-1]}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"array\",\"dtype\":\"x\",\"shape\":[1]}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"ragged\",\"dtype\":\"f32\",\"ndim\":9}]}",
        "{\"version\":1,\"fields\":[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"a\",\"type\":\"int\"}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(leat__schema_parse(&s, texts[i], strlen(texts[i]), &err) < 0);
        assert_null(s);
        assert_int_equal(err.code < 0, 1);
    }
    /* keys of a later minor version are ignored */
    const char *later = "{\"version\":1,\"new\":[],\"fields\":[{\"name\":\"a\",\"type\":"
                        "\"int\",\"unit\":\"m\"}]}";
    assert_int_equal(leat__schema_parse(&s, later, strlen(later), &err), 0);
    leat__schema_close(&s);
}

static void test_cells(void **state)
{
    const leat_field image = {.name = "i", .type = LEAT_FIELD_IMAGE};
    const leat_field bytes = {.name = "b", .type = LEAT_FIELD_BYTES};
    const leat_field ragged = {.name = "r", .type = LEAT_FIELD_RAGGED, .dtype = LEAT_DTYPE_U8, .ndim = 3};
    uint8_t b[32] = {0};
    leat_pack_cell in = {.start = 32, .length = 100, .image = {7, 8, 1, 3, 6, 2, 999}}, out;
    leat__cell_store(&image, b, &in);
    assert_true(leat__cell_load(&image, b, 132, &out));
    assert_memory_equal(&in, &out, sizeof in);
    assert_false(leat__cell_load(&image, b, 131, &out)); /* past the end of its sample */
    leat__store_u64(b, 33);
    assert_false(leat__cell_load(&bytes, b, 1000, &out)); /* not aligned to 16 bytes */
    leat__store_u64(b, UINT64_MAX - 15);
    assert_false(leat__cell_load(&bytes, b, 1000, &out));
    in.absent = 1;
    leat__cell_store(&bytes, b, &in);
    assert_true(leat__cell_load(&bytes, b, 0, &out));
    assert_int_equal(out.absent, 1);
    assert_int_equal(out.length, 0);
    leat__store_u64(b, 0);
    leat__store_u64(b + 8, 31);
    assert_false(leat__cell_load(&ragged, b, 100, &out)); /* no room for its shape */
    leat__store_u64(b + 8, 32);
    assert_true(leat__cell_load(&ragged, b, 100, &out));
}

static void entries_are_a_view_or_nothing(void **state)
{
    uint8_t sample[64] = {0};
    size_t size = 9;
    leat_pack_cell cell = {.start = 16, .length = 5};
    leat__store_u32(sample + 32, 7);
    assert_null(leat__cell_entries(&cell, sample, sizeof sample, &size)); /* no flag */
    assert_int_equal(size, 0);
    cell.image.flags = LEAT_PACK_IMAGE_ENTRIES;
    assert_ptr_equal(leat__cell_entries(&cell, sample, sizeof sample, &size), sample + 36);
    assert_int_equal(size, 7);
    assert_non_null(leat__cell_entries(&cell, sample, 43, &size));
    for (uint64_t end = 21; end < 43; end++) /* truncated anywhere */
        assert_null(leat__cell_entries(&cell, sample, end, &size));
    for (uint32_t bad = 29; bad != 0; bad *= 2) { /* longer than the sample */
        leat__store_u32(sample + 32, bad);
        assert_null(leat__cell_entries(&cell, sample, sizeof sample, &size));
    }
    leat__store_u32(sample + 32, 0);
    assert_null(leat__cell_entries(&cell, sample, sizeof sample, &size));
    leat__store_u32(sample + 32, 7);
    cell.absent = 1;
    assert_null(leat__cell_entries(&cell, sample, sizeof sample, &size));
    cell.absent = 0;
    cell.length = UINT64_MAX - 16; /* load would have refused it */
    assert_null(leat__cell_entries(&cell, sample, sizeof sample, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_a_view_or_nothing),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_refused_fields),
        cmocka_unit_test(test_refused_texts),
        cmocka_unit_test(test_cells),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
