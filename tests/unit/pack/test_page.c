/* SPDX-License-Identifier: Apache-2.0
 *
 * The page builder: positions, padding, and when a page is full.
 */
#include "packtest.h"

#include "base/hash.h"
#include "base/num.h"
#include "pack/page.h"

static const leat_field two[] = {{.name = "a", .type = LEAT_FIELD_BYTES},
                                 {.name = "b", .type = LEAT_FIELD_BYTES}};

static leat_pack_sample sample(leat_pack_value v[2], size_t a, size_t b, const char *key)
{
    static uint8_t bytes[200000];
    memset(bytes, 0xab, sizeof bytes);
    v[0] = (leat_pack_value){.data = bytes, .size = a};
    v[1] = (leat_pack_value){.data = bytes, .size = b};
    return (leat_pack_sample){.key = key, .key_size = strlen(key), .values = v, .marks = {a, b}};
}

static void test_places(void **state)
{
    leat__schema *schema;
    leat__page *p;
    leat_error err;
    leat_pack_value v[2];
    leat__sample_entry e;
    leat_pack_cell c;
    assert_int_equal(leat__schema_make(&schema, two, 2, &err), 0);
    assert_int_equal(leat__page_open(&p, schema, 65536, &err), 0);
    leat_pack_sample s = sample(v, 5, 7, "one");
    assert_int_equal(leat__page_add(p, &s, &err), 0);
    s = sample(v, 17, 0, "two");
    assert_int_equal(leat__page_add(p, &s, &err), 0);
    leat__page_seal(p);
    assert_int_equal(p->samples, 2);
    assert_int_equal(p->bytes, 64);
    assert_int_equal(p->payload, 23 + 32);
    assert_int_equal(p->marks[0], 17);
    const uint8_t *row = (const uint8_t *)p->rows.data;
    leat__sample_entry_load(row, &e);
    assert_int_equal(e.offset, 0);
    assert_int_equal(e.size, 16 + 7);
    assert_int_equal(e.key_end, 3);
    assert_int_equal(e.check, leat__hash64(p->data, 23, 0));
    assert_true(leat__cell_load(&two[1], row + 48, e.size, &c));
    assert_int_equal(c.start, 16);
    assert_int_equal(c.length, 7);
    leat__sample_entry_load(row + 64, &e);
    assert_int_equal(e.offset, 32);
    assert_int_equal(e.size, 32);  /* an empty payload is aligned to 16 too */
    for (int i = 0; i < 64; i++) { /* zeros wherever there is no payload */
        bool payload = i < 5 || (i >= 16 && i < 23) || (i >= 32 && i < 49);
        assert_int_equal(p->data[i], payload ? 0xab : 0);
    }
    assert_int_equal(p->check, leat__hash64(p->data, 64, 0));
    s = sample(v, 1, 1, "late");
    assert_int_equal(leat__page_add(p, &s, &err), LEAT_ESTATE);
    leat__page_clear(p);
    assert_int_equal(leat__page_add(p, &s, &err), 0);
    leat__page_close(&p);
    leat__schema_close(&schema);
}

static void test_full(void **state)
{
    leat__schema *schema;
    leat__page *p;
    leat_error err;
    leat_pack_value v[2];
    uint64_t size;
    assert_int_equal(leat__schema_make(&schema, two, 2, &err), 0);
    assert_int_equal(leat__page_open(&p, schema, 65536, &err), 0);
    leat_pack_sample s = sample(v, 150000, 0, "big");
    assert_int_equal(leat__sample_measure(schema, &s, &size, &err), 0);
    assert_true(leat__page_fits(p, &s, size)); /* an empty page fits everything */
    assert_int_equal(leat__page_add(p, &s, &err), 0);
    s = sample(v, 0, 0, "empty");
    assert_int_equal(leat__sample_measure(schema, &s, &size, &err), 0);
    assert_int_equal(size, 0);
    assert_false(leat__page_fits(p, &s, size));
    leat__page_seal(p);
    assert_int_equal(p->bytes, 150000); /* already a multiple of 16 */
    leat__page_clear(p);
    assert_int_equal(p->capacity, 0); /* the large buffer is not kept */
    s = sample(v, 65536 - 16, 16, "exact");
    assert_int_equal(leat__sample_measure(schema, &s, &size, &err), 0);
    assert_int_equal(size, 65536);
    assert_int_equal(leat__page_add(p, &s, &err), 0);
    s = sample(v, 1, 0, "x");
    assert_false(leat__page_fits(p, &s, 16));
    leat__page_seal(p);
    assert_int_equal(p->bytes, 65536);
    leat__page_clear(p);
    s = sample(v, 0, 0, "");
    for (uint32_t i = 0; i < LEAT__PAGE_SAMPLES_MAX; i++) {
        assert_true(leat__page_fits(p, &s, 0));
        assert_int_equal(leat__page_add(p, &s, &err), 0);
    }
    assert_false(leat__page_fits(p, &s, 0));
    leat__page_seal(p);
    assert_int_equal(p->bytes, 16); /* even when it is empty */
    leat__page_close(&p);
    leat__schema_close(&schema);
}

static void test_json(void **state)
{
    static char deep[6000];
    static const struct {
        const char *text, *fault;
    } rows[] = {{"\"a\\u0000b\"", NULL},
                {"{\"a\": [\"\\u0000\"]}", NULL},
                {"123456789012345678901234567890", NULL}, /* beyond 64 bits */
                {"{\"a\\u0000b\": 1}", "name with \\u0000"},
                {"1e999", "too large"},
                {deep, "nested too deeply"},
                {"[1", "not a JSON value"},
                {"NaN", "not a JSON value"},
                {"", "not a JSON value"}};
    (void)state;
    memset(deep, '[', 3000);
    memset(deep + 3000, ']', 2999);
    for (size_t i = 0; i < LEAT_COUNT(rows); i++) {
        const char *fault = leat__page_json_fault(rows[i].text, strlen(rows[i].text));
        assert_int_equal(fault == NULL, rows[i].fault == NULL);
        if (fault && !strstr(fault, rows[i].fault)) fail_msg("%zu: %s", i, fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_full),
                                       cmocka_unit_test(test_json)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed != 0 || leat__mem_blocks() != 0;
}
