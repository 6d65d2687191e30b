/* SPDX-License-Identifier: Apache-2.0 */
#include "leat_test.h"

#include "base/param.h"

static const leat__param batch = {"batch", LEAT__PARAM_INT, "256", 1, 65536, .help = "samples per batch"};
static const leat__param order = {
    "order", LEAT__PARAM_CHOICE, "random", 1, 0, "sequential|random|quasi_random"};
static const leat__param memory = {"memory", LEAT__PARAM_BYTES, "2G", 1 << 20, 1e15};
static const leat__param flip = {"flip", LEAT__PARAM_FLOAT, "0.5", 0, 1};
static const leat__param wait = {"wait", LEAT__PARAM_SECONDS, NULL, 0, 10};
static const leat__param mean = {"mean", LEAT__PARAM_FLOATS, "0.485,0.456,0.406", 0, 1, .arity = 3};
static const leat__param any = {"any", LEAT__PARAM_FLOATS, NULL, 1, 0};
static const leat__param sizes = {"sizes", LEAT__PARAM_INTS, NULL, 1, 65535};
static const leat__param flag = {"json", LEAT__PARAM_FLAG, ""};
static const leat__param text = {"state", LEAT__PARAM_PATH, NULL};

static void defaults_are_written_as_users_write(void **state)
{
    leat__value v;
    (void)state;
    leat__param_default(&batch, &v);
    assert_int_equal(v.i, 256);
    assert_false(v.set);
    leat__param_default(&order, &v);
    assert_int_equal(v.i, 1);
    leat__param_default(&memory, &v);
    assert_true(v.u == UINT64_C(2) << 30);
    leat__param_default(&mean, &v);
    assert_int_equal(v.count, 3);
    assert_true(v.list[1] == 0.456);
    leat__param_default(&wait, &v);
    assert_true(v.f == 0 && !v.set);
    leat__param_default(&flag, &v);
    assert_int_equal(v.i, 0);
}

static void values_parse(void **state)
{
    leat__value v;
    (void)state;
    assert_ok(leat__param_parse(&sizes, "--it", "32,8.0", &v, NULL));
    assert_true(v.count == 2 && v.list[0] == 32 && v.list[1] == 8);
    assert_ok(leat__param_parse(&batch, "--batch", "64", &v, NULL));
    assert_true(v.set && v.i == 64);
    assert_ok(leat__param_parse(&order, "--order", "quasi_random", &v, NULL));
    assert_int_equal(v.i, 2);
    assert_ok(leat__param_parse(&flip, "--flip", "0.25", &v, NULL));
    assert_true(v.f == 0.25);
    assert_ok(leat__param_parse(&wait, "--wait", "250ms", &v, NULL));
    assert_true(v.f == 0.25);
    assert_ok(leat__param_parse(&any, "--any", "1,-2,3.5", &v, NULL));
    assert_int_equal(v.count, 3);
    assert_ok(leat__param_parse(&flag, "--json", "yes", &v, NULL));
    assert_int_equal(v.i, 1);
    assert_ok(leat__param_parse(&text, "--state", "s.json", &v, NULL));
    assert_string_equal(v.s, "s.json");
}

static void wrong(const leat__param *p, const char *value, const char *message)
{
    leat_error err;
    leat__value v;
    assert_code(LEAT_EINVAL, leat__param_parse(p, "--it", value, &v, &err));
    assert_string_equal(err.message, message);
}

static void wrong_values_get_clear_messages(void **state)
{
    (void)state;
    wrong(&batch, "0", "--it: 0 is out of range (1 to 65536)");
    wrong(&sizes, "32.9", "--it: '32.9' is not a whole number");
    wrong(&sizes, "32,8.5", "--it: '8.5' is not a whole number");
    wrong(&sizes, "32,0.5", "--it: 0.5 is out of range (1 to 65535)");
    wrong(&batch, "many", "--it: 'many' is not a whole number");
    wrong(&order, "randm",
          "--it: 'randm' is not one of sequential|random|quasi_random; did you mean "
          "'random'?");
    wrong(&order, "xyz", "--it: 'xyz' is not one of sequential|random|quasi_random");
    wrong(&memory, "4 parsecs", "--it: '4 parsecs' is not a size such as 512M or 4G");
    wrong(&flip, "half", "--it: 'half' is not a number");
    wrong(&flip, "1.5", "--it: 1.5 is out of range (0 to 1)");
    wrong(&wait, "soon", "--it: 'soon' is not a time such as 250ms or 3s");
    wrong(&mean, "1,1", "--it: '1,1' has 2 numbers, 3 are needed");
    wrong(&mean, "1,x,1", "--it: '1,x,1' is not a list of numbers");
    wrong(&mean, "1,2,1", "--it: 2 is out of range (0 to 1)");
    wrong(&any, "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7", "--it: more than 16 numbers");
    wrong(&flag, "perhaps", "--it: 'perhaps' is not yes or no");
    wrong(&text, "", "--it: is empty");
}

static void choices_can_be_listed(void **state)
{
    char word[32];
    (void)state;
    assert_true(leat__param_choice(&order, 0, word, sizeof word));
    assert_string_equal(word, "sequential");
    assert_true(leat__param_choice(&order, 2, word, sizeof word));
    assert_string_equal(word, "quasi_random");
    assert_false(leat__param_choice(&order, 3, word, sizeof word));
    assert_false(leat__param_choice(&batch, 0, word, sizeof word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_written_as_users_write),
        cmocka_unit_test(values_parse),
        cmocka_unit_test(wrong_values_get_clear_messages),
        cmocka_unit_test(choices_can_be_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
