/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include <jansson.h>
#include <math.h>

#include "base/json.h"
#include "base/num.h"
#include "base/rng.h"

static void nesting_commas_and_escapes(void **state)
{
    leat__buf b;
    leat__json j;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    leat__json_init(&j, &b, 0);
    leat__json_object(&j);
    leat__json_kstr(&j, "a\"b", "tab\there\nquote\" back\\ \x01 \x7f");
    leat__json_key(&j, "list");
    leat__json_array(&j);
    leat__json_u64(&j, UINT64_MAX);
    leat__json_i64(&j, INT64_MIN);
    leat__json_null(&j);
    leat__json_bool(&j, true);
    leat__json_object(&j);
    leat__json_end(&j);
    leat__json_array(&j);
    leat__json_end(&j);
    leat__json_end(&j);
    leat__json_ku64(&j, "u", 3);
    leat__json_ki64(&j, "i", -3);
    leat__json_kdouble(&j, "d", 0.1);
    leat__json_kbool(&j, "f", false);
    leat__json_kstr(&j, "n", NULL);
    leat__json_end(&j);
    assert_string_equal(b.data, "{\"a\\\"b\":\"tab\\there\\nquote\\\" back\\\\ \\u0001 \\u007f\","
                                "\"list\":[18446744073709551615,-9223372036854775808,null,true,{},[]],"
                                "\"u\":3,\"i\":-3,\"d\":0.1,\"f\":false,\"n\":null}");
    leat__buf_reset(&b);
    assert_no_leaks();
}

static void bad_bytes_become_replacement_characters(void **state)
{
    leat__buf b;
    leat__json j;
    json_error_t err;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    leat__json_init(&j, &b, 0);
    leat__json_str(&j, "ok \xc3\xa9 bad \xff\xfe cut \xe2\x82");
    json_t *read = json_loads(b.data, JSON_DECODE_ANY, &err);
    assert_non_null(read);
    assert_string_equal(json_string_value(read),
                        "ok \xc3\xa9 bad \xef\xbf\xbd\xef\xbf\xbd cut \xef\xbf\xbd\xef\xbf\xbd");
    json_decref(read);
    leat__buf_reset(&b);
}

static void numbers_read_back_equal(void **state)
{
    static const double values[] = {
        0, -0.0, 1.0 / 3, 1e-300, 123456789.123456789, 1e22, 5e-324, 1.7976931348623157e308};
    leat__buf b;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        leat__json j;
        leat__buf_clear(&b);
        leat__json_init(&j, &b, 0);
        leat__json_double(&j, values[i]);
        assert_true(strtod(b.data, NULL) == values[i]);
    }
    leat__json j;
    leat__buf_clear(&b);
    leat__json_init(&j, &b, 0);
    leat__json_array(&j);
    leat__json_double(&j, NAN);
    leat__json_double(&j, INFINITY);
    leat__json_end(&j);
    assert_string_equal(b.data, "[null,null]");
    leat__buf_reset(&b);
}

static void indented_output_parses(void **state)
{
    leat__buf b;
    leat__json j;
    (void)state;
    leat__buf_init(&b, LEAT__MEM_MISC, 4096);
    leat__json_init(&j, &b, 2);
    leat__json_object(&j);
    leat__json_key(&j, "a");
    leat__json_array(&j);
    leat__json_u64(&j, 1);
    leat__json_u64(&j, 2);
    leat__json_end(&j);
    leat__json_end(&j);
    assert_string_equal(b.data, "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
    leat__buf_reset(&b);
}

static void numbers_without_a_writer(void **state)
{
    static const struct {
        double value;
        const char *text;
    } known[] = {
        {0, "0"},       {7, "7"},          {999999999, "999999999"}, {1234567890123.0, "1234567890123"},
        {-2.5, "-2.5"}, {0.1, "0.1"},      {1e-5, "1e-05"},          {1 / 3.0, "0.3333333333333333"},
        {NAN, "null"},  {INFINITY, "null"}};
    leat__buf b;
    leat__buf_init(&b, LEAT__MEM_MISC, 1000);
    for (size_t i = 0; i < LEAT_COUNT(known); i++) {
        leat__buf_clear(&b);
        leat__json_number(&b, known[i].value);
        assert_string_equal(leat__buf_str(&b), known[i].text);
    }
    for (int over = 1; over < 200; over++) {
        leat__buf_clear(&b);
        leat__json_number(&b, over / 197.0);
        assert_true(strtod(leat__buf_str(&b), NULL) == over / 197.0);
    }
    leat__buf_reset(&b);
}

/* The fewest digits from 15 on that read back equal, by printf and strtod. */
static const char *reference(double v, char text[40])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    return text;
}

static void numbers_without_a_writer_are_those_of_printf(void **state)
{
    static const double edges[] = {1e-4,
                                   9.9999999999999991e-5,
                                   9.9999999999999978e-2,
                                   0.1,
                                   0.99999999999999989,
                                   1.0000000000000002,
                                   9.999999999999998,
                                   999999999999999.88,
                                   999999999999999.0,
                                   1e15,
                                   1.0000000000000001e15,
                                   5e-324,
                                   1.7e308,
                                   0.5,
                                   0.0001220703125,
                                   281474976710655.97};
    char text[40];
    leat__rng r;
    leat__buf b;
    leat__rng_init(&r, 3, 0, 0, 0);
    leat__buf_init(&b, LEAT__MEM_MISC, 1000);
    for (int i = 0; i < 200000; i++) {
        double v =
            (double)(leat__rng_u64(&r) % 100000) / (double)(1 + leat__rng_u64(&r) % 100000); /* a share */
        if (i % 3 == 1) v = ldexp((double)(leat__rng_u64(&r) >> 11), -(int)(leat__rng_u64(&r) % 80));
        if (i % 7 == 1) v = (double)(leat__rng_u64(&r) % 1000000) / 1e6;
        if (i < (int)LEAT_COUNT(edges)) v = edges[i];
        if (v == trunc(v) && v < 1e15) continue;
        leat__buf_clear(&b);
        leat__json_number(&b, i % 5 == 1 ? -v : v);
        assert_string_equal(leat__buf_str(&b), reference(i % 5 == 1 ? -v : v, text));
    }
    leat__buf_reset(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_without_a_writer),
        cmocka_unit_test(numbers_without_a_writer_are_those_of_printf),
        cmocka_unit_test(nesting_commas_and_escapes),
        cmocka_unit_test(bad_bytes_become_replacement_characters),
        cmocka_unit_test(numbers_read_back_equal),
        cmocka_unit_test(indented_output_parses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
